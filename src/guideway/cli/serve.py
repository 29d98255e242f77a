"""`guideway serve`: starts a server whose API is compatible with OpenAI's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from guideway.cli.inputs import UsageError, read_file, require
from guideway.cli.options import MODELS, ContextOption, DeviceOption, DtypeOption
from guideway.errors import MissingDependencyError
from guideway.pool import ModelSpec, Pool

__all__ = ["serve"]


def serve(
    model: Annotated[list[str] | None, typer.Option(help=f"{MODELS}; or NAME=MODEL. Give it for each model.")] = None,
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            help='The URL of an endpoint with the API of OpenAI, or a model of an API such as "openai:NAME". Its answers'
            " are checked while they arrive. The key is OPENAI_API_KEY."
        ),
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="What the endpoint of --upstream enforces, such as vllm.")] = None,
    formatter: Annotated[
        str | None, typer.Option(help="With --upstream: a model that writes answers again that do not fit.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Addresses other than loopback need API keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: a free one.")] = 8000,
    api_key_file: Annotated[
        Path | None, typer.Option(help="A file of API keys, one per line. Or set GUIDEWAY_API_KEY.")
    ] = None,
    chat_template: Annotated[
        Path | None, typer.Option(help="A Jinja template for messages, in place of that of the models.")
    ] = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    memory: Annotated[
        str | None,
        typer.Option(help='The memory for all models, such as "24GB". Models are then loaded when they are requested.'),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(min=0, help="With --memory: seconds until an idle model is unloaded; 600 by default."),
    ] = None,
    pin: Annotated[list[str] | None, typer.Option(help="With --memory: a model that is never unloaded.")] = None,
    max_num_seqs: Annotated[int, typer.Option(min=1, help="The maximum number of sequences that run together.")] = 64,
    constraint_workers: Annotated[
        int, typer.Option(min=0, help="The number of processes that translate large constraints; 0: threads do.")
    ] = 1,
    max_queue: Annotated[int, typer.Option(min=1, help="The maximum number of requests that run or wait.")] = 1024,
    body_seconds: Annotated[
        float,
        typer.Option(min=0.001, help="Seconds in which a body must arrive, and one more for each 16 KiB of it."),
    ] = 30,
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds for requests in flight after SIGTERM, rounded up.")
    ] = 30,
    cors_origin: Annotated[
        list[str] | None, typer.Option(help="An origin of web pages that may send requests.")
    ] = None,
    log_prompts: Annotated[bool, typer.Option("--log-prompts", help="Add prompts to the log.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log requests.")] = False,
) -> None:
    """Serve models with the API of OpenAI until SIGINT or SIGTERM."""
    try:
        from guideway import server
    except ImportError as error:
        raise MissingDependencyError(
            f"this command needs starlette and uvicorn: pip install 'guideway[serve]' ({error})"
        ) from error
    environment = os.environ.get("GUIDEWAY_API_KEY", "")
    keys = server.read_keys(api_key_file) if api_key_file is not None else (environment,) if environment else ()
    template = None if chat_template is None else read_file(chat_template)
    given = {"device": device, "dtype": dtype, "context_size": context_size}
    options = {name: value for name, value in given.items() if value is not None}
    if not model and not upstream:
        raise UsageError("give --model or --upstream")
    if not upstream:
        require("--upstream", {"--dialect": dialect, "--formatter": formatter})
    if memory is None:
        require("--memory", {"--keep": keep, "--pin": pin or None})
    sources = server.parse_models(model or ())
    pinned = set(pin or ())
    if wrong := sorted(pinned - set(sources)):
        raise UsageError(f"--pin {wrong[0]} names no model; there are {', '.join(sources)}")
    specs = {
        name: ModelSpec(
            source, {"chat_template": template, **options}, server.load_served, pinned=name in pinned or memory is None
        )
        for name, source in sources.items()
    }
    try:
        pool = Pool(memory, specs) if keep is None else Pool(memory, specs, keep=keep)
    except ValueError as error:
        raise UsageError(str(error).replace("budget must", "--memory must")) from None
    preload = list(sources) if memory is None else sorted(pinned)
    settings = server.ServerSettings(
        api_keys=keys,
        max_num_seqs=max_num_seqs,
        max_queue=max_queue,
        constraint_workers=constraint_workers,
        body_seconds=body_seconds,
        drain_seconds=drain_seconds,
        cors_origins=tuple(cors_origin or ()),
        log_prompts=log_prompts,
    )
    parts: list[server.ServedModels] = [server.PooledModels(pool, preload=preload)] if sources else []
    remote_options: dict[str, Any] = {} if dialect is None else {"dialect": dialect}
    if formatter is not None:
        remote_options["formatter"] = server.load_served(formatter)
    parts += [server.upstream_models(one, remote_options) for one in upstream or ()]
    models = parts[0] if len(parts) == 1 else server.JoinedModels(*parts)
    server.serve(models, settings, host=host, port=port, quiet=quiet)
