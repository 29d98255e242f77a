"""`guideway score`: the exact probability of each option after a prompt."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from guideway.cli.inputs import CARRIED, MESSAGES, UsageError, is_lines_file, prompt_of, read_requests
from guideway.cli.lines import ResultLines, described
from guideway.cli.options import ContextOption, DeviceOption, DtypeOption, ModelOption, ResumeOption, load_model
from guideway.cli.records import make_console, some_failed
from guideway.errors import GuidewayError
from guideway.generation import Score, score as scored

__all__ = ["score"]


def score(
    prompt: Annotated[
        str,
        typer.Argument(help='The prompt, verbatim; or a .jsonl file (or -): "prompt", "options" in each line.'),
    ],
    options: Annotated[
        list[str] | None, typer.Argument(help="The options; for a file: of lines that have none.")
    ] = None,
    model: ModelOption = "tiny",
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    end: Annotated[bool, typer.Option("--end", help="The end token belongs to an option.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")] = False,
    resume: ResumeOption = None,
) -> None:
    """Print the log-probability of each option under the model, and its probability among the options. Both are exact."""
    many = is_lines_file(prompt)
    lines = read_requests(prompt, ("options",)) if many else [{"prompt": prompt}]
    console = Console(stderr=True)
    with (
        load_model(model, device, dtype, context_size) as loaded,
        ResultLines(resume, ("prompt", MESSAGES, "options", *CARRIED), "scores") as results,
    ):
        failed = 0
        left = results.left(lines)
        shown = track(left, "scoring", disable=not many or not console.is_terminal, console=console)
        for line in (lines[number] for number in shown):
            given: Any = line.get("options", options)
            if not many and not given:
                raise UsageError("no options were given; usage: guideway score PROMPT OPTION OPTION")
            try:
                found = scored(loaded, prompt_of(line), given or [], end=end)
            except (GuidewayError, ValueError, TypeError) as error:
                if not many:
                    raise
                failed += 1
                results.write(line, {"error": described(error)})
                continue
            if many or as_json or resume is not None:
                results.write(line, {"scores": [_as_data(one) for one in found]})
                continue
            table = Table("option", "probability", "log-probability", "tokens")
            for one in sorted(found, key=lambda one: -one.probability):
                table.add_row(one.option, f"{one.probability:.2%}", f"{one.logprob:.3f}", str(len(one.tokens)))
            make_console().print(table)
        if failed:
            some_failed(f'{failed} of {len(left)} results are errors: see "error" in their lines')


def _as_data(one: Score) -> dict[str, Any]:
    return {
        "option": one.option,
        "logprob": one.logprob,
        "probability": one.probability,
        "tokens": list(one.tokens),
    }
