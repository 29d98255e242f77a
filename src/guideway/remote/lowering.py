"""Rewrites a JSON Schema for a provider, and returns the codec that decodes the answers.

Providers enforce subsets of JSON Schema. `lower` returns a schema in the subset of a provider that allows every
instance of the original in an encoded form, and a `Codec` that decodes an answer. A keyword that the subset lacks is
dropped: the schema that is sent then allows more, and Guideway checks the answer. A schema is a conjunction of
keywords, so dropping one never loses an instance. A value whose type the subset cannot describe is sent as a string
that contains JSON text. A union is ambiguous if answers may need decoding, and the types, keys and enumerations of its
options do not exclude that a value belongs to two options. What a subset does not support is sent in another form:

    optional property      required, null for absent; {"value": x} or null where the value itself may be null
    additional properties  a list of {"key": ..., "value": ...}
    tuple                  an object with the keys item_1, item_2, ... and a list for further items
    root that is no object {"value": ...}
    ambiguous union        {"option_1": ...} or {"option_2": ...}
    any value, recursion   JSON text in a string
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guideway.errors import LimitExceededError
from guideway.jsontext.encoder import identity, write_json
from guideway.jsontext.pointer import pointer, target
from guideway.remote.codecs import (
    Codec,
    IdentityCodec,
    JsonTextCodec,
    LaterCodec,
    ListCodec,
    MapCodec,
    ObjectCodec,
    OptionalCodec,
    TaggedCodec,
    TupleCodec,
    UnionCodec,
    WrappedCodec,
    short,
)
from guideway.remote.distinction import (
    MAX_DEPTH,
    TYPES,
    InstanceCheck,
    StructureTest,
    are_disjoint,
    type_of,
    whole_schema,
)
from guideway.remote.subset import Note, SchemaSubset

__all__ = ["SentSchema", "lower"]

MAX_SUBSCHEMAS = 20_000
"""Maximum number of subschemas that are rewritten."""

MAX_COMPARED = 200
"""Maximum number of options of a union that are compared in pairs. A larger union counts as ambiguous."""

_OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems", "uniqueItems"),
}
_OF_TYPE["integer"] = _OF_TYPE["number"]
_IN_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "$ref", "$dynamicRef", "$recursiveRef")
_OTHERS = (*_IN_PLACE, "dependentSchemas", "dependencies", "unevaluatedProperties")
_OF_KEYS = ("properties", "patternProperties", "additionalProperties", *_OTHERS)
"""Keywords by which a schema may allow keys that another schema for the same object does not list."""

_CHECKED_ONLY = (
    *(
        "not",
        "if",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
        "unevaluatedItems",
    ),
    *("propertyNames", "minProperties", "maxProperties", "contains", "minContains", "maxContains", "patternProperties"),
    *("$dynamicRef", "$recursiveRef"),
)


@dataclass
class SentSchema:
    """The schema that is sent.

    Attributes:
        schema: The schema.
        codec: The codec of its instances.
        notes: What happened to the keywords.
        enumerations: The numbers of values that its enumerations have. One that is sent in several parts, by type,
            counts as a whole.
    """

    schema: dict[str, Any]
    codec: Codec
    notes: tuple[Note, ...]
    enumerations: frozenset[int] = frozenset()


# -- rewriting

Result = tuple[dict[str, Any], Codec]
_SAME = IdentityCodec()
_TEXT_DETAIL = "sent as JSON text in a string"


def lower(schema: Any, subset: SchemaSubset) -> SentSchema:
    """Rewrite a schema for a provider. The given schema is not changed.

    Args:
        schema: The schema, a dict or a boolean.
        subset: What the provider supports.

    Returns:
        The schema to send, which allows every instance of `schema` in an encoded form and perhaps other values; the
        codec that decodes an answer; and notes on what happened to the keywords.

    Raises:
        LimitExceededError: The schema is too large or too deep.
    """
    return _SchemaRewriter(schema, subset).run()


class _SchemaRewriter:
    def __init__(self, schema: Any, subset: SchemaSubset) -> None:
        self._root, self._subset = schema, subset
        self._notes: dict[tuple[str, str], Note] = {}
        self._enumerations: set[int] = set()
        self._definitions: dict[str, dict[str, Any]] = {}
        self._known: dict[tuple[str, bool], tuple[str, LaterCodec]] = {}
        self._open: list[str] = []
        self._count = 0
        self._depth = 0

    def run(self) -> SentSchema:
        sent, codec = self._lower(self._root, "")
        if self._subset.root_object and (sent.get("type") != "object" or "anyOf" in sent):
            sent, codec = self._closed({"value": sent}), WrappedCodec(codec)
            self._note("", "", "provider", 'the root is sent as {"value": ...}')
        if self._definitions:
            sent = {**sent, "$defs": self._definitions}
        return SentSchema(sent, codec, tuple(self._notes.values()), frozenset(self._enumerations))

    # -- notes

    def _note(self, place: str, keyword: str, holder: str, detail: str = "") -> None:
        self._notes.setdefault((place, keyword), Note(place, keyword, holder, detail))

    def _checked(self, schema: Mapping[str, Any], place: str, *names: str) -> None:
        for name in names:
            if name in schema:
                self._note(place, name, "checked_locally")

    # -- one schema

    def _lower(self, schema: Any, place: str, opened: bool = False) -> Result:
        """Return the schema that is sent for a schema, and the codec of its instances.

        Args:
            schema: The schema.
            place: Its JSON Pointer.
            opened: Whether another schema for the same value may allow keys that this one does not list.
        """
        self._count += 1
        if self._count > MAX_SUBSCHEMAS:
            raise LimitExceededError(f"the schema has more than {MAX_SUBSCHEMAS:,} subschemas to rewrite", place)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitExceededError(f"the schema is nested deeper than {MAX_DEPTH} levels", place)
        try:
            return self._lowered(schema, place, opened)
        finally:
            self._depth -= 1

    def _lowered(self, schema: Any, place: str, opened: bool) -> Result:
        if not isinstance(schema, dict):
            return self._anything(place)
        self._checked(schema, place, *_CHECKED_ONLY)
        if "const" in schema:
            return self._values([schema["const"]], schema, place, "const")
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._values(schema["enum"], schema, place, "enum")
        if "$ref" in schema:
            self._checked(schema, place, *(name for name in schema if name not in ("$ref", "$defs", "definitions")))
            return self._reference(schema["$ref"], place, opened or _opens(schema, "$ref"))
        if isinstance(schema.get("allOf"), list) and schema["allOf"]:
            merged = self._merged(schema)
            if merged is None:
                self._checked(schema, place, "allOf")
            else:
                self._note(place, "allOf", "provider", "merged")
                return self._lower(merged, place, opened)
        has_shape = any(name in schema for name in ("properties", "required", "items", "prefixItems"))
        for name in ("anyOf", "oneOf"):
            options = schema.get(name)
            if isinstance(options, list) and options:
                if has_shape:
                    self._note(place, name, "checked_locally")
                    continue
                if name == "oneOf":
                    self._note(place, name, "provider_superset", "sent as anyOf")
                else:
                    self._note(place, name, "provider")
                self._checked(schema, place, *(one for names in _OF_TYPE.values() for one in names))
                given = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type")
                inner = [
                    {"type": given, **option} if given and isinstance(option, dict) and _is_bare(option) else option
                    for option in options
                ]
                more = opened or _opens(schema, name)
                made = [self._lower(one, pointer(place, name, at), more) for at, one in enumerate(inner)]
                return self._union(made, place)
        return self._typed(schema, place, opened)

    def _typed(self, schema: dict[str, Any], place: str, opened: bool) -> Result:
        kinds = schema.get("type")
        if isinstance(kinds, str):
            kinds = [kinds]
        if not isinstance(kinds, list) or not kinds or not all(kind in TYPES for kind in kinds):
            return self._untyped(schema, place, opened)
        if "number" in kinds:
            kinds = [kind for kind in kinds if kind != "integer"]
        made = [self._one_type(schema, kind, place, opened) for kind in dict.fromkeys(kinds)]
        return made[0] if len(made) == 1 else self._union(made, place)

    def _untyped(self, schema: dict[str, Any], place: str, opened: bool) -> Result:
        """Rewrite a schema that has no `type`.

        If the subset allows schemas without a type, and the schema has no keyword of `_OF_TYPE`, the result allows any
        value. Otherwise, if the schema has keywords of objects, or else of arrays, the result allows objects (arrays),
        and other values as JSON text in a string. If it has neither, the result allows any value.
        """
        if self._subset.untyped and not any(name in schema for names in _OF_TYPE.values() for name in names):
            return self._anything(place)
        if any(name in schema for name in ("properties", "required", "additionalProperties", "patternProperties")):
            kind = "object"
        elif any(name in schema for name in ("items", "prefixItems", *_OF_TYPE["array"])):
            kind = "array"
        else:
            return self._anything(place)
        self._note(place, "type", "provider_superset", f"{kind}, or another value as JSON text in a string")
        return self._union([self._one_type(schema, kind, place, opened), self._text(place)], place)

    def _one_type(self, schema: dict[str, Any], kind: str, place: str, opened: bool) -> Result:
        if kind == "object":
            return self._object(schema, place, opened)
        if kind == "array":
            return self._array(schema, place)
        self._note(place, "type", "provider")
        sent: dict[str, Any] = {"type": kind}
        self._assertions(schema, kind, sent, place)
        return self._described(schema, sent), _SAME

    def _assertions(self, schema: dict[str, Any], kind: str, sent: dict[str, Any], place: str) -> None:
        for name in _OF_TYPE.get(kind, ()):
            if name not in schema:
                continue
            value = schema[name]
            fits = name in self._subset.keywords and not isinstance(value, bool)
            if name == "format":
                fits = fits and value in self._subset.formats
            top = self._subset.min_items
            if name == "minItems" and top is not None and fits and isinstance(value, int) and value > top:
                sent[name] = top
                self._note(place, name, "provider_superset", f"sent as {top}")
                continue
            if fits:
                sent[name] = value
                self._note(place, name, "provider")
            else:
                self._note(place, name, "checked_locally")
                sent.setdefault("description", "")
                sent["description"] += f"{'; ' if sent['description'] else ''}{name}: {short(value)}"

    def _described(self, schema: Mapping[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
        """Put the description of the original schema before the one that `sent` has, and return `sent`."""
        given = [one for one in (schema.get("description"), sent.get("description")) if isinstance(one, str) and one]
        if given:
            sent["description"] = "\n".join(given)
        return sent

    # -- values

    def _anything(self, place: str) -> Result:
        if self._subset.untyped:
            self._note(place, "", "provider")
            return {}, _SAME
        return self._text(place)

    def _text(self, place: str) -> Result:
        self._note(place, "", "provider_superset", _TEXT_DETAIL)
        return {"type": "string", "description": "JSON text of the value"}, JsonTextCodec()

    def _values(self, values: list[Any], schema: dict[str, Any], place: str, keyword: str) -> Result:
        self._checked(
            schema, place, *(name for name in schema if name in _OTHERS or name in sum(_OF_TYPE.values(), ()))
        )
        unique = list({identity(value): value for value in values}.values())
        most = self._subset.enum_values
        is_large = most is not None and len(unique) > most
        if not is_large:
            self._enumerations.add(len(unique))
        simple = all(value is None or isinstance(value, (str, bool, int, float)) for value in unique)
        if not simple or not (self._subset.enum_scalars or all(isinstance(value, str) for value in unique)):
            if is_large:
                return self._text(place)
            self._note(place, keyword, "provider", "sent as JSON texts in strings")
            return {"type": "string", "enum": [write_json(value) for value in unique]}, JsonTextCodec()
        if is_large:
            self._note(place, keyword, "provider_superset", f"{len(unique):,} values are more than the endpoint takes")
        else:
            self._note(place, keyword, "provider")
        groups: dict[str, list[Any]] = {}
        for value in unique:
            groups.setdefault(type_of(value), []).append(value)
        sent = [
            {"type": kind} if kind == "null" or is_large else {"type": kind, "enum": group}
            for kind, group in groups.items()
        ]
        if len(sent) > 1:
            return self._described(schema, {"anyOf": sent}), _SAME
        return self._described(schema, sent[0]), _SAME

    # -- references

    def _reference(self, reference: Any, place: str, opened: bool) -> Result:
        found = self._resolved(reference)
        if found is None:
            self._note(place, "$ref", "checked_locally")
            return self._text(place)
        if reference in self._open and not (self._subset.recursion and self._subset.references):
            self._note(place, "$ref", "provider_superset", f"recursion {_TEXT_DETAIL}")
            return self._text(place)
        if not self._subset.references:
            self._open.append(reference)
            try:
                return self._lower(found, place, opened)
            finally:
                self._open.pop()
        if (reference, opened) not in self._known:
            name = f"d{len(self._known)}"
            later = LaterCodec()
            self._known[reference, opened] = name, later
            self._open.append(reference)
            self._definitions[name] = {}
            sent, later.of = self._lower(found, reference[1:], opened)
            self._open.pop()
            self._definitions[name] = sent
        self._note(place, "$ref", "provider")
        name, later = self._known[reference, opened]
        sent = self._definitions[name]
        if not sent or reference in self._open or not _is_small(sent):
            return {"$ref": f"#/$defs/{name}"}, later
        return dict(sent), later

    def _resolved(self, reference: Any) -> Any:
        return target(self._root, reference) if isinstance(reference, str) else None

    # -- conjunctions

    def _merged(self, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Return an equivalent schema into which the schemas in `allOf` are merged; None if they cannot be merged.

        They can be merged, with the other keywords of the schema, if all assert only `type` (the same single type),
        `properties` and `required`. A single schema in `allOf` can be merged, too, if nothing else is asserted.
        """
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        parts: list[dict[str, Any]] = [rest] if any(name not in _NOTES for name in rest) else []
        for one in schema["allOf"]:
            seen = 0
            while isinstance(one, dict) and set(one) - _NOTES == {"$ref"} and seen < 50:
                one = self._resolved(one["$ref"])
                seen += 1
            if not isinstance(one, dict):
                return None
            parts.append(one)
        if len(parts) == 1:
            return {**{name: value for name, value in rest.items() if name in _NOTES}, **parts[0]}
        made: dict[str, Any] = {name: value for name, value in rest.items() if name in _NOTES}
        for part in parts:
            if set(part) - _NOTES - {"type", "properties", "required"} or not isinstance(part.get("type", ""), str):
                return None
            if "type" in part and made.setdefault("type", part["type"]) != part["type"]:
                return None
            for key, value in (part.get("properties") or {}).items():
                known = made.setdefault("properties", {})
                known[key] = {"allOf": [known[key], value]} if key in known else value
            if isinstance(part.get("required"), list):
                made["required"] = [*made.get("required", []), *part["required"]]
        return made

    # -- unions

    def _union(self, options: list[Result], place: str) -> Result:
        flat: list[Result] = []
        known: set[tuple[str, int]] = set()
        for sent, codec in options:
            if isinstance(codec, UnionCodec) and list(sent) == ["anyOf"]:
                flat += [(inner, part) for inner, (_, part) in zip(sent["anyOf"], codec.options, strict=True)]
            elif (key := (write_json(sent), id(codec))) not in known:
                known.add(key)
                flat.append((sent, codec))
        if len(flat) == 1:
            return flat[0]
        if any(not sent for sent, _ in flat):  # one option allows any value
            return {}, _SAME
        tests = [self._test(sent) for sent, _ in flat]
        checks = [InstanceCheck(sent, self._definitions) for sent, _ in flat]
        codecs = [codec for _, codec in flat]
        if all(codec.plain for codec in codecs) and not any(isinstance(codec, LaterCodec) for codec in codecs):
            return {"anyOf": [sent for sent, _ in flat]}, _SAME
        if self._distinct([sent for sent, _ in flat]):
            return {"anyOf": [sent for sent, _ in flat]}, UnionCodec(list(zip(tests, codecs, strict=True)), checks)
        self._note(place, "", "provider", 'an ambiguous union is sent as {"option_1": ...}')
        tagged = [self._closed({f"option_{at + 1}": sent}) for at, (sent, _) in enumerate(flat)]
        return {"anyOf": tagged}, TaggedCodec(list(zip(tests, codecs, strict=True)), checks)

    def _distinct(self, sent: list[dict[str, Any]]) -> bool:
        """Return whether types, keys or enumerations show that no value is an instance of two of the schemas.

        False for more than `MAX_COMPARED` schemas.
        """
        if len(sent) > MAX_COMPARED:
            return False
        whole = [whole_schema(one, self._definitions) for one in sent]
        return all(are_disjoint(one, other) for at, one in enumerate(whole) for other in whole[:at])

    def _test(self, sent: dict[str, Any]) -> Any:
        return StructureTest(sent, self._definitions)

    # -- objects and arrays

    def _closed(self, properties: dict[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
        sent["additionalProperties"] = False
        return sent

    def _object(self, schema: dict[str, Any], place: str, opened: bool) -> Result:
        self._note(place, "type", "provider")
        given = schema.get("properties")
        properties: dict[str, Any] = given if isinstance(given, dict) else {}
        required = (
            {key for key in schema.get("required", ()) if isinstance(key, str)}
            if isinstance(schema.get("required"), list)
            else set()
        )
        others = schema.get("additionalProperties", not properties)
        in_place = opened or any(name in schema for name in _OTHERS)
        is_open = others is not False or "patternProperties" in schema
        if "additionalProperties" not in schema:
            is_open = is_open or in_place or not required <= set(properties)
        inner: Any = others if others is not False else True
        if "patternProperties" in schema or in_place or "additionalProperties" not in schema:
            inner = True
        if "properties" in schema:
            self._note(place, "properties", "provider")
        if "required" in schema:
            extra = sorted(required - set(properties))
            self._note(
                place,
                "required",
                "provider_superset" if extra else "provider",
                f"not for {extra[0]!r}" if extra else "",
            )
        made: dict[str, Any] = {}
        codecs: dict[str, Codec] = {}
        must: list[str] = []
        for key, value in properties.items():
            if value is False and key not in required:
                continue
            at = pointer(place, "properties", key)
            sent, codec = self._lower(value, at)
            if key not in required and self._subset.all_required:
                sent, codec = self._optional(sent, codec, at)
                must.append(key)
            elif key in required:
                must.append(key)
            made[key], codecs[key] = sent, codec
        if not self._subset.closed:
            return self._open_object(schema, place, made, codecs, must, inner if is_open else False)
        extras: tuple[str, Codec] | None = None
        if is_open:
            name = "additional_properties"
            while name in properties:
                name += "_"
            value, codec = self._lower(inner, pointer(place, "additionalProperties"))
            pair = self._closed({"key": {"type": "string"}, "value": value})
            made[name], extras = {"type": "array", "items": pair}, (name, codec)
            must.append(name)
            self._note(place, "additionalProperties", "provider_superset", "sent as a list of keys and values")
        elif "additionalProperties" in schema:
            self._note(place, "additionalProperties", "provider")
        sent = {"type": "object", "properties": made, "required": must, "additionalProperties": False}
        return self._described(schema, sent), ObjectCodec(codecs, extras)

    def _open_object(
        self,
        schema: dict[str, Any],
        place: str,
        made: dict[str, Any],
        codecs: dict[str, Codec],
        must: list[str],
        inner: Any,
    ) -> Result:
        """Return the schema of an object for a provider that supports additional properties, and its codec.

        Args:
            schema: The original schema.
            place: Its JSON Pointer.
            made: The rewritten properties.
            codecs: Their codecs.
            must: The required keys.
            inner: The original schema of additional properties; False: there must be none.
        """
        sent: dict[str, Any] = {"type": "object", "properties": made, "required": must}
        if not made:
            del sent["properties"]
        if not must:
            del sent["required"]
        if inner is False:
            sent["additionalProperties"] = False
            self._note(place, "additionalProperties", "provider")
            return self._described(schema, sent), ObjectCodec(codecs)
        value, codec = self._lower(inner, pointer(place, "additionalProperties"))
        sent["additionalProperties"] = value or True
        self._note(place, "additionalProperties", "provider")
        return self._described(schema, sent), MapCodec(codecs, codec)

    def _optional(self, sent: dict[str, Any], codec: Codec, place: str) -> Result:
        sent, inner = self._nullable(sent, codec, place)
        return sent, OptionalCodec(inner)

    def _nullable(self, sent: dict[str, Any], codec: Codec, place: str) -> Result:
        """Return a schema that also allows null, for an absent property or item, and the codec of the other values.

        If `sent` allows null itself, its values are sent as `{"value": x}`.
        """
        self._note(place, "", "provider", "optional: null if absent")
        if self._test(sent)(None):
            inner = self._closed({"value": sent})
            return {"anyOf": [inner, {"type": "null"}]}, WrappedCodec(codec)
        options = sent["anyOf"] if list(sent) == ["anyOf"] else [sent]
        return {"anyOf": [*options, {"type": "null"}]}, codec

    def _array(self, schema: dict[str, Any], place: str) -> Result:
        self._note(place, "type", "provider")
        items, prefix = schema.get("items", True), schema.get("prefixItems")
        if isinstance(items, list):
            prefix, items = items, schema.get("additionalItems", True)
        prefix = prefix if isinstance(prefix, list) else []
        if not prefix:
            sent: dict[str, Any] = {"type": "array"}
            inner, codec = self._lower(items, pointer(place, "items"))
            if items is False:
                sent["maxItems"] = 0
                self._note(place, "items", "checked_locally")
                if "maxItems" not in self._subset.keywords:
                    del sent["maxItems"]
            sent["items"] = inner
            if not inner:
                del sent["items"]
            self._note(place, "items", "provider")
            self._assertions(schema, "array", sent, place)
            return self._described(schema, sent), ListCodec([], codec)
        made = [self._lower(one, pointer(place, "prefixItems", at)) for at, one in enumerate(prefix)]
        rest = None if items is False else self._lower(items, pointer(place, "items"))
        self._checked(schema, place, *_OF_TYPE["array"])
        if self._subset.tuples:
            sent = {
                "type": "array",
                "prefixItems": [one for one, _ in made],
                "items": rest is not None and rest[0],
            }
            if sent["items"] == {}:
                del sent["items"]
            self._note(place, "prefixItems", "provider")
            return self._described(schema, sent), ListCodec([codec for _, codec in made], rest and rest[1])
        properties: dict[str, Any] = {}
        codecs: list[Codec] = []
        for at, (one, codec) in enumerate(made):
            properties[f"item_{at + 1}"], item = self._nullable(one, codec, pointer(place, "prefixItems", at))
            codecs.append(item)
        if rest is not None:
            properties["rest"] = {"type": "array", "items": rest[0]}
        self._note(place, "prefixItems", "provider_superset", "sent as an object with item_1, item_2, ...")
        return self._described(schema, self._closed(properties)), TupleCodec(codecs, rest and rest[1])


_NOTES = {
    "title",
    "description",
    "$comment",
    "default",
    "examples",
    "$schema",
    "$id",
    "id",
    "$defs",
    "definitions",
    "x-order",
}
"""Keywords that assert nothing about a value."""


def _opens(schema: Mapping[str, Any], keyword: str) -> bool:
    """Return whether other keywords of a schema may allow keys that the schemas in `keyword` do not list."""
    return any(name in schema and schema[name] is not False for name in _OF_KEYS if name != keyword)


def _is_bare(option: dict[str, Any]) -> bool:
    return not any(name in option for name in ("type", "const", "enum", "$ref", "anyOf", "oneOf", "allOf"))


def _is_small(sent: dict[str, Any]) -> bool:
    return set(sent) <= {"type", "enum", "description"} and len(json.dumps(sent)) < 200
