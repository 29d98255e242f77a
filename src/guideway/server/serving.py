"""`serve`: runs the application with uvicorn until a signal ends it."""

from __future__ import annotations

import gc
import ipaddress
import json
import logging
import math
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from guideway.server.app import create_app
from guideway.server.models import ServedModels
from guideway.server.settings import ServerSettings
from guideway.server.state import LOG

__all__ = ["serve"]


class _Server(uvicorn.Server):
    """The uvicorn server. After a signal it refuses new requests.

    It ends when the running requests are answered, but at most `drain_seconds` later.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.config.loaded_app_state.draining = True  # type: ignore[attr-defined]  # set in `serve`
        super().handle_exit(sig, frame)


@contextmanager
def _signals_end_quietly() -> Iterator[None]:
    """Replace the signal handlers while uvicorn runs, so that the process ends with status 0 after a signal.

    uvicorn raises the signal again after its shutdown; the replaced handlers ignore it. In a thread other than the main
    thread, handlers cannot be set and nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _ignored) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignored(number: int, frame: FrameType | None) -> None:
    """Ignore a signal that uvicorn raises again."""


def _freeze() -> None:
    """Collect garbage, and exclude the remaining objects from later collections.

    A full collection that also visits the objects of modules and models can take 0.1 s. During this time no thread can
    run Python code, so no model begins a step.
    """
    gc.collect()
    gc.freeze()


FULL_AFTER = 100
"""The number of collections of the middle generation after which Python's garbage collector visits all objects.

During such a collection, no thread can run Python code. With 25,000 objects, such as those of a few large schemas, it
takes 10 to 20 ms on a slow processor. With Python's default of 10, every few requests with large bodies caused one. The
server itself makes few reference cycles: asyncio makes one for each connection.
"""


class _JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON. The items of `extra={"fields": {...}}` become members."""

    def format(self, record: logging.LogRecord) -> str:
        made = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            made["error"] = self.formatException(record.exc_info)
        return json.dumps(made, ensure_ascii=False, default=str)


SWITCH_SECONDS = 0.001
"""The switch interval of the interpreter while the server runs (`sys.setswitchinterval`).

Several threads work on a request one after another before its first token. With Python's default of 5 ms, the median
time to the first token is twice as long on a busy machine.
"""


def is_loopback(host: str) -> bool:
    """Return whether a host is "localhost" or a loopback address, which only this machine can reach.

    Other names are not resolved: the result is False.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. An `OSError` names the address."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        message = f"cannot listen on the address {host} and the port {port}: {error.strerror or error}"
        raise OSError(error.errno, message) from error
    return listener


def serve(
    models: ServedModels,
    settings: ServerSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    quiet: bool = False,
) -> None:
    """Serve models until SIGINT or SIGTERM. Then running requests have `ServerSettings.drain_seconds` to end.

    Args:
        models: The models that the server offers.
        settings: The settings; None: `ServerSettings()`.
        host: The address to listen on. Without API keys it must be a loopback address.
        port: The port; 0: a free one.
        quiet: Log only warnings and errors.

    Raises:
        ValueError: The address is not loopback, and there are no API keys.
        OSError: The server cannot listen on the address, for example because it is in use.
    """
    settings = settings or ServerSettings()
    if not settings.api_keys and not is_loopback(host):
        raise ValueError(
            f"without API keys a server listens on loopback only, not on {host!r}; set --api-key-file or GUIDEWAY_API_KEY"
        )
    app = create_app(models, settings)
    listener = _listener(host, port)
    port = listener.getsockname()[1]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    own = logging.getLogger("uvicorn.error")
    propagated = own.propagate
    own.addHandler(handler)
    own.propagate = False  # its level stays, so only warnings and errors are logged
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=None if settings.drain_seconds == math.inf else math.ceil(settings.drain_seconds),
        server_header=False,
        date_header=False,
    )
    app.state.server.on_ready = _freeze
    config.loaded_app_state = app.state.server  # type: ignore[attr-defined]  # read by `_Server`
    shown = f"[{host.strip('[]')}]" if listener.family == socket.AF_INET6 else host
    LOG.info(
        "listening", extra={"fields": {"url": f"http://{shown}:{port}", "models": [c.name for c in models.cards()]}}
    )
    if quiet:
        LOG.setLevel(logging.WARNING)
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    was_frozen = gc.get_freeze_count() > 0
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*thresholds[:2], max(thresholds[2], FULL_AFTER))
    try:
        with _signals_end_quietly():
            _Server(config).run(sockets=[listener])
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        if not was_frozen:  # otherwise objects that other code has frozen would be unfrozen, too
            gc.unfreeze()
        listener.close()
        LOG.removeHandler(handler)
        own.removeHandler(handler)
        own.propagate = propagated
