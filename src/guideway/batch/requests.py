"""`BatchRequest`: one request of a batch, from a line of a file or from Python."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guideway.arguments import short_repr
from guideway.batch.fields import COUNT, SAMPLING, boolean_field, check_repeated, integer_field
from guideway.batch.ids import seed_of
from guideway.caching import cached
from guideway.constraints import Choice, Constraint, Ebnf, Format, Gbnf, JsonSchema, Lark, Regex, from_wire, of
from guideway.constraints.known import check_lowering
from guideway.errors import ConstraintError, GuidewayError, InvalidConstraintError, InvalidRequestError
from guideway.generation.options import Prompt
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import exact_json
from guideway.jsontext.numbers import written_float

__all__ = [
    "CONSTRAINTS",
    "OPTIONS_OF_LINES",
    "BatchRequest",
    "constraint_at",
    "constraint_of_line",
    "custom_id_of",
    "own_request",
    "shared_constraint",
    "unknown_field",
]

MAX_ID = 4096
"""The maximum number of characters of a `custom_id`."""

_SAMPLING = ("seed", "stop", "bad_words", "temperature", "top_k", "top_p", "min_p")
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "max_tokens": COUNT,
    "min_tokens": integer_field(0),
    "token_healing": boolean_field,
    **{name: SAMPLING[name] for name in _SAMPLING},
}
OPTIONS_OF_LINES = tuple(_CHECKS)
"""The generation options that a line in the format of this library may have."""


@dataclass(frozen=True)
class BatchRequest:
    """One request of a batch.

    Attributes:
        custom_id: The identifier, unique in the batch. If `options` has no seed, the seed is derived from it.
        prompt: A str, a list of messages or a list of token ids; for `/v1/completions` also a list of prompts.
        output: A type or a constraint; None: the `output` of the call.
        options: Generation options, which take precedence over those of the call.
        n: The number of texts for each prompt; None: one.
        endpoint: The URL of the request in OpenAI's batch format; "": the format of this library.
        details: Other data from the line or body that is needed to write the answer.
    """

    custom_id: str
    prompt: Prompt | list[Any]
    output: object = None
    options: Mapping[str, Any] = field(default_factory=dict)
    n: int | None = None
    endpoint: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def prompts(self) -> list[Any]:
        """Return the prompts: the members of `prompt` if it is a list of prompts, else `prompt` itself, as a list."""
        return list(self.prompt) if self.details.get("many") else [self.prompt]

    def seed(self, part: int = 0) -> int:
        """Return the seed of prompt number `part`: the seed of `options` plus `part`.

        If `options` has no seed, it is computed from `custom_id` and `part`.
        """
        own = self.options.get("seed")
        return seed_of(self.custom_id, part) if own is None else own + part


def custom_id_of(entry: object) -> str:
    """Return the `custom_id` of a line. Raises `InvalidRequestError` if it is missing or invalid."""
    if not isinstance(entry, Mapping):
        raise InvalidRequestError(f"a line must be a JSON object, got {type(entry).__name__}", code="invalid_line")
    found = entry.get("custom_id")
    if found is None:
        raise InvalidRequestError('the line needs "custom_id", a string', "custom_id", "missing_custom_id")
    if not isinstance(found, str) or not found or len(found) > MAX_ID:
        raise InvalidRequestError(
            f'"custom_id" must be a string of 1 to {MAX_ID} characters, got {short_repr(found)}',
            "custom_id",
            "invalid_custom_id",
        )
    return found


# -- constraints

_OF_LINES: dict[str, Callable[[Any], Constraint[Any]]] = {
    "schema": JsonSchema,
    "regex": Regex,
    "choice": Choice,
    "format": Format,
    "lark": Lark,
    "gbnf": Gbnf,
    "ebnf": Ebnf,
    "constraint": from_wire,
}
CONSTRAINTS = tuple(_OF_LINES)
"""The keys of a line that can contain its constraint."""


def constraint_of_line(line: Mapping[str, Any]) -> Constraint[Any] | None:
    """Return the constraint of a line, as `shared_constraint` does; None: the line has none.

    Raises:
        ConstraintError: The constraint is invalid, or the line has several.
        TypeError: The value of the constraint has a wrong type.
    """
    named = [name for name in _OF_LINES if name in line]
    if len(named) > 1:
        raise InvalidConstraintError(f"a line may have one constraint, got {' and '.join(named)}")
    if isinstance(line.get("schema"), str):
        raise InvalidConstraintError('"schema" of a line must be the schema itself (an object), not the name of a file')
    return shared_constraint(named[0], line[named[0]]) if named else None


def shared_constraint(kind: str, value: object) -> Constraint[Any]:
    """Return the constraint that a JSON value describes. `kind` is one of `CONSTRAINTS`.

    Values of one kind with the same JSON text, keys in the same order, give one object while it is in the cache. Texts
    of 65,536 characters and more are not cached.
    """
    try:
        text = exact_json(value)
    except (ValueError, TypeError):  # not JSON
        return _OF_LINES[kind](value)
    return _recent(kind, text) if len(text) < 1 << 16 else _OF_LINES[kind](value)


def _read(kind: str, text: str) -> Constraint[Any]:
    return _OF_LINES[kind](loads(text, parse_float=written_float))


_recent = cached(1024, characters=4 << 20, size=lambda _, text: len(text))(_read)


def constraint_at(param: str, make: Callable[[], Any]) -> Any:
    """Return the constraint that `make` returns, after checking that it has a grammar. None is returned as it is.

    A `GuidewayError`, `TypeError` or `ValueError` becomes an `InvalidRequestError`. Its `param` is `param`, the path of
    the field, with the place in the constraint if the error has a JSON Pointer.
    """
    try:
        made = make()
        if made is not None:
            check_lowering(of(made))  # raises the errors of lowering; only `compile` finds that no text fits
        return made
    except ConstraintError as error:
        place = error.place or ""
        raise InvalidRequestError(
            str(error), param + place if place.startswith("/") else param, "invalid_constraint"
        ) from error
    except (GuidewayError, TypeError, ValueError) as error:
        raise InvalidRequestError(str(error), param, "invalid_constraint") from error


# -- lines in the format of this library


def own_request(line: Mapping[str, Any]) -> BatchRequest:
    """Return the request of a line in the format of this library.

    Such a line has "custom_id", "prompt" or "messages", and optionally a constraint and generation options.

    Raises:
        InvalidRequestError: A field is missing, unknown or malformed.
    """
    known = ("custom_id", "prompt", "messages", *CONSTRAINTS, *OPTIONS_OF_LINES, "n", "meta")
    for name in line:
        if name not in known:
            raise unknown_field(name, name, known)
    check_repeated(line.get("meta"), "meta")
    given = [name for name in ("prompt", "messages") if name in line]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise InvalidRequestError(f'the line needs "prompt" or "messages", got {found}', "prompt", "missing_parameter")
    prompt = line[given[0]]
    if given[0] == "messages":
        if not isinstance(prompt, list) or not prompt or not all(isinstance(one, Mapping) for one in prompt):
            raise InvalidRequestError('"messages" must be a list of objects, not empty', "messages")
    elif not isinstance(prompt, str) and not (isinstance(prompt, list) and _are_ids(prompt)):
        raise InvalidRequestError('"prompt" must be a string or a list of token ids', "prompt")
    named = next((name for name in CONSTRAINTS if name in line), "constraint")
    output = constraint_at(named, lambda: constraint_of_line(line))
    options = {name: _CHECKS[name](line[name], name) for name in OPTIONS_OF_LINES if line.get(name) is not None}
    details = {"meta": line["meta"]} if "meta" in line else {}
    return BatchRequest(custom_id_of(line), prompt, output, options, _count(line.get("n")), "", details)


def _are_ids(prompt: Sequence[Any]) -> bool:
    return bool(prompt) and all(type(one) is int for one in prompt)


def _count(n: object) -> int | None:
    if n is None:
        return None
    if type(n) is not int or not 1 <= n <= 128:
        raise InvalidRequestError(f'"n" must be an integer from 1 to 128, got {short_repr(n)}', "n")
    return n


def unknown_field(name: str, param: str, known: Sequence[str]) -> InvalidRequestError:
    """Return the error for an unknown field.

    `known`: the names of known fields, from which a similar one is suggested.
    """
    close = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return InvalidRequestError(f"unknown parameter {short_repr(param, 120)}{meant}", param[:200], "unknown_parameter")
