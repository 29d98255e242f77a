"""The `typer` application with all commands, and their common error handling."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer

import guideway
from guideway.cli import cache
from guideway.cli.batch import batch
from guideway.cli.chat import chat
from guideway.cli.check import check
from guideway.cli.demo import demo
from guideway.cli.explain import explain
from guideway.cli.extract import extract
from guideway.cli.generate import generate
from guideway.cli.lines import open_streams
from guideway.cli.probe import probe
from guideway.cli.score import score
from guideway.cli.serve import serve
from guideway.errors import GuidewayError, SchemaWarning

__all__ = ["app", "main"]

app = typer.Typer(
    name="guideway",
    help="Constrained text generation: the output always fits.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich tables show <bool> for flags and cut names
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(extract)
app.command()(generate)
app.command()(score)
app.command()(chat)
app.command()(batch)
app.command()(demo)
app.command()(explain)
app.command()(check)
app.command()(probe)
app.command()(serve)
app.add_typer(cache.app, name="cache")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"guideway {guideway.__version__}")
        raise typer.Exit


@app.callback()
def _shared(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Constrained text generation: the output always fits."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit.

    The message of an error of the library, of a file, or of a rejected value is printed on stderr, and the exit status
    is 2.
    """
    open_streams()
    show = warnings.showwarning
    try:
        warnings.showwarning = partial(_show_warning, show)
        app(args=None if arguments is None else list(arguments))
    except (GuidewayError, ValueError, OSError) as error:
        typer.echo(f"guideway: {error}", err=True)
        sys.exit(2)
    finally:
        warnings.showwarning = show


def _show_warning(show: Callable[..., None], message: Warning | str, category: type[Warning], *others: Any) -> None:
    """Print a `SchemaWarning` as one line on stderr. Pass other warnings to `show`, the function that was replaced."""
    if issubclass(category, SchemaWarning):
        typer.echo(f"guideway: warning: {message}", err=True)
    else:
        show(message, category, *others)
