"""Translates regular expressions of Python's `re` and of ECMA-262 to `Regular`.

parser.py              the parser
scanner.py             the position in a pattern, dialects, errors
classes.py             escapes and `[classes]`
character_ranges.py    the characters of `\\d`, `\\w`, `(?i)k`
unicode_properties.py  the characters of `\\p{...}`, from unicode.txt
syntax.py              the syntax tree
assertions.py          the meaning of `^`, `$` and `\\b`
lowering.py            the tree -> a language; assertions as intersection and complement
lookaround.py          the tree -> a DFA, if lowering.py does not support the positions of its assertions
nfa.py                 the NFA of a pattern with assertions, on `grammar/automata/`
"""

from __future__ import annotations

from guideway.frontends.regex.parser import FLAGS, Dialect, parse_pattern, parse_tree

__all__ = ["FLAGS", "Dialect", "parse_pattern", "parse_tree"]
