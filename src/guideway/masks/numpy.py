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
    """Return the number of uint32 words of a mask over `size` tokens."""
    return (size + 31) // 32


def new_rows(count: int, size: int) -> Row:
    """Return `count` empty masks over `size` tokens: uint32, shape [count, words(size)]."""
    return np.zeros((count, words(size)), dtype=np.uint32)


def all_of(size: int) -> Row:
    """Return the mask of all tokens: uint32, shape [words(size)]; bits beyond `size` are 0."""
    row = np.full(words(size), 0xFFFFFFFF, dtype=np.uint32)
    if size % 32:
        row[-1] = (1 << size % 32) - 1
    return row


def pack(ids: Iterable[int], size: int) -> Row:
    """Return the mask of exactly these ids: uint32, shape [words(size)]. Raises `ValueError` for an id out of range."""
    bits = np.zeros(words(size) * 32, dtype=bool)
    for token_id in ids:
        if not 0 <= token_id < size:
            raise ValueError(f"token id must be in 0..{size - 1}, got {token_id}")
        bits[token_id] = True
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def unpack(row: Row, size: int) -> NDArray[np.bool_]:
    """Return the bits of one mask as bool, shape [size]; tokens beyond the mask are False."""
    bits = row.astype("<u4", copy=False).view(np.uint8)
    return np.unpackbits(bits, bitorder="little", count=size).view(np.bool_)


def ids(row: Row, size: int) -> NDArray[np.intp]:
    """Return the allowed tokens below `size`, ascending."""
    filled = np.flatnonzero(row)
    if filled.size * 16 > row.size:
        return np.flatnonzero(unpack(row, size))
    # Few words are non-zero: unpack only these.
    bits = np.unpackbits(row[filled].astype("<u4", copy=False).view(np.uint8), bitorder="little")
    at = np.flatnonzero(bits)
    found: NDArray[np.intp] = filled[at >> 5] * 32 + (at & 31)
    return found if not found.size or found[-1] < size else found[found < size]


def popcount(row: Row) -> int:
    """Return the number of allowed tokens."""
    return int.from_bytes(row.tobytes(), "little").bit_count()


def only(row: Row) -> int | None:
    """Return the allowed token if there is exactly one, else None. Fast for masks with many tokens."""
    return only_token(row)


def apply(logits: NDArray[Any], row: Row) -> bool:
    """Set the logits of tokens that are not allowed to -inf, in place.

    Args:
        logits: Floating, shape [width]. Tokens beyond the mask are not allowed (models pad their vocabulary). Mask bits
            beyond `width` are ignored.
        row: uint32, shape [words].

    Returns:
        Whether an allowed token has a logit above -inf.

    Raises:
        TypeError: The logits are not floating.
        ValueError: The logits are not one-dimensional.
    """
    if logits.ndim != 1:
        raise ValueError(f"logits must have 1 dimension, got {logits.ndim}")
    return not masked_into(logits[None], logits[None], row[None], [True])


def masked_into(source: NDArray[Any], target: NDArray[Any], rows: Row, held: Sequence[bool]) -> list[int]:
    """Copy `source` to `target`, with -inf for tokens that are not allowed.

    Args:
        source: Floating, shape [rows, width].
        target: Floating, shape [rows, width]; may be `source`.
        rows: uint32, shape [rows, words].
        held: For each row, whether its mask applies. Other rows are copied unchanged.

    Returns:
        The indexes of the masked rows in which every logit is -inf.

    Raises:
        TypeError: The logits are not floating.
    """
    if source.dtype is _FLOAT is target.dtype and source.strides[1] == target.strides[1] == 4:
        return mask_logits(source, target, rows, held)
    if not np.issubdtype(source.dtype, np.floating):
        raise TypeError(f"logits must be floating, got dtype {source.dtype}")
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
