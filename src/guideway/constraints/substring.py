"""`Substring`: the substrings of a text."""

from __future__ import annotations

from guideway.constraints.base import Constraint, check_text
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.regular import ANY_CHAR, Intersection, Regular, Repeat
from guideway.grammar.substrings import Source, source_of

__all__ = ["Substring"]


class Substring(Constraint[str]):
    """The contiguous substrings of a text. The value is the text.

    The text may have millions of characters, because the kernel sorts its suffixes.

    Args:
        text: The text.
        least: The minimum length of a substring, in characters.
        most: The maximum length, in characters; None: no maximum.
        word_boundaries: Whether a substring must begin and end at word boundaries, and not with white space.
        ignore_case: Whether letters may be written in either case.
        normalize_whitespace: Whether each run of white space of the text is written as one space.

    Raises:
        InvalidConstraintError: `least` is negative, greater than `most` or greater than the length of the text; or the
            text has a lone surrogate.
        LimitExceededError: The text has more than 8,000,000 characters.
    """

    def __init__(
        self,
        text: str,
        *,
        least: int = 1,
        most: int | None = None,
        word_boundaries: bool = False,
        ignore_case: bool = False,
        normalize_whitespace: bool = False,
    ) -> None:
        self.text = check_text(text, "the text")
        if least < 0 or (most is not None and most < least):
            raise InvalidConstraintError(f"lengths need 0 <= least <= most, got least={least} and most={most}")
        if least > len(text):
            raise InvalidConstraintError(f"least must be at most the length of the text, {len(text)}, got {least}")
        self.least, self.most = least, most
        self.word_boundaries, self.ignore_case = bool(word_boundaries), bool(ignore_case)
        self.normalize_whitespace = bool(normalize_whitespace)
        self._source = source_of(
            text,
            word_boundaries=self.word_boundaries,
            ignore_case=self.ignore_case,
            normalize_whitespace=self.normalize_whitespace,
            allow_empty=least == 0,
        )
        language: Regular = self._source.language
        if least > 1 or most is not None:
            language = Intersection((language, Repeat(ANY_CHAR, least, most)))
        self._grammar = leaf(language)

    @property
    def source(self) -> Source:
        """The text as a source of substrings. Its method `spans` returns where a substring occurs."""
        return self._source

    def grammar(self) -> Grammar:
        """Return one leaf."""
        return self._grammar

    def parse(self, text: str) -> str:
        """Return the text if it is a substring of an allowed length."""
        if not self._fits(text):
            raise does_not_fit(self.grammar(), text, "is not a substring of an allowed length")
        return text

    def _fits(self, text: str) -> bool:
        if not self.least <= len(text) <= (len(text) if self.most is None else self.most):
            return False
        return bool(self._source.spans(text, 1)) if text else self.least == 0

    def _content(self) -> object:
        return (
            self.text,
            self.least,
            self.most,
            self.word_boundaries,
            self.ignore_case,
            self.normalize_whitespace,
        )

    def __repr__(self) -> str:
        return f"Substring({self.text[:40]!r}{'…' if len(self.text) > 40 else ''})"
