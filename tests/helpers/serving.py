"""A server on a loopback port, in a thread of the test."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from guideway.generation import Model
from guideway.server import FixedModels, ServedModels, ServerSettings, create_app, load_served
from guideway.server.state import ServerState

__all__ = ["LiveServer", "live_server", "served_tiny"]


class LiveServer(NamedTuple):
    """A server that runs.

    Attributes:
        url: The URL, without a path.
        state: The state of the server.
    """

    url: str
    state: ServerState


def served_tiny() -> Model:
    """Return the bundled model, with the chat template that a server gives it."""
    return load_served("tiny")


class _Server(uvicorn.Server):
    """A server that notices within 10 ms that it must end; uvicorn looks every 100 ms."""

    async def main_loop(self) -> None:
        for turn in itertools.count():
            if await self.on_tick(turn):
                return
            await asyncio.sleep(0.01)


@contextmanager
def live_server(models: Mapping[str, Model] | ServedModels, **settings: Any) -> Iterator[LiveServer]:
    """Run a server until the context ends."""
    served: ServedModels = FixedModels(models) if isinstance(models, Mapping) else models
    app = create_app(served, ServerSettings(**{"constraint_workers": 0, **settings}))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="on")
    server = _Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    state: ServerState = app.state.server
    until = time.monotonic() + 60
    while not (server.started and state.ready):
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield LiveServer(f"http://127.0.0.1:{port}", state)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
