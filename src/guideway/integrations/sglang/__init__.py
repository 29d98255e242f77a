"""The SGLang integration.

backend.py    the grammar backend
grammar.py    the state of one request
masking.py    masks of a batch
plugin.py     registers the backend
processor.py  a logit processor for single requests
"""

from __future__ import annotations

from guideway.integrations.sglang.backend import GuidewayBackend
from guideway.integrations.sglang.grammar import GuidewayGrammar
from guideway.integrations.sglang.plugin import register
from guideway.integrations.sglang.processor import GuidewayLogitProcessor

__all__ = ["GuidewayBackend", "GuidewayGrammar", "GuidewayLogitProcessor", "register"]
