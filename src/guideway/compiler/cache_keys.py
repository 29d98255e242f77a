"""Cache keys of constraints: they map a constraint to the digest of its program.

Constraints are immutable and types are assumed to be, so they are identified by identity, with weak references. Equal
constraints share a state (`constraints/known.py`), which has the digest, too. A schema given as a dict can be modified,
so it is identified by content, in two ways. `quick_key` digests a pickle: it takes some microseconds, but equal values
with different sharing of parts have different keys, so it is used only within the process. `content_key` depends only
on the content and names files on disk.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import threading
import weakref
from collections import OrderedDict
from functools import partial
from typing import NoReturn

from guideway._kernel import nests_deeper
from guideway.constraints import Constraint
from guideway.constraints.known import content_key, in_library
from guideway.jsontext.copying import MAX_C_DEPTH

__all__ = ["ProgramMemo", "content_key", "quick_key"]

_MAX_CONTENTS = 65_536  # entries of 16 + 16 bytes; about 10 MB with overhead


class _Content(pickle.Pickler):
    """Pickles plain data only. Shared parts are written once. It recurses in C, so the caller bounds the nesting."""

    def reducer_override(self, value: object) -> NoReturn:
        raise TypeError(f"{type(value).__name__} is not plain data")


def quick_key(constraint: object) -> tuple[bytes, int] | None:
    """Return a digest of a dict of plain data and its size in bytes, or None for other values and for deep nesting.

    Equal digests imply equal content.
    """
    if type(constraint) is not dict or nests_deeper(constraint, MAX_C_DEPTH):
        return None
    written = io.BytesIO()
    try:
        _Content(written, 5).dump(constraint)
    except Exception:  # the constructor of the constraint reports what is wrong
        return None
    data = written.getbuffer()
    return hashlib.blake2b(data, digest_size=16).digest(), len(data)


class ProgramMemo:
    """A cache from constraints to the digests of their programs. A known digest makes lowering unnecessary."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Remove all entries."""
        self._by_identity: dict[int, tuple[weakref.ref[object], object, bytes]] = {}
        self._by_content: OrderedDict[bytes, bytes] = OrderedDict()

    def of_object(self, constraint: object) -> bytes | None:
        """Return the digest for a constraint or type, or None if it is unknown.

        Equal constraints share an object with their grammar, which stores the digest too.
        """
        found = self._by_identity.get(id(constraint))
        if found is not None and found[0]() is constraint and found[1] is _marker(constraint):
            return found[2]
        if isinstance(constraint, Constraint) and in_library(type(constraint)):
            digest: bytes | None = constraint._lowered_part().__dict__.get("_digest")
            return digest
        return None

    def of_content(self, key: bytes) -> bytes | None:
        """Return the digest for a key from `quick_key`, or None if it is unknown."""
        with self._lock:
            if (found := self._by_content.get(key)) is not None:
                self._by_content.move_to_end(key)
            return found

    def keep(self, constraint: object, key: bytes | None, digest: bytes) -> None:
        """Store the digest for `key`, a key from `quick_key`, or for the constraint if `key` is None."""
        if key is not None:
            with self._lock:
                self._by_content[key] = digest
                while len(self._by_content) > _MAX_CONTENTS:
                    self._by_content.popitem(last=False)
        elif isinstance(constraint, (Constraint, type)):
            number, known = id(constraint), self._by_identity
            # partial binds _forget now: module globals may be gone when the last constraint dies at interpreter exit.
            reference: weakref.ref[object] = weakref.ref(constraint, partial(_forget, known, number))
            known[number] = (reference, _marker(constraint), digest)
            if isinstance(constraint, Constraint) and in_library(type(constraint)):
                constraint._lowered_part().__dict__["_digest"] = digest


def _forget(known: dict[int, tuple[weakref.ref[object], object, bytes]], number: int, gone: object) -> None:
    if (found := known.get(number)) is not None and found[0] is gone:
        del known[number]


def _marker(constraint: object) -> object:
    """Return an object that changes when Pydantic rebuilds a model."""
    return getattr(constraint, "__pydantic_core_schema__", None)
