"""Tool calls in the notations of model families. The constraint and the parser of replies use the same `Family`.

families.py      what each family writes around a call, and the family of a chat template
tool.py          `Tool`: a function that a model may call
docstrings.py    descriptions of functions and parameters
arguments.py     arguments that are not JSON
calls.py         `ToolCalls`: the constraint of replies with tool calls
reply_parser.py  parser of replies
text_input.py    `TextInput`: the argument of a tool that takes one text
structured_reply.py `StructuredReply`: an answer that fits a constraint, or calls
python_calls.py  parser of calls in Python notation
writing.py       calls and descriptions of tools as text, for chat templates that do not support tools
"""

from __future__ import annotations

from guideway.constraints.tools.calls import Reply, ToolCall, ToolCalls
from guideway.constraints.tools.families import FAMILIES, Family, family_of
from guideway.constraints.tools.tool import Tool

__all__ = ["FAMILIES", "Family", "Reply", "Tool", "ToolCall", "ToolCalls", "family_of"]
