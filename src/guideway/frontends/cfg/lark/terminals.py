"""Terminals of Lark. As in Lark, each terminal becomes one pattern. The pattern is then translated to a language."""

from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import dataclass

from guideway.errors import ConstraintError, UnsupportedError
from guideway.frontends.cfg.lark.longest_match import ContextError, first_matches, takes_longest
from guideway.frontends.regex import parse_pattern, parse_tree
from guideway.frontends.regex.syntax import width
from guideway.grammar.cfg.expressions import Expressions
from guideway.grammar.regular import Regular

__all__ = ["TerminalError", "Written", "either", "joined", "language_of", "repeated", "written"]


_FLAGS_OF_ALL = re.compile(r"(?:\(\?[aimsux]+\))+")


class TerminalError(Exception):
    """A terminal is not supported or not valid.

    `kind`: the class of the error that the caller raises; for `ConstraintError`, it raises `InvalidConstraintError`.
    """

    def __init__(self, message: str, kind: type[ConstraintError]) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Written:
    """A terminal as Lark stores it.

    Attributes:
        value: The text or the pattern.
        flags: The flags, such as "i".
        fixed: Whether `value` is a fixed text, not a pattern.
        length: The length by which Lark orders terminals: that of the text, or of the pattern as written.
    """

    value: str
    flags: frozenset[str] = frozenset()
    fixed: bool = False
    length: int = 0

    @property
    def pattern(self) -> str:
        """The terminal as a group of a pattern, with its flags. It can be part of a larger pattern."""
        flags = "".join(sorted(self.flags - {"u"}))
        return f"(?{flags}:{re.escape(self.value) if self.fixed else self.value})"

    @property
    def inside(self) -> int:
        """The length of the terminal as Lark writes it inside another terminal: escaped, with a group for each flag."""
        return (len(re.escape(self.value)) if self.fixed else self.length) + len("(?i:)") * len(self.flags)

    def widths(self) -> tuple[int, int | None]:
        """Return a lower and an upper bound (None: no bound) of the length of the texts of the terminal, in characters.

        Assertions count as length 0.
        """
        return (len(self.value),) * 2 if self.fixed else width(parse_tree(self.pattern, "python")[0])


def joined(parts: list[Written]) -> Written:
    """Return the concatenation of terminals as one terminal."""
    if len(parts) == 1:
        return parts[0]
    return Written("".join(one.pattern for one in parts), length=sum(one.inside for one in parts))


def either(options: list[Written]) -> Written:
    """Return the alternation of terminals as one terminal, sorted as Lark sorts them: longest first.

    Raises the errors of `parse_tree`.
    """
    if len(options) == 1:
        return options[0]
    rank = {one: one.widths() for one in options}
    options = sorted(options, key=lambda one: (-_endless(rank[one][1]), -rank[one][0], -one.length))
    length = len("(?:)") + sum(one.inside + 1 for one in options) - 1
    return Written(f"(?:{'|'.join(one.pattern for one in options)})", length=length)


def _endless(most: int | None) -> int:
    return 1 << 64 if most is None else most


def repeated(part: Written, least: int, most: int | None) -> Written:
    """Return `least` to `most` (None: unbounded) repetitions of a terminal as one terminal."""
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
    sign = short or (f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}")
    return Written(f"(?:{part.pattern}){sign}", part.flags, length=len("(?:)") + part.inside + len(sign))


def written(literal: str) -> Written:
    """Return the terminal of a literal `"text"i` or `/pattern/flags`. Escapes have the meaning that they have in Lark.

    Raises `TerminalError` for the flag l, an escape that Python does not know, and parentheses that are not balanced.
    """
    end = literal.rindex(literal[0])
    inner, flags = literal[1:end], literal[end + 1 :]
    if "l" in flags:
        raise TerminalError("the flag l (locale) is not supported, because it depends on the machine", UnsupportedError)
    made, at = "", 0
    while at < len(inner):  # keep the escapes that Python knows, and double the backslashes of all others
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
        raise TerminalError("it has an escape that Python does not know", ConstraintError) from None
    fixed = literal[0] == '"'
    if fixed:
        text = text.replace("\\\\", "\\")
    length = len(text)
    if not fixed and not flags and (whole := _FLAGS_OF_ALL.match(text)):
        text, flags = text[whole.end() :], "".join(re.findall(r"[aimsux]", whole[0]))
    if {"a", "u"} <= set(flags):
        raise TerminalError("the flags a and u cannot be combined", ConstraintError)
    terminal = Written(text, frozenset(flags), fixed, length)
    if not fixed and _is_valid(terminal.pattern) and not _is_valid(f"(?{flags}){text}" if flags else text):
        raise TerminalError("the parentheses of the pattern are not balanced", ConstraintError)
    return terminal


def _is_valid(pattern: str) -> bool:
    """Return whether the regex parser accepts a pattern. A group around it can hide parentheses that are not balanced."""
    try:
        parse_tree(pattern, "python")
    except ConstraintError:
        return False
    return True


def language_of(pattern: str) -> Regular:
    """Return the texts that Lark's lexers can take as a terminal with this pattern.

    The dynamic lexer takes the match of Python's `re` in the rest of the text, and the matches in all prefixes of this
    match. So it takes the texts in which the match of `re` is the whole text. The contextual lexer, and the dynamic one
    for ignored text, take the longest of them that the rest of the text begins with.

    Raises:
        TerminalError: The pattern matches the empty text, or depends on the text around the terminal.
        ConstraintError: `parse_pattern` refuses the pattern, or the automaton of its matches is too large.
    """
    language = parse_pattern(pattern, "python")
    if Expressions().nullable(language):
        raise TerminalError("it matches the empty text, which Lark does not allow", ConstraintError)
    tree, _, asserts = parse_tree(pattern, "python")
    if not asserts and takes_longest(tree):
        return language
    try:
        return first_matches(tree, language)
    except ContextError as error:
        raise TerminalError(str(error), UnsupportedError) from None
