"""Processes that translate large constraints, so that translation does not delay generation in the server.

Translating a constraint (reading it, lowering it, encoding its program) is Python code. In a thread of the server it
delays the generation of other requests, even if it pauses after each millisecond (`guideway.background`), because every
call of the kernel must wait for the interpreter's lock (GIL). A worker process stores the program of the constraint on
disk (`guideway.constraints.programs`), from where the server reads it within milliseconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import struct
import sys
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from guideway import background, disk
from guideway.constraints.tools import Family
from guideway.jsontext.encoder import exact_json
from guideway.server.errors import HttpError

__all__ = ["LENGTH", "ConstraintWorkers"]

LENGTH = struct.Struct("<I")
"""The header of each message between server and worker: the number of bytes of the JSON text that follows."""

LEAST_BYTES = 4096
"""The minimum size in bytes of the message to a worker, and of the body if its size is known.

The server itself translates smaller constraints; most take a few milliseconds.
"""

PATIENT_SECONDS = 10.0
"""If the first process has not answered after this time, a process with a higher priority begins the work again."""

MOST_SECONDS = 300.0
"""The time after which a process with a higher priority is ended if it has not answered.

The limits on counted work normally end the translation of a constraint earlier.
"""

MOST_JOBS = 1000
"""After this number of constraints a worker process is ended, so that its memory stays small."""

_KNOWN = 4096
"""The maximum number of messages whose digests are stored, so that they are not sent again."""
_FIELDS = (
    "response_format",
    "text",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "structured_outputs",
    "constraint",
    "regex",
    "ebnf",
    "grammar",
    "json_schema",
)


class ConstraintWorkers:
    """Worker processes that translate constraints. Use the object in the thread of one event loop.

    `start` starts the first process; others start when they are needed.

    Args:
        count: The maximum number of processes; 0: constraints are translated in threads of the server.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._free: list[_Worker] = []
        self._gate = asyncio.Semaphore(max(count, 1))
        self._known: OrderedDict[bytes, None] = OrderedDict()
        """The digests of the messages that a worker has answered, except with an error of the client (status < 500)."""

    async def start(self) -> None:
        """Start a process, so that the first request does not wait for it. An error is logged.

        Nothing is done if `count` is 0, or without a disk cache.
        """
        async with self._gate:
            if self._count and not self._free and disk.cache() is not None:
                try:
                    self._free.append(await _Worker.start())
                except OSError:
                    logging.getLogger("guideway.server").exception("a process that translates constraints cannot start")

    async def translate(
        self, url: str, body: Mapping[str, Any], family: Family | None = None, size: int | None = None
    ) -> None:
        """Let a process translate the constraint of a body, if it is large and not known to be translated.

        The server reads the translated constraint from the disk cache. Nothing is done if `count` is 0, or without a
        disk cache.

        Args:
            url: The endpoint.
            body: The body of the request.
            family: The notation of the model's replies; None: not known yet.
            size: The number of bytes of the body; None: unknown. Nothing is done for small bodies.

        Raises:
            HttpError: The constraint has an error (status below 500), takes too long (503), or the process ended or
                cannot be started (500).
        """
        if size is not None and size < LEAST_BYTES:
            return
        if not self._count or disk.cache() is None or not any(body.get(name) for name in _FIELDS):
            return
        text, digest = await background.run(_message, url, body, family)
        if len(text) < LEAST_BYTES or digest in self._known:
            return
        async with self._gate:
            if digest in self._known:
                return
            try:
                answer = await self._answer(text)
            except asyncio.TimeoutError:
                raise HttpError(
                    503,
                    f"the constraint was not translated within {MOST_SECONDS:.0f} seconds",
                    kind="server_error",
                    code="worker_timeout",
                ) from None
            except (EOFError, OSError):
                logging.getLogger("guideway.server").error("a process that translates constraints ended")
                raise HttpError(
                    500, "the process that translates constraints ended", kind="server_error", code="worker_ended"
                ) from None
        error = answer.get("error")
        if error is not None and answer["status"] < 500:
            raise HttpError(
                answer["status"], error["message"], kind=error["type"], code=error["code"], param=error["param"]
            )
        self._known[digest] = None
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    async def _answer(self, text: bytes) -> dict[str, Any]:
        """Send a message to a patient process, and return the answer.

        A patient process runs only while a processor has nothing else to do. If other programs use all processors, it
        may wait for a long time. If it has not answered after `PATIENT_SECONDS`, it is ended, and the message is sent
        to a new process with a higher priority.

        Raises:
            asyncio.TimeoutError: The second process has not answered after `MOST_SECONDS`.
            EOFError, OSError: A process ended or cannot be started.
        """
        worker = self._free.pop() if self._free else await _Worker.start()
        try:
            with suppress(asyncio.TimeoutError):
                answer = await asyncio.wait_for(worker.ask(text), min(PATIENT_SECONDS, MOST_SECONDS))
                if worker.jobs < MOST_JOBS:
                    self._free.append(worker)
                return answer
        finally:
            if worker not in self._free:
                await worker.close()
        worker = await _Worker.start(is_patient=False)
        try:
            return await asyncio.wait_for(worker.ask(text), MOST_SECONDS)
        finally:
            await worker.close()

    async def close(self) -> None:
        """End the processes that are free."""
        while self._free:
            await self._free.pop().close()


def _message(url: str, body: Mapping[str, Any], family: Family | None) -> tuple[bytes, bytes]:
    """Return the message to a worker with the constraint of a body, and the digest of the message."""
    fields = {name: body[name] for name in _FIELDS if body.get(name) is not None}
    value = {"url": url, "body": fields, "family": None if family is None else asdict(family)}
    text = exact_json(value).encode("utf-8", "surrogatepass")
    return text, hashlib.blake2b(text, digest_size=16).digest()


class _Worker:
    """The server's side of a process that runs the program `constraint_worker`.

    `jobs`: the number of messages that were sent to the process.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.jobs = 0

    @classmethod
    async def start(cls, *, is_patient: bool = True) -> _Worker:
        """Start a process and return its worker. Raises `OSError` if the process cannot be started.

        `is_patient`: as for `constraint_worker.set_priority`.
        """
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", "guideway.server.constraint_worker", *(["--patient"] if is_patient else [])]
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def ask(self, text: bytes) -> dict[str, Any]:
        """Send a message and return the answer. Raises `EOFError` or `OSError` if the process ended."""
        reader, writer = self._process.stdout, self._process.stdin
        if reader is None or writer is None:
            raise EOFError
        self.jobs += 1
        writer.write(LENGTH.pack(len(text)) + text)
        await writer.drain()
        (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        found: dict[str, Any] = json.loads(await reader.readexactly(size))
        return found

    async def close(self) -> None:
        """End the process at once, and wait for it."""
        with suppress(OSError):
            self._process.kill()
        with suppress(OSError):
            await self._process.communicate()
