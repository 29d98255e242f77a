"""Builds the members of a request that carry a constraint, by route.

This module covers the routes that send a JSON Schema, a regular expression, a grammar, a structural tag or the wire
format of `guideway serve`. `routes.py` builds the members for the other routes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from guideway.constraints import Constraint, to_wire
from guideway.generation.chat_prompts import with_family
from guideway.remote.capabilities import Capabilities

__all__ = ["GRAMMAR_FORMS", "REGEX_FORMS", "SCHEMA_FORMS", "STRUCTURAL_FORMS", "schema_in", "wire_fragment"]


def _schema_fragment(given: Capabilities, schema: dict[str, Any]) -> dict[str, Any]:
    if given.name == "anthropic":
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    if given.name == "google":
        return {"response_mime_type": "application/json", "response_json_schema": schema}
    inner = {"name": "answer", "schema": schema, "strict": True}
    return {
        "response_format": {"type": "json_schema", "json_schema": inner},
        **({"extra_body": dict(given.extra)} if given.extra else {}),
    }


def _tool_fragment(given: Capabilities, schema: dict[str, Any]) -> dict[str, Any]:
    description = "Writes the answer."
    if given.name == "anthropic":
        tool = {"name": "answer", "description": description, "input_schema": schema, "strict": True}
        return {"tools": [tool], "tool_choice": {"type": "tool", "name": "answer"}}
    inner = {"name": "answer", "description": description, "parameters": schema, "strict": True}
    return {
        "tools": [{"type": "function", "function": inner}],
        "tool_choice": {"type": "function", "function": {"name": "answer"}},
    }


SCHEMA_FORMS: dict[str, Callable[[Capabilities, dict[str, Any]], dict[str, Any]]] = {
    "json_schema": _schema_fragment,
    "strict_tool": _tool_fragment,
    "tgi_json": lambda _, schema: {"response_format": {"type": "json", "value": schema}},
}
"""By route: the function that returns the fragment of a request with a JSON Schema."""

_SCHEMA_NAMES = ("schema", "response_json_schema", "input_schema", "parameters", "value")
"""The names of the members that contain a JSON Schema, in the fragments of `SCHEMA_FORMS`."""


def schema_in(sent: Any) -> Any:
    """Return the JSON Schema in a fragment of `SCHEMA_FORMS`; None if it has none."""
    todo = [sent]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            for name, value in one.items():
                if name in _SCHEMA_NAMES and isinstance(value, dict):
                    return value
                todo.append(value)
        elif isinstance(one, list):
            todo += one
    return None


REGEX_FORMS: dict[str, tuple[Literal["rust", "python"], Callable[[str], dict[str, Any]]]] = {
    "vllm_regex": ("rust", lambda text: {"extra_body": {"structured_outputs": {"regex": text}}}),
    "sglang_regex": ("python", lambda text: {"extra_body": {"regex": text}}),
    "tgi_regex": ("rust", lambda text: {"response_format": {"type": "regex", "value": text}}),
}
"""By route: the dialect of regular expressions, and the function that returns the fragment with an expression."""

STRUCTURAL_FORMS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "vllm_structural_tag": lambda form: {"extra_body": {"structured_outputs": {"structural_tag": json.dumps(form)}}},
    "sglang_structural_tag": lambda form: {"response_format": form},
}
"""By route: the function that returns the fragment of a request with a structural tag."""

GRAMMAR_FORMS: dict[str, tuple[str, Any]] = {
    "llama_grammar": ("gbnf", lambda text: {"extra_body": {"grammar": text}}),
    "vllm_grammar": ("gbnf_characters", lambda text: {"extra_body": {"structured_outputs": {"grammar": text}}}),
    "sglang_ebnf": ("gbnf", lambda text: {"extra_body": {"ebnf": text}}),
    "grammar_gbnf": ("gbnf", lambda text: {"response_format": {"type": "grammar", "grammar": text}}),
    "custom_tool": (
        "lark",
        lambda text: {
            "tools": [
                {
                    "type": "custom",
                    "custom": {
                        "name": "answer",
                        "description": "Writes the answer.",
                        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": text}},
                    },
                }
            ],
            "tool_choice": {"type": "custom", "custom": {"name": "answer"}},
        },
    ),
}
"""By route: the form of the exported grammar, and the function that returns the fragment with its text."""


def wire_fragment(constraint: Constraint[Any]) -> dict[str, Any]:
    """Return the fragment of a request to `guideway serve`: the constraint as a document of `to_wire`.

    It names the family of `ToolCalls`, so that the server does not choose another one than the client.
    """
    return {"extra_body": {"constraint": to_wire(with_family(constraint, None))}}
