"""`ServerSettings`: limits, keys and other settings of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from guideway.errors import InvalidFileError

__all__ = ["ServerSettings", "read_keys"]

MIB = 1 << 20


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server.

    Attributes:
        api_keys: The keys that clients may send; empty: no key is needed, and `serve` permits only loopback addresses.
        max_num_seqs: The maximum number of sequences that run together in one model.
        max_queue: The maximum number of requests that run or wait.
        max_queue_per_key: The maximum number of requests of one API key that run or wait.
        max_tokens_in_flight: The maximum number of tokens, prompts included, that the requests that run or wait may
            need together; None: no maximum.
        max_body_bytes: The maximum number of bytes of a body.
        body_seconds: The total time for which the server waits for a body. It is one second longer for each 16 KiB that
            have arrived.
        max_body_depth: The maximum nesting of the JSON of a body.
        max_file_bytes: The maximum number of bytes of a file for batches.
        max_stored_bytes: The maximum number of bytes of stored responses. Files may have eight times as many.
        max_sessions: The maximum number of sessions that an API key may have open.
        session_idle_seconds: A session that was not used for this time is closed.
        constraint_workers: The maximum number of processes that translate large constraints; 0: these constraints are
            translated in threads of the server.
        send_seconds: A client that takes no data of a stream for this time is disconnected.
        keep_alive_seconds: If a stream has no data for this time, a comment is sent, so that the connection stays open.
        drain_seconds: The time that running requests have to end after a termination signal, rounded up to whole
            seconds; infinite: no limit.
        log_prompts: Whether prompts are logged.
        cors_origins: Origins of web pages that may send requests; "*": all.
        options: Generation options for requests that do not set them.
    """

    api_keys: tuple[str, ...] = field(default=(), repr=False)
    max_num_seqs: int = 64
    max_queue: int = 1024
    max_queue_per_key: int = 1024
    max_tokens_in_flight: int | None = None
    max_body_bytes: int = 4 * MIB
    body_seconds: float = 30.0
    max_body_depth: int = 256
    max_file_bytes: int = 128 * MIB
    max_stored_bytes: int = 64 * MIB
    max_sessions: int = 64
    session_idle_seconds: float = 1800.0
    constraint_workers: int = 1
    send_seconds: float = 30.0
    keep_alive_seconds: float = 15.0
    drain_seconds: float = 30.0
    log_prompts: bool = False
    cors_origins: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


def read_keys(path: Path) -> tuple[str, ...]:
    """Return the API keys of a file: one per line. Empty lines and lines that begin with "#" are skipped.

    Raises:
        InvalidFileError: The file cannot be read, or has no key.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read the API keys of", path, error) from None
    keys = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if not keys:
        raise InvalidFileError(f"{path} has no API key; write one key per line")
    return keys
