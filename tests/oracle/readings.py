"""Alternatives of a value in the grammar."""

from __future__ import annotations

from guideway.grammar.nodes import Marked, Value

__all__ = ["readings"]


def readings(value: Value) -> tuple[Marked, ...]:
    """Return the alternatives of a value; a plain node has no marks."""
    return (Marked(0, value),) if isinstance(value, int) else value
