"""Reads lines of JSON from a binary file, one at a time and with a maximum size."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, BinaryIO, NamedTuple

from guideway.errors import GuidewayError, InvalidRequestError
from guideway.jsontext.decoder import loads
from guideway.jsontext.numbers import written_float

__all__ = ["MAX_LINE_BYTES", "Line", "decoded", "split_lines", "strict_loads"]

MAX_LINE_BYTES = 64 << 20
"""The maximum size of one line. A longer line is skipped without reading it into memory."""

_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line of a file that does not consist of white space only.

    Attributes:
        number: The number of the line in the file, from 1.
        size: The number of bytes, with the line's end.
        data: The bytes; None if the line is longer than the limit.
        end: The position in the file after the line.
        is_complete: Whether the line ends with a line feed.
    """

    number: int
    size: int
    data: bytes | None
    end: int
    is_complete: bool = True


def split_lines(file: BinaryIO, max_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """Yield the lines of a file, without those that consist of white space only.

    Only a line feed ends a line. A byte order mark at the beginning of the file is removed.
    """
    number = end = 0
    while data := file.readline(max_bytes + 1):
        number += 1
        size = len(data)
        if size > max_bytes and not data.endswith(b"\n"):
            data = b""
            while not data.endswith(b"\n") and (data := file.readline(1 << 20)):
                size += len(data)
            end += size
            yield Line(number, size, None, end, data.endswith(b"\n"))
            continue
        end += size
        if number == 1:
            data = data.removeprefix(_BOM)
        if data.strip():
            yield Line(number, size, data, end, data.endswith(b"\n"))


def decoded(line: Line) -> object:
    """Return the JSON value of a line.

    Raises:
        InvalidRequestError: The line is too long, or it is not JSON in UTF-8.
    """
    if line.data is None:
        raise InvalidRequestError(
            f"the line has {line.size:,} bytes, and a line may have {MAX_LINE_BYTES:,}", code="line_too_long"
        )
    try:
        return strict_loads(line.data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"the line is not UTF-8: byte {line.data[error.start]:#04x} at offset {error.start}", code="invalid_utf8"
        ) from None
    except (ValueError, GuidewayError, RecursionError) as error:
        raise InvalidRequestError(f"the line is not JSON: {error}", code="invalid_json") from None


def strict_loads(text: str) -> Any:
    """Return the JSON value of a text. NaN and numbers that are not finite are refused, because JSON cannot write them.

    Numbers with a fraction or an exponent are results of `written_float`, so that schemas in the text are exact.

    Raises:
        ValueError: The text is not JSON, or it has such a number.
        GuidewayError: A text that is nested deeper than `jsontext.copying.MAX_C_DEPTH` is not JSON, or is too large.
    """
    return loads(text, parse_constant=_refuse, parse_float=_finite)


def _finite(text: str) -> float:
    number = written_float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text:.40} is out of range")
    return number


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")
