"""Masks on logits of PyTorch, on the device where they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.masks.numpy import Row, masked_into, words

__all__ = ["TorchMasks", "apply_torch", "pinned_rows"]


def apply_torch(logits: Any, rows: Row) -> Any:
    """The logits with illegal tokens, and tokens beyond the mask, at -inf.

    Args:
        logits: A PyTorch tensor of any floating type on any device, [vocabulary] or [rows, vocabulary].
        rows: The masks, uint32 [words] or [rows, words].

    Returns:
        A new tensor of the same shape, type and device.

    Raises:
        ValueError: The numbers of rows differ.
    """
    if (logits.shape[0] if logits.ndim == 2 else None) != (rows.shape[0] if rows.ndim == 2 else None):
        raise ValueError(f"logits of shape {tuple(logits.shape)} need masks of as many rows, got shape {rows.shape}")
    if logits.ndim == 1:
        return apply_torch(logits[None], rows[None])[0]
    return TorchMasks()(logits, rows, [True] * len(rows))[0]


class TorchMasks:
    """Applies masks to the logits of one engine's loop, which may go on to use what it hands in.

    `in_place`: it does not, and what it hands in is written over; may be set between calls. Else float32 on the CPU
    goes into memory that is used again once nobody holds what was in it: a fresh copy of a large batch costs several
    times as much as its masks, in page faults. On CUDA a kernel of Triton reads the packed bits, where Triton is
    installed; everything else are PyTorch's own operations.
    """

    def __init__(self, *, in_place: bool = False) -> None:
        self.in_place = in_place
        self._rooms: list[NDArray[np.float32]] = []
        self._flags: Any = None  # on another device: which rows had nothing left, not yet asked for

    def __call__(self, logits: Any, rows: Row, held: Sequence[bool]) -> tuple[Any, list[int]]:
        """The logits with illegal tokens at -inf, and the held rows where nothing legal is left.

        `logits`: floating [rows, width]. `rows`: uint32 [rows, words]; `held[i]`: whether row i is held to its mask.
        Tokens beyond the mask are illegal. On other devices the second list is empty, and `nothing` says it
        when asked: the answer is not waited for here.
        """
        if True not in held:
            return logits, []
        target = self.target(logits)
        if target is not None:
            source = (logits.detach() if logits.requires_grad else logits).numpy()
            return target, masked_into(source, source if target is logits else target.numpy(), rows, held)
        made, self._flags = _on_device(logits, rows, held)
        return (made, self.nothing()) if logits.is_cpu else (made, [])

    def target(self, logits: Any) -> Any:
        """Where these logits may be written masked, by the kernel; None: not in memory of the CPU, or not float32."""
        import torch

        if not (logits.is_cpu and logits.dtype is torch.float32 and logits.stride(1) == 1):
            return None
        return logits if self.in_place else torch.from_numpy(self._room(logits.shape))

    def nothing(self) -> list[int]:
        """The held rows of the last call on another device that had nothing left; said once. Waits for the device."""
        flags, self._flags = self._flags, None
        return [] if flags is None else [int(i) for i in flags.nonzero().flatten().tolist()]

    def _room(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Memory that no tensor lives in: one made of an array holds a reference to it until its storage dies."""
        self._rooms = [room for room in self._rooms if room.shape == tuple(shape)]
        for index in range(len(self._rooms)):
            if sys.getrefcount(self._rooms[index]) == _ALONE:
                return self._rooms[index]
        self._rooms = [*self._rooms[-2:], np.empty(tuple(shape), np.float32)]
        return self._rooms[-1]


def _on_device(logits: Any, rows: Row, held: Sequence[bool]) -> tuple[Any, Any]:
    """Masked logits, and a flag a row: held, and nothing legal is left. Nothing is waited for."""
    import torch

    packed = torch.from_numpy(rows.view(np.int32)).to(logits.device, non_blocking=True)
    free = torch.tensor([not one for one in held], dtype=torch.bool).to(logits.device, non_blocking=True)
    if logits.device.type == "cuda":
        try:
            from guideway.masks.triton import masked
        except ImportError:  # a build of PyTorch without Triton
            pass
        else:
            return masked(logits, packed, free)
    bits = (packed[:, :, None] >> torch.arange(32, device=logits.device)) & 1
    legal = bits.flatten(1)[:, : logits.shape[1]].bool()
    legal = torch.nn.functional.pad(legal, (0, logits.shape[1] - legal.shape[1]))
    made = logits.masked_fill(~(legal | free[:, None]), float("-inf"))
    return made, torch.isneginf(made.amax(dim=-1)) & ~free


def pinned_rows(count: int, size: int) -> Row:
    """As `new_rows`, in memory from which a GPU copies without waiting for the CPU."""
    import torch

    made: Row = torch.zeros(count, words(size), dtype=torch.int32, pin_memory=True).numpy().view(np.uint32)
    return made


def _alone() -> int:
    array = [np.empty(1, np.float32)]
    return sys.getrefcount(array[0])


_ALONE = _alone()
"""What `sys.getrefcount` says of an item of a list that nobody else holds: it differs between versions of Python."""
