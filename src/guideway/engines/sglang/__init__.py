"""Guideway inside SGLang: a grammar backend, and a logit processor for single requests."""

from __future__ import annotations

from .backend import GuidewayBackend
from .grammar import GuidewayGrammar
from .plugin import register
from .processor import GuidewayLogitProcessor

__all__ = ["GuidewayBackend", "GuidewayGrammar", "GuidewayLogitProcessor", "register"]
