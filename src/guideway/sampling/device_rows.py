"""Logits on a device: greedy tokens of a whole batch are computed there; other rows are copied to the CPU.

A draw needs a token, not the logits. For greedy rows, the device masks all rows and finds the largest logits in a few
operations, and one copy of a few bytes returns the tokens. Other samplers need all logits, and the kernel on the CPU is
faster at one row than a sequence of PyTorch operations, so their rows are copied together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.masks.torch import TorchMasks

__all__ = ["DeviceRow", "device_rows", "on_cpu"]

Mask = NDArray[np.uint32]


class DeviceRow:
    """The logits of one row of a tensor, and its greedy tokens under the masks that `device_rows` was given.

    Args:
        logits: The tensor, [rows, vocabulary].
        place: The index of the row.
        greedy: Pairs of a mask (None: all tokens are allowed) and the token with the largest allowed logit. The token
            is None if the largest logit is not finite.
    """

    __slots__ = ("_greedy", "_logits", "_place")

    def __init__(self, logits: Any, place: int, greedy: Sequence[tuple[Mask | None, int | None]]) -> None:
        self._logits, self._place, self._greedy = logits, place, greedy

    def greedy(self, mask: Mask | None) -> int | None:
        """Return the token with the largest logit under this mask; None: there is none, or the mask was not given.

        Masks are compared by identity.
        """
        return next((token_id for known, token_id in self._greedy if known is mask), None)

    def array(self) -> NDArray[np.float32]:
        """Return a copy of the logits, float32 [vocabulary]. Waits for the device."""
        return on_cpu(self._logits[self._place])


def device_rows(logits: Any, greedy: Sequence[Sequence[Mask | None] | None]) -> list[DeviceRow | NDArray[np.float32]]:
    """Prepare the draws of a batch whose logits are a tensor.

    Args:
        logits: float32 [rows, vocabulary], on any device.
        greedy: For each row the masks, uint32 [words], under which a token is drawn greedily; None for a mask: all
            tokens are allowed. None for a row: its sampler is not greedy.

    Returns:
        For each row a `DeviceRow` if it is drawn greedily, else its logits in main memory.
    """
    cases = [(place, mask) for place, masks in enumerate(greedy) for mask in masks or ()]
    tokens = iter(_greedy_tokens(logits, cases))
    copied = [place for place, masks in enumerate(greedy) if masks is None]
    arrays = iter(on_cpu(_taken(logits, copied)) if copied else ())
    return [
        next(arrays) if masks is None else DeviceRow(logits, place, [(mask, next(tokens)) for mask in masks])
        for place, masks in enumerate(greedy)
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


def _taken(logits: Any, places: list[int]) -> Any:
    """Return these rows of a tensor."""
    import torch

    if places == list(range(len(logits))):
        return logits
    return logits[torch.tensor(places, device=logits.device)]


def _greedy_tokens(logits: Any, cases: Sequence[tuple[int, Mask | None]]) -> list[int | None]:
    """Return the token with the largest logit for each pair of a row and a mask; of equal ones the lowest id."""
    import torch

    if not cases:
        return []
    chosen = _taken(logits, [place for place, _ in cases])
    held = [mask is not None for _, mask in cases]
    if any(held):
        width = next(len(mask) for _, mask in cases if mask is not None)
        packed = torch.empty(len(cases), width, dtype=torch.int32, pin_memory=bool(logits.is_cuda)).numpy()
        rows = packed.view(np.uint32)
        for row, (_, mask) in zip(rows, cases, strict=True):
            if mask is not None:
                row[:] = mask
        chosen, _ = TorchMasks()(chosen, rows, held)
    largest, ids = chosen.max(dim=-1)  # the first of equal logits; a NaN is the largest
    # One copy: float32 represents ids exactly below 2 ** 24.
    found = torch.stack((largest, ids.to(largest.dtype))).cpu().numpy()
    return [int(token_id) if np.isfinite(top) else None for top, token_id in zip(*found, strict=True)]
