"""For unions in a schema that is sent: which option a value belongs to, and whether two options can share a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guideway.constraints import JsonSchema
from guideway.errors import InvalidTextError
from guideway.jsontext.encoder import identity, write_json

__all__ = ["MAX_DEPTH", "TYPES", "InstanceCheck", "StructureTest", "are_disjoint", "type_of", "whole_schema"]

MAX_DEPTH = 100
"""Maximum nesting of a schema that is rewritten, and maximum number of references that are followed in a row."""

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def type_of(value: Any) -> str:
    """Return the JSON type of a value; "integer" also for a finite float without a fraction."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    # A number of an answer that is too large for a float is read as infinity.
    return "integer" if isinstance(value, int) or (math.isfinite(value) and value == int(value)) else "number"


def _types(sent: dict[str, Any]) -> set[str]:
    if "anyOf" in sent:
        return set().union(*(_types(one) if "$ref" not in one else set(TYPES) for one in sent["anyOf"]))
    kind = sent.get("type")
    if kind is None:
        return set(TYPES)
    return {"integer", "number"} if kind == "number" else {kind}


def are_disjoint(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether types, keys or enumerations show that no value is an instance of both schemas."""
    kinds = _types(one) & _types(other)
    if not kinds:
        return True
    if kinds != {"object"} or "anyOf" in one or "anyOf" in other:
        return False
    if one.get("additionalProperties", True) is not False or other.get("additionalProperties", True) is not False:
        return False
    mine, theirs = one.get("properties", {}), other.get("properties", {})
    if set(one.get("required", ())) - set(theirs) or set(other.get("required", ())) - set(mine):
        return True
    for key in set(one.get("required", ())) & set(other.get("required", ())):
        left, right = mine[key].get("enum"), theirs[key].get("enum")
        if left and right and not {identity(value) for value in left} & {identity(value) for value in right}:
            return True
    return False


Definitions = Mapping[str, dict[str, Any]]


def whole_schema(sent: dict[str, Any], definitions: Definitions) -> dict[str, Any]:
    """Return the schema that the `$ref` of a schema refers to, or the schema itself if it has no `$ref`.

    {} after `MAX_DEPTH` references.
    """
    for _ in range(MAX_DEPTH):
        if "$ref" not in sent:
            return sent
        sent = definitions[sent["$ref"].removeprefix("#/$defs/")]
    return {}


@dataclass
class InstanceCheck:
    """A function that returns whether an encoded value is an instance of the schema `sent`.

    `constraint` is made from the schema at the first call.
    """

    sent: dict[str, Any]
    definitions: Definitions
    constraint: JsonSchema | None = None

    def __call__(self, value: Any) -> bool:
        if self.constraint is None:
            schema = {**self.sent, "$defs": self.definitions}
            self.constraint = JsonSchema(schema, profile="exact", unknown_keywords="ignore")
        try:
            self.constraint.parse(write_json(value))
        except InvalidTextError:
            return False
        return True


@dataclass
class StructureTest:
    """A function that tests quickly whether a value may be an instance of the schema `sent`.

    It tests the type, `enum` and `anyOf` and, if the schema excludes additional properties, the keys and the enumerated
    values of the properties. Other keywords are not tested.
    """

    sent: dict[str, Any]
    definitions: Definitions

    def __call__(self, value: Any) -> bool:
        one = whole_schema(self.sent, self.definitions)
        if "anyOf" in one:
            return any(StructureTest(option, self.definitions)(value) for option in one["anyOf"])
        if "enum" in one:
            return identity(value) in {identity(known) for known in one["enum"]}
        if "type" not in one:
            return True
        kind = type_of(value)
        if kind != one["type"] and (kind, one["type"]) != ("integer", "number"):
            return False
        if kind != "object" or one.get("additionalProperties", True) is not False:
            return True
        known = one.get("properties", {})
        if not set(value) <= set(known) or not set(one.get("required", ())) <= set(value):
            return False
        return all(
            "enum" not in known[key] or StructureTest(known[key], self.definitions)(inner)
            for key, inner in value.items()
        )
