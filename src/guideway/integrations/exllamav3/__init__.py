"""The ExLlamaV3 integration: a filter for its generator."""

from __future__ import annotations

from guideway.integrations.exllamav3.filter import ConstraintFilter

__all__ = ["ConstraintFilter"]
