"""`compile`: compiles a constraint and a vocabulary to an automaton.

It uses four caches: automata in memory (`automaton_cache.py`); the digests of the programs of constraints in memory
(`cache_keys.py`), whose lookup takes microseconds; programs of expensive constraints on disk
(`constraints/programs.py`); and vocabularies in the form that the kernel uses, on disk (`Vocabulary.kernel`).
"""

from __future__ import annotations

import hashlib
import time
from typing import Any, Protocol

from guideway import background, constraints, disk
from guideway._kernel import Automaton, KernelVocabulary
from guideway.arguments import short_repr
from guideway.compiler.automaton_cache import cache as _automata
from guideway.compiler.cache_keys import content_key, quick_key
from guideway.compiler.limits import CompileLimits
from guideway.constraints import Constraint, programs
from guideway.constraints.known import DeferredLowering
from guideway.errors import ConstraintError, UnsatisfiableError
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode
from guideway.grammar.recognizer import with_place
from guideway.tokenizers import Tokenizer, Vocabulary

__all__ = ["acompile", "compile", "store_program"]


class HasVocabulary(Protocol):
    """An object with a vocabulary, such as a model."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary for which constraints are compiled."""
        ...


def compile(
    constraint: object,
    vocabulary: Vocabulary | Tokenizer | HasVocabulary,
    *,
    cache: bool = True,
    limits: CompileLimits | None = None,
) -> Automaton:
    """Compile a constraint for a vocabulary.

    For constraints with equal programs and for equal vocabularies, the same automaton is returned while it is cached.

    Args:
        constraint: A constraint (`JsonSchema`, `Regex`, …), or a value that `guideway.of` accepts: a JSON Schema as a
            dict, a compiled pattern, a Python type.
        vocabulary: A `Vocabulary`, or an object that has one, such as a `Tokenizer` or a model.
        cache: Whether to use the caches of automata and programs (see `guideway.cache`).
        limits: How many states and how much work the constraint may take. With other limits than the default, the
            caches of automata and programs are not used.

    Returns:
        The automaton. It is immutable and thread-safe. `automaton.matcher()` returns a new matcher for one sequence.

    Raises:
        InvalidConstraintError: The constraint has an error.
        UnsupportedError: The constraint cannot be enforced exactly.
        UnsatisfiableError: No text matches the constraint.
        LimitExceededError: The constraint needs more than a limit allows.
        MissingDependencyError: A type needs a package that is not installed.
        TypeError: `vocabulary` has no vocabulary.
    """
    table = getattr(vocabulary, "vocabulary", vocabulary)  # of a tokenizer or a model
    if not isinstance(table, Vocabulary):
        raise TypeError(
            f"vocabulary must be a Vocabulary, a Tokenizer or a model, got {type(vocabulary).__name__}: {short_repr(vocabulary)}"
        )
    if limits is not None and limits != CompileLimits():
        return _from_source(constraint, table, table.kernel_within(limits.max_states, limits.max_work))
    if not cache or not disk.is_enabled():
        return _from_source(constraint, table)
    known = _automata.programs
    content, size = quick_key(constraint) or (None, 0)
    missed = known.of_object(constraint) if content is None else known.of_content(content)
    if missed is not None and (found := _automata.get((missed, table.fingerprint))) is not None:
        return found
    with background.Turn():
        stable = content_key(constraint) if isinstance(constraint, dict) and size >= programs.LOOK_BYTES else None
        program, made, ahead = _program(constraint, stable, size)
        digest = _digest(program)
        found = None if digest == missed else _automata.get((digest, table.fingerprint))
        if found is None:
            try:
                found = _compile(made, program, table.kernel, ahead)
            except ConstraintError as error:
                if made is not None:
                    raise _explained(error, constraint) from None
                found = _from_source(constraint, table)  # raises an error with its location
            found = _automata.put((digest, table.fingerprint), found, len(program))
    known.keep(constraint, content, digest)
    return found


def store_program(constraint: Constraint[Any]) -> None:
    """Lower a constraint and store its program on disk, so that another process can load it.

    The program is not stored if it takes little time to create, or if the constraint has no digest of its content that
    is equal in every process.

    Raises:
        ConstraintError: The errors of `compile` that do not depend on the vocabulary.
    """
    _program(constraint, None, 0)


def _program(constraint: object, content: bytes | None, size: int) -> tuple[bytes, Grammar | None, int]:
    """Return the program of a constraint: from the disk, or encoded from its grammar.

    Args:
        constraint: The constraint.
        content: The result of `content_key` for a schema given as a dict; None for other constraints. Their
            constructors search the disk.
        size: The size of the dict, in bytes.

    Returns:
        The program; the grammar (None: the program is from the disk); and `Grammar.ahead`.
    """
    if content is not None and (found := programs.load(content, size)) is not None:
        return found, None, 0
    start = time.thread_time()
    source = constraints.of(constraint)._lowered_part()
    known = source if isinstance(source, DeferredLowering) else None
    if known is not None and known._stored is not None:
        return known._stored, None, known._ahead
    made = source.grammar()
    program = encode(made)
    key = content
    if key is None and known is not None and (key := known.__dict__.get("_stable")) is not None:
        size = known._size
    if key is not None:
        programs.store(key, size, program, time.thread_time() - start + (0.0 if known is None else known._seconds))
    return program, made, made.ahead


def _digest(program: bytes) -> bytes:
    return hashlib.blake2b(program, digest_size=16).digest()


async def acompile(
    constraint: object,
    vocabulary: Vocabulary | Tokenizer | HasVocabulary,
    *,
    cache: bool = True,
    limits: CompileLimits | None = None,
) -> Automaton:
    """Run `compile` in another thread, so that it blocks neither the event loop nor other threads for long.

    The arguments, the result and the errors are those of `compile`.
    """
    return await background.run(compile, constraint, vocabulary, cache=cache, limits=limits)


def _from_source(constraint: object, table: Vocabulary, kernel: KernelVocabulary | None = None) -> Automaton:
    with background.Turn():
        source = constraints.of(constraint)
        made = source.grammar()
        program = encode(made)
        try:
            return _compile(made, program, kernel or table.kernel, made.ahead)
        except UnsatisfiableError as error:
            raise _explained(error, source) from None


def _explained(error: ConstraintError, constraint: object) -> ConstraintError:
    """Return the error. An `UnsatisfiableError` is extended by what `Constraint.conflict` says, such as keywords."""
    why = constraints.of(constraint).conflict(error.place) if isinstance(error, UnsatisfiableError) else None
    return error if why is None else UnsatisfiableError(f"{error}: no value satisfies {why}", error.place)


def _compile(grammar: Grammar | None, program: bytes, vocabulary: KernelVocabulary, ahead: int) -> Automaton:
    try:
        made = background.call(Automaton.compile, vocabulary, program)
        if ahead:
            background.call(made.warm_up, ahead)
        return made
    except ConstraintError as error:
        raise with_place(error, grammar) from None
