"""Lark's contextual lexer, expressed as context-free rules over texts: `contextual_rules`.

In each state of the LALR(1) parser, the lexer tries only the terminals that the parser accepts there. It takes the
first of them, in Lark's order, that matches a prefix of the remaining text, with the match of its pattern in Python's
`re`. If this match equals a keyword, the terminal is the keyword. So the terminals of a text depend on the text that
follows. A context-free rule cannot express this directly. Therefore, rules are split by the state of the lexer before
and after the text that they derive.

terminals.py          Lark's order of terminals, keywords that patterns match
forbidden.py          what must not follow a terminal
lalr.py               Lark's expansion of rules, and the LALR(1) automaton (DeRemer and Pennello, 1982)
steps.py              one terminal and the ignored text after it, by the state of the lexer that they end in
rule_splitting.py     rules split by states of parser and lexer (Bar-Hillel, Perles and Shamir, 1961)
"""

from __future__ import annotations

from guideway.frontends.cfg.lark.contextual_lexer.lalr import Conflict
from guideway.frontends.cfg.lark.contextual_lexer.rule_splitting import Split, contextual_rules
from guideway.frontends.cfg.lark.contextual_lexer.terminals import Terminal

__all__ = ["Conflict", "Split", "Terminal", "contextual_rules"]
