"""Terminals of Lark: each becomes one pattern, as in Lark itself, and that a language."""

from __future__ import annotations

import re
from ast import literal_eval

from guideway.errors import ConstraintError, Unsupported
from guideway.grammar.nodes import Grammar, Leaf
from guideway.grammar.regular import ANY_CHAR, ANY_TEXT, Both, Cat, Not, Regular, Repeat
from guideway.grammar.rules.expressions import Expressions
from guideway.sources.fits import is_empty
from guideway.sources.patterns import parse_pattern

__all__ = ["TerminalError", "language_of", "pattern_of_literal"]

_ASIDE = re.compile(r"\\[^bBAZ]|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # escapes and classes
_LOOKS = re.compile(r"\(\?<?[=!]|\\[bBAZ]|[\^$]")
_LAZY = re.compile(r"[*+?}]\?")


class TerminalError(Exception):
    """A terminal that cannot be used: the text says why; `kind` is the class to raise."""

    def __init__(self, message: str, kind: type[ConstraintError]) -> None:
        super().__init__(message)
        self.kind = kind


def pattern_of_literal(written: str) -> str:
    """The pattern of `"text"i` or `/pattern/flags`, with the escapes that Lark takes."""
    end = written.rindex(written[0])
    inner, flags = written[1:end], written[end + 1 :]
    if "l" in flags:
        raise TerminalError("the flag l: what it means depends on the machine", Unsupported)
    made, at = "", 0
    while at < len(inner):  # Python's own escapes count; every other backslash stays
        char, after = inner[at], inner[at + 1 : at + 2]
        at += 2 if char == "\\" else 1
        made += (
            char
            if char != "\\"
            else "\\" + after
            if after in [*"Uuxnftr"]
            else "\\\\" + ("\\\\" if after == "\\" else after)
        )
    made = made.replace('\\\\"', '"').replace("\n", "\\n").replace("\r", "\\r").replace("'", "\\'")
    try:
        text = str(literal_eval(f"'{made}'"))
    except (SyntaxError, ValueError):
        raise TerminalError("an escape that Python does not know", ConstraintError) from None
    if written[0] == '"':
        text = re.escape(text.replace("\\\\", "\\"))
    kept = "".join(sorted(set(flags) - {"u"}))
    return f"(?{kept}:{text})" if kept else f"(?:{text})"


def language_of(pattern: str) -> Regular:
    """The texts that a terminal with this pattern can stand for.

    A pattern with a lazy repetition stands for its shortest texts: those that do not begin with another one. Patterns
    that look beyond the terminal's own text are refused.
    """
    language = parse_pattern(pattern, "python")
    if Expressions().nullable(language):
        raise TerminalError("it can be empty text, which no terminal may", ConstraintError)
    bare = _ASIDE.sub("x", pattern)
    if _LOOKS.search(bare):
        behind, ahead = parse_pattern(f"(?s:.)*{pattern}", "python"), parse_pattern(f"{pattern}(?s:.)*", "python")
        if not (_same(behind, Cat((ANY_TEXT, language))) and _same(ahead, Cat((language, ANY_TEXT)))):
            raise TerminalError("it looks beyond its own text, at what stands around it", Unsupported)
    if _LAZY.search(bare):
        language = Both((language, Not(Cat((language, Repeat(ANY_CHAR, 1, None))))))
    return language


def _same(one: Regular, other: Regular) -> bool:
    return all(_is_empty(Both((a, Not(b)))) for a, b in ((one, other), (other, one)))


def _is_empty(language: Regular) -> bool:
    grammar = Grammar()
    grammar.root = grammar.add(Leaf(language))
    return is_empty(grammar)
