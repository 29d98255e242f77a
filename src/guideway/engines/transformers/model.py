"""`TransformersEngine`: a step engine for causal language models of transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from guideway.engines import config as configs
from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.batching import by_length
from guideway.engines.kv_cache import closed_model, export_cache
from guideway.engines.transformers.batch import BatchCache
from guideway.engines.transformers.cache import TORCH, gather, made_caches, restore
from guideway.engines.transformers.loading import load, slides
from guideway.engines.transformers.logits import check_place, last_logits, stacked
from guideway.errors import EngineError
from guideway.tokenizers.special_tokens import ids_of

__all__ = ["TransformersEngine"]

_ENDLESS = 1 << 20
"""Context size of recurrent models that define none."""


class TransformersEngine:
    """A model of transformers: a name, a folder, or a model object.

    Recurrent models and sliding windows do not support rollback (`supports_rollback` is False).

    Args:
        model: A name on the Hub, a folder, or a model object.
        device: A PyTorch device ("cpu", "cuda:0", "mps"); by default that of the model.
        dtype: Type of the weights: "float32", "bfloat16", …; by default that of the files.
        context_size: Maximum number of tokens per row; by default that of the config.
        options: Further arguments of `from_pretrained`, such as `device_map`, `quantization_config` and `revision`.

    Raises:
        ModelNotFoundError: The model is not found.
        ValueError: `dtype` or `options` was given with a model object.
        EngineError: The device or type is not supported.
    """

    def __init__(
        self,
        model: str | Path | Any,
        *,
        device: str | None = None,
        dtype: str | None = None,
        context_size: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        loaded: Any = model
        if isinstance(model, (str, Path)):
            loaded = load(str(model), dtype, options or {})
        elif dtype is not None or options:
            raise ValueError("dtype and options apply to a model that is loaded by name; convert the object itself")
        if device is not None:
            try:
                loaded = loaded.to(device)
            except (RuntimeError, AssertionError, NotImplementedError) as error:
                raise EngineError(f"PyTorch cannot use the device {device!r}: {str(error).splitlines()[0]}") from error
        self._model: Any = loaded.eval()
        self._device = loaded.device  # cached, because the property iterates over the model
        self.on_device = loaded.device.type != "cpu"
        self._past = "cache_params" if "cache_params" in loaded.forward.__code__.co_varnames else "past_key_values"
        self.eos_ids = ids_of(getattr(getattr(loaded, "generation_config", None), "eos_token_id", None))
        """The ids that end a text, by generation_config.json or config.json."""
        config = loaded.config.get_text_config().to_dict()
        found = self._run([[0]], None)
        self._answers = found.logits.device
        self.vocab_size = int(found.logits.shape[-1])
        cache = _cache_of(found)
        self.supports_rollback = bool(getattr(cache, "is_croppable", False)) and not slides(config)
        if self.supports_rollback:
            cache = BatchCache(TORCH, [part for layer in cache.layers for part in (layer.keys, layer.values)], 1)
        self._like: Any = made_caches(cache, 1, supports_rollback=self.supports_rollback)[0]
        endless = not self.supports_rollback and "max_position_embeddings" not in config
        self.context_size = configs.context_size(config, context_size or (_ENDLESS if endless else None))

    @cached_property
    def fingerprint(self) -> str:  # over all weights, in the order of their names
        digest = hashlib.blake2b(self._model.config.model_type.encode(), digest_size=16)
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal lengths run as one batch; rows without rollback run one at a time."""
        if self._model is None:
            raise closed_model()
        check_rows(self, rows, caches)
        return by_length(rows, caches, self._batch, alone=not self.supports_rollback, stack=stacked)

    def _batch(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run rows of equal cached and new lengths."""
        cached = caches[0].length if caches[0] is not None else 0
        past = gather(caches, cached, supports_rollback=self.supports_rollback)
        for part in _parts(rows, whole=self.supports_rollback or not cached):
            found = self._run(part, past)
            past = _cache_of(found)
        check_place(found.logits.device, self._answers)
        made = made_caches(past, cached + len(rows[0]), supports_rollback=self.supports_rollback)
        return last_logits(found.logits, on_device=self.on_device), made

    def export(self, cache: Cache) -> Arrays:
        return export_cache(cache, TORCH)

    def restore(self, arrays: Arrays) -> Cache:
        return restore(arrays, self._like)

    def close(self) -> None:
        self._model = None

    def _run(self, rows: Sequence[Sequence[int]], past: Any) -> Any:
        ids = torch.tensor([list(row) for row in rows], device=self._device)
        before = {} if past is None else {self._past: past}
        try:
            with torch.inference_mode():
                return self._model(input_ids=ids, use_cache=True, logits_to_keep=1, **before)
        except Exception as error:  # model classes raise various exceptions
            check_place(self._model.device, self._device)
            raise EngineError(
                f"transformers failed on {ids.shape[0]} rows of {ids.shape[1]} tokens: {error}"
            ) from error


def _parts(rows: Sequence[Sequence[int]], *, whole: bool) -> list[list[Sequence[int]]]:
    """Return the calls for rows: one call, or one per token. transformers 5.23 has a bug with several tokens after a
    Mamba state."""
    return [list(rows)] if whole else [[[token_id]] for row in rows for token_id in row]


def _cache_of(found: Any) -> Any:
    cache = getattr(found, "past_key_values", None)
    return cache if cache is not None else getattr(found, "cache_params", None)
