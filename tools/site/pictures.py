"""Draws the pictures of the documentation as SVG files in docs/assets.

    python tools/site/pictures.py

The diagrams of measurements read records in benchmarks/record; each has the name of its record below it. The trie is
computed by a matcher. tests/packaging/test_site.py compares the committed files with what this program draws.
"""

from __future__ import annotations

import math
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "site")]

import records  # noqa: E402  # the line above makes it importable

ASSETS = ROOT / "docs" / "assets"
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1d2b2a; }
  .small { font-size: 12px; fill: #4a5a58; } .code { font: 13px ui-monospace, monospace; }
  .box { fill: #e3f2f0; stroke: #00796b; } .line { stroke: #5b6d6b; fill: none; } .grid { stroke: #d5dcdb; }
  .legal { fill: #00796b; } .dead { fill: #b0bab9; } .deadtext { fill: #6a7675; } .white { fill: #ffffff; }
  .a { fill: #00796b; } .b { fill: #c65d00; } .c { fill: #5e4fa2; } .la { stroke: #00796b; } .lb { stroke: #c65d00; }
  .lc { stroke: #5e4fa2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4eceb; } .small { fill: #b4c0be; } .box { fill: #12403b; stroke: #4db6ac; } .line { stroke: #a9b8b6; }
    .grid { stroke: #3a4746; } .legal, .a { fill: #4db6ac; } .la { stroke: #4db6ac; } .b { fill: #ff9d4d; }
    .lb { stroke: #ff9d4d; } .c { fill: #b3a7e6; } .lc { stroke: #b3a7e6; } .dead { fill: #56615f; }
    .deadtext { fill: #a3aead; } .white { fill: #0b1f1d; }
  }
"""
ENGINES = {"guideway": "a", "llguidance": "b", "xgrammar": "c"}
"""The class of colours of each library."""


def svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """Returns an SVG document with a title for screen readers."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "middle") -> str:
    """Returns a line of text."""
    shown = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{shown} text-anchor="{anchor}">{escape(content)}</text>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Returns a line with an arrow head at its end."""
    angle = math.atan2(to_y - y, to_x - x)
    tips = [(to_x - 8 * math.cos(angle + turn), to_y - 8 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    heads = "".join(f" M{tip_x:.1f} {tip_y:.1f} L{to_x:g} {to_y:g}" for tip_x, tip_y in tips)
    return f'<path class="line" d="M{x:g} {y:g} L{to_x:g} {to_y:g}{heads}"/>'


def pipeline() -> str:
    """Draws the path from a constraint and a model to a text."""
    steps = [
        ("constraint", "schema, regex, type"),
        ("grammar", "nodes, regular leaves"),
        ("automaton", "lazy, over bytes"),
        ("matcher", "one per sequence"),
        ("mask", "one bit per token"),
    ]
    parts = []
    for index, (name, note) in enumerate(steps):
        x = 12 + index * 176
        parts += [f'<rect class="box" x="{x}" y="20" width="140" height="64" rx="6"/>']
        parts += [text(x + 70, 48, name), text(x + 70, 68, note, "small")]
        if index:
            parts.append(arrow(x - 36, 52, x - 2, 52))
    for x, name, note in [
        (364, "vocabulary", "bytes of each token"),
        (540, "model", "logits"),
        (716, "sampler", "draws a legal token"),
    ]:
        parts += [f'<rect class="box" x="{x}" y="140" width="140" height="56" rx="6"/>']
        parts += [text(x + 70, 165, name), text(x + 70, 184, note, "small")]
    parts += [arrow(434, 140, 434, 86), arrow(786, 84, 786, 138), arrow(680, 168, 714, 168)]
    parts += [arrow(730, 140, 662, 86), text(726, 112, "token", "small")]
    return svg(870, 208, "From a constraint to masks: constraint, grammar, automaton, matcher, mask", parts)


def trie() -> str:
    """Draws the trie of a small vocabulary, with the tokens that a real matcher allows."""
    import guideway as gw

    tokens = ["n", "no", "not", "now", "y", "ye", "yes", "yet", "{", '{"']
    vocabulary = gw.Vocabulary([token.encode() for token in tokens] + [b""], eos_ids=[len(tokens)])
    matcher = gw.compile(gw.Regex("yes|no"), vocabulary).matcher()
    row = gw.masks.new_rows(1, len(vocabulary))[0]
    matcher.fill_mask(row)
    legal = {tokens[index] for index in gw.masks.ids(row, len(vocabulary)) if index < len(tokens)}
    prefixes = {"": (30.0, 150.0)}
    leaves = [token for token in tokens if not any(other != token and other.startswith(token) for other in tokens)]
    places = {token: 36 + 46 * index for index, token in enumerate(leaves)}
    for token in sorted(tokens, key=len, reverse=True):
        if token not in places:
            below = [y for other, y in places.items() if other.startswith(token) and len(other) == len(token) + 1]
            places[token] = sum(below) / len(below)
    prefixes.update({token: (30 + 170.0 * len(token), places[token]) for token in tokens})
    alive = {token for token in tokens if any(other.startswith(token) for other in legal)}
    parts = []
    for token in tokens:
        (x, y), (from_x, from_y) = prefixes[token], prefixes[token[:-1]]
        dashed = "" if token in alive else ' stroke-dasharray="4 4"'
        parts.append(f'<path class="line"{dashed} d="M{from_x:g} {from_y:g} L{x:g} {y:g}"/>')
    for token in ["", *tokens]:
        x, y = prefixes[token]
        kind = "legal" if token in legal or not token else "dead"
        parts.append(f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="9"/>')
        note = "legal" if token in legal else "" if token in alive or not token else "excluded"
        shown = f"{token}   {note}" if token else ""
        parts.append(text(x + 16, y - 12, shown, "code" if token in alive else "code deadtext", "start"))
    note = "Constraint: the pattern yes|no. Circle: a token; dashed: a subtree that is not visited."
    parts.append(text(30, 262, note, "small", "start"))
    return svg(720, 280, "A token trie: the tokens that are prefixes of yes or no are legal", parts)


def latency() -> str:
    """Draws quantiles of the time for a mask and an advance, on a logarithmic scale."""
    found = records.latencies()
    quantiles = ["p50", "p90", "p99", "p99.9", "max"]
    left, top, width, height = 70, 30, 560, 250
    values = [value for row in found.values() for value in row.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def y_of(value: float) -> float:
        return top + height * (high - math.log10(value)) / (high - low)

    parts = []
    for power in range(low, high + 1):
        y = y_of(10.0**power)
        label = f"{10**power:,} µs" if power < 3 else f"{10 ** (power - 3):,} ms"
        parts += [
            f'<path class="grid" d="M{left} {y:g} H{left + width}"/>',
            text(left - 8, y + 4, label, "small", "end"),
        ]
    for index, quantile in enumerate(quantiles):
        parts.append(text(left + 60 + index * 110, top + height + 24, quantile, "small"))
    for place, (engine, row) in enumerate(found.items()):
        kind = ENGINES[engine]
        points = [(left + 60 + index * 110, y_of(row[quantile])) for index, quantile in enumerate(quantiles)]
        path = " L".join(f"{x:g} {y:.1f}" for x, y in points)
        parts.append(f'<path class="line l{kind}" stroke-width="2" d="M{path}"/>')
        parts += [f'<circle class="{kind}" cx="{x:g}" cy="{y:.1f}" r="4"/>' for x, y in points]
        parts += [f'<rect class="{kind}" x="{left + 12}" y="{top + 4 + 20 * place}" width="12" height="12"/>']
        parts.append(text(left + 30, top + 15 + 20 * place, engine, "small", "start"))
    parts.append(text(left, top + height + 48, records.LATENCY_NOTE, "small", "start"))
    return svg(660, 340, "Time for a mask and an advance: median to maximum, by library", parts)


def coverage() -> str:
    """Draws the share of MaskBench schemas that each library accepts, and of valid instances that it accepts."""
    rows = records.coverage()
    parts = []
    for index, (label, engine, part, whole) in enumerate(rows):
        y = 28 + index * 34 + 18 * (index // 3)
        share = part / whole
        parts.append(text(300, y + 15, f"{engine}: {label}", "small", "end"))
        parts.append(f'<rect class="dead" x="310" y="{y}" width="240" height="20" rx="2"/>')
        parts.append(f'<rect class="{ENGINES[engine]}" x="310" y="{y}" width="{240 * share:.1f}" height="20" rx="2"/>')
        parts.append(text(560, y + 15, f"{part:,} of {whole:,}", "small", "start"))
    height = 28 + len(rows) * 34 + 18 * (len(rows) // 3)
    parts.append(text(20, height + 8, records.COVERAGE_NOTE, "small", "start"))
    return svg(680, height + 24, "Accepted schemas, and correct verdicts on their instances, by library", parts)


PICTURES = {"pipeline.svg": pipeline, "trie.svg": trie, "latency.svg": latency, "coverage.svg": coverage}


def main() -> None:
    """Writes all pictures."""
    ASSETS.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (ASSETS / name).write_text(draw(), "utf-8")


if __name__ == "__main__":
    main()
