"""The cache of compiled automata in memory, with a byte budget. It also controls the other caches of constraints.

States that are computed later are stored with the vocabulary and do not count here. So the size of an automaton is
estimated as that of its program plus a constant.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import AbstractContextManager

from guideway import caching, disk
from guideway._kernel import Automaton
from guideway.caching import CacheInfo
from guideway.compiler.cache_keys import ProgramMemo

__all__ = ["AutomatonCache", "cache"]

Key = tuple[bytes, str]  # digest of the program, fingerprint of the vocabulary

_FLAT_BYTES = 16 << 10  # size of a typical automaton without cached states, measured over 1,000 schemas


class AutomatonCache:
    """Caches automata by (program digest, vocabulary fingerprint). Thread-safe.

    Attributes:
        budget_bytes: The maximum of `used_bytes`. The least recently used automata are dropped first. The newest one is
            kept even if it alone exceeds the budget.
        used_bytes: The estimated size of all cached automata together, in bytes.
        hits: The number of lookups that found an automaton.
        misses: The number of lookups that found none.
        programs: The `ProgramMemo`: the digest of the program of each known constraint.
    """

    def __init__(self, budget_bytes: int = 64 << 20) -> None:
        self.budget_bytes = budget_bytes
        self.programs = ProgramMemo()
        self._lock = threading.Lock()
        self.clear(functions=False)

    @property
    def enabled(self) -> bool:
        """Whether automata, programs and constraints are cached in this thread or task, in memory and on disk.

        Setting it applies to the whole process. The caches of function results (`info`) are used in any case.
        """
        return disk.is_enabled()

    @enabled.setter
    def enabled(self, value: bool) -> None:
        disk.set_enabled(value)

    def disabled(self) -> AbstractContextManager[None]:
        """Return a context manager in which `enabled` is False, for this thread or task only."""
        return disk.disabled()

    def clear(self, *, disk_too: bool = False, functions: bool = True) -> None:
        """Drop all automata and all digests of programs, and reset the counters.

        Args:
            disk_too: Whether to delete the files on disk, too.
            functions: Whether to empty the caches of function results that `info` lists, too.
        """
        with self._lock:
            self._entries: OrderedDict[Key, tuple[Automaton, int]] = OrderedDict()
            self.used_bytes = self.hits = self.misses = 0
            self.programs.clear()
        if functions:
            caching.clear_all()
        if disk_too and (files := disk.cache()) is not None:
            files.clear()

    def statistics(self) -> dict[str, object]:
        """Return statistics: "enabled", "memory" (entries, bytes, the budget in bytes, hits and misses) and "disk".

        "disk" is None if there is no cache directory, or if caches are disabled.
        """
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

    def info(self) -> dict[str, CacheInfo]:
        """Return entries, maximum, hits and misses of each cache of function results in memory, by its name.

        Most of these caches hold intermediate results of lowering constraints, such as languages of patterns and
        formats. Caches of modules that are not imported yet are not listed.
        """
        return caching.info()

    def get(self, key: Key) -> Automaton | None:
        """Return the automaton and mark it as most recently used; None if it is not cached."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Key, automaton: Automaton, size: int) -> Automaton:
        """Add an automaton and evict the least recently used ones beyond the budget.

        Args:
            key: Program digest and vocabulary fingerprint.
            automaton: The automaton.
            size: The size of its program, in bytes.

        Returns:
            The automaton that is now cached: `automaton`, or the one that another thread has added before.
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
