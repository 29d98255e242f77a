"""Patterns (regular expressions as people write them) -> `Regular`.

parser.py      the text of a pattern, group by group
classes.py     escapes and `[classes]`
tables.py      which characters `\\d`, `\\w`, `(?i)k` mean
properties.py  which characters `\\p{...}` means, out of unicode.txt
syntax.py      the tree of a pattern
assertions.py  what `^`, `$` and `\\b` ask for
lowering.py    the tree -> a language, assertions by intersection and complement
drawing.py     the tree -> an automaton drawn out, where assertions stand anywhere
places.py      the graph it is drawn from
"""

from __future__ import annotations

from .parser import FLAGS, Dialect, parse_pattern, parse_tree

__all__ = ["FLAGS", "Dialect", "parse_pattern", "parse_tree"]
