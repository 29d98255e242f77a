"""Regular languages over characters (Unicode code points without surrogates), as immutable expressions.

The kernel lowers them to bytes. An expression describes plain text (UTF-8). The inner expression of a `JsonEscaped`
describes the decoded content of a JSON string.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from typing import Literal

from guideway.background import checkpoint
from guideway.errors import UnsupportedError
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
    "as_text",
    "both",
    "cat",
    "chars",
    "distinct",
    "either",
    "literal",
    "optional",
    "outer_parts_of",
    "parts_of",
    "repeat",
    "repeated",
    "with_leaves",
]

_MAX_COUNT = 4_294_967_294  # the largest count that the kernel represents

MAX_CODE_POINT = 0x10FFFF
Ranges = tuple[tuple[int, int], ...]
"""A set of characters: ranges of code points (first, last), sorted and disjoint."""
Spelling = Literal["json", "json-any"]
"""How characters are written in JSON strings: "json": in one way each; "json-any": in every legal way."""


@value
class Chars:
    """One character of a class. Surrogates never match, even if the ranges contain them."""

    ranges: Ranges


@value
class Literals:
    """One of a list of fixed texts. There may be tens of thousands, because the kernel builds a trie."""

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
    """The complement: all texts that the part does not match. Inside `JsonEscaped`, these are decoded texts."""

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

    Attributes:
        states: For each state: whether it is accepting, and its transitions (character class, next state). State 0 is
            initial.
    """

    states: tuple[tuple[bool, tuple[tuple[Chars, int], ...]], ...]


@value
class Special:
    """A special token. It is not text, so complements do not contain it.

    Attributes:
        name: A name (str) or an id (int). A name matches any special token with this name. If there is none, or inside
            `JsonEscaped`, the name is matched as text. An id of no special token is an error of the compilation.
    """

    name: str | int


@value
class Substrings:
    """The substrings of a text. The text may have millions of characters: the kernel sorts its suffixes.

    Attributes:
        text: The text, without surrogates.
        begins: For each character, 1 if a substring may begin with it, else 0.
        ends: For each character and for the end of the text, 1 if a substring may end before it, else 0.
        variants: Pairs (code point, code point of the text), sorted: the first may be written in place of the second.
        empty: Whether the empty text is one of the substrings.
        name: For a placeholder, the format with its options, such as "verbatim:ignore-case"; "": this is no placeholder.
            A placeholder must be replaced before the grammar is compiled.
    """

    text: str
    begins: bytes
    ends: bytes
    variants: tuple[tuple[int, int], ...] = ()
    empty: bool = False
    name: str = ""


@value
class JsonEscaped:
    """The texts of `part`, as written between the quotes of a JSON string. `part` must not contain `JsonEscaped`.

    Attributes:
        part: The decoded texts.
        spelling: "json": each character has one spelling: `\\"`, `\\\\`, `\\b`, `\\f`, `\\n`, `\\r` and `\\t`,
            `\\u00xx` in lower case for other characters below U+0020, and all others unescaped. "json-any": every legal
            spelling.
    """

    part: Regular
    spelling: Spelling


Regular = (
    Chars | Literals | Concat | Union | Intersection | Complement | Repeat | Dfa | Special | Substrings | JsonEscaped
)


def parts_of(expression: Regular) -> tuple[Regular, ...]:
    """Return the expressions that an expression is made of, in their order."""
    match expression:
        case Concat(parts) | Union(parts) | Intersection(parts):
            return parts
        case Complement(part) | Repeat(part) | JsonEscaped(part):
            return (part,)
    return ()


def outer_parts_of(expression: Regular) -> tuple[Regular, ...]:
    """Return what `parts_of` returns, but nothing for `JsonEscaped`, whose part describes the decoded text."""
    return () if isinstance(expression, JsonEscaped) else parts_of(expression)


def distinct(
    root: Regular,
    parts: Callable[[Regular], Iterable[Regular]] = parts_of,
    known: Container[int] = (),
) -> Iterator[Regular]:
    """Yield an expression and all expressions inside it, each object once, and after its parts.

    Expressions share parts, so the number of paths to a part can be exponential in the number of objects.

    Args:
        root: The expression.
        parts: Returns the parts of an expression that are visited.
        known: The identities of expressions that are neither yielded nor searched for parts. The caller may add
            identities during the iteration.
    """
    seen = set[int]()
    todo = [root]
    while todo:
        checkpoint()
        one = todo[-1]
        if id(one) in seen or id(one) in known:
            todo.pop()
        elif missing := [part for part in parts(one) if id(part) not in seen and id(part) not in known]:
            todo += missing
        else:
            todo.pop()
            seen.add(id(one))
            yield one


def with_leaves(root: Regular, change: Callable[[Regular], Regular]) -> Regular:
    """Return an expression in which each expression without parts is replaced by the result of `change` for it."""
    made: dict[int, Regular] = {}
    for one in distinct(root):
        parts = tuple(made[id(part)] for part in parts_of(one))
        match one:
            case Concat() | Union() | Intersection():
                made[id(one)] = type(one)(parts)
            case Complement() | Repeat() | JsonEscaped():
                made[id(one)] = replace(one, part=parts[0])
            case _:
                made[id(one)] = change(one)
    return made[id(root)]


def as_text(root: Regular, place: str | None = None) -> Regular:
    """Return an expression in which the names of special tokens are text, for a complement.

    Raises `UnsupportedError` for a special token given by its id: only the vocabulary knows its name. `place`: the
    position that the error names.
    """

    def text(one: Regular) -> Regular:
        if not isinstance(one, Special):
            return one
        if isinstance(one.name, int):
            raise UnsupportedError(
                f"the token with the id {one.name} cannot be excluded, because the text of its name is not known here; "
                "write the name of the token in the grammar in place of its id",
                place,
            )
        return Literals((one.name,))

    return with_leaves(root, text) if any(isinstance(one, Special) for one in distinct(root)) else root


EMPTY = Concat(())
NEVER = Union(())
ANY_CHAR = Chars(((0, MAX_CODE_POINT),))
ANY_TEXT = Repeat(ANY_CHAR, 0, None)


def chars(*ranges: str | tuple[int, int]) -> Chars:
    """Return a character class.

    Args:
        ranges: Inclusive ranges, as two characters or as pairs of code points: `chars("az", "__")` is `[a-z_]`.
    """
    pairs = sorted((ord(r[0]), ord(r[-1])) if isinstance(r, str) else r for r in ranges)
    merged: list[tuple[int, int]] = []
    for low, high in pairs:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        elif low <= high:
            merged.append((low, high))
    return Chars(tuple(merged))


def literal(*texts: str) -> Literals:
    """Return the language of the given texts."""
    return Literals(tuple(texts))


def cat(*parts: Regular | str) -> Regular:
    """Return the concatenation of parts. A str is a fixed text."""
    made = tuple(literal(p) if isinstance(p, str) else p for p in parts)
    return made[0] if len(made) == 1 else Concat(made)


def either(parts: Iterable[Regular]) -> Regular:
    """Return the alternation of parts; without parts: the empty language."""
    made = tuple(parts)
    return made[0] if len(made) == 1 else Union(made)


def both(*parts: Regular) -> Regular:
    """Return the intersection of one or more parts."""
    return parts[0] if len(parts) == 1 else Intersection(parts)


def repeat(part: Regular, minimum: int = 0, maximum: int | None = None) -> Regular:
    """Return `minimum` to `maximum` repetitions of the part (None: unbounded)."""
    return part if (minimum, maximum) == (1, 1) else Repeat(part, minimum, maximum)


def repeated(part: Regular, least: int, most: int | None) -> Regular:
    """Return `least` to `most` repetitions of the part (None: unbounded).

    If the part is a repetition with a minimum of 0 or 1, as in `(a{0,9}){0,9}`, the counts are multiplied, and the
    result is one repetition, unless the kernel cannot represent its maximum.
    """
    if isinstance(part, Repeat) and part.minimum <= 1:
        highest = None if most is None or part.maximum is None else most * part.maximum
        if highest is None or highest <= _MAX_COUNT:
            return Repeat(part.part, part.minimum * least, highest)
    return Repeat(part, least, most)


def optional(part: Regular) -> Regular:
    """Return the part or the empty text."""
    return Repeat(part, 0, 1)
