"""`guideway explain`: what a schema enforces, with sample instances."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from guideway.cli.inputs import read_file
from guideway.cli.records import make_console
from guideway.constraints.json_schema import explain_schema
from guideway.errors import ConstraintError, InvalidConstraintError

__all__ = ["explain"]


def explain(
    schema: Annotated[Path, typer.Argument(help="A file with a JSON Schema; - for stdin.")],
    profile: Annotated[str, typer.Option(help='"generation" or "exact".')] = "generation",
    formats: Annotated[str, typer.Option(help='"known", "strict" or "annotate".')] = "known",
    dialect: Annotated[
        str | None, typer.Option(help='Where the schema names none: "draft-04" to "draft-07", "2019-09", "2020-12".')
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="How many instances to draw.")] = 3,
) -> None:
    """List the keywords of a schema that are enforced or refused, with reasons, and print sample instances."""
    options: dict[str, Any] = {"profile": profile, "formats": formats, "dialect": dialect, "examples": examples}
    try:
        found = explain_schema(read_file(schema), **options)
    except ConstraintError as error:
        raise InvalidConstraintError(f"{schema}: {error}", error.place) from error
    console = make_console()
    table = Table("where", "keyword", "what becomes of it", title=str(schema))
    for place, keyword, status in found.contract:
        table.add_row(place or "(the whole schema)", keyword, status)
    console.print(table, highlight=False, markup=False)
    for place, reason in found.refusals.items():
        console.print(f"refused at {place or 'the whole schema'}: {reason}", highlight=False, markup=False)
    if found.conflict:
        console.print(f"no text can fit: {found.conflict}", highlight=False, markup=False)
    for text in found.examples:
        console.print(f"fits: {text}", highlight=False, markup=False, soft_wrap=True)
    if found.refusals or found.conflict:
        raise typer.Exit(1)
