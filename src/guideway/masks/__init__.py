"""Token masks on arrays. A mask is a row of uint32 words with one bit per token (1: allowed), as in vLLM.

`apply` sets the NumPy logits of all other tokens to -inf, in place; `apply_torch` and `apply_mlx` return masked logits.

numpy.py   NumPy
torch.py   PyTorch
triton.py  a Triton kernel that applies masks on a GPU
mlx.py     MLX
"""

from __future__ import annotations

from guideway.masks.mlx import apply_mlx
from guideway.masks.numpy import Row, all_of, apply, ids, masked_into, new_rows, only, pack, popcount, unpack, words
from guideway.masks.torch import apply_torch

__all__ = [
    "Row",
    "all_of",
    "apply",
    "apply_mlx",
    "apply_torch",
    "ids",
    "masked_into",
    "new_rows",
    "only",
    "pack",
    "popcount",
    "unpack",
    "words",
]
