"""JSON text inside a JSON string (`Json[T]` of Pydantic), as a pattern that the decoded string must match.

The pattern allows no white space. It leaves out strings with escapes, long numbers, numbers with exponents, objects
with only a part of the optional fields, and dicts with more than one entry. A type that a pattern cannot describe
raises `UnsupportedError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from guideway.errors import UnsupportedError

__all__ = ["MAX_DEPTH", "json_pattern"]

MAX_DEPTH = 8
"""The maximum nesting depth of the schema of `T` in `Json[T]`. A reference counts as one level."""

MAX_PATTERN = 20_000
"""The maximum length of the pattern."""

_CHARACTER = r"[^\"\\\u0000-\u001f\u007f\ud800-\udfff]"
_INTEGER = "(0|-?[1-9][0-9]{0,17})"
_SCALARS = {
    "null": "null",
    "boolean": "(true|false)",
    "integer": _INTEGER,
    "number": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?",
    "string": f'"{_CHARACTER}*"',
}
_NOTES = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})


def json_pattern(schema: dict[str, Any], definitions: Mapping[Any, Any], template: str) -> str:
    """Return a pattern of the JSON texts of a schema.

    Args:
        schema: The JSON Schema of `T` in `Json[T]`.
        definitions: The definitions that the schema may refer to, by name.
        template: A reference to a definition, with "{model}" in place of its name.

    Raises:
        UnsupportedError: The schema has keywords that a pattern cannot express, is recursive, or is too large.
    """
    made = _PatternWriter(definitions, template).write(schema, MAX_DEPTH)
    if len(made) > MAX_PATTERN:
        raise UnsupportedError("JSON inside a string (Json[...]) is too large here; use the inner type")
    return made


class _PatternWriter:
    def __init__(self, definitions: Mapping[Any, Any], template: str) -> None:
        self._definitions = {template.format(model=name): one for name, one in definitions.items()}

    def write(self, schema: dict[str, Any], depth: int) -> str:
        if depth < 0:
            self._refuse("it is nested too deeply or recursive")
        known = {name: value for name, value in schema.items() if name not in _NOTES}
        if "$ref" in known:
            if known["$ref"] not in self._definitions:
                self._refuse("it is recursive")
            return self.write(self._definitions[known["$ref"]], depth - 1)
        if "const" in known or "enum" in known:
            values = known["enum"] if "enum" in known else [known["const"]]
            return f"({'|'.join(_exactly(value) for value in values)})"
        if known.keys() == {"anyOf"}:
            return f"({'|'.join(self.write(one, depth - 1) for one in known['anyOf'])})"
        kind = known.pop("type", None)
        if kind in _SCALARS and not known:
            return _SCALARS[kind]
        if kind == "string" and known.keys() <= {"minLength", "maxLength"}:
            return f'"{_CHARACTER}{_times(known.get("minLength", 0), known.get("maxLength"))}"'
        if kind == "array" and known.keys() <= {"items", "prefixItems", "minItems", "maxItems"}:
            return self._array(known, depth)
        if kind == "object" and known.keys() <= {"properties", "required", "additionalProperties"}:
            return self._object(known, depth)
        return self._refuse(f"it has {', '.join(sorted(known)) or 'values of any type'}")

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        first = [self.write(one, depth - 1) for one in schema.get("prefixItems", [])]
        if first:
            if schema.get("minItems") != len(first) or schema.get("maxItems") != len(first):
                self._refuse("it has a tuple of variable length")
            return rf"\[{','.join(first)}\]"
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if "items" not in schema or schema["items"] in ({}, True):
            self._refuse("it has values of any type")
        item = self.write(schema["items"], depth - 1)
        if most == 0:
            return r"\[\]"
        more = _times(max(least - 1, 0), None if most is None else most - 1)
        some = f"{item}(,{item}){more}"
        return rf"\[{some}\]" if least else rf"\[({some})?\]"

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        fields, required = schema.get("properties", {}), schema.get("required", [])
        if not fields:
            other = schema.get("additionalProperties")
            if not isinstance(other, dict) or not other:
                return r"\{\}"
            member = rf"{_SCALARS['string']}:{self.write(other, depth - 1)}"
            return rf"\{{({member})?\}}"  # at most one member, because a pattern cannot require that keys differ
        # All fields, or only the required ones: not every combination of optional fields is needed.
        parts = [f"{_exactly(name)}:{self.write(one, depth - 1)}" for name, one in fields.items()]
        whole = rf"\{{{','.join(parts)}\}}"
        if len(required) == len(fields):
            return whole
        short = [part for name, part in zip(fields, parts, strict=True) if name in required]
        return rf"({whole}|\{{{','.join(short)}\}})"

    def _refuse(self, why: str) -> NoReturn:
        raise UnsupportedError(f"JSON inside a string (Json[...]) is not supported for this type, because {why}")


def _exactly(value: Any) -> str:
    return re.sub(r"[^A-Za-z0-9 _:,\"]", lambda found: _escaped(found[0]), json.dumps(value))


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}"


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"
