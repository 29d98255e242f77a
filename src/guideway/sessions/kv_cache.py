"""`KVCache`: keys and values in the user's hands, to start any number of sessions from."""

from __future__ import annotations

from dataclasses import dataclass, field

from guideway.engines.base import Cache, Logits

__all__ = ["KVCache"]


@dataclass(frozen=True, eq=False)
class KVCache:
    """Where a session stood: its tokens, and what the engine knows of them. Immutable; `model.session(kv=kv)`.

    `positions`: how many the cache covers, which is more than there are tokens behind a learned prefix. `owner`: the
    engine that made it; another one cannot read it.
    """

    tokens: tuple[int, ...]
    cache: Cache = field(repr=False)
    owner: object = field(repr=False)
    prefix: Cache | None = field(default=None, repr=False)
    logits: Logits | None = field(default=None, repr=False)
    shareable: bool = field(default=True, repr=False)
    """Whether the model ran all of it here, so that the prefix cache may give it to others; files are not believed."""

    @property
    def positions(self) -> int:
        return self.cache.length

    @property
    def nbytes(self) -> int:
        """About how many bytes it keeps alive."""
        return self.cache.nbytes

    def __len__(self) -> int:
        return len(self.tokens)
