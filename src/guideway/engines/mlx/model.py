"""`MlxEngine`: a step engine for models of mlx-lm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import hf_repo_to_path, load_model

from guideway.engines import config as configs
from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.batching import by_length
from guideway.engines.kv_cache import closed_model, export_cache
from guideway.engines.mlx.cache import MLX, gather, made_caches, restore
from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["MlxEngine", "folder_of"]


class MlxEngine:
    """A folder with config.json and safetensors, as transformers or mlx-lm write it.

    Recurrent models and sliding windows do not support rollback (`supports_rollback` is False).

    Args:
        path: The folder.
        device: "cpu" or "gpu", for this process (MLX has one default device); by default MLX's choice.
        dtype: Type of the weights: "float32", "bfloat16", …; by default unchanged.
        context_size: Maximum number of tokens per row; by default that of config.json.

    Raises:
        ModelNotFoundError: There is no model in the folder.
        EngineError: The model cannot be loaded, or the device or type is not supported.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str | None = None,
        dtype: str | None = None,
        context_size: int | None = None,
    ) -> None:
        self._folder = Path(path)
        if device is not None:
            _set_device(device)
        kind = getattr(mx, dtype, None) if dtype is not None else None
        if dtype is not None and not isinstance(kind, mx.Dtype):
            raise EngineError(f"unknown MLX dtype {dtype!r}; use for example float32, bfloat16 or float16")
        try:
            self._model: Any = load_model(self._folder)[0]
        except FileNotFoundError as error:
            raise ModelNotFoundError(f"no MLX model found at {path}: {error}") from error
        except Exception as error:  # model classes of mlx-lm raise various exceptions
            raise EngineError(f"mlx-lm cannot load {path}: {error}") from error
        if kind is not None:
            self._model.set_dtype(kind)
        self.supports_rollback = all(type(one) is KVCache for one in make_prompt_cache(self._model))
        logits, cache = self._run([[0]], make_prompt_cache(self._model))
        self.vocab_size = int(logits.shape[-1])
        self._like: Any = made_caches(cache, 1, supports_rollback=self.supports_rollback)[0]
        self.context_size = configs.context_size(configs.read_config(self._folder / "model"), context_size)

    @cached_property
    def fingerprint(self) -> str:
        return configs.digest_of(self._folder / "config.json", *sorted(self._folder.glob("*.safetensors")))

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal lengths run as one batch; rows without rollback run one at a time."""
        if self._model is None:
            raise closed_model()
        check_rows(self, rows, caches)
        return by_length(rows, caches, self._batch, alone=not self.supports_rollback)

    def _batch(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run rows of equal cached and new lengths."""
        cached = caches[0].length if caches[0] is not None else 0
        logits, past = self._run(rows, gather(caches, make_prompt_cache(self._model)))
        return logits, made_caches(past, cached + len(rows[0]), supports_rollback=self.supports_rollback)

    def export(self, cache: Cache) -> Arrays:
        return export_cache(cache, MLX)

    def restore(self, arrays: Arrays) -> Cache:
        return restore(arrays, self._like)

    def close(self) -> None:
        self._model = None

    def _run(self, rows: Sequence[Sequence[int]], cache: Any) -> tuple[Logits, Any]:
        try:
            logits = self._model(mx.array([list(row) for row in rows]), cache=cache)[:, -1].astype(mx.float32)
            mx.eval(logits, [one.state for one in cache])
        except Exception as error:  # MLX raises various exceptions
            raise EngineError(f"MLX failed on {len(rows)} rows of {len(rows[0])} tokens: {error}") from error
        return np.array(logits), cache


def folder_of(name: str) -> Path:
    """Return the folder of a model by its name on the Hub, or the folder itself. Raises `ModelNotFoundError`."""
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(hf_repo_to_path(name))
    except Exception as error:  # the exceptions of the Hub client differ between versions
        raise ModelNotFoundError(f"model {name!r} not found for MLX: {str(error).splitlines()[0]}") from error


def _set_device(device: str) -> None:
    kinds = {"cpu": mx.cpu, "gpu": mx.gpu}
    if device not in kinds:
        raise EngineError(f"device must be 'cpu' or 'gpu' for MLX, got {device!r}")
    if not mx.is_available(kinds[device]):
        raise EngineError(f"the device {device!r} is not available to MLX on this machine")
    mx.set_default_device(mx.Device(kinds[device]))
