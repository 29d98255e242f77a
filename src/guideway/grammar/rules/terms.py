"""What a rule can say."""

from __future__ import annotations

from dataclasses import dataclass, field

from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

__all__ = ["Choice", "Except", "Ref", "Rule", "Series", "Term", "Text", "Times", "Whole"]


@dataclass(frozen=True, slots=True)
class Text:
    """A regular piece of text. `source`: what it was made of, for those who ask what stands in it."""

    language: Regular
    source: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """Another rule, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Series:
    """One after the other; no parts: the empty text."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of the parts; no parts: no text."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """The part, `least` to `most` times (None: no end)."""

    part: Term
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Except:
    """The texts of a part that are none of another. Both are regular, or the other is the empty text alone.

    `place`: where it stands, for the error if they are not.
    """

    part: Term
    without: Term
    place: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A whole grammar, such as that of a JSON Schema. `source` as that of a `Text`."""

    grammar: Grammar
    source: object = None


Term = Text | Ref | Series | Choice | Times | Except | Whole


@dataclass(frozen=True, slots=True)
class Rule:
    """A term under a name. `place`: where it stands in what its user wrote, for errors."""

    name: str
    term: Term
    place: str | None = None
