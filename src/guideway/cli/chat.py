"""`guideway chat`: a conversation in the terminal."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from guideway.arguments import short_repr
from guideway.cli.inputs import UsageError, load_type
from guideway.cli.options import (
    ContextOption,
    DeviceOption,
    DtypeOption,
    ModelOption,
    SeedOption,
    TemperatureOption,
    TopPOption,
    load_any_model,
)
from guideway.constraints.tools import Tool
from guideway.errors import GuidewayError
from guideway.generation import MAX_TOKENS, Chat

__all__ = ["chat"]


def chat(
    model: ModelOption = "tiny",
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    system: Annotated[str | None, typer.Option(help="The system message.")] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(help="A function that the model may call: FILE.py:NAME or MODULE:NAME; give it for each."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="The maximum number of tokens of a reply.")] = MAX_TOKENS,
    max_reasoning_tokens: Annotated[
        int | None, typer.Option(min=0, help="The maximum number of tokens of reasoning before a reply.")
    ] = None,
    temperature: TemperatureOption = None,
    top_p: TopPOption = 1.0,
    seed: SeedOption = 0,
) -> None:
    """Talk to a model. Each line is a message; /undo removes the last turn, /quit or the end of the input ends."""
    options = {"temperature": (temperature, None), "top_p": (top_p, 1.0), "seed": (seed, 0)}
    given: dict[str, Any] = {name: value for name, (value, default) in options.items() if value != default}
    tools = [_tool(one) for one in tool or ()]
    with load_any_model(model, None, None, device=device, dtype=dtype, context_size=context_size) as loaded:
        conversation = Chat(
            loaded,
            system=system,
            tools=tools,
            max_reasoning_tokens=max_reasoning_tokens,
            max_tokens=max_tokens,
            **given,
        )
        for line in _lines():
            if line == "/quit":
                break
            try:
                _answer(conversation, line)
            except (GuidewayError, ValueError) as error:
                typer.echo(f"error: {error}", err=True)


def _tool(name: str) -> Tool:
    """Load a function, or a `Tool` that has a function.

    Raises `UsageError` for anything else, because the conversation must execute the calls.
    """
    thing = load_type(name, what="function")
    try:
        tool = Tool.of(thing)
    except GuidewayError as error:
        raise UsageError(f"--tool {name}: {error}") from error
    if tool.function is None:
        raise UsageError(
            f"--tool {name} must be a Python function, or a Tool with a function, so that calls can be executed;"
            f" got {short_repr(thing)}"
        )
    return tool


def _lines() -> Iterator[str]:
    """Yield the lines of standard input that are not empty. If it is a terminal, print "> " before each one is read."""
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _answer(conversation: Chat, line: str) -> None:
    if line == "/undo":
        conversation.rewind()
        return
    if any(inspect.iscoroutinefunction(tool.function) for tool in conversation.tools):
        typer.echo(asyncio.run(conversation.arun(line)))
        return
    if conversation.tools:
        typer.echo(conversation.run(line))
        return
    for part in conversation.stream(line):
        typer.echo(part, nl=False)
        sys.stdout.flush()
    typer.echo("")
