"""`run`: the requests of a file, with results in another file that an interrupted run continues."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from guideway.batch.answers import is_answer
from guideway.batch.ids import IdSet
from guideway.batch.ordering import BatchItem
from guideway.batch.progress import BatchProgress, duration
from guideway.batch.reading import decoded, split_lines
from guideway.batch.result_file import ResultFile, json_line
from guideway.batch.running import WINDOW, results
from guideway.errors import InvalidFileError, InvalidRequestError
from guideway.generation.options import BATCH
from guideway.generation.protocol import AnyModel

__all__ = ["BatchSummary", "items_of", "open_input", "run"]


@dataclass(frozen=True)
class BatchSummary:
    """What a run did.

    Attributes:
        answered: The number of requests that got a result in this run.
        errors: The number of errors in this run.
        skipped: The number of requests that had a result already.
        seconds: The time in seconds.
    """

    answered: int
    errors: int
    skipped: int
    seconds: float

    def __str__(self) -> str:
        done = self.answered + self.errors
        rate = done / self.seconds if self.seconds else 0.0
        return (
            f"{self.answered:,} results, {self.errors:,} errors, {self.skipped:,} already done; "
            f"{duration(self.seconds)}, {rate:,.1f}/s"
        )


def run(
    model: AnyModel,
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    output: object = None,
    *,
    window: int = WINDOW,
    batch_size: int = BATCH,
    progress: bool = False,
    **options: Any,
) -> BatchSummary:
    """Run the requests of a file of JSON lines, and append each result to another file when it is complete.

    The output is the checkpoint. Requests that have a result in it are skipped. Errors and a last line without its end are
    removed first, and these requests run again. Only identifiers are held in memory, not the files.

    Args:
        model: A model of `guideway.load`, local or served by an API.
        source: The file of requests; "-" is standard input. See `batch` for the formats of a line.
        destination: The file of results. It is created if it does not exist.
        output: The type or constraint of requests that have none.
        window: As for `batch`.
        batch_size: As for `batch`.
        progress: As for `batch`.
        **options: Generation options for requests that do not have them.

    Returns:
        The numbers of results and errors. An invalid line gives a result with an error; it does not end the run.

    Raises:
        InvalidFileError: A file cannot be read or written, or another process writes the output. What was written stays.
        EngineError: The engine failed. What was written stays.
    """
    target = Path(destination)
    with open_input(source) as (file, total):
        if total is not None and target.exists() and os.path.samefile(source, target):
            raise InvalidFileError(f"the input and the output are the same file, {target}")
        answered = IdSet()
        skipped: list[int] = []

        def accept(entry: dict[str, Any]) -> bool:
            if "custom_id" not in entry:
                raise InvalidFileError(f'{target} has a line without "custom_id", so it is not an output of a batch')
            return is_answer(entry) and answered.add(entry["custom_id"])

        count = 0
        with (
            ResultFile(target, accept) as written,
            BatchProgress(total) if progress else nullcontext(BatchProgress(total)) as bar,
        ):
            found = results(
                model,
                items_of(file),
                output,
                window=window,
                batch_size=batch_size,
                options=options,
                answered=answered,
                skipped=skipped,
            )
            for one in found:
                written.write(json_line(one.line()))
                count += len(skipped)
                bar.skip(sum(skipped))
                skipped.clear()
                bar.advance(one.size, one.error is not None)
            count += len(skipped)
    return BatchSummary(bar.done - bar.failed, bar.failed, count, bar.seconds)


@contextmanager
def open_input(source: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open a file of requests for reading; "-" is standard input. Gives the file, and its size if that is known.

    Raises:
        InvalidFileError: The file cannot be read.
    """
    if str(source) == "-":
        yield sys.stdin.buffer, None
        return
    try:
        file = open(source, "rb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise InvalidFileError(f"cannot read {source}: {error.strerror or error}") from error
    with file:
        yield file, os.fstat(file.fileno()).st_size or None  # 0 for a pipe


def items_of(file: BinaryIO) -> Iterator[BatchItem]:
    """Yield the lines of a file of requests, or their errors."""
    for position, line in enumerate(split_lines(file)):
        entry: Any
        try:
            entry = decoded(line)
        except InvalidRequestError as error:
            entry = error
        yield BatchItem(position, f"line {line.number}", line.size, entry)
