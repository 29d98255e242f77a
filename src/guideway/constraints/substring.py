"""`Substring`: quotations from a text."""

from __future__ import annotations

from guideway.constraints.base import Constraint, check_text
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.regular import ANY_CHAR, Chars, Dfa, Intersection, Regular, Repeat

__all__ = ["Substring"]

_MAX_CHARACTERS = 100_000


class Substring(Constraint[str]):
    """The contiguous substrings of a text. The value is the text.

    The language is the suffix automaton of the text, whose size is linear (Blumer et al., "The smallest automaton
    recognizing the subwords of a text", 1985).

    Args:
        text: The text to quote from, at most 100,000 characters.
        least: Minimum length of a quotation, in characters.
        most: Maximum length, in characters; None for no maximum.

    Raises:
        InvalidConstraintError: The lengths are negative, in the wrong order, or greater than the text.
        LimitExceededError: The text is too long.
    """

    def __init__(self, text: str, *, least: int = 1, most: int | None = None) -> None:
        self.text = check_text(text, "the text")
        if least < 0 or (most is not None and most < least):
            raise InvalidConstraintError(f"lengths need 0 <= least <= most, got least={least} and most={most}")
        if least > len(text):
            raise InvalidConstraintError(f"least must be at most the length of the text, {len(text)}, got {least}")
        if len(text) > _MAX_CHARACTERS:
            raise LimitExceededError(
                f"Substring supports texts of at most {_MAX_CHARACTERS:,} characters, got {len(text):,}"
            )
        self.least, self.most = least, most
        language: Regular = Dfa(_suffix_automaton(text))
        if least or most is not None:
            language = Intersection((language, Repeat(ANY_CHAR, least, most)))
        self._grammar = leaf(language)

    def grammar(self) -> Grammar:
        """Return one leaf."""
        return self._grammar

    def parse(self, text: str) -> str:
        """Return the text if it is a quotation of an allowed length."""
        if text not in self.text or not self.least <= len(text) <= (len(text) if self.most is None else self.most):
            raise does_not_fit(self.grammar(), text, "is not a quotation of an allowed length")
        return text

    def _content(self) -> object:
        return self.text, self.least, self.most

    def __repr__(self) -> str:
        return f"Substring({self.text[:40]!r}{'…' if len(self.text) > 40 else ''})"


def _suffix_automaton(text: str) -> tuple[tuple[bool, tuple[tuple[Chars, int], ...]], ...]:
    """Return the states of the suffix automaton. All of them are accepting."""
    steps: list[dict[str, int]] = [{}]
    link, length = [-1], [0]
    last = 0
    for char in text:
        made = len(steps)
        steps.append({})
        length.append(length[last] + 1)
        link.append(0)
        at = last
        while at >= 0 and char not in steps[at]:
            steps[at][char] = made
            at = link[at]
        if at >= 0:
            after = steps[at][char]
            if length[after] == length[at] + 1:
                link[made] = after
            else:  # `after` also represents longer suffixes: split it
                copy = len(steps)
                steps.append(dict(steps[after]))
                length.append(length[at] + 1)
                link.append(link[after])
                while at >= 0 and steps[at].get(char) == after:
                    steps[at][char] = copy
                    at = link[at]
                link[after] = link[made] = copy
        last = made
    known = {char: Chars(((ord(char), ord(char)),)) for char in set(text)}
    return tuple((True, tuple((known[char], to) for char, to in out.items())) for out in steps)
