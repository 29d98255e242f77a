"""Guideway inside ExLlamaV2: a filter for all of its generators, and a logits processor for its sampler."""

from __future__ import annotations

from .filter import ConstraintFilter
from .processor import Settings, logits_processor

__all__ = ["ConstraintFilter", "Settings", "logits_processor"]
