"""The constraints that users construct, and how they combine. Each is lowered to a `Grammar`.

base.py           `Constraint`, literals, and the combinations that its operators and methods return
known.py          a cache of constraints by the arguments of their constructors
programs.py       the programs of expensive constraints on disk
structural.py     equality, hash and repr of nested constraints, without recursion
coerce.py         `of`: converts schemas, patterns and types to constraints
mismatch.py       the error for a text that does not fit
embed.py          constraints as terms of context-free rules
regex.py          `Regex`
format.py         `Format`
choice.py         `Choice`
substring.py      `Substring`
verbatim.py       `Verbatim`, an annotation of strings that must occur in a source text
special_token.py  `SpecialToken`, and marker texts that contain special tokens
captures/         the text that each named part of a constraint matched
json_schema.py    `JsonSchema`
python_types.py   `PythonType`
rules.py          the base class of the grammar notations
gbnf.py           `Gbnf`
ebnf.py           `Ebnf`
lark.py           `Lark`
tags.py           `Tags`, `Reasoning`
tools/            `Tool`, `ToolCalls`
wire.py           `to_wire`, `from_wire`: constraints as JSON documents, and pickles
exports.py        exports to GBNF, Lark and regular expressions, for other libraries
type_paths.py     Python types as JSON data, by their import paths
"""

from __future__ import annotations

from guideway.constraints.base import Constraint
from guideway.constraints.choice import Choice
from guideway.constraints.coerce import of
from guideway.constraints.ebnf import Ebnf
from guideway.constraints.format import Format
from guideway.constraints.gbnf import Gbnf
from guideway.constraints.json_schema import JsonSchema
from guideway.constraints.lark import Lark
from guideway.constraints.python_types import PythonType
from guideway.constraints.regex import Regex
from guideway.constraints.special_token import SpecialToken
from guideway.constraints.substring import Substring
from guideway.constraints.tags import Reasoning, Tag, Tags
from guideway.constraints.tools import Reply, Tool, ToolCall, ToolCalls
from guideway.constraints.verbatim import Verbatim
from guideway.constraints.wire import from_wire, to_wire

__all__ = [
    "Choice",
    "Constraint",
    "Ebnf",
    "Format",
    "Gbnf",
    "JsonSchema",
    "Lark",
    "PythonType",
    "Reasoning",
    "Regex",
    "Reply",
    "SpecialToken",
    "Substring",
    "Tag",
    "Tags",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "Verbatim",
    "from_wire",
    "of",
    "to_wire",
]
