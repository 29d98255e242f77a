"""`SchemaSubset`: the part of JSON Schema that a provider takes. `Note`: what happens to one keyword."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Note", "SchemaSubset"]


@dataclass(frozen=True)
class SchemaSubset:
    """The JSON Schema subset of a provider.

    Attributes:
        keywords: The assertions that are enforced, such as "pattern".
        formats: The values of `format` that are enforced.
        closed: Objects must have `additionalProperties: false`.
        all_required: Every property must be required.
        root_object: The root must be an object, without `anyOf`.
        recursion: `$ref` may be recursive.
        references: `$ref` and `$defs` are supported.
        untyped: A schema may have no type.
        tuples: `prefixItems` is supported.
        min_items: The largest `minItems`; None: any.
        enum_scalars: Enumerations may have scalars of every type; otherwise only strings.
        enum_values: The largest number of values of an enumeration; a larger one is sent as its types. None: any.
    """

    keywords: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    closed: bool = True
    all_required: bool = True
    root_object: bool = True
    recursion: bool = True
    references: bool = True
    untyped: bool = False
    tuples: bool = False
    min_items: int | None = None
    enum_scalars: bool = True
    enum_values: int | None = None


@dataclass(frozen=True)
class Note:
    """What happens to one keyword of the schema.

    Attributes:
        place: JSON Pointer of the subschema.
        keyword: The keyword, or "" for the whole subschema.
        holder: "provider", "provider_superset" (the provider allows more; checked here), "provider_subset" (allowed
            values cannot come), "checked_locally" or "prompt_only".
        detail: The rewriting, or a value that cannot come.
    """

    place: str
    keyword: str
    holder: str
    detail: str = ""
