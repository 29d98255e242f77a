"""Constrained text generation: the output of a language model always fits a schema, a pattern or a grammar.

A constraint becomes a grammar; a grammar meets a vocabulary and becomes an automaton; a matcher walks it; an engine
obeys the mask. The names below are the public face; each is loaded when it is first used, so that `import guideway`
stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from guideway.compiler import Automaton, CompileLimits, acompile, acompile_many, cache, compile, compile_many
    from guideway.constraints import (
        Choice,
        Ebnf,
        Format,
        Gbnf,
        JsonSchema,
        Lark,
        Reasoning,
        Regex,
        SpecialToken,
        Substring,
        Tag,
        Tags,
        Tool,
        ToolCalls,
    )
    from guideway.errors import (
        BudgetTooSmallError,
        CacheError,
        ConstraintError,
        ContextOverflowError,
        EmptySequenceError,
        EngineError,
        GuidewayError,
        InvalidConstraintError,
        InvalidTextError,
        InvalidTokenError,
        KVCacheFullError,
        LimitExceededError,
        NotAvailable,
        RejectedTokenError,
        SnapshotError,
        UnsatisfiableError,
        UnsupportedError,
    )
    from guideway.generation import (
        GenerationRequest,
        GenerationState,
        agenerate,
        astream,
        beam_search,
        extract,
        generate,
        resume,
        score,
        smc,
        stream,
        stream_values,
    )
    from guideway.loading import load
    from guideway.matcher import Matcher, advance_and_fill, fill_masks, forced_tokens
    from guideway.sampling import Dry, Mirostat, Sampler
    from guideway.sessions import Model, Session
    from guideway.tokenizers import Tokenizer, Vocabulary

_HOMES = {
    ".compiler": ("Automaton", "CompileLimits", "acompile", "acompile_many", "cache", "compile", "compile_many"),
    ".errors": (
        "BudgetTooSmallError",
        "CacheError",
        "ConstraintError",
        "ContextOverflowError",
        "EngineError",
        "GuidewayError",
        "InvalidConstraintError",
        "InvalidTextError",
        "InvalidTokenError",
        "LimitExceededError",
        "EmptySequenceError",
        "NotAvailable",
        "KVCacheFullError",
        "RejectedTokenError",
        "SnapshotError",
        "UnsatisfiableError",
        "UnsupportedError",
    ),
    ".loading": ("load",),
    ".generation": (
        "GenerationRequest",
        "GenerationState",
        "agenerate",
        "astream",
        "beam_search",
        "extract",
        "generate",
        "resume",
        "score",
        "smc",
        "stream",
        "stream_values",
    ),
    ".matcher": ("Matcher", "advance_and_fill", "fill_masks", "forced_tokens"),
    ".sampling": ("Dry", "Mirostat", "Sampler"),
    ".sessions": ("Model", "Session"),
    ".constraints": (
        "Choice",
        "Ebnf",
        "Format",
        "Gbnf",
        "JsonSchema",
        "Lark",
        "Reasoning",
        "Regex",
        "SpecialToken",
        "Substring",
        "Tag",
        "Tags",
        "Tool",
        "ToolCalls",
    ),
    ".tokenizers": ("Tokenizer", "Vocabulary"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Automaton",
    "BudgetTooSmallError",
    "CacheError",
    "Choice",
    "CompileLimits",
    "ConstraintError",
    "ContextOverflowError",
    "Dry",
    "Ebnf",
    "EmptySequenceError",
    "EngineError",
    "Format",
    "Gbnf",
    "GenerationRequest",
    "GenerationState",
    "GuidewayError",
    "InvalidConstraintError",
    "InvalidTextError",
    "InvalidTokenError",
    "JsonSchema",
    "KVCacheFullError",
    "Lark",
    "LimitExceededError",
    "Matcher",
    "Mirostat",
    "Model",
    "NotAvailable",
    "Reasoning",
    "Regex",
    "RejectedTokenError",
    "Sampler",
    "Session",
    "SnapshotError",
    "SpecialToken",
    "Substring",
    "Tag",
    "Tags",
    "Tokenizer",
    "Tool",
    "ToolCalls",
    "UnsatisfiableError",
    "UnsupportedError",
    "Vocabulary",
    "__version__",
    "acompile",
    "acompile_many",
    "advance_and_fill",
    "agenerate",
    "astream",
    "beam_search",
    "cache",
    "compile",
    "compile_many",
    "extract",
    "fill_masks",
    "forced_tokens",
    "generate",
    "load",
    "resume",
    "score",
    "smc",
    "stream",
    "stream_values",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    value: object = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value  # the next look-up finds it without coming here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
