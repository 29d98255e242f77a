"""A cache of tokenizers, by the object or path from which they were read. An entry is removed with its object.

Reading a vocabulary of 131,072 tokens takes up to a second, and many callers pass the same object again: a logits
processor is made for each `generate` call. An object can change between two calls, so each adapter for mutable objects
has a function `watch`. It returns a function (`Watch`) that computes the state of the object in microseconds: a value
that is compared with the earlier one to detect changes. The adapter describes which changes it detects. `Same` in a
state compares a component of the object by identity.

An entry holds no strong reference to its object. The entry of a file is found by its path; it is valid while the inode,
the size and the times of the file are unchanged. The entries of the `_MAX_FILES` paths and of the `_MAX_OBJECTS`
objects that were read last are stored.
"""

from __future__ import annotations

import os
import stat
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guideway import caching
from guideway.caching import CacheInfo

if TYPE_CHECKING:
    from guideway.tokenizers.tokenizer import Tokenizer

__all__ = ["Same", "Watch", "find", "keep", "state_of_file"]

Watch = Callable[[Any], object]
"""A function that returns the state of an object: a value that is compared with the earlier one to detect changes."""

_MAX_OBJECTS = 64
_MAX_FILES = 4


class Same:
    """Holds a component of an object. Two are equal if they hold the identical object."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


class _Entry:
    __slots__ = ("reference", "state", "tokenizer", "watch")

    def __init__(self, reference: Callable[[], object], watch: Watch, state: object, tokenizer: Tokenizer) -> None:
        self.reference, self.watch, self.state, self.tokenizer = reference, watch, state, tokenizer


_lock = threading.Lock()
_entries: dict[object, _Entry] = {}
_counts = [0, 0]  # hits, misses


def find(source: object) -> Tokenizer | None:
    """Return the tokenizer that was read from an object; None if there is none, or if the object has another state."""
    entry = _entries.get(_key(source))
    if entry is None or entry.reference() is not (None if isinstance(source, (str, Path)) else source):
        _counts[1] += 1
        return None
    try:
        unchanged = entry.watch(source) == entry.state
    except Exception:  # an attribute is missing; reading the tokenizer again raises the error
        unchanged = False
    _counts[not unchanged] += 1
    return entry.tokenizer if unchanged else None


def keep(source: object, watch: Watch, state: object, tokenizer: Tokenizer) -> None:
    """Store the tokenizer of an object. Does nothing for an object to which no weak reference is possible.

    Args:
        source: The object.
        watch: Computes the state of the object.
        state: The state of the object before the tokenizer was read.
        tokenizer: The tokenizer that was read from the object.
    """
    key = _key(source)
    if isinstance(source, (str, Path)):
        reference: Callable[[], object] = _nothing
    else:
        try:
            # The arguments are bound now, because module globals may be None when the interpreter exits.
            reference = weakref.ref(source, partial(_forget, _entries, key))
        except TypeError:  # weak references to this class are not possible
            return
    with _lock:
        _entries.pop(key, None)
        _entries[key] = _Entry(reference, watch, state, tokenizer)
        for kind, most in ((str, _MAX_FILES), (int, _MAX_OBJECTS)):
            same = [one for one in _entries if isinstance(one, kind)]
            for one in same[: max(0, len(same) - most)]:
                del _entries[one]


def state_of_file(source: str | Path) -> object:
    """Return the state of a file, or of the files directly in a folder: inode numbers, sizes and times.

    The state of a tokenizer.json includes the files that are loaded together with it.

    Raises:
        OSError: There is no such file or folder.
    """
    status = os.stat(source)
    place = "" if os.path.isabs(source) else os.getcwd()
    if stat.S_ISDIR(status.st_mode):
        with os.scandir(source) as files:
            return place, sorted((one.name, _file(one.stat())) for one in files if one.is_file())
    folder, name = os.path.split(source)
    if name != "tokenizer.json":
        return place, _file(status)
    beside = [os.path.join(folder, one) for one in _BESIDE]  # loaded together with tokenizer.json
    return place, _file(status), [_file(os.stat(one)) if os.path.exists(one) else None for one in beside]


_BESIDE = (
    "special_tokens_map.json",
    "tokenizer_config.json",
    "config.json",
    "generation_config.json",
    "chat_template.jinja",
    "additional_chat_templates",
)


def _file(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _key(source: object) -> object:
    return os.fspath(source) if isinstance(source, (str, Path)) else id(source)


def _nothing() -> None:
    return None


def _forget(entries: dict[object, _Entry], key: object, gone: object) -> None:
    if (found := entries.get(key)) is not None and found.reference is gone:
        del entries[key]


def _clear() -> None:
    with _lock:
        _entries.clear()
        _counts[:] = 0, 0


caching.register(
    "guideway.tokenizers.kept", _clear, lambda: CacheInfo(len(_entries), _MAX_OBJECTS + _MAX_FILES, *_counts)
)
