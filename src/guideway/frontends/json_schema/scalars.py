"""Lowers assertions about numbers and strings to regular languages and number nodes."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from guideway.caching import cached
from guideway.errors import ConstraintError, UnsupportedError
from guideway.frontends.formats import FORMATS, format_language
from guideway.frontends.json_schema.bundles import FALSE, NULL, NUMBER, STRING, TRUE, NumberPart, StringPart
from guideway.frontends.json_schema.keys import passing
from guideway.frontends.json_schema.numbers import Bounds, integers, numbers
from guideway.frontends.json_schema.style import Style
from guideway.frontends.regex import parse_pattern
from guideway.grammar.lengths import of_length
from guideway.grammar.nodes import Cell, Leaf, Number
from guideway.grammar.program import constant, shared
from guideway.grammar.regular import (
    ANY_TEXT,
    Complement,
    Concat,
    JsonEscaped,
    Literals,
    Regular,
    Spelling,
    both,
    cat,
    chars,
    either,
    literal,
    optional,
    repeat,
)
from guideway.jsontext.encoder import write_number
from guideway.jsontext.pointer import shown

__all__ = [
    *(
        "HARMLESS_FORMATS",
        "SPECIFIED_FORMATS",
        "any_key",
        "any_scalar",
        "is_asserted",
        "number",
        "pattern_language",
        "plain_scalar",
    ),
    *("string", "tested", "text"),
]

SPECIFIED_FORMATS = frozenset(
    name
    for line in (
        "date date-time time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference uri-template",
        "iri iri-reference uuid json-pointer relative-json-pointer regex",
    )
    for name in line.split()
)
"""The formats of the specification, which are enforced. Any other name asserts nothing."""

HARMLESS_FORMATS = frozenset({"password", "path"})
"""Formats that Pydantic adds to arbitrary strings."""

_DIGIT = chars("09")
_FREE_NUMBER = NumberPart()


_ANY_NUMBER = constant(
    cat(
        optional(literal("-")),
        either([literal("0"), cat(chars("19"), repeat(_DIGIT))]),
        optional(cat(".", repeat(_DIGIT, 1))),
        optional(cat(chars("EE", "ee"), optional(chars("++", "--")), repeat(_DIGIT, 1))),
    )
)


_ANY_DIGITS = constant(cat(optional(literal("-")), either([literal("0"), cat(chars("19"), repeat(_DIGIT))])))
_ANY_POINTED = constant(both(_ANY_NUMBER, Complement(_ANY_DIGITS)))


_DIGITS = re.compile(r"-?[0-9]+").fullmatch
_FREE_BOUNDS = Bounds()


@cached(2)
def _free_digits(whole: bool) -> Regular:
    return shared(integers(_FREE_BOUNDS) if whole else numbers(_FREE_BOUNDS))


def number(part: NumberPart | None, style: Style) -> Regular | Number:
    """The language or node of the numbers that a part allows."""
    part = part or _FREE_NUMBER
    if style.plain_numbers and part.digits_only is False and part.given is None:
        part = replace(part, not_multiple=(*part.not_multiple, 1))  # the plain text of a whole number has only digits
    bounded = part.low is not None or part.high is not None
    special = bool(part.not_multiple or part.excluded)
    if not style.plain_numbers:
        if part.digits_only:
            free = not (bounded or special or part.given is not None) and part.multiple == (1,)
            return _ANY_DIGITS if free else Number(_whole_cells(part), "plain")
        if not (bounded or special or part.multiple or part.given is not None):
            return _ANY_NUMBER if part.digits_only is None else _ANY_POINTED
        return Number(_cells(part), "any" if part.digits_only is None else "pointed")
    if part.given is not None:
        given = [int(one) for one in part.given] if part.digits_only else part.given
        texts = [write_number(value) for value in sorted(given)]
        return Literals(tuple(text for text in texts if part.digits_only is not False or not _DIGITS(text)))
    if special or part.multiple not in ((), (1,)):
        return Number(_cells(part), "plain")
    bounds = Bounds(_decimal(part.low), _decimal(part.high), part.open_low, part.open_high)
    if bounds == _FREE_BOUNDS:
        return _free_digits(bool(part.multiple))
    return integers(bounds) if part.multiple else numbers(bounds)


def _decimal(value: int | Decimal | None) -> Decimal | None:
    return None if value is None else Decimal(value)


def _whole_cells(part: NumberPart) -> tuple[Cell, ...]:
    return tuple(cell if cell.multiple_of else replace(cell, multiple_of=(Decimal(1),)) for cell in _cells(part))


def _cells(part: NumberPart) -> tuple[Cell, ...]:
    """The interval of a part, split at excluded numbers."""
    multiple = tuple(map(Decimal, part.multiple))
    missing = tuple(map(Decimal, part.not_multiple))
    if part.given is not None:
        return tuple(Cell(Decimal(v), Decimal(v)) for v in sorted(part.given))
    low, high, open_low = _decimal(part.low), _decimal(part.high), part.open_low
    cells = []
    for value in sorted(map(Decimal, part.excluded)):
        if (low is not None and value < low) or (high is not None and value > high):
            continue
        cells.append(Cell(low, value, open_low, True, multiple, missing))
        low, open_low = value, True
    cells.append(Cell(low, high, open_low, part.open_high, multiple, missing))
    return tuple(
        cell
        for cell in cells
        if cell.low is None
        or cell.high is None
        or cell.low < cell.high
        or (cell.low == cell.high and not cell.open_low and not cell.open_high)
    )


def text(part: StringPart | None, style: Style) -> Regular:
    """The language of the decoded strings that a part allows. Raises the errors of `pattern_language`."""
    if part is None:
        return ANY_TEXT
    parts: list[Regular] = []
    for holds, kind, name, place in part.tests:
        language = pattern_language(name, place) if kind == "pattern" else _format(name, place, style)
        if language is not None:
            parts.append(language if holds else Complement(language))
        elif not holds:
            return Literals(())  # the negation of a format that asserts nothing
    if part.given is not None:
        return both(Literals(tuple(part.given)), *parts)
    parts = of_length(parts, part.fewest, part.most)
    if part.excluded:
        parts.append(Complement(Literals(tuple(sorted(part.excluded)))))
    return both(*parts) if parts else ANY_TEXT


@cached(2)
def _free_string(spelling: Spelling) -> Regular:
    return shared(Concat((literal('"'), JsonEscaped(ANY_TEXT, spelling), literal('"'))))


@cached(256)
def plain_scalar(types: int, part: NumberPart | None, style: Style) -> Leaf | Number | None:
    """The node of a single scalar type without assertions, or of integers. None for other types.

    The cache uses the identity of `part`, which is the part of a plain term and therefore shared by all schemas.
    """
    if types == STRING:
        return Leaf(_free_string(style.spelling))
    if types == TRUE | FALSE:
        return Leaf(shared(Literals(("true", "false"))))
    if types == NULL:
        return Leaf(shared(Literals(("null",))))
    if types == NUMBER:
        made = number(part, style)
        return made if isinstance(made, Number) else Leaf(shared(made))
    return None


@cached(256)
def any_scalar(style: Style) -> Leaf:
    """Null, a boolean, a number or a string."""
    numbers = _free_digits(whole=False) if style.plain_numbers else _ANY_NUMBER
    return Leaf(shared(either((Literals(("null", "true", "false")), numbers, _free_string(style.spelling)))))


@cached(256)
def any_key(style: Style) -> Regular:
    """An arbitrary object key."""
    return shared(style.quoted(ANY_TEXT))


@cached(64)
def _shared_format(name: str) -> Regular:
    return shared(format_language(name))


def string(part: StringPart | None, style: Style) -> Regular:
    """The JSON strings that a part allows."""
    if part is None:
        return _free_string(style.spelling)
    if part.given is not None and not part.tests:
        return style.strings(part.given)
    return style.quoted(text(part, style))


def tested(part: StringPart) -> StringPart | None:
    """Remove the listed strings that violate the patterns. Returns None if no string remains."""
    given: dict[str, None] = part.given or {}
    left = []
    for test in part.tests:
        holds, kind, name, place = test
        try:
            known = (name, pattern_language(name, place)) if kind == "pattern" else None
        except ConstraintError:
            known = None
        if known is None:
            left.append(test)
        else:
            given = passing(known, given, holds)
    return StringPart(tests=tuple(left), given=given) if given else None


@cached(1024, characters=1 << 20, size=len)
def _pattern(pattern: str) -> Regular:
    return parse_pattern(pattern, "ecma", search=True)


def pattern_language(pattern: str, place: str) -> Regular:
    """The texts in which a pattern is found.

    Raises:
        UnsupportedError: With the place.
        InvalidConstraintError: With the place.
    """
    try:
        return _pattern(pattern)
    except UnsupportedError as problem:
        raise UnsupportedError(str(problem), place) from None
    except ConstraintError as problem:
        raise type(problem)(f"at {shown(place)}: {problem}", place) from None


def _format(name: str, place: str, style: Style) -> Regular | None:
    """Return the language of a format, or None if the format is not asserted."""
    if is_asserted(name, style):
        return _shared_format(name)
    if style.formats == "strict" and name not in HARMLESS_FORMATS:
        raise UnsupportedError(f"the format {shown(name)}", place)
    return None


def is_asserted(name: str, style: Style) -> bool:
    """Whether the format restricts the allowed texts."""
    return style.formats != "annotate" and name in SPECIFIED_FORMATS and name in FORMATS
