"""`ModelBase`: an engine and its tokenizer, which sessions share. `guideway.Model` adds the generating functions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from guideway.engines.base import Arrays, StepEngine
from guideway.errors import EngineError, KVCacheFullError
from guideway.sampling import Sampler
from guideway.sessions.kv_cache import KVCache
from guideway.sessions.prefix_cache import PREFIX_BYTES, PrefixCache
from guideway.sessions.session import CHECKPOINT_BYTES, LOGITS_BYTES, Session
from guideway.tokenizers import Tokenizer, Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ModelBase"]

P = ParamSpec("P")
T = TypeVar("T")


class ModelBase:
    """What generates: an engine that runs the model, and the tokenizer it was trained with.

    A context manager: leaving it closes the engine. `name` is for messages and tables. `prefixes`: what its sessions
    ran, for others that begin alike; it keeps up to `prefix_bytes`, and nothing where that is 0.
    """

    def __init__(
        self, engine: StepEngine, tokenizer: Tokenizer, *, name: str = "model", prefix_bytes: int = PREFIX_BYTES
    ) -> None:
        self._engine: StepEngine | None = engine
        self.tokenizer = tokenizer
        self.name = name
        self.prefixes = PrefixCache(budget_bytes=prefix_bytes, supports_rollback=engine.supports_rollback)
        self._lock = RLock()  # held for each call to the engine; again by a call within a call
        self.opening = _opening(tokenizer)
        """The ids that every session begins with: what the tokenizer puts before a text (BOS); often none."""

    @property
    def engine(self) -> StepEngine:
        """Raises `EngineError` when the model is closed."""
        if self._engine is None:
            raise EngineError(f"the model {self.name} is closed")
        return self._engine

    @property
    def vocabulary(self) -> Vocabulary:
        """Which bytes each token id stands for: what constraints are compiled for."""
        return self.tokenizer.vocabulary

    @property
    def context_size(self) -> int:
        """How many tokens a session holds."""
        return self.engine.context_size

    def session(
        self,
        *,
        seed: int = 0,
        row: int = 0,
        sampler: Sampler | None = None,
        kv: KVCache | None = None,
        logits_bytes: int = LOGITS_BYTES,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
    ) -> Session:
        """A new session: at BOS where the tokenizer has one, or where `kv` (`Session.kv`, `soft_prompt`) stands.

        `seed`, `row`: which random numbers it draws. `sampler`: greedy by default. `logits_bytes`: what it keeps of
        the logits it passed, so that going back finds them. `checkpoint_bytes`: what it keeps of passed states where
        the engine cannot truncate them. Raises `EngineError` when the model is closed, or `kv` is another model's.
        """
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"sampler must be a Sampler, got {sampler!r}")
        if kv is not None and not isinstance(kv, KVCache):
            raise TypeError(f"kv is what a session's kv or soft_prompt gave, not {kv!r}")
        return Session(
            self,
            seed=seed,
            row=row,
            sampler=sampler,
            kv=kv,
            logits_bytes=logits_bytes,
            checkpoint_bytes=checkpoint_bytes,
        )

    def soft_prompt(self, arrays: Arrays) -> KVCache:
        """Keys and values that no token made, by the engine's names (`engine.export` shows them), to stand in front.

        Raises `EngineError` for names, shapes or types that are not the model's.
        """
        cache = self.run(self.engine.restore, arrays)
        return KVCache((), cache, self.engine, prefix=cache)

    def run(self, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """One call to the engine: no other runs meanwhile, and where it has no room left, kept prefixes go first."""
        with self._lock:
            while True:
                try:
                    return call(*given, **named)
                except KVCacheFullError:
                    if not self.prefixes.drop_oldest():
                        raise

    def load_session(self, path: str | Path, *, constraint: object = None) -> Session:
        """A session as `Session.save` left it. `constraint`: what it was under, if it was: a source, type or automaton.

        Raises `SnapshotError` for a file that is damaged, or of another model, tokenizer or format, `ConstraintError`
        for what is no constraint.
        """
        from guideway.sessions.snapshot import load

        return load(self, Path(path), constraint)

    def close(self) -> None:
        """Close the engine; a second time does nothing. Sessions of this model can only be looked at after."""
        with self._lock:  # not under the feet of another thread's call
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


def _opening(tokenizer: Tokenizer) -> tuple[int, ...]:
    """What the tokenizer puts before a text, which for an empty one may be followed by what it puts behind."""
    around = tokenizer.encode("", special=True)
    return tuple(takewhile(lambda i: i == tokenizer.bos_id or i not in tokenizer.eos_ids, around))
