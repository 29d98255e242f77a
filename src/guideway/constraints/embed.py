"""Converts a constraint to a term of a context-free rule, and repeats a term with separators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guideway.grammar.cfg import Concatenation, Embedded, Repetition, Term, Text

if TYPE_CHECKING:
    from guideway.constraints.base import Constraint

__all__ = ["separated", "term_of"]


def term_of(source: Constraint[Any]) -> Term:
    """Return a constraint as a term of a rule: `Text` if it is regular, otherwise `Embedded`."""
    language = source.regular()
    return Text(language, source) if language is not None else Embedded(source.grammar(), source)


def separated(term: Term, least: int, most: int | None, separator: Term) -> Term:
    """Return a term repeated `least` to `most` times (None: unbounded), with a separator between two repetitions."""
    if most == 0:
        return Concatenation(())
    more = Repetition(Concatenation((separator, term)), max(least - 1, 0), None if most is None else most - 1)
    return Repetition(Concatenation((term, more)), min(least, 1), 1)
