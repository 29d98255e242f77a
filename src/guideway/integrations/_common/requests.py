"""What a server's request asks for, as a constraint: kinds and texts, as vLLM and SGLang hand them on."""

from __future__ import annotations

import functools
import json
from typing import Any

from guideway.constraints import Choice, Gbnf, JsonSchema, Lark, Regex
from guideway.errors import InvalidConstraintError
from guideway.integrations._common.structural_tags import structural_tag
from guideway.jsontext.decoder import loads

__all__ = ["KINDS", "requested"]

KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
"""The kinds of constraints that servers know."""

_LONG = 1 << 16


def requested(kind: str, spec: object) -> object:
    """What `guideway.compile` takes for a request.

    `kind`: one of `KINDS`. `spec`: its text, as it came over the wire: a JSON Schema, a pattern (full match), choices
    as a JSON list, a grammar (GBNF where it has `::=`, else Lark), a structural tag. What is no text, such as a schema
    as a dict, a source or a type, may stand for itself under "json". What was asked for lately is given again, so that
    compiling it costs a look-up. Raises `InvalidConstraintError` and what the sources raise.
    """
    if isinstance(spec, str):
        return _known(kind, spec) if len(spec) < _LONG else _read(kind, spec)
    if kind == "json_object":
        if not spec:
            raise InvalidConstraintError("json_object is true, or not given")
        return _read(kind, "")
    if kind in ("regex", "grammar"):
        raise InvalidConstraintError(f"what stands under {kind!r} is a str; got {type(spec).__name__}")
    return requested(kind, json.dumps(spec)) if kind in ("choice", "structural_tag") else spec


def _read(kind: str, spec: str) -> object:
    if kind == "json":
        schema = _parsed(spec, "the schema")
        return schema if isinstance(schema, dict) else JsonSchema(schema)
    if kind == "json_object":
        return {"type": "object"}
    if kind == "regex":
        return Regex(spec)
    if kind == "choice":
        choices = _parsed(spec, "the choices")
        if not isinstance(choices, list):
            raise InvalidConstraintError("the choices are a JSON list")
        return Choice(choices)
    if kind == "grammar":
        return Gbnf(spec) if "::=" in spec else Lark(spec)
    if kind == "structural_tag":
        return structural_tag(_parsed(spec, "the structural tag"))
    raise InvalidConstraintError(f"{kind!r} is no kind of constraint; known are {', '.join(KINDS)}")


_known = functools.lru_cache(maxsize=256)(_read)


def _parsed(text: str, what: str) -> Any:
    try:
        return loads(text)
    except ValueError as error:
        raise InvalidConstraintError(f"{what} is no JSON: {error}") from None
