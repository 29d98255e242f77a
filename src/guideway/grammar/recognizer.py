"""Tests whether a text belongs to a grammar: the kernel reads it byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guideway import background
from guideway.caching import cached
from guideway.errors import ConstraintError, UnsatisfiableError
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode

if TYPE_CHECKING:
    from guideway._kernel import Automaton, KernelVocabulary

__all__ = ["END", "accepts", "byte_automaton", "fits", "is_empty", "single_bytes", "with_place"]

END = 256
"""The id of the end-of-text token in the vocabulary of single bytes."""


def single_bytes(max_states: int | None = None) -> KernelVocabulary:
    """Return a new vocabulary whose tokens are the single bytes. The id of a byte is its value.

    Args:
        max_states: The maximum number of automaton states of all grammars that are compiled for this vocabulary,
            together. If more are needed, operations on these automata raise `LimitExceededError`, on every computer
            alike. None: no such limit.
    """
    from guideway._kernel import KernelVocabulary

    limits = {} if max_states is None else {"max_states": max_states}
    return KernelVocabulary([*(bytes([b]) for b in range(256)), b""], [END], [], **limits)


_single_bytes = cached(1)(single_bytes)


def byte_automaton(grammar: Grammar, vocabulary: KernelVocabulary | None = None) -> Automaton:
    """Compile a grammar for single bytes. The id `END` ends a text. Raises the errors of `guideway.compile`.

    Args:
        grammar: The grammar.
        vocabulary: A result of `single_bytes`; None: a vocabulary that all callers share.
    """
    from guideway._kernel import Automaton

    table, program = vocabulary or _single_bytes(), encode(grammar)
    return background.call(lambda: Automaton.compile(table, program))


def with_place(error: ConstraintError, grammar: Grammar | None) -> ConstraintError:
    """Return an error of the kernel with the JSON Pointer of its place in the schema from which a grammar was made.

    The kernel reports the number of a node. Returns the same error if the node or its JSON Pointer is not known.
    """
    place = None if error.node is None or grammar is None else grammar.place(error.node)
    return error if place is None else type(error)(f"{error} (at {place or 'the whole schema'})", place)


def accepts(automaton: Automaton, text: str) -> bool:
    """Return whether an automaton of `byte_automaton` accepts a text. False for a text with a lone surrogate."""
    try:
        ids = [*text.encode("utf-8"), END]
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return automaton.matcher().validate(ids) == len(ids)


def fits(grammar: Grammar, text: str) -> bool:
    """Return whether the grammar derives a text. Raises the errors of `byte_automaton`, except `UnsatisfiableError`."""
    try:
        return accepts(byte_automaton(grammar), text)
    except UnsatisfiableError:
        return False


def is_empty(grammar: Grammar, vocabulary: KernelVocabulary | None = None) -> bool:
    """Return whether the grammar derives no text. Raises `LimitExceededError` if this needs too much work."""
    from guideway._kernel import Automaton

    table, program = vocabulary or _single_bytes(), encode(grammar)
    return background.call(lambda: Automaton.is_empty(table, program))
