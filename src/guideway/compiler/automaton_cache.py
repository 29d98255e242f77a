"""Compiled automata in memory: least recently used out, under a budget; and the switches of all caches of `compile`.

An automaton's own tables are small; what it grows lives in the vocabulary's store. So the budget counts, for each
automaton, what its program takes, and a flat amount for its tables.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import AbstractContextManager

from guideway import disk
from guideway._kernel import Automaton
from guideway.compiler.cache_keys import ProgramMemo

__all__ = ["AutomatonCache", "cache"]

Key = tuple[bytes, str]  # digest of the program, fingerprint of the vocabulary

_FLAT_BYTES = 16 << 10  # tables of a small automaton, measured over 1,000 schemas


class AutomatonCache:
    """Automata by (program digest, vocabulary fingerprint). Safe to use from several threads.

    `hits`, `misses` and `used_bytes` (what the held automata are counted for) can be read. `clear()` drops everything;
    `disabled()` is a block in which `compile` neither looks nor keeps, in memory and on disk.
    """

    def __init__(self, budget_bytes: int = 64 << 20) -> None:
        self.budget_bytes = budget_bytes
        self.programs = ProgramMemo()
        self._lock = threading.Lock()
        self.clear()

    @property
    def enabled(self) -> bool:
        """Whether `compile` uses caches here and now; may be set, for the whole process."""
        return disk.is_enabled()

    @enabled.setter
    def enabled(self, value: bool) -> None:
        disk.set_enabled(value)

    def disabled(self) -> AbstractContextManager[None]:
        """A block (of this thread or task) in which nothing is looked up and nothing is kept."""
        return disk.disabled()

    def clear(self, *, disk_too: bool = False) -> None:
        """Forget all automata and start counting anew; `disk_too`: the files as well."""
        with self._lock:
            self._entries: OrderedDict[Key, tuple[Automaton, int]] = OrderedDict()
            self.used_bytes = self.hits = self.misses = 0
            self.programs.clear()
        if disk_too and (files := disk.cache()) is not None:
            files.clear()

    def statistics(self) -> dict[str, object]:
        """Entries, bytes, hits and misses in memory, and on disk (None where there is no disk)."""
        files = disk.cache()
        with self._lock:
            memory = {
                "entries": len(self._entries),
                "bytes": self.used_bytes,
                "budget_bytes": self.budget_bytes,
                "hits": self.hits,
                "misses": self.misses,
            }
        return {"enabled": self.enabled, "memory": memory, "disk": None if files is None else files.as_dict()}

    def get(self, key: Key) -> Automaton | None:
        """The automaton, which is now the latest used; None if it is not here."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Key, automaton: Automaton, size: int) -> Automaton:
        """Keep an automaton whose program takes `size` bytes; the least recently used go until the budget holds.

        Gives the automaton that is kept under the key: that of another thread, where it was first.
        """
        with self._lock:
            if (found := self._entries.get(key)) is not None:
                return found[0]
            self._entries[key] = (automaton, size + _FLAT_BYTES)
            self.used_bytes += size + _FLAT_BYTES
            while self.used_bytes > self.budget_bytes and len(self._entries) > 1:
                _, (_, dropped) = self._entries.popitem(last=False)
                self.used_bytes -= dropped
        return automaton

    def __len__(self) -> int:
        return len(self._entries)


cache = AutomatonCache()
"""The cache that `compile` uses."""
