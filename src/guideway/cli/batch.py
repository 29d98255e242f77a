"""`guideway batch`: runs the requests of a file, and writes the results to another file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from guideway.batch import run, survey
from guideway.batch.running import WINDOW
from guideway.cli.lines import interrupted
from guideway.cli.options import (
    MODELS,
    BatchOption,
    ChoiceOption,
    ContextOption,
    DeviceOption,
    DtypeOption,
    FormatOption,
    GrammarOption,
    MinPOption,
    ProfileOption,
    RegexOption,
    ResourceOption,
    SchemaOption,
    TopKOption,
    TopPOption,
    TypeOption,
    constraint_of,
    load_any_model,
)
from guideway.cli.records import some_failed
from guideway.generation.options import BATCH

__all__ = ["batch"]


def batch(
    requests: Annotated[
        str,
        typer.Argument(
            help='A .jsonl file of requests, or - for stdin: in OpenAI\'s batch format ("custom_id", "method", "url",'
            ' "body"), or with "custom_id", "prompt" or "messages", a constraint and options.'
        ),
    ],
    results: Annotated[
        Path, typer.Argument(help="The .jsonl file of results. Requests that it answers are not run again.")
    ],
    regex: RegexOption = None,
    type_name: TypeOption = None,
    schema: SchemaOption = None,
    choice: ChoiceOption = None,
    format_name: FormatOption = None,
    grammar: GrammarOption = None,
    resource: ResourceOption = None,
    profile: ProfileOption = None,
    model: Annotated[
        str, typer.Option(help=f'{MODELS}; "openai:NAME", "anthropic:NAME", "google:NAME", "mistral:NAME".')
    ] = "tiny",
    base_url: Annotated[str | None, typer.Option("--base-url", help="The URL of an endpoint.")] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", help="What the endpoint is, such as vllm.")] = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The maximum number of tokens, for requests that have none.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0.0, help='0: greedy, the default (1 in OpenAI\'s batch format, and with "n" in a line).'),
    ] = None,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    batch_size: BatchOption = BATCH,
    window: Annotated[
        int, typer.Option(min=1, help="The number of requests that are read ahead and grouped.")
    ] = WINDOW,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the requests and count tokens; do not run the model.")
    ] = False,
) -> None:
    """Run the requests of a file. The same command continues an interrupted run.

    The options for constraints and sampling apply to requests that do not have their own.
    """
    output = constraint_of(
        regex=regex,
        type_name=type_name,
        schema=schema,
        choice=choice,
        format_name=format_name,
        grammar=grammar,
        resources=resource,
        profile=profile,
    )
    given = {"max_tokens": max_tokens, "temperature": temperature}
    cuts = {
        name: value
        for name, value, off in (("top_k", top_k, 0), ("top_p", top_p, 1.0), ("min_p", min_p, 0.0))
        if value != off
    }
    options: dict[str, Any] = {**{name: value for name, value in given.items() if value is not None}, **cuts}
    with load_any_model(model, base_url, dialect, device=device, dtype=dtype, context_size=context_size) as loaded:
        if dry_run:
            found = survey(loaded, requests, results, output, window=window, **options)
            typer.echo(str(found))
            if found.errors:
                raise typer.Exit(2)
            return
        try:
            summary = run(
                loaded, requests, results, output, window=window, batch_size=batch_size, progress=True, **options
            )
        except KeyboardInterrupt:
            interrupted("the results so far are written; the same command continues")
    typer.echo(f"guideway: {summary}", err=True)
    if summary.errors:
        some_failed(
            f'{summary.errors} of {summary.answered + summary.errors} results are errors: see "error" in their lines'
        )
