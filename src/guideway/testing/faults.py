"""An engine that fails on request."""

from __future__ import annotations

from collections.abc import Sequence

from guideway.engines.base import Arrays, Cache, EngineLogits, StepEngine
from guideway.errors import EngineError

__all__ = ["FailingEngine"]


class FailingEngine:
    """Forwards calls to another engine, except that one call raises `EngineError`.

    Args:
        engine: The engine.
        fail_at: The number of the call of `forward`, `export` or `restore` that fails, from 1 on; None: no call fails.
        late: Whether `forward` fails after the other engine has done its work. This is harder for the caller, because
            the state of the engine has changed.

    Attributes:
        calls: The number of calls of `forward`, `export` and `restore` so far.
    """

    def __init__(self, engine: StepEngine, *, fail_at: int | None = None, late: bool = False) -> None:
        self.engine = engine
        self.calls = 0
        self.fail_at = fail_at
        self.late = late

    @property
    def vocab_size(self) -> int:
        return self.engine.vocab_size

    @property
    def context_size(self) -> int:
        return self.engine.context_size

    @property
    def supports_rollback(self) -> bool:
        return self.engine.supports_rollback

    @property
    def fingerprint(self) -> str:
        return self.engine.fingerprint

    def forward(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[EngineLogits, Sequence[Cache]]:
        fails = self._fails()
        if fails and not self.late:
            raise EngineError("injected")
        found = self.engine.forward(rows, caches)
        if fails:
            raise EngineError("injected, late")
        return found

    def export(self, cache: Cache) -> Arrays:
        if self._fails():
            raise EngineError("injected")
        return self.engine.export(cache)

    def restore(self, arrays: Arrays) -> Cache:
        if self._fails():
            raise EngineError("injected")
        return self.engine.restore(arrays)

    def close(self) -> None:
        self.engine.close()

    def _fails(self) -> bool:
        self.calls += 1
        return self.calls == self.fail_at
