"""Captures: the text that each named part of a constraint matched.

spans.py          `Capture` and `Captures`: the result
shapes.py         the structure of a constraint, from which captures are computed
program.py        this structure as a state machine, with alternatives in order of priority
leaf_matchers.py  matchers of regular parts
derivation.py     the derivation with the highest priority
json_values.py    the values of a JSON text by JSON Pointer

If a text has several derivations, the one with the highest priority counts. They are compared from left to right: an
earlier alternative has priority over a later one, and more repetitions over fewer (fewer over more where a pattern has
a lazy repetition). For regular expressions, the result is the match of a backtracking engine (Frisch and Cardelli,
"Greedy regular expression matching", 2004). It is computed without backtracking: a table of the ends that are reachable
from each position is filled once, and the derivation follows the entries that succeed.
"""

from __future__ import annotations

from guideway.constraints.captures.derivation import captures_of
from guideway.constraints.captures.json_values import values_of
from guideway.constraints.captures.shapes import IGNORED, Pattern, Reading, Rules, Shape
from guideway.constraints.captures.spans import Capture, Captures

__all__ = ["IGNORED", "Capture", "Captures", "Pattern", "Reading", "Rules", "Shape", "captures_of", "values_of"]
