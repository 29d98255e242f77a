"""How JSON is written: profiles and their options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from guideway.arguments import short_repr
from guideway.caching import cached
from guideway.errors import InvalidConstraintError
from guideway.grammar.nodes import Punctuation
from guideway.grammar.regular import Concat, JsonEscaped, Literals, Regular, Spelling, literal
from guideway.jsontext.encoder import write_json

__all__ = [
    "MAX_INDENTED",
    "QUOTE",
    "Escapes",
    "Formats",
    "KeyOrder",
    "Numbers",
    "Profile",
    "Style",
    "Whitespace",
    "make_style",
]

Profile = Literal["generation", "exact"]
KeyOrder = Literal["schema", "any"]
Whitespace = Literal["one-line", "compact", "indented", "any"]
Escapes = Literal["canonical", "any"]
Numbers = Literal["plain", "any"]
QUOTE = literal('"')
INDENT = "  "
MAX_INDENTED = 8
"""The number of levels that are indented by `whitespace="indented"`. Deeper values are written on one line."""

Formats = Literal["known", "annotate", "strict"]

MAX_DIGITS = 1000
"""The maximum of `integer_digits` and `fraction_digits`."""

_DEFAULTS: tuple[None, None, None, None, Formats, None, None] = (
    None,
    None,
    None,
    None,
    "known",
    None,
    None,
)  # the arguments of `make_style` after the profile


@dataclass(frozen=True, slots=True)
class Style:
    """The resolved options of a profile.

    Attributes:
        key_order: "schema": keys are written in the order in which the schema names them. "any": in any order.
        whitespace: The white space between tokens. "any": any JSON white space.
        escapes: "canonical": each character of a string has one spelling. "any": every legal spelling is allowed.
        formats: Which values of the keyword `format` restrict strings (`strings.is_asserted`), and whether unknown ones
            are refused ("strict").
        closed: An object whose schema has `properties` but not `additionalProperties` allows only the keys that its
            keywords name.
        plain_numbers: Numbers have no exponent, numbers of the type "integer" have no fraction, and a number that
            `enum` or `const` lists has one spelling. Otherwise every legal spelling is allowed.
        integer_digits: With `plain_numbers`, the maximum number of digits before the point, unless bounds or divisors
            need more. None: `INTEGER_DIGITS` of numbers.py for integers, `NUMBER_DIGITS` for other numbers.
        fraction_digits: With `plain_numbers`, the maximum number of digits after the point, unless bounds need more.
            None: `NUMBER_DIGITS` of numbers.py.
    """

    key_order: KeyOrder
    whitespace: Whitespace
    escapes: Escapes
    formats: Formats
    closed: bool
    plain_numbers: bool
    integer_digits: int | None = None
    fraction_digits: int | None = None

    @property
    def spelling(self) -> Spelling:
        """How characters are written in strings."""
        return "json" if self.escapes == "canonical" else "json-any"

    @property
    def comma(self) -> str:
        """The separator of two items or entries that are on one line."""
        return ", " if self.whitespace in ("one-line", "indented") else ","

    @property
    def colon(self) -> str:
        """The separator of a key and its value."""
        return ": " if self.whitespace in ("one-line", "indented") else ":"

    @property
    def fixed(self) -> bool:
        """Whether this style allows exactly one text for each value that `enum` or `const` lists."""
        return (
            self.key_order == "schema"
            and self.whitespace in ("one-line", "compact")
            and self.escapes == "canonical"
            and self.plain_numbers
        )

    def marks(self, brackets: str, level: int = 0) -> Punctuation:
        """Return the punctuation of an array (`brackets` "[]") or object ("{}").

        `level` is the number of arrays and objects that contain it. It determines the indentation.
        """
        if self.whitespace == "indented" and level < MAX_INDENTED:
            line = "\n" + level * INDENT
            return Punctuation(brackets[0] + line + INDENT, "," + line + INDENT, ": ", line + brackets[1])
        return Punctuation(brackets[0], self.comma, self.colon, brackets[1], space=self.whitespace == "any")

    def strings(self, texts: Iterable[str]) -> Regular:
        """Return the language of the given strings, each written as a JSON string."""
        return _strings(tuple(texts), self.escapes)

    def new_key(self, key: str) -> Regular:
        """Return the language of one key, written as a JSON string.

        The expression is not cached, because most keys occur in a single schema.
        """
        return _new_strings((key,), self.escapes)

    def quoted(self, language: Regular) -> Regular:
        """Return the language of the JSON strings whose decoded text is in `language`."""
        return Concat((QUOTE, JsonEscaped(language, self.spelling), QUOTE))


def _new_strings(texts: tuple[str, ...], escapes: Escapes) -> Regular:
    if escapes == "canonical":
        return Literals(tuple(map(write_json, texts)))
    return Concat((QUOTE, JsonEscaped(Literals(texts), "json-any"), QUOTE))


_strings = cached(16384, characters=8 << 20, size=lambda texts, _: sum(map(len, texts)))(_new_strings)
"""Cached `_new_strings`: schemas share the expressions of equal texts."""


def make_style(
    profile: Profile,
    key_order: KeyOrder | None,
    whitespace: Whitespace | None,
    escapes: Escapes | None,
    numbers: Numbers | None,
    formats: Formats,
    integer_digits: int | None = None,
    fraction_digits: int | None = None,
) -> Style:
    """Return the style of a profile with options. An option that is None has the default of the profile.

    Raises:
        InvalidConstraintError: An option has an invalid value. The message lists the allowed values.
    """
    knobs = (profile, key_order, whitespace, escapes, numbers, formats, integer_digits, fraction_digits)
    plain = knobs[1:] == _DEFAULTS
    try:
        return (_PROFILES.get(profile) if plain else None) or _style(*knobs)
    except TypeError:  # the cache cannot hash a value: the uncached function reports the invalid value
        return _style.__wrapped__(*knobs)


@cached(256)
def _style(
    profile: Profile,
    key_order: KeyOrder | None,
    whitespace: Whitespace | None,
    escapes: Escapes | None,
    numbers: Numbers | None,
    formats: Formats,
    integer_digits: int | None,
    fraction_digits: int | None,
) -> Style:
    for name, value, allowed in (
        ("profile", profile, Profile),
        ("key_order", key_order, KeyOrder),
        ("whitespace", whitespace, Whitespace),
        ("escapes", escapes, Escapes),
        ("numbers", numbers, Numbers),
        ("formats", formats, Formats),
    ):
        if value not in get_args(allowed) and not (value is None and name not in ("profile", "formats")):
            raise InvalidConstraintError(
                f"{name}={short_repr(value)}: expected one of {', '.join(map(repr, get_args(allowed)))}"
            )
    exact = profile == "exact"
    plain_numbers = (numbers or ("any" if exact else "plain")) == "plain"
    for name, digits, least in (
        ("max_integer_digits", integer_digits, 1),
        ("max_fraction_digits", fraction_digits, 0),
    ):
        if digits is None:
            continue
        if type(digits) is not int or not least <= digits <= MAX_DIGITS:
            raise InvalidConstraintError(f"{name}={short_repr(digits)}: expected an int from {least} to {MAX_DIGITS}")
        if not plain_numbers:
            raise InvalidConstraintError(
                f"{name} limits plain numbers, and numbers='any' allows every spelling; add numbers='plain' or omit it"
            )
    return Style(
        key_order=key_order or ("any" if exact else "schema"),
        whitespace=whitespace or ("any" if exact else "one-line"),
        escapes=escapes or ("any" if exact else "canonical"),
        formats=formats,
        closed=not exact,
        plain_numbers=plain_numbers,
        integer_digits=integer_digits,
        fraction_digits=fraction_digits,
    )


_PROFILES: dict[str, Style] = {name: _style(name, *_DEFAULTS) for name in get_args(Profile)}
"""The profiles with default options."""
