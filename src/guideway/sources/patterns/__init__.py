"""Patterns (regular expressions as people write them) -> `Regular`.

parser.py    the text of a pattern, group by group
classes.py   escapes and `[classes]`
tables.py    which characters `\\d`, `\\w`, `(?i)k` mean
pieces.py    how parts combine, anchors included
"""

from __future__ import annotations

from .parser import Dialect, parse_pattern

__all__ = ["Dialect", "parse_pattern"]
