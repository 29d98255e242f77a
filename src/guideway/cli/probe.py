"""`guideway probe`: measures what an endpoint enforces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from guideway.arguments import short_repr
from guideway.cli.inputs import UsageError
from guideway.cli.options import load_any_model
from guideway.remote import probe as probed

__all__ = ["probe"]


def probe(
    model: Annotated[
        str, typer.Option("--model", help='"openai:NAME", "anthropic:NAME", "google:NAME", "mistral:NAME".')
    ],
    base_url: Annotated[str | None, typer.Option("--base-url", help="The URL of the endpoint.")] = None,
    dialect: Annotated[
        str | None, typer.Option("--dialect", help="The expected dialect of the endpoint, such as vllm.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the result to this file; `guideway.remote.Probe.load` reads it.")
    ] = None,
) -> None:
    """Measure what an endpoint enforces, with up to about 25 small requests. The key comes from the environment.

    The status is 1 if a route that the endpoint is expected to enforce is not enforced.
    """
    kind, _, name = model.partition(":")
    if not name:
        kind, name = "openai", model
    if kind not in ("openai", "anthropic", "google", "mistral"):
        raise UsageError(
            f"probe measures endpoints: openai:NAME, anthropic:NAME, google:NAME or mistral:NAME, got {short_repr(model)}"
        )
    with load_any_model(f"{kind}:{name}", base_url, dialect) as loaded:
        remote: Any = loaded
        found = probed(remote)
    if save is not None:
        found.save(save)
    typer.echo(json.dumps(found.to_json(), ensure_ascii=False) if as_json else str(found))
    expected = {one.route for one in found.verdicts} & set(remote.capabilities.routes)
    if any(not found.enforced(route) for route in expected):
        raise typer.Exit(1)
