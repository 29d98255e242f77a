"""Regular languages over characters (Unicode code points without surrogates), as immutable expressions.

They say what text is allowed; the kernel lowers them to bytes. An expression stands in one of three spellings: plain
text (UTF-8), or the inside of a JSON string, in its canonical or in any legal spelling (`Spelled`).
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
    "Both",
    "Cat",
    "Chars",
    "Either",
    "Graph",
    "Literals",
    "Not",
    "Regular",
    "Repeat",
    "Special",
    "Spelled",
    "Spelling",
    "both",
    "cat",
    "chars",
    "either",
    "literal",
    "optional",
    "repeat",
    "repeated",
]

_MAX_COUNT = 4_294_967_294  # what the kernel can count to

MAX_CODE_POINT = 0x10FFFF
Spelling = Literal["json", "json-any"]


@value
class Chars:
    """One character out of inclusive code point ranges, sorted and disjoint. Surrogates are never matched."""

    ranges: tuple[tuple[int, int], ...]


@value
class Literals:
    """One of some fixed texts; the kernel folds them into a trie, so tens of thousands are fine."""

    texts: tuple[str, ...]


@value
class Cat:
    """One after the other; no parts: the empty text."""

    parts: tuple[Regular, ...]


@value
class Either:
    """Any of the parts; no parts: nothing matches."""

    parts: tuple[Regular, ...]


@value
class Both:
    """All of the parts at once (intersection); at least one part."""

    parts: tuple[Regular, ...]


@value
class Not:
    """Every text (of the spelling it stands in) that the part does not match."""

    part: Regular


@value
class Repeat:
    """The part, `minimum` to `maximum` times (None: no end)."""

    part: Regular
    minimum: int
    maximum: int | None


@value
class Graph:
    """An automaton drawn out: by state whether the text may end there, and its steps (a character, the state after).

    It starts in state 0. The way to write what would be too long, or endless, as an expression.
    """

    states: tuple[tuple[bool, tuple[tuple[Chars, int], ...]], ...]


@value
class Special:
    """One special token, by its name or id, and no text: complements are of text alone, and do not hold it.

    Where the vocabulary has no special token of that name, the name as text; an id that is no special token's is an
    error there.
    """

    name: str | int


@value
class Spelled:
    """The part's characters as written inside a JSON string.

    "json": the canonical spelling (`\\"`, `\\\\`, `\\b \\f \\n \\r \\t`, `\\u00xx` in lower case for the other
    controls, everything else raw). "json-any": every legal spelling. Not nested.
    """

    part: Regular
    spelling: Spelling


Regular = Chars | Literals | Cat | Either | Both | Not | Repeat | Graph | Special | Spelled

EMPTY = Cat(())
NEVER = Either(())
ANY_CHAR = Chars(((0, MAX_CODE_POINT),))
ANY_TEXT = Repeat(ANY_CHAR, 0, None)


def chars(*ranges: str | tuple[int, int]) -> Chars:
    """Characters by range: `chars("az", "__")` is `[a-z_]`; pairs of code points work too."""
    pairs = sorted((ord(r[0]), ord(r[-1])) if isinstance(r, str) else r for r in ranges)
    merged: list[tuple[int, int]] = []
    for low, high in pairs:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        elif low <= high:
            merged.append((low, high))
    return Chars(tuple(merged))


def literal(*texts: str) -> Literals:
    """Any of the given texts."""
    return Literals(tuple(texts))


def cat(*parts: Regular | str) -> Regular:
    """One after the other; a str stands for itself."""
    made = tuple(literal(p) if isinstance(p, str) else p for p in parts)
    return made[0] if len(made) == 1 else Cat(made)


def either(parts: Iterable[Regular]) -> Regular:
    """Any of the parts."""
    made = tuple(parts)
    return made[0] if len(made) == 1 else Either(made)


def both(*parts: Regular) -> Regular:
    """All of the parts at once."""
    return parts[0] if len(parts) == 1 else Both(parts)


def repeat(part: Regular, minimum: int = 0, maximum: int | None = None) -> Regular:
    """The part, `minimum` to `maximum` times."""
    return part if (minimum, maximum) == (1, 1) else Repeat(part, minimum, maximum)


def repeated(part: Regular, least: int, most: int | None) -> Regular:
    """The same; a repetition of a repetition as one where no count is left out, as in `(a{0,9}){0,9}`."""
    if isinstance(part, Repeat) and part.minimum <= 1:
        highest = None if most is None or part.maximum is None else most * part.maximum
        if highest is None or highest <= _MAX_COUNT:
            return Repeat(part.part, part.minimum * least, highest)
    return Repeat(part, least, most)


def optional(part: Regular) -> Regular:
    """The part, or nothing."""
    return Repeat(part, 0, 1)
