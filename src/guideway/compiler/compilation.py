"""compile: a constraint and a vocabulary become an automaton.

Four things are remembered, each where it pays. The automaton, in memory (`memory.py`). What program a source, a type or
a schema's content became, in memory (`memo.py`): a hit costs microseconds. And the program of a schema that took long
to write, on disk: loading it costs about 0.1 ms, so what is written in less than `STORE_SECONDS` is not stored; beside
it the vocabulary's tables (`Vocabulary.kernel`).
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import sys
import time
import unicodedata
from pathlib import Path
from typing import Protocol

from guideway import constraints, disk, frontends, grammar, jsontext
from guideway._kernel import Automaton, Vocabulary as KernelVocabulary
from guideway.compiler.automaton_cache import cache as _automata
from guideway.compiler.cache_keys import content_key, quick_key
from guideway.compiler.limits import CompileLimits
from guideway.errors import ConstraintError, UnsatisfiableError
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode
from guideway.tokenizers import Tokenizer, Vocabulary

__all__ = ["acompile", "compile"]


class HasVocabulary(Protocol):
    """An object with a vocabulary, such as a model."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary for which constraints are compiled."""
        ...


STORE_SECONDS = 0.002
"""Writing a program takes at least this long where it is stored: some twenty times what loading one does."""

LOOK_BYTES = 1024
"""No smaller schema takes that long, so for smaller ones the disk is not asked."""

_KIND = "program-1"


def compile(
    constraint: object,
    vocabulary: Vocabulary | Tokenizer | HasVocabulary,
    *,
    cache: bool = True,
    limits: CompileLimits | None = None,
) -> Automaton:
    """Compile a constraint for a vocabulary.

    The automaton is immutable and may be shared between threads; `automaton.matcher()` gives one matcher per sequence.
    Equal constraints over equal vocabularies return the cached automaton.

    Args:
        constraint: A constraint such as `JsonSchema` or `Regex`, or a Python type.
        vocabulary: A `Vocabulary`, `Tokenizer` or `Model`.
        cache: Whether to use the caches in memory and on disk; see `guideway.cache`.
        limits: How many states and how much work the constraint may take. Other limits than the defaults bypass the
            caches.

    Raises:
        InvalidConstraintError: The constraint is malformed.
        UnsupportedError: The constraint cannot be enforced exactly.
        UnsatisfiableError: No text fits.
        LimitExceededError: The constraint needs more than a limit allows.
    """
    table = getattr(vocabulary, "vocabulary", vocabulary)  # a tokenizer's, or a model's
    if not isinstance(table, Vocabulary):
        raise TypeError(f"vocabulary must be a guideway.Vocabulary, Tokenizer or Model, got {vocabulary!r}")
    if limits is not None and limits != CompileLimits():
        return _from_source(constraint, table, table.kernel_within(limits.max_states, limits.max_work))
    if not cache or not disk.is_enabled():
        return _from_source(constraint, table)
    known = _automata.programs
    content, size = quick_key(constraint) or (None, 0)
    missed = known.of_object(constraint) if content is None else known.of_content(content)
    if missed is not None and (found := _automata.get((missed, table.fingerprint))) is not None:
        return found
    program, made = _program(constraint, worth_a_look=size >= LOOK_BYTES)
    digest = _digest(program)
    found = None if digest == missed else _automata.get((digest, table.fingerprint))
    if found is None:
        try:
            found = _compile(made, program, table.kernel)
        except ConstraintError as error:
            if made is not None:
                raise _explained(error, constraint) from None
            found = _from_source(constraint, table)  # whose error says the place
        found = _automata.put((digest, table.fingerprint), found, len(program))
    known.keep(constraint, content, digest)
    return found


def _program(constraint: object, *, worth_a_look: bool) -> tuple[bytes, Grammar | None]:
    """The constraint's program: from disk, if it is there; else from its grammar, which comes along."""
    files = disk.cache() if worth_a_look else None
    key = _stored_key(constraint) if files is not None and isinstance(constraint, dict) else None
    if files is not None and key is not None and (found := files.get(_KIND, key)) is not None:
        return bytes(found), None
    start = time.thread_time()
    made = constraints.of(constraint).grammar()
    program = encode(made)
    if files is not None and key is not None and time.thread_time() - start >= STORE_SECONDS:
        files.put(_KIND, key, program)
    return program, made


def _stored_key(schema: dict[object, object]) -> str | None:
    content = content_key(schema)
    return None if content is None else hashlib.blake2b(content + _meaning(), digest_size=16).hexdigest()


@functools.cache
def _meaning() -> bytes:
    """A digest of all that turns content into a program: this version's own code, and Python's tables of characters.

    Read once per process (some 2 ms), so that no version, however it is named, reads what another one wrote.
    """
    digest = hashlib.blake2b(f"{sys.version_info[:3]} {unicodedata.unidata_version}".encode(), digest_size=16)
    for package in (constraints, frontends, grammar, jsontext):
        folder = Path(package.__file__ or "").parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.digest()


def _digest(program: bytes) -> bytes:
    return hashlib.blake2b(program, digest_size=16).digest()


async def acompile(
    constraint: object,
    vocabulary: Vocabulary | Tokenizer | HasVocabulary,
    *,
    cache: bool = True,
    limits: CompileLimits | None = None,
) -> Automaton:
    """`compile` in another thread, so that it does not block the event loop."""
    return await asyncio.to_thread(compile, constraint, vocabulary, cache=cache, limits=limits)


def _from_source(constraint: object, table: Vocabulary, kernel: KernelVocabulary | None = None) -> Automaton:
    source = constraints.of(constraint)
    made = source.grammar()
    try:
        return _compile(made, encode(made), kernel or table.kernel)
    except UnsatisfiableError as error:
        raise _explained(error, source) from None


def _explained(error: ConstraintError, constraint: object) -> ConstraintError:
    """The error, with what cannot be met together."""
    why = constraints.of(constraint).conflict(error.place) if isinstance(error, UnsatisfiableError) else None
    return error if why is None else UnsatisfiableError(f"{error}: nothing meets {why}", error.place)


def _compile(grammar: Grammar | None, program: bytes, vocabulary: KernelVocabulary) -> Automaton:
    try:
        made = Automaton.compile(vocabulary, program)
        if grammar is not None and grammar.ahead:
            made.walk_ahead(grammar.ahead)
        return made
    except ConstraintError as error:  # the kernel knows the number of the node; the grammar knows where it came from
        place = None if error.node is None or grammar is None else grammar.place(error.node)
        if place is None:
            raise
        where = place or "the whole schema"
        raise type(error)(f"{error} (at {where})", place) from None
