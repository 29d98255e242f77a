"""`guideway check`: checks the masks of a constraint with a tokenizer, and with a model also its engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from guideway.cli.options import (
    MODELS,
    ChoiceOption,
    ContextOption,
    DeviceOption,
    DtypeOption,
    FormatOption,
    GrammarOption,
    ProfileOption,
    RegexOption,
    ResourceOption,
    SchemaOption,
    TypeOption,
    constraint_of,
    load_model,
)
from guideway.cli.records import make_console
from guideway.errors import InvalidConstraintError
from guideway.testing.checking import check as run_checks
from guideway.tokenizers import Tokenizer

__all__ = ["check"]


def check(
    model: Annotated[str, typer.Argument(help=f"{MODELS}; or a tokenizer's path.")] = "tiny",
    regex: RegexOption = None,
    type_name: TypeOption = None,
    schema: SchemaOption = None,
    choice: ChoiceOption = None,
    format_name: FormatOption = None,
    grammar: GrammarOption = None,
    resource: ResourceOption = None,
    profile: ProfileOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    valid: Annotated[list[str] | None, typer.Option(help="A text that must fit.")] = None,
    invalid: Annotated[list[str] | None, typer.Option(help="A text that must not fit.")] = None,
    walks: Annotated[int, typer.Option(min=1, help="The number of random texts of each kind.")] = 20,
    max_tokens: Annotated[int, typer.Option(min=1, help="The maximum number of tokens of a text.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same cases.")] = 0,
) -> None:
    """Check the masks of a constraint with your tokenizer and engine. The status is 1 if a check fails."""
    constraint = constraint_of(
        regex=regex,
        type_name=type_name,
        schema=schema,
        choice=choice,
        format_name=format_name,
        grammar=grammar,
        resources=resource,
        profile=profile,
    )
    if constraint is None:
        raise InvalidConstraintError(
            "give a constraint: one of --regex, --type, --schema, --choice, --format, --grammar"
        )
    options: dict[str, Any] = {"walks": walks, "max_tokens": max_tokens, "seed": seed}
    options |= {"valid": valid or (), "invalid": invalid or ()}
    if Path(model).exists():
        report = run_checks(constraint, Tokenizer.of(Path(model)), **options)
    else:
        with load_model(model, device, dtype, context_size) as loaded:
            report = run_checks(constraint, loaded.tokenizer, loaded, **options)
    shown = regex or type_name or schema or format_name or grammar or choice
    table = Table(
        "",
        "cases",
        "failed",
        "seconds",
        title=f"{model}: {shown}",
    )
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
