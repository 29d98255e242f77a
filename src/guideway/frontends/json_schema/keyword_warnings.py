"""Finds keywords of a schema that probably do not do what its author expects.

These are misspelt keywords, unknown names of formats, keywords of other drafts, and keywords next to a `$ref` that
disables them. While a schema is lowered, the names of its members are only compared with `Dialect.plain`. Schemas with
another name, or with members next to a `$ref`, are recorded and are checked here afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from guideway.caching import cached
from guideway.frontends.json_schema.keywords import DIALECTS, KEYWORDS, NOTES, Dialect
from guideway.frontends.json_schema.strings import SPECIFIED_FORMATS, is_asserted
from guideway.frontends.json_schema.style import Style
from guideway.grammar.nodes import Origin, pointer_of
from guideway.jsontext.pointer import pointer, shown

__all__ = ["MAX_SHOWN", "KeywordFinding", "UnknownKeywords", "findings", "in_one_text", "similar_keyword"]

UnknownKeywords = Literal["warn", "error", "ignore"]

MAX_SHOWN = 8
"""The maximum number of findings that a message lists."""

_MOST_CHARACTERS = 60  # the maximum length of a name in a message; longer names are cut

ANNOTATION_FORMATS = frozenset(
    name
    for line in (
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float double decimal decimal128 double-int",
        "password path file-path directory-path binary byte base64url char commonmark html json json-string",
        "http-date media-range sf-binary sf-boolean sf-decimal sf-integer sf-string sf-token",
    )
    for name in line.split()
)
"""Formats of OpenAPI and Pydantic that describe a value and assert nothing."""

ANNOTATION_NAMES = frozenset(
    {
        *("nullable", "discriminator", "xml", "externalDocs", "example", "readonly", "writeonly", "enumNames"),
        *("defaultSnippets", "markdownDescription", "deprecationMessage", "errorMessage", "optional", "options"),
        *("comment", "comments", "note", "notes", "form", "$default"),
    }
)
"""Names that OpenAPI, editors and form generators use as annotations. They are not keywords of JSON Schema."""

_FORMAT_NAMES = {
    "datetime": "date-time",
    "timestamp": "date-time",
    "iso8601": "date-time",
    "url": "uri",
    "link": "uri",
    "guid": "uuid",
    "ip": "ipv4",
    "ip-address": "ipv4",
    "host-name": "hostname",
    "mail": "email",
    "regexp": "regex",
}
_SIMILAR = 0.8
"""The minimum similarity of a suggestion, as `difflib` counts it."""


class KeywordFinding(NamedTuple):
    """A keyword that probably does not do what its author expects.

    Attributes:
        place: The JSON Pointer of the keyword.
        problem: The description, as part of a message.
    """

    place: str
    problem: str


def _letters(name: str) -> int:
    """Return the set of the characters of a name, a bit for each; characters may share a bit."""
    found = 0
    for character in name:
        found |= 1 << (ord(character) & 63)
    return found


class _Known(NamedTuple):
    """A name that can be suggested: in lower case, the set of its letters (`_letters`), and as it is suggested."""

    lower: str
    letters: int
    name: str


def _known(names: Iterable[str]) -> tuple[_Known, ...]:
    return tuple(_Known(lower, _letters(lower), name) for lower, name in {one.lower(): one for one in names}.items())


# "$schema" is left out, because the name "schema" is probably not a misspelling of it
_KNOWN_KEYWORDS = _known(sorted((NOTES | KEYWORDS.keys()) - {"$schema"}))
_KNOWN_FORMATS = _known(sorted(SPECIFIED_FORMATS))


def _nearest(name: str, known: tuple[_Known, ...]) -> str | None:
    """Return the known name that is most similar to a name; None: the similarity of all is below `_SIMILAR`.

    The similarity is twice the number of matching characters, divided by the lengths of both names. A character that
    only one of them has does not match, so most names are excluded before `difflib` compares them.
    """
    lower = name.lower()
    length, letters = len(lower), _letters(lower)
    near = {}
    for one in known:
        least = _SIMILAR / 2 * (length + len(one.lower))
        if (
            length - (letters & ~one.letters).bit_count() >= least
            and len(one.lower) - (one.letters & ~letters).bit_count() >= least
        ):
            near[one.lower] = one.name
    found = get_close_matches(lower, near, 1, _SIMILAR) if near else ()
    return near[found[0]] if found else None


@cached(4096, characters=1 << 20, size=len)
def similar_keyword(name: str) -> str | None:
    """Return the keyword that an unknown name resembles; None: it resembles none.

    None also for names that are annotations: those in `ANNOTATION_NAMES`, and those that begin with "x-", "_" or "@".
    """
    if name in ANNOTATION_NAMES or name.startswith(("x-", "_", "@")):
        return None
    return _nearest(name, _KNOWN_KEYWORDS)


def findings(
    unusual: Iterable[tuple[dict[str, Any], Origin, Dialect]], style: Style, every_name: bool
) -> Iterator[KeywordFinding]:
    """Check schemas, and yield a finding for each keyword that probably does not do what its author expects.

    Args:
        unusual: The schemas, each with its location (`Origin`) and its dialect.
        style: The style in which they are lowered. It decides which formats are enforced.
        every_name: Whether to report also unknown names that resemble no keyword, except those in `ANNOTATION_NAMES`
            and those that begin with "x-".
    """
    seen: set[int] = set()
    for schema, place, dialect in unusual:
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        disabled = dialect.ref_alone and "$ref" in schema
        for name in schema if disabled else [name for name in schema if name not in dialect.plain]:
            value, problem = schema[name], None
            if disabled:
                if name in KEYWORDS and name != "$ref":
                    problem = f"{name!r} has no effect next to $ref in {dialect.name}"
            elif name in dialect.unknown:
                problem = _of_other_drafts(name, dialect)
            elif name == "format":
                problem = _format(value, style) if isinstance(value, str) else None
            else:
                problem = _unknown(name, every_name)
            if problem is not None:
                yield KeywordFinding(pointer(pointer_of(place) or "", name), problem)


def _of_other_drafts(name: str, dialect: Dialect) -> str:
    drafts = [one.name for one in dict.fromkeys(DIALECTS.values()) if name not in one.unknown]
    hint = f'; it is a keyword of {", ".join(reversed(drafts))}, see "$schema"' if drafts else ""
    return f"{name!r} is not a keyword of {dialect.name} and has no effect{hint}"


def _format(name: str, style: Style) -> str | None:
    if style.formats != "known" or name in ANNOTATION_FORMATS or is_asserted(name, style):
        return None
    near = (_FORMAT_NAMES.get(name.lower()), _nearest(name, _KNOWN_FORMATS))
    hint = next((f", did you mean {one!r}?" for one in near if one is not None and is_asserted(one, style)), "")
    return f"the format {_short(name)} is not known and has no effect{hint}"


def _unknown(name: str, every_name: bool) -> str | None:
    near = similar_keyword(name)
    if near is not None:
        return f"unknown keyword {_short(name)}, did you mean {near!r}?"
    if every_name and name not in ANNOTATION_NAMES and not name.startswith("x-"):
        return f"unknown keyword {_short(name)}"
    return None


def _short(name: str) -> str:
    return repr(name if len(name) <= _MOST_CHARACTERS else name[:_MOST_CHARACTERS] + "…")


def in_one_text(found: list[KeywordFinding]) -> str:
    """Return the text of a warning or an error for findings. At most `MAX_SHOWN` findings are listed."""
    lines = [f"at {shown(one.place)}: {one.problem}" for one in found[:MAX_SHOWN]]
    if len(found) > MAX_SHOWN:
        lines.append(f"and {len(found) - MAX_SHOWN:,} more")
    return lines[0] if len(lines) == 1 else f"{len(found)} keywords:\n  " + "\n  ".join(lines)
