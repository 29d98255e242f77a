"""Finite automata over characters.

alphabet.py     equivalence classes of characters, which are the letters of automata
nfa.py          expressions -> NFAs (Thompson's construction)
determinize.py  the subset construction
minimize.py     minimal DFAs
dfa.py          expressions -> DFAs, with intersections and complements
"""
