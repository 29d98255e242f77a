"""A grammar as the kernel takes it: one flat list of 32-bit words, laid out as kernel/include/guideway/program.h says.

The words are the content of a constraint: two grammars with equal words allow the same texts, so their digest is the
key of compiled automata. They are written by bindings/write_program.cpp, node by node as they stand in the grammar.
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
from guideway.grammar.regular import Both, Cat, Chars, Either, Graph, Literals, Not, Regular, Repeat, Special, Spelled

__all__ = ["encode", "shared"]

_writer = ProgramWriter(
    (Leaf, Sequence, Alternative, Object, Array, Number, Punctuation, Property, Marked, Cell),
    (Chars, Literals, Cat, Either, Both, Not, Repeat, Spelled, Graph, Special),
)


def encode(grammar: Grammar) -> bytes:
    """The grammar as little-endian 32-bit words.

    Raises `InvalidConstraintError` for a node that was never defined, `LimitExceededError` for one that words cannot hold.
    """
    try:
        return _writer.write(grammar.nodes, grammar.root, grammar.first)
    except ConstraintError as error:
        raise type(error)(str(error), None if error.node is None else grammar.place(error.node)) from None


def shared(expression: Regular) -> Regular:
    """The same expression, from now on written in one piece: for the few that most grammars hold."""
    _writer.share(expression)
    return expression
