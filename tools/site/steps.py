"""Records generations of the bundled model for docs/watch.md: for each token, what was legal, forced and removed.

    python tools/site/steps.py     # rewrites the tables of docs/watch.md

tests/packaging/test_site.py compares the page with what this program records.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import guideway as gw

if TYPE_CHECKING:
    from guideway.types import Model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "watch.md"
RUNS: dict[str, tuple[str, Any]] = {
    "year": ("Founded in ", gw.Regex("(19|20)[0-9][0-9]")),
    "mood": ("I feel ", gw.Choice(["fine", "tired", "tiresome"])),
    "record": (
        "Text: Ada Lovelace, 36, mathematician from London\n"
        'Shape: {"name": string, "age": integer | null, "city": string | null}\nRecord:\n',
        gw.JsonSchema(
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "age": {"type": ["integer", "null"]},
                    "city": {"type": ["string", "null"]},
                },
                "required": ["name", "age", "city"],
                "additionalProperties": False,
            }
        ),
    ),
}
"""Prompt and constraint of each recorded run, by the name of its place in the page."""


def cell(text: str) -> str:
    """Returns a text as JSON in a table cell."""
    return "`" + json.dumps(text, ensure_ascii=False).replace("|", "\\u007c") + "`"


def table_of(model: Model, prompt: str, constraint: Any) -> list[str]:
    """Returns the rows of a table: one row for each token of the generation."""
    result = gw.complete(model, prompt, constraint, max_tokens=60, logprobs=3)
    vocabulary = model.tokenizer.vocabulary
    matcher = gw.compile(constraint, vocabulary).matcher()
    row = gw.masks.new_rows(1, len(vocabulary))[0]
    lines = [
        "| step | token | kind | legal tokens | removed | most probable without the mask |",
        "|---|---|---|---|---|---|",
    ]
    for index, step in enumerate(result.steps):
        matcher.fill_mask(row)
        legal = gw.masks.popcount(row)
        shown = "end of text" if step.token_id in vocabulary.eos_ids else vocabulary.token_bytes[step.token_id].decode()
        wanted = [
            f"{cell(vocabulary.token_bytes[one.token_id].decode(errors='replace'))} {one.probability:.0%}"
            for one in step.alternatives
        ]
        kind = "forced" if step.forced else "sampled"
        lines.append(
            f"| {index + 1} | {cell(shown)} | {kind} | {legal:,} | {step.masked_mass:.0%} | {', '.join(wanted)} |"
        )
        matcher.advance(step.token_id)
    return lines


def recorded() -> str:
    """Returns the text of the page with newly recorded tables."""
    model = gw.load("tiny")
    text = PAGE.read_text("utf-8")
    for name, (prompt, constraint) in RUNS.items():
        block = "\n".join(
            ["", '<div class="recorded" markdown="1">', "", *table_of(model, prompt, constraint), "", "</div>", ""]
        )
        pattern = re.compile(rf"(<!-- recorded: {name} -->).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{PAGE} has no place for the run {name!r}")
        text = pattern.sub(lambda found, block=block: found[1] + "\n" + block + "\n" + found[2], text)
    return text


if __name__ == "__main__":
    PAGE.write_text(recorded(), "utf-8")
