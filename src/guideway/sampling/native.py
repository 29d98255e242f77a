"""`draw` and `report` in the kernel, for contiguous float32 logits in main memory and stages in the default order.

The kernel passes over the vocabulary once and then over the candidates, while NumPy makes an array for each stage
(`benchmarks/bench_sampler.py`). Unsupported cases are handled by `chain.py` and `report.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.sampling.random import XTC_STREAM, number_of, uniform
from guideway.sampling.sampler import Sampler

__all__ = ["draw_bare", "draw_native", "draw_with_gap", "shares_native"]

_FLOAT, _WORD = np.dtype(np.float32), np.dtype(np.uint32)


def draw_native(
    sampler: Sampler,
    logits: NDArray[Any],
    mask: NDArray[np.uint32] | None,
    tokens: Sequence[int],
    place: tuple[int, int, int],
    attempt: int,
) -> int | None:
    """Return the token; None: the kernel does not support the case or found an error.

    The arguments are those of `draw_at`.
    """
    settings = sampler.kernel
    if settings is None or not _fits(logits, mask):
        return None
    if sampler.quick is not None:
        return sampler.quick(logits, mask)
    if sampler.by_number is not None:
        return sampler.by_number(logits, mask, number_of(*place, attempt))
    return settings.draw(logits, mask, *_arguments(sampler, tokens, place, attempt))


def draw_with_gap(
    sampler: Sampler,
    logits: Any,
    mask: NDArray[np.uint32] | None,
    tokens: Sequence[int],
    place: tuple[int, int, int],
    attempt: int,
) -> tuple[int, float] | None:
    """Return the token of `draw_native`, and a tolerance for the logits.

    If the difference of any two logits changes by less than the tolerance, the same token is drawn. The borders of
    stages that remove tokens (`top_k`, `top_p`, …) are not considered: if a token is near such a border, a smaller
    change can have an effect. None: as in `draw_native`.
    """
    settings = sampler.kernel
    if settings is None or not isinstance(logits, np.ndarray) or not _fits(logits, mask):
        return None
    return settings.draw_with_gap(logits, mask, *_arguments(sampler, tokens, place, attempt))


def draw_bare(sampler: Sampler, logits: Any, mask: NDArray[np.uint32] | None) -> int | None:
    """Return the token of `draw_native` for a sampler that is `bare`. None: another sampler, or as in `draw_native`."""
    quick = sampler.quick
    if quick is None:
        return None
    return quick(logits, mask) if isinstance(logits, np.ndarray) and _fits(logits, mask) else None


def shares_native(
    logits: NDArray[Any], mask: NDArray[np.uint32] | None, token_id: int
) -> tuple[float, float, float] | None:
    """Return `logprob`, `mask_logprob` and `masked_mass` of `TokenLogprobs`; None: unsupported logits."""
    from guideway._kernel import shares

    return shares(logits, mask, token_id) if _fits(logits, mask) else None


def _arguments(
    sampler: Sampler, tokens: Sequence[int], place: tuple[int, int, int], attempt: int
) -> tuple[float, bool, NDArray[np.uint32] | None, NDArray[np.uint32] | None]:
    """Return the arguments of the kernel's draw after the mask: number, exclude_top, seen, counts."""
    seen, counts = _seen(tokens[-sampler.penalty_window :]) if "penalty" in sampler.kinds else (None, None)
    number = number_of(*place, attempt) if sampler.temperature else 0.0
    exclude_top = bool(sampler.xtc_probability) and uniform(*place, XTC_STREAM) < sampler.xtc_probability
    return number, exclude_top, seen, counts


def _fits(logits: NDArray[Any], mask: NDArray[np.uint32] | None) -> bool:
    if logits.dtype != _FLOAT or not logits.flags.c_contiguous:
        return False
    return mask is None or bool(mask.dtype == _WORD and mask.flags.c_contiguous and mask.size)


def _seen(tokens: Sequence[int]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    distinct, counts = np.unique(np.array(tokens, dtype=np.int64), return_counts=True)
    return distinct.astype(np.uint32), counts.astype(np.uint32)
