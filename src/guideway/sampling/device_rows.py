"""Draws of a whole batch on the device of its logits.

A draw needs a token, not the logits. The device masks all rows and draws in a few operations, and one copy returns the
tokens. Samplers with other stages than `BATCHED` draw on the CPU, one row after the other; their rows are copied
together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guideway.masks.torch import TorchMasks
from guideway.sampling.sampler import Sampler

__all__ = ["DeviceDraw", "DeviceRow", "device_rows", "draws_on_device", "on_cpu"]

Mask = NDArray[np.uint32]

BATCHED = ("temperature", "top_k", "top_p", "min_p")
"""The stages that run on a device, in this order."""

_DOUBLE = ("cpu", "cuda", "xpu")
"""Types of devices with float64. Samplers that are not greedy need it to draw the same tokens as on the CPU."""


class DeviceDraw(NamedTuple):
    """The draws to compute for a row.

    Attributes:
        sampler: A sampler for which `draws_on_device` is True.
        number: The random number, in [0, 1). Greedy samplers ignore it.
        masks: The masks under which a token may be drawn, uint32 [words]; a mask None allows all tokens.
    """

    sampler: Sampler
    number: float
    masks: Sequence[Mask | None]


class DeviceRow:
    """The logits of one row of a tensor, and the tokens that `device_rows` drew.

    Args:
        logits: The tensor, [rows, vocabulary].
        place: The index of the row.
        drawn: Pairs of a mask and the token drawn under it; None for the token: the largest logit is not finite, or
            rounding selected a removed token.
    """

    __slots__ = ("_drawn", "_logits", "_place")

    def __init__(self, logits: Any, place: int, drawn: Sequence[tuple[Mask | None, int | None]]) -> None:
        self._logits, self._place, self._drawn = logits, place, drawn

    def token(self, mask: Mask | None) -> int | None:
        """Return the token that was drawn under this mask; None: there is none, or the mask was not given.

        Masks are compared by identity.
        """
        return next((token_id for known, token_id in self._drawn if known is mask), None)

    def array(self) -> NDArray[np.float32]:
        """Return a copy of the logits, float32 [vocabulary]. Waits for the device."""
        return on_cpu(self._logits[self._place])


def draws_on_device(sampler: Sampler) -> bool:
    """Return whether `device_rows` can draw with this sampler on a device that has float64."""
    return sampler.bare or (
        sampler.temperature > 0 and sampler.stages == tuple(s for s in BATCHED if s in sampler.stages)
    )


def device_rows(logits: Any, draws: Sequence[DeviceDraw | None]) -> list[DeviceRow | NDArray[np.float32]]:
    """Draw in a batch whose logits are a tensor.

    Args:
        logits: float32 [rows, vocabulary], on any device.
        draws: What is drawn in each row; None: nothing.

    Returns:
        A `DeviceRow` for each row with a draw that the device supports, and the logits in main memory for each
        other row.
    """
    if logits.device.type not in _DOUBLE:
        draws = [one if one is None or one.sampler.bare else None for one in draws]
    groups: dict[int, list[tuple[int, int]]] = {}  # for each sampler the pairs of a row and the index of a mask
    for place, one in enumerate(draws):
        if one is not None:
            groups.setdefault(id(one.sampler), []).extend((place, index) for index in range(len(one.masks)))
    found = dict(
        zip((case for cases in groups.values() for case in cases), _tokens(logits, draws, groups), strict=True)
    )
    copied = [place for place, one in enumerate(draws) if one is None]
    arrays = iter(on_cpu(_taken(logits, copied)) if copied else ())
    return [
        next(arrays)
        if one is None
        else DeviceRow(logits, place, [(mask, found[place, index]) for index, mask in enumerate(one.masks)])
        for place, one in enumerate(draws)
    ]


def on_cpu(logits: Any) -> NDArray[np.float32]:
    """Return logits as a NumPy array. A tensor is copied; CUDA writes to pinned memory, which is several times faster."""
    if isinstance(logits, np.ndarray):
        return logits
    if not logits.is_cuda:
        return np.asarray(logits.cpu().numpy())
    import torch

    made = torch.empty(logits.shape, dtype=logits.dtype, pin_memory=True)
    return np.asarray(made.copy_(logits).numpy())


def _tokens(
    logits: Any, draws: Sequence[DeviceDraw | None], groups: dict[int, list[tuple[int, int]]]
) -> list[int | None]:
    """Return the token of each pair of a row and a mask, in the order of `groups`."""
    import torch

    parts = []
    for cases in groups.values():
        given = [one for place, _ in cases if (one := draws[place]) is not None]
        masks = [one.masks[index] for one, (_, index) in zip(given, cases, strict=True)]
        allowed = _masked(_taken(logits, [place for place, _ in cases]), masks)
        largest, ids = allowed.max(dim=-1)  # the first of equal logits; a NaN is the largest
        if not given[0].sampler.bare:
            ids, left = _sampled(given[0].sampler, allowed, [one.number for one in given])
            # Sums that were computed in parallel may select a removed token by rounding: then there is no token.
            largest = torch.where(left.gather(-1, ids[:, None])[:, 0] > -math.inf, largest, math.nan)
        parts.append(torch.stack((largest, ids.to(largest.dtype))))  # float32 represents ids exactly below 2 ** 24
    if not parts:
        return []
    tops, ids = torch.cat(parts, dim=1).cpu().numpy()
    return [int(token_id) if np.isfinite(top) else None for top, token_id in zip(tops, ids, strict=True)]


def _taken(logits: Any, places: list[int]) -> Any:
    """Return these rows of a tensor."""
    import torch

    if places == list(range(len(logits))):
        return logits
    return logits[torch.tensor(places, device=logits.device)]


def _masked(logits: Any, masks: Sequence[Mask | None]) -> Any:
    """Return the logits with -inf for the tokens that the mask of the row does not allow. A mask None allows all."""
    import torch

    held = [mask is not None for mask in masks]
    if not any(held):
        return logits
    width = next(len(mask) for mask in masks if mask is not None)
    rows = torch.empty(len(masks), width, dtype=torch.int32, pin_memory=bool(logits.is_cuda)).numpy().view(np.uint32)
    for row, mask in zip(rows, masks, strict=True):
        if mask is not None:
            row[:] = mask
    return TorchMasks()(logits, rows, held)[0]


def _sampled(sampler: Sampler, logits: Any, numbers: Sequence[float]) -> tuple[Any, Any]:
    """Draw one token per row with the stages `BATCHED`, as `chain.draw` does.

    Returns the tokens, int64 [rows], and the logits after the stages, with -inf for the removed tokens.

    `logits`: [rows, vocabulary], with -inf for tokens that are not allowed.
    """
    import torch

    left = logits.to(torch.float64)
    left = (left - left.amax(-1, keepdim=True)) / sampler.temperature
    if 0 < sampler.top_k < left.shape[1]:
        edge = left.topk(sampler.top_k).values[:, -1:]
        left = _first_of_edge(left, edge, sampler.top_k)
    if sampler.top_p < 1:
        ordered = left.sort(dim=-1, descending=True).values
        count = 1 + (ordered.softmax(-1).cumsum(-1) < sampler.top_p).sum(-1, keepdim=True)
        count = count.clamp_max(left.shape[1])
        left = _first_of_edge(left, ordered.gather(-1, count - 1), count)
    if sampler.min_p:
        left = left.masked_fill(left < left.amax(-1, keepdim=True) + math.log(sampler.min_p), -math.inf)
    sums = torch.exp(left - left.amax(-1, keepdim=True)).cumsum(-1)
    total = sums[:, -1:].contiguous()
    wanted = torch.tensor(numbers, dtype=left.dtype).to(left.device)[:, None] * total
    drawn = torch.searchsorted(sums, wanted, right=True)
    drawn = torch.where(drawn < left.shape[1], drawn, torch.searchsorted(sums, total))  # rounding: the last one
    return drawn[:, 0].clamp_max(left.shape[1] - 1), left  # past the end if a logit is NaN


def _first_of_edge(left: Any, edge: Any, count: Any) -> Any:
    """Return the logits with -inf for all but the `count` largest; of equal ones, the lowest ids are kept.

    `edge`: the smallest of the `count` largest logits, [rows, 1]. `count`: an int, or [rows, 1].
    """
    above, equal = left > edge, left == edge
    kept = above | (equal & (equal.cumsum(-1) <= count - above.sum(-1, keepdim=True)))
    return left.masked_fill(~kept, -math.inf)
