"""`guideway extract`: typed records from texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from guideway.cli.inputs import load_output, read_texts
from guideway.cli.options import ModelOption
from guideway.cli.records import Extracted, extract_one, make_console, show_summary, show_table, some_failed
from guideway.errors import GuidewayError
from guideway.generation import MAX_TOKENS
from guideway.loading import load

__all__ = ["extract"]


def extract(
    text: Annotated[
        str,
        typer.Argument(
            help='The text; or a file with one text a line (.jsonl: under "text"); or - for stdin, for a text that is'
            " also a file's name."
        ),
    ],
    type_name: Annotated[
        str | None, typer.Option("--type", help="The record's type: FILE.py:NAME or MODULE:NAME.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="The record's JSON Schema, instead of a type.")] = None,
    model: ModelOption = "tiny",
    max_tokens: Annotated[int, typer.Option(min=1, help="At most so many tokens for a record.")] = MAX_TOKENS,
    compare: Annotated[bool, typer.Option(help="Show what the model says without the constraint, too.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")] = False,
) -> None:
    """Extract typed records from texts. Each record is guaranteed to fit its type."""
    output = load_output(type_name, schema)
    texts = read_texts(text)
    with load(model) as loaded:
        rows, failed = list[Extracted](), 0
        for one in texts:
            try:
                rows.append(extract_one(loaded, one, output, max_tokens=max_tokens, compare=compare))
            except GuidewayError as error:  # an error of this text; other texts may still give a record
                if len(texts) == 1:
                    raise
                failed += 1
                told = f"{type(error).__name__}: {error}"
                typer.echo(json.dumps({"text": one, "error": told}, ensure_ascii=False), err=not as_json)
            else:
                if as_json:
                    typer.echo(rows[-1].as_json())
    if not as_json:
        console = make_console()
        show_table(console, f"{type_name or schema} by {model}", rows)
        show_summary(console, rows)
    if failed:
        some_failed(f"{failed} of {len(texts)} texts have no record: see their errors")
