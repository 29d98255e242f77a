"""Terms of arguments that are not written as a JSON object: keys and values between tags, Python keyword arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from guideway.arguments import short_repr
from guideway.constraints.embed import term_of
from guideway.constraints.json_schema import JsonSchema
from guideway.constraints.python_types import PythonType
from guideway.constraints.special_token import marker
from guideway.constraints.tags import without
from guideway.constraints.tools.families import Family
from guideway.constraints.tools.tool import NAME, Tool
from guideway.errors import UnsupportedError
from guideway.frontends.json_schema.style import Formats
from guideway.grammar.cfg import Concatenation, Embedded, Repetition, Term, Text
from guideway.grammar.nodes import Grammar, Leaf, Object, Property, Punctuation, renumbered
from guideway.grammar.regular import Literals, Regular, Union

__all__ = ["is_text", "pairs", "properties", "python"]

_SAYS_NOTHING = {"title", "description", "default", "examples"}
_WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|true|false|null')
_PYTHON = {"true": "True", "false": "False", "null": "None"}


def properties(tool: Tool) -> list[tuple[str, Mapping[str, Any], bool]]:
    """Return, for each argument of a tool, its name, its schema, and whether it is required.

    Raises `UnsupportedError` if these notations cannot express the schema of the arguments.
    """
    schema = tool.exact_schema
    known = {"type", "properties", "required", "additionalProperties", "$defs", "$schema", *_SAYS_NOTHING}
    if schema is None or schema.get("type") != "object" or schema.keys() - known:
        raise UnsupportedError(
            f"tool {short_repr(tool.name)}: this family supports only object schemas with properties, required and "
            "additionalProperties"
        )
    required = set(schema.get("required", ()))
    found = schema.get("properties", {})
    if required - found.keys() or any(not NAME.fullmatch(name) for name in found):
        raise UnsupportedError(
            f"tool {short_repr(tool.name)}: this family supports only arguments that are in properties and whose names are letters, "
            "digits, '_', '.' and '-'"
        )
    if not all(isinstance(value, Mapping) for value in found.values()):
        raise UnsupportedError(
            f"tool {short_repr(tool.name)}: this family supports only properties whose schema is an object"
        )
    return [(name, value, name in required) for name, value in found.items()]


def _source(tool: Tool, schema: Mapping[str, Any]) -> JsonSchema:
    definitions = (tool.exact_schema or {}).get("$defs")
    made = dict(schema) if definitions is None else {**schema, "$defs": definitions}
    formats: Formats = "strict" if isinstance(tool.parameters, PythonType) else "known"
    return JsonSchema(made, formats=formats, unknown_keywords="ignore")  # warnings were issued for the whole schema


# Notations with keys and values between tags: strings are written without quotes and escapes, other values as JSON.


def is_text(tool: Tool, schema: Mapping[str, Any]) -> bool:
    """Return True if the schema of an argument allows only strings, and False if it allows no strings.

    Raises:
        UnsupportedError: It allows strings and other values, or has keywords that restrict strings, or is not
            understood.
    """
    if schema.get("type") == "string" and not schema.keys() - _SAYS_NOTHING - {"type", "enum"}:
        return True
    if _is_never_text(tool, schema):
        return False
    raise UnsupportedError(
        f"tool {short_repr(tool.name)}: this family supports only arguments that are always text or never text"
    )


def _is_never_text(tool: Tool, schema: Mapping[str, Any]) -> bool:
    """Return True if the types, alternatives and references of a schema show that it allows no strings."""
    definitions = (tool.exact_schema or {}).get("$defs", {})
    pending: list[object] = [schema]
    seen: set[str] = set()
    while pending:
        one = pending.pop()
        if not isinstance(one, Mapping):
            return False
        kinds = one.get("type")
        if kinds is not None:
            if "string" in ([kinds] if isinstance(kinds, str) else kinds):
                return False
        elif "const" in one or "enum" in one:
            if any(isinstance(value, str) for value in one.get("enum", [one.get("const")])):
                return False
        elif alternatives := one.get("anyOf") or one.get("oneOf"):
            pending.extend(alternatives)
        elif isinstance(reference := one.get("$ref"), str) and reference.startswith("#/$defs/"):
            if reference not in seen:
                pending.append(definitions.get(reference.removeprefix("#/$defs/")))
            seen.add(reference)
        else:
            return False
    return True


def pairs(tool: Tool, family: Family) -> Term:
    """Return the term of arguments that are written with the three texts of `family.pair`.

    Raises the errors of `properties` and `is_text`, and `UnsupportedError` if a listed text contains the third text.
    """
    before, between, after = family.pair
    end = after.strip() or after
    made: list[Term] = []
    for name, schema, required in properties(tool):
        if is_text(tool, schema):
            texts = [one for one in schema["enum"] if isinstance(one, str)] if "enum" in schema else None
            if any(end in one for one in texts or ()):
                raise UnsupportedError(
                    f"tool {short_repr(tool.name)}: this family supports only texts without {end!r}, which ends a value"
                )
            value: Term = Text(without(end) if texts is None else Literals(tuple(texts)))
        else:
            value = term_of(_source(tool, schema))
        head, tail = marker(before + name + between, family.special), marker(after, family.special)
        pair = Concatenation((head, value, tail))
        made.append(pair if required else Repetition(pair, 0, 1))
    return Concatenation(tuple(made))


# Python's notation differs from JSON in three words and in the keys.


def python(tool: Tool) -> Term:
    """Return the term of keyword arguments in parentheses, in Python notation.

    Raises `UnsupportedError` if a name is not a Python identifier, and the errors of `properties`.
    """
    found = properties(tool)
    names = [*tool.name.split("."), *(name for name, _, _ in found)]
    if not all(name.isidentifier() for name in names):
        raise UnsupportedError(
            f"tool {short_repr(tool.name)}: this family supports only names that are Python identifiers"
        )
    made = Grammar()
    made.root = made.reserve()
    entries = []
    for name, schema, required in found:
        inner = _source(tool, schema).grammar()
        by = len(made.nodes)
        for node, place in zip(inner.nodes, inner.places, strict=True):
            moved = None if node is None else renumbered(node, range(by, by + len(inner.nodes)))
            made.nodes.append(Leaf(_in_python(moved.text)) if isinstance(moved, Leaf) else moved)
            made.places.append(place)
        entries.append(Property(Literals((name,)), inner.root + by, required))
    made.define(made.root, Object(Punctuation("(", ", ", "=", ")"), tuple(entries)))
    return Embedded(made)


def _in_python(text: Regular) -> Regular:
    """Return an expression in which `true`, `false` and `null` in fixed texts are replaced by Python's constants.

    Strings in quotes are not changed.
    """
    match text:
        case Literals(texts):
            return Literals(tuple(_WORDS.sub(lambda found: _PYTHON.get(found[0], found[0]), one) for one in texts))
        case Union(parts):
            return Union(tuple(map(_in_python, parts)))
    return text
