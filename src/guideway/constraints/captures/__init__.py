"""Which text each named part of a constraint matched.

spans.py          `Capture` and `Captures`: the result
shapes.py         what a constraint exposes of its structure
program.py        that structure as a state machine, alternatives in priority order
leaf_matchers.py  matchers of regular parts
derivation.py     the derivation with the highest priority
json_values.py    JSON Pointers and their spans

Of all derivations of a text, the first counts: alternatives in the order written, repetitions greedy (or lazy, where a
regex uses `?`), from left to right. For regular expressions this is the match of a backtracking engine (Frisch and
Cardelli, "Greedy regular expression matching", 2004). It is computed without backtracking: a table of the ends that are
reachable from each position is filled once, and the derivation follows the entries that succeed.
"""

from __future__ import annotations

from guideway.constraints.captures.derivation import captures_of
from guideway.constraints.captures.json_values import values_of
from guideway.constraints.captures.shapes import IGNORED, Pattern, Reading, Rules, Shape
from guideway.constraints.captures.spans import Capture, Captures

__all__ = ["IGNORED", "Capture", "Captures", "Pattern", "Reading", "Rules", "Shape", "captures_of", "values_of"]
