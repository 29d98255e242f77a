"""`run`: runs the requests of a file and writes the results to another file.

A later run continues an interrupted one.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from guideway.batch.answers import error_line
from guideway.batch.earlier import EarlierResults, digest_of_settings
from guideway.batch.ordering import BatchItem
from guideway.batch.progress import BatchProgress, duration
from guideway.batch.reading import MAX_LINE_BYTES, decoded, split_lines
from guideway.batch.result_file import ResultFile, json_line
from guideway.batch.running import WINDOW, BatchResult, results
from guideway.errors import GuidewayError, InvalidFileError, InvalidRequestError
from guideway.generation.options import BATCH
from guideway.generation.protocol import AnyModel

__all__ = ["BatchSummary", "done_before", "items_of", "open_input", "run"]


@dataclass(frozen=True)
class BatchSummary:
    """A summary of a run.

    Attributes:
        answered: The number of requests that got a result in this run.
        errors: The number of requests that failed in this run.
        skipped: The number of requests that had a result from an earlier run.
        seconds: The duration in seconds.
        changed: The number of skipped requests whose result was made from another line, or with another model or other
            options. Their results are not replaced.
    """

    answered: int
    errors: int
    skipped: int
    seconds: float
    changed: int = 0

    def __str__(self) -> str:
        done = self.answered + self.errors
        rate = done / self.seconds if self.seconds else 0.0
        return (
            f"{self.answered:,} results, {self.errors:,} errors, {done_before(self.skipped, self.changed)}; "
            f"{duration(self.seconds)}, {rate:,.1f}/s"
        )


def done_before(skipped: int, changed: int) -> str:
    """Return a message about the requests that an earlier run completed.

    Args:
        skipped: The number of these requests.
        changed: The number of these requests that an earlier run completed with another line, model or options.
    """
    note = f" ({changed:,} by another request, model or options)" if changed else ""
    return f"{skipped:,} already done{note}"


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

    The output file also records the progress. Requests that have a result in it are skipped, also if the line, the
    model or the options have changed since; the summary counts these. Before the run, lines with errors and an
    incomplete last line are removed, and their requests run again. Only identifiers are held in memory, not the files.

    Args:
        model: A model of `guideway.load`, local or served by an API.
        source: The file of requests; "-" is standard input. See `batch` for the formats of a line.
        destination: The file of results. It is created if it does not exist.
        output: The type or constraint for requests that have none; None: free text.
        window: As for `batch`.
        batch_size: As for `batch`.
        progress: As for `batch`.
        **options: Generation options for requests that do not set them.

    Returns:
        The numbers of results and errors. For an invalid line, an error is written; it does not end the run.

    Raises:
        InvalidFileError: A file cannot be read or written, or another process writes the output. Results that were
            written before are not lost.
        EngineError: The engine failed. Results that were written before are not lost.
    """
    target = Path(destination)
    with open_input(source) as (file, total):
        same = False
        with suppress(OSError, ValueError):  # `ResultFile` raises the error of a path that cannot be used
            same = os.path.samestat(os.fstat(file.fileno()), target.stat())
        if same:
            raise InvalidFileError(f"the input and the output are the same file, {target}")
        bar = BatchProgress(total)
        earlier = EarlierResults(target, lambda item: bar.skip(item.size))
        with ResultFile(target, earlier.accept) as written, bar if progress else nullcontext():
            found = results(
                model,
                items_of(file, digest_of_settings(model, output, options)),
                output,
                window=window,
                batch_size=batch_size,
                options=options,
                earlier=earlier,
            )
            for one in found:
                text, failed = _line_of(one)
                written.write(text)
                bar.advance(one.size, failed)
    return BatchSummary(bar.done - bar.failed, bar.failed, earlier.skipped, bar.seconds, earlier.changed)


def _line_of(one: BatchResult) -> tuple[str, bool]:
    """Return the output line of a result, and whether it reports an error.

    A result that cannot be written as JSON, or whose line is too long for a later run to read, becomes an error.
    """
    try:
        text = json_line(one.line())
        if len(text) * 4 > MAX_LINE_BYTES and (size := len(text.encode())) >= MAX_LINE_BYTES:
            raise InvalidRequestError(
                f"the result has {size:,} bytes, and a line may have {MAX_LINE_BYTES:,}: lower n or max_tokens",
                code="result_too_long",
            )
        return text, one.error is not None
    except (GuidewayError, TypeError, ValueError, OverflowError, RecursionError) as error:
        request = one.request
        found = error_line(error, None, one.custom_id, one.place, "" if request is None else request.endpoint)
        return json_line(found), True


@contextmanager
def open_input(source: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open a file of requests for reading; "-" is standard input.

    Yields:
        The file, and its size in bytes; None if the size is not known.

    Raises:
        InvalidFileError: The file cannot be read.
    """
    if str(source) == "-":
        if sys.stdin is None:
            raise InvalidFileError("cannot read -: standard input is closed")
        yield sys.stdin.buffer, None
        return
    try:
        file = open(source, "rb")  # noqa: SIM115  # closed below
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read", source, error) from error
    with file:
        yield file, os.fstat(file.fileno()).st_size or None  # the size of a pipe is 0


def items_of(file: BinaryIO, settings: str) -> Iterator[BatchItem]:
    """Yield an item for each line of a file of requests.

    The `entry` of an item is the JSON value or the error of the line. `settings` is the digest of the settings of the
    run; the digest of each item depends on it.
    """
    begun = hashlib.sha256(settings.encode())
    for position, line in enumerate(split_lines(file)):
        entry: Any
        try:
            entry = decoded(line)
        except InvalidRequestError as error:
            entry = error
        digest = begun.copy()
        digest.update((line.data or b"").strip())
        yield BatchItem(position, f"line {line.number}", line.size, entry, digest=digest.hexdigest()[:24])
