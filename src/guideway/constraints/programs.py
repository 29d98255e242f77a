"""Stores the programs of expensive constraints on disk, so that other processes need not lower these constraints.

The name of a file is a digest of the constraint's content and of the code that lowers constraints. Loading a program
takes about 0.1 ms, so programs that take less than `STORE_SECONDS` to create are not stored.
"""

from __future__ import annotations

import hashlib
import sys
import unicodedata
from pathlib import Path

from guideway import _kernel, disk
from guideway.caching import cached

__all__ = ["LOOK_BYTES", "STORE_SECONDS", "load", "store"]

STORE_SECONDS = 0.002
"""The minimum processor time of creating a program that is stored, in seconds. Loading takes about a twentieth of it.
"""

LOOK_BYTES = 1024
"""The minimum size (`DeferredLowering._size`) of a constraint for which the disk is searched.

Lowering a smaller constraint is faster.
"""

_KIND = "program-1"


def load(content: bytes, size: int) -> bytes | None:
    """Return the program of a constraint from the disk; None: it is not stored, or the constraint is too small.

    Args:
        content: A digest of the constraint's content that is equal in every process.
        size: The size of the constraint, in bytes (`DeferredLowering._size`).
    """
    files = disk.cache() if size >= LOOK_BYTES else None
    key = None if files is None else _file_key(content)
    found = None if files is None or key is None else files.get(_KIND, key)
    return None if found is None else bytes(found)


def store(content: bytes, size: int, program: bytes, seconds: float) -> None:
    """Store a program on disk, if `load` searches for it and its creation took at least `STORE_SECONDS`.

    Args:
        content: As for `load`.
        size: As for `load`.
        program: The program.
        seconds: The processor time of its creation.
    """
    files = disk.cache() if size >= LOOK_BYTES and seconds >= STORE_SECONDS else None
    if files is not None and (key := _file_key(content)) is not None:
        files.put(_KIND, key, program)


def _file_key(content: bytes) -> str | None:
    """Return the name of the file of a program; None: the code of this library cannot be read."""
    try:
        return hashlib.blake2b(content + _meaning(), digest_size=16).hexdigest()
    except OSError:
        return None


@cached(1)
def _meaning() -> bytes:
    """Return a digest of what determines the program of a constraint: the code, and the versions of Python and Unicode.

    The Python code is read. The kernel, which makes nodes and writes programs, is identified by its size and the time
    of its last change. The digest is computed once in a process, in about 2 ms.
    """
    kernel = Path(str(_kernel.__file__)).stat()
    versions = sys.version_info[:3], unicodedata.unidata_version, kernel.st_size, kernel.st_mtime_ns
    digest = hashlib.blake2b(repr(versions).encode(), digest_size=16)
    for package in ("constraints", "frontends", "grammar", "jsontext"):
        folder = Path(__file__).parent.parent / package
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.digest()
