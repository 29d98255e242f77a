"""Recognises texts of a grammar: the kernel walks the text byte by byte, in linear time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guideway.caching import cached
from guideway.errors import UnsatisfiableError
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode

if TYPE_CHECKING:
    from guideway._kernel import Automaton, KernelVocabulary

__all__ = ["END", "accepts", "byte_automaton", "fits", "is_empty", "single_bytes"]

END = 256
"""The end-of-text id of the byte vocabulary."""


def single_bytes(max_states: int | None = None) -> KernelVocabulary:
    """Return a vocabulary of single bytes.

    `max_states`: maximum number of automaton states for everything compiled for it; beyond it `LimitExceededError` is
    raised. The count does not depend on the machine.
    """
    from guideway._kernel import KernelVocabulary

    limits = {} if max_states is None else {"max_states": max_states}
    return KernelVocabulary([*(bytes([b]) for b in range(256)), b""], [END], [], **limits)


_single_bytes = cached(1)(single_bytes)


def byte_automaton(grammar: Grammar, vocabulary: KernelVocabulary | None = None) -> Automaton:
    """Compile a grammar for single bytes. Id 256 ends a text. Raises what `compile` does."""
    from guideway._kernel import Automaton

    return Automaton.compile(vocabulary or _single_bytes(), encode(grammar))


def accepts(automaton: Automaton, text: str) -> bool:
    """Return whether a byte automaton accepts a text."""
    try:
        ids = [*text.encode("utf-8"), END]
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return automaton.matcher().validate(ids) == len(ids)


def fits(grammar: Grammar, text: str) -> bool:
    """Return whether the grammar derives a text. Raises `LimitExceededError` as `compile` does."""
    try:
        return accepts(byte_automaton(grammar), text)
    except UnsatisfiableError:
        return False


def is_empty(grammar: Grammar, vocabulary: KernelVocabulary | None = None) -> bool:
    """Return whether the grammar derives no text. Raises `LimitExceededError` as `compile` does."""
    from guideway._kernel import Automaton

    return Automaton.is_empty(vocabulary or _single_bytes(), encode(grammar))
