"""What the named parts of a source took of a text that fits it.

spans.py       `Capture` and `Captures`: the result
shapes.py      what a source says of its inside
program.py     that as states: what may be read where, first choices first
pieces.py      the pieces of text that states read, and where they may end
derivation.py  which way through the states comes first
jsontext.py    JSON Pointers and their spans

Of all ways to derive the text, the first counts: alternatives in the order written, repetitions as long as they can (or
as short, where a pattern says `?`), from left to right; for patterns this is what backtracking engines find (Frisch and
Cardelli, "Greedy regular expression matching", 2004). It is found without backtracking: which ends can be reached from
each place is tabled once, and the way is then walked along what can succeed.
"""

from __future__ import annotations

from .derivation import captures_of
from .jsontext import values_of
from .shapes import IGNORED, Pattern, Reading, Rules, Shape
from .spans import Capture, Captures

__all__ = ["IGNORED", "Capture", "Captures", "Pattern", "Reading", "Rules", "Shape", "captures_of", "values_of"]
