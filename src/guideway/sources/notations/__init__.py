"""Grammars as people write them -> rules.

reader.py   a position in the text, the caret, open groups
source.py   what all notations share: parts from elsewhere, reading a text back
gbnf.py     `Gbnf`: llama.cpp's notation
ebnf.py     `Ebnf`: w3c.py and iso.py
lark.py     `Lark`: lark_reader.py (statements), lark_terminals.py (patterns), lark_common.py (the library `common`)
"""

from __future__ import annotations

from .ebnf import Ebnf
from .gbnf import Gbnf
from .lark import Lark

__all__ = ["Ebnf", "Gbnf", "Lark"]
