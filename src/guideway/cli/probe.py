"""`guideway probe`: what an endpoint enforces."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

from guideway.cli.inputs import UsageError
from guideway.loading import load
from guideway.remote import probe as probed

__all__ = ["probe"]

_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY"}


def probe(
    model: Annotated[
        str, typer.Option("--model", help='"openai:NAME", "anthropic:NAME", "google:NAME", "mistral:NAME".')
    ],
    base_url: Annotated[str | None, typer.Option("--base-url", help="The URL of the endpoint.")] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", help="What it is expected to be, such as vllm.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Measure with some ten tiny requests what an endpoint enforces. The key comes from the environment.

    The status is 1 if a route that the endpoint is expected to enforce is not enforced.
    """
    kind, _, name = model.partition(":")
    if not name:
        kind, name = "openai", model
    if base_url is not None and kind in _KEYS and not os.environ.get(_KEYS[kind]):
        os.environ[_KEYS[kind]] = "-"  # a server without keys; the SDK demands one
    if kind not in (*_KEYS, "mistral"):
        raise UsageError(
            f"probe measures endpoints: openai:NAME, anthropic:NAME, google:NAME or mistral:NAME, got {model!r}"
        )
    options = {key: value for key, value in (("base_url", base_url), ("dialect", dialect)) if value is not None}
    remote: Any = load(f"{kind}:{name}", **options)
    found = probed(remote)
    typer.echo(json.dumps(found.to_json(), ensure_ascii=False) if as_json else str(found))
    expected = {one.route for one in found.verdicts} & set(remote.capabilities.routes)
    if any(not found.enforced(route) for route in expected):
        raise typer.Exit(1)
