"""Masks on logits of PyTorch, on the device where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from guideway.masks.numpy import Row, anything_left
from guideway.masks.numpy import apply as apply_to_array

__all__ = ["masked"]


def masked(logits: Any, rows: Row, held: Sequence[bool], *, in_place: bool = False) -> tuple[Any, list[int]]:
    """The logits with illegal tokens at -inf, and the rows where nothing legal is left.

    `logits`: floating [rows, width], not changed unless `in_place`: prompt lookup in transformers 5.23 hands in the
    same ones again and again. `rows`: uint32 [rows, words]; `held[i]`: whether row i is held to its mask. Tokens beyond
    are illegal. float32 on the CPU is masked word by word; everything else with PyTorch's own operations, on the
    logits' device.
    """
    import torch

    if not any(held):
        return logits, []
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        made = logits if in_place else logits.clone(memory_format=torch.contiguous_format)
        view = made.detach().numpy()
        for row, mask, is_held in zip(view, rows, held, strict=True):
            if is_held:
                apply_to_array(row, mask)
        return made, [i for i, is_held in enumerate(held) if is_held and not anything_left(view[i], rows[i])]
    words = torch.from_numpy(rows.view(np.int32)).to(logits.device, non_blocking=True)
    bits = (words[:, :, None] >> torch.arange(32, device=logits.device)) & 1
    legal = bits.flatten(1)[:, : logits.shape[1]].bool()
    legal = torch.nn.functional.pad(legal, (0, logits.shape[1] - legal.shape[1]))
    free = torch.tensor([not is_held for is_held in held], device=logits.device)
    fill = logits.masked_fill_ if in_place else logits.masked_fill
    made = fill(~(legal | free[:, None]), float("-inf"))
    nothing = torch.isneginf(made.amax(dim=-1)) & ~free
    return made, [int(i) for i in torch.nonzero(nothing).flatten().tolist()]
