"""Matchers of regular parts.

The method `ends` of a matcher returns the indices at which a match that begins at `start` can end, in ascending order.
It counts its steps by calling `spend`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guideway.caching import cached_property
from guideway.errors import RejectedTokenError, UnsatisfiableError
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.recognizer import byte_automaton, has_token_names
from guideway.grammar.regular import Chars, Concat, Literals, Regular, Repeat

if TYPE_CHECKING:
    from guideway._kernel import Automaton

__all__ = ["Characters", "Fixed", "Piece", "Texts", "Walked", "piece_of"]

Spend = Callable[[int], object]  # counts work, in steps


@dataclass(slots=True)
class Fixed:
    """A single text."""

    text: str

    def ends(self, text: str, start: int, spend: Spend) -> Iterable[int]:
        return (start + len(self.text),) if text.startswith(self.text, start) else ()


@dataclass(slots=True)
class Texts:
    """One of a set of texts."""

    texts: frozenset[str]
    lengths: tuple[int, ...]

    def ends(self, text: str, start: int, spend: Spend) -> Iterable[int]:
        left = len(text) - start
        return [start + n for n in self.lengths if n <= left and text[start : start + n] in self.texts]


@dataclass(slots=True)
class Characters:
    """`least` to `most` characters of a class (None: unbounded).

    `points` are sorted code points: the class contains a character if the number of points up to it is odd.
    """

    points: list[int]
    least: int
    most: int | None

    def ends(self, text: str, start: int, spend: Spend) -> Iterable[int]:
        last = len(text) if self.most is None else min(len(text), start + self.most)
        at = start
        while at < last and bisect_right(self.points, ord(text[at])) & 1:
            at += 1
        spend((at - start) >> 4)
        return range(start + self.least, at + 1)


class Walked:
    """The texts of any grammar. A matcher of the kernel reads the text byte by byte."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    @cached_property
    def _kept(self) -> Automaton | None:
        return self._made()

    def _made(self) -> Automaton | None:
        try:
            return byte_automaton(self._grammar)
        except UnsatisfiableError:
            return None

    def ends(self, text: str, start: int, spend: Spend) -> Iterable[int]:
        found: list[int] = []
        automaton = self._made() if has_token_names() else self._kept
        if automaton is None:
            return found
        matcher = automaton.matcher()
        if matcher.is_accepting:
            found.append(start)
        for at in range(start, len(text)):
            try:
                for byte in text[at].encode():
                    matcher.advance(byte)
            except RejectedTokenError:
                break
            spend(at & 7 == 0)
            if matcher.is_accepting:
                found.append(at + 1)
        return found


Piece = Fixed | Texts | Characters | Walked


def piece_of(language: Regular) -> Piece:
    """Return a matcher of a regular language."""
    if isinstance(language, Concat) and not language.parts:
        return Fixed("")
    if isinstance(language, Literals):
        if len(language.texts) == 1:
            return Fixed(language.texts[0])
        return Texts(frozenset(language.texts), tuple(sorted({len(one) for one in language.texts})))
    one = language if isinstance(language, Repeat) else Repeat(language, 1, 1)
    inner, least, most = one.part, one.minimum, one.maximum
    if isinstance(inner, Literals) and len(inner.texts) == 1 and len(inner.texts[0]) == 1:
        inner = Chars(((ord(inner.texts[0]), ord(inner.texts[0])),))
    if isinstance(inner, Chars):
        return Characters([point for low, high in inner.ranges for point in (low, high + 1)], least, most)
    return Walked(leaf(language))
