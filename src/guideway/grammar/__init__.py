"""The intermediate representation: regular expressions over characters, and nodes that combine them.

nodes.py       `Grammar` and its nodes: sequences, alternatives, objects, arrays
regular.py     regular expressions over characters
derivatives.py  deterministic automata of regular expressions, by derivatives
rules_text.py  a grammar as context-free rules, for the notations of other libraries
automata/      finite automata over characters
lengths.py     texts of bounded length
substrings.py  the substrings of a text: word boundaries, case, white space
values.py      dataclass helpers
program.py     a grammar as a program for the kernel
recognizer.py  the byte recogniser that `parse` uses
work.py        bounds the work of the kernel while a constraint is lowered
mismatch.py    where a text stops fitting, and what could follow
cfg/           context-free rules -> nodes
"""

from __future__ import annotations
