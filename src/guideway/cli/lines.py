"""Results as JSON lines: on standard output, or in a file that a later call continues."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import typer

from guideway.errors import GuidewayError, InvalidFileError
from guideway.jsontext.decoder import loads

__all__ = ["ResultLines", "described", "without_number"]


class ResultLines:
    """The destination of results, one JSON object per line. Each line is written when its result is complete.

    With a file, results that it already has are kept: a row counts as done if the file has a result without an error
    that begins with the same fields. Errors, results of rows that are not complete, and a last line without its end are
    removed, so that these rows run again.

    Args:
        path: The file to continue or to create; None: standard output.
        fields: The fields of an input line, which its results repeat.
        samples: The number of results of each row.
    """

    def __init__(self, path: Path | None, fields: Sequence[str], samples: int = 1) -> None:
        self._path, self._fields, self._samples = path, frozenset(fields), samples
        self._done: Counter[str] = Counter()
        self._file: Any = None
        self.written = 0
        if path is not None:
            self._kept(path)

    def __enter__(self) -> ResultLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            told = f"guideway: interrupted; {self.written} lines were written"
            if self._path is not None:
                told += f"; the same command with --resume {self._path} continues"
            typer.echo(told, err=True)
            raise typer.Exit(130)

    def left(self, lines: Sequence[dict[str, Any]]) -> list[int]:
        """Return the numbers of the input lines that have no result yet."""
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
        """Write the fields of an input line and its result."""
        text = json.dumps({**line, **result}, ensure_ascii=False)
        if any("\ud800" <= char <= "\udfff" for char in text):  # UTF-8 cannot encode a lone surrogate
            text = json.dumps({**line, **result})
        self.written += 1
        if self._file is None:
            typer.echo(text)
        else:
            self._file.write(text + "\n")
            self._file.flush()

    def _key(self, line: dict[str, Any]) -> str:
        return json.dumps({name: line[name] for name in line if name in self._fields}, sort_keys=True)

    def _kept(self, path: Path) -> None:
        """Read the results of an earlier call, remove those to repeat, and open the file for more."""
        try:
            data = path.read_bytes() if path.exists() else b""
            kept = self._results(path, data)
            text = b"".join(kept)
            if text != data:
                other = path.with_name(path.name + ".part")
                other.write_bytes(text)
                os.replace(other, path)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InvalidFileError(f"cannot continue {path}: {error}") from error

    def _results(self, path: Path, data: bytes) -> list[bytes]:
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()  # the earlier call ended while it wrote this line
        found: dict[str, list[bytes]] = {}
        for number, line in enumerate(lines, 1):
            try:
                entry = loads(line.decode())
            except (ValueError, GuidewayError) as error:
                raise InvalidFileError(f"{path}, line {number} is not JSON, so it is no result: {error}") from error
            if not isinstance(entry, dict):
                raise InvalidFileError(f"{path}, line {number}: expected the object of a result")
            if "error" not in entry:
                found.setdefault(self._key(entry), []).append(line)
        complete = {key: group[: len(group) - len(group) % self._samples] for key, group in found.items()}
        self._done.update({key: len(group) for key, group in complete.items()})
        return [line for group in complete.values() for line in group]


def described(error: Exception) -> str:
    """Return an error of a row: its class and its message without the number of the prompt in the call."""
    return f"{type(error).__name__}: {without_number(str(error))}"


def without_number(message: str) -> str:
    """Return the message of an error without the number of the prompt in the call."""
    return re.sub(r"^prompt \d+ of \d+: ", "", message)
