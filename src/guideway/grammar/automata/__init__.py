"""Finite automata over characters.

alphabet.py     equivalence classes of characters, which are the letters of automata
nfa.py          expressions -> NFAs (Thompson's construction)
determinize.py  the subset construction
minimize.py     minimal DFAs
dfa.py          expressions -> DFAs, with intersections and complements

Three related algorithms are in other packages, because their states are not sets of NFA states:
`frontends/regex/lookaround.py` (states are formulas over NFA states, for assertions),
`frontends/cfg/lark/contextual_lexer/longest_match.py` (states are ordered lists of NFA states, for the priorities of
`re`), and `constraints/captures/` (a state machine with calls of rules and counted loops, which finds derivations). The
first two use parts of this package.
"""
