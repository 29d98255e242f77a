"""Sources as parts of rules."""

from __future__ import annotations

from typing import Any

from guideway.constraints.base import Constraint, Literal
from guideway.constraints.coerce import of
from guideway.grammar.cfg import Series, Term, Text, Times, Whole

__all__ = ["separated", "source_of", "term_of"]


def source_of(thing: object) -> Constraint[Any]:
    """A str as itself, everything else as a constraint."""
    return Literal(thing) if isinstance(thing, str) else of(thing)


def term_of(source: Constraint[Any]) -> Term:
    """A source as a part of rules."""
    language = source.regular()
    return Text(language, source) if language is not None else Whole(source.grammar(), source)


def separated(term: Term, least: int, most: int | None, separator: Term) -> Term:
    """The term, `least` to `most` times, with the separator between."""
    if most == 0:
        return Series(())
    more = Times(Series((separator, term)), max(least - 1, 0), None if most is None else most - 1)
    return Times(Series((term, more)), min(least, 1), 1)
