"""Encodes a grammar as a program for the kernel: 32-bit words, as kernel/include/guideway/program.h defines.

Grammars with equal words allow the same texts, so a digest of the words is the key of compiled automata. The encoder is
bindings/write_program.cpp; it writes nodes in their order in the grammar.
"""

from __future__ import annotations

from guideway._kernel import ProgramWriter
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

__all__ = ["encode", "shared"]

_writer = ProgramWriter(
    (Leaf, Sequence, Alternative, Object, Array, Number, Punctuation, Property, Marked, Cell),
    (Chars, Literals, Concat, Union, Intersection, Complement, Repeat, JsonEscaped, Dfa, Special),
)


def encode(grammar: Grammar) -> bytes:
    """Encode a grammar as little-endian 32-bit words.

    Raises:
        InvalidConstraintError: A node is reserved but not defined.
        LimitExceededError: A node exceeds the range of words.
    """
    try:
        return _writer.write(grammar.nodes, grammar.root, grammar.first)
    except ConstraintError as error:
        raise type(error)(str(error), None if error.node is None else grammar.place(error.node)) from None


def shared(expression: Regular) -> Regular:
    """Mark an expression that many grammars use, so that its encoding is cached. Returns the expression."""
    _writer.share(expression)
    return expression
