"""`KVCache`: a KV cache as a value, from which any number of sessions can start."""

from __future__ import annotations

from dataclasses import dataclass, field

from guideway.engines.base import Cache, Logits

__all__ = ["KVCache"]


@dataclass(frozen=True, eq=False)
class KVCache:
    """The tokens of a session and their KV cache, immutable. `model.session(kv_cache=...)` starts from it.

    Attributes:
        tokens: The ids.
        cache: The cache of the engine.
        owner: The engine that computed the cache. Another engine cannot use it.
        prefix: The cache of a soft prompt before the tokens; None: there is no soft prompt.
        logits: The logits after the last token, float32 [vocabulary]; None: unknown.
        shareable: Whether the prefix cache may store it. False for caches from files.
    """

    tokens: tuple[int, ...]
    cache: Cache = field(repr=False)
    owner: object = field(repr=False)
    prefix: Cache | None = field(default=None, repr=False)
    logits: Logits | None = field(default=None, repr=False)
    shareable: bool = field(default=True, repr=False)

    @property
    def positions(self) -> int:
        """The number of positions that the cache covers: those of the soft prompt and of the tokens."""
        return self.cache.length

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes that are allocated while the cache exists."""
        return self.cache.nbytes

    def __len__(self) -> int:
        return len(self.tokens)
