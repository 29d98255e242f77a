"""Tests whether a text belongs to a grammar: the kernel reads it byte by byte.

In a text, a special token is its name. A grammar that gives a special token by its id does not have the name, so
`token_names` supplies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from guideway import background
from guideway.arguments import shortened
from guideway.caching import cached
from guideway.errors import ConstraintError, InvalidConstraintError, UnsatisfiableError
from guideway.grammar.nodes import Grammar, Leaf
from guideway.grammar.program import encode
from guideway.grammar.regular import Literals, Regular, Special, distinct, with_leaves

if TYPE_CHECKING:
    from guideway._kernel import Automaton, KernelVocabulary

__all__ = [
    "END",
    "TokenNameError",
    "accepts",
    "byte_automaton",
    "fits",
    "has_token_names",
    "is_empty",
    "single_bytes",
    "token_names",
    "with_place",
]

T = TypeVar("T")

END = 256
"""The id of the end-of-text token in the vocabulary of single bytes."""

_names: ContextVar[Mapping[int, str] | None] = ContextVar("token_names", default=None)


class TokenNameError(InvalidConstraintError):
    """A text cannot be read, because the name of a special token that a grammar gives by its id is not known."""


@contextmanager
def token_names(names: Mapping[int, str]) -> Iterator[None]:
    """Supply the names of special tokens by id to `byte_automaton`, within the `with` statement."""
    before = _names.set(names)
    try:
        yield
    finally:
        _names.reset(before)


def has_token_names() -> bool:
    """Return whether names are supplied. The results of `byte_automaton` then depend on them: do not cache these."""
    return _names.get() is not None


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

    Raises:
        TokenNameError: The grammar gives a special token by its id, and `token_names` does not supply its name.
    """
    from guideway._kernel import Automaton

    table = vocabulary or _single_bytes()
    return _with_names(grammar, _names.get() or {}, lambda program: Automaton.compile(table, program))


def _with_names(grammar: Grammar, names: Mapping[int, str], function: Callable[[bytes], T]) -> T:
    """Call a function of the kernel for a grammar, with special tokens given by ids as their names."""
    program = encode(grammar)
    try:
        return background.call(lambda: function(program))
    except InvalidConstraintError:  # a vocabulary of bytes has no special tokens, so the kernel refuses their ids
        named = _named(grammar, names)
        if named is grammar:
            raise
    program = encode(named)
    return background.call(lambda: function(program))


def _named(grammar: Grammar, names: Mapping[int, str]) -> Grammar:
    """Return a grammar in which special tokens given by ids are their names as text.

    Returns the same grammar if it has none. Raises `TokenNameError` if a name is not known.
    """

    def text(one: Regular) -> Regular:
        if not isinstance(one, Special) or isinstance(one.name, str):
            return one
        if one.name not in names:
            raise TokenNameError(
                f"the name of the token with the id {one.name} is not known here, so no text can be read; "
                "write the name of the token in the grammar in place of its id"
            )
        return Literals((names[one.name],))

    has_ids = any(_has_id(node.text) for node in grammar.nodes if isinstance(node, Leaf))
    nodes = [Leaf(with_leaves(node.text, text)) if isinstance(node, Leaf) else node for node in grammar.nodes]
    return replace(grammar, nodes=nodes) if has_ids else grammar


def _has_id(language: Regular) -> bool:
    return any(isinstance(one, Special) and isinstance(one.name, int) for one in distinct(language))


def with_place(error: ConstraintError, grammar: Grammar | None) -> ConstraintError:
    """Return an error of the kernel with the JSON Pointer of its place in the schema from which a grammar was made.

    The kernel reports the number of a node. Returns the same error if the node or its JSON Pointer is not known.
    """
    place = None if error.node is None or grammar is None else grammar.place(error.node)
    return error if place is None else type(error)(f"{error} (at {shortened(place) or 'the whole schema'})", place)


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

    table = vocabulary or _single_bytes()
    return _with_names(grammar, _AnyName(), lambda program: Automaton.is_empty(table, program))


class _AnyName(dict[int, str]):
    """A name for every id."""

    def __missing__(self, token_id: int) -> str:
        return f"<[{token_id}]>"

    def __contains__(self, token_id: object) -> bool:
        return True
