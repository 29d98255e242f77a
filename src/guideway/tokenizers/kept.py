"""Tokenizers that were read, kept as long as the object from which they were read.

Reading a vocabulary of 131,072 tokens takes up to a second, and many callers pass the same object again: a logits
processor is made for each `generate` call. An object can change in between, so each adapter with mutable objects has a
function `watch`. It returns a function of the object that computes, in microseconds, a value that differs after a
change. `Same` compares a part of an object by identity.

An entry holds no reference to its object. Files are identified by path, time and size, and the last `_MAX_FILES` are
kept.
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
"""A function of an object that returns a value that differs after a change of the object."""

_MAX_OBJECTS = 64
_MAX_FILES = 4


class Same:
    """A part of an object, compared by identity."""

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
    """Return the tokenizer that was read from an object, if the object is unchanged."""
    entry = _entries.get(_key(source))
    if entry is None or entry.reference() is not (None if isinstance(source, (str, Path)) else source):
        _counts[1] += 1
        return None
    try:
        unchanged = entry.watch(source) == entry.state
    except Exception:  # the object lacks something that it had: reading it again reports what
        unchanged = False
    _counts[not unchanged] += 1
    return entry.tokenizer if unchanged else None


def keep(source: object, watch: Watch, state: object, tokenizer: Tokenizer) -> None:
    """Keep the tokenizer of an object.

    Args:
        source: The object.
        watch: Computes the state.
        state: The state before the tokenizer was read.
        tokenizer: What was read.
    """
    key = _key(source)
    if isinstance(source, (str, Path)):
        reference: Callable[[], object] = _nothing
    else:
        try:
            # partial binds the arguments now: module globals may be gone at the exit of the interpreter.
            reference = weakref.ref(source, partial(_forget, _entries, key))
        except TypeError:  # the class has no weak references
            return
    with _lock:
        _entries.pop(key, None)
        _entries[key] = _Entry(reference, watch, state, tokenizer)
        for kind, most in ((str, _MAX_FILES), (int, _MAX_OBJECTS)):
            same = [one for one in _entries if isinstance(one, kind)]
            for one in same[: max(0, len(same) - most)]:
                del _entries[one]


def state_of_file(source: str | Path) -> object:
    """Return what differs after a file, or a file in a folder, was changed.

    Raises:
        OSError: There is no such file.
    """
    status = os.stat(source)
    place = "" if os.path.isabs(source) else os.getcwd()
    if stat.S_ISDIR(status.st_mode):
        with os.scandir(source) as files:
            return place, sorted((one.name, _file(one.stat())) for one in files if one.is_file())
    folder, name = os.path.split(source)
    if name != "tokenizer.json":
        return place, _file(status)
    beside = [os.path.join(folder, one) for one in _BESIDE]  # files that are loaded together with tokenizer.json
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
