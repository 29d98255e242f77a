"""What a user may ask for -> a `Grammar`.

base.py         `Source`, and how sources combine
regex.py        `Regex`, on top of patterns/
format.py       `Format`, on top of formats/
choice.py       `Choice`
substring.py    `Substring`
special.py      `SpecialToken`, and markers that hold some
repeated.py     any source several times; named.py: under a name
captures/       what named parts took of a text
terms.py        sources as parts of rules
json_schema/    `JsonSchema`
notations/      `Lark`, `Gbnf`, `Ebnf`
tags.py         `Tags`, `Reasoning`
tools/          `ToolCalls`
python_types.py `PythonType`; python_schema.py: what Pydantic's JSON Schema loses
of.py           `of`: anything as a source
progress.py     `Progress`: what of a JSON text is whole already
"""

from __future__ import annotations

from .base import Source
from .choice import Choice
from .format import Format
from .json_schema import JsonSchema
from .notations import Ebnf, Gbnf, Lark
from .of import of
from .progress import Progress
from .python_types import PythonType
from .regex import Regex
from .special import SpecialToken
from .substring import Substring
from .tags import Reasoning, Tag, Tags
from .tools import Reply, Tool, ToolCall, ToolCalls

__all__ = [
    "Choice",
    "Ebnf",
    "Format",
    "Gbnf",
    "JsonSchema",
    "Lark",
    "Progress",
    "PythonType",
    "Reasoning",
    "Regex",
    "Reply",
    "Source",
    "SpecialToken",
    "Substring",
    "Tag",
    "Tags",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "of",
]
