"""The JSON Schema frontend: compiles a JSON Schema to a `Grammar`.

style.py       profiles and their options: how JSON is written
keywords.py    the keywords: the shape of their values and the types they apply to; dialects
references.py  resources, identifiers, anchors, references; metaschemas/: the metaschemas of the specification
parse.py       keywords -> assertions and applicators (terms); the graph of the reachable schemas
assertions.py  assertions per type (bundles), their conjunction and negation
dnf.py         conjunctions of schemas (wants), with their applicators -> disjunctive normal form
one_of.py      overlapping branches of `oneOf`; unevaluated.py: `unevaluated*`
decision_diagram.py  division of objects by the values of their keys, if the expansion has too many alternatives
formulas.py    Boolean formulas of this division
fast_path.py   fast path: simple schemas -> nodes
lower.py       alternatives -> nodes; objects.py: objects
numbers.py     assertions about numbers -> languages and number nodes
strings.py     assertions about strings and keys -> languages; key classes
shared_nodes.py  nodes that all grammars of one style share
conflicts.py   why a schema is unsatisfiable
validate.py    validation of an instance, with the location of a violation
contract.py    report of how every keyword is treated; report.py: the same with examples
"""
