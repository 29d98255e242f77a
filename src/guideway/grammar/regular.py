"""Regular languages over characters (Unicode code points without surrogates), as immutable expressions.

The kernel lowers them to bytes. An expression describes plain text (UTF-8), or with `JsonEscaped` the content of a JSON
string, in canonical or any spelling.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from guideway.grammar.values import value

__all__ = [
    "ANY_CHAR",
    "ANY_TEXT",
    "EMPTY",
    "MAX_CODE_POINT",
    "NEVER",
    "Chars",
    "Complement",
    "Concat",
    "Dfa",
    "Intersection",
    "JsonEscaped",
    "Literals",
    "Ranges",
    "Regular",
    "Repeat",
    "Special",
    "Spelling",
    "Substrings",
    "Union",
    "both",
    "cat",
    "chars",
    "either",
    "literal",
    "optional",
    "repeat",
    "repeated",
]

_MAX_COUNT = 4_294_967_294  # the largest count that the kernel represents

MAX_CODE_POINT = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]
"""Characters: inclusive ranges of code points, sorted and disjoint."""
Spelling = Literal["json", "json-any"]


@value
class Chars:
    """One character of a class: inclusive code point ranges, sorted and disjoint. Surrogates never match."""

    ranges: Ranges


@value
class Literals:
    """One of a list of fixed texts. The kernel builds a trie, so tens of thousands are supported."""

    texts: tuple[str, ...]


@value
class Concat:
    """A concatenation; without parts: the empty text."""

    parts: tuple[Regular, ...]


@value
class Union:
    """An alternation; without parts: the empty language."""

    parts: tuple[Regular, ...]


@value
class Intersection:
    """An intersection of at least one part."""

    parts: tuple[Regular, ...]


@value
class Complement:
    """The complement: every text, in the same spelling, that the part does not match."""

    part: Regular


@value
class Repeat:
    """`minimum` to `maximum` repetitions of the part (None: unbounded)."""

    part: Regular
    minimum: int
    maximum: int | None


@value
class Dfa:
    """A finite automaton, for languages whose expressions would be too long.

    `states[i]`: whether state i is accepting, and its transitions (character class, next state). State 0 is initial.
    """

    states: tuple[tuple[bool, tuple[tuple[Chars, int], ...]], ...]


@value
class Special:
    """One special token, by name or id. It is not text, so complements do not contain it.

    If the vocabulary has no special token with the name, the name is matched as text. An unknown id is an error.
    """

    name: str | int


@value
class Substrings:
    """The substrings of a text, which may be long: the kernel keeps the order of its suffixes.

    Attributes:
        text: The text, without surrogates.
        begins: For each character, 1 if a substring may begin there.
        ends: For each character and for the end, 1 if a substring may end before it.
        variants: Code points that may be written for others of the text, sorted.
        empty: Whether the empty text is one of the substrings.
        name: Of a placeholder: what it is replaced by. It is never compiled.
    """

    text: str
    begins: bytes
    ends: bytes
    variants: tuple[tuple[int, int], ...] = ()
    empty: bool = False
    name: str = ""


@value
class JsonEscaped:
    """The part's characters as written inside a JSON string.

    "json": canonical spelling (`\\"`, `\\\\`, `\\b \\f \\n \\r \\t`, `\\u00xx` in lower case for other controls, all
    other characters raw). "json-any": every spelling. Not nested.
    """

    part: Regular
    spelling: Spelling


Regular = (
    Chars | Literals | Concat | Union | Intersection | Complement | Repeat | Dfa | Special | Substrings | JsonEscaped
)

EMPTY = Concat(())
NEVER = Union(())
ANY_CHAR = Chars(((0, MAX_CODE_POINT),))
ANY_TEXT = Repeat(ANY_CHAR, 0, None)


def chars(*ranges: str | tuple[int, int]) -> Chars:
    """Return a character class. `chars("az", "__")` is `[a-z_]`; pairs of code points are accepted too."""
    pairs = sorted((ord(r[0]), ord(r[-1])) if isinstance(r, str) else r for r in ranges)
    merged: list[tuple[int, int]] = []
    for low, high in pairs:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        elif low <= high:
            merged.append((low, high))
    return Chars(tuple(merged))


def literal(*texts: str) -> Literals:
    """Return one of the texts."""
    return Literals(tuple(texts))


def cat(*parts: Regular | str) -> Regular:
    """Return a concatenation; a str is a literal."""
    made = tuple(literal(p) if isinstance(p, str) else p for p in parts)
    return made[0] if len(made) == 1 else Concat(made)


def either(parts: Iterable[Regular]) -> Regular:
    """Return an alternation."""
    made = tuple(parts)
    return made[0] if len(made) == 1 else Union(made)


def both(*parts: Regular) -> Regular:
    """Return an intersection."""
    return parts[0] if len(parts) == 1 else Intersection(parts)


def repeat(part: Regular, minimum: int = 0, maximum: int | None = None) -> Regular:
    """Return `minimum` to `maximum` repetitions of the part."""
    return part if (minimum, maximum) == (1, 1) else Repeat(part, minimum, maximum)


def repeated(part: Regular, least: int, most: int | None) -> Regular:
    """Like `repeat`; nested repetitions are merged if all counts in between are possible, as in `(a{0,9}){0,9}`."""
    if isinstance(part, Repeat) and part.minimum <= 1:
        highest = None if most is None or part.maximum is None else most * part.maximum
        if highest is None or highest <= _MAX_COUNT:
            return Repeat(part.part, part.minimum * least, highest)
    return Repeat(part, least, most)


def optional(part: Regular) -> Regular:
    """Return the part or the empty text."""
    return Repeat(part, 0, 1)
