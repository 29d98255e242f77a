"""`guideway generate`: text after a prompt, as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guideway.cli.inputs import load_output
from guideway.generation import MAX_TOKENS, load, stream
from guideway.sources import Regex

__all__ = ["generate"]


def generate(
    prompt: Annotated[str, typer.Argument(help="The prompt, which goes to the model verbatim.")],
    regex: Annotated[str | None, typer.Option(help="Hold the text to a regular expression.")] = None,
    type_name: Annotated[str | None, typer.Option("--type", help="Hold it to a type: FILE.py:NAME.")] = None,
    schema: Annotated[Path | None, typer.Option(help="Hold it to a JSON Schema.")] = None,
    model: Annotated[str, typer.Option(help='"tiny" or "onnx:FOLDER".')] = "tiny",
    max_tokens: Annotated[int, typer.Option(min=1, help="At most so many tokens.")] = MAX_TOKENS,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same text.")] = 0,
) -> None:
    """Write on after a prompt, freely or under a constraint."""
    output = None
    if regex is not None:
        output = Regex(regex)
    elif type_name is not None or schema is not None:
        output = load_output(type_name, schema)
    with load(model) as loaded:
        for piece in stream(loaded, prompt, output, max_tokens=max_tokens, temperature=temperature, seed=seed):
            typer.echo(piece, nl=False)
    typer.echo()
