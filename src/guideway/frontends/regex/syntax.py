"""The syntax tree of a pattern.

A part is a node of the tree. An assertion (`^`, `$`, `\\b`, lookaround) is a part that matches no character, but
depends on the surrounding text. While a pattern is parsed, parts without assertions are merged to `Plain` parts, whose
language is known, so trees are small. In the trees of `parse_tree`, they are not merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from guideway.caching import cached
from guideway.frontends.regex.character_ranges import Ranges
from guideway.grammar.regular import ANY_CHAR, ANY_TEXT, EMPTY, NEVER, Chars, Concat, Literals, Regular, Union, repeated

__all__ = [
    "ANYTHING",
    "AT_END",
    "AT_START",
    "MAX_COUNT",
    "NOTHING",
    "AlternationPart",
    "Anchor",
    "ConcatPart",
    "Lookaround",
    "NamedGroup",
    "Part",
    "Plain",
    "RepeatPart",
    "characters",
    "choice",
    "either",
    "joined",
    "merged",
    "series",
    "times",
    "width",
]

MAX_COUNT = 4_294_967_294
"""The maximum repetition count, which is also that of Python's `re`. Larger lengths of texts are not distinguished."""


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """A part without assertions, as its language.

    Attributes:
        language: The texts that it matches.
        least: A lower bound of the length of these texts, in characters. It is 0 exactly if the empty text is one of
            them.
        most: An upper bound of the length; None: unbounded or unknown. If the length can exceed `MAX_COUNT`, both
            bounds can be smaller than the true ones.
    """

    language: Regular
    least: int
    most: int | None


@dataclass(frozen=True, slots=True, eq=False)
class ConcatPart:
    """A concatenation."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AlternationPart:
    """An alternation."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RepeatPart:
    """A repetition of a part.

    Attributes:
        part: The part.
        least: The minimum number of repetitions.
        most: The maximum number of repetitions; None: unbounded.
        at: The position in the pattern.
        lazy: Whether the repetition prefers fewer repetitions. It decides which match and which captures are found, but
            does not change the language.
        empty: Whether one repetition after the first `least` may match the empty text. It is then the last one.
    """

    part: Part
    least: int
    most: int | None
    at: int
    lazy: bool = False
    empty: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """An anchor: it matches at the start of the text if `start` is true, otherwise at its end."""

    start: bool


@dataclass(frozen=True, slots=True, eq=False)
class Lookaround:
    """A lookaround.

    Attributes:
        part: The inner pattern.
        ahead: Whether a match of the inner pattern must follow the position. If not, it must precede the position.
        negative: Whether there must be no such match.
        at: The position in the pattern.
    """

    part: Part
    ahead: bool
    negative: bool
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class NamedGroup:
    """A named group. Only the trees of `parse_tree` have it."""

    part: Part
    name: str


Part = Plain | ConcatPart | AlternationPart | RepeatPart | Anchor | Lookaround | NamedGroup

NOTHING = Plain(EMPTY, 0, 0)
ANYTHING = Plain(ANY_TEXT, 0, None)
AT_START, AT_END = Anchor(True), Anchor(False)


@cached(256, characters=1 << 16, size=len)
def characters(ranges: Ranges) -> Plain:
    """Return the part that matches one character of a class, without surrogates."""
    kept = tuple(r for r in ranges if not 0xD800 <= r[0] <= r[1] <= 0xDFFF)
    if not kept:
        return Plain(NEVER, 1, 1)
    if len(kept) == 1 and kept[0][0] == kept[0][1]:
        return Plain(Literals((chr(kept[0][0]),)), 1, 1)
    return Plain(ANY_CHAR if kept == ANY_CHAR.ranges else Chars(kept), 1, 1)


def series(parts: Iterable[Part]) -> Part:
    """Return the concatenation of parts. Adjacent parts without assertions are merged."""
    made: list[Part] = []
    run: list[Plain] = []
    for part in parts:
        for one in part.parts if isinstance(part, ConcatPart) else (part,):
            if isinstance(one, Plain):
                run.append(one)
                continue
            if run:
                made.append(joined(run))
                run = []
            made.append(one)
    if run:
        made.append(joined(run))
    if not made:
        return NOTHING
    return made[0] if len(made) == 1 else ConcatPart(tuple(made))


def joined(parts: list[Plain]) -> Plain:
    """Return the concatenation of one or more parts without assertions."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Regular] = []
    word: list[str] = []
    for part in parts:
        language = part.language
        for one in language.parts if isinstance(language, Concat) else (language,):
            if isinstance(one, Literals) and len(one.texts) == 1:
                word.append(one.texts[0])
                continue
            if word:
                flat.append(Literals(("".join(word),)))
                word = []
            flat.append(one)
    if word:
        flat.append(Literals(("".join(word),)))
    least = _bounded(sum(part.least for part in parts))
    most = _added([part.most for part in parts])
    if any(one is NEVER for one in flat):
        return Plain(NEVER, least, most)
    return Plain(flat[0] if len(flat) == 1 else Concat(tuple(flat)), least, most)


def _bounded(count: int) -> int:
    return min(count, MAX_COUNT)


def _added(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def choice(parts: list[Part]) -> Part:
    """Return the alternation of one or more parts."""
    if len(parts) == 1:
        return parts[0]
    plain = [part for part in parts if isinstance(part, Plain)]
    return either(plain) if len(plain) == len(parts) else AlternationPart(tuple(parts))


def either(plain: list[Plain]) -> Plain:
    """Return the alternation of one or more parts without assertions."""
    if len(plain) == 1:
        return plain[0]
    flat: list[Regular] = []
    texts: list[str] = []
    for part in plain:
        language = part.language
        for one in language.parts if isinstance(language, Union) else (language,):
            if isinstance(one, Literals):
                texts += one.texts
            else:
                flat.append(one)
    if any(one is EMPTY for one in flat):
        texts.append("")
        flat = [one for one in flat if one is not EMPTY]
    if texts:
        flat.append(Literals(tuple(dict.fromkeys(texts))))
    mosts = [part.most for part in plain]
    most = None if None in mosts else max(most for most in mosts if most is not None)
    return Plain(flat[0] if len(flat) == 1 else Union(tuple(flat)), min(part.least for part in plain), most)


def times(part: Part, least: int, most: int | None, at: int) -> Part:
    """Return `least` to `most` (None: unbounded) repetitions of a part. `at` is the position in the pattern."""
    if most == 0:
        return NOTHING
    if (least, most) == (1, 1):
        return part
    if not isinstance(part, Plain):
        return choice([part, NOTHING]) if (least, most) == (0, 1) else RepeatPart(part, least, most, at)
    longest = None if most is None or part.most is None else _bounded(part.most * most)
    if part.language is NEVER:
        return Plain(NEVER, part.least, part.most) if least else NOTHING
    fewest, longest = _bounded(part.least * least), 0 if part.most == 0 else longest
    return Plain(repeated(part.language, least, most), fewest, longest)


def merged(part: Part) -> Part:
    """Return a tree of `parse_tree` with its parts without assertions merged."""
    # The recursion depth is bounded: the parser limits the nesting of groups.
    match part:
        case ConcatPart(parts):
            return series(map(merged, parts))
        case AlternationPart(parts):
            return choice(list(map(merged, parts)))
        case RepeatPart(inner, least, most, at):
            return times(merged(inner), least, most, at)
        case NamedGroup(inner):
            return merged(inner)
        case Lookaround(inner, ahead, negative, at):
            return Lookaround(merged(inner), ahead, negative, at)
        case _:
            return part


def width(part: Part) -> tuple[int, int | None]:
    """Return a lower and an upper bound of the length of the texts that a part matches, as `Plain` has them."""
    # The recursion depth is bounded: the parser limits the nesting of groups.
    match part:
        case Plain(_, least, most):
            return least, most
        case ConcatPart(parts):
            widths = [width(one) for one in parts]
            return _bounded(sum(least for least, _ in widths)), _added([most for _, most in widths])
        case AlternationPart(parts):
            widths = [width(one) for one in parts]
            mosts = [most for _, most in widths]
            longest = None if None in mosts else max(most for most in mosts if most is not None)
            return min(least for least, _ in widths), longest
        case RepeatPart(inner, least, most):
            low, high = width(inner)
            return _bounded(low * least), 0 if high == 0 else None if high is None or most is None else high * most
        case NamedGroup(inner):
            return width(inner)
        case _:
            return 0, 0
