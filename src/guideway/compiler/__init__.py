"""Grammar and vocabulary become an automaton; what is dear to make is remembered, in memory and on disk."""

from __future__ import annotations

from .._kernel import Automaton
from .automata import compile
from .finishing import tokens_needed
from .many import CompileLimits, acompile, acompile_many, compile_many
from .memory import AutomatonCache, cache

__all__ = [
    "Automaton",
    "AutomatonCache",
    "CompileLimits",
    "acompile",
    "acompile_many",
    "cache",
    "compile",
    "compile_many",
    "tokens_needed",
]
