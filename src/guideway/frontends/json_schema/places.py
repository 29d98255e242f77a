"""The graph of the schemas of a document that were reached, numbered by literal, with resolved references."""

from __future__ import annotations

from typing import Any

from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.frontends.json_schema.assertions import ANYTHING, Want, box_key
from guideway.frontends.json_schema.keywords import KEYWORDS
from guideway.frontends.json_schema.parse import MAX_PLAIN, read_schema
from guideway.frontends.json_schema.references import Documents, Resource
from guideway.frontends.json_schema.terms import Fork, Place, Term
from guideway.jsontext.pointer import pointer, shown

__all__ = ["Places"]


class Places:
    """Assigns literals to schemas.

    An even literal refers to a schema at a place, and the next odd literal to its negation. The literal 0 is `true`,
    and 1 is `false`.
    """

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.places: list[Place] = [Place(0, True, "", documents.main, ())]
        # by identity of schemas, which the places keep alive
        self._literals: dict[tuple[int, tuple[Resource, ...]], int] = {}
        self._targets: dict[tuple[int, tuple[Resource, ...]], int] = {}  # of schemas that are only references
        self._values: dict[str, int] = {}
        self.refusals: dict[str, str] = {}
        self.contract: list[tuple[str, str]] = []

    def root(self) -> int:
        """The literal of the document."""
        main = self.documents.main
        return self.literal(main.root, main.place, main, (main,) if self.documents.dynamic else ())

    def literal(self, schema: object, where: str, resource: Resource, scope: tuple[Resource, ...]) -> int:
        """The literal of a schema. A schema that is only a reference has the literal of its target.

        The literals of references are kept, so that each reference of a chain is resolved once.
        """
        chain: dict[tuple[int, tuple[Resource, ...]], None] = {}
        found = None
        while found is None:
            if not isinstance(schema, dict):
                found = 0 if schema else 1
                break
            if not schema:
                found = 0
                break
            key = (id(schema), scope)
            found = self._literals.get(key)
            if found is not None:
                break
            if "$ref" not in schema or not self._only_ref(schema, resource):
                place = Place(2 * len(self.places), schema, where, resource, scope)
                self.places.append(place)
                found = self._literals[key] = place.literal
                break
            if key in chain:
                raise InvalidConstraintError(
                    f"at {shown(where)}: this $ref leads back to itself, so it describes no value", where
                )
            if not chain:
                self.contract.append((where, "$ref"))
            found = self._targets.get(key)
            if found is None:
                chain[key] = None
                try:
                    schema, where, resource, scope = self._target(schema, where, resource, scope, "$ref")
                except UnsupportedError as problem:
                    found = self._refuse(problem, where)
        for key in chain:
            self._targets[key] = found
        return found

    def is_own(self, place: Place) -> bool:
        """Whether every occurrence of this schema in the main document has the literal of this place."""
        return self._literals.get((id(place.schema), ())) == place.literal and place.resource is self.documents.main

    def _only_ref(self, schema: dict[str, Any], resource: Resource) -> bool:
        if not isinstance(schema["$ref"], str):
            return False
        return (
            len(schema) == 1
            or resource.dialect.ref_alone
            or not any(name in KEYWORDS for name in schema if name != "$ref")
        )

    def _target(
        self, schema: dict[str, Any], where: str, resource: Resource, scope: tuple[Resource, ...], name: str
    ) -> tuple[object, str, Resource, tuple[Resource, ...]]:
        documents, reference = self.documents, str(schema[name])
        at = pointer(where, name)
        if name == "$recursiveRef":
            found, target, home = documents.resolve("#", resource, at)
            if home.recursive:
                outer = next((one for one in scope if one.recursive), home)
                found, target, home = outer.root, outer.place, outer
        else:
            found, target, home = documents.resolve(reference, resource, at)
            anchor = reference.partition("#")[2]
            if name == "$dynamicRef" and anchor in home.dynamic and home.dynamic[anchor][0] is found:
                outer = next((one for one in scope if anchor in one.dynamic), home)
                found, target = outer.dynamic[anchor]
                home = outer
        return found, target, home, self._scope(scope, home)

    def _scope(self, scope: tuple[Resource, ...], home: Resource) -> tuple[Resource, ...]:
        if not self.documents.dynamic or home in scope:
            return scope
        return (*scope, home)

    def child(self, place: Place, schema: object, names: tuple[str | int, ...]) -> int:
        """The literal of a subschema."""
        if schema is True:
            return 0
        if schema is False:
            return 1
        resource, scope = place.resource, place.scope
        owners = self.documents.owners
        if owners and id(schema) in owners:
            resource = owners[id(schema)]
            scope = self._scope(scope, resource)
        if type(schema) is dict and schema and "$ref" not in schema:  # the common case: `literal`, inlined
            key = (id(schema), scope)
            found = self._literals.get(key)
            if found is None:
                found = self._literals[key] = 2 * len(self.places)
                self.places.append(Place(found, schema, pointer(place.pointer, *names), resource, scope))
            return found
        return self.literal(schema, pointer(place.pointer, *names), resource, scope)

    def _reference(self, place: Place, name: str, reference: str) -> int:
        try:
            found, where, home, scope = self._target(place.schema, place.pointer, place.resource, place.scope, name)
        except UnsupportedError as problem:
            return self._refuse(problem, place.pointer)
        return self.literal(found, where, home, scope)

    def _refuse(self, problem: UnsupportedError, place: str) -> int:
        """Record a schema that cannot be resolved. It is treated as `false`, and the document is refused in the end."""
        self.refusals.setdefault(place if problem.place is None else problem.place, str(problem))
        return 1

    def value_literal(self, place: Place, schema: dict[str, Any]) -> int:
        """The literal of a generated schema of constants."""
        key = box_key(schema)
        if key not in self._values:
            self._values[key] = self.literal(schema, place.pointer, place.resource, place.scope)
        return self._values[key]

    def any_of(self, place: Place, literals: tuple[int, ...]) -> Want:
        """The disjunction of the literals, as a want."""
        if 0 in literals:
            return ANYTHING
        made = Place(2 * len(self.places), {}, place.pointer, place.resource, place.scope)
        made.term = Term(forks=(Fork("any", place.pointer, literals),), leads=literals)
        self.places.append(made)
        return frozenset((made.literal,))

    def all_of(self, place: Place, wanted: Want) -> int:
        """The conjunction of a want, as one literal."""
        if len(wanted) < 2:
            return next(iter(wanted), 0)
        literals = tuple(sorted(wanted))
        made = Place(2 * len(self.places), {}, place.pointer, place.resource, place.scope)
        made.term = Term(also=literals, leads=literals)
        self.places.append(made)
        return made.literal

    def term(self, place: Place) -> Term:
        """The term of the schema at a place."""
        if place.term is None:
            place.term = read_schema(place, self.child, self._reference)
        return place.term

    def plain_term(self, place: Place) -> Term | None:
        """The term of a schema that asserts at most one type. None for other schemas."""
        if place.term is None and len(place.schema) > MAX_PLAIN:
            return None
        term = self.term(place)
        return term if term.plain else None
