"""Translates the syntax tree of a pattern to the language of the texts that it matches.

The tree is processed from its end. For each part, the language of the rest of the text from this part on is computed
from the language of the rest after it. A lookahead `(?=x)` is then an intersection, and `(?!x)` an intersection with a
complement. Because of `^`, each language is computed twice: for the start of the text, and for later positions.

Lookbehinds near the start of the pattern become intersections, too (`_Languages.in_order`). Parts with other
lookbehinds, or with assertions that are repeated or inside a lookbehind, are translated to a DFA (`lookaround.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from guideway.frontends.regex.lookaround import TooLarge, to_dfa
from guideway.frontends.regex.syntax import (
    ANYTHING,
    AlternationPart,
    Anchor,
    ConcatPart,
    Lookaround,
    Part,
    Plain,
    choice,
    either,
    joined,
    series,
)
from guideway.grammar.regular import ANY_CHAR, ANY_TEXT, EMPTY, NEVER, Complement, Dfa, Intersection, Regular, Repeat

__all__ = ["lower"]

_SOMETHING = Repeat(ANY_CHAR, 1, None)


def lower(part: Part, *, search: bool, too_large: TooLarge) -> Regular:
    """Return the language of a syntax tree.

    Args:
        part: The syntax tree, or a part of one.
        search: Whether to return the texts that contain a match, instead of the texts that the part matches completely.
        too_large: Is called with a message and a position in the pattern if a limit is exceeded. It must raise an
            error.
    """
    branches = part.parts if isinstance(part, AlternationPart) else (part,)
    if search:
        branches = tuple(series([ANYTHING, one, ANYTHING]) for one in branches)
    whole = choice(list(branches))
    if isinstance(whole, Plain):
        return whole.language
    languages = _Languages(too_large)
    return languages.either([languages.whole(one) for one in branches]).language


class _NotInOrder(Exception):
    """An assertion is in a position that needs a DFA."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rest:
    """The language of the rest of the text, if it begins at the start of the text (`first`) or later (`later`)."""

    first: Plain
    later: Plain


_ALL, _END = Plain(ANY_TEXT, 0, None), Plain(EMPTY, 0, 0)
_NONE = Plain(NEVER, 1, 1)


class _Languages:
    """Translates parts to languages.

    The attribute `least` of the resulting `Plain` objects is 0 if the language contains the empty text. Other values
    say only that it does not.
    """

    def __init__(self, too_large: TooLarge) -> None:
        self._too_large = too_large

    def whole(self, part: Part) -> Plain:
        """Return the language that a part matches completely."""
        # The recursion depth is bounded: the parser limits the nesting of groups with assertions.
        parts: list[Part] = list(part.parts) if isinstance(part, ConcatPart) else [part]
        if len(parts) > 1 and parts[0] is ANYTHING and isinstance(parts[1], Anchor) and parts[1].start:
            parts = parts[1:]
        made, begun = _ALL, 0
        # lookaheads at the start of the text are conditions on the whole text
        while begun < len(parts) and isinstance(parts[begun], (Anchor, Lookaround)):
            one = parts[begun]
            if isinstance(one, Lookaround) and one.ahead:
                made = self.both(made, self.looked(one, self.whole(series([one.part, ANYTHING]))))
            elif not (isinstance(one, Anchor) and one.start):
                break
            begun += 1
        parts = parts[begun:]
        rest = series(parts)
        try:
            language = self.in_order(parts)
        except _NotInOrder:
            graph = to_dfa(rest, self._too_large)
            empty = isinstance(graph, Dfa) and graph.states[0][0]
            language = Plain(graph, 0 if empty else 1, None)
        return self.both(made, language)

    def in_order(self, parts: list[Part]) -> Plain:
        """Return the language that a sequence of parts matches completely, without a DFA.

        Raises `_NotInOrder` if a lookbehind is inside another part, or follows any part but parts without assertions,
        `^` and lookbehinds. Also raises it if an assertion is repeated or inside a lookbehind.
        """
        before = _END
        for at, one in enumerate([*parts, None]):
            if isinstance(one, Plain):
                before = self.joined(before, one)
            elif isinstance(one, Anchor) and one.start:
                before = _END if before.least == 0 else _NONE
            elif isinstance(one, Lookaround) and not one.ahead:
                before = self.both(before, self.looked(one, self.joined(_ALL, self.plain(one.part))))
            else:
                return self.after(before, self.rest(series(parts[at:]), _Rest(_END, _END)))
        raise TypeError(parts)

    def rest(self, part: Part, rest: _Rest) -> _Rest:
        """Return the language of the rest of the text from a part on, given the language of the rest after it."""
        # The recursion depth is bounded: the parser limits the nesting of groups with assertions.
        match part:
            case Plain():
                later = self.joined(part, rest.later)
                return _Rest(self.after(part, rest) if part.least == 0 else later, later)
            case ConcatPart(parts):
                for one in reversed(parts):
                    rest = self.rest(one, rest)
                return rest
            case AlternationPart(parts):
                rests = [self.rest(one, rest) for one in parts]
                later = self.either([one.later for one in rests])
                same = all(one.first is one.later for one in rests)
                return _Rest(later if same else self.either([one.first for one in rests]), later)
            case Anchor(start):
                if start:
                    return _Rest(rest.first, _NONE)
                return _Rest(*(_END if one.least == 0 else _NONE for one in (rest.first, rest.later)))
            case Lookaround(inner, True):
                seen = self.rest(inner, _Rest(_ALL, _ALL))
                later = self.both(self.looked(part, seen.later), rest.later)
                if seen.first is seen.later and rest.first is rest.later:
                    return _Rest(later, later)
                return _Rest(self.both(self.looked(part, seen.first), rest.first), later)
            case _:
                raise _NotInOrder

    def plain(self, part: Part) -> Plain:
        """Return a part without assertions. Raises `_NotInOrder` for other parts."""
        if not isinstance(part, Plain):
            raise _NotInOrder
        return part

    def looked(self, look: Lookaround, language: Plain) -> Plain:
        """Return the language, or its complement if the lookaround is negative."""
        if not look.negative:
            return language
        if language.language is ANY_TEXT:
            return _NONE
        return Plain(Complement(language.language), int(language.least == 0), None)

    def after(self, part: Plain, rest: _Rest) -> Plain:
        """Return the language of a part at the start of the text, followed by `rest`."""
        if part.least or rest.first is rest.later:
            return self.joined(part, rest.later)
        if part.language is EMPTY:
            return rest.first
        some = part
        if rest.later.language is not NEVER:
            language = _SOMETHING if part.language is ANY_TEXT else Intersection((part.language, _SOMETHING))
            some = Plain(language, 1, part.most)
        return self.either([self.joined(some, rest.later), rest.first])

    def joined(self, left: Plain, right: Plain) -> Plain:
        if left.language is NEVER or right.language is NEVER:
            return _NONE
        if left.language is EMPTY:
            return right
        if right.language is EMPTY:
            return left
        if left.language is ANY_TEXT and right.language is ANY_TEXT:
            return _ALL
        return joined([left, right])

    def both(self, left: Plain, right: Plain) -> Plain:
        for one, other in ((left, right), (right, left)):
            if one.language is ANY_TEXT or other.language is NEVER:
                return other
            if one.language is EMPTY:
                return _END if other.least == 0 else _NONE
        return Plain(Intersection((left.language, right.language)), max(left.least, right.least), None)

    def either(self, parts: list[Plain]) -> Plain:
        kept = list({id(one.language): one for one in parts if one.language is not NEVER}.values())
        return either(kept) if kept else _NONE
