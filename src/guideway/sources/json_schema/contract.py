"""What became of every keyword that was reached, as data."""

from __future__ import annotations

from .expand import Expander
from .keywords import ALL_TYPES, check_keyword, pointer
from .scalars import is_asserted
from .style import Style

__all__ = ["contract"]


def contract(expander: Expander, style: Style) -> list[tuple[str, str, str]]:
    """Every keyword that was reached: its schema's JSON Pointer, its name, and its status ("enforced", "refused",
    "annotation" or "no effect").
    """
    found: dict[tuple[str, str], str] = {}
    for place in expander.places[1:]:
        schema = place.schema
        if not isinstance(schema, dict):
            continue
        dialect = place.resource.dialect
        named = schema.get("type", sorted(ALL_TYPES))
        types = frozenset(named if isinstance(named, list) else [named])
        types |= {"number"} if "integer" in types else frozenset()
        for name, value in schema.items():
            row = None
            if not (dialect.ref_alone and "$ref" in schema) or name == "$ref":
                row = check_keyword(name, value, place.pointer, dialect)
            status = "annotation" if row is None else "enforced" if row.types & types else "no effect"
            if name == "format" and row is not None and not is_asserted(value, style):
                status = "annotation"
            if row is not None and pointer(place.pointer, name) in expander.refusals:
                status = "refused"
            found.setdefault((place.pointer, name), status)
    for where, name in expander.contract:
        found.setdefault((where, name), "refused" if pointer(where, name) in expander.refusals else "enforced")
    return [(where, name, status) for (where, name), status in found.items()]
