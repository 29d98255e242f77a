"""Engines: what runs a model. `base` has the protocol; each engine's library is imported in its own folder only."""

from __future__ import annotations

from guideway.engines.base import Cache, StepEngine

__all__ = ["Cache", "StepEngine"]
