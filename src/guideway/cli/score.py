"""`guideway score`: the exact probability of each option after a prompt."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.progress import track
from rich.table import Table

from guideway.cli.inputs import UsageError, is_lines_file, read_requests
from guideway.cli.options import ModelOption
from guideway.cli.records import make_console, some_failed
from guideway.errors import GuidewayError
from guideway.generation import score as scored
from guideway.loading import load

__all__ = ["score"]


def score(
    prompt: Annotated[
        str,
        typer.Argument(help='The prompt, verbatim; or a .jsonl file (or -): "prompt", "options" in each line.'),
    ],
    options: Annotated[list[str] | None, typer.Argument(help="The options; of a file, where a line has none.")] = None,
    model: ModelOption = "tiny",
    end: Annotated[bool, typer.Option("--end", help="The end token belongs to an option.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")] = False,
) -> None:
    """Print the exact probability of each option, under the model and among the options."""
    many = is_lines_file(prompt)
    lines = read_requests(prompt, ("options",)) if many else [{"prompt": prompt}]
    with load(model) as loaded:
        failed = 0
        for line in track(lines, "scoring", disable=not many, console=_stderr()):
            given: Any = line.get("options", options)
            if not many and not given:
                raise UsageError("no options were given; usage: guideway score PROMPT OPTION OPTION")
            try:
                found = scored(loaded, line["prompt"], given or [], end=end)
            except (GuidewayError, ValueError, TypeError) as error:
                if not many:
                    raise
                failed += 1
                typer.echo(json.dumps({**line, "error": f"{type(error).__name__}: {error}"}, ensure_ascii=False))
                continue
            if many or as_json:
                scores = [
                    {"option": one.option, "logprob": one.logprob, "probability": one.probability} for one in found
                ]
                typer.echo(json.dumps({**line, "scores": scores}, ensure_ascii=False))
                continue
            table = Table("option", "probability", "log-probability", "tokens")
            for one in sorted(found, key=lambda one: -one.probability):
                table.add_row(one.option, f"{one.probability:.2%}", f"{one.logprob:.3f}", str(len(one.tokens)))
            make_console().print(table)
        if failed:
            some_failed(f'{failed} of {len(lines)} results are errors: see "error" in their lines')


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)
