"""Lark's contextual lexer, as rules over texts: `contextual_rules`.

In each state of the LALR(1) parser the lexer looks for those terminals alone that the parser could take there. Of these
the first in Lark's order that begins the rest of the text is taken, and as much of it as it can; a text that a pattern
took is a keyword if it is one. So what a terminal may be depends on what comes behind it, which no context-free rule
says by itself. Here it does: rules are split by the state of the lexer before and behind what they derive.

terminals.py   Lark's order of terminals, keywords within patterns
preferred.py   whether what a pattern takes of a text is the longest that it could
states.py      states numbered as they are met; the subset construction
machines.py    patterns as automata over classes of characters; what must not come behind a terminal
tables.py      rules as Lark writes them out, and the LALR(1) automaton (DeRemer and Pennello, 1982)
steps.py       one terminal with the ignored text behind it: its texts, by the state of the lexer that they leave
splitting.py   rules split by states of parser and lexer (as Bar-Hillel, Perles and Shamir, 1961), and equal ones joined
"""

from __future__ import annotations

from .preferred import preferred
from .splitting import Split, contextual_rules
from .tables import Conflict
from .terminals import Terminal

__all__ = ["Conflict", "Split", "Terminal", "contextual_rules", "preferred"]
