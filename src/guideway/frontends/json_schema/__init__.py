"""JSON Schema -> a `Grammar`.

style.py      profiles and their options: how JSON is written
keywords.py   a row per keyword: its shape and the types it applies to; dialects
documents.py  resources, identifiers, anchors, references; metaschemas/: those of the specification
places.py     the schemas that are reachable, by number
terms.py      the analysis of one schema; reading.py: keywords -> terms; opposites.py: negation
bundles.py    assertions per type, and how two of them merge
expand.py     sets of schemas -> alternatives; choices.py: applicators; rivals.py: `oneOf`; evaluated.py: `unevaluated*`
cases.py      objects divided by the values of their keys, where too many alternatives result; formulas.py: Boolean formulas
limits.py     the budgets of the expansion
straight.py   fast path: simple schemas -> nodes
lowering.py   alternatives -> nodes; objects.py, scalars.py, numbers.py, common.py; keys.py: classes of keys
conflicts.py  why a schema is unsatisfiable
judging.py    where an instance violates a schema
contract.py   how every keyword is treated; explain.py: the same with examples
"""
