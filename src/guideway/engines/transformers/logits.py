"""Logits of transformers: NumPy arrays, or tensors if the model is not on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from guideway.errors import EngineError

__all__ = ["check_place", "last_logits", "stacked"]


def check_place(now: Any, loaded: Any) -> None:
    """Raise `EngineError` if the model is on another device than when it was loaded."""
    if now != loaded:
        raise EngineError(f"the model was moved from {loaded} to {now}; create a new engine after moving it")


def last_logits(logits: Any, *, on_device: bool) -> Any:
    """Return the logits of the last token, float32, shape [rows, vocabulary].

    `on_device`: return a tensor on the device of the model, where tokens can be drawn; else a NumPy array.
    """
    last = logits[:, -1].float()
    if logits.shape[1] > 1:
        last = last.clone()  # a view would keep the logits of all tokens in memory
    return last if on_device else last.cpu().numpy()


def stacked(rows: Sequence[Any]) -> Any:
    """Join the logits of several rows to an array or tensor [rows, vocabulary]."""
    return np.stack(rows) if isinstance(rows[0], np.ndarray) else torch.stack(list(rows))
