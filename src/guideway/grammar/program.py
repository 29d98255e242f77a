"""Encodes a grammar as a program for the kernel: 32-bit words, as kernel/grammar/program.h defines.

Grammars with equal words allow the same texts, so a digest of the words is the key of compiled automata. The encoder is
bindings/encode/write_program.cpp; it writes nodes in their order in the grammar.
"""

from __future__ import annotations

from guideway._kernel import ProgramWriter
from guideway.caching import CacheInfo, register
from guideway.errors import ConstraintError
from guideway.grammar.nodes import (
    Alternative,
    Array,
    Cell,
    Grammar,
    Leaf,
    Marked,
    Number,
    Object,
    Property,
    Punctuation,
    Sequence,
)
from guideway.grammar.regular import (
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Special,
    Substrings,
    Union,
)

__all__ = ["constant", "encode", "recently_shared", "shared"]

_MAX_RECENT = 16_384


class _SharedExpressions:
    """The expressions whose encoding is cached. A grammar allows the same texts with and without the cache.

    Attributes:
        writer: Encodes grammars, and caches the encodings. Single expressions cannot be removed from it, so it is
            replaced.
        entries: The number of cached expressions, without constants.
    """

    def __init__(self) -> None:
        self._constants: list[Regular] = []
        self.clear()

    def clear(self) -> None:
        """Remove all expressions except constants."""
        self._kept: list[Regular] = []
        self._renew()

    def _renew(self) -> None:
        """Replace the writer by a new one without the expressions that depend on constraints of users."""
        writer = ProgramWriter(
            (Leaf, Sequence, Alternative, Object, Array, Number, Punctuation, Property, Marked, Cell),
            (Chars, Literals, Concat, Union, Intersection, Complement, Repeat, JsonEscaped, Dfa, Special, Substrings),
        )
        for expression in (*self._constants, *self._kept):
            writer.share(expression)
        self.writer, self._recent = writer, 0

    @property
    def entries(self) -> int:
        return len(self._kept) + self._recent

    def add(self, expression: Regular) -> None:
        """Add an expression that does not depend on constraints of users."""
        self._kept.append(expression)
        self.writer.share(expression)

    def add_recent(self, expression: Regular) -> None:
        """Add an expression that depends on a constraint. If there are too many of these, all are removed first."""
        if self._recent >= _MAX_RECENT:
            self._renew()
        self._recent += 1
        self.writer.share(expression)

    def add_constant(self, expression: Regular) -> None:
        """Add an expression that is never removed."""
        self._constants.append(expression)
        self.writer.share(expression)


_shared = _SharedExpressions()
register(f"{__name__}.shared", _shared.clear, lambda: CacheInfo(_shared.entries, _MAX_RECENT))


def encode(grammar: Grammar) -> bytes:
    """Encode a grammar as little-endian 32-bit words.

    Raises:
        InvalidConstraintError: A node is reserved but not defined.
        LimitExceededError: A number in a node does not fit into a word.
    """
    try:
        return _shared.writer.write(grammar.nodes, grammar.root, grammar.first)
    except ConstraintError as error:
        raise type(error)(str(error), None if error.node is None else grammar.place(error.node)) from None


def shared(expression: Regular) -> Regular:
    """Cache the encoding of an expression that many grammars use. Returns the expression.

    It must not depend on constraints of users, because it is removed only if all caches are cleared.
    """
    _shared.add(expression)
    return expression


def recently_shared(expression: Regular) -> Regular:
    """Cache the encoding of an expression that depends on a constraint of a user. Returns the expression.

    After `_MAX_RECENT` such expressions, all of them are removed from the cache.
    """
    _shared.add_recent(expression)
    return expression


def constant(expression: Regular) -> Regular:
    """Cache the encoding of a constant of a module, also after the caches are cleared. Returns the expression."""
    _shared.add_constant(expression)
    return expression
