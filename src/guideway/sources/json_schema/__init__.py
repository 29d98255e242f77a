"""JSON Schema -> a `Grammar`.

source.py     `JsonSchema`, what a user makes
style.py      profiles and their knobs: how JSON is written
keywords.py   a row per keyword: its shape, the types it speaks about, whether it is refused; dialects
lowering.py   schemas -> nodes; scalars.py, numbers.py, formats.py: the regular parts
refs.py       `$ref`; disjoint.py: `oneOf` that can be read as `anyOf`; tidy.py: the finished grammar, made smaller
reader.py     JSON text <-> values without recursion, numbers exact
"""

from __future__ import annotations

from .source import JsonSchema

__all__ = ["JsonSchema"]
