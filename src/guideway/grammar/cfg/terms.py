"""What a rule can say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

__all__ = ["Choice", "Except", "Ref", "Rule", "Series", "Term", "Text", "Times", "Whole", "parts_first", "parts_of"]


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


def parts_of(term: Term) -> tuple[Term, ...]:
    """The terms that stand in it."""
    match term:
        case Series(parts) | Choice(parts):
            return parts
        case Times(part):
            return (part,)
        case Except(part, without):
            return (part, without)
    return ()


def parts_first(root: Term) -> Iterator[Term]:
    """Every term in it, once, parts before what holds them; a walk with a stack."""
    done: set[int] = set()
    todo = [root]
    while todo:
        waiting = [part for part in parts_of(todo[-1]) if id(part) not in done]
        if waiting:
            todo += waiting
            continue
        term = todo.pop()
        if id(term) not in done:
            done.add(id(term))
            yield term


@dataclass(frozen=True, slots=True)
class Rule:
    """A term under a name. `place`: where it stands in what its user wrote, for errors."""

    name: str
    term: Term
    place: str | None = None
