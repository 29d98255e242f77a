"""Work limits for one schema. They are counts, so a schema is accepted or refused equally on every machine."""

from __future__ import annotations

__all__ = [
    "MAX_ALTERNATIVES",
    "MAX_CASES",
    "MAX_CLASSES",
    "MAX_COMPARED",
    "MAX_DEMANDS",
    "MAX_FORMULA",
    "MAX_LOOKAHEAD",
    "MAX_NESTED",
    "MAX_OPENED",
    "MAX_SHARED",
    "MAX_SPLITS",
    "MAX_STEPS",
    "MAX_STEPS_AHEAD",
    "MAX_STEPS_FIRST",
    "MAX_TALLY",
    "MAX_TOLD_APART",
    "MAX_TRIED",
    "MAX_WIDE",
    "MAX_WORK",
    "MAX_WORK_FIRST",
    "MIN_TALLY",
]

MAX_ALTERNATIVES = 10_000
"""The maximum number of alternatives of one node."""

MAX_STEPS = 25_000
"""The maximum number of search steps for one node."""

MAX_OPENED = 16
"""The maximum number of constant arrays and objects of a `oneOf` branch that are expanded."""

MAX_WORK = 200_000
"""The maximum number of search steps for a document, plus a number for each of its schemas."""

MAX_STEPS_AHEAD = 500
"""The maximum number of search steps to find that the value of a required key is unsatisfiable."""

MAX_LOOKAHEAD = 4
"""The maximum nesting depth at which the value of a required key is checked for satisfiability."""

MAX_NESTED = 50
"""The maximum nesting depth of `oneOf` and `unevaluated*` that apply to the same value."""

MAX_TOLD_APART = 10
"""The maximum number of `anyOf` branches that evaluate keys or items, if `unevaluated*` depends on them."""

MAX_WIDE = 250
"""The maximum number of object alternatives of a node if such nodes are nested: parser states multiply."""

MAX_STEPS_FIRST = 3_000
"""The maximum number of search steps before objects are divided by cases."""

MAX_WORK_FIRST = 20_000
"""The maximum total work of the first search, before objects are divided by cases."""

MAX_CASES = 1000
"""The maximum number of alternatives in a division by cases."""

MAX_CLASSES = 128
"""The maximum number of value classes of one key in a division by cases."""

MAX_DEMANDS = 6
"""The maximum number of demands of one alternative in a division by cases."""

MAX_FORMULA = 2_000
"""The maximum number of schemas in a division by cases."""

MAX_SPLITS = 100_000
"""The maximum work of one division by cases."""

MAX_TRIED = 4
"""The maximum number of assertions about the value of one key that are combined with each other."""

MIN_TALLY = 8
"""The minimum number of branches of a disjunction that is counted while an object is read, instead of divided."""

MAX_TALLY = 64
"""The maximum number of branches of such a disjunction."""

MAX_SHARED = 6
"""The maximum number of such branches that share keys, directly or through other branches."""

MAX_COMPARED = 200_000
"""The maximum number of keys that are compared to find implications between schemas. Further ones are not found."""
