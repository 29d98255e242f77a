"""Tool calls in the formats of model families: one description gives the constraint and the parser.

families.py  what each family writes around a call, and which family a chat template is of
calls.py     `Tool`, `ToolCalls`: the grammar of replies, and reading them
"""

from __future__ import annotations

from .calls import Reply, Tool, ToolCall, ToolCalls
from .families import FAMILIES, Family, family_of

__all__ = ["FAMILIES", "Family", "Reply", "Tool", "ToolCall", "ToolCalls", "family_of"]
