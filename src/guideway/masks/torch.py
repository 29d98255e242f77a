"""Masks on PyTorch logits, on their device."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.masks.numpy import Row, masked_into, words

__all__ = ["TorchMasks", "apply_torch", "pinned_rows"]


def apply_torch(logits: Any, rows: Row) -> Any:
    """Return the logits, with -inf for tokens that the mask does not allow and for tokens beyond the mask.

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
    """Applies masks to the logits of one generation loop.

    float32 logits on the CPU are masked by the kernel. The result is written to a buffer that is reused once no tensor
    refers to it, because allocating memory for a large batch takes several times as long as masking (page faults). On
    CUDA a Triton kernel reads the packed bits, if Triton is installed. All other cases use PyTorch operations.

    Attributes:
        in_place: Whether float32 logits on the CPU are overwritten. Set it only if the loop does not use them
            afterwards.
    """

    def __init__(self, *, in_place: bool = False) -> None:
        self.in_place = in_place
        self._buffers: list[NDArray[np.float32]] = []
        self._flags: Any = None  # the flags of the last call on a device, until `nothing` reads them

    def __call__(self, logits: Any, rows: Row, held: Sequence[bool]) -> tuple[Any, list[int]]:
        """Mask logits with -inf for tokens that are not allowed.

        Args:
            logits: Floating, shape [rows, width].
            rows: uint32, shape [rows, words]. Tokens beyond the mask are not allowed.
            held: For each row, whether its mask applies.

        Returns:
            The masked logits, and the indexes of the masked rows in which every logit is -inf. On devices other than
            the CPU the list is always empty, because reading the rows would wait for the device; call `nothing` later.
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
        """Return the tensor to which the kernel writes the result.

        None if the kernel cannot mask the logits: they are not float32 on the CPU, or a row is not contiguous.
        """
        import torch

        if not (logits.is_cpu and logits.dtype is torch.float32 and logits.stride(1) == 1):
            return None
        return logits if self.in_place else torch.from_numpy(self._buffer(logits.shape))

    def nothing(self) -> list[int]:
        """Return the masked rows in which every logit is -inf, of the last call that masked logits on another device.

        Waits for the device. A second call returns [].
        """
        flags, self._flags = self._flags, None
        return [] if flags is None else [int(i) for i in flags.nonzero().flatten().tolist()]

    def _buffer(self, shape: tuple[int, int]) -> NDArray[np.float32]:
        """Return an uninitialised array: one of an earlier call that no tensor refers to, or else a new one.

        A tensor that was made from an array holds a reference to the array. At most three arrays are kept.
        """
        self._buffers = [buffer for buffer in self._buffers if buffer.shape == tuple(shape)]
        for index in range(len(self._buffers)):
            if sys.getrefcount(self._buffers[index]) == _ALONE:
                return self._buffers[index]
        self._buffers = [*self._buffers[-2:], np.empty(tuple(shape), np.float32)]
        return self._buffers[-1]


def _on_device(logits: Any, rows: Row, held: Sequence[bool]) -> tuple[Any, Any]:
    """Return masked logits, and for each row a flag: whether it is masked and all its logits are -inf.

    Both are tensors on the device, for which the function does not wait.
    """
    import torch

    packed = torch.from_numpy(rows.view(np.int32)).to(logits.device, non_blocking=True)
    free = torch.tensor([not one for one in held], dtype=torch.bool).to(logits.device, non_blocking=True)
    if logits.device.type == "cuda":
        try:
            from guideway.masks.triton import masked
        except ImportError:  # a PyTorch build without Triton
            pass
        else:
            return masked(logits, packed, free)
    bits = (packed[:, :, None] >> torch.arange(32, device=logits.device)) & 1
    legal = bits.flatten(1)[:, : logits.shape[1]].bool()
    legal = torch.nn.functional.pad(legal, (0, logits.shape[1] - legal.shape[1]))
    made = logits.masked_fill(~(legal | free[:, None]), float("-inf"))
    return made, torch.isneginf(made.amax(dim=-1)) & ~free


def pinned_rows(count: int, size: int) -> Row:
    """Return `count` empty masks as `new_rows` does, in pinned memory, from which a GPU copies asynchronously."""
    import torch

    made: Row = torch.zeros(count, words(size), dtype=torch.int32, pin_memory=True).numpy().view(np.uint32)
    return made


def _alone() -> int:
    array = [np.empty(1, np.float32)]
    return sys.getrefcount(array[0])


_ALONE = _alone()
"""`sys.getrefcount` of an array that only a list refers to. It depends on the Python version."""
