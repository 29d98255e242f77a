"""`Substring`: quotations out of a text."""

from __future__ import annotations

from guideway.constraints.base import Constraint, check_text, leaf
from guideway.errors import InvalidConstraintError, InvalidTextError, LimitExceededError
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import ANY_CHAR, Both, Chars, Graph, Regular, Repeat

__all__ = ["Substring"]

_MAX_CHARACTERS = 100_000


class Substring(Constraint[str]):
    """The texts that stand somewhere in a given text, in one piece: `least` characters or more, at most `most`.

    Written as the suffix automaton of the text (Blumer et al., "The smallest automaton recognizing the subwords of a
    text", 1985), whose size is linear. Raises `LimitExceededError` beyond 100,000 characters.
    """

    def __init__(self, text: str, *, least: int = 1, most: int | None = None) -> None:
        self.text = check_text(text, "the text")
        if least < 0 or (most is not None and most < least):
            raise InvalidConstraintError(f"at least {least} and at most {most} characters")
        if least > len(text):
            raise InvalidConstraintError(f"the text has {len(text)} characters, fewer than {least}")
        if len(text) > _MAX_CHARACTERS:
            raise LimitExceededError(f"a text of {len(text)} characters; at most {_MAX_CHARACTERS} can be quoted from")
        self.least, self.most = least, most
        language: Regular = Graph(_suffix_automaton(text))
        if least or most is not None:
            language = Both((language, Repeat(ANY_CHAR, least, most)))
        self._grammar = leaf(language)

    def grammar(self) -> Grammar:
        """One leaf."""
        return self._grammar

    def parse(self, text: str) -> str:
        """The text itself, if it stands there."""
        if text not in self.text or not self.least <= len(text) <= (len(text) if self.most is None else self.most):
            raise InvalidTextError(f"{text!r} is no quotation of that length")
        return text

    def _content(self) -> object:
        return self.text, self.least, self.most

    def __repr__(self) -> str:
        return f"Substring({self.text[:40]!r}{'…' if len(self.text) > 40 else ''})"


def _suffix_automaton(text: str) -> tuple[tuple[bool, tuple[tuple[Chars, int], ...]], ...]:
    """Its states, each of which may be the end."""
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
            else:  # what was read here is shorter than what `after` stands for: a state of its own
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
