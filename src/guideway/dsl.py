"""Functions and constants to compose constraints: `from guideway.dsl import digit, either, sequence`.

The constants are constraints. The functions return a constraint. Their arguments `part`, `parts` and `options` are
constraints, strs (literal text), JSON Schemas as dicts, or Python types; other values raise `InvalidConstraintError`.
`exactly(3, digit)` can also be written `digit.exactly(3)`. The operators `a | b` and `a + b` apply to all constraints,
`a & b` and `~a` only to regular ones. The character classes contain only ASCII characters; use `Regex` for others.
"""

from __future__ import annotations

from typing import Any

from guideway.arguments import short_repr
from guideway.constraints.base import Constraint, either_of, one_after_the_other
from guideway.constraints.coerce import source_of
from guideway.constraints.format import Format
from guideway.constraints.regex import Regex
from guideway.errors import InvalidConstraintError

__all__ = [
    "any_char",
    "any_text",
    "at_least",
    "at_most",
    "between",
    "capture",
    "char",
    "char_except",
    "date",
    "date_time",
    "decimal",
    "digit",
    "duration",
    "either",
    "email",
    "exactly",
    "hex_colour",
    "hex_digit",
    "hostname",
    "integer",
    "ip",
    "ipv4",
    "ipv6",
    "letter",
    "newline",
    "optional",
    "phone",
    "repeat",
    "semver",
    "sequence",
    "space",
    "time",
    "uri",
    "url",
    "uuid",
    "word_char",
]

any_char = Regex("(?s:.)")
"""Any one character, including line breaks."""
any_text = Regex("(?s:.*)")
"""Any text, including the empty one."""
digit = Regex("[0-9]")
hex_digit = Regex("[0-9a-fA-F]")
letter = Regex("[A-Za-z]")
word_char = Regex("[A-Za-z0-9_]")
space = Regex("[ \t]")
newline = Regex("\r?\n")
integer = Regex("-?(?:0|[1-9][0-9]*)")
"""An integer without leading zeros."""
decimal = Regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""An integer, or a number with digits after a decimal point."""

date = Format("date")
time = Format("time")
date_time = Format("date-time")
duration = Format("duration")
email = Format("email")
hostname = Format("hostname")
ip = Format("ip")
ipv4 = Format("ipv4")
ipv6 = Format("ipv6")
uri = Format("uri")
url = Format("url")
uuid = Format("uuid")
semver = Format("semver")
phone = Format("phone")
hex_colour = Format("hex-colour")


def char(*ranges: str) -> Regex:
    """Return a constraint that matches one character of a class: `char("a-z", "_")`.

    Each argument is a character or a range. Raises `InvalidConstraintError` for other arguments.
    """
    return Regex(f"[{_class(ranges)}]")


def char_except(*ranges: str) -> Regex:
    """Return a constraint that matches one character that is not in a class. The class is written as for `char`."""
    return Regex(f"[^{_class(ranges)}]")


def sequence(*parts: object) -> Constraint[str]:
    """Return a constraint that matches the parts one after the other."""
    return one_after_the_other(_sources(parts))


def either(*options: object) -> Constraint[Any]:
    """Return a constraint that matches any of the options.

    The first option that matches determines value and captures.
    """
    return either_of(_sources(options))


def optional(part: object) -> Constraint[str]:
    """Return a constraint that matches the part or the empty text."""
    return source_of(part).optional()


def repeat(part: object, least: int = 0, most: int | None = None, *, separator: str = "") -> Constraint[str]:
    """Return a constraint that matches `least` to `most` repetitions of the part; `most` None: no maximum.

    `separator`: a text between each two repetitions.
    """
    return source_of(part).repeat(least, most, separator=separator)


def exactly(count: int, part: object) -> Constraint[str]:
    """Return a constraint that matches exactly `count` repetitions of the part."""
    return source_of(part).exactly(count)


def at_least(count: int, part: object) -> Constraint[str]:
    """Return a constraint that matches `count` or more repetitions of the part."""
    return source_of(part).at_least(count)


def at_most(count: int, part: object) -> Constraint[str]:
    """Return a constraint that matches 0 to `count` repetitions of the part."""
    return source_of(part).at_most(count)


def between(least: int, most: int, part: object) -> Constraint[str]:
    """Return a constraint that matches `least` to `most` repetitions of the part."""
    return source_of(part).between(least, most)


def capture(name: str, part: object) -> Constraint[Any]:
    """Return a constraint that matches the part. `Constraint.captures` reports the matched text by `name`."""
    return source_of(part).capture(name)


def _sources(parts: tuple[object, ...]) -> tuple[Constraint[Any], ...]:
    if not parts:
        raise InvalidConstraintError("expected at least one part, got none")
    return tuple(map(source_of, parts))


def _class(ranges: tuple[object, ...]) -> str:
    """Return ranges in the notation of a regex character class, without brackets."""
    written = []
    for one in ranges:
        if isinstance(one, str) and len(one) == 1:
            written.append(_escaped(one))
        elif isinstance(one, str) and len(one) == 3 and one[1] == "-" and one[0] <= one[2]:
            written.append(f"{_escaped(one[0])}-{_escaped(one[2])}")
        else:
            raise InvalidConstraintError(f"expected a character or a range such as 'a-z', got {short_repr(one)}")
    if not written:
        raise InvalidConstraintError("expected at least one character or range, got none")
    return "".join(written)


def _escaped(one: str) -> str:
    return f"\\{one}" if one in "\\[]^-&~|" else one
