"""`ResultFile`: an output file of JSON lines, which a later run can continue after an interruption."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from guideway.batch.reading import Line, decoded, split_lines
from guideway.errors import GuidewayError, InvalidFileError

__all__ = ["ResultFile", "entries_of", "json_line"]

Accept = Callable[[dict[str, Any]], bool]
"""A function that returns whether a result of an earlier run stays in the file. It is called for each one, in order."""


class ResultFile:
    """A file to which results are appended, one JSON object per line.

    Opening it reads the results of an earlier run. Results that `accept` refuses and an incomplete last line are
    removed. If a result must be removed, the other results are first copied to a second file, which then replaces the
    file, so an interruption loses nothing. The file is locked while it is open, if the file system has locks.

    Args:
        path: The file to continue or to create.
        accept: Returns whether a result stays in the file.

    Raises:
        InvalidFileError: The file cannot be read or written, another process has it open, it has a line that is not a
            result, or it is not empty and has no complete line.

    Attributes:
        kept: The number of earlier results that stay.
        removed: The number of earlier results that were removed.
        written: The number of results written since the file was opened.
    """

    def __init__(self, path: Path, accept: Accept) -> None:
        try:
            with suppress(OSError):
                os.stat(path)  # raises ValueError for a NUL character or a lone surrogate; `realpath` not always
            self.path = Path(os.path.realpath(path))  # a symbolic link is followed, not replaced
        except ValueError as error:
            raise InvalidFileError.of("continue", path, error) from error
        self.kept = self.removed = self.written = 0
        self._descriptor = -1
        try:
            self._descriptor = _opened(self.path)
            _lock(self._descriptor, path)
            if not os.path.samestat(os.fstat(self._descriptor), os.stat(self.path)):
                raise _in_use(path)  # another process replaced the file between opening and locking
            self._end = self._continued(accept)
        except OSError as error:
            self.close()
            other = "" if error.filename in (None, str(self.path)) else f" ({error.filename})"
            raise InvalidFileError.of("continue", path, error, other) from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, text: str) -> None:
        """Append a line, given without its line feed.

        Raises:
            InvalidFileError: The line cannot be written, for example because the disk is full. A partly written line is
                removed from the file.
        """
        data = (text + "\n").encode()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            if not isinstance(error, OSError):
                raise
            complete = f"; it has {self.kept + self.written} complete results, and the same command continues"
            raise InvalidFileError.of("write", self.path, error, complete) from error
        self._end += len(data)
        self.written += 1

    def close(self) -> None:
        """Write buffered data to the disk (fsync), and close the file."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _continued(self, accept: Accept) -> int:
        """Remove refused results and an incomplete last line. Returns the size of the file in bytes."""
        end, part = 0, -1
        other = self.path.with_name(self.path.name + ".part")
        try:
            with open(self.path, "rb") as file:
                for line in split_lines(file):
                    if not line.is_complete:
                        break
                    if accept(_entry(self.path, line)):
                        self.kept += 1
                        if part >= 0:
                            _write_all(part, line.data or b"")
                    else:
                        self.removed += 1
                        if part < 0:
                            part = _opened(other, os.O_NOFOLLOW)
                            _lock(part, other)
                            os.ftruncate(part, 0)
                            _copy(self.path, part, end)
                    end = line.end
            if part < 0:
                if os.fstat(self._descriptor).st_size != end:
                    if not end:  # it may be a document of another kind, so it is not emptied
                        message = "has no complete line, so it is no file of results; remove it, or give another file"
                        raise InvalidFileError(f"{self.path} {message}")
                    os.ftruncate(self._descriptor, end)
                return end
            os.fchmod(part, stat.S_IMODE(os.fstat(self._descriptor).st_mode))
            os.fsync(part)
            os.replace(other, self.path)
            os.close(self._descriptor)
            self._descriptor, part = part, -1
            return os.fstat(self._descriptor).st_size
        finally:
            if part >= 0:  # an error: the file is unchanged
                os.close(part)
                with suppress(OSError):
                    os.unlink(other)


def entries_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete lines of an output file as objects; nothing if the file does not exist.

    Raises:
        InvalidFileError: The file cannot be read, or a line is not a JSON object.
    """
    try:
        with open(path, "rb") as file:
            for line in split_lines(file):
                if line.is_complete:
                    yield _entry(path, line)
    except FileNotFoundError:
        return
    except InvalidFileError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read", path, error) from error


def _entry(path: Path, line: Line) -> dict[str, Any]:
    try:
        entry = decoded(line)
    except GuidewayError as error:
        raise InvalidFileError(
            f"{path}, line {line.number} is no result: {error}; remove the line, or give another file"
        ) from error
    if not isinstance(entry, dict):
        raise InvalidFileError(
            f"{path}, line {line.number} is no result: expected an object; remove the line, or give another file"
        )
    return entry


def json_line(entry: dict[str, Any]) -> str:
    """Return an object as one line of JSON, without a line feed. Raises `ValueError` for NaN and infinite numbers."""
    text = json.dumps(entry, ensure_ascii=False, allow_nan=False)
    if any("\ud800" <= char <= "\udfff" for char in text):  # UTF-8 cannot encode a lone surrogate
        text = json.dumps(entry)
    return text


def _opened(path: Path, flags: int = 0) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidFileError(f"{path} is not a regular file, so a later run cannot continue it")
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(path) from None
    except OSError:
        pass  # a file system without locks


def _in_use(path: Path) -> InvalidFileError:
    return InvalidFileError(f"another process writes {path}; wait for its end, or give another file")


def _copy(path: Path, target: int, count: int) -> None:
    """Copy the first `count` bytes of a file to the descriptor `target`."""
    with open(path, "rb") as file:
        while count > 0 and (data := file.read(min(count, 1 << 20))):
            _write_all(target, data)
            count -= len(data)


def _write_all(target: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]
