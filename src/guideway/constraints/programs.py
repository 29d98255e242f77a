"""Programs on disk: what the lowering of an expensive constraint results in, for other processes.

A file's name is a digest of the constraint's content and of all code that translates constraints. Loading a program takes
about 0.1 ms, so programs that take less than `STORE_SECONDS` to create are not stored.
"""

from __future__ import annotations

import hashlib
import sys
import unicodedata
from pathlib import Path

from guideway import disk
from guideway.caching import cached

__all__ = ["LOOK_BYTES", "STORE_SECONDS", "load", "store"]

STORE_SECONDS = 0.002
"""Minimum processor time to create a program that is stored; about twenty times the time to load one."""

LOOK_BYTES = 1024
"""Minimum size of a constraint for which the disk is searched. Smaller ones are lowered faster."""

_KIND = "program-1"


def load(content: bytes, size: int) -> bytes | None:
    """Return the program of a constraint; None if there is none or the constraint is small.

    Args:
        content: A digest of the constraint's content that is equal in every process.
        size: The size of the constraint, in bytes.
    """
    files = disk.cache() if size >= LOOK_BYTES else None
    key = None if files is None else _file_key(content)
    found = None if files is None or key is None else files.get(_KIND, key)
    return None if found is None else bytes(found)


def store(content: bytes, program: bytes, seconds: float) -> None:
    """Store a program if it took long to create. `content`: as for `load`."""
    files = disk.cache() if seconds >= STORE_SECONDS else None
    if files is not None and (key := _file_key(content)) is not None:
        files.put(_KIND, key, program)


def _file_key(content: bytes) -> str | None:
    """Return the name of a program's file; None if the code cannot be read, for example without free descriptors."""
    try:
        return hashlib.blake2b(content + _meaning(), digest_size=16).hexdigest()
    except OSError:
        return None


@cached(1)
def _meaning() -> bytes:
    """Return a digest of all code that translates a constraint to a program, and of the Unicode version.

    Computed once per process (about 2 ms). Versions with different code do not share stored programs.
    """
    digest = hashlib.blake2b(f"{sys.version_info[:3]} {unicodedata.unidata_version}".encode(), digest_size=16)
    for package in ("constraints", "frontends", "grammar", "jsontext"):
        folder = Path(__file__).parent.parent / package
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.digest()
