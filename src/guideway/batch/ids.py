"""`IdSet`: a set of identifiers that uses about eight bytes for each. `seed_of`: the seed of a request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

__all__ = ["IdSet", "seed_of"]

_RECENT = 1 << 16


class IdSet:
    """A set of strings, stored as 64-bit digests. Two different strings count as equal with probability 2**-64.

    Most digests are in a sorted array. Recent ones are in a Python set, which is merged into the array when it has
    at least 65,536 entries and at least an eighth of the number in the array.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._sorted = np.empty(0, np.uint64)
        self._recent: set[int] = set()
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def __contains__(self, text: str) -> bool:
        return self._has(_digest(text))

    def add(self, text: str) -> bool:
        """Add a string. Returns whether it is new."""
        number = _digest(text)
        if self._has(number):
            return False
        self._recent.add(number)
        if len(self._recent) >= max(_RECENT, len(self._sorted) // 8):
            fresh = np.fromiter(self._recent, np.uint64, len(self._recent))
            self._sorted = np.sort(np.concatenate([self._sorted, fresh]))
            self._recent = set()
        return True

    def _has(self, number: int) -> bool:
        if number in self._recent:
            return True
        at = int(np.searchsorted(self._sorted, np.uint64(number)))
        return at < len(self._sorted) and int(self._sorted[at]) == number


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def seed_of(custom_id: str, part: int = 0) -> int:
    """Return the seed of a request, derived from its identifier, so that a repeated run draws the same text.

    It has 31 bits of the SHA-256 digest.

    Args:
        custom_id: The identifier.
        part: The number of the prompt in a request with several prompts.
    """
    text = custom_id if part == 0 else f"{custom_id}\0{part}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 1
