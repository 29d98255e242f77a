"""The intermediate representation: regular expressions over characters, and nodes that combine them.

nodes.py       `Grammar` and its nodes: sequences, alternatives, objects, arrays
regular.py     regular expressions over characters
derivatives.py deterministic automata of regular expressions, by derivatives
rules_text.py  a grammar as context-free rules, for exports to the notations of other libraries
automata/      finite automata over characters
lengths.py     bounds of the length of texts
substrings.py  the substrings of a text: word boundaries, case, white space
values.py      the dataclass decorator of nodes and expressions
program.py     a grammar as a program for the kernel
recognizer.py  compiles a grammar for single bytes, to test whether it accepts a text
work.py        limits the work of the kernel while a constraint is lowered
mismatch.py    where a text stops fitting, and what could follow
cfg/           context-free rules -> nodes
"""

from __future__ import annotations
