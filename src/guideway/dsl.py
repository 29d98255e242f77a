"""What constraints are put together of: `from guideway.dsl import digit, either, sequence`.

Everything here is a source, or takes parts and gives a source: a part is a source, a str (which stands for itself), a
JSON Schema as a dict, or a Python type. `exactly(3, digit)` is also written `digit.exactly(3)`; `a | b`, `a + b`,
`a & b` and `~a` work on all of them, the last two on regular ones. The characters are ASCII; `Regex` has the others.
"""

from __future__ import annotations

from typing import Any

from guideway.constraints.base import Constraint, either_of, one_after_the_other
from guideway.constraints.embed import source_of
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
"""Any one character, line ends too."""
any_text = Regex("(?s:.*)")
"""Any text, also the empty one."""
digit = Regex("[0-9]")
hex_digit = Regex("[0-9a-fA-F]")
letter = Regex("[A-Za-z]")
word_char = Regex("[A-Za-z0-9_]")
space = Regex("[ \t]")
newline = Regex("\r?\n")
integer = Regex("-?(?:0|[1-9][0-9]*)")
"""A whole number, without zeros before it."""
decimal = Regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
"""A whole number, or one with a point and digits behind it."""

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
    """One character of some: `char("a-z", "_")`, each a character, or two with `-` between."""
    return Regex(f"[{_class(ranges)}]")


def char_except(*ranges: str) -> Regex:
    """One character that is none of some, which are given as `char` takes them."""
    return Regex(f"[^{_class(ranges)}]")


def sequence(*parts: object) -> Constraint[str]:
    """One after the other. Raises `InvalidConstraintError` for what is no constraint, as all of these do."""
    return one_after_the_other(_sources(parts))


def either(*options: object) -> Constraint[Any]:
    """Any of them; what comes first counts where a text fits several, for its value and for captures."""
    return either_of(_sources(options))


def optional(part: object) -> Constraint[str]:
    """The part, or nothing."""
    return source_of(part).optional()


def repeat(part: object, least: int = 0, most: int | None = None, *, separator: str = "") -> Constraint[str]:
    """The part, `least` to `most` times (None: no end), with a separator between."""
    return source_of(part).repeat(least, most, separator=separator)


def exactly(count: int, part: object) -> Constraint[str]:
    """The part, so many times."""
    return source_of(part).exactly(count)


def at_least(count: int, part: object) -> Constraint[str]:
    """The part, so many times or more."""
    return source_of(part).at_least(count)


def at_most(count: int, part: object) -> Constraint[str]:
    """The part, so many times or fewer."""
    return source_of(part).at_most(count)


def between(least: int, most: int, part: object) -> Constraint[str]:
    """The part, `least` to `most` times."""
    return source_of(part).between(least, most)


def capture(name: str, part: object) -> Constraint[Any]:
    """The part; `captures` then says what it took."""
    return source_of(part).capture(name)


def _sources(parts: tuple[object, ...]) -> tuple[Constraint[Any], ...]:
    if not parts:
        raise InvalidConstraintError("there must be at least one part")
    return tuple(map(source_of, parts))


def _class(ranges: tuple[str, ...]) -> str:
    """Ranges as they are written in the class of a pattern."""
    written = []
    for one in ranges:
        if len(one) == 1:
            written.append(_escaped(one))
        elif len(one) == 3 and one[1] == "-" and one[0] <= one[2]:
            written.append(f"{_escaped(one[0])}-{_escaped(one[2])}")
        else:
            raise InvalidConstraintError(f"{one!r} is neither a character nor two, in order, with '-' between")
    if not written:
        raise InvalidConstraintError("there must be at least one character")
    return "".join(written)


def _escaped(one: str) -> str:
    return f"\\{one}" if one in "\\[]^-&~|" else one
