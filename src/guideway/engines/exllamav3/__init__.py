"""Guideway inside ExLlamaV3: a filter for its generator."""

from __future__ import annotations

from .filter import ConstraintFilter

__all__ = ["ConstraintFilter"]
