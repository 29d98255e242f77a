"""`TransformersEngine`: a `StepEngine` for causal language models of transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from guideway.arguments import first_line, short_repr
from guideway.engines import config as configs
from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.batching import CallCounts, by_length
from guideway.engines.kv_cache import RowCache, closed_model, export_cache, own_rows
from guideway.engines.row_store import arranged, stored
from guideway.engines.transformers.batch import BatchCache
from guideway.engines.transformers.cache import TORCH, gather, made_caches, restore
from guideway.engines.transformers.loading import load, slides
from guideway.engines.transformers.logits import check_place, last_logits, stacked
from guideway.engines.transformers.packed import PackedBatch, packed_attention
from guideway.errors import EngineError
from guideway.sampling import on_cpu
from guideway.tokenizers.special_tokens import ids_of

__all__ = ["TransformersEngine"]

_ENDLESS = 1 << 20
"""Context size of recurrent models whose config defines none."""

_MOST_TOKENS = 4096
"""Maximum number of packed tokens per call of the model by `forward`; it bounds the memory that long prompts need."""


class TransformersEngine:
    """A model of transformers: a name, a folder, or a model object.

    Recurrent models and models with sliding windows do not support rollback (`supports_rollback` is False).

    If the model class allows its attention to be replaced, and then gives the same logits, rows of different lengths
    run in one call (`packs_rows`): the new tokens of all rows are packed into one sequence. In other models, only rows
    of equal lengths run together. The logits of a row in a batch and alone differ by rounding.

    Args:
        model: A name on the Hugging Face Hub, a folder, or a model object.
        device: A PyTorch device ("cpu", "cuda:0", "mps"). None: the device on which the model is loaded.
        dtype: Type of the weights: "float32", "bfloat16", …. None: the type in the files.
        context_size: Maximum number of tokens per row. None: the context size in the config.
        options: Further arguments of `from_pretrained`, such as `device_map`, `quantization_config` and `revision`.

    Raises:
        ModelNotFoundError: The model is not found or cannot be loaded.
        ValueError: `dtype` or `options` was given with a model object, or `context_size` is out of range.
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
                raise EngineError(f"PyTorch cannot use the device {short_repr(device)}: {first_line(error)}") from error
        self._model: Any = loaded.eval()
        self._device = loaded.device  # cached, because the property iterates over the model
        self.on_device = loaded.device.type != "cpu"
        """Whether `forward` returns tensors on the device of the model."""
        self._past = "cache_params" if "cache_params" in loaded.forward.__code__.co_varnames else "past_key_values"
        self.eos_ids = ids_of(getattr(getattr(loaded, "generation_config", None), "eos_token_id", None))
        """The ids that end a text, from the `generation_config` of the model."""
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
        self.counts = CallCounts()
        """The groups of rows that ran so far."""
        self.packs_rows = self.supports_rollback and self._try_packing()
        """Whether rows of different lengths run in one call."""

    @cached_property
    def fingerprint(self) -> str:  # a digest of all weights, in the order of their names
        digest = hashlib.blake2b(self._model.config.model_type.encode(), digest_size=16)
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. If `packs_rows`, all rows run together, in calls of at most `_MOST_TOKENS` new tokens.

        Otherwise rows with equal numbers of cached and of new tokens run together. A model without rollback runs one
        row at a time.
        """
        if self._model is None:
            raise closed_model()
        check_rows(self, rows, caches)
        if self.packs_rows:
            return self._packed(rows, caches)

        def run(some: Sequence[Sequence[int]], held: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
            self.counts.add(len(some), len(rows), sum(map(len, some)))
            return self._batch(some, held)

        return by_length(rows, caches, run, alone=not self.supports_rollback, stack=stacked)

    def _packed(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run the new tokens of all rows as one sequence, in calls of at most `_MOST_TOKENS` tokens."""
        own = [None if cache is None else own_rows(cache, TORCH) for cache in caches]
        held = arranged(own, [len(row) for row in rows], self._like.batch)
        logits: list[Any] = [None] * len(rows)
        for part in _portions([len(row) for row in rows]):
            batch = PackedBatch([held[i] for i, _, _ in part], [rows[i][a:b] for i, a, b in part], self._device)
            found = self._run_packed(batch)
            self.counts.add(len(part), len(rows), batch.ids.shape[1])
            for place, (i, start, end) in enumerate(part):
                held[i].tip += end - start
                logits[i] = found[place]
        whole = found if len(part) == len(rows) else stacked(logits)
        return whole, [RowCache(row, 0, row.tip) for row in held]

    def forward_all(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[list[Any], list[Cache]]:
        """See `VerifyingEngine`. Models that do not pack rows run each row in its own call."""
        if self._model is None:
            raise closed_model()
        check_rows(self, rows, caches)
        if not self.packs_rows:
            return self._single(rows, caches)
        own = [None if cache is None else own_rows(cache, TORCH) for cache in caches]
        held = arranged(own, [len(row) for row in rows], self._like.batch)
        batch = PackedBatch(held, rows, self._device)
        batch.last = torch.arange(batch.ids.shape[1], device=self._device)
        found = on_cpu(self._run_packed(batch))
        self.counts.add(len(rows), len(rows), batch.ids.shape[1])
        logits, start = [], 0
        for row, new in zip(held, rows, strict=True):
            logits.append(found[start : start + len(new)])
            row.tip += len(new)
            start += len(new)
        return logits, [RowCache(row, 0, row.tip) for row in held]

    def _single(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[list[Any], list[Cache]]:
        """Do the same as `forward_all`, with a separate call of the model for each row."""
        logits: list[Any] = []
        made: list[Cache] = []
        for row, cache in zip(rows, caches, strict=True):
            cached = 0 if cache is None else cache.length
            found = self._run([row], gather([cache], cached, supports_rollback=True), keep=len(row))
            self.counts.add(1, len(rows), len(row))
            logits.append(on_cpu(found.logits[0].float()))
            made += made_caches(_cache_of(found), cached + len(row), supports_rollback=True)
        return logits, made

    def _run_packed(self, batch: PackedBatch) -> Any:
        """Run a packed batch. Returns the logits of the tokens `batch.last`, float32 [token, vocabulary]."""
        try:
            with torch.inference_mode(), packed_attention(self._model, batch):
                found = self._model(
                    input_ids=batch.ids,
                    position_ids=batch.positions[None],
                    past_key_values=batch,
                    use_cache=True,
                    logits_to_keep=batch.last,
                ).logits
        except Exception as error:  # model classes raise various exceptions
            check_place(self._model.device, self._device)
            count = batch.ids.shape[1]
            raise EngineError(
                f"transformers failed on {len(batch.last)} rows of together {count} tokens: {error}"
            ) from error
        check_place(found.device, self._answers)
        last = found[0].float()
        return last if self.on_device else on_cpu(last)

    def _try_packing(self) -> bool:
        """Return whether three short packed rows give the logits of single rows, within a tolerance.

        If so, set `_like`, the example of a cache, to a row of a `row_store.Store`.
        """
        if not getattr(self._model, "_supports_attention_backend", False):
            return False
        ids = [number % self.vocab_size for number in (3, 1, 4, 1, 5, 9, 2, 6)]
        rows = [ids[:5], ids[5:6], ids[4:8]]
        if self.context_size < len(ids):
            return False
        single = [self._batch([row], [None])[0][0] for row in rows]
        like, self._like = self._like, RowCache(stored(TORCH, self._like.used(), 1), 0, 1)
        try:
            _, caches = self._packed([row[:1] for row in rows[:2]], [None, None])
            parts = [rows[0][1:3], rows[2]]
            first, caches = self._packed(parts, [caches[0], None])
            second, _ = self._packed([rows[0][3:], rows[1]], [caches[0], None])
        except (EngineError, TypeError, ValueError, RuntimeError):
            self._like = like
            return False
        found, expected = np.stack([on_cpu(x) for x in (second[0], second[1], first[1])]), [on_cpu(x) for x in single]
        scale = max(1.0, float(np.abs(expected).max()))
        is_exact = self._like.used()[0].dtype == torch.float32
        if not np.abs(found - np.stack(expected)).max() <= scale * (1e-3 if is_exact else 5e-2):
            self._like = like
            return False
        self.counts = CallCounts()
        return True

    def _batch(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run rows with equal numbers of cached and of new tokens."""
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

    def _run(self, rows: Sequence[Sequence[int]], past: Any, keep: int = 1) -> Any:
        ids = torch.tensor([list(row) for row in rows], device=self._device)
        before = {} if past is None else {self._past: past}
        try:
            with torch.inference_mode():
                return self._model(input_ids=ids, use_cache=True, logits_to_keep=keep, **before)
        except Exception as error:  # model classes raise various exceptions
            check_place(self._model.device, self._device)
            raise EngineError(
                f"transformers failed on {ids.shape[0]} rows of {ids.shape[1]} tokens: {error}"
            ) from error


def _portions(counts: Sequence[int]) -> list[list[tuple[int, int, int]]]:
    """Divide rows with these numbers of tokens into calls of at most `_MOST_TOKENS` tokens.

    A call is a list of (index of the row, index of its first token, index after its last token).
    """
    if sum(counts) <= _MOST_TOKENS:
        return [[(index, 0, count) for index, count in enumerate(counts)]]
    calls: list[list[tuple[int, int, int]]] = [[]]
    room = _MOST_TOKENS
    for index, count in enumerate(counts):
        start = 0
        while start < count:
            if not room:
                calls.append([])
                room = _MOST_TOKENS
            end = min(count, start + room)
            calls[-1].append((index, start, end))
            room -= end - start
            start = end
    return calls


def _parts(rows: Sequence[Sequence[int]], *, whole: bool) -> list[list[Sequence[int]]]:
    """Divide the new tokens of rows into calls: one call if `whole`, else one call for each token of the only row.

    The reason is a bug of transformers 5.23 that occurs if several tokens run after a Mamba state.
    """
    return [list(rows)] if whole else [[[token_id]] for row in rows for token_id in row]


def _cache_of(found: Any) -> Any:
    cache = getattr(found, "past_key_values", None)
    return cache if cache is not None else getattr(found, "cache_params", None)
