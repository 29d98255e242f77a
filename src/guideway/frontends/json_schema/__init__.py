"""The JSON Schema frontend: compiles a JSON Schema to a `Grammar`.

style.py       profiles and their options: how JSON is written
keywords.py    the keywords: the shape of their values and the types they apply to; dialects
references.py  resources, identifiers, anchors, references; metaschemas/: the metaschemas of the specification
parse.py       keywords -> assertions and applicators; the graph of the reachable schemas
assertions.py  assertions per type, their conjunction and negation
dnf.py         conjunctions of schemas, with their applicators -> disjunctive normal form
one_of.py      overlapping branches of `oneOf`
unevaluated.py  evaluated keys and items, for `unevaluatedProperties` and `unevaluatedItems`
decision_diagram.py  division of objects by the values of their keys, if the normal form has too many alternatives
formulas.py    Boolean formulas of this division
implications.py  implications between schemas, by comparison of their keywords
numbers.py     assertions about numbers -> languages and `Number` nodes
strings.py     assertions about strings and keys -> languages; key classes
verbatim.py    the format "verbatim": strings that occur in a source text
schema_copy.py  copies of a schema with changed subschemas
shared_nodes.py  nodes that all grammars of one style share
lower.py       alternatives -> nodes: arrays, objects, constants
fast_path.py   simple schemas -> nodes, without the normal form
validate.py    validation of an instance, with the location of a violation
keyword_warnings.py  misspelt keywords, unknown formats, keywords of other drafts
report.py      how each keyword is treated; examples; why a schema is unsatisfiable
"""
