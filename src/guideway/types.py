"""The types that public functions return or take, for annotations.

Example:
    from guideway.types import Generation

    def show(result: Generation[Person]) -> None: ...
"""

from __future__ import annotations

from guideway._kernel import Automaton, Fit, Matcher
from guideway.compiler import AutomatonCache
from guideway.constraints import Constraint, PythonType, Reply, ToolCall
from guideway.constraints.captures import Capture, Captures
from guideway.engines.base import Cache, EngineLogits, Logits, MultiStepEngine, StepEngine
from guideway.generation import (
    ChatStream,
    Generation,
    GenerationRequest,
    GenerationState,
    Model,
    Options,
    PartialValue,
    Posterior,
    Score,
    Stream,
    TextChunk,
    Truncation,
    View,
)
from guideway.generation.fields import Field, OptionProbability
from guideway.generation.options import Messages, Prompt, Prompts
from guideway.generation.retries import InvalidAttempt
from guideway.generation.scheduler import FinishReason, Timings
from guideway.generation.spans import Span
from guideway.sampling import Sampler, Stage, TokenAlternative, TokenLogprobs
from guideway.sessions import Change, Counts, Divergence, KVCache, PrefixCache, PrefixStatistics, Session
from guideway.tokenizers import Tokenizer, Vocabulary
from guideway.tokenizers.tokenizer import Batch

__all__ = [
    "Automaton",
    "AutomatonCache",
    "Batch",
    "Cache",
    "Capture",
    "Captures",
    "Change",
    "ChatStream",
    "Constraint",
    "Counts",
    "Divergence",
    "EngineLogits",
    "Field",
    "FinishReason",
    "Fit",
    "Generation",
    "GenerationRequest",
    "GenerationState",
    "InvalidAttempt",
    "KVCache",
    "Logits",
    "Matcher",
    "Messages",
    "Model",
    "MultiStepEngine",
    "OptionProbability",
    "Options",
    "PartialValue",
    "Posterior",
    "PrefixCache",
    "PrefixStatistics",
    "Prompt",
    "Prompts",
    "PythonType",
    "Reply",
    "Sampler",
    "Score",
    "Session",
    "Span",
    "Stage",
    "StepEngine",
    "Stream",
    "TextChunk",
    "Timings",
    "TokenAlternative",
    "TokenLogprobs",
    "Tokenizer",
    "ToolCall",
    "Truncation",
    "View",
    "Vocabulary",
]
