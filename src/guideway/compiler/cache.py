"""Compiled automata in memory: least recently used out, under a budget.

An automaton's own tables are small; what it grows lives in the vocabulary's store. So the budget counts automata and
the words of their programs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from .._kernel import Automaton

__all__ = ["AutomatonCache", "cache"]

Key = tuple[bytes, str]  # digest of the program, fingerprint of the vocabulary


class AutomatonCache:
    """Automata by (program digest, vocabulary fingerprint). Safe to use from several threads.

    `hits`, `misses` and `used_bytes` (size of the programs held) can be read; `clear()` drops everything.
    """

    def __init__(self, budget_bytes: int = 64 << 20) -> None:
        self.budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget all automata and start counting anew."""
        with self._lock:
            self._entries: OrderedDict[Key, tuple[Automaton, int]] = OrderedDict()
            self.used_bytes = self.hits = self.misses = 0

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

    def put(self, key: Key, automaton: Automaton, size: int) -> None:
        """Keep an automaton whose program takes `size` bytes; the least recently used go until the budget holds."""
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = (automaton, size)
            self.used_bytes += size
            while self.used_bytes > self.budget_bytes and len(self._entries) > 1:
                _, (_, dropped) = self._entries.popitem(last=False)
                self.used_bytes -= dropped

    def __len__(self) -> int:
        return len(self._entries)


cache = AutomatonCache()
"""The cache that `compile` uses."""
