"""Compiles a constraint and a vocabulary to an automaton. Automata are cached in memory, expensive programs on disk.

compilation.py      `compile`, `acompile`; `store_program`
automaton_cache.py  `cache`: compiled automata in memory
cache_keys.py       which program belongs to a constraint
limits.py           `CompileLimits`
"""

from __future__ import annotations

from guideway._kernel import Automaton
from guideway.compiler.automaton_cache import AutomatonCache, cache
from guideway.compiler.compilation import acompile, compile, store_program
from guideway.compiler.limits import CompileLimits

__all__ = [
    "Automaton",
    "AutomatonCache",
    "CompileLimits",
    "acompile",
    "cache",
    "compile",
    "store_program",
]
