"""A grammar and a vocabulary are compiled to an automaton. Results are cached in memory and on disk.

compilation.py      `compile`
automaton_cache.py  `cache`: compiled automata in memory
cache_keys.py       keys by identity and by content
batch.py            several constraints at once, and async variants
completion.py       the minimum number of tokens that complete a text
"""

from __future__ import annotations

from guideway._kernel import Automaton
from guideway.compiler.automaton_cache import AutomatonCache, cache
from guideway.compiler.batch import CompileLimits, acompile, acompile_many, compile_many
from guideway.compiler.compilation import compile
from guideway.compiler.completion import min_tokens_to_complete

__all__ = [
    "Automaton",
    "AutomatonCache",
    "CompileLimits",
    "acompile",
    "acompile_many",
    "cache",
    "compile",
    "compile_many",
    "min_tokens_to_complete",
]
