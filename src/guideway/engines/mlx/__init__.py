"""The MLX engine: models of mlx-lm, on the devices that MLX supports, such as Apple GPUs and CPUs.

model.py   `MlxEngine`
padded.py  rows of different lengths in one call
cache.py   mlx-lm's caches as immutable values
"""

from __future__ import annotations

from guideway.engines.mlx.model import MlxEngine, folder_of

__all__ = ["MlxEngine", "folder_of"]
