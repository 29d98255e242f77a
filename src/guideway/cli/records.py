"""Extracts records from texts, and prints them as a table or as JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guideway import constraints
from guideway.cli.lines import without_number
from guideway.generation import Generation, Options
from guideway.generation.extraction import Extraction
from guideway.generation.plan import Job
from guideway.generation.streams import finished, run
from guideway.sessions import ModelBase

__all__ = ["Extracted", "extract_all", "make_console", "show_summary", "show_table", "some_failed"]


def some_failed(message: str) -> NoReturn:
    """Print a line on stderr and exit with status 2.

    It is called if results were written and some of them are errors.
    """
    typer.echo(f"guideway: {message}", err=True)
    raise typer.Exit(2)


_SHOWN = 240
"""The maximum number of characters of a text in the table. A longer text is cut and ends with "…"."""


@dataclass(frozen=True)
class Extracted:
    """One text, its record, and the output of the model without the constraint.

    Attributes:
        text: The text.
        found: The generation with the record.
        free: The generation without the constraint; None: not requested, or failed.
        free_parses: Whether the output without the constraint fits the constraint.
    """

    text: str
    found: Generation[Any]
    free: Generation[str] | None
    free_parses: bool

    @property
    def record(self) -> Any:
        """The record as JSON data."""
        return to_jsonable_python(self.found.value)

    def as_data(self) -> dict[str, Any]:
        """Return the result as JSON data, without the text."""
        line = {
            "record": self.record,
            "tokens": len(self.found.tokens),
            "forced": self.found.forced,
            "sampled": self.found.sampled,
            "tokens_per_second": round(self.found.tokens_per_second, 1),
            "finish_reason": self.found.finish_reason,
        }
        if self.found.truncation is not None:
            line["truncation"] = self.found.truncation._asdict()
        if self.free is not None:
            line |= {"without_constraint": self.free.text, "without_constraint_parses": self.free_parses}
        return line

    def as_json(self) -> str:
        """Return the text and the result as one line of JSON."""
        return json.dumps({"text": self.text, **self.as_data()}, ensure_ascii=False)


def extract_all(
    model: ModelBase,
    texts: Sequence[str],
    output: Any,
    options: Mapping[str, Any],
    *,
    compare: bool,
    positions: Sequence[int] | None = None,
) -> Iterator[tuple[int, Extracted | Exception]]:
    """Extract the records of texts in batches.

    Yields the index of a text, and its record or error, as soon as these are complete, in any order.

    Args:
        model: The model.
        texts: The texts.
        output: The type or constraint of the records.
        options: Options of `extract`.
        compare: Whether the model first runs the same prompts without the constraint, for `Extracted.free`.
        positions: For each text, the number that selects its random numbers; None: its index in `texts`.
    """
    source = constraints.of(output)
    made = Extraction(source, options)
    prompts: Any = [made.request(text, chat=model.tokenizer.is_instruct) for text in texts]
    every: Options = {**made.options, "return_exceptions": True}
    numbers = range(len(texts)) if positions is None else positions
    free: list[Any] = []
    if compare:
        plain = [one.prompt if one._error is None else one for one in prompts]  # a request that failed has no prompt
        comparison = Job(model, plain, None, None, {**every, "progress": False})
        comparison.positions = numbers
        free = run(comparison)
    job = Job(model, prompts, made.source, None, every)
    job.positions = numbers
    for number, _, found in finished(job):
        if isinstance(found, Exception):
            if found.args and isinstance(found.args[0], str):
                found.args = (without_number(found.args[0]), *found.args[1:])
            yield number, found
        else:
            other = free[number] if free and isinstance(free[number], Generation) else None
            yield number, Extracted(texts[number], found, other, other is not None and _parses(source, other.text))


def _parses(source: Any, text: str) -> bool:
    try:
        source.parse(text.strip())
    except Exception:  # a validator of the user's type may raise anything
        return False
    return True


def make_console() -> Console:
    """Return a console for standard output. It has the width of the terminal.

    Without a terminal, it has 140 columns, unless the environment variable COLUMNS is set.
    """
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 140
    return console


def show_table(console: Console, title: str, rows: Iterable[Extracted]) -> None:
    """Print a table with one row per text: the text, its record, the speed and the numbers of tokens."""
    listed = list(rows)
    table = Table(title=title, title_justify="left", show_lines=True, expand=True)
    table.add_column("text", ratio=4)
    table.add_column("record", ratio=4)
    table.add_column("tok/s", justify="right")
    table.add_column("forced\n+ drawn", justify="right")
    compare = any(row.free is not None for row in listed)
    if compare:
        table.add_column("without the constraint", ratio=4)
    for row in listed:
        cells: list[Text] = [
            Text(_cut(row.text)),
            Text(_fields(row.record), style="green"),
            Text(f"{row.found.tokens_per_second:,.0f}"),
            Text(f"{row.found.forced} + {row.found.sampled}"),
        ]
        if compare:
            cells.append(_free(row))
        table.add_row(*cells)
    console.print(table)


def show_summary(console: Console, rows: list[Extracted]) -> None:
    """Print one line with a summary of all rows."""
    timed = [row.found.timings for row in rows]
    seconds = sum(t.model + t.mask + t.sample for t in timed)
    tokens, forced = sum(len(row.found.tokens) for row in rows), sum(row.found.forced for row in rows)
    parts = [
        f"{len(rows)} texts, {len(rows)} records that parse",
        f"{tokens / seconds if seconds else 0:,.0f} tokens/s",
        f"{forced} of {tokens} tokens forced",
        f"model {sum(t.model for t in timed):.2f} s + {sum(t.prompt for t in timed):.2f} s for prompts",
        f"masks {sum(t.mask for t in timed):.3f} s",
    ]
    if any(row.free is not None for row in rows):
        parts.append(f"without the constraint {sum(row.free_parses for row in rows)} of {len(rows)} parse")
    console.print("; ".join(parts), style="bold")


def _free(row: Extracted) -> Text:
    if row.free is None:
        return Text("")
    if row.free.text == row.found.text:
        return Text("the same", style="green")
    mark = ("parses", "green") if row.free_parses else ("does not parse", "red")
    return Text.assemble(mark, "\n", _cut(row.free.text))


def _fields(record: Any) -> str:
    if isinstance(record, dict) and record:
        return "\n".join(_cut(f"{name}: {json.dumps(value, ensure_ascii=False)}") for name, value in record.items())
    return _cut(json.dumps(record, ensure_ascii=False))


def _cut(text: str) -> str:
    """Return a text as one printable line, cut after `_SHOWN` characters.

    Control characters are replaced, because they could move the cursor of the terminal.
    """
    line = "".join(c if c.isprintable() else "�" for c in " ".join(text.split()))
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
