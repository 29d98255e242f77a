"""Structural tags of xgrammar, vLLM and SGLang as constraints: free text with structure between markers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from guideway.constraints import Gbnf, JsonSchema, Lark, Regex, Tag, Tags
from guideway.constraints.base import Constraint, Literal
from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError

__all__ = ["structural_tag"]

DEPTH = 32
"""The maximum nesting depth of formats."""

_ANY = r"(?s:.*)"


def structural_tag(spec: object) -> Constraint[Any]:
    """Return the constraint of a structural tag: `{"format": …}`, or the older `{"structures": […], "triggers": […]}`.

    Raises:
        InvalidConstraintError: The tag is malformed. The error has the place (a JSON Pointer).
        UnsupportedError: The tag has formats of tokens, or of notations other than JSON.
        LimitExceededError: Formats are nested deeper than `DEPTH`.
        ConstraintError: As the constraints of the contents do.
    """
    if isinstance(spec, dict) and "structures" in spec:
        tags = [
            {"begin": one.get("begin"), "content": {"type": "json_schema", "json_schema": one.get("schema")}, **one}
            for one in _list(spec, "structures", "")
            if isinstance(one, dict)
        ]
        return _triggered({"tags": tags, "triggers": spec.get("triggers")}, "", 0)
    if not isinstance(spec, dict) or "format" not in spec:
        raise InvalidConstraintError("a structural tag must have 'format', or 'structures' and 'triggers'", "")
    return _format(spec["format"], "/format", 0)


def _format(spec: Any, place: str, depth: int) -> Constraint[Any]:
    if depth > DEPTH:
        raise LimitExceededError(f"formats are nested more than {DEPTH} deep", place)
    kind = spec.get("type") if isinstance(spec, dict) else None
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise UnsupportedError(
            f"the format {kind!r} is not supported; supported formats: {', '.join(sorted(_KINDS))}", place
        )
    return read(spec, place, depth)


def _json(spec: Any, place: str, depth: int) -> Constraint[Any]:
    if spec.get("style", "json") != "json" or spec.get("excludes"):
        raise UnsupportedError("only style 'json' of json_schema is supported", place)
    schema = spec.get("json_schema")
    if not isinstance(schema, (dict, bool)):
        raise InvalidConstraintError("json_schema must be a schema (an object or a boolean)", f"{place}/json_schema")
    return JsonSchema(schema)


def _free(spec: Any, place: str, depth: int) -> Constraint[Any]:
    if spec.get("max_tokens") is not None:
        raise UnsupportedError("max_tokens of any_text is not supported", place)
    found = _list(spec, "excludes", place) if "excludes" in spec else []
    most = spec.get("max_chars")
    if most is not None and (type(most) is not int or most < 0):
        raise InvalidConstraintError("max_chars must be an integer >= 0", f"{place}/max_chars")
    text: Constraint[Any] = Regex(_ANY if most is None else f"(?s:.{{0,{most}}})")
    for one in found:
        text = text & ~Regex(f"{_ANY}{re.escape(str(one))}{_ANY}")
    return text


def _grammar(spec: Any, place: str, depth: int) -> Constraint[Any]:
    text = _text(spec, "grammar", place)
    return Gbnf(text) if "::=" in text else Lark(text)


def _sequence(spec: Any, place: str, depth: int) -> Constraint[Any]:
    made: Constraint[Any] = Literal("")
    for index, one in enumerate(_list(spec, "elements", place)):
        made = made + _format(one, f"{place}/elements/{index}", depth + 1)
    return made


def _either(spec: Any, place: str, depth: int) -> Constraint[Any]:
    parts = [_format(one, f"{place}/elements/{i}", depth + 1) for i, one in enumerate(_list(spec, "elements", place))]
    if not parts:
        raise InvalidConstraintError("elements must have at least one element", f"{place}/elements")
    made = parts[0]
    for one in parts[1:]:
        made = made | one
    return made


def _one_tag(spec: Any, place: str, depth: int) -> list[Tag]:
    """Return one tag for each of its ends."""
    if not isinstance(spec, dict):
        raise InvalidConstraintError("a tag must have 'begin', 'content' and 'end'", place)
    ends = spec.get("end")
    content = spec.get("content")
    free = isinstance(content, dict) and content.get("type") == "any_text" and not content.get("excludes")
    tags = []
    for end in ends if isinstance(ends, list) else [ends]:
        if not isinstance(end, str):
            raise UnsupportedError("token ids as markers are not supported; use strings", f"{place}/end")
        inside = {**content, "excludes": [end]} if isinstance(content, dict) and free and end else content
        tags.append(Tag(_text(spec, "begin", place), _format(inside, f"{place}/content", depth + 1), end))
    return tags


def _tag(spec: Any, place: str, depth: int) -> Constraint[Any]:
    return Tags(_one_tag(spec, place, depth), least=1, most=1, separator="")


def _tags(spec: Any, place: str, depth: int) -> list[Tag]:
    return [
        tag
        for index, one in enumerate(_list(spec, "tags", place))
        for tag in _one_tag(one, f"{place}/tags/{index}", depth + 1)
    ]


def _triggered(spec: Any, place: str, depth: int) -> Constraint[Any]:
    triggers = [str(one) for one in _list(spec, "triggers", place)]
    least, most = int(bool(spec.get("at_least_one"))), 1 if spec.get("stop_after_first") else None
    return Tags(_tags(spec, place, depth), triggers=triggers, least=least, most=most)


def _separated(spec: Any, place: str, depth: int) -> Constraint[Any]:
    least, most = int(bool(spec.get("at_least_one"))), 1 if spec.get("stop_after_first") else None
    return Tags(_tags(spec, place, depth), least=least, most=most, separator=_text(spec, "separator", place))


def _list(spec: Any, name: str, place: str) -> list[Any]:
    found = spec.get(name)
    if not isinstance(found, list):
        raise InvalidConstraintError(f"{name} must be a list", f"{place}/{name}")
    return found


def _text(spec: Any, name: str, place: str) -> str:
    found = spec.get(name)
    if not isinstance(found, str):
        raise InvalidConstraintError(f"{name} must be a string", f"{place}/{name}")
    return found


_KINDS: dict[str, Callable[[Any, str, int], Constraint[Any]]] = {
    "any_text": _free,
    "const_string": lambda spec, place, depth: Literal(_text(spec, "value", place)),
    "grammar": _grammar,
    "json_schema": _json,
    "or": _either,
    "regex": lambda spec, place, depth: Regex(_text(spec, "pattern", place)),
    "sequence": _sequence,
    "tag": _tag,
    "tags_with_separator": _separated,
    "triggered_tags": _triggered,
}
