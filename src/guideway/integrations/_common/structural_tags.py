"""Converts structural tags of xgrammar, vLLM and SGLang to constraints. A structural tag consists of nested formats.

Every format is an object with a "type", which can be omitted in lists of tags and in a begin or end that is a token.
`_FORMATS` lists the fields of each type. A field that is not listed is an error, and so is a field with a wrong type.
Formats in `_UNSUPPORTED` are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from guideway.arguments import short_list, short_repr
from guideway.constraints import Gbnf, JsonSchema, Lark, Regex, SpecialToken
from guideway.constraints.base import Constraint, Literal, either_of, one_after_the_other
from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError

__all__ = ["DEPTH", "structural_tag"]

DEPTH = 32
"""The maximum nesting depth of formats."""

MAX_COUNT = 2**31 - 1
"""The largest number of repetitions that a format may have."""

_ANY = "(?s:.*)"
_REQUIRED = object()


_OUTER = ("type", "format", "structures", "triggers")


def structural_tag(spec: object) -> Constraint[Any]:
    """Return the constraint of a structural tag: `{"format": …}`, or the older `{"structures": […], "triggers": […]}`.

    Raises:
        InvalidConstraintError: The tag is malformed or has an unknown field. The error has the place (a JSON Pointer).
        UnsupportedError: The tag has a format or a field that cannot be enforced exactly.
        LimitExceededError: Formats are nested deeper than `DEPTH`.
        ConstraintError: The constraint on a content is not valid.
    """
    if not isinstance(spec, dict):
        _refuse(f"a structural tag must be an object, got {type(spec).__name__}", "")
    if spec.get("type", "structural_tag") != "structural_tag":
        _refuse(f'the type of a structural tag must be "structural_tag", got {short_repr(spec["type"])}', "/type")
    if unknown := [name for name in spec if name not in _OUTER]:
        _refuse(f"unknown field {short_repr(unknown[0])}; known fields: {', '.join(_OUTER)}", "")
    given = {name: value for name, value in spec.items() if value is not None and name != "type"}
    if given.keys() == {"format"}:
        return _format(given["format"], _Place("/format"))
    if given.keys() == {"structures", "triggers"}:
        return _older(given)
    raise InvalidConstraintError(
        'a structural tag must have the field "format", or the fields "structures" and "triggers", '
        f"got {', '.join(map(repr, given)) or 'none of them'}",
        "",
    )


def _older(spec: dict[str, Any]) -> Constraint[Any]:
    """Return the constraint of the older form, by converting it to one format "triggered_tags"."""
    tags = []
    for index, one in enumerate(_list(spec["structures"], _Place("/structures"))):
        at = _Place(f"/structures/{index}")
        fields = _fields(one, {"begin": (_text, _REQUIRED), "schema": (_schema, _REQUIRED), "end": (_text, "")}, at)
        content = {"type": "json_schema", "json_schema": fields["schema"]}
        tags.append({"begin": fields["begin"], "content": content, "end": fields["end"]})
    made = {"triggers": _texts(spec["triggers"], _Place("/triggers")), "tags": tags}
    return _format({"type": "triggered_tags", **made}, _Place(""))


@dataclass(frozen=True)
class _Place:
    """The place of a value in a structural tag.

    Attributes:
        pointer: Its JSON Pointer.
        depth: Its nesting depth.
        ends: The end texts of the nearest tag around it, which free text in the tag must not contain.
    """

    pointer: str
    depth: int = 0
    ends: tuple[str, ...] = ()

    def at(self, *steps: object) -> _Place:
        return _Place("/".join((self.pointer, *map(str, steps))), self.depth + 1, self.ends)

    def within(self, ends: Iterable[str]) -> _Place:
        return _Place(self.pointer, self.depth, tuple(end for end in ends if end))


def _refuse(message: str, place: str) -> NoReturn:
    raise InvalidConstraintError(message, place)


# Checks of the types of fields. Each function returns the value, or raises an error.


def _text(value: Any, at: _Place) -> str:
    if not isinstance(value, str):
        _refuse(f"expected a string, got {short_repr(value, 50)}", at.pointer)
    return value


def _list(value: Any, at: _Place) -> list[Any]:
    if not isinstance(value, list):
        _refuse(f"expected a list, got {short_repr(value, 50)}", at.pointer)
    return value


def _some(value: Any, at: _Place) -> list[Any]:
    if not _list(value, at):
        _refuse("the list must not be empty", at.pointer)
    return value  # type: ignore[no-any-return]  # `_list` checked it


def _texts(value: Any, at: _Place) -> list[str]:
    for index, one in enumerate(_list(value, at)):
        if not _text(one, at.at(index)):
            _refuse("the string must not be empty", at.at(index).pointer)
    return value  # type: ignore[no-any-return]  # `_list` and `_text` checked it


def _flag(value: Any, at: _Place) -> bool:
    if not isinstance(value, bool):
        _refuse(f"expected true or false, got {short_repr(value, 50)}", at.pointer)
    return value


def _count(value: Any, at: _Place) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value <= MAX_COUNT):
        _refuse(f"expected null or an integer from 0 to {MAX_COUNT:,}, got {short_repr(value, 50)}", at.pointer)
    return value


def _least(value: Any, at: _Place) -> int:
    if _count(value, at) is None:
        _refuse(f"expected an integer from 0 to {MAX_COUNT:,}, got null", at.pointer)
    return int(value)


def _most(value: Any, at: _Place) -> int | None:
    return None if type(value) is int and value == -1 else _least(value, at)


def _schema(value: Any, at: _Place) -> Any:
    if not isinstance(value, (dict, bool)):
        _refuse(f"expected a JSON Schema (an object, true or false), got {short_repr(value, 50)}", at.pointer)
    return value


def _any(value: Any, at: _Place) -> Any:
    return value


def _only(*values: object) -> Callable[[Any, _Place], Any]:
    """Return a check of a field for which only these values are supported."""

    def check(value: Any, at: _Place) -> Any:
        if not any(type(value) is type(one) and value == one for one in values):
            wanted = " or ".join(map(repr, values))
            raise UnsupportedError(f"the value {short_repr(value, 50)} is not supported; only {wanted} is", at.pointer)
        return value

    return check


Fields = dict[str, tuple[Callable[[Any, _Place], Any], Any]]


def _fields(spec: Any, known: Fields, at: _Place) -> dict[str, Any]:
    """Return the checked fields of an object, with defaults. Unknown, missing and mistyped fields raise an error."""
    if not isinstance(spec, dict):
        _refuse(f"expected an object, got {short_repr(spec, 50)}", at.pointer)
    unknown = [name for name in spec if name not in known]
    if unknown:
        _refuse(f"unknown field {short_repr(unknown[0])}; known fields: {', '.join(known)}", at.pointer)
    made = {}
    for name, (check, default) in known.items():
        if name not in spec and default is _REQUIRED:
            _refuse(f"the field {name!r} is missing", at.pointer)
        made[name] = check(spec[name], at.at(name)) if name in spec else default
    return made


# Formats. Each function in `_FORMATS` gets the checked fields and the place of a format, and returns its constraint.


def _format(spec: Any, at: _Place) -> Constraint[Any]:
    if at.depth > DEPTH:
        raise LimitExceededError(f"formats are nested more than {DEPTH} deep", at.pointer)
    if not isinstance(spec, dict):
        _refuse(f"expected a format (an object), got {short_repr(spec, 50)}", at.pointer)
    kind = spec.get("type")
    if isinstance(kind, str) and kind in _UNSUPPORTED:
        raise UnsupportedError(f"the format {kind!r} is not supported: {_UNSUPPORTED[kind]}", at.pointer)
    if not isinstance(kind, str) or kind not in _FORMATS:
        _refuse(f"the type of a format must be one of {', '.join(_FORMATS)}; got {short_repr(kind)}", at.pointer)
    known, make = _FORMATS[kind]
    return make(_fields(spec, {"type": (_any, kind), **known}, at), at)


def _without(texts: Iterable[str]) -> Constraint[str]:
    """Return the constraint on texts that contain none of the given texts."""
    found = "|".join(map(re.escape, dict.fromkeys(texts)))
    return ~Regex(f"{_ANY}(?:{found}){_ANY}") if found else Regex(_ANY)


def _up_to(marker: str, triggers: Iterable[str], excludes: Iterable[str]) -> Constraint[str]:
    """Return the constraint on texts that end with the trigger `marker`.

    No trigger ends earlier in such a text, and none of the texts `excludes` occurs in it.
    """
    found = "|".join(map(re.escape, triggers))
    return Regex(f"{_ANY}{re.escape(marker)}") & ~Regex(f"{_ANY}(?:{found})(?s:.+)") & _without(excludes)


def _any_text(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    text = _without((*spec["excludes"], *at.ends))
    return text if spec["max_chars"] is None else Regex(f"(?s:.{{0,{spec['max_chars']}}})") & text


def _grammar(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    text = spec["grammar"]
    return Gbnf(text) if "::=" in text else Lark(text)


def _elements(spec: dict[str, Any], at: _Place) -> tuple[Constraint[Any], ...]:
    return tuple(_format(one, at.at("elements", index)) for index, one in enumerate(spec["elements"]))


def _repeat(least: int, most: int | None) -> Callable[[dict[str, Any], _Place], Constraint[Any]]:
    return lambda spec, at: _format(spec["content"], at.at("content")).repeat(least, most)


def _between(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    least, most = spec["min"], spec["max"]
    if most is not None and least > most:
        _refuse(f"min must be at most max, got {least} and {most}", at.pointer)
    return _format(spec["content"], at.at("content")).repeat(least, most)


def _token(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    token = spec["token"]
    if type(token) is int and token >= 0:
        return Gbnf(f"root ::= <[{token}]>")
    if not isinstance(token, str) or not token:
        _refuse(f"expected the id or the name of a token, got {short_repr(token, 50)}", at.at("token").pointer)
    return SpecialToken(token)


def _marker(value: Any, at: _Place) -> Constraint[Any]:
    """Return the constraint on the begin or the end of a tag, which is a text or a special token."""
    if isinstance(value, dict):
        if value.get("type", "token") != "token":
            _refuse(f'expected a string or a format of type "token", got {short_repr(value, 50)}', at.pointer)
        return _format({"type": "token", **value}, at)
    return Literal(_text(value, at))


@dataclass(frozen=True)
class _Tag:
    """A tag: the field "begin" as it is given, and one constraint on the content with the end after it."""

    begin: Any
    rest: Constraint[Any]
    at: _Place

    def whole(self) -> Constraint[Any]:
        return one_after_the_other((_marker(self.begin, self.at.at("begin")), self.rest))


def _one_tag(spec: dict[str, Any], at: _Place) -> _Tag:
    end = spec["end"]
    if isinstance(end, list):
        ends = [_text(one, at.at("end", index)) for index, one in enumerate(_some(end, at.at("end")))]
        closed = either_of(tuple(map(Literal, dict.fromkeys(ends))))
    else:
        ends = [end] if isinstance(end, str) else []
        closed = _marker(end, at.at("end"))
    content = _format(spec["content"], at.at("content").within(ends))
    return _Tag(spec["begin"], one_after_the_other((content, closed)), at)


def _tags(spec: dict[str, Any], at: _Place) -> list[_Tag]:
    made = []
    for index, one in enumerate(spec["tags"]):
        here = at.at("tags", index)
        known: Fields = {"type": (_only("tag"), "tag"), **_FORMATS["tag"][0]}
        made.append(_one_tag(_fields(one, known, here), here))
    return made


def _separated(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    one = either_of(tuple(tag.whole() for tag in _tags(spec, at)))
    most = 1 if spec["stop_after_first"] else None
    return one.repeat(int(spec["at_least_one"]), most, separator=spec["separator"])


def _triggered(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    tags = _tags(spec, at)
    branches: dict[str, list[Constraint[Any]]] = {trigger: [] for trigger in spec["triggers"]}
    for tag in tags:
        begin = tag.begin
        if not isinstance(begin, str):
            _refuse("a tag in triggered_tags must begin with a string", tag.at.at("begin").pointer)
        found = [trigger for trigger in spec["triggers"] if begin.startswith(trigger)]
        if len(found) != 1:
            _refuse(
                f"exactly one trigger must be a prefix of {short_repr(begin)}, got {short_list(map(repr, found)) or 'none'}",
                tag.at.at("begin").pointer,
            )
        branches[found[0]].append(one_after_the_other((Literal(begin[len(found[0]) :]), tag.rest)))
    for index, trigger in enumerate(spec["triggers"]):
        if not branches[trigger]:
            _refuse(f"no tag begins with the trigger {short_repr(trigger)}", at.at("triggers", index).pointer)
    excludes = (*spec["excludes"], *at.ends)
    first = either_of(tuple(tag.whole() for tag in tags))
    if spec["at_least_one"] and spec["stop_after_first"]:
        return first
    free = _dispatched(branches, excludes, not spec["stop_after_first"], at.at("triggers"))
    return one_after_the_other((first, free)) if spec["at_least_one"] else free


def _dispatch(spec: dict[str, Any], at: _Place) -> Constraint[Any]:
    branches: dict[str, list[Constraint[Any]]] = {}
    for index, rule in enumerate(spec["rules"]):
        here = at.at("rules", index)
        if not isinstance(rule, list) or len(rule) != 2:
            _refuse(f"expected a pair of a string and a format, got {short_repr(rule, 50)}", here.pointer)
        if not _text(rule[0], here.at(0)):
            _refuse("the string must not be empty", here.at(0).pointer)
        branches.setdefault(rule[0], []).append(_format(rule[1], here.at(1)))
    return _dispatched(branches, spec["excludes"], spec["loop"], at.at("rules"))


def _dispatched(
    branches: dict[str, list[Constraint[Any]]], excludes: Iterable[str], loop: bool, at: _Place
) -> Constraint[Any]:
    """Return the constraint on free text with triggers, each followed by a text that fits one constraint of a list.

    `branches`: for each trigger, this list. `excludes`: texts that the free text must not contain. `loop`: whether free
    text with further triggers can follow such a constrained text; False: the constrained text is the end.
    """
    out = tuple(excludes)
    for trigger in branches:
        for other in branches:
            if trigger != other and trigger in other:
                _refuse(
                    f"{short_repr(trigger)} is contained in {short_repr(other)}, which therefore never matches",
                    at.pointer,
                )
        for one in out:
            if one in trigger:
                _refuse(
                    f"{short_repr(trigger)} contains the excluded text {short_repr(one)}, and therefore never matches",
                    at.pointer,
                )
    parts = tuple(
        one_after_the_other((_up_to(trigger, branches, out), either_of(tuple(options))))
        for trigger, options in branches.items()
    )
    tail = _without((*branches, *out))
    return one_after_the_other((either_of(parts).repeat(), tail)) if loop else either_of((*parts, tail))


_CONTENT: Fields = {"content": (_any, _REQUIRED)}
_ELEMENTS: Fields = {"elements": (_some, _REQUIRED)}
_FLAGS: Fields = {"at_least_one": (_flag, False), "stop_after_first": (_flag, False)}
_TAGS: Fields = {"tags": (_some, _REQUIRED)}
_EXCLUDES: Fields = {"excludes": (_texts, [])}

_FORMATS: dict[str, tuple[Fields, Callable[[dict[str, Any], _Place], Constraint[Any]]]] = {
    "const_string": ({"value": (_text, _REQUIRED)}, lambda spec, at: Literal(spec["value"])),
    "json_schema": (
        {
            "json_schema": (_schema, _REQUIRED),
            "style": (_only("json"), "json"),
            "any_order": (_only(False), False),
            "max_whitespace_cnt": (_only(None), None),
            "excludes": (_only([]), []),
        },
        lambda spec, at: JsonSchema(spec["json_schema"]),
    ),
    "grammar": ({"grammar": (_text, _REQUIRED)}, _grammar),
    "regex": ({"pattern": (_text, _REQUIRED)}, lambda spec, at: Regex(spec["pattern"])),
    "any_text": ({**_EXCLUDES, "max_tokens": (_only(None), None), "max_chars": (_count, None)}, _any_text),
    "sequence": (_ELEMENTS, lambda spec, at: one_after_the_other(_elements(spec, at))),
    "or": (_ELEMENTS, lambda spec, at: either_of(_elements(spec, at))),
    "optional": (_CONTENT, _repeat(0, 1)),
    "plus": (_CONTENT, _repeat(1, None)),
    "star": (_CONTENT, _repeat(0, None)),
    "repeat": ({"min": (_least, _REQUIRED), "max": (_most, _REQUIRED), **_CONTENT}, _between),
    "tag": (
        {"begin": (_any, _REQUIRED), **_CONTENT, "end": (_any, _REQUIRED)},
        lambda spec, at: _one_tag(spec, at).whole(),
    ),
    "triggered_tags": ({"triggers": (_texts, _REQUIRED), **_TAGS, **_FLAGS, **_EXCLUDES}, _triggered),
    "tags_with_separator": ({**_TAGS, "separator": (_text, _REQUIRED), **_FLAGS}, _separated),
    "dispatch": ({"rules": (_some, _REQUIRED), "loop": (_flag, True), **_EXCLUDES}, _dispatch),
    "token": ({"token": (_any, _REQUIRED)}, _token),
}

_FREE_TOKENS = 'arbitrary tokens cannot be constrained exactly; use "any_text", and a begin or end of type "token"'
_UNSUPPORTED = {
    "exclude_token": _FREE_TOKENS,
    "any_tokens": _FREE_TOKENS,
    "token_triggered_tags": _FREE_TOKENS,
    "token_dispatch": _FREE_TOKENS,
    "qwen_xml_parameter": "only JSON contents are; for other notations of tool calls, see guideway.ToolCalls",
}
