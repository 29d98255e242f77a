"""A step engine over a model of mlx-lm."""

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
from guideway.engines.mlx.arrays import from_arrays, to_arrays
from guideway.engines.mlx.cache import gather, given_out
from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["MlxEngine", "folder_of"]


class MlxEngine:
    """A folder with config.json and safetensors, as transformers or mlx-lm write it.

    `device`: "cpu" or "gpu", for this process (MLX has one default device); MLX's own choice by default. `dtype`: what
    the weights become: "float32", "bfloat16" … `context_size`: tokens per row; by default what config.json says.
    Recurrent models and sliding windows run, and cannot go back (`supports_rollback` is False).
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
            raise EngineError(f"MLX has no type {dtype!r}; known are float32, bfloat16, float16")
        try:
            self._model: Any = load_model(self._folder)[0]
        except FileNotFoundError as error:
            raise ModelNotFoundError(f"there is no model for MLX at {path}: {error}") from error
        except Exception as error:  # each architecture of mlx-lm raises what it likes
            raise EngineError(f"mlx-lm cannot load {path}: {error}") from error
        if kind is not None:
            self._model.set_dtype(kind)
        self.supports_rollback = all(type(one) is KVCache for one in make_prompt_cache(self._model))
        logits, cache = self._run([[0]], make_prompt_cache(self._model))
        self.vocab_size = int(logits.shape[-1])
        self._like: Any = given_out(cache, 1, 1, supports_rollback=self.supports_rollback)[0]
        self.context_size = configs.context_size(configs.read_config(self._folder / "model"), context_size)

    @cached_property
    def fingerprint(self) -> str:
        return configs.digest_of(self._folder / "config.json", *sorted(self._folder.glob("*.safetensors")))

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal lengths run as one batch; those of models that cannot go back, one by one."""
        if self._model is None:
            raise EngineError("the model is closed")
        check_rows(self, rows, caches)
        return by_length(rows, caches, self._batch, alone=not self.supports_rollback)

    def _batch(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Rows of equal lengths, cached and new."""
        cached = caches[0].length if caches[0] is not None else 0
        logits, past = self._run(rows, gather(caches, make_prompt_cache(self._model)))
        return logits, given_out(past, len(rows), cached + len(rows[0]), supports_rollback=self.supports_rollback)

    def export(self, cache: Cache) -> Arrays:
        return to_arrays(cache)

    def restore(self, arrays: Arrays) -> Cache:
        return from_arrays(arrays, self._like)

    def close(self) -> None:
        self._model = None

    def _run(self, rows: Sequence[Sequence[int]], cache: Any) -> tuple[Logits, Any]:
        try:
            logits = self._model(mx.array([list(row) for row in rows]), cache=cache)[:, -1].astype(mx.float32)
            mx.eval(logits, [one.state for one in cache])
        except Exception as error:  # as above
            raise EngineError(f"MLX failed on {len(rows)} x {len(rows[0])} tokens: {error}") from error
        return np.array(logits), cache


def folder_of(name: str) -> Path:
    """The folder of a model's name on the Hub, or the folder itself. Raises `ModelNotFoundError`."""
    if Path(name).is_dir():
        return Path(name)
    try:
        return Path(hf_repo_to_path(name))
    except Exception as error:  # what the Hub's client raises differs from version to version
        raise ModelNotFoundError(f"there is no model {name!r} for MLX: {str(error).splitlines()[0]}") from error


def _set_device(device: str) -> None:
    kinds = {"cpu": mx.cpu, "gpu": mx.gpu}
    if device not in kinds:
        raise EngineError(f"MLX has no device {device!r}; it has cpu and gpu")
    if not mx.is_available(kinds[device]):
        raise EngineError(f"MLX has no {device} here")
    mx.set_default_device(mx.Device(kinds[device]))
