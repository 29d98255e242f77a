"""Tool calls in the formats of model families: one description gives the constraint and the parser.

families.py   what each family writes around a call, and which family a chat template is of
tool.py       `Tool`: what may be called
arguments.py  arguments that are no JSON
calls.py      `ToolCalls`: the grammar of replies
reading.py    replies as models write them
"""

from __future__ import annotations

from .calls import Reply, ToolCall, ToolCalls
from .families import FAMILIES, Family, family_of
from .tool import Tool

__all__ = ["FAMILIES", "Family", "Reply", "Tool", "ToolCall", "ToolCalls", "family_of"]
