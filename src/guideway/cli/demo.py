"""`guideway demo`: extracts the example records from the example sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guideway.cli.inputs import load_type, read_lines
from guideway.cli.options import ContextOption, DeviceOption, DtypeOption, ModelOption, load_model
from guideway.cli.records import Extracted, extract_all, make_console, show_summary, show_table
from guideway.errors import InvalidFileError
from guideway.generation import MAX_TOKENS

__all__ = ["demo"]

INSTALLED = Path(__file__).parent / "examples"
CHECKOUT = Path(__file__).parents[3] / "examples"


def demo(
    examples: Annotated[
        Path | None, typer.Option(help="A folder with sentences.jsonl and records.py; by default that of the library.")
    ] = None,
    model: ModelOption = "tiny",
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    compare: Annotated[bool, typer.Option(help="Also show the output without the constraint.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of tables.")] = False,
) -> None:
    """Extract the example records from the example sentences."""
    folder = examples or (INSTALLED if INSTALLED.is_dir() else CHECKOUT)
    types = load_type(f"{folder / 'records.py'}:RECORDS")
    if not isinstance(types, dict):
        raise InvalidFileError(f"{folder / 'records.py'}: RECORDS must be a dict of types by name")
    by_kind: dict[str, list[str]] = {}
    for entry in read_lines(folder / "sentences.jsonl"):
        if not isinstance(entry.get("kind"), str) or entry["kind"] not in types:
            raise InvalidFileError(f"no record type {entry.get('kind')!r}; records.py has {', '.join(types)}")
        by_kind.setdefault(entry["kind"], []).append(entry["text"])
    console, rows = make_console(), list[Extracted]()
    with load_model(model, device, dtype, context_size) as loaded:
        for kind, texts in by_kind.items():
            found = dict(
                extract_all(loaded, texts, types[kind], {"max_tokens": MAX_TOKENS, "verbatim": True}, compare=compare)
            )
            made: list[Extracted] = []
            for number in range(len(texts)):
                one = found[number]
                if isinstance(one, Exception):
                    raise one
                made.append(one)
            rows += made
            if as_json:
                for row in made:
                    typer.echo(row.as_json())
            else:
                show_table(console, f"{types[kind].__name__} by {model}", made)
    if not as_json:
        show_summary(console, rows)
