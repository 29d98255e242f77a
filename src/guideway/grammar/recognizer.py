"""Whether a text fits a grammar: the kernel walks it byte by byte, in time linear in the text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from guideway.errors import UnsatisfiableError
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode

if TYPE_CHECKING:
    from guideway._kernel import Automaton, Vocabulary

__all__ = ["END", "accepts", "byte_automaton", "fits", "is_empty", "single_bytes"]

END = 256
"""The id that ends a text, where ids are bytes."""


def single_bytes(max_states: int | None = None) -> Vocabulary:
    """A vocabulary of single bytes. `max_states`: all that is compiled for it may come to so many, else `LimitExceededError`
    is raised: the same on every machine.
    """
    from guideway._kernel import Vocabulary

    limits = {} if max_states is None else {"max_states": max_states}
    return Vocabulary([*(bytes([b]) for b in range(256)), b""], [END], [], **limits)


_single_bytes = cache(single_bytes)


def byte_automaton(grammar: Grammar, vocabulary: Vocabulary | None = None) -> Automaton:
    """The automaton over single bytes; id 256 ends a text. Raises what `compile` does."""
    from guideway._kernel import Automaton

    return Automaton.compile(vocabulary or _single_bytes(), encode(grammar))


def accepts(automaton: Automaton, text: str) -> bool:
    """Whether an automaton over single bytes takes the whole text."""
    try:
        ids = [*text.encode("utf-8"), END]
    except UnicodeEncodeError:  # a lone surrogate is no character
        return False
    return automaton.matcher().validate(ids) == len(ids)


def fits(grammar: Grammar, text: str) -> bool:
    """Whether the grammar derives the text. Raises `LimitExceededError` as `compile` does."""
    try:
        return accepts(byte_automaton(grammar), text)
    except UnsatisfiableError:
        return False


def is_empty(grammar: Grammar, vocabulary: Vocabulary | None = None) -> bool:
    """Whether the grammar derives no text at all. Raises `LimitExceededError` as `compile` does."""
    try:
        byte_automaton(grammar, vocabulary)
    except UnsatisfiableError:
        return True
    return False
