"""`batch`: runs the requests of an iterable with one model, and yields each result when it is complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from guideway.arguments import integer, short_repr
from guideway.batch.answers import answer_line, error_line
from guideway.batch.bodies import ENDPOINTS, request_of
from guideway.batch.earlier import EarlierResults
from guideway.batch.ids import IdSet
from guideway.batch.jobs import job_of, merged_options
from guideway.batch.ordering import BatchItem, grouped
from guideway.batch.progress import BatchProgress
from guideway.batch.requests import BatchRequest, custom_id_of
from guideway.constraints import of
from guideway.engines.base import batch_tolerance
from guideway.errors import EngineError, InvalidRequestError
from guideway.generation import Generation
from guideway.generation.options import BATCH, check_model
from guideway.generation.protocol import AnyModel, GeneratingModel
from guideway.generation.scheduler import Row, step
from guideway.sessions import ModelBase, feed_all

__all__ = ["NOTHING", "WINDOW", "BatchResult", "RunningRequest", "batch", "read_requests", "results"]

WINDOW = 1024
"""The number of requests that are read ahead, grouped by constraint and sorted by prompt."""


@dataclass(frozen=True, repr=False)
class BatchResult:
    """The result of one request.

    Attributes:
        custom_id: The identifier; None if the line has no valid one, or an earlier line has the same one.
        position: The index of the request in the input.
        request: The request; None if the line is not a valid request.
        generations: The results of each prompt; empty if there is an error.
        error: The error; None if there is none.
    """

    custom_id: str | None
    position: int
    request: BatchRequest | None
    generations: list[list[Generation[Any]]] = field(default_factory=list)
    error: Exception | None = None
    _item: BatchItem | None = None
    _model: AnyModel | None = None

    def __repr__(self) -> str:
        shown = f"error={self.error!r}" if self.error is not None else f"{self.generation!r}"
        return f"BatchResult({self.custom_id!r}, {shown})"

    @property
    def generation(self) -> Generation[Any]:
        """The first generation. Raises the error of the request if there is one."""
        if self.error is not None:
            raise self.error
        return self.generations[0][0]

    @property
    def value(self) -> Any:
        """The value of the first generation. Raises the error of the request if there is one."""
        return self.generation.value

    @property
    def place(self) -> str:
        """The place of the request in the input, such as "line 3"."""
        return f"request {self.position + 1}" if self._item is None else self._item.place

    @property
    def size(self) -> int:
        """The number of bytes of the request in the input; 0 if unknown."""
        return 0 if self._item is None else self._item.size

    def line(self) -> dict[str, Any]:
        """Return the output line: in OpenAI's format if the request has it, else in the format of this library."""
        if self.error is None and self.request is not None and self._model is not None:
            digest = "" if self._item is None else self._item.digest
            return answer_line(self._model, self.request, self.generations, digest)
        item = self._item
        url = item.entry.get("url") if item is not None and isinstance(item.entry, Mapping) else None
        return error_line(
            self.error or InvalidRequestError("no result"),
            self.request,
            self.custom_id,
            self.place,
            url if isinstance(url, str) and url in ENDPOINTS else "",
        )


def batch(
    model: AnyModel,
    requests: Iterable[Mapping[str, Any] | BatchRequest],
    output: object = None,
    *,
    window: int = WINDOW,
    batch_size: int = BATCH,
    progress: bool = False,
    **options: Any,
) -> Iterator[BatchResult]:
    """Run many requests, and yield each result when it is complete. `requests` is read while results are consumed.

    The random numbers of a request depend on its `custom_id` (or its "seed"), not on the other requests. The other
    requests in a call of the engine change the last digits of the logits of a request. If the engine has a
    `batch_tolerance` (ONNX Runtime in float32), draws that these digits could decide are repeated alone, so the text of
    a request does not depend on the others.

    Args:
        model: A model of `guideway.load`, local or served by an API.
        requests: `BatchRequest`s, or lines of a batch file as mappings: in OpenAI's format ("custom_id", "method",
            "url", "body"), or with "custom_id", "prompt" or "messages", a constraint and options.
        output: The type or constraint for requests that have none; None: free text.
        window: The number of requests that are read ahead, grouped by constraint and sorted by prompt.
        batch_size: The maximum number of sequences that run together; for a model served by an API, of requests at
            once.
        progress: Show a progress bar on standard error, if that is a terminal.
        **options: Generation options for requests that do not set them, see `guideway.generation.OPTIONS`.

    Returns:
        An iterator over the results, in the order in which they are complete. The error of a request is its result.

    Raises:
        EngineError: The engine failed, so that no request can continue.
        TypeError: An argument has a wrong type.
        ValueError: An argument is out of range.
    """
    total = len(requests) if isinstance(requests, Sequence) else None
    items = (BatchItem(number, f"request {number + 1}", 1, entry) for number, entry in enumerate(requests))
    found = results(model, items, output, window=window, batch_size=batch_size, options=options)
    return _shown(found, total) if progress else found


def _shown(found: Iterator[BatchResult], total: int | None) -> Iterator[BatchResult]:
    with BatchProgress(total) as bar:
        for one in found:
            bar.advance(one.size, one.error is not None)
            yield one


def results(
    model: AnyModel,
    items: Iterator[BatchItem],
    output: object,
    *,
    window: int,
    batch_size: int,
    options: Mapping[str, Any],
    earlier: EarlierResults | None = None,
) -> Iterator[BatchResult]:
    """Run the requests of items, as `batch` does.

    Args:
        model: As for `batch`.
        items: The lines of the input.
        output: As for `batch`.
        window: As for `batch`.
        batch_size: As for `batch`.
        options: As for `batch`.
        earlier: The requests that have a result from an earlier run, which are skipped; None: there are none.
    """
    if not isinstance(model, GeneratingModel):
        check_model(model)
    width, window = integer("batch_size", batch_size, 1), integer("window", window, 1)
    default = None if output is None else of(output)
    failed: deque[BatchResult] = deque()
    read = read_requests(model, items, default, failed, earlier)
    run = _remote if isinstance(model, GeneratingModel) else _local
    return run(model, grouped(read, window), failed, width, dict(options))


def read_requests(
    model: AnyModel,
    items: Iterator[BatchItem],
    default: object,
    failed: deque[BatchResult],
    earlier: EarlierResults | None,
) -> Iterator[BatchItem]:
    """Read the requests of items. Yields the items that are valid requests and have no result from an earlier run.

    The results of invalid items are appended to `failed`. An item with the request `NOTHING` is yielded so that the
    consumer reads `failed`.
    """
    seen = IdSet()
    for item in items:
        custom_id: str | None = None
        try:
            if isinstance(item.entry, Exception):
                raise item.entry
            request = item.entry if isinstance(item.entry, BatchRequest) else None
            custom_id = custom_id_of({"custom_id": request.custom_id} if request is not None else item.entry)
            if not seen.add(custom_id):
                repeated, custom_id = custom_id, None
                raise InvalidRequestError(
                    f'an earlier request has the same "custom_id" {short_repr(repeated)}',
                    "custom_id",
                    "duplicate_custom_id",
                )
            if earlier is not None and earlier.skips(custom_id, item):
                continue
            if request is None:
                request = request_of(item.entry)
            if request.output is None and not request.details.get("tools"):
                request = replace(request, output=default)
            elif request.output is not None:
                request = replace(request, output=of(request.output))
        except Exception as error:
            failed.append(BatchResult(custom_id, item.position, None, [], error, item, model))
            if len(failed) >= 256:  # lets the consumer remove them, which limits the memory
                yield replace(item, request=NOTHING)
            continue
        yield replace(item, request=request)
    if failed:
        yield BatchItem(-1, "", 0, None, NOTHING)


NOTHING = BatchRequest("", "")
"""The request of an item that is not run: the consumer only reads `failed` when it gets the item."""


# -- local models


class RunningRequest:
    """A request that is being generated.

    Attributes:
        item: The item of the request.
        request: The request.
        options: Its generation options, merged with those of the call.
        output: The constraint on its texts; None: free text.
        job: Its prompts and rows.
        waiting: The rows that have not begun.
        rows: The number of rows that have begun and not ended.
    """

    def __init__(self, model: ModelBase, item: BatchItem, request: BatchRequest, call: Mapping[str, Any]) -> None:
        self.item, self.request = item, request
        made = job_of(model, request, call)
        self.job, self.output, self.options = made.job, made.output, made.options
        self.waiting = self.job.rows()
        self.rows = 0
        self._model = model

    def take(self) -> Row | None:
        """Return the next row that has not begun, and count it as begun; None: there is no other."""
        row = next(self.waiting, None)
        if row is not None:
            self.rows += 1
            row.session.tolerance = self._model.run(batch_tolerance, self._model.engine)
        return row

    def finish(self, row: Row) -> None:
        """Store the result of a row that has ended."""
        self.job.finish(row)
        self.rows -= 1

    def result(self, model: AnyModel) -> BatchResult:
        """Return the result of the request. Call it when all rows have ended."""
        found: Any = self.job.results
        error = next((one for group in found for one in group if isinstance(one, Exception)), None)
        return _result(model, self.item, self.request, found, error)


def _result(
    model: AnyModel, item: BatchItem, request: BatchRequest, found: Any, error: Exception | None
) -> BatchResult:
    return BatchResult(
        request.custom_id, item.position, request, [] if error is not None else found, error, item, model
    )


def _local(
    model: Any, items: Iterator[BatchItem], failed: deque[BatchResult], width: int, call: Mapping[str, Any]
) -> Iterator[BatchResult]:
    active: dict[Row, RunningRequest] = {}
    current: RunningRequest | None = None  # the request whose rows are being started
    while True:
        while len(active) < width:
            if current is None:
                item = next(items, None)
                while failed:
                    yield failed.popleft()
                if item is None:
                    break
                request = item.request
                if request is None or request is NOTHING:
                    continue
                try:
                    current = RunningRequest(model, item, request, call)
                except Exception as error:
                    yield _result(model, item, request, [], error)
                    continue
            row = current.take()
            if row is None:
                if not current.rows:  # all rows have ended, or all prompts have an error
                    yield current.result(model)
                current = None
                continue
            active[row] = current
            if current.item.leads and current.rows == 1:  # run the prompt now, so the next ones use the prefix cache
                with suppress(EngineError):  # `step` raises the error again
                    feed_all([row.session])
        if not active:
            return
        step(list(active), strides=True)
        for row in [row for row in active if row.is_over]:
            running = active.pop(row)
            running.finish(row)
            if not running.rows and running is not current:
                yield running.result(model)


# -- models served by an API


def _remote(
    model: Any, items: Iterator[BatchItem], failed: deque[BatchResult], width: int, call: Mapping[str, Any]
) -> Iterator[BatchResult]:
    working: dict[Future[Any], tuple[BatchItem, BatchRequest]] = {}
    ended = False
    pool = ThreadPoolExecutor(width, thread_name_prefix="guideway-batch")
    try:
        while working or not ended:
            while len(working) < width and not ended:
                item = next(items, None)
                while failed:
                    yield failed.popleft()
                if item is None:
                    ended = True
                    break
                request = item.request
                if request is not None and request is not NOTHING:
                    working[pool.submit(_complete, model, request, call)] = item, request
            for future in wait(working, return_when=FIRST_COMPLETED).done:
                item, request = working.pop(future)
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                found = [] if error is not None else future.result()
                yield _result(model, item, request, found, error)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _complete(model: GeneratingModel, request: BatchRequest, call: Mapping[str, Any]) -> list[list[Generation[Any]]]:
    if request.details.get("tools"):
        raise InvalidRequestError(
            "tools are not supported for a model served by an API", "tools", "unsupported_parameter"
        )
    options = merged_options(model, request, call)
    found = []
    for part, prompt in enumerate(request.prompts()):
        one = model.complete(prompt, request.output, n=request.n, **{**options, "seed": request.seed(part)})
        found.append(one if request.n is not None else [one])
    return found
