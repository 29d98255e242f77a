"""Grammar and vocabulary become an automaton; the latest ones are remembered."""

from __future__ import annotations

from .._kernel import Automaton
from .cache import AutomatonCache, cache
from .compile import compile

__all__ = ["Automaton", "AutomatonCache", "cache", "compile"]
