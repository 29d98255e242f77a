"""Runs a `Job`, and yields what it produces: results, text chunks and growing values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from guideway.arguments import short_list, short_repr
from guideway.generation.partial_values import GrowingValue, progress_of
from guideway.generation.plan import Job
from guideway.generation.results import Generation, GenerationState
from guideway.generation.scheduler import Row, rounds

__all__ = ["PartialValue", "Stream", "TextChunk", "finished", "only_values", "pieces_of", "run", "values_of"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class TextChunk(NamedTuple):
    """A chunk of the text of one of several sequences.

    Attributes:
        prompt: The index of the prompt.
        sample: The index of the sample of this prompt.
        text: The text.
    """

    prompt: int
    sample: int
    text: str


@dataclass(frozen=True)
class PartialValue(Generic[T_co]):
    """The value of a text that is still being generated. The entries of `fields` are attributes of this object, too.

    Attributes:
        data: The value so far as JSON data, including containers and strings that are not complete. Complete
            containers are the same objects in all items of the stream. For a `Reasoning`, `data` is a dict with
            "reasoning" and "answer"; for `ToolCalls` a dict with "text", "reasoning" and "calls".
        fields: The complete entries of the outermost object, as values of their types if the output is a Python type.
            For a `Reasoning` and for `ToolCalls`, `fields` is equal to `data`.
        value: In the last item of the stream, the whole value, or None if the text was cut; in all other items None.
    """

    data: Any
    fields: dict[str, Any]
    value: T_co | None = None

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(
            f"the field {short_repr(name)} is not complete; complete fields: {short_list(fields) or 'none'}"
        )


def run(job: Job) -> Any:
    """Run a job to its end. Returns its results as `Job.shaped`: one, a list, or a list of lists."""
    for moved in moving(job, strides=True):
        job.finish_all(moved)
    return job.shaped()


def finished(job: Job) -> Iterator[tuple[int, int, Generation[Any] | Exception]]:
    """Run a job. Yields the index of the prompt, the index of the sample and the result when a sequence has ended.

    With `return_exceptions`, a result may be an exception.
    """
    given: set[tuple[int, int]] = set()

    def new() -> Iterator[tuple[int, int, Generation[Any] | Exception]]:
        """Yield the exceptions of sequences that did not run."""
        for number, group in enumerate(job.results):
            for sample, one in enumerate(group):
                if one is not None and (number, sample) not in given:
                    given.add((number, sample))
                    yield number, sample, one

    yield from new()
    for moved in moving(job, strides=True):
        over = [job.place[row] for row in moved if row.is_over]
        job.finish_all(moved)
        for number, sample in over:
            given.add((number, sample))
            result = job.results[number][sample]
            if result is not None:
                yield number, sample, result
    yield from new()


def only_values(found: Any) -> Any:
    """Return the values of results, in the same shape. Exceptions in place of results are returned as they are."""
    if isinstance(found, list):
        return [only_values(one) for one in found]
    return found if isinstance(found, Exception) else found.value


def moving(job: Job, *, strides: bool = False) -> Iterator[list[Row]]:
    """Run a job. Yields, after each round, the rows that took part, including those that have ended.

    Shows a progress bar on standard error if `progress=True`. `strides`: see `rounds`.
    """
    going = rounds(job.rows(), job.width, strides=strides)
    bar = _bar(job) if job.progress else None
    try:
        for moved in going:
            if bar is not None:
                bar.update(bar.task_ids[0], advance=sum(row.is_over for row in moved))
            yield moved
        if bar is not None:
            bar.update(bar.task_ids[0], completed=job.count)  # this counts rows that failed before they ran, too
    finally:
        if bar is not None:
            bar.stop()


class Stream(Iterator[T]):
    """An iterator over what a model generates."""

    def __init__(self, job: Job, items: Iterable[T]) -> None:
        self._job = job
        self._items = iter(items)

    def __next__(self) -> T:
        return next(self._items)

    def __repr__(self) -> str:
        results = [one for group in self._job.results for one in group]
        return f"Stream({sum(one is not None for one in results)} of {len(results)} sequences finished)"

    @property
    def results(self) -> Any:
        """The results as `complete` returns them: a `Generation`, a list, or a list of lists.

        The result of a sequence that has not ended is None.
        """
        return self._job.shaped()

    @property
    def states(self) -> list[GenerationState]:
        """The states of the sequences that have begun and not ended, for `resume`."""
        return self._job.states()

    def close(self) -> None:
        """End the generation early."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


def pieces_of(job: Job, moved: Iterable[Row]) -> Iterator[TextChunk]:
    """Yield the new text of these rows, without text that may become part of a stop string or a banned string.

    Stores the results of rows that have ended in the job. Raises the error of a row, unless `return_exceptions` is set.
    """
    for row in moved:
        number, sample = job.place[row]
        if row.error is not None:
            job.finish(row)
            continue
        text = row.watch.show(finished=row.is_over)
        if row.is_over:
            job.finish(row)
        if text:
            yield TextChunk(number, sample, text)


def values_of(job: Job) -> Growth:
    """Return the object that converts the text chunks of a job with one row to partial values.

    Raises `InvalidConstraintError` for an output whose value is known only at the end, and the error of the prompt, if
    it failed.
    """
    source = None if job.plans[0] is None else job.plans[0].source
    if isinstance(kept := job.results[0][0], Exception):
        raise kept
    return Growth(job, progress_of(source))


class Growth:
    """Converts the text chunks of a job with one row to partial values."""

    def __init__(self, job: Job, progress: GrowingValue) -> None:
        self._job = job
        self._progress = progress
        self._seen = 0

    def push(self, pieces: Iterable[TextChunk]) -> Iterator[PartialValue[Any]]:
        """Add chunks. Yields the value after each change, until the row has a result."""
        for piece in pieces:
            self._progress.push(piece.text)
            result = self._job.results[0][0]
            if self._progress.changes > self._seen and result is None:
                self._seen = self._progress.changes
                yield PartialValue(self._progress.data, dict(self._progress.fields))

    def whole(self) -> PartialValue[Any]:
        """Return the last item of the stream, with the whole value. If the row's result is an error, raise it."""
        result = self._job.results[0][0]
        if isinstance(result, Exception):
            raise result
        if result is not None and (result.truncation is None or result.truncation.kind != "cut"):
            self._progress.finish()
        return PartialValue(self._progress.data, dict(self._progress.fields), None if result is None else result.value)


def _bar(job: Job) -> Any:
    """Return a running progress bar on standard error; None if that is not a terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    bar = Bar(console=console)
    failed = sum(one is not None for group in job.results for one in group)
    bar.add_task("generating", total=job.count, completed=failed)
    bar.start()
    return bar
