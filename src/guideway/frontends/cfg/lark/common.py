"""The terminals of Lark's library `common`, as patterns with the meaning of Python's `re`."""

from __future__ import annotations

__all__ = ["COMMON", "LENGTHS"]

_LETTER = "A-Za-z"
_INT = r"[0-9]+"
_DECIMAL = rf"(?:{_INT}\.(?:{_INT})?|\.{_INT})"
_EXP = rf"[eE][+-]?{_INT}"
_FLOAT = rf"(?:{_INT}{_EXP}|{_DECIMAL}(?:{_EXP})?)"
_NUMBER = rf"(?:{_FLOAT}|{_INT})"

COMMON = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9a-fA-F]",
    "INT": _INT,
    "SIGNED_INT": rf"[+-]?{_INT}",
    "DECIMAL": _DECIMAL,
    "_EXP": _EXP,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": rf"[+-]?{_FLOAT}",
    "NUMBER": _NUMBER,
    "SIGNED_NUMBER": rf"[+-]?{_NUMBER}",
    # Lark's pattern has a lazy repetition and a lookbehind. This pattern has the same matches.
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": f"[{_LETTER}]",
    "WORD": f"[{_LETTER}]+",
    "CNAME": f"[_{_LETTER}][_{_LETTER}0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"\#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*(?:[^*]|\*+[^*/])*\*+/",
    "SQL_COMMENT": r"--[^\n]*",
}

LENGTHS = {
    "DIGIT": 5,
    "HEXDIGIT": 21,
    "INT": 10,
    "SIGNED_INT": 24,
    "DECIMAL": 44,
    "_EXP": 31,
    "FLOAT": 126,
    "SIGNED_FLOAT": 140,
    "NUMBER": 141,
    "SIGNED_NUMBER": 155,
    "ESCAPED_STRING": 20,
    "LCASE_LETTER": 5,
    "UCASE_LETTER": 5,
    "LETTER": 15,
    "WORD": 20,
    "CNAME": 53,
    "WS_INLINE": 13,
    "WS": 12,
    "CR": 1,
    "LF": 1,
    "NEWLINE": 12,
    "SH_COMMENT": 6,
    "CPP_COMMENT": 9,
    "C_COMMENT": 13,
    "SQL_COMMENT": 7,
}
"""The lengths of Lark's patterns for these terminals, one criterion of the lexer's order (`Terminal.rank`)."""
