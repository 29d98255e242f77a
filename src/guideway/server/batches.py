"""`/v1/batches`: runs the requests of a file, in the same generation loops as the server's other requests."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway import background
from guideway.arguments import short_repr
from guideway.batch.answers import answer_line, error_line
from guideway.batch.bodies import ENDPOINTS, request_of
from guideway.batch.files import items_of
from guideway.batch.ids import IdSet
from guideway.batch.jobs import job_of
from guideway.batch.ordering import BatchItem
from guideway.batch.requests import BatchRequest, custom_id_of, unknown_field
from guideway.batch.result_file import json_line
from guideway.errors import InvalidRequestError
from guideway.generation import Model
from guideway.generation.plan import Job
from guideway.server.bodies import read_json
from guideway.server.errors import HttpError
from guideway.server.files import FileStore, StoredFile, page
from guideway.server.generating import model_name
from guideway.server.inspection import local_model
from guideway.server.running import ServedRequest
from guideway.server.state import LOG, ServerState

__all__ = ["BatchStore", "cancel", "create", "list_batches", "retrieve"]

MAX_BATCHES = 1000
"""The maximum number of batches that a server stores. Of more, the oldest ones that have ended are removed."""

MAX_RUNNING, MAX_RUNNING_OF_KEY = 8, 4
"""The maximum number of batches that run at one time: in total, and for one API key. Without keys, only the first."""

_FIELDS = ("input_file_id", "endpoint", "completion_window", "metadata")


@dataclass
class RunningBatch:
    """A batch, running or ended.

    Attributes:
        id: The identifier.
        key: The name of the API key that it belongs to.
        endpoint: The path of the endpoint of all requests.
        source: The input file.
        metadata: The field of the request, which is returned unchanged.
        status: The status, as in OpenAI's API.
        times: By status, the time at which it was set, in seconds since 1970; also "created_at".
        total: The number of lines of the input file that are not empty; 0 before they are counted.
        completed: The number of requests that succeeded.
        failed: The number of requests that failed.
        output: The file of the results; None: not stored yet, there are no results, or `FileStore` has no room.
        errors: The file of the errors; None: not stored yet, there are no errors, or `FileStore` has no room.
        task: The task that runs the batch; None after its end.
    """

    id: str
    key: str
    endpoint: str
    source: StoredFile
    metadata: Any
    status: str = "validating"
    times: dict[str, int] = field(default_factory=lambda: {"created_at": int(time.time())})
    total: int = 0
    completed: int = 0
    failed: int = 0
    output: StoredFile | None = None
    errors: StoredFile | None = None
    task: asyncio.Task[None] | None = None

    def shown(self) -> dict[str, Any]:
        """Return the batch object of OpenAI's API."""
        names = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "errors": None,
            "input_file_id": self.source.id,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": None if self.output is None else self.output.id,
            "error_file_id": None if self.errors is None else self.errors.id,
            "created_at": self.times["created_at"],
            "expires_at": None,
            **{f"{name}_at": self.times.get(name) for name in names},
            "request_counts": {"total": self.total, "completed": self.completed, "failed": self.failed},
            "metadata": self.metadata,
        }

    def enter(self, status: str) -> None:
        """Set the status, and record the time."""
        self.status, self.times[status] = status, int(time.time())


class BatchStore:
    """The batches of a server. A client sees only those of its API key."""

    def __init__(self, files: FileStore) -> None:
        self.files = files
        self._batches: dict[str, RunningBatch] = {}

    def add(self, batch: RunningBatch) -> None:
        """Add a batch. Above `MAX_BATCHES`, the oldest batches that have ended are removed."""
        self._batches[batch.id] = batch
        for old in [one for one in self._batches.values() if one.task is None][
            : max(0, len(self._batches) - MAX_BATCHES)
        ]:
            del self._batches[old.id]

    def get(self, key: str, name: str) -> RunningBatch:
        """Return a batch by its id. Raises `HttpError` (404) if the key `key` has no such batch."""
        found = self._batches.get(name)
        if found is None or found.key != key:
            raise HttpError(404, f"there is no batch {short_repr(name)}", code="not_found", param="batch_id")
        return found

    def of_key(self, key: str) -> list[RunningBatch]:
        """Return the batches of an API key, the newest first."""
        return [one for one in reversed(self._batches.values()) if one.key == key]

    def running(self) -> list[RunningBatch]:
        """Return the batches that have not ended."""
        return [one for one in self._batches.values() if one.task is not None]

    async def close(self) -> None:
        """Cancel the batches that have not ended, and wait for them."""
        tasks = [one.task for one in self._batches.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def create(state: ServerState, store: BatchStore, request: Request, key: str) -> Response:
    """`POST /v1/batches`: start a batch for an uploaded file."""
    body = await read_json(request.scope, request.receive, state.settings)
    for name in body:
        if name not in _FIELDS and not name.startswith("output_expires_after"):
            raise unknown_field(name, name, _FIELDS)
    endpoint = body.get("endpoint")
    if not isinstance(endpoint, str) or endpoint not in ENDPOINTS:
        raise InvalidRequestError(
            f"'endpoint' must be one of {', '.join(ENDPOINTS)}, got {short_repr(endpoint)}", "endpoint"
        )
    if body.get("completion_window", "24h") != "24h":
        raise InvalidRequestError("'completion_window' must be 24h", "completion_window")
    source = store.files.get(key, body.get("input_file_id"), "input_file_id")
    state.check_capacity(key)
    running = [one.key for one in store.running()]
    if len(running) >= MAX_RUNNING or (key and running.count(key) >= MAX_RUNNING_OF_KEY):
        which = f"{MAX_RUNNING} batches" if len(running) >= MAX_RUNNING else f"{MAX_RUNNING_OF_KEY} batches of this key"
        raise HttpError(429, f"{which} run already; create it later", kind="rate_limit_error", code="too_many_batches")
    batch = RunningBatch(f"batch_{uuid.uuid4().hex}", key, str(endpoint), source, body.get("metadata"))
    store.add(batch)
    batch.task = asyncio.ensure_future(_run(state, store, batch))
    return JSONResponse(batch.shown())


async def retrieve(state: ServerState, store: BatchStore, request: Request, key: str) -> Response:
    """`GET /v1/batches/{id}`."""
    return JSONResponse(store.get(key, request.path_params["name"]).shown())


async def list_batches(state: ServerState, store: BatchStore, request: Request, key: str) -> Response:
    """`GET /v1/batches`: list the batches of the API key, the newest first."""
    return JSONResponse(page(request.query_params, [one.shown() for one in store.of_key(key)]))


async def cancel(state: ServerState, store: BatchStore, request: Request, key: str) -> Response:
    """`POST /v1/batches/{id}/cancel`: end a batch. Its output files contain the results so far.

    A batch whose requests have all ended is not changed.
    """
    batch = store.get(key, request.path_params["name"])
    if batch.task is not None and batch.status in ("validating", "in_progress"):
        batch.enter("cancelling")
        batch.task.cancel()
    return JSONResponse(batch.shown())


async def _run(state: ServerState, store: BatchStore, batch: RunningBatch) -> None:
    """Run a batch and store its output files. An exception is logged and sets the status "failed".

    An output file that is empty, or that `FileStore` does not take, is left out.
    """
    good, bad = store.files.new_path(), store.files.new_path()
    last = "completed"
    try:
        batch.total = await background.run(_count, batch.source.path)
        batch.enter("in_progress")
        with batch.source.path.open("rb") as source, good.open("wb") as output, bad.open("wb") as errors:
            await _requests(state, batch, source, output, errors)
        batch.enter("finalizing")
    except asyncio.CancelledError:
        last = "cancelled"
    except Exception:
        LOG.exception("a batch failed")
        last = "failed"
    batch.output = _stored(store, batch, good, "output")
    batch.errors = _stored(store, batch, bad, "errors")
    batch.task = None
    batch.enter(last)


def _stored(store: BatchStore, batch: RunningBatch, path: Path, kind: str) -> StoredFile | None:
    """Store an output file of a batch. None, and the file is removed: it is empty, or `FileStore` does not take it."""
    with suppress(HttpError, OSError):
        if path.stat().st_size:
            return store.files.add(batch.key, path, f"{batch.id}_{kind}.jsonl", "batch_output")
        path.unlink()
    return None


def _count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


async def _requests(
    state: ServerState, batch: RunningBatch, source: BinaryIO, output: BinaryIO, errors: BinaryIO
) -> None:
    seen, items, lock = IdSet(), items_of(source, ""), threading.Lock()
    width = max(1, state.settings.max_num_seqs // 2)  # the other half is for requests outside of batches

    async def work() -> None:
        while (item := await background.run(_next, items, lock)) is not None:
            line, failed = await _answer(state, batch, item, seen)
            (errors if failed else output).write(json_line(line).encode() + b"\n")
            batch.failed += failed
            batch.completed += not failed

    workers = [asyncio.ensure_future(work()) for _ in range(width)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def _next(items: Iterator[BatchItem], lock: Any) -> BatchItem | None:
    with lock:
        return next(items, None)


async def _answer(state: ServerState, batch: RunningBatch, item: BatchItem, seen: IdSet) -> tuple[dict[str, Any], bool]:
    """Run the request of an input line. Returns the line for the output file, and whether it reports an error.

    `seen` has the `custom_id`s of the lines that were read before; that of this line is added.
    """
    custom_id: str | None = None
    try:
        if isinstance(item.entry, Exception):
            raise item.entry
        custom_id = custom_id_of(item.entry)
        if not seen.add(custom_id):
            raise InvalidRequestError("an earlier line has the same 'custom_id'", "custom_id", "duplicate_custom_id")
        entry: Any = item.entry
        if entry.get("url") != batch.endpoint:
            raise InvalidRequestError(f"'url' must be that of the batch, {batch.endpoint}", "url", "invalid_url")
        body = entry.get("body")
        async with state.models.lease(model_name(body) if isinstance(body, dict) else None) as model:
            done, job = await background.run(_prepared, state, local_model(model), entry)
            running = ServedRequest(job, streams=False)
            try:
                results = await running.results()
            finally:
                running.cancel()
            return answer_line(model, done, results), False
    except Exception as error:
        return error_line(error, None, custom_id, item.place, batch.endpoint), True


def _prepared(state: ServerState, model: Model, entry: Any) -> tuple[BatchRequest, Job]:
    request = request_of(entry)
    options = {**state.settings.options, "batch_size": state.settings.max_num_seqs}
    return request, job_of(model, request, options, return_exceptions=False).job
