"""Masks on NumPy logits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway._kernel import mask_logits, only_token

__all__ = ["Row", "all_of", "apply", "ids", "masked_into", "new_rows", "only", "pack", "popcount", "unpack", "words"]

Row = NDArray[np.uint32]
_FLOAT = np.dtype(np.float32)


def words(size: int) -> int:
    """How many uint32 words a mask over `size` tokens has."""
    return (size + 31) // 32


def new_rows(count: int, size: int) -> Row:
    """`count` empty masks over `size` tokens: uint32 [count, words(size)]."""
    return np.zeros((count, words(size)), dtype=np.uint32)


def all_of(size: int) -> Row:
    """The mask of every token: uint32 [words(size)], no bit beyond."""
    row = np.full(words(size), 0xFFFFFFFF, dtype=np.uint32)
    if size % 32:
        row[-1] = (1 << size % 32) - 1
    return row


def pack(ids: Iterable[int], size: int) -> Row:
    """The mask of exactly these ids: uint32 [words(size)]. Raises `ValueError` for an id outside."""
    bits = np.zeros(words(size) * 32, dtype=bool)
    for token_id in ids:
        if not 0 <= token_id < size:
            raise ValueError(f"token id {token_id} is outside a mask over {size} tokens")
        bits[token_id] = True
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def unpack(row: Row, size: int) -> NDArray[np.bool_]:
    """The bits of one row as bool [size]; tokens that the row does not reach are False."""
    bits = row.astype("<u4", copy=False).view(np.uint8)
    return np.unpackbits(bits, bitorder="little", count=size).view(np.bool_)


def ids(row: Row, size: int) -> NDArray[np.intp]:
    """The legal tokens below `size`, ascending."""
    filled = np.flatnonzero(row)
    if filled.size * 16 > row.size:
        return np.flatnonzero(unpack(row, size))
    # Few words are filled: looking at their bits alone is quicker than at all.
    bits = np.unpackbits(row[filled].astype("<u4", copy=False).view(np.uint8), bitorder="little")
    at = np.flatnonzero(bits)
    found: NDArray[np.intp] = filled[at >> 5] * 32 + (at & 31)
    return found if not found.size or found[-1] < size else found[found < size]


def popcount(row: Row) -> int:
    """How many tokens are legal."""
    return int(np.unpackbits(row.view(np.uint8)).sum())


def only(row: Row) -> int | None:
    """The one legal token, where exactly one is; else None. Cheap on rows with many."""
    return only_token(row)


def apply(logits: NDArray[Any], row: Row) -> bool:
    """Set the logits of illegal tokens to -inf, in place. Gives whether a legal one has a logit above -inf.

    `logits`: floating, one-dimensional. Where it is wider than the mask (models pad their vocabulary), the tokens
    beyond are illegal too; where it is narrower, the mask's further bits are ignored.
    Raises `TypeError` for logits that cannot hold -inf, `ValueError` for another number of dimensions.
    """
    if logits.ndim != 1:
        raise ValueError(f"logits must have one dimension, got {logits.ndim}")
    return not masked_into(logits[None], logits[None], row[None], [True])


def masked_into(source: NDArray[Any], target: NDArray[Any], rows: Row, held: Sequence[bool]) -> list[int]:
    """`target` becomes `source` with illegal tokens at -inf; gives the held rows where no legal token is above -inf.

    `source`, `target`: floating [rows, width], the same or apart. `rows`: uint32 [rows, words]; `held[i]`: whether row
    i is held to its mask; it is copied as it is else. Raises `TypeError` for logits that cannot hold -inf.
    """
    if source.dtype is _FLOAT is target.dtype and source.strides[1] == target.strides[1] == 4:
        return mask_logits(source, target, rows, held)
    if not np.issubdtype(source.dtype, np.floating):
        raise TypeError(f"logits must be floating, got {source.dtype}")
    if target is not source:
        target[:] = source
    nothing = []
    for index, is_held in enumerate(held):
        if is_held:
            legal = unpack(rows[index], source.shape[1])
            target[index][~legal] = -np.inf
            if (target[index] == -np.inf).all():
                nothing.append(index)
    return nothing
