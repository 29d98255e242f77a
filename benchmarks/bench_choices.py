"""Long lists of choices and quotations out of long texts: compile time, the first mask, each step; and captures.

    python benchmarks/bench_choices.py [--limit 60] [--engines guideway] [--record]

Each engine runs each case in a separate process with a time limit. Ready: from the texts to a matcher that can compute
a mask, wall time in ms and CPU time of the calling thread, best of 3 (one run if it takes over a second). Steps:
advance and mask, CPU us of the calling thread, over 50 accepted texts, the first walk over each text. Peers receive
choices as a pattern of alternatives; llguidance receives quotations as its `substring_chars`. Captures: CPU us per
character, guideway.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import time
from collections.abc import Callable
from typing import Any

from harness import data
from harness.engines import Engine, Guideway, LLGuidance, Refused, XGrammar
from harness.others import guarded
from harness.report import Report
from harness.timing import timed, walked

WALKS = 50


def words(count: int) -> list[str]:
    """Names as a catalogue has them, all different."""
    rng = random.Random(count)
    syllables = ["ka", "ri", "mon", "te", "sol", "va", "ne", "dra", "pi", "lo", "é", " ", "-", "St. "]
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choice(syllables) for _ in range(rng.randrange(3, 9))).strip() + str(len(found) % 97)] = None
    return list(found)


def chosen(engine: Engine, texts: list[str]) -> Any:
    """Compiles a choice."""
    if isinstance(engine, Guideway):
        import guideway as gw

        return gw.compile(gw.Choice(texts), engine.vocabulary, cache=False)
    return engine.regex("|".join(re.escape(text).replace("\\ ", " ").replace("\\-", "-") for text in texts))


def quoted(engine: Engine, text: str) -> Any:
    """Compiles quotations from a text."""
    if isinstance(engine, Guideway):
        import guideway as gw

        return gw.compile(gw.constraints.Substring(text), engine.vocabulary, cache=False)
    if isinstance(engine, LLGuidance):
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_lark('start: %regex {"substring_chars": ' + json.dumps(text) + "}")
        return engine._checked(grammar)
    raise Refused("no quotations")


def measure(engine: Engine, make: Callable[[Engine], Any], walks: list[list[int]]) -> tuple[list[float], list[float]]:
    """Ready (ms, wall and CPU) and the first mask (us); each step (us)."""
    compiled, best = None, (float("inf"), float("inf"))
    gc.disable()
    for _ in range(3):
        engine.fresh()
        compiled, (wall, cpu) = timed(lambda: make(engine))
        best = min(best, (wall / 1000, cpu / 1000))
        if wall > 1e6:
            break
    _, (_, first) = timed(engine.start(compiled).fill)
    steps: list[float] = []
    for tokens in walks:
        walker = engine.start(compiled)
        walker.fill()
        times = walked(walker, tokens)
        if times is None or not engine.may_end():
            why = getattr(getattr(walker.advance, "__self__", None), "get_error", str)()
            raise Refused(f"refuses a text that fits: {why.splitlines()[0] if why else ''}")
        steps += times[1].tolist()
    return [*best, first], sorted(steps)


def captures() -> list[list[str]]:
    """CPU us a character, and characters."""
    import guideway as gw

    row = '{"name": "ada", "age": 36, "tags": ["a", "b"]}'
    grammar = gw.Lark(
        r"""
        start: value
        value: object | array | STRING | NUMBER
        object: "{" [pair ("," pair)*] "}"
        pair: STRING ":" value
        array: "[" [value ("," value)*] "]"
        STRING: /"[^"]*"/
        %import common.NUMBER
        %ignore " "
        """
    )
    cases: list[tuple[str, Any, str]] = [
        ("pattern, one way", gw.Regex(r"(?:(?P<key>\w+)=(?P<value>[^;]*);)*"), "name=Ada;born=1815;" * 200),
        ("pattern, three `.*`", gw.Regex(r"(?P<a>.*)-(?P<b>.*)-(?P<c>.*)"), f"{'x' * 1300}-" * 2 + "z" * 1300),
        ("JSON as a grammar", grammar, f"[{', '.join([row] * 80)}]"),
        ("JSON by pointer", gw.JsonSchema(True, profile="exact"), f"[{', '.join([row] * 80)}]"),
    ]
    rows = []
    for name, source, text in cases:
        source.captures(text[:0] or text)
        start = time.process_time()
        found = source.captures(text)
        spent = time.process_time() - start
        rows.append([name, f"{len(text):,}", f"{len(found.spans):,}", f"{spent / len(text) * 1e6:,.1f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20, help="seconds that an engine gets for a case")
    parser.add_argument("--engines", default="guideway,llguidance,xgrammar")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    encode, report = data.encoder(), Report("choices", [f"Tekken 131k, {given.limit:g} s for each case and engine"])
    kinds = [kind for kind in (Guideway, LLGuidance, XGrammar) if kind.package in given.engines.split(",")]
    engines = [kind(data.tekken()) for kind in kinds]
    cases: list[tuple[str, Callable[[Engine], Any], list[str]]] = []
    for count in (1_000, 10_000, 50_000):
        texts = words(count)
        cases.append((f"{count:,} choices", lambda e, t=texts: chosen(e, t), texts[:: count // WALKS][:WALKS]))  # type: ignore[misc]  # bound to this turn
    for size in (1_000, 10_000, 100_000):
        text = " ".join(words(20_000))[:size]
        picked = [text[at : at + 40] for at in range(0, size - 40, (size - 40) // WALKS)]
        cases.append((f"quotations of {size:,} characters", lambda e, t=text: quoted(e, t), picked[:WALKS]))  # type: ignore[misc]  # as above
    rows: list[list[str]] = []
    for name, make, picked in cases:
        walks = [encode(text) for text in picked]
        for engine in engines:
            task: Any = lambda e=engine, m=make, w=walks: measure(e, m, w)  # noqa: E731 (bound to this turn)
            try:
                begun, steps = guarded(task, given.limit)
            except Refused as why:
                rows.append([name, engine.package, "", "", "", "", "", "", str(why).replace("\n", " ")[:60]])
                continue
            middle, late = steps[len(steps) // 2], steps[int(len(steps) * 0.99)]
            numbers = [*begun, middle, late, steps[-1]]
            rows.append([name, engine.package, *(f"{number:,.1f}" for number in numbers), ""])
    heads = ["case", "engine", "ready ms", "CPU", "first mask us", "step p50", "p99", "max", "why not"]
    report.table("choices and quotations", heads, rows)
    report.line()
    report.table("captures", ["text", "characters", "captured", "us a character"], captures())
    report.done(given.record)


if __name__ == "__main__":
    main()
