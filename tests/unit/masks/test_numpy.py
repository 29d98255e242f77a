"""Packed masks on NumPy logits: the kernel for contiguous float32, NumPy otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from guideway import masks


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_pack_and_unpack(drawn: tuple[int, set[int]]) -> None:
    size, ids = drawn
    row = masks.pack(ids, size)
    assert row.dtype == np.uint32
    assert row.size == masks.words(size) == masks.new_rows(2, size).shape[1]
    assert set(np.flatnonzero(masks.unpack(row, size))) == ids
    assert masks.popcount(row) == len(ids)
    assert masks.only(row) == (next(iter(ids)) if len(ids) == 1 else None)


@given(st.integers(1, 100), st.integers(1, 100), st.sampled_from([np.float32, np.float64, np.float16]), st.data())
def test_apply(size: int, width: int, kind: type[np.floating], data: st.DataObject) -> None:
    ids = data.draw(st.sets(st.integers(0, size - 1)))
    logits = np.arange(width).astype(kind)
    masks.apply(logits, masks.pack(ids, size))
    expected = [t if t in ids else -np.inf for t in range(width)]
    assert logits.tolist() == expected


def test_the_bit_order_is_that_of_other_libraries() -> None:
    assert masks.pack([0, 33, 63], 64).tolist() == [1, (1 << 1) | (1 << 31)]


def test_strided_logits_are_masked_in_place() -> None:
    table = np.zeros((4, 2), dtype=np.float32)
    masks.apply(table[:, 0], masks.pack([1], 4))
    assert table[:, 0].tolist() == [-np.inf, 0, -np.inf, -np.inf]
    assert not table[:, 1].any()


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match="floating"):
        masks.apply(np.zeros(4, dtype=np.int32), masks.pack([1], 4))
    with pytest.raises(ValueError, match="1 dimension"):
        masks.apply(np.zeros((2, 2), dtype=np.float32), masks.pack([1], 4))
    with pytest.raises(ValueError, match="token id must be in"):
        masks.pack([4], 4)
