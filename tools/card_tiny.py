"""Writes the card and the curve of the bundled model from a run's files and the figures of tools/eval_tiny.py.

Usage: python tools/card_tiny.py MODEL_DIR FIGURES.json CURVE.jsonl [CURVE.jsonl ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent / "tiny_card.md"


def curve_of(files: list[Path]) -> list[dict[str, float]]:
    """The lines of all runs, one after the other; a restarted step replaces what it repeats."""
    lines: list[dict[str, float]] = []
    for file in files:
        for text in file.read_text().splitlines():
            line = json.loads(text)
            kept = [old for old in lines if old["step"] < line["step"]]
            lines = [*kept, *(old | line for old in lines if old["step"] == line["step"])] or [line]
            if lines[-1]["step"] != line["step"]:
                lines.append(line)
    return lines


def table(figures: dict[str, dict[str, float]]) -> str:
    rows = ["| | fields right | records right | parses |", "|---|---|---|---|"]
    names = {"free": "greedy, no constraint", "constrained": "greedy, constrained by the schema"}
    for key, name in names.items():
        if run := figures.get(key):
            rows.append(f"| {name} | {run['fields_right']:.1%} | {run['records_right']:.1%} | {run['parses']:.1%} |")
    return "\n".join(rows)


def course(curve: list[dict[str, float]]) -> str:
    """The measured points of the curve, and its end."""
    rows = ["| million tokens | loss | fields right |", "|---|---|---|"]
    loss = 0.0
    for line in curve:
        loss = line.get("loss", loss)
        if "fields_right" in line:
            rows.append(f"| {line['million_tokens']:.0f} | {loss:.2f} | {line['fields_right']:.1%} |")
    return "\n".join(rows)


def main() -> None:
    folder, figures = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    curve = curve_of([Path(name) for name in sys.argv[3:]])
    (folder / "curve.json").write_text("[\n" + ",\n".join(json.dumps(line) for line in curve) + "\n]\n")
    facts = {
        "@TABLE@": table(figures),
        "@CURVE@": course(curve),
        "@COUNT@": str(figures["samples"]),
        "@STEPS@": f"{curve[-1]['step']:,.0f}",
        "@TOKENS@": f"{curve[-1]['million_tokens']:.0f}",
    }
    card = TEMPLATE.read_text()
    for mark, fact in facts.items():
        card = card.replace(mark, fact)
    (folder / "README.md").write_text(card)


if __name__ == "__main__":
    main()
