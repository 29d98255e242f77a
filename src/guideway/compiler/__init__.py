"""Grammar and vocabulary become an automaton; the latest ones are remembered."""

from __future__ import annotations

from .._kernel import Automaton
from .automata import compile
from .cache import AutomatonCache, cache

__all__ = ["Automaton", "AutomatonCache", "cache", "compile"]
