"""`ModelBase`: an engine and its tokenizer, which sessions share. `guideway.Model` adds the generating functions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from guideway.arguments import short_repr
from guideway.engines.base import Arrays, StepEngine, prefix_limit, shortest_prefix
from guideway.errors import EngineError, KVCacheFullError
from guideway.sampling import Sampler
from guideway.sessions import snapshot
from guideway.sessions.kv_cache import KVCache
from guideway.sessions.prefix_cache import PREFIX_BYTES, PrefixCache
from guideway.sessions.session import CHECKPOINT_BYTES, LOGITS_BYTES, KVHook, Session
from guideway.tokenizers import Tokenizer, Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ModelBase"]

P = ParamSpec("P")
T = TypeVar("T")


class ModelBase:
    """An engine that runs the model, and the tokenizer it was trained with. `guideway.Model` is the public subclass.

    Leaving a `with` block closes the engine.

    Args:
        engine: Runs the model.
        tokenizer: The tokenizer of the model.
        name: The name of the model in error messages and tables.
        prefix_bytes: The maximum size of the cache of common prompt prefixes in bytes; 0: there is no cache. With
            llama.cpp it is at most the size of the KV cache, except for recurrent models.

    Attributes:
        prefixes: The cache of common prompt prefixes.
        bos_ids: The ids that the tokenizer puts before a text (BOS); often empty. A session without a KV cache begins
            with them.
    """

    def __init__(
        self, engine: StepEngine, tokenizer: Tokenizer, *, name: str = "model", prefix_bytes: int = PREFIX_BYTES
    ) -> None:
        self._engine: StepEngine | None = engine
        self.tokenizer = tokenizer
        self.name = name
        self.prefixes = PrefixCache(
            budget_bytes=prefix_limit(engine, prefix_bytes),
            supports_rollback=engine.supports_rollback,
            shortest=shortest_prefix(engine),
        )
        self._lock = RLock()  # held during each call to the engine; reentrant for nested calls
        self.bos_ids = _bos_ids(tokenizer)

    @property
    def engine(self) -> StepEngine:
        """The engine. Raises `EngineError` after the model was closed."""
        if self._engine is None:
            raise EngineError(f"the model {self.name} is closed")
        return self._engine

    @property
    def is_closed(self) -> bool:
        """Whether the model was closed, so that it cannot run any more."""
        return self._engine is None

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizer, for which constraints are compiled."""
        return self.tokenizer.vocabulary

    @property
    def context_size(self) -> int:
        """The maximum number of tokens of a session, those of a soft prompt included."""
        return self.engine.context_size

    def session(
        self,
        *,
        seed: int = 0,
        row: int = 0,
        sampler: Sampler | None = None,
        kv_cache: KVCache | None = None,
        kv_hook: KVHook | None = None,
        logits_bytes: int = LOGITS_BYTES,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
    ) -> Session:
        """Return a new session: one sequence of tokens, its KV cache and its random numbers.

        Args:
            seed: The seed of the random numbers.
            row: The number of the sequence. Equal seeds with different rows give independent random numbers.
            sampler: How tokens are drawn; greedy by default.
            kv_cache: The KV cache with which the session starts, from `Session.kv_cache` or `soft_prompt`. None: the
                session starts with the tokens `bos_ids`.
            kv_hook: A function that supplies external keys and values (retrieval). It is called with the session before
                each run of the model. It returns arrays that replace those of the soft prompt in `kv_cache`, with the
                same number of positions, or None to keep them. The keys and values of other tokens do not change.
            logits_bytes: The maximum number of bytes of earlier logits that the session stores for rewinding.
            checkpoint_bytes: The maximum number of bytes of earlier caches that the session stores for rewinding, if
                the engine cannot truncate a cache.

        Returns:
            The session.

        Raises:
            EngineError: The model is closed, or `kv_hook` was given and exported caches have no token axis.
            TypeError: `sampler`, `kv_cache` or `kv_hook` has another type.
            ValueError: `kv_cache` belongs to a different model, or `kv_hook` was given without a soft prompt.
        """
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"sampler must be a Sampler, got {short_repr(sampler)}")
        if kv_cache is not None and not isinstance(kv_cache, KVCache):
            raise TypeError(
                f"kv_cache must be a KVCache (from Session.kv_cache or Model.soft_prompt), got {short_repr(kv_cache)}"
            )
        made = Session(
            self,
            seed=seed,
            row=row,
            sampler=sampler,
            kv_cache=kv_cache,
            logits_bytes=logits_bytes,
            checkpoint_bytes=checkpoint_bytes,
        )
        if kv_hook is not None:
            self._check_hook(kv_hook, kv_cache)
            made.kv_hook = kv_hook
        return made

    def _check_hook(self, kv_hook: object, kv_cache: KVCache | None) -> None:
        if not callable(kv_hook):
            raise TypeError(f"kv_hook must be a function of the session, got {short_repr(kv_hook)}")
        if kv_cache is None or kv_cache.prefix is None or not kv_cache.prefix.length:
            raise ValueError("kv_hook needs kv_cache= with a soft prompt, which it replaces (Model.soft_prompt)")
        arrays = self.run(self.engine.export, kv_cache.prefix)
        if not self.engine.supports_rollback or any(array.ndim != 4 for array in arrays.values()):
            raise EngineError(f"exported caches of {self.name} have no token axis, so kv_hook cannot replace a part")

    def soft_prompt(self, arrays: Arrays) -> KVCache:
        """Return a KV cache of learned keys and values (a soft prompt), for `session(kv_cache=...)`.

        Args:
            arrays: The arrays by the engine's names, as `engine.export` returns them.

        Returns:
            The cache, without tokens.

        Raises:
            EngineError: The names, shapes or types do not fit the model.
        """
        cache = self.run(self.engine.restore, arrays)
        return KVCache((), cache, self.engine, prefix=cache)

    def run(self, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Call a function while no other thread calls the engine, and return its result.

        While the engine has no memory for another KV cache, a cached prefix is evicted, and the function is called
        again. Raises `KVCacheFullError` if no cached prefix is left.
        """
        with self._lock:
            while True:
                try:
                    return call(*given, **named)
                except KVCacheFullError:
                    if not self.prefixes.drop_oldest():
                        raise

    def load_session(self, path: str | Path, *, constraint: object = None) -> Session:
        """Restore a session that `Session.save` wrote.

        Args:
            path: The file.
            constraint: The constraint that the session had when it was saved; None: it had none.

        Returns:
            The session.

        Raises:
            InvalidFileError: The file cannot be read.
            SnapshotError: The file is damaged, or of another model, tokenizer or format; or the session had another
                constraint.
            ConstraintError: `constraint` is not a valid constraint.
        """
        return snapshot.load(self, Path(path), constraint, Session)

    def close(self) -> None:
        """Close the engine.

        Sessions of the model cannot run any more, but can be inspected. A second call has no effect.
        """
        with self._lock:  # wait for the call of another thread
            engine, self._engine = self._engine, None
            self.prefixes.clear()
            if engine is not None:
                engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.vocabulary!r})"


def _bos_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids that the tokenizer puts before a text.

    They are read from the encoding of the empty text, without EOS ids that the tokenizer appends.
    """
    around = tokenizer.encode("", special=True)
    return tuple(takewhile(lambda i: i == tokenizer.bos_id or i not in tokenizer.eos_ids, around))
