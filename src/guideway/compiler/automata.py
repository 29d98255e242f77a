"""compile: a constraint and a vocabulary become an automaton."""

from __future__ import annotations

import hashlib

from .. import sources
from .._kernel import Automaton
from ..errors import ConstraintError
from ..grammar.nodes import Grammar
from ..grammar.program import encode
from ..vocabulary import Tokenizer, Vocabulary
from .cache import cache as _automata

__all__ = ["compile"]


def compile(constraint: object, vocabulary: Vocabulary | Tokenizer, *, cache: bool = True) -> Automaton:
    """Compile a constraint (a source such as `JsonSchema` or `Regex`, or a Python type) for a vocabulary.

    The automaton is immutable and may be shared between threads; `automaton.matcher()` gives one matcher per sequence.
    Equal constraints over equal vocabularies give the automaton made before; `cache=False` neither looks nor keeps.

    Raises `InvalidConstraint`, `Unsupported`, `Unsatisfiable` or `LimitExceeded`, with the place where there is one.
    """
    table = vocabulary.vocabulary if isinstance(vocabulary, Tokenizer) else vocabulary
    grammar = sources.of(constraint).grammar()
    program = encode(grammar)
    if not cache:
        return _compile(grammar, program, table)
    key = (hashlib.blake2b(program, digest_size=16).digest(), table.fingerprint)
    found = _automata.get(key)
    if found is None:
        found = _compile(grammar, program, table)
        _automata.put(key, found, len(program))
    return found


def _compile(grammar: Grammar, program: bytes, vocabulary: Vocabulary) -> Automaton:
    try:
        return Automaton.compile(vocabulary.kernel, program)
    except ConstraintError as error:  # the kernel knows the number of the node; the grammar knows where it came from
        place = None if error.node is None else grammar.places[error.node]
        if place is None:
            raise
        where = place or "the whole schema"
        raise type(error)(f"{error} (at {where})", place) from None
