"""What every step engine must hold to, as one call: `check_step_engine(engine)`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guideway.engines.base import Cache, Logits, StepEngine

__all__ = ["check_step_engine"]


def check_step_engine(engine: StepEngine, ids: Sequence[int] = (1, 2, 3, 4, 5, 6), *, tolerance: float = 1e-3) -> None:
    """Hold an engine to `StepEngine`: step by step as at once, going back, forks, and rows together.

    `ids`: at least four that the model has. `tolerance`: how far logits may be apart that should be equal.
    Raises `AssertionError` that says which rule is broken.
    """
    if len(ids) < 4:
        raise ValueError("at least four ids are needed")
    ids = list(ids)
    at_once, whole = _one(engine, ids, None)
    _hold(at_once.shape == (engine.vocab_size,), f"logits have the shape {at_once.shape}, not ({engine.vocab_size},)")
    _hold(at_once.dtype == np.float32, f"logits are {at_once.dtype}, not float32")
    _hold(whole.length == len(ids), f"the cache of {len(ids)} tokens says that it covers {whole.length}")

    cache: Cache | None = None
    for token_id in ids:
        stepped, cache = _one(engine, [token_id], cache)
    _equal(stepped, at_once, tolerance, "step by step and at once")

    half = len(ids) // 2
    back = whole.truncated(half)
    _hold(back.length == half, f"a cache truncated to {half} says {back.length}")
    _hold(whole.length == len(ids), "truncating changed the cache it was asked of")
    _equal(_one(engine, ids[half:], back)[0], at_once, tolerance, "again after going back")
    first, _ = _one(engine, ids[:1], whole)
    again, _ = _one(engine, ids[:1], whole)
    _equal(first, again, tolerance, "two steps from one cache")

    rows = [ids, ids[:half], ids[::-1]]
    together, caches = engine.forward(rows, [None] * len(rows))
    for index, row in enumerate(rows):
        _equal(together[index], _one(engine, row, None)[0], tolerance, f"row {index} of a batch and alone")
        _hold(caches[index].length == len(row), f"the cache of row {index} covers {caches[index].length}")
    more, _ = engine.forward([ids[:1], ids[1:3], ids[2:3]], caches)
    _equal(more[1], _one(engine, ids[:half] + ids[1:3], None)[0], tolerance, "a row that goes on in a batch and alone")


def _one(engine: StepEngine, ids: Sequence[int], cache: Cache | None) -> tuple[Logits, Cache]:
    logits, caches = engine.forward([ids], [cache])
    return logits[0], caches[0]


def _equal(found: Logits, expected: Logits, tolerance: float, what: str) -> None:
    far = float(np.abs(found - expected).max())
    _hold(far <= tolerance, f"logits {what} differ by {far}")


def _hold(true: bool, message: str) -> None:
    if not true:
        raise AssertionError(message)
