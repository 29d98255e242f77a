"""Encodes a grammar as a program for the kernel: 32-bit words, as kernel/include/guideway/program.h defines.

Grammars with equal words allow the same texts, so a digest of the words is the key of compiled automata. The encoder is
bindings/write_program.cpp; it writes nodes in their order in the grammar.
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
    Union,
)

__all__ = ["constant", "encode", "shared"]

_MAX_SHARED = 16_384


class _SharedExpressions:
    """The expressions whose encoding is cached. Grammars that were lowered before `clear` are encoded in full."""

    def __init__(self) -> None:
        self._constants: list[Regular] = []
        self.clear()

    def clear(self) -> None:
        """Remove all expressions except constants."""
        writer = ProgramWriter(
            (Leaf, Sequence, Alternative, Object, Array, Number, Punctuation, Property, Marked, Cell),
            (Chars, Literals, Concat, Union, Intersection, Complement, Repeat, JsonEscaped, Dfa, Special),
        )
        for expression in self._constants:
            writer.share(expression)
        self.writer, self.entries = writer, 0

    def add(self, expression: Regular) -> None:
        """Add an expression. All others are removed first if there are too many."""
        if self.entries >= _MAX_SHARED:
            self.clear()
        self.entries += 1
        self.writer.share(expression)

    def add_constant(self, expression: Regular) -> None:
        """Add an expression that is never removed."""
        self._constants.append(expression)
        self.writer.share(expression)


_shared = _SharedExpressions()
register(f"{__name__}.shared", _shared.clear, lambda: CacheInfo(_shared.entries, _MAX_SHARED))


def encode(grammar: Grammar) -> bytes:
    """Encode a grammar as little-endian 32-bit words.

    Raises:
        InvalidConstraintError: A node is reserved but not defined.
        LimitExceededError: A node exceeds the range of words.
    """
    try:
        return _shared.writer.write(grammar.nodes, grammar.root, grammar.first)
    except ConstraintError as error:
        raise type(error)(str(error), None if error.node is None else grammar.place(error.node)) from None


def shared(expression: Regular) -> Regular:
    """Mark an expression that many grammars use, so that its encoding is cached. Returns the expression."""
    _shared.add(expression)
    return expression


def constant(expression: Regular) -> Regular:
    """Like `shared`, for constants of modules: the encoding remains when caches are cleared."""
    _shared.add_constant(expression)
    return expression
