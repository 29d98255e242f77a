"""How much work one schema may be, as counts: the same schema is refused, or not, on every machine."""

from __future__ import annotations

__all__ = [
    "MAX_ALTERNATIVES",
    "MAX_CASES",
    "MAX_CLASSES",
    "MAX_DEMANDS",
    "MAX_FORMULA",
    "MAX_LOOKAHEAD",
    "MAX_NESTED",
    "MAX_OPENED",
    "MAX_SPLITS",
    "MAX_STEPS",
    "MAX_STEPS_AHEAD",
    "MAX_STEPS_FIRST",
    "MAX_TOLD_APART",
    "MAX_TRIED",
    "MAX_WIDE",
    "MAX_WORK",
    "MAX_WORK_FIRST",
]

MAX_ALTERNATIVES = 10_000
"""How many alternatives one place may come down to."""

MAX_STEPS = 25_000
"""How many choices may be looked at to find them."""

MAX_OPENED = 16
"""How many given arrays and objects of a branch of `oneOf` are looked into."""

MAX_WORK = 200_000
"""How many choices may be looked at in all, besides some for each schema of the document."""

MAX_STEPS_AHEAD = 500
"""How many choices may be looked at to see that the value of a required key cannot be."""

MAX_LOOKAHEAD = 4
"""How deep the value of a required key is looked into before its object is given up."""

MAX_NESTED = 50
"""How deep `oneOf` and `unevaluated*` may stand in one another, at one place of the value."""

MAX_TOLD_APART = 10
"""How many branches of one `anyOf` may decide what is left for `unevaluated*`."""

MAX_WIDE = 250
"""How many objects may be the alternatives of one node if such nodes stand in one another: what is open multiplies."""

MAX_STEPS_FIRST = 3_000
"""How many choices are looked at before objects are divided by cases."""

MAX_WORK_FIRST = 20_000
"""How many options are looked at before objects are divided by cases."""

MAX_CASES = 1000
"""How many alternatives the objects of one place may have that are divided by cases."""

MAX_CLASSES = 128
"""How many classes of values of one key are distinguished then."""

MAX_DEMANDS = 6
"""How many demands one such alternative may have."""

MAX_FORMULA = 2_000
"""How many schemas may take part in one division by cases."""

MAX_SPLITS = 100_000
"""How much work one division by cases may be."""

MAX_TRIED = 4
"""How many assertions about the value of one key are combined with each other to find which can hold together."""
