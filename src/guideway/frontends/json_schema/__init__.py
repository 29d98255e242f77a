"""The JSON Schema frontend: compiles a JSON Schema to a `Grammar`.

style.py      profiles and their options: how JSON is written
keywords.py   the keywords: the shape of their values and the types they apply to; dialects
documents.py  resources, identifiers, anchors, references; metaschemas/: the metaschemas of the specification
places.py     the graph of the reachable schemas, numbered by literal
terms.py      the analysis of one schema (term); reading.py: keywords -> terms; opposites.py: negation
bundles.py    assertions per type (bundles), and their conjunction
expand.py     conjunctions of schemas (wants) -> disjunctive normal form
choices.py    applicators as choices; rivals.py: overlapping branches of `oneOf`; evaluated.py: `unevaluated*`
cases.py      division of objects by the values of their keys, if the expansion has too many alternatives
formulas.py   Boolean formulas of this division
implications.py  implications between wants, by comparison of their keywords
limits.py     the work limits of the expansion
straight.py   fast path: simple schemas -> nodes
lowering.py   alternatives -> nodes; objects.py, scalars.py, numbers.py, common.py; keys.py: key classes
conflicts.py  why a schema is unsatisfiable
judging.py    validation of an instance, with the location of a violation
contract.py   report of how every keyword is treated; explain.py: the same with examples
"""
