"""`guideway check`: whether a tokenizer, a constraint and an engine agree, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from guideway.cli.inputs import load_output
from guideway.cli.records import make_console
from guideway.errors import InvalidConstraint
from guideway.generation import load
from guideway.sources import Regex
from guideway.testing.checking import check as run_checks
from guideway.vocabulary import Tokenizer

__all__ = ["check"]


def check(
    model: Annotated[
        str, typer.Argument(help='"tiny", "onnx:FOLDER", "hf:NAME", "gguf:FILE", "mlx:FOLDER"; or a tokenizer\'s path.')
    ] = "tiny",
    regex: Annotated[str | None, typer.Option(help="Check a regular expression.")] = None,
    type_name: Annotated[str | None, typer.Option("--type", help="Check a type: FILE.py:NAME.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Check a JSON Schema.")] = None,
    valid: Annotated[list[str] | None, typer.Option(help="A text that must fit.")] = None,
    invalid: Annotated[list[str] | None, typer.Option(help="A text that must not.")] = None,
    walks: Annotated[int, typer.Option(min=1, help="How many texts are drawn of each kind.")] = 20,
    max_tokens: Annotated[int, typer.Option(min=1, help="How long they may be.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same cases.")] = 0,
) -> None:
    """Hold the masks of a constraint, with your tokenizer and engine, to what fits; status 1 where they are wrong."""
    if sum(given is not None for given in (regex, type_name, schema)) != 1:
        raise InvalidConstraint("give one of --regex, --type and --schema")
    constraint: Any = load_output(type_name, schema) if regex is None else Regex(regex)
    options: dict[str, Any] = {"walks": walks, "max_tokens": max_tokens, "seed": seed}
    options |= {"valid": valid or (), "invalid": invalid or ()}
    if Path(model).exists():
        report = run_checks(constraint, Tokenizer.of(Path(model)), **options)
    else:
        with load(model) as loaded:
            report = run_checks(constraint, loaded.tokenizer, loaded, **options)
    table = Table("", "cases", "failed", "seconds", title=f"{model}: {regex or type_name or schema}")
    for one in report.findings:
        cells = ["-", "-", one.skipped] if one.skipped else [str(one.cases), str(one.failed), f"{one.seconds:.2f}"]
        table.add_row(one.what, *cells)
    console = make_console()
    console.print(table, highlight=False, markup=False)
    for one in report.findings:
        for text in one.told:
            console.print(f"{one.what}: {text}", highlight=False, markup=False, soft_wrap=True)
    if not report.ok:
        raise typer.Exit(1)
