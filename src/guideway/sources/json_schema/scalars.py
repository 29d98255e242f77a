"""Null, booleans, numbers, strings and given values: the parts of a schema that are regular."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from guideway.errors import ConstraintError, LimitExceeded, Unsupported
from guideway.grammar.regular import (
    ANY_CHAR,
    ANY_TEXT,
    EMPTY,
    NEVER,
    Literals,
    Regular,
    Repeat,
    both,
    cat,
    chars,
    either,
    literal,
    optional,
    repeat,
)
from guideway.sources.patterns import parse_pattern

from .formats import FORMATS, HARMLESS_FORMATS, KNOWN_FORMATS
from .keywords import pointer
from .numbers import Bounds, integers, numbers
from .reader import write_number
from .style import Style

__all__ = ["MAX_COUNT", "Keywords", "bounds_of", "count", "given_numbers", "kind_of", "number", "string", "within"]

Keywords = Mapping[str, object]

MAX_COUNT = 2**31 - 1
"""The greatest count of characters or items that is told apart; no text is longer."""

_DIGIT = chars("09")
_WHOLE = either([literal("0"), cat(chars("19"), repeat(_DIGIT))])
_EXPONENT = cat(chars("ee", "EE"), optional(chars("++", "--")), repeat(_DIGIT, 1))
_ANY_NUMBER = cat(optional(literal("-")), _WHOLE, optional(cat(".", repeat(_DIGIT, 1))), optional(_EXPONENT))


def kind_of(value: object) -> str:
    """The type of a value, by its name in JSON Schema; `integer` for whole numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, Decimal)):
        return "integer" if value == Decimal(value).to_integral_value() else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def count(keywords: Keywords, name: str, place: str) -> int | None:
    """The value of a keyword that counts."""
    value = keywords.get(name)
    if value is None:
        return None
    made = int(value) if isinstance(value, (int, Decimal)) else 0
    if made > MAX_COUNT and name.startswith("min"):
        at = pointer(place, name)
        raise LimitExceeded(f"at {at!r}: more than {MAX_COUNT} can never be reached", at)
    return min(made, MAX_COUNT)


def bounds_of(keywords: Keywords) -> Bounds:
    """The strictest of the limits that are given."""
    low = _limit(keywords, "minimum")
    open_low = False
    above = _limit(keywords, "exclusiveMinimum")
    if above is not None and (low is None or above >= low):
        low, open_low = above, True
    high = _limit(keywords, "maximum")
    open_high = False
    below = _limit(keywords, "exclusiveMaximum")
    if below is not None and (high is None or below <= high):
        high, open_high = below, True
    return Bounds(low, high, open_low, open_high)


def _limit(keywords: Keywords, name: str) -> Decimal | None:
    value = keywords.get(name)
    return Decimal(value) if isinstance(value, (int, Decimal)) else None


def within(value: Decimal, bounds: Bounds) -> bool:
    """Whether a number meets the bounds."""
    if bounds.low is not None and (value < bounds.low or (bounds.open_low and value == bounds.low)):
        return False
    return bounds.high is None or not (value > bounds.high or (bounds.open_high and value == bounds.high))


def number(keywords: Keywords, whole: bool, place: str, style: Style) -> Regular:
    """The numbers that a schema allows."""
    bounds = bounds_of(keywords)
    if not style.exact:
        return integers(bounds) if whole else numbers(bounds)
    if whole:
        at = pointer(place, "type")
        raise Unsupported("every spelling of an integer (1.0, 1e2) in the exact profile", at)
    if bounds != Bounds():
        name = next(name for name in keywords if name.lower().endswith("imum"))
        raise Unsupported("limits of every spelling of a number (1e2) in the exact profile", pointer(place, name))
    return _ANY_NUMBER


def given_numbers(values: list[int | Decimal], keywords: Keywords, place: str, style: Style) -> Regular:
    """Those of the given numbers that the schema allows."""
    bounds = bounds_of(keywords)
    kept = [value for value in values if within(Decimal(value), bounds)]
    if kept and style.exact:
        at = pointer(place, "enum" if "enum" in keywords else "const")
        raise Unsupported("every spelling of a given number (1.0, 1e2) in the exact profile", at)
    return Literals(tuple(map(write_number, kept))) if kept else NEVER


def string(keywords: Keywords, place: str, style: Style, given: list[str] | None = None) -> Regular:
    """The strings that a schema allows (out of the given ones)."""
    fewest, most = count(keywords, "minLength", place) or 0, count(keywords, "maxLength", place)
    if most is not None and fewest > most:
        return NEVER
    parts: list[Regular] = []
    if "pattern" in keywords:
        parts.append(_pattern(str(keywords["pattern"]), pointer(place, "pattern")))
    if "format" in keywords and style.formats != "annotate":
        parts += _format(str(keywords["format"]), pointer(place, "format"), style.formats == "strict")
    if given is not None:
        given = [text for text in given if fewest <= len(text) and (most is None or len(text) <= most)]
        if not given:
            return NEVER
        return style.quoted(both(Literals(tuple(given)), *parts)) if parts else style.strings(given)
    if fewest or most is not None:
        parts.append(Repeat(ANY_CHAR, fewest, most) if most != 0 else EMPTY)
    return style.quoted(both(*parts) if parts else ANY_TEXT)


def _pattern(pattern: str, place: str) -> Regular:
    try:
        return parse_pattern(pattern, "ecma", search=True)
    except Unsupported as problem:
        raise Unsupported(str(problem), place) from None
    except ConstraintError as problem:
        raise type(problem)(f"at {place!r}: {problem}", place) from None


def _format(name: str, place: str, strict: bool) -> list[Regular]:
    if name in KNOWN_FORMATS or (strict and name not in FORMATS and name not in HARMLESS_FORMATS):
        raise Unsupported(f"the format {name!r}", place)
    return [FORMATS[name]()] if name in FORMATS else []
