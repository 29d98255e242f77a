"""`Regex`: the texts that a pattern matches as a whole, with the meaning of Python's `re` or of ECMA-262."""

from __future__ import annotations

from guideway.errors import InvalidConstraint, InvalidText
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

from .base import Source, leaf
from .fits import fits
from .patterns import Dialect, parse_pattern

__all__ = ["Regex"]


class Regex(Source[str]):
    """The texts that `re.fullmatch(pattern, text)` matches; with `dialect="ecma"`, what ECMA-262 means by the pattern.

    Exact, look-around and `\\b` anywhere included. Refused with a caret under the place: back-references, possessive
    and atomic groups, conditions. `LimitExceeded` where assertions that are repeated or look back take too many states.
    """

    def __init__(self, pattern: str, *, dialect: Dialect = "python") -> None:
        if not isinstance(pattern, str):
            raise InvalidConstraint(f"a pattern is a str, not {type(pattern).__name__}")
        if dialect not in ("python", "ecma"):
            raise InvalidConstraint(f"the dialect {dialect!r} is neither 'python' nor 'ecma'")
        self.pattern = pattern
        self.dialect = dialect
        self._regular = parse_pattern(pattern, dialect)

    def grammar(self) -> Grammar:
        """One leaf."""
        return leaf(self._regular)

    def regular(self) -> Regular:
        """The language."""
        return self._regular

    def parse(self, text: str) -> str:
        """The text itself, if it matches."""
        if not fits(self.grammar(), text):  # not `re`, which may take exponential time
            raise InvalidText(f"{text!r} does not match {self.pattern!r}")
        return text

    def _content(self) -> object:
        return self.pattern, self.dialect

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})" if self.dialect == "python" else f"Regex({self.pattern!r}, dialect='ecma')"
