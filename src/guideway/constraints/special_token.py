"""`SpecialToken`, and marker texts that contain special tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable

from guideway.arguments import short_repr
from guideway.constraints.base import Constraint, check_text
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.grammar.cfg import Concatenation, Term, Text
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.regular import (
    ANY_CHAR,
    ANY_TEXT,
    Complement,
    Concat,
    Intersection,
    Literals,
    Regular,
    Repeat,
    Special,
    Union,
)

__all__ = ["SpecialToken", "cuts_name", "ends_as_it_begins", "marker", "up_to_marker"]


class SpecialToken(Constraint[str]):
    """One special token of the vocabulary. The value is its name.

    Only this token matches, never other tokens whose texts spell its name. If the vocabulary has no special token with
    this name, the name is matched as text. `a & b` matches the token only where both operands do. `~` and the
    exceptions (`-`) of `Ebnf` apply to text only: the token does not match their results, and they read its name as
    text, as `parse` does.

    Args:
        name: The name of the token, for example "<|python_tag|>".

    Raises:
        InvalidConstraintError: The name is empty.
    """

    def __init__(self, name: str) -> None:
        self.name = check_text(name, "the name of a special token")
        if not name:
            raise InvalidConstraintError("the name of a special token must not be empty")

    def grammar(self) -> Grammar:
        """Return one leaf."""
        return leaf(Special(self.name))

    def parse(self, text: str) -> str:
        """Return the text if it is the name."""
        if text != self.name:
            raise InvalidTextError(f"expected {short_repr(self.name)}, found {short_repr(text)}")
        return text

    def _content(self) -> object:
        return self.name

    def __repr__(self) -> str:
        return f"SpecialToken({self.name!r})"


def _names(special: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted({name for name in special if name}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def marker(text: str, special: Iterable[str]) -> Term:
    """Return a fixed text as a term. Occurrences of the names `special` in it are special tokens."""
    parts: list[Regular] = []
    at = 0
    for found in _names(special).finditer(text):
        parts += [Literals((text[at : found.start()],)), Special(found[0])]
        at = found.end()
    return Concatenation(tuple(map(Text, [*parts, Literals((text[at:],))])))


def cuts_name(text: str, at: int, special: Iterable[str]) -> bool:
    """Return whether the index `at` of a text is inside an occurrence of one of the names `special`."""
    return any(found.start() < at < found.end() for found in _names(special).finditer(text))


def ends_as_it_begins(text: str) -> bool:
    """Return whether a proper suffix of the text is also a prefix of it."""
    return any(text.endswith(text[:size]) for size in range(1, len(text)))


def _begun_before(text: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return each beginning of one of `others` whose rest is a proper prefix of `text`."""
    sizes = range(1, len(text))
    found = (other[:-size] for other in others for size in sizes if size < len(other) and other.endswith(text[:size]))
    return tuple(dict.fromkeys(found))


def up_to_marker(text: str, special: Iterable[str], *others: str) -> Term:
    """Return a term of the texts that end with a marker, and contain neither it nor one of `others` earlier.

    Args:
        text: The marker.
        special: Names in the marker that are special tokens, if the vocabulary has them.
        others: More texts, none of which may occur so that it ends before the marker ends.

    Raises:
        InvalidConstraintError: A marker with special tokens has a proper suffix that is also a prefix, so its first
            occurrence in text is ambiguous.
    """
    early = Concat((ANY_TEXT, Literals((text, *others)), Repeat(ANY_CHAR, 1, None)))
    if not _names(special).search(text):
        return Text(Intersection((Concat((ANY_TEXT, Literals((text,)))), Complement(early))))
    if ends_as_it_begins(text):
        raise InvalidConstraintError(
            f"the marker {short_repr(text)} has a suffix that is also a prefix, so it cannot contain special tokens"
        )
    early = Concat((ANY_TEXT, Literals((text, *others)), ANY_TEXT))
    completed = Concat((ANY_TEXT, Literals(_begun_before(text, others))))
    return Concatenation((Text(Complement(Union((early, completed)))), marker(text, special)))
