"""Registers `guideway` as a grammar backend of SGLang. The entry point `sglang.srt.plugins` runs it in each process."""

from __future__ import annotations

from typing import Any

__all__ = ["NAME", "register"]

NAME = "guideway"


def register() -> None:
    """Register the name of the backend and the function that makes it. Calling it again has no effect."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, _make)


def _make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    """Return the backend, in a `ReasonerGrammarBackend` of SGLang if the server has a reasoning parser.

    SGLang (0.5.23) itself wraps only its built-in backends.
    """
    from sglang.srt.runtime_context import get_serving

    from guideway.integrations.sglang.backend import GuidewayBackend

    made = GuidewayBackend(tokenizer, vocab_size, eos_token_ids)
    serving = get_serving()
    if not serving.reasoning_parser:
        return made
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    return ReasonerGrammarBackend(made, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)
