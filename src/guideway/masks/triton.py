"""Packed masks on GPU logits: a Triton kernel that reads one bit per token.

Imported only if Triton is installed. With TRITON_INTERPRET=1 it runs on a CPU, which the tests use.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["masked"]

BLOCK = 4096
"""The number of logits per Triton program: 16 KB of float32, 512 bytes of mask."""


@triton.jit  # type: ignore[untyped-decorator]  # Triton gives no types
def _mask(  # type: ignore[no-untyped-def]  # Triton compiles annotations too, and knows no Python types
    logits, made, words, free, alive, width, word_count, logits_stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    found = tl.load(words + row * word_count + (at >> 5), mask=inside & ((at >> 5) < word_count), other=0)
    legal = (((found >> (at & 31)) & 1) | tl.load(free + row)) != 0
    # Logits of tokens that are not allowed are not read: that saves up to half of the memory traffic.
    kept = tl.load(logits + row.to(tl.int64) * logits_stride + at, mask=inside & legal, other=float("-inf"))
    tl.store(made + row.to(tl.int64) * width + at, kept, mask=inside)
    if tl.max((kept != float("-inf")).to(tl.int32), axis=0) != 0:
        tl.store(alive + row, 1)  # concurrent writes of the same value


def masked(logits: Any, words: Any, free: Any) -> tuple[Any, Any]:
    """Return masked logits, and for each row a flag: whether it is masked and all its logits are -inf.

    Both are tensors on the device, for which the function does not wait.

    Args:
        logits: Floating, shape [rows, width].
        words: The masks, one bit per token, lowest bit first. int32, shape [rows, words], on the device of the logits.
        free: bool, shape [rows], on the same device; True for rows that are not masked.
    """
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    rows, width = logits.shape
    made = torch.empty((rows, width), dtype=logits.dtype, device=logits.device)
    alive = torch.zeros(rows, dtype=torch.int32, device=logits.device)
    flags = free.to(torch.int32)
    _mask[(rows, triton.cdiv(width, BLOCK))](
        logits, made, words, flags, alive, width, words.shape[1], logits.stride(0), BLOCK=BLOCK
    )
    return made, (alive == 0) & ~free
