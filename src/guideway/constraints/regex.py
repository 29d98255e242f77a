"""`Regex`: the texts that a pattern matches completely, with the meaning of Python's `re` or of ECMA-262."""

from __future__ import annotations

import re

from guideway.arguments import short_repr
from guideway.constraints.base import Constraint
from guideway.constraints.captures import Pattern
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError
from guideway.frontends.regex import FLAGS, Dialect, parse_pattern, parse_tree
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Regular

__all__ = ["Regex"]

_LETTERS = {re.I: "i", re.M: "m", re.S: "s", re.X: "x", re.A: "a", re.U: ""}


class Regex(Constraint[str]):
    """The texts that match a pattern completely. The value is the text.

    The meaning is that of `re.fullmatch`, or of ECMA-262 with `dialect="ecma"`. Lookaround and `\\b` are supported
    exactly, in any position. Named groups are captured. Not supported: back-references, possessive and atomic groups,
    conditions.

    Args:
        pattern: A str, or a compiled `re.Pattern`.
        flags: Letters such as "i" or "ms", or flags of `re` such as `re.I | re.M`.
        dialect: "python" or "ecma".

    Raises:
        InvalidConstraintError: The pattern has an error. The message has a caret under the position.
        UnsupportedError: The pattern uses an unsupported construct.
        LimitExceededError: The pattern is too large, for example because assertions need too many automaton states.
    """

    def __init__(self, pattern: str | re.Pattern[str], *, flags: str | int = "", dialect: Dialect = "python") -> None:
        if isinstance(pattern, re.Pattern):
            if flags or dialect != "python":
                raise InvalidConstraintError(
                    "a compiled pattern has its own flags and the Python dialect; omit flags and dialect"
                )
            flags = pattern.flags & ~int(re.U | re.DEBUG)
            pattern = pattern.pattern
        if not isinstance(pattern, str):
            raise InvalidConstraintError(f"a pattern must be a str or a compiled pattern, got {type(pattern).__name__}")
        if dialect not in ("python", "ecma"):
            raise InvalidConstraintError(f"dialect must be 'python' or 'ecma', got {short_repr(dialect)}")
        self.pattern = pattern
        self.dialect = dialect
        self.flags = _letters(flags, dialect)
        self._regular = parse_pattern(pattern, dialect, flags=self.flags)

    def grammar(self) -> Grammar:
        """Return one leaf."""
        return leaf(self._regular)

    def regular(self) -> Regular:
        """Return the language."""
        return self._regular

    def shape(self) -> Pattern | None:
        """Return the syntax tree. None if the pattern has assertions and no named groups."""
        tree, names, asserts = parse_tree(self.pattern, self.dialect, self.flags)
        return None if asserts and not names else Pattern(tree, asserts)

    def parse(self, text: str) -> str:
        """Return the text if the pattern matches it completely; otherwise raise `InvalidTextError`."""
        if not fits(self.grammar(), text):  # `re` is not used, because it can take exponential time
            raise does_not_fit(self.grammar(), text, f"does not match {self.pattern!r}")
        return text

    def conflict(self, place: str | None) -> str | None:
        """Return a phrase with the pattern."""
        return f"the pattern {self.pattern!r}"

    def _content(self) -> object:
        return self.pattern, self.dialect, self.flags

    def __repr__(self) -> str:
        flags = f", flags={self.flags!r}" if self.flags else ""
        dialect = "" if self.dialect == "python" else ", dialect='ecma'"
        return f"Regex({self.pattern!r}{flags}{dialect})"


def _letters(flags: str | int, dialect: Dialect) -> str:
    """Return the letters of flags, sorted. Raises `InvalidConstraintError` for flags that the dialect does not have."""
    letters = flags
    if isinstance(flags, int):
        unknown = flags & ~int(sum(_LETTERS))
        if unknown:
            raise InvalidConstraintError(f"the flags {re.RegexFlag(unknown)!r} do not apply to text patterns")
        letters = "".join(letter for flag, letter in _LETTERS.items() if flags & flag)
    known = FLAGS[dialect]
    if not isinstance(letters, str) or (wrong := "".join(sorted(set(letters) - set(known)))):
        shown = repr(flags) if not isinstance(letters, str) else repr(wrong)
        raise InvalidConstraintError(
            f"unknown flags {shown} for the dialect {dialect!r}; known flags: {', '.join(known)}"
        )
    return "".join(sorted(set(letters)))
