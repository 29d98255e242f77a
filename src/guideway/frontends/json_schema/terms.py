"""What one schema of a document says: its own keywords as a bundle, and its applicators as forks.

A fork is a choice; its options say together what the applicator says. Terms are read in reading.py, and never changed
once they are made; opposites are in opposites.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guideway.frontends.json_schema.bundles import ANYTHING, FREE, NOTHING, Bundle, Want
from guideway.frontends.json_schema.documents import Resource
from guideway.frontends.json_schema.evaluated import NOTHING_EVALUATED, Evaluated, evaluated_by

__all__ = ["Fork", "Place", "Scope", "Term", "want"]

Scope = tuple[Resource, ...]


class Place:
    """A schema where it stands. `scope`: the resources gone through on the way, where dynamic references care."""

    __slots__ = ("literal", "pointer", "resource", "schema", "scope", "term")

    def __init__(self, literal: int, schema: Any, where: str, resource: Resource, scope: Scope) -> None:
        self.literal = literal
        self.schema = schema
        self.pointer = where
        self.resource = resource
        self.scope = scope
        self.term: Term | None = None


@dataclass(slots=True, eq=False)
class Fork:
    """A choice. `kind` "any" and "one": the literals; "if": condition, then, else; "when": `name` brings `needs` and a
    literal. `beside`: what the schema says besides.
    """

    kind: str
    place: str
    literals: tuple[int, ...] = ()
    name: str = ""
    needs: tuple[str, ...] = ()
    beside: Bundle = FREE


@dataclass(slots=True, eq=False)
class Term:
    """`also`: literals that hold besides.

    `left`: what unevaluated properties and items must be (None: nothing is said).
    """

    own: Bundle = FREE
    also: tuple[int, ...] = ()
    forks: tuple[Fork, ...] = ()
    left: tuple[int | None, int | None] | None = None
    told: tuple[dict[str, Any], bool, int | None] | None = None  # what `evaluates` looks at
    leads: tuple[int, ...] = ()  # the literals of `also` and `forks`
    plain: bool = False  # it says one type, or nothing: the same term in all schemas

    @property
    def evaluates(self) -> Evaluated:
        """What the own keywords evaluate."""
        return evaluated_by(*self.told) if self.told else NOTHING_EVALUATED


def want(literal: int) -> Want:
    """The literal as a want of its own."""
    return frozenset((literal,)) if literal > 1 else NOTHING if literal else ANYTHING
