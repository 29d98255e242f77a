"""Logits of transformers: arrays of NumPy, or tensors where the model is on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from guideway.errors import EngineError

__all__ = ["check_place", "last_logits", "stacked"]


def check_place(now: Any, loaded: Any) -> None:
    """Raises `EngineError` where the model is on another device than when it was loaded."""
    if now != loaded:
        raise EngineError(f"the model was moved from {loaded} to {now} after it was loaded here: load it anew")


def last_logits(logits: Any, *, on_device: bool) -> Any:
    """Of [row, token, vocabulary] those of the last token, float32: an array, or left where they are.

    On a device they are drawn from there: half a megabyte a row need not leave it for one number.
    """
    last = logits[:, -1].float()
    if logits.shape[1] > 1:
        last = last.clone()  # of a model that computes all of them: a view would keep them
    return last if on_device else last.cpu().numpy()


def stacked(rows: Sequence[Any]) -> Any:
    """Those of several rows as one."""
    return np.stack(rows) if isinstance(rows[0], np.ndarray) else torch.stack(list(rows))
