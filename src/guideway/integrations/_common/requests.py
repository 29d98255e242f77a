"""Converts the constraint of a request to vLLM or SGLang, given as a kind and a text, to a constraint."""

from __future__ import annotations

from collections import Counter
from typing import Any

from guideway.arguments import short_list, short_repr
from guideway.caching import cached
from guideway.constraints import Choice, Gbnf, JsonSchema, Lark, Regex, from_wire
from guideway.errors import GuidewayError, InvalidConstraintError, LimitExceededError
from guideway.integrations._common.structural_tags import structural_tag
from guideway.jsontext.copying import MAX_C_DEPTH
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import exact_json
from guideway.jsontext.numbers import written_float
from guideway.jsontext.tokens import is_deeper

__all__ = ["KINDS", "requested", "token_budget"]

KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
"""The kinds of constraints in requests to these servers."""

_LONG = 1 << 16


def requested(kind: str, spec: object) -> object:
    """Return the argument for `guideway.compile` for the constraint of a request.

    Results for recent texts of fewer than 65,536 characters are cached.

    Args:
        kind: One of `KINDS`.
        spec: The text in the request: a JSON Schema, a pattern (full match), choices as a JSON list, a grammar, or a
            structural tag. A grammar is a document of `to_wire` if it begins with a brace, GBNF if it contains `::=`,
            else Lark. A value that is not text is a JSON value; for "json" it can also be a constraint or a type, which
            is returned as it is.

    Raises:
        InvalidConstraintError: The request is malformed.
        LimitExceededError: A structural tag is nested too deeply.
        ConstraintError: The constructor of the constraint refuses the text.
    """
    if isinstance(spec, str):
        return _known(kind, spec) if len(spec) < _LONG else _read(kind, spec)
    if kind == "json_object":
        if not spec:
            raise InvalidConstraintError("json_object must be true or absent")
        return _read(kind, "")
    if kind in ("regex", "grammar"):
        raise InvalidConstraintError(f"the value of {kind!r} must be a str, got {type(spec).__name__}")
    return requested(kind, exact_json(spec)) if kind in ("choice", "structural_tag") else spec


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
            raise InvalidConstraintError("choice must be a JSON list of strings")
        return Choice(choices)
    if kind == "grammar":
        if spec.lstrip().startswith("{"):  # no GBNF or Lark grammar begins with a brace
            return from_wire(spec)
        return Gbnf(spec) if "::=" in spec else Lark(spec)
    if kind == "structural_tag":
        return structural_tag(_parsed(spec, "the structural tag", unique=True))
    raise InvalidConstraintError(f"unknown kind of constraint {short_repr(kind)}; known kinds: {', '.join(KINDS)}")


_known = cached(256, characters=4 << 20, size=lambda _, spec: len(spec))(_read)


def _parsed(text: str, what: str, *, unique: bool = False) -> Any:
    """Return the value of a JSON text.

    `what` is the name of the text, for errors. `unique`: an object that has a key twice is an error.
    """
    try:
        if unique and is_deeper(text, MAX_C_DEPTH):
            raise LimitExceededError(f"{what} is nested deeper than {MAX_C_DEPTH} levels")
        hooks = {"object_pairs_hook": _unique} if unique else {}
        return loads(text, parse_float=written_float, **hooks)
    except ValueError as error:
        if isinstance(error, GuidewayError):
            raise
        raise InvalidConstraintError(f"{what} is not valid JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a dict. Raises `InvalidConstraintError` for a repeated key: JSON parsers differ in its value."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidConstraintError(
            f"the key {short_repr(twice)} is repeated in an object with the keys {short_list(map(repr, made))}"
        )
    return made


def token_budget(name: str, given: object) -> int | None:
    """Return the token budget of a request as an int; None if `given` is None. HTTP clients may send it as text.

    Raises:
        InvalidConstraintError: The value is not a positive integer. `name` is the name of the field, for the message.
    """
    if given is None:
        return None
    number = int(given) if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 10 else given
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InvalidConstraintError(f"{name} must be a positive integer, got {short_repr(given)}")
    return number
