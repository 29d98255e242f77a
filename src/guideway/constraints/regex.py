"""`Regex`: the texts that a pattern matches as a whole, with the meaning of Python's `re` or of ECMA-262."""

from __future__ import annotations

import re

from guideway.constraints.base import Constraint, leaf
from guideway.constraints.captures import Pattern
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.frontends.regex import FLAGS, Dialect, parse_pattern, parse_tree
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Regular

__all__ = ["Regex"]

_LETTERS = {re.I: "i", re.M: "m", re.S: "s", re.X: "x", re.A: "a", re.U: ""}


class Regex(Constraint[str]):
    """The texts that `re.fullmatch(pattern, text, flags)` matches; with `dialect="ecma"`, what ECMA-262 means by it.

    `pattern`: a str, or what `re.compile` made of one. `flags`: letters ("i", "ms"), or the flags of `re`. Groups with
    names are captured. Exact, look-around and `\\b` anywhere included. Refused with a caret under the place: back-
    references, possessive and atomic groups, conditions. `LimitExceededError` where assertions that are repeated or look
    back take too many states.
    """

    def __init__(self, pattern: str | re.Pattern[str], *, flags: str | int = "", dialect: Dialect = "python") -> None:
        if isinstance(pattern, re.Pattern):
            if flags or dialect != "python":
                raise InvalidConstraintError("a compiled pattern has its flags, and the dialect of Python")
            flags = pattern.flags & ~int(re.U | re.DEBUG)
            pattern = pattern.pattern
        if not isinstance(pattern, str):
            raise InvalidConstraintError(f"a pattern is a str, not {type(pattern).__name__}")
        if dialect not in ("python", "ecma"):
            raise InvalidConstraintError(f"the dialect {dialect!r} is neither 'python' nor 'ecma'")
        self.pattern = pattern
        self.dialect = dialect
        self.flags = _letters(flags, dialect)
        self._regular = parse_pattern(pattern, dialect, flags=self.flags)

    def grammar(self) -> Grammar:
        """One leaf."""
        return leaf(self._regular)

    def regular(self) -> Regular:
        """The language."""
        return self._regular

    def shape(self) -> Pattern | None:
        """The tree of the pattern; None where assertions do not let it be read as a part, and nothing is named."""
        tree, names, asserts = parse_tree(self.pattern, self.dialect, self.flags)
        return None if asserts and not names else Pattern(tree, asserts)

    def parse(self, text: str) -> str:
        """The text itself, if it matches."""
        if not fits(self.grammar(), text):  # not `re`, which may take exponential time
            raise InvalidTextError(f"{text!r} does not match {self.pattern!r}")
        return text

    def _content(self) -> object:
        return self.pattern, self.dialect, self.flags

    def __repr__(self) -> str:
        flags = f", flags={self.flags!r}" if self.flags else ""
        dialect = "" if self.dialect == "python" else ", dialect='ecma'"
        return f"Regex({self.pattern!r}{flags}{dialect})"


def _letters(flags: str | int, dialect: Dialect) -> str:
    """The letters of some flags, sorted."""
    letters = flags
    if isinstance(flags, int):
        unknown = flags & ~int(sum(_LETTERS))
        if unknown:
            raise InvalidConstraintError(f"the flags {re.RegexFlag(unknown)!r} are not for patterns on text")
        letters = "".join(letter for flag, letter in _LETTERS.items() if flags & flag)
    known = FLAGS[dialect]
    if not isinstance(letters, str) or (wrong := "".join(sorted(set(letters) - set(known)))):
        shown = repr(flags) if not isinstance(letters, str) else repr(wrong)
        raise InvalidConstraintError(
            f"the flags {shown} are none of {', '.join(known)}, which the dialect {dialect!r} has"
        )
    return "".join(sorted(set(letters)))
