"""Parsers of notations for context-free grammars. They produce rules (`guideway.grammar.cfg.Rule`).

scanner.py   a position in the grammar text, error messages, open groups
gbnf.py      llama.cpp's notation
ebnf_iso.py  EBNF of ISO/IEC 14977
ebnf_w3c.py  EBNF of the W3C
lark/        Lark's notation
"""
