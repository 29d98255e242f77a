"""JSON Schema -> a `Grammar`.

source.py     `JsonSchema`, what a user makes
style.py      profiles and their knobs: how JSON is written
keywords.py   a row per keyword: its shape, the types it speaks about; dialects
documents.py  resources, identifiers, anchors: what a reference means; metaschemas/: those of the specification
places.py     the schemas that were reached, by number
terms.py      one schema, read once: what it says; opposites.py: what its opposite says
bundles.py    what simple keywords say, type by type, and how two such bundles merge
expand.py     sets of schemas -> alternatives (bundles); rivals.py: `oneOf`; evaluated.py: `unevaluated*`
limits.py     the budgets of that
straight.py   schemas that say one thing -> nodes at once; the rest is left to
lowering.py   alternatives -> nodes; scalars.py, numbers.py: numbers and strings; keys.py: classes of keys
contract.py   what became of every keyword; explain.py: the same with examples, for refused schemas too
reader.py     JSON text <-> values without recursion, numbers exact
"""

from __future__ import annotations

from .source import JsonSchema, explain_schema

__all__ = ["JsonSchema", "explain_schema"]
