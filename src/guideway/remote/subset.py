"""`SchemaSubset`: the part of JSON Schema that a provider takes. `Note`: what happens to one keyword."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Note", "SchemaSubset"]


@dataclass(frozen=True)
class SchemaSubset:
    """The JSON Schema subset of a provider. A bool is true if the sentence that describes it is true.

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
        min_items: The largest value of `minItems` that is enforced; None: every value is.
        enum_scalars: Enumerations may have scalars of every type; otherwise only strings.
        enum_values: The largest number of values of an enumeration that is sent. A larger one is sent as its types, or
            as a string that contains JSON text. None: no limit. `lowered_within` sets it, so that all enumerations
            together fit the provider's limits.
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
        holder: Who enforces the keyword: "provider"; "provider_superset" (the provider allows more, Guideway checks the
            answer); "provider_subset" (the provider excludes values that are allowed); "checked_locally" (only
            Guideway); "prompt_only" (the prompt states it, and Guideway checks the answer).
        detail: Further information, such as how the keyword was rewritten; "" if there is none.
    """

    place: str
    keyword: str
    holder: str
    detail: str = ""
