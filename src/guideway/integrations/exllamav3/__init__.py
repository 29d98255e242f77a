"""The integration for ExLlamaV3: a filter for the generator of this library."""

from __future__ import annotations

from guideway.integrations.exllamav3.filter import ConstraintFilter

__all__ = ["ConstraintFilter"]
