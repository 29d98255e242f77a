"""Guideway inside vLLM: a structured-output backend, and a logits processor for both of its runners.

Importing this makes the backend known, as vLLM's own processes do by the entry point of `plugin`.
"""

from __future__ import annotations

from .plugin import register

__all__ = ["register"]

register()
