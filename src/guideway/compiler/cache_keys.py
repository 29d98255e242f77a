"""What program a constraint became, so that compiling it again costs a look-up.

Sources are immutable and types are taken to be, so they are known by identity (held weakly). A schema given as a plain
dict may be changed by its owner, so it is known by its content, in two ways. `quick_key` is what a pickler writes for
it (and nothing ever reads): some microseconds, but equal values whose parts are shared otherwise have another key, so
it serves only within the process. `content_key` depends on nothing but the content, and names files.
"""

from __future__ import annotations

import hashlib
import io
import marshal
import pickle
import threading
import weakref
from collections import OrderedDict
from functools import partial
from typing import NoReturn

from guideway.constraints import Constraint

__all__ = ["ProgramMemo", "content_key", "quick_key"]

_MAX_CONTENTS = 65_536  # of 16 and 16 bytes each: some 10 MB with what holds them
_MAX_VALUES = 1_000_000
_MAX_CHARACTERS = 64 << 20


class _Content(pickle.Pickler):
    """Writes plain data only. Shared parts are written once, and deep nesting ends in RecursionError."""

    def reducer_override(self, value: object) -> NoReturn:
        raise TypeError(f"{type(value).__name__} is not plain data")


def quick_key(constraint: object) -> tuple[bytes, int] | None:
    """A digest of a dict of plain data, and its size in bytes; None for all else. Equal digests: equal content."""
    if type(constraint) is not dict:
        return None
    written = io.BytesIO()
    try:
        _Content(written, 5).dump(constraint)
    except Exception:  # whatever it holds, the source that is made of it says what is wrong with it
        return None
    data = written.getbuffer()
    return hashlib.blake2b(data, digest_size=16).digest(), len(data)


def content_key(constraint: dict[object, object]) -> bytes | None:
    """A digest of a dict of plain data: equal if and only if the content is, in every process. None for what is not
    plain, and for what is huge when shared parts are written out."""
    if not _is_small(constraint):
        return None
    try:
        data = marshal.dumps(constraint, 2)  # this version writes every value out where it stands
    except ValueError:
        return None
    return hashlib.blake2b(data, digest_size=16).digest()


def _is_small(constraint: dict[object, object]) -> bool:
    """Whether it is small when every shared part is written out anew; a cycle never is."""
    todo: list[object] = [constraint]
    values = characters = 0
    while todo:
        one = todo.pop()
        if type(one) is str:
            characters += len(one)
        elif type(one) is dict:
            values += len(one) + 1
            characters += sum([len(key) for key in one if type(key) is str])
            todo += one.values()
        elif type(one) is list or type(one) is tuple:
            values += len(one) + 1
            todo += one
        if values > _MAX_VALUES or characters > _MAX_CHARACTERS:
            return False
    return True


class ProgramMemo:
    """Digests of programs, by the constraints that they were written for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._by_identity: dict[int, tuple[weakref.ref[object], object, bytes]] = {}
        self._by_content: OrderedDict[bytes, bytes] = OrderedDict()

    def of_object(self, constraint: object) -> bytes | None:
        """The digest for a source or type seen before."""
        found = self._by_identity.get(id(constraint))
        if found is None or found[0]() is not constraint or found[1] is not _marker(constraint):
            return None
        return found[2]

    def of_content(self, key: bytes) -> bytes | None:
        """The digest for a content seen before."""
        with self._lock:
            if (found := self._by_content.get(key)) is not None:
                self._by_content.move_to_end(key)
            return found

    def keep(self, constraint: object, key: bytes | None, digest: bytes) -> None:
        """Remember what the constraint, or the content under `key`, became."""
        if key is not None:
            with self._lock:
                self._by_content[key] = digest
                while len(self._by_content) > _MAX_CONTENTS:
                    self._by_content.popitem(last=False)
        elif isinstance(constraint, (Constraint, type)):
            number, known = id(constraint), self._by_identity
            # Bound now: at the end of the interpreter this module's names are gone before the last constraint is.
            reference: weakref.ref[object] = weakref.ref(constraint, partial(_forget, known, number))
            known[number] = (reference, _marker(constraint), digest)


def _forget(known: dict[int, tuple[weakref.ref[object], object, bytes]], number: int, gone: object) -> None:
    if (found := known.get(number)) is not None and found[0] is gone:
        del known[number]


def _marker(constraint: object) -> object:
    """What changes when Pydantic builds a model anew."""
    return getattr(constraint, "__pydantic_core_schema__", None)
