"""`engines.kv_cache`: rows of batches and states as immutable values, over NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from guideway.engines.kv_cache import (
    ArrayBatch,
    ArrayOps,
    RowCache,
    StateCache,
    export_cache,
    join_rows,
    own_cache,
    own_rows,
    own_state,
    restore_rows,
    restore_state,
    row_caches,
    whole_batch,
)
from guideway.errors import EngineError
from guideway.testing import toy

State = dict[str, np.ndarray[Any, np.dtype[Any]]]


def replace(whole: State, arrays: Mapping[str, Any]) -> None:
    whole.update(arrays)


def operations() -> ArrayOps:
    return ArrayOps(
        concat=np.concatenate,
        to_numpy=np.ascontiguousarray,
        from_numpy=lambda array, like: np.array(array, like.dtype),
        state_arrays=lambda whole: whole.items(),
        replace_state=replace,
    )


OPS = operations()


def batch(rows: int, tokens: int, seed: int = 0) -> ArrayBatch:
    """Two layers of two heads and three channels."""
    rng = np.random.default_rng(seed)
    return ArrayBatch(OPS, tuple(rng.normal(size=(rows, 2, tokens, 3)).astype(np.float32) for _ in range(4)))


def test_rows_are_views_of_their_batch() -> None:
    made = batch(3, 5)
    caches = row_caches(made, 5)
    assert [cache.length for cache in caches] == [5, 5, 5]
    assert caches[0].nbytes == sum(array.nbytes for array in made.arrays) // 3
    short = own_rows(caches[1].truncated(2), OPS)
    assert short.used()[3].base is made.arrays[3]
    assert np.array_equal(short.used()[3], made.arrays[3][1:2, :, :2])
    assert caches[1].length == 5
    for length in (-1, 3):
        with pytest.raises(ValueError, match="cannot be truncated to"):
            short.truncated(length)


def test_a_batch_is_reused_only_if_it_is_whole_and_in_order() -> None:
    made = batch(3, 5)
    rows = [own_rows(cache, OPS) for cache in row_caches(made, 5)]
    assert whole_batch(rows, 5) is made
    assert whole_batch(rows[:2], 5) is None
    assert whole_batch(rows[::-1], 5) is None
    assert whole_batch([rows[0], rows[0], rows[2]], 5) is None
    assert whole_batch([own_rows(row.truncated(4), OPS) for row in rows], 4) is None
    assert whole_batch([rows[0], rows[1], RowCache(batch(3, 5), 2, 5)], 5) is None


def test_rows_of_several_batches_are_joined() -> None:
    one, other = batch(2, 5, 1), batch(2, 7, 2)
    joined = join_rows([RowCache(other, 1, 4), RowCache(one, 0, 4)])
    for index, array in enumerate(joined):
        assert np.array_equal(array, np.concatenate([other.arrays[index][1:, :, :4], one.arrays[index][:1, :, :4]]))


def test_rows_are_exported_and_restored() -> None:
    row = RowCache(batch(2, 6), 1, 4)
    arrays = export_cache(row, OPS)
    assert list(arrays) == ["0.key", "0.value", "1.key", "1.value"]
    like = RowCache(batch(1, 1, 9), 0, 1)
    found, length = restore_rows(arrays, like)
    assert length == 4
    assert all(np.array_equal(made, used) for made, used in zip(found, row.used(), strict=True))
    named = export_cache(row, OPS, ["a", "b", "c", "d"])
    assert np.array_equal(restore_rows(named, like, ["a", "b", "c", "d"])[0][2], row.used()[2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"0.key": None}, r"expected 4 arrays \(0.key, 0.value, …\) of this model, got 3"),
        ({"2.key": np.zeros((1, 2, 4, 3), np.float32)}, "got 5"),
        ({"1.key": np.zeros((1, 2, 4, 4), np.float32)}, r"1.key must be float32 \(1, 2, 4, 3\), got float32"),
        ({"1.value": np.zeros((1, 2, 4, 3))}, "got float64"),
        ({"0.key": np.zeros(4, np.float32)}, r"0.key must be float32 \(1, 2, 0, 3\)"),
    ],
)
def test_arrays_of_another_model_are_refused(change: Mapping[str, Any], message: str) -> None:
    arrays = {**export_cache(RowCache(batch(1, 4), 0, 4), OPS), **change}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    with pytest.raises(EngineError, match=message):
        restore_rows(arrays, RowCache(batch(1, 1), 0, 1))


def test_states_are_kept_whole() -> None:
    whole: State = {"h": np.ones((1, 4), np.float32), "c": np.zeros(2, np.float16)}
    state = StateCache(OPS, whole, 7)
    assert state.nbytes == 20
    with pytest.raises(ValueError, match="state of a recurrent model cannot be truncated"):
        state.truncated(7)
    state.copy_whole()["h"][:] = 5
    assert (whole["h"] == 1).all()
    arrays = export_cache(state, OPS)
    assert int(arrays["length"][0]) == 7
    like = StateCache(OPS, {name: array * 0 for name, array in whole.items()}, 1)
    made = restore_state(arrays, like)
    assert made.length == 7
    assert np.array_equal(made.whole["h"], whole["h"])
    assert not like.whole["h"].any()
    for change in ({"h": np.ones((1, 5), np.float32)}, {"length": np.array([1, 2])}, {"x": np.ones(1)}):
        with pytest.raises(EngineError, match=r"must be|expected 3 arrays"):
            restore_state({**arrays, **change}, like)


def test_caches_of_other_engines_are_refused() -> None:
    row, state, other = RowCache(batch(1, 2), 0, 2), StateCache(OPS, {}, 2), operations()
    foreign = toy.ToyEngine(8).forward([[1]], [None])[1][0]
    assert own_cache(row, OPS) is row
    assert own_state(state, OPS) is state
    for check, cache, ops in (
        (own_cache, row, other),
        (own_cache, foreign, OPS),
        (own_rows, state, OPS),
        (own_rows, row, other),
        (own_state, row, OPS),
        (own_state, state, other),
    ):
        with pytest.raises(EngineError, match="belongs to another engine or model"):
            check(cache, ops)  # type: ignore[operator]  # functions of one shape
