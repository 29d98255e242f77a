"""Hash-based random numbers: a random number is a hash of the seed, the row and the position of the draw."""

from __future__ import annotations

import hashlib

__all__ = ["XTC_STREAM", "number_of", "uniform"]

XTC_STREAM, RETRY_STREAM = 1, 2  # values of `stream` for further numbers at a position; 0 is the first draw


def uniform(seed: int, row: int, position: int, stream: int = 0) -> float:
    """Return a number in [0, 1), a hash of the arguments.

    There is no generator state to save: after a rewind, the same position gives the same number.

    Args:
        seed: Random seed.
        row: Number of the sequence.
        position: Position in the sequence.
        stream: Which of several numbers at the same position.
    """
    key = f"{seed} {row} {position} {stream}" if stream else f"{seed} {row} {position}"
    digest = hashlib.blake2b(key.encode(), digest_size=8, person=b"guideway draws").digest()
    return (int.from_bytes(digest, "little") >> 11) / (1 << 53)


def number_of(seed: int, row: int, position: int, attempt: int = 0) -> float:
    """Return the random number of a draw. `attempt`: number of earlier draws at this position that were rejected."""
    return uniform(seed, row, position, RETRY_STREAM + attempt if attempt else 0)
