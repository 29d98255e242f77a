"""`survey`: reads a file of requests and reports what a run would do, without running the model."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guideway.batch.answers import error_object
from guideway.batch.earlier import EarlierResults, digest_of_settings
from guideway.batch.files import done_before, items_of, open_input
from guideway.batch.ids import IdSet
from guideway.batch.jobs import merged_options
from guideway.batch.ordering import BatchItem, grouped
from guideway.batch.requests import BatchRequest
from guideway.batch.result_file import entries_of
from guideway.batch.running import NOTHING, WINDOW, BatchResult, RunningRequest, read_requests
from guideway.caching import cached
from guideway.constraints import Constraint, of, to_wire
from guideway.errors import InvalidRequestError, UnsupportedError
from guideway.generation.options import MAX_TOKENS
from guideway.generation.protocol import AnyModel, GeneratingModel
from guideway.sessions.prefix_cache import common_length

__all__ = ["BatchSurvey", "survey"]

MAX_SHOWN = 10
"""The maximum number of errors in `BatchSurvey.shown_errors`."""


@dataclass
class BatchSurvey:
    """A report on what a run would do.

    Attributes:
        requests: The number of requests that would run.
        answered: The number of requests that have a result from an earlier run.
        changed: The number of answered requests whose result was made from another line, or with another model or
            options.
        errors: The number of lines with an error that is found without running the model.
        shown_errors: At most `MAX_SHOWN` of these errors, each with the number of its line.
        input_bytes: The total size of the lines.
        endpoints: The number of requests by URL; "" is the format of this library.
        constraints: The number of different constraints.
        unconstrained: The number of requests for free text.
        prompt_tokens: The number of tokens of the prompts; 0 (not known) for a model served by an API.
        shared_tokens: The number of these tokens that belong to a common beginning with the preceding prompt, if it is
            long enough for the prefix cache.
        max_tokens: The sum of the maximum numbers of tokens of the answers.
        guarantees: For a model served by an API, the number of requests by guarantee.
    """

    requests: int = 0
    answered: int = 0
    changed: int = 0
    errors: int = 0
    shown_errors: list[str] = field(default_factory=list)
    input_bytes: int = 0
    endpoints: Counter[str] = field(default_factory=Counter)
    constraints: int = 0
    unconstrained: int = 0
    prompt_tokens: int = 0
    shared_tokens: int = 0
    max_tokens: int = 0
    guarantees: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count:,} {url or 'own format'}" for url, count in sorted(self.endpoints.items()))
        lines = [
            f"requests      {self.requests:,} to run ({kinds or 'none'}), {done_before(self.answered, self.changed)}",
            f"errors        {self.errors:,}",
            f"input         {self.input_bytes:,} bytes",
            f"constraints   {self.constraints:,} different; {self.unconstrained:,} requests without one",
            f"answers       at most {self.max_tokens:,} tokens",
        ]
        if self.guarantees:
            lines.append("guarantees    " + ", ".join(f"{count:,} {name}" for name, count in self.guarantees.items()))
        else:
            lines.append(
                f"prompts       {self.prompt_tokens:,} tokens, {self.shared_tokens:,} of them as in the preceding prompt"
            )
        return "\n".join([*lines, *(f"  {one}" for one in self.shown_errors)])


def survey(
    model: AnyModel,
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str] | None = None,
    output: object = None,
    *,
    window: int = WINDOW,
    **options: Any,
) -> BatchSurvey:
    """Read a file of requests as `run` does, and compile the constraints, without running the model.

    Args:
        model: As for `run`.
        source: As for `run`.
        destination: The file of results, if an earlier run wrote one. It is not changed.
        output: As for `run`.
        window: As for `run`.
        **options: As for `run`.

    Raises:
        InvalidFileError: A file cannot be read.
    """
    found = BatchSurvey()
    failed: deque[BatchResult] = deque()
    digests = IdSet()
    before: list[int] = []
    default = None if output is None else of(output)

    def report() -> None:
        while failed:
            one = failed.popleft()
            found.errors += 1
            if len(found.shown_errors) < MAX_SHOWN:
                found.shown_errors.append(f"{one.place}: {_message(one.error)}")

    with open_input(source) as (file, _):
        items = _counted(items_of(file, digest_of_settings(model, output, options)), found)
        earlier = _earlier(destination)
        valid = read_requests(model, items, default, failed, earlier)
        for item in grouped(valid, window):
            report()
            request = item.request
            if request is None or request is NOTHING:
                continue
            try:
                before = _add(model, item, request, options, found, digests, before)
            except Exception as error:
                failed.append(BatchResult(request.custom_id, item.position, request, [], error, item, model))
        report()
    found.answered, found.changed = earlier.skipped, earlier.changed
    return found


def _add(
    model: AnyModel,
    item: BatchItem,
    request: BatchRequest,
    call: Mapping[str, Any],
    found: BatchSurvey,
    digests: IdSet,
    before: list[int],
) -> list[int]:
    """Count a request in `found`. Returns the token ids of its last prompt, or `before` if they are not known.

    Args:
        model: The model.
        item: The item of the request.
        request: The request.
        call: The generation options of the call.
        found: The report to which the request is added.
        digests: The digests of the constraints so far. That of the request is added.
        before: The token ids of the preceding prompt.

    Raises:
        Exception: The error of the request.
    """
    output = request.output
    if isinstance(model, GeneratingModel):
        settings = merged_options(model, request, call)
        plan = getattr(model, "plan", None)
        guarantee = "none" if output is None or plan is None else plan(output).guarantee
        found.guarantees[guarantee] += 1
        ids: list[list[int]] = []
        least = 0
    else:
        running = RunningRequest(model, item, request, call)
        error = next((one for group in running.job.results for one in group if isinstance(one, Exception)), None)
        if error is not None:
            raise error
        settings = running.options
        output = running.output if output is None else output  # tools or reasoning may constrain the reply
        ids = [session.tokens for session in running.job.sessions]
        least = model.prefixes.shortest
    for one in ids:
        shared = common_length(one, before) if one and before else 0
        found.prompt_tokens += len(one)
        found.shared_tokens += shared if shared >= least else 0
        before = one
    if output is None:
        found.unconstrained += 1
    elif digests.add(_digest(of(output))):
        found.constraints += 1
    found.requests += 1
    found.endpoints[request.endpoint] += 1
    found.max_tokens += settings.get("max_tokens", MAX_TOKENS) * (request.n or 1) * len(request.prompts())
    return before


@cached(1024)
def _digest(constraint: Constraint[Any]) -> str:
    try:
        digest: str = to_wire(constraint)["digest"]
    except UnsupportedError:  # a constraint of another library
        return type(constraint).__qualname__
    return digest


def _counted(items: Iterator[BatchItem], found: BatchSurvey) -> Iterator[BatchItem]:
    for item in items:
        found.input_bytes += item.size
        yield item


def _message(error: Exception | None) -> str:
    _, shown = error_object(error or InvalidRequestError("no result"))
    param = f" (at {shown['param']})" if shown["param"] else ""
    return f"{shown['code']}: {shown['message']}{param}"


def _earlier(destination: str | os.PathLike[str] | None) -> EarlierResults:
    """Return the requests that have a result in the output file; none if `destination` is None."""
    path = Path("" if destination is None else destination)
    found = EarlierResults(path)
    for entry in () if destination is None else entries_of(path):
        found.accept(entry)
    return found
