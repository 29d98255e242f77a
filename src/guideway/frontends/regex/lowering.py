"""The tree of a pattern -> the language of the texts that it matches.

A part is read from its end: given what may follow it, what texts may follow what stands before it? A lookahead is then
an intersection, `(?!x)` one with a complement, and the kernel takes both as they are. What follows depends on whether
anything has been read yet, for the sake of `^`; so it is a pair. Assertions that look back stand at a place that is
reached from the start of the text by parts without assertions, or else the pattern is drawn out as an automaton
(`drawing.py`), as it is where an assertion is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from guideway.frontends.regex.lookaround import TooLarge, draw
from guideway.frontends.regex.syntax import (
    ANYTHING,
    Choice,
    Edge,
    Look,
    Part,
    Plain,
    Series,
    choice,
    either,
    joined,
    series,
)
from guideway.grammar.regular import ANY_CHAR, ANY_TEXT, EMPTY, NEVER, Both, Graph, Not, Regular, Repeat

__all__ = ["lower"]

_SOMETHING = Repeat(ANY_CHAR, 1, None)


def lower(part: Part, *, search: bool, too_large: TooLarge) -> Regular:
    """The texts that a part matches as a whole, or (`search`) somewhere.

    `too_large` raises `LimitExceededError` at a place in the pattern, where it is too large to be drawn out.
    """
    branches = part.parts if isinstance(part, Choice) else (part,)
    if search:
        branches = tuple(series([ANYTHING, one, ANYTHING]) for one in branches)
    whole = choice(list(branches))
    if isinstance(whole, Plain):
        return whole.language
    languages = _Languages(too_large)
    return languages.either([languages.whole(one) for one in branches]).language


class _NotInOrder(Exception):
    """An assertion stands where reading from the end does not reach it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rest:
    """What may follow where nothing has been read yet, and elsewhere."""

    first: Plain
    later: Plain


_ALL, _END = Plain(ANY_TEXT, 0, None), Plain(EMPTY, 0, 0)
_NONE = Plain(NEVER, 1, 1)


class _Languages:
    """Lowers parts; `least` of the languages it makes says only whether they hold the empty text (0)."""

    def __init__(self, too_large: TooLarge) -> None:
        self._too_large = too_large

    def whole(self, part: Part) -> Plain:
        """The texts that a part matches as a whole."""
        # Recursion is bounded: the parser limits how deep groups with assertions nest.
        parts: list[Part] = list(part.parts) if isinstance(part, Series) else [part]
        if len(parts) > 1 and parts[0] is ANYTHING and isinstance(parts[1], Edge) and parts[1].start:
            parts = parts[1:]
        made, begun = _ALL, 0
        while begun < len(parts) and isinstance(parts[begun], (Edge, Look)):  # the first ones apply to the whole text
            one = parts[begun]
            if isinstance(one, Look) and one.ahead:
                made = self.both(made, self.looked(one, self.whole(series([one.part, ANYTHING]))))
            elif not (isinstance(one, Edge) and one.start):
                break
            begun += 1
        parts = parts[begun:]
        rest = series(parts)
        try:
            language = self.in_order(parts)
        except _NotInOrder:
            graph = draw(rest, self._too_large)
            empty = isinstance(graph, Graph) and graph.states[0][0]
            language = Plain(graph, 0 if empty else 1, None)
        return self.both(made, language)

    def in_order(self, parts: list[Part]) -> Plain:
        """The same, where assertions that look back come before the others, and none is repeated."""
        before = _END
        for at, one in enumerate([*parts, None]):
            if isinstance(one, Plain):
                before = self.joined(before, one)
            elif isinstance(one, Edge) and one.start:
                before = _END if before.least == 0 else _NONE
            elif isinstance(one, Look) and not one.ahead:
                before = self.both(before, self.looked(one, self.joined(_ALL, self.plain(one.part))))
            else:
                return self.after(before, self.rest(series(parts[at:]), _Rest(_END, _END)))
        raise TypeError(parts)

    def rest(self, part: Part, rest: _Rest) -> _Rest:
        """What may follow in front of a part, given what may follow it."""
        # Recursion is bounded: the parser limits how deep groups with assertions nest.
        match part:
            case Plain():
                later = self.joined(part, rest.later)
                return _Rest(self.after(part, rest) if part.least == 0 else later, later)
            case Series(parts):
                for one in reversed(parts):
                    rest = self.rest(one, rest)
                return rest
            case Choice(parts):
                rests = [self.rest(one, rest) for one in parts]
                later = self.either([one.later for one in rests])
                same = all(one.first is one.later for one in rests)
                return _Rest(later if same else self.either([one.first for one in rests]), later)
            case Edge(start):
                if start:
                    return _Rest(rest.first, _NONE)
                return _Rest(*(_END if one.least == 0 else _NONE for one in (rest.first, rest.later)))
            case Look(inner, True):
                seen = self.rest(inner, _Rest(_ALL, _ALL))
                later = self.both(self.looked(part, seen.later), rest.later)
                if seen.first is seen.later and rest.first is rest.later:
                    return _Rest(later, later)
                return _Rest(self.both(self.looked(part, seen.first), rest.first), later)
            case _:
                raise _NotInOrder

    def plain(self, part: Part) -> Plain:
        if not isinstance(part, Plain):
            raise _NotInOrder
        return part

    def looked(self, look: Look, language: Plain) -> Plain:
        if not look.negative:
            return language
        if language.language is ANY_TEXT:
            return _NONE
        return Plain(Not(language.language), int(language.least == 0), None)

    def after(self, part: Plain, rest: _Rest) -> Plain:
        """The part at the start of the text, and what may follow it."""
        if part.least or rest.first is rest.later:
            return self.joined(part, rest.later)
        if part.language is EMPTY:
            return rest.first
        some = part
        if rest.later.language is not NEVER:
            language = _SOMETHING if part.language is ANY_TEXT else Both((part.language, _SOMETHING))
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
        return Plain(Both((left.language, right.language)), max(left.least, right.least), None)

    def either(self, parts: list[Plain]) -> Plain:
        kept = list({id(one.language): one for one in parts if one.language is not NEVER}.values())
        return either(kept) if kept else _NONE
