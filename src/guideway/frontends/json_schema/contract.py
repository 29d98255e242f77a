"""Reports how every reachable keyword is treated, as data."""

from __future__ import annotations

from difflib import get_close_matches

from guideway.caching import cached
from guideway.frontends.json_schema.dnf import Expander
from guideway.frontends.json_schema.keywords import ALL_TYPES, KEYWORDS, NOTES, Dialect, check_keyword
from guideway.frontends.json_schema.strings import is_asserted
from guideway.frontends.json_schema.style import Style
from guideway.jsontext.pointer import pointer

__all__ = ["contract"]


def contract(expander: Expander, style: Style) -> list[tuple[str, str, str]]:
    """Report every reachable keyword.

    Returns:
        Rows of the JSON Pointer of the schema, the name of the keyword, and its status. The status is "enforced",
        "refused", "no effect" or "annotation", optionally with a note.
    """
    found: dict[tuple[str, str], str] = {}
    for place in expander.places[1:]:
        schema = place.schema
        if not isinstance(schema, dict):
            continue
        dialect = place.resource.dialect
        named = schema.get("type", sorted(ALL_TYPES))
        names = named if isinstance(named, list) else [named]
        types = frozenset(name for name in names if isinstance(name, str))  # an invalid `type` gives no names
        types |= {"number"} if "integer" in types else frozenset()
        for name, value in schema.items():
            row = None
            if not (dialect.ref_alone and "$ref" in schema) or name == "$ref":
                row = check_keyword(name, value, place.pointer, dialect)
            status = _note(name, dialect) if row is None else "enforced" if row.types & types else "no effect"
            if name == "format" and row is not None and not is_asserted(value, style):
                status = "annotation"
            if row is not None and pointer(place.pointer, name) in expander.refusals:
                status = "refused"
            found.setdefault((place.pointer, name), status)
    for where, name in expander.contract:
        found.setdefault((where, name), "refused" if pointer(where, name) in expander.refusals else "enforced")
    return [(where, name, status) for (where, name), status in found.items()]


@cached(4096, characters=1 << 20, size=lambda name, _: len(name))
def _note(name: str, dialect: Dialect) -> str:
    """The status of a name that asserts nothing, with a note if the name resembles a keyword."""
    if name in dialect.unknown:
        return f"annotation: no keyword of {dialect.name}"
    if name in NOTES or name in KEYWORDS:
        return "annotation"
    known = {one.lower(): one for one in sorted(NOTES | KEYWORDS.keys())}
    near = get_close_matches(name.lower(), known, 1, 0.8)
    return f"annotation: unknown keyword, did you mean {known[near[0]]!r}?" if near else "annotation: unknown keyword"
