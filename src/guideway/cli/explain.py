"""`guideway explain`: shows what a constraint enforces, with sample texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from guideway.cli.inputs import read_file, read_resources, require
from guideway.cli.options import GrammarOption, RegexOption, ResourceOption, TypeOption, constraint_of
from guideway.cli.records import make_console
from guideway.constraints import PythonType, of
from guideway.constraints.json_schema import explain_schema
from guideway.constraints.rules import RuleConstraint
from guideway.errors import ConstraintError, InvalidConstraintError, UnsatisfiableError
from guideway.frontends.json_schema.report import Explanation, draw_examples

__all__ = ["explain"]


def explain(
    schema: Annotated[Path | None, typer.Argument(help="A file with a JSON Schema; - for stdin.")] = None,
    type_name: TypeOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    profile: Annotated[
        str | None, typer.Option(help='For a schema file: "generation", the default, or "exact".')
    ] = None,
    formats: Annotated[
        str | None, typer.Option(help='For a schema file: "known", the default, "strict" or "annotate".')
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(help='If the schema has no $schema: "draft-04" to "draft-07", "2019-09", "2020-12".')
    ] = None,
    resource: ResourceOption = None,
    examples: Annotated[int, typer.Option(min=0, help="The number of sample texts.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object; for a schema or a type.")] = False,
) -> None:
    """Show what a schema, a type, a pattern or a grammar allows, with sample texts.

    For a schema or a type, all keywords are listed with their status, and the reasons for which some are refused. The
    exit status is 1 if the schema is refused or no text fits, and 2 if it is malformed or exceeds a limit.
    """
    console = make_console()
    if (schema is not None) + (type_name is not None) + (regex is not None) + (grammar is not None) != 1:
        raise InvalidConstraintError("give one of a schema file, --type, --regex and --grammar")
    if schema is not None:
        chosen = {"profile": profile, "formats": formats, "dialect": dialect}
        options: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
        try:
            found = explain_schema(read_file(schema), resources=read_resources(resource), examples=examples, **options)
        except ConstraintError as error:
            raise InvalidConstraintError(f"{schema}: {error}", error.place) from error
        _report(console, str(schema), found, as_json)
        return
    given = {"--profile": profile, "--formats": formats, "--dialect": dialect, "--resource": resource or None}
    require("a schema file", given)
    source = of(
        constraint_of(regex=regex, type_name=type_name, schema=None, choice=None, format_name=None, grammar=grammar)
    )
    if isinstance(source, PythonType):
        explained = explain_schema(source.schema, formats="strict", examples=0)
        texts = [] if explained.conflict else draw_examples(source.grammar(), examples)
        found = Explanation(explained.keyword_report, {}, texts, explained.conflict)
        _report(console, type_name or "", found, as_json)
        return
    if as_json:
        raise InvalidConstraintError("--json is for a schema file or --type")
    console.print(f"{regex or grammar or type_name}", highlight=False, markup=False)
    if isinstance(source, RuleConstraint):
        for what, names in (("not reachable from", source.unreachable), ("no text, in", source.unproductive)):
            for name in names:
                console.print(f"{what} {source.start}: {name}", highlight=False, markup=False)
    else:
        language = "regular" if source.regular() is not None else "context-free"
        console.print(f"the language is {language}", highlight=False, markup=False)
    try:
        texts = draw_examples(source.grammar(), examples)
    except UnsatisfiableError as error:
        _show_conflict(console, str(error))
        raise typer.Exit(1) from error
    _show_texts(console, texts)


def _report(console: Console, title: str, found: Explanation, as_json: bool) -> None:
    """Print an explanation. Exits with status 1 if the schema is refused, or no text fits."""
    if as_json:
        parts = {
            "keywords": found.rows(),
            "refusals": found.refusals,
            "conflict": found.conflict,
            "examples": found.examples,
        }
        typer.echo(json.dumps(parts, ensure_ascii=False))
    else:
        _show(console, title, found)
    if found.refusals or found.conflict:
        raise typer.Exit(1)


def _show(console: Console, title: str, found: Explanation) -> None:
    table = Table("place", "keyword", "status", title=title)
    for place, keyword, status in found.keyword_report:
        table.add_row(place or "(the whole schema)", keyword, status)
    console.print(table, highlight=False, markup=False)
    for place, reason in found.refusals.items():
        console.print(f"refused at {place or 'the whole schema'}: {reason}", highlight=False, markup=False)
    if found.conflict:
        _show_conflict(console, found.conflict)
    _show_texts(console, found.examples)


def _show_conflict(console: Console, why: str) -> None:
    console.print(f"no text can fit: {why}", highlight=False, markup=False)


def _show_texts(console: Console, texts: list[str]) -> None:
    for text in texts:
        console.print(f"fits: {text}", highlight=False, markup=False, soft_wrap=True)
