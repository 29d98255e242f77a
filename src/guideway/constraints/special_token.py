"""Special tokens by name, as parts of constraints."""

from __future__ import annotations

import re
from collections.abc import Iterable

from guideway.constraints.base import Constraint, check_text, leaf
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.grammar.cfg import Series, Term, Text
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import ANY_CHAR, ANY_TEXT, Both, Cat, Literals, Not, Regular, Repeat, Special

__all__ = ["SpecialToken", "cuts_name", "ends_as_it_begins", "marker", "up_to_marker"]


class SpecialToken(Constraint[str]):
    """One special token of the vocabulary, by its name (`"<|python_tag|>"`); the value is the name.

    It is that token and nothing else: never the text of its name, spelled by other tokens. A vocabulary that has no
    special token of the name gets the name as text. What `~` and `&` are about is text, which no special token is.
    """

    def __init__(self, name: str) -> None:
        self.name = check_text(name, "the name of a special token")
        if not name:
            raise InvalidConstraintError("a special token has a name")

    def grammar(self) -> Grammar:
        """One leaf."""
        return leaf(Special(self.name))

    def parse(self, text: str) -> str:
        """The name itself."""
        if text != self.name:
            raise InvalidTextError(f"{text!r} is not {self.name!r}")
        return text

    def _content(self) -> object:
        return self.name

    def __repr__(self) -> str:
        return f"SpecialToken({self.name!r})"


def _names(special: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted({name for name in special if name}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def marker(text: str, special: Iterable[str]) -> Term:
    """A fixed text in which these names are special tokens."""
    parts: list[Regular] = []
    at = 0
    for found in _names(special).finditer(text):
        parts += [Literals((text[at : found.start()],)), Special(found[0])]
        at = found.end()
    return Series(tuple(map(Text, [*parts, Literals((text[at:],))])))


def cuts_name(text: str, at: int, special: Iterable[str]) -> bool:
    """Whether a place in a text is inside one of the names there."""
    return any(found.start() < at < found.end() for found in _names(special).finditer(text))


def ends_as_it_begins(text: str) -> bool:
    """Whether an end of the text, and not all of it, is also its beginning."""
    return any(text.endswith(text[:size]) for size in range(1, len(text)))


def up_to_marker(text: str, special: Iterable[str], *others: str) -> Term:
    """Texts up to the first marker, and the marker, in which these names are special tokens; none of `others` before.

    Raises `InvalidConstraintError` for a marker with names that ends as it begins: as text, its end would be unclear.
    """
    early = Cat((ANY_TEXT, Literals((text, *others)), Repeat(ANY_CHAR, 1, None)))
    if not _names(special).search(text):
        return Text(Both((Cat((ANY_TEXT, Literals((text,)))), Not(early))))
    if ends_as_it_begins(text):
        raise InvalidConstraintError(f"the marker {text!r} ends as it begins, so it cannot hold special tokens")
    free = Not(Cat((ANY_TEXT, Literals((text, *others)), ANY_TEXT)))
    return Series((Text(free), marker(text, special)))
