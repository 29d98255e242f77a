"""Reads the tools of request bodies: functions, custom tools, and `tool_choice`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from guideway.arguments import short_repr
from guideway.batch.requests import constraint_at, unknown_field
from guideway.constraints import Lark, Regex, Tool
from guideway.constraints.tools.text_input import TextInput
from guideway.constraints.tools.tool import NAME
from guideway.errors import InvalidRequestError

__all__ = ["ToolFields", "read_tools"]

_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
_FUNCTION = ("name", "description", "parameters", "strict")
_CUSTOM = ("name", "description", "format")


@dataclass(frozen=True)
class ToolFields:
    """The tools of a request.

    Attributes:
        tools: The tools that may be called.
        shown: All tools, as JSON values for the chat template.
        custom: The names of custom tools, whose only argument is the text "input".
        choice: "auto", "required", "none", or the name of the tool that must be called.
        parallel: Whether a reply may have several calls; None: not set by the request.
    """

    tools: tuple[Tool, ...]
    shown: tuple[dict[str, Any], ...]
    custom: frozenset[str] = field(default=frozenset())
    choice: str = "auto"
    parallel: bool | None = None


def read_tools(given: list[Any] | None, choice: Any, parallel: bool | None, *, flat: bool) -> ToolFields | None:
    """Return the tools of a body; None: there are none.

    Args:
        given: The value of "tools"; None: absent.
        choice: The value of "tool_choice"; None: absent.
        parallel: The value of "parallel_tool_calls"; None: absent.
        flat: Whether the fields of a tool are members of the tool itself, as in the Responses API, not of an inner
            object.

    Raises:
        InvalidRequestError: A field is missing, unknown or malformed; `param` is its path.
    """
    if not given:
        if choice not in (None, "none", "auto"):
            raise InvalidRequestError("'tool_choice' needs 'tools'", "tool_choice")
        return None
    tools: dict[str, Tool] = {}
    shown: dict[str, dict[str, Any]] = {}
    custom: set[str] = set()
    for number, one in enumerate(given):
        place = f"tools[{number}]"
        kind, fields, path = _fields(one, place, flat)
        tool, json_tool = _custom(fields, path) if kind == "custom" else _function(fields, path)
        if tool.name in tools:
            raise InvalidRequestError(
                f"two tools have the name {short_repr(tool.name)}", f"{path}.name", "invalid_value"
            )
        tools[tool.name], shown[tool.name] = tool, json_tool
        if kind == "custom":
            custom.add(tool.name)
    chosen, allowed = _choice(choice, list(tools), flat)
    return ToolFields(
        tuple(tools[name] for name in allowed), tuple(shown.values()), frozenset(custom), chosen, parallel
    )


def _fields(one: Any, place: str, flat: bool) -> tuple[str, dict[str, Any], str]:
    """Return the type of a tool ("function" or "custom"), its fields that are not null, and the path of the fields."""
    if not isinstance(one, dict):
        raise _wrong(place, "an object", one)
    kind = one.get("type", "function")
    if kind not in ("function", "custom"):
        raise InvalidRequestError(
            f"tools of the type {short_repr(kind)} are not supported; types are function and custom", f"{place}.type"
        )
    fields: Any = one
    path = place
    if not flat:
        for name in one:
            if name not in ("type", kind):
                raise unknown_field(name, f"{place}.{name}", ("type", kind))
        fields, path = one.get(kind), f"{place}.{kind}"
        if not isinstance(fields, dict):
            raise _wrong(path, "an object", fields)
    known = _CUSTOM if kind == "custom" else _FUNCTION
    for name in fields:
        if name not in known and not (flat and name == "type"):
            raise unknown_field(name, f"{path}.{name}", known)
    for name in ("name", "description"):
        value = fields.get(name)
        if not isinstance(value, str) and (value is not None or name == "name"):
            raise _wrong(f"{path}.{name}", "a string", value)
    if not NAME.fullmatch(fields["name"]):
        raise InvalidRequestError(
            f"{path + '.name'!r} must match {NAME.pattern}, got {short_repr(fields['name'])}", f"{path}.name"
        )
    return kind, {name: value for name, value in fields.items() if value is not None}, path


def _function(fields: Mapping[str, Any], path: str) -> tuple[Tool, dict[str, Any]]:
    parameters = fields.get("parameters", {"type": "object", "properties": {}, "additionalProperties": False})
    if not isinstance(parameters, dict):
        raise _wrong(f"{path}.parameters", "a JSON Schema (an object)", parameters)
    if parameters.get("type", "object") != "object":
        raise _wrong(f"{path}.parameters.type", "object", parameters["type"])
    if not isinstance(fields.get("strict", False), bool):
        raise _wrong(f"{path}.strict", "a boolean", fields["strict"])
    made: list[Tool] = []

    def make() -> Any:
        made.append(Tool(fields["name"], {"type": "object", **parameters}, fields.get("description", "")))
        return made[0].parameters

    constraint_at(f"{path}.parameters", make)
    function = {"name": fields["name"], "description": fields.get("description", ""), "parameters": parameters}
    return made[0], {"type": "function", "function": function}


def _custom(fields: Mapping[str, Any], path: str) -> tuple[Tool, dict[str, Any]]:
    form = fields.get("format", {"type": "text"})
    if not isinstance(form, dict):
        raise _wrong(f"{path}.format", "an object", form)
    description, parameters = fields.get("description", ""), _TEXT
    tool = Tool(fields["name"], _TEXT, description)
    kind = form.get("type")
    if kind == "grammar":
        inner, place = (
            (form, f"{path}.format") if "definition" in form else (form.get("grammar"), f"{path}.format.grammar")
        )
        if not isinstance(inner, dict):
            raise _wrong(place, "an object", inner)
        definition, syntax = inner.get("definition"), inner.get("syntax")
        if not isinstance(definition, str):
            raise _wrong(f"{place}.definition", "a string", definition)
        if syntax not in ("lark", "regex"):
            raise _wrong(f"{place}.syntax", "lark or regex", syntax)
        text = constraint_at(
            f"{place}.definition", lambda: Regex(definition) if syntax == "regex" else Lark(definition)
        )
        tool = constraint_at_tool(f"{place}.definition", fields["name"], text, description)
        description = f"{description}\nThe input fits this {syntax} grammar:\n{definition}".lstrip()
    elif kind != "text":
        raise InvalidRequestError(
            f"{path + '.format.type'!r} must be text or grammar, got {short_repr(kind)}", f"{path}.format.type"
        )
    function = {"name": fields["name"], "description": description, "parameters": parameters}
    return tool, {"type": "function", "function": function}


def constraint_at_tool(param: str, name: str, text: Any, description: str) -> Tool:
    """Return a tool whose input is a text that fits the constraint `text`. `param`: the path of the field in errors."""
    made = constraint_at(param, lambda: TextInput(text))
    return Tool(name, made, description)


def _choice(choice: Any, names: list[str], flat: bool) -> tuple[str, list[str]]:
    """Return `ToolFields.choice` for a value of "tool_choice", and the names of the tools that may be called.

    `names` has the names of all tools.
    """
    if choice is None or choice in ("auto", "none", "required"):
        return choice or "auto", names
    if not isinstance(choice, dict):
        raise _wrong("tool_choice", "auto, none, required or an object", choice)
    kind = choice.get("type")
    if kind == "allowed_tools":
        inner, path = (choice, "tool_choice") if flat else (choice.get("allowed_tools"), "tool_choice.allowed_tools")
        if not isinstance(inner, dict):
            raise _wrong(path, "an object", inner)
        mode, listed = inner.get("mode"), inner.get("tools")
        if mode not in ("auto", "required"):
            raise _wrong(f"{path}.mode", "auto or required", mode)
        if not isinstance(listed, list) or not listed:
            raise _wrong(f"{path}.tools", "a list of tools, not empty", listed)
        allowed = [_named(one, f"{path}.tools[{number}]", names, flat) for number, one in enumerate(listed)]
        return mode, [name for name in names if name in allowed]
    if kind in ("function", "custom"):
        return _named(choice, "tool_choice", names, flat), names
    raise InvalidRequestError(
        f"'tool_choice.type' must be function, custom or allowed_tools, got {short_repr(kind)}", "tool_choice.type"
    )


def _named(one: Any, place: str, names: list[str], flat: bool) -> str:
    if not isinstance(one, dict):
        raise _wrong(place, "an object", one)
    kind = one.get("type", "function")
    if kind not in ("function", "custom"):
        raise _wrong(f"{place}.type", "function or custom", kind)
    inner, path = (one, place) if flat or "name" in one else (one.get(kind), f"{place}.{kind}")
    name = inner.get("name") if isinstance(inner, dict) else None
    if name not in names:
        raise InvalidRequestError(
            f"{path + '.name'!r} must be one of {', '.join(names)}, got {short_repr(name)}",
            f"{path}.name",
            "invalid_value",
        )
    return str(name)


def _wrong(param: str, expected: str, value: object) -> InvalidRequestError:
    return InvalidRequestError(f"{param!r} must be {expected}, got {short_repr(value)}", param, "invalid_type")
