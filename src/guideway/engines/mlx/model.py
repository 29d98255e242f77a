"""`MlxEngine`: a `StepEngine` for models of mlx-lm."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import hf_repo_to_path, load_model

from guideway.arguments import first_line, short_repr
from guideway.engines import config as configs
from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.batching import CALL_TOKENS, DEVICE_CALL_TOKENS, CallCounts, by_length, by_padding, in_groups
from guideway.engines.kv_cache import RowCache, StateCache, closed_model, export_cache, own_rows
from guideway.engines.mlx.cache import MLX, copied_state, like_cache, restore
from guideway.engines.mlx.padded import PaddedBatch
from guideway.engines.row_store import StoredRow, arranged
from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["MlxEngine", "folder_of"]

_PREFILL = 512
"""The maximum number of tokens of each row in one call for prompts."""
_FEW = 8
"""If no row has more new tokens than this, all tokens run in one call, which computes the logits of each."""


class MlxEngine:
    """A folder with config.json and safetensors, as transformers or mlx-lm write it, or a model object of mlx-lm.

    Models with another cache than `KVCache` of mlx-lm, such as recurrent models and those with sliding windows, do not
    support rollback (`supports_rollback` is False).

    If the model gives padded rows the same logits as single rows (`pads_rows`), rows of different lengths can run in
    one call; else rows of equal lengths run together. The logits of a row in a batch and alone differ by rounding.

    Args:
        path: The folder, or a model object.
        device: "cpu" or "gpu". It is set for the whole process, because MLX has one default device. None: MLX chooses.
        dtype: Type to which the weights are converted: "float32", "bfloat16", …. None: they are not converted.
        context_size: Maximum number of tokens per row. None: the context size in config.json.

    Raises:
        ModelNotFoundError: There is no model in the folder.
        EngineError: The model cannot be loaded, or the device or type is not supported.
        ValueError: `context_size` is out of range.
    """

    def __init__(
        self,
        path: str | Path | Any,
        *,
        device: str | None = None,
        dtype: str | None = None,
        context_size: int | None = None,
    ) -> None:
        self._folder = Path(path) if isinstance(path, (str, Path)) else None
        if device is not None:
            _set_device(device)
        kind = getattr(mx, dtype, None) if dtype is not None else None
        if dtype is not None and not isinstance(kind, mx.Dtype):
            raise EngineError(f"unknown MLX dtype {short_repr(dtype)}; use for example float32, bfloat16 or float16")
        self._model: Any = path
        if self._folder is not None:
            self._model = _loaded(self._folder)
        if kind is not None:
            self._model.set_dtype(kind)
        self.supports_rollback = all(type(one) is KVCache for one in make_prompt_cache(self._model))
        logits, cache = self._run([[0]], make_prompt_cache(self._model))
        self.vocab_size = int(logits.shape[-1])
        self._like: Any = like_cache(cache, supports_rollback=self.supports_rollback)
        self.context_size = configs.context_size(self._config(), context_size)
        is_cpu = mx.default_device().type == mx.DeviceType.cpu
        self._call_tokens = CALL_TOKENS if is_cpu else DEVICE_CALL_TOKENS
        self.counts = CallCounts()
        """The groups of rows that ran so far."""
        self.pads_rows = self.supports_rollback and self._try_padding()
        """Whether rows of different lengths can run in one call."""
        self.splits_rows = self.pads_rows and is_cpu
        """See `engines.base.splits_rows`."""

    @cached_property
    def fingerprint(self) -> str:
        if self._folder is not None:
            return configs.digest_of(self._folder / "config.json", *sorted(self._folder.glob("*.safetensors")))
        digest = hashlib.blake2b(type(self._model).__module__.encode(), digest_size=16)
        for name, array in sorted(tree_flatten(self._model.parameters())):
            digest.update(f"{name} {array.dtype} {tuple(array.shape)}".encode())
            digest.update(MLX.to_numpy(array).tobytes())
        return digest.hexdigest()

    def _config(self) -> dict[str, Any]:
        if self._folder is not None:
            return configs.read_config(self._folder / "model")
        return dict(vars(getattr(self._model, "args", object)))

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. If `pads_rows`, rows run with padding in the groups of `by_padding`.

        Otherwise rows with equal numbers of cached and of new tokens run together. A model without rollback runs one
        row at a time.
        """
        if self._model is None:
            raise closed_model()
        check_rows(self, rows, caches)

        def run(some: Sequence[Sequence[int]], held: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
            self.counts.add(len(some), len(rows), sum(map(len, some)))
            return self._stored(some, held) if self.supports_rollback else self._state(some, held)

        if not self.pads_rows:
            return by_length(rows, caches, run, alone=not self.supports_rollback)
        return in_groups(by_padding([len(row) for row in rows], self._call_tokens), rows, caches, run)

    def _stored(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run rows whose keys and values are in a `Store`. Arguments and result are those of `forward`."""
        own = [None if cache is None else own_rows(cache, MLX) for cache in caches]
        held = arranged(own, [len(row) for row in rows], self._like.batch, spare=1)
        left = [list(row) for row in rows]
        while (longest := max(map(len, left))) > 1:
            # A call that returns logits computes them for all its tokens, so calls for prompts return none.
            if longest <= _FEW:
                break
            cut = [min(_PREFILL, max(0, len(row) - 1)) for row in left]
            # Rows of one call have adjacent places. So rows between them without new tokens run, too, with padding.
            places = [row.row for row, count in zip(held, cut, strict=True) if count]
            some = [index for index, row in enumerate(held) if min(places) <= row.row <= max(places)]
            self._run_padded([held[i] for i in some], [left[i][: cut[i]] for i in some], logits=False)
            left = [row[count:] for row, count in zip(left, cut, strict=True)]
        logits = self._run_padded(held, left, logits=True)
        return logits, [RowCache(row, 0, row.tip) for row in held]

    def forward_all(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[list[Logits], list[Cache]]:
        """See `VerifyingEngine`. Models that do not pad rows run each row in its own call."""
        if self._model is None:
            raise closed_model()
        check_rows(self, rows, caches)
        groups = [list(range(len(rows)))] if self.pads_rows else [[number] for number in range(len(rows))]
        logits: list[Any] = [None] * len(rows)
        made: list[Any] = [None] * len(rows)
        for members in groups:
            new = [rows[i] for i in members]
            own = [None if (cache := caches[i]) is None else own_rows(cache, MLX) for i in members]
            held = arranged(own, [len(row) for row in new], self._like.batch, spare=1)
            self.counts.add(len(new), len(rows), sum(map(len, new)))
            found = self._run_padded(held, new, logits=True, every=True)
            for number, row, here, one in zip(members, new, found, held, strict=True):
                logits[number], made[number] = here[: len(row)], RowCache(one, 0, one.tip)
        return logits, made

    def _run_padded(
        self, held: Sequence[StoredRow], new: Sequence[Sequence[int]], *, logits: bool, every: bool = False
    ) -> Any:
        """Run new tokens of rows.

        Returns None if not `logits`. Otherwise returns the logits of the last token of each row or, if `every`, of
        every column (padding included), in the order of `held`.
        """
        batch = PaddedBatch(held, new)
        try:
            made = self._model(batch.ids, cache=batch.layers)
            found = (made.astype(mx.float32) if every else batch.last(made)) if logits else None
            mx.eval(*([] if found is None else [found]), batch.store.arrays)
        except Exception as error:  # MLX raises various exceptions
            raise EngineError(f"MLX failed on {len(new)} rows of {batch.width} tokens: {error}") from error
        for row, more in zip(held, new, strict=True):
            row.tip += len(more)
        if found is None:
            return None
        array = np.array(found)
        return array if batch.order == list(range(len(held))) else array[batch.order]

    def _try_padding(self) -> bool:
        """Return whether three short padded rows give the logits of single rows, within a tolerance."""
        ids = [number % self.vocab_size for number in (3, 1, 4, 1, 5, 9, 2, 6)]
        rows = [ids[:5], ids[5:6], ids[4:8]]
        if self.context_size < len(ids):
            return False
        try:
            expected = np.concatenate([self._run([row], make_prompt_cache(self._model))[0] for row in rows])
            _, caches = self._stored([row[:1] for row in rows[:2]], [None, None])
            first, caches = self._stored([rows[0][1:3], rows[2]], [caches[0], None])
            second, _ = self._stored([rows[0][3:], rows[1]], [caches[0], None])
        except (EngineError, TypeError, ValueError):
            return False
        found = np.stack([second[0], second[1], first[1]])
        scale = max(1.0, float(np.abs(expected).max()))
        tolerance = 1e-3 if self._like.batch.arrays[0].dtype == mx.float32 else 5e-2
        return bool(np.abs(found - expected).max() <= scale * tolerance)

    def _state(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run one row of a model without rollback."""
        cached = caches[0].length if caches[0] is not None else 0
        logits, past = self._run(rows, copied_state(caches[0], make_prompt_cache(self._model)))
        return logits, [StateCache(MLX, past, cached + len(rows[0]))]

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


def _loaded(folder: Path) -> Any:
    try:
        return load_model(folder)[0]
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"no MLX model found at {folder}: {error}") from error
    except Exception as error:  # model classes of mlx-lm raise various exceptions
        raise EngineError(f"mlx-lm cannot load {folder}: {error}") from error


def folder_of(name: str) -> Path:
    """Return the folder of a model by its name on the Hugging Face Hub, or the folder itself.

    Raises `ModelNotFoundError`.
    """
    if os.path.isdir(name):  # unlike `Path.is_dir`, False for a path that is too long
        return Path(name)
    try:
        return Path(hf_repo_to_path(name))
    except Exception as error:  # the exceptions of the Hub client differ between versions
        raise ModelNotFoundError(f"model {short_repr(name)} not found for MLX: {first_line(error)}") from error


def _set_device(device: str) -> None:
    kinds = {"cpu": mx.cpu, "gpu": mx.gpu}
    if device not in kinds:
        raise EngineError(f"device must be 'cpu' or 'gpu' for MLX, got {short_repr(device)}")
    if not mx.is_available(kinds[device]):
        raise EngineError(f"the device {short_repr(device)} is not available to MLX on this machine")
    mx.set_default_device(mx.Device(kinds[device]))
