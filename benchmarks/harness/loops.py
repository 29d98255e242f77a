"""The logits processors that peers offer for `generate` of transformers, made for one schema and Tekken's tokens."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import guideway as gw

from .data import EOS, tekken
from .engines import LLGuidance, XGrammar
from .others import Formatron, OutlinesCore

Make = Callable[[int], Any]
"""Rows -> the processor for one call of `generate`."""


def vocabulary() -> gw.Vocabulary:
    """Returns Tekken's vocabulary with empty caches."""
    tokens = tekken()
    return gw.Vocabulary(tokens, eos_ids=[EOS], special_ids=[i for i, token in enumerate(tokens) if not token])


def ours(schema: Any) -> Make:
    """Returns guideway's default processor. It inspects its caller, and writes in place if the caller is `generate`.

    With a clock in between, the caller is the list of processors, so the list is registered as an equivalent caller.
    """
    from transformers import LogitsProcessorList

    from guideway.integrations.transformers import logits_processor

    table = vocabulary()
    automaton = gw.compile(gw.JsonSchema(schema), table)

    def made(rows: int) -> Any:
        processor = logits_processor(automaton, table)
        processor._loops._known[LogitsProcessorList.__call__.__code__] = True
        return processor

    return made


def xgrammar(schema: Any) -> Make:
    """`xgrammar.contrib.hf.LogitsProcessor`."""
    import xgrammar

    compiled = XGrammar(tekken()).compile(schema)
    return lambda rows: xgrammar.contrib.hf.LogitsProcessor(compiled)


def llguidance(schema: Any) -> Make:
    """Returns Outlines' processor over llguidance, which provides only the functions for a processor."""
    from llguidance import LLMatcher
    from outlines.backends.llguidance import LLGuidanceLogitsProcessor

    tokenizer = LLGuidance(tekken()).made
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults={"whitespace_flexible": True})
    return lambda rows: LLGuidanceLogitsProcessor(grammar, tokenizer, "torch")


def outlines(schema: Any) -> Make:
    """Outlines' own, around outlines-core."""
    from outlines.backends.outlines_core import OutlinesCoreLogitsProcessor

    index = OutlinesCore(tekken()).compile(schema)
    return lambda rows: OutlinesCoreLogitsProcessor(index, "torch")


def enforcer(schema: Any) -> Make:
    """lm-format-enforcer's function for the processor that transformers has for such.

    Its own module for transformers asks for a name that transformers 5 does not have; what it does is written out here.
    """
    from lmformatenforcer import JsonSchemaParser, TokenEnforcer
    from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData
    from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor

    tokens = tekken()
    regular = [(i, token.decode(), False) for i, token in enumerate(tokens) if token and is_text(token)]

    def decode(ids: list[int]) -> str:
        return b"".join(tokens[i] for i in ids).decode(errors="replace")

    table = TokenEnforcerTokenizerData(regular, decode, EOS, False, len(tokens))

    def made(rows: int) -> Any:
        enforcer = TokenEnforcer(table, JsonSchemaParser(schema))
        return PrefixConstrainedLogitsProcessor(
            lambda _, ids: enforcer.get_allowed_tokens(ids.tolist()).allowed_tokens, 1
        )

    return made


class Unpinned:
    """PyTorch with normal memory where pinned memory is requested: pinned memory requires a GPU."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def empty(self, *shape: Any, pin_memory: bool = False, **options: Any) -> Any:
        """As there, not pinned."""
        import torch

        return torch.empty(*shape, **options)


def formatron(schema: Any) -> Make:
    """`FormattersLogitsProcessor`, a formatter a row; on a CPU it goes without pinned memory, and without Triton."""
    sys.modules["kbnf.triton_logits_mask"] = None  # type: ignore[assignment]  # so that importing it fails
    engine = Formatron(tekken())  # which mends what Formatron expects of pydantic
    from formatron.integrations import transformers
    from formatron.integrations.transformers import FormattersLogitsProcessor

    transformers.torch = Unpinned()
    return lambda rows: FormattersLogitsProcessor([engine.compile(schema) for _ in range(rows)], EOS)


def is_text(token: bytes) -> bool:
    """Whether the token alone is valid UTF-8."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


PEERS: dict[str, Callable[[Any], Make]] = {
    "xgrammar": xgrammar,
    "llguidance": llguidance,
    "outlines": outlines,
    "formatron": formatron,
    "lm-format-enforcer": enforcer,
}
