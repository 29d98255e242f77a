"""Caches the digest of the program of a constraint, so that a known constraint is not lowered again.

Constraints are immutable, and types are assumed to be, so both are cached by identity, with weak references. The
program of a type is cached for one day, because the texts of some types, such as `FutureDate`, depend on the date. If
`constraints/known.py` finds that constraints are equal, they share their `__dict__`, which stores the digest as well. A
schema given as a dict can be modified, so it is cached by its content. Two functions compute a key of the content.
`quick_key` digests a pickle, which takes some microseconds. But the pickles of equal values can differ, so this key is
used only within the process. `content_key` depends only on the content, and is part of the names of files on disk.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import threading
import weakref
from collections import OrderedDict
from functools import partial
from typing import NamedTuple, NoReturn

from guideway._kernel import nests_deeper
from guideway.constraints import Constraint
from guideway.constraints.known import content_key, day, in_library
from guideway.jsontext.copying import MAX_C_DEPTH

__all__ = ["ProgramMemo", "content_key", "quick_key"]

_MAX_CONTENTS = 65_536  # entries of 16 + 16 bytes; about 10 MB with overhead


class _Content(pickle.Pickler):
    """Pickles plain data; raises `TypeError` for other values.

    A text or container that occurs several times as one object is written once. The pickler recurses in C, so the
    caller must limit the nesting.
    """

    def reducer_override(self, value: object) -> NoReturn:
        raise TypeError(f"{type(value).__name__} is not plain data")


def quick_key(constraint: object) -> tuple[bytes, int] | None:
    """Return a digest of a dict of plain data, and the size of its pickle in bytes.

    None for other values, and for deeply nested ones. Values with equal digests have equal content, but not the
    reverse.
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


class _KnownProgram(NamedTuple):
    """The digest of the program of a constraint or type, with the Pydantic schema and the day at its creation."""

    reference: weakref.ref[object]
    marker: object
    day: int
    digest: bytes

    def is_of(self, constraint: object) -> bool:
        """Return whether the program is still valid for `constraint`, the object to which `reference` refers.

        It always is for a constraint. For a type, it is not if another day has begun or Pydantic has rebuilt the model.
        """
        return not isinstance(constraint, type) or (self.marker is _marker(constraint) and self.day == day())


def _marker(constraint: object) -> object:
    """Return the Pydantic schema of a model, which is a new object after Pydantic has rebuilt the model; else None."""
    return getattr(constraint, "__pydantic_core_schema__", None)


class ProgramMemo:
    """Caches the digests of the programs of constraints."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Remove all entries."""
        self._by_identity: dict[int, _KnownProgram] = {}
        self._by_content: OrderedDict[bytes, bytes] = OrderedDict()

    def of_object(self, constraint: object) -> bytes | None:
        """Return the digest of the program of a constraint or type; None: it is not known."""
        found = self._by_identity.get(id(constraint))
        if found is not None and found.reference() is constraint and found.is_of(constraint):
            return found.digest
        if isinstance(constraint, Constraint) and in_library(type(constraint)):
            digest: bytes | None = constraint._lowered_part().__dict__.get("_digest")
            return digest
        return None

    def of_content(self, key: bytes) -> bytes | None:
        """Return the digest of the program for a key from `quick_key`; None: it is not known."""
        with self._lock:
            if (found := self._by_content.get(key)) is not None:
                self._by_content.move_to_end(key)
            return found

    def keep(self, constraint: object, key: bytes | None, digest: bytes) -> None:
        """Store the digest of a program.

        Args:
            constraint: The constraint. Only constraints and classes are stored by identity.
            key: The key of `quick_key` for a dict; None: store the digest by the identity of the constraint.
            digest: The digest of the program.
        """
        if key is not None:
            with self._lock:
                self._by_content[key] = digest
                while len(self._by_content) > _MAX_CONTENTS:
                    self._by_content.popitem(last=False)
        elif isinstance(constraint, (Constraint, type)):
            number, known = id(constraint), self._by_identity
            # `partial` holds `_forget`: when the interpreter exits, the name may be gone before the last constraint is.
            reference: weakref.ref[object] = weakref.ref(constraint, partial(_forget, known, number))
            known[number] = _KnownProgram(reference, _marker(constraint), day(), digest)
            if isinstance(constraint, Constraint) and in_library(type(constraint)):
                constraint._lowered_part().__dict__["_digest"] = digest


def _forget(known: dict[int, _KnownProgram], number: int, gone: object) -> None:
    if (found := known.get(number)) is not None and found.reference is gone:
        del known[number]
