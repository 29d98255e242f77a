"""Writes results as JSON lines to standard output, or to a file that a later call of the command can continue."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import typer

from guideway.batch.result_file import ResultFile, entries_of, json_line
from guideway.cli.inputs import MESSAGES
from guideway.errors import InvalidFileError

__all__ = ["ResultLines", "described", "interrupted", "open_streams", "without_number"]


class ResultLines:
    """Writes results, one JSON object per line. Each line is written when its result is complete.

    If a file is given, the results in it stay: an input line counts as done if the file has `samples` results without
    an error and with the same input fields. Lines with errors, results of input lines that have too few results, and an
    incomplete last line are removed, so that these input lines run again.

    Args:
        path: The file to continue or to create; None: standard output.
        fields: The fields of an input line, which its results repeat.
        result: A field that each result without an error has.
        samples: The number of results for each input line.

    Raises:
        InvalidFileError: The file has lines that are not results of this command, or cannot be used for another reason
            (see `ResultFile`); it is not changed. Or `path` is None, and standard output is closed.
    """

    def __init__(self, path: Path | None, fields: Sequence[str], result: str, samples: int = 1) -> None:
        self._path, self._fields, self._result, self._samples = path, frozenset(fields), result, samples
        self._inputs = self._fields & {"text", "prompt", MESSAGES}
        self._done: Counter[str] = Counter()
        self._echoed = 0
        if path is None and (sys.stdout is None or isinstance(sys.stdout, _Closed)):
            raise InvalidFileError("standard output is closed, so results would be lost; give a file with --resume")
        self._file = None if path is None else self._kept(path)

    def __enter__(self) -> ResultLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            message = f"{self.written} lines were written"
            if self._path is not None:
                message += f"; the same command with --resume {self._path} continues"
            interrupted(message)
        if kind is None and self._path is not None:
            lines = self._done.total() + self.written
            typer.echo(f"guideway: {self._path} has {lines} lines, {self.written} of them new", err=True)

    @property
    def written(self) -> int:
        """The number of lines that this call has written."""
        return self._echoed if self._file is None else self._file.written

    def left(self, lines: Sequence[dict[str, Any]]) -> list[int]:
        """Return the indices (from 0) of the input lines that do not have all of their results in the file."""
        done = Counter(self._done)
        found = []
        for number, line in enumerate(lines):
            key = self._key(line)
            if done[key] >= self._samples:
                done[key] -= self._samples
            else:
                found.append(number)
        return found

    def write(self, line: dict[str, Any], result: dict[str, Any]) -> None:
        """Write one line with the fields of an input line and of its result."""
        text = json_line({**line, **result})
        if self._file is None:
            typer.echo(text)
            self._echoed += 1
        else:
            self._file.write(text)

    def _key(self, line: dict[str, Any]) -> str:
        return json.dumps({name: line[name] for name in line if name in self._fields}, sort_keys=True)

    def _kept(self, path: Path) -> ResultFile:
        """Open the file for further results, and remove results of input lines that run again. See the class."""
        found: Counter[str] = Counter()
        if self._samples > 1:  # count results, because an input line with too few results runs again
            for entry in entries_of(path):
                if "error" not in entry:
                    found[self._key(entry)] += 1

        def accept(entry: dict[str, Any]) -> bool:
            if not ({"error", self._result} & entry.keys() and self._inputs & entry.keys()):
                message = (
                    f'{path} has a line that is not a result of this command: expected "{self._result}" or "error"'
                )
                raise InvalidFileError(f"{message}, and the fields of the input; pass another file to --resume")
            if "error" in entry:
                return False
            key = self._key(entry)
            if self._samples > 1 and self._done[key] >= found[key] - found[key] % self._samples:
                return False
            self._done[key] += 1
            return True

        return ResultFile(path, accept)


class _Closed(io.TextIOBase):
    """Replaces a closed standard output: writing raises `OSError`. Otherwise, texts would be lost without an error."""

    def write(self, text: str) -> int:
        raise OSError("standard output is closed, so the result is lost")


def open_streams() -> None:
    """Open the descriptors of closed standard streams on the null device, and replace a closed `sys.stdout`.

    Otherwise, a file of results could get the descriptor of standard error, and messages of libraries would be written
    to it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = _Closed()


def interrupted(message: str) -> NoReturn:
    """Write a line to stderr, and raise `typer.Exit` with the status 130 (interrupted)."""
    typer.echo(f"guideway: interrupted; {message}", err=True)
    raise typer.Exit(130)


def described(error: Exception) -> str:
    """Return the text of an error: its class and its message, without the number of the prompt in the call."""
    return f"{type(error).__name__}: {without_number(str(error))}"


def without_number(message: str) -> str:
    """Return the message of an error without its beginning "prompt N of M: "."""
    return re.sub(r"^prompt \d+ of \d+: ", "", message)
