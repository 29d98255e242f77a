"""Terms: the right-hand sides of rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from guideway.background import checkpoint
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

__all__ = [
    "Alternation",
    "Concatenation",
    "Embedded",
    "Except",
    "Ref",
    "Repetition",
    "Rule",
    "Term",
    "Text",
    "parts_first",
    "parts_of",
]


@dataclass(frozen=True, slots=True)
class Text:
    """The texts of a regular language.

    `source`: the object that the term was made from, usually a constraint; None: not known. Captures and messages of
    errors are made with it.
    """

    language: Regular
    source: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a rule, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    """A concatenation; without parts: the empty text."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """An alternation; without parts: the empty language."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`least` to `most` repetitions of a part (None: unbounded)."""

    part: Term
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Except:
    """The texts of `part` that are not texts of `without`.

    Both must be regular, unless `without` is the empty text; `lower` checks this. `place` is the position in the
    grammar text, for errors.
    """

    part: Term
    without: Term
    place: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """The texts of a grammar, such as that of a JSON Schema. `source`: the constraint of the grammar, for captures."""

    grammar: Grammar
    source: object = None


Term = Text | Ref | Concatenation | Alternation | Repetition | Except | Embedded


def parts_of(term: Term) -> tuple[Term, ...]:
    """Return the direct subterms."""
    match term:
        case Concatenation(parts) | Alternation(parts):
            return parts
        case Repetition(part):
            return (part,)
        case Except(part, without):
            return (part, without)
    return ()


def parts_first(root: Term) -> Iterator[Term]:
    """Yield the term and all terms in it, each object once, parts before the terms that contain them."""
    done: set[int] = set()
    todo = [root]
    while todo:
        checkpoint()
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
    """A rule: a name and its right side. `place`: its position in the grammar text, for errors."""

    name: str
    term: Term
    place: str | None = None
