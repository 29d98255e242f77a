"""`PrefixCache`: caches the KV states of token prefixes, so that sessions with a common prefix run it once.

The cache is a radix tree over token ids, as in RadixAttention (Zheng et al., SGLang, arXiv 2312.07104). An edge is a
sequence of ids. A node may hold the engine's cache of all tokens from the root to the node. The tokens of a cache do
not change. `put` may copy the keys and values of a sequence from the arrays of its batch (`alone`); `find` shares the
copy. If the engine can truncate caches, the cache of a sequence can be used for all prefixes of the sequence, so only
leaves hold a cache. A recurrent state can be used only for exactly its tokens, so any node may hold one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from guideway.arguments import integer
from guideway.engines.base import SHORTEST_PREFIX, Cache
from guideway.engines.kv_cache import alone

__all__ = ["PREFIX_BYTES", "PrefixCache", "PrefixStatistics", "common_length"]

PREFIX_BYTES = 256 << 20
"""The default size of the cache in bytes."""

_ID_BYTES = 40
"""The approximate number of bytes that one id needs in the tree."""


@dataclass(frozen=True)
class PrefixStatistics:
    """The counters of a `PrefixCache`.

    Attributes:
        lookups: The number of lookups.
        hits: The number of lookups that found a cache.
        tokens_found: The number of tokens that the model did not need to run because of a cache.
        entries: The current number of caches.
        nbytes: The current size of all caches in bytes.
        evictions: The number of caches that were removed because of the budget, or because the engine had no memory
            left.
    """

    lookups: int
    hits: int
    tokens_found: int
    entries: int
    nbytes: int
    evictions: int


class _Node:
    """A node of the tree. `ids`: the edge from `parent` to this node. `depth`: the number of tokens from the root."""

    __slots__ = ("children", "depth", "ids", "parent")

    def __init__(self, ids: tuple[int, ...], parent: _Node | None) -> None:
        self.ids, self.parent = ids, parent
        self.depth: int = len(ids) + (parent.depth if parent is not None else 0)
        self.children: dict[int, _Node] = {}


class PrefixCache:
    """KV caches by their tokens, within a memory budget. The least recently used cache is evicted first.

    Thread-safe.

    Args:
        budget_bytes: The maximum number of bytes (`nbytes` of the caches); 0: nothing is stored.
        supports_rollback: Whether the engine's caches can be truncated.
        shortest: Prefixes with fewer tokens are neither stored nor looked up.
    """

    def __init__(
        self, *, budget_bytes: int = PREFIX_BYTES, supports_rollback: bool = True, shortest: int = SHORTEST_PREFIX
    ) -> None:
        budget_bytes = integer("budget_bytes", budget_bytes, 0)
        shortest = integer("shortest", shortest, 1)
        self.supports_rollback, self.shortest = supports_rollback, shortest
        self._budget = budget_bytes
        self._root = _Node((), None)
        # The nodes that hold a cache, and its bytes, least recently used first. Nodes form reference cycles, so caches
        # are stored here. Removing them frees their memory without the garbage collector.
        self._held: dict[_Node, tuple[Cache, int]] = {}
        self._nbytes = self._lookups = self._hits = self._tokens_found = self._evictions = 0
        self._lock = Lock()

    @property
    def budget_bytes(self) -> int:
        """The maximum number of bytes. If a smaller one is set, caches are evicted at once."""
        return self._budget

    @budget_bytes.setter
    def budget_bytes(self, value: int) -> None:
        value = integer("budget_bytes", value, 0)
        with self._lock:
            self._budget = value
            self._evict_to(value)

    @property
    def statistics(self) -> PrefixStatistics:
        with self._lock:
            held = len(self._held), self._nbytes
            return PrefixStatistics(self._lookups, self._hits, self._tokens_found, *held, self._evictions)

    def find(self, ids: Sequence[int], *, more_than: int = 0) -> Cache | None:
        """Return the cache of the longest known prefix of a sequence.

        Args:
            ids: The ids of a sequence.
            more_than: Return only a cache that covers more than this number of tokens.

        Returns:
            The cache; None: there is none.
        """
        if not self._budget or len(ids) < self.shortest:
            return None
        with self._lock:
            self._lookups += 1
            node, length = self._walk(ids)
            holder = self._below(node) if self.supports_rollback else self._above(node, length)
            if holder is None:
                return None
            length = min(length, holder.depth)
            if length < self.shortest or length <= more_than:
                return None
            self._hits += 1
            self._tokens_found += length - more_than
            cache = self._touch(holder)
            return cache if length == holder.depth else cache.truncated(length)

    def put(self, ids: Sequence[int], cache: Cache) -> None:
        """Store the cache of these tokens, if there are enough tokens and the budget allows it.

        If the engine can truncate caches, the new cache replaces the caches of prefixes of these tokens, and nothing is
        stored if there is a cache of a longer sequence that begins with these tokens.
        """
        size = cache.nbytes + _ID_BYTES * len(ids)
        if len(ids) < self.shortest or size > self._budget:
            return
        with self._lock:
            node, length = self._walk(ids)
            longer = self._below(node) if self.supports_rollback and length == len(ids) else None
            if longer is not None and longer.depth > length:
                self._touch(longer)  # already cached
                return
            cache = alone(cache)
            size = cache.nbytes + _ID_BYTES * len(ids)
            node = self._grown(node, tuple(ids), length)
            above = node.parent
            while self.supports_rollback and above is not None:  # shorter caches that the new one replaces
                further = above.parent
                self._drop(above)
                self._tidy(above)
                above = further
            self._drop(node)
            self._held[node] = cache, size
            self._nbytes += size
            self._evict_to(self._budget)

    def drop_oldest(self) -> bool:
        """Evict the least recently used cache. Returns False if there is none."""
        with self._lock:
            return self._evict_oldest()

    def clear(self) -> None:
        """Remove all caches. Of the statistics, only `entries` and `nbytes` change."""
        with self._lock:
            self._root = _Node((), None)
            self._held.clear()
            self._nbytes = 0

    def _walk(self, ids: Sequence[int]) -> tuple[_Node, int]:
        """Return the node at which, or on whose edge, the longest match of these ids ends, and the match's length."""
        node, at = self._root, 0
        while at < len(ids) and (child := node.children.get(ids[at])) is not None:
            node = child
            same = common_length(child.ids, ids[at : at + len(child.ids)])
            at += same
            if same < len(child.ids):
                break
        return node, at

    def _grown(self, node: _Node, ids: tuple[int, ...], length: int) -> _Node:
        """Return the node for all of `ids`, and create it if needed.

        `node`, `length`: the result of `_walk` for these ids.
        """
        if length < node.depth:
            node = _split(node, length)
        if length == len(ids):
            return node
        child = _Node(ids[length:], node)
        node.children[child.ids[0]] = child
        return child

    def _below(self, node: _Node) -> _Node | None:
        """Return this node if it has a cache, else a node below it that has one.

        None: the tree is empty, because every leaf except the root has a cache.
        """
        while node not in self._held and node.children:
            node = next(iter(node.children.values()))
        return node if node in self._held else None

    def _above(self, node: _Node, length: int) -> _Node | None:
        """Return the longest cache on the path from the root to this node with at most `length` tokens, as its node."""
        found: _Node | None = node
        while found is not None and (found not in self._held or found.depth > length):
            found = found.parent
        return found

    def _touch(self, holder: _Node) -> Cache:
        """Return the cache of a node that has one, and mark it as the most recently used."""
        held = self._held[holder] = self._held.pop(holder)
        return held[0]

    def _evict_to(self, budget: int) -> None:
        while self._nbytes > budget:
            self._evict_oldest()

    def _evict_oldest(self) -> bool:
        node = next(iter(self._held), None)
        if node is None:
            return False
        self._drop(node)
        self._evictions += 1
        self._tidy(node)
        return True

    def _tidy(self, node: _Node) -> None:
        """Remove leaves without a cache, from this node upwards. Merge a node without a cache with its only child."""
        while node.parent is not None and node not in self._held and len(node.children) < 2:
            parent = node.parent
            if node.children:  # one child: merge the two edges
                (child,) = node.children.values()
                child.ids, child.parent = node.ids + child.ids, parent
                parent.children[child.ids[0]] = child
                break
            del parent.children[node.ids[0]]
            node = parent

    def _drop(self, node: _Node) -> None:
        """Remove the cache of a node, if it has one. The node remains in the tree."""
        if node in self._held:
            self._nbytes -= self._held.pop(node)[1]


def _split(node: _Node, length: int) -> _Node:
    """Split the edge to `node` at a depth of `length` tokens. Returns the new node there."""
    cut = length - node.depth + len(node.ids)
    middle = _Node(node.ids[:cut], node.parent)
    if middle.parent is not None:
        middle.parent.children[middle.ids[0]] = middle
    node.ids, node.parent = node.ids[cut:], middle
    middle.children[node.ids[0]] = node
    return middle


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two sequences of ids."""
    count = min(len(one), len(other))
    if tuple(one[:count]) == tuple(other[:count]):  # the usual case, which is faster
        return count
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
