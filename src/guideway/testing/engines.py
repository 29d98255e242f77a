"""`step_engine_contract`: checks that an engine fulfils the protocol `StepEngine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from guideway.engines.base import Cache, Logits, MultiStepEngine, StepEngine
from guideway.errors import ContextOverflowError, EngineError
from guideway.sampling import on_cpu

__all__ = ["step_engine_contract"]


def step_engine_contract(
    engine: StepEngine, ids: Sequence[int] = (1, 2, 3, 4, 5, 6), *, tolerance: float = 1e-3, close: bool = False
) -> None:
    """Check that an engine fulfils `StepEngine`: steps, whole texts, rollback, forks, batches, export, errors.

    Args:
        engine: The engine.
        ids: At least four different ids of the model.
        tolerance: The maximum difference of logits that should be equal.
        close: Whether the engine is closed at the end; then it must refuse to run.

    Raises:
        AssertionError: A rule is broken. The message names it.
        ValueError: `ids` has fewer than four different ids.
        Exception: An error of the engine in a call that should succeed.
    """
    if len(set(ids)) < 4:
        raise ValueError("at least four different ids are needed")
    checks = _EngineChecks(engine, list(ids), tolerance)
    for check in (
        checks.steps,
        checks.content,
        checks.branches,
        checks.going_back,
        checks.rows,
        checks.passes,
        checks.files,
    ):
        check()
    checks.errors()
    if close:
        engine.close()
        engine.close()
        _refused(lambda: engine.forward([list(ids)], [None]), EngineError, "a closed engine can be called")


class _EngineChecks:
    def __init__(self, engine: StepEngine, ids: list[int], tolerance: float) -> None:
        self.engine, self.ids, self.tolerance = engine, ids, tolerance
        self.at_once, self.whole = self.one(ids, None)
        self.half = len(ids) // 2

    def one(self, ids: Sequence[int], cache: Cache | None) -> tuple[Logits, Cache]:
        logits, caches = self.engine.forward([ids], [cache])
        return np.array(on_cpu(logits[0])), caches[0]

    def equal(self, found: Logits, expected: Logits, what: str) -> None:
        far = float(np.abs(on_cpu(found) - expected).max())
        _hold(far <= self.tolerance, f"logits {what} differ by {far}")

    def steps(self) -> None:
        engine, ids, logits = self.engine, self.ids, self.at_once
        _hold(logits.shape == (engine.vocab_size,), f"logits have the shape {logits.shape}, not ({engine.vocab_size},)")
        _hold(logits.dtype == np.float32, f"logits are {logits.dtype}, not float32")
        _hold(bool(np.isfinite(logits).all()), "logits are not finite")
        _hold(self.whole.length == len(ids), f"the cache of {len(ids)} tokens has the length {self.whole.length}")
        cache: Cache | None = None
        for count, token_id in enumerate(ids, 1):
            stepped, cache = self.one([token_id], cache)
            _hold(cache.length == count, f"the cache of {count} tokens has the length {cache.length}")
        self.equal(stepped, self.at_once, "step by step and in one call")

    def content(self) -> None:
        again, _ = self.one(self.ids, None)
        self.equal(again, self.at_once, "of the same tokens")
        _hold(self.whole.nbytes >= 0, "the size of a cache is negative")

    def branches(self) -> None:
        """Check that two continuations of one cache do not affect each other."""
        ids, whole = self.ids, self.whole
        left, left_cache = self.one(ids[:1], whole)
        right, right_cache = self.one(ids[1:2], whole)
        self.equal(left, self.one([*ids, ids[0]], None)[0], "with a cache and in one call")
        self.equal(right, self.one([*ids, ids[1]], None)[0], "of a second continuation of a cache and in one call")
        _hold(whole.length == len(ids), "forward changed a cache that it was given")
        self.equal(
            self.one(ids[2:4], left_cache)[0], self.one([*ids, ids[0], *ids[2:4]], None)[0], "of the first continuation"
        )
        self.equal(
            self.one(ids[2:4], right_cache)[0], self.one([*ids, *ids[1:4]], None)[0], "of the second continuation"
        )

    def going_back(self) -> None:
        ids, half, whole = self.ids, self.half, self.whole
        if not self.engine.supports_rollback:
            _refused(lambda: whole.truncated(half), ValueError, "a cache can be truncated without supports_rollback")
            return
        back = whole.truncated(half)
        _hold(back.length == half, f"a cache truncated to {half} has the length {back.length}")
        _hold(whole.length == len(ids), "truncated changed its cache")
        self.equal(self.one(ids[half:], back)[0], self.at_once, "after a rollback and in one call")
        other, _ = self.one(ids[:2], back)
        self.equal(other, self.one([*ids[:half], *ids[:2]], None)[0], "of other tokens after a rollback")
        self.equal(self.one(ids[:1], whole)[0], self.one([*ids, ids[0]], None)[0], "with a cache after its rollback")
        self.equal(self.one(ids, whole.truncated(0))[0], self.at_once, "with a cache truncated to 0 tokens")
        for wrong in (-1, len(ids) + 1):
            _refused(partial(whole.truncated, wrong), ValueError, f"a cache can be truncated to {wrong}")

    def rows(self) -> None:
        ids, half = self.ids, self.half
        rows = [ids, ids[:half], ids[::-1]]
        together, caches = self.engine.forward(rows, [None] * len(rows))
        _hold(together.shape[0] == len(caches) == len(rows), "the number of results is not that of rows")
        for index, row in enumerate(rows):
            self.equal(together[index], self.one(row, None)[0], f"of row {index} in a batch and alone")
            _hold(caches[index].length == len(row), f"the cache of row {index} has the length {caches[index].length}")
        more, _ = self.engine.forward([ids[:1], ids[1:3], ids[2:3]], caches)
        expected, _ = self.one(ids[:half] + ids[1:3], None)
        self.equal(more[1], expected, "of a row with a cache in a batch and alone")

    def passes(self) -> None:
        """Check that `decode_steps`, if the engine has it, gives the logits and caches of single passes.

        The caches that it gets must not change.
        """
        if not isinstance(self.engine, MultiStepEngine) or not self.engine.supports_rollback:
            return
        ids, half = self.ids, self.half
        begun = [self.one(ids, None)[1], self.one(ids[:half], None)[1]]
        lent: list[Logits] = []

        def draw(logits: Any) -> list[list[int]] | None:
            lent.append(np.array(on_cpu(logits)))
            return [[ids[len(lent)]], [ids[0]]] if len(lent) < 3 else None

        made = self.engine.decode_steps([ids[:1], ids[half:]], begun, draw)
        rows = [[*ids, ids[0], ids[1], ids[2]], [*ids, ids[0], ids[0]]]
        for index, row in enumerate(rows):
            for number, logits in enumerate(lent, 1):
                expected, _ = self.one(row[: len(row) - 3 + number], None)
                self.equal(logits[index], expected, f"of pass {number}, row {index}, and in one call")
            _hold(made[index].length == len(row), f"the cache of row {index} has the length {made[index].length}")
            self.equal(self.one(ids[:1], made[index])[0], self.one([*row, ids[0]], None)[0], "after several passes")
        self.equal(self.one(ids[half:], begun[1])[0], self.at_once, "with a cache that passes continued")

    def files(self) -> None:
        arrays = self.engine.export(self.whole)
        _hold(
            all(isinstance(array, np.ndarray) for array in arrays.values()),
            "export returned values that are not arrays",
        )
        again = self.engine.restore({name: np.array(array) for name, array in arrays.items()})
        _hold(
            again.length == len(self.ids), f"a restored cache of {len(self.ids)} tokens has the length {again.length}"
        )
        self.equal(self.one(self.ids[:1], again)[0], self.one(self.ids[:1], self.whole)[0], "with a restored cache")
        _refused(lambda: self.engine.restore({"strange": np.zeros(3)}), EngineError, "restore accepts unknown arrays")
        _hold(bool(self.engine.fingerprint), "the engine has no fingerprint")

    def errors(self) -> None:
        engine, ids = self.engine, self.ids
        too_many = [ids[0]] * (engine.context_size - len(ids) + 1)
        wrong: list[tuple[list[int], type[Exception], str]] = [
            ([], EngineError, "a row without tokens is accepted"),
            ([engine.vocab_size], EngineError, "an id above the last one is accepted"),
            ([-1], EngineError, "a negative id is accepted"),
            (too_many, ContextOverflowError, "more tokens than the context holds are accepted"),
        ]
        for row, kind, what in wrong:
            _refused(partial(engine.forward, [ids, row], [None, self.whole]), kind, what)
        self.equal(self.one(ids[:1], self.whole)[0], self.one([*ids, ids[0]], None)[0], "after errors")


def _refused(act: Callable[[], Any], kind: type[Exception], what: str) -> None:
    try:
        act()
    except kind:
        return
    raise AssertionError(f"{what}; expected {kind.__name__}")


def _hold(true: bool, message: str) -> None:
    if not true:
        raise AssertionError(message)
