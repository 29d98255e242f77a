"""The analysis of one schema (a term): its own keywords as a bundle, and its in-place applicators as forks.

A fork is a disjunction. Its options together are equivalent to the applicator. Terms are built in parse.py and are
not changed after construction. Negation is in opposites.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guideway.frontends.json_schema.assertions import ANYTHING, FREE, NOTHING, Bundle, Want
from guideway.frontends.json_schema.references import Resource
from guideway.frontends.json_schema.unevaluated import NOTHING_EVALUATED, Evaluated, evaluated_by

__all__ = ["Fork", "Place", "Scope", "Term", "want"]

Scope = tuple[Resource, ...]


class Place:
    """A schema at a location.

    `scope` is the dynamic scope: the resources that were entered on the path. It is empty if there are no dynamic
    references.
    """

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
    """A disjunction.

    The kinds "any" and "one" have the branches as literals. The kind "if" has the literals of condition, then and else.
    The kind "when" means that the key `name` requires the keys `needs` and a literal. `beside` is the bundle of the
    other keywords.
    """

    kind: str
    place: str
    literals: tuple[int, ...] = ()
    name: str = ""
    needs: tuple[str, ...] = ()
    beside: Bundle = FREE


@dataclass(slots=True, eq=False)
class Term:
    """The analysis of one schema.

    Attributes:
        own: The assertions of the schema's keywords, except its in-place applicators.
        also: Literals that must also hold.
        forks: Disjunctions, all of which must hold.
        left: The conditions on unevaluated properties and items; None means no assertion.
        `told`: The keywords that evaluate keys or items, as the arguments of `evaluated_by`.
        leads: The literals that apply to the same value: those of `also` and `forks`.
        plain: Whether the schema asserts a single type or nothing, so that all such schemas share the term.
    """

    own: Bundle = FREE
    also: tuple[int, ...] = ()
    forks: tuple[Fork, ...] = ()
    left: tuple[int | None, int | None] | None = None
    told: tuple[dict[str, Any], bool, int | None] | None = None
    leads: tuple[int, ...] = ()
    plain: bool = False

    @property
    def evaluates(self) -> Evaluated:
        """What the own keywords evaluate."""
        return evaluated_by(*self.told) if self.told else NOTHING_EVALUATED


def want(literal: int) -> Want:
    """The want that consists of one literal."""
    return frozenset((literal,)) if literal > 1 else NOTHING if literal else ANYTHING
