"""`Tool`: a function that a model may call, and whether arguments fit it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from guideway.constraints.base import Constraint
from guideway.constraints.coerce import of
from guideway.constraints.json_schema import JsonSchema
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.grammar.recognizer import accepts, byte_automaton

if TYPE_CHECKING:
    from guideway._kernel import Automaton

__all__ = ["NAME", "Tool"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


class Tool:
    """A function that a model may call: its name, and the constraint of its arguments.

    `parameters`: a JSON Schema of an object, or a Python type or source whose texts are JSON objects. `Tool.of` takes a
    Python function, by its name and signature, and a dict as APIs take tools.
    """

    def __init__(self, name: str, parameters: object, description: str = "") -> None:
        for what, given in (("name", name), ("description", description)):
            if not isinstance(given, str):
                raise InvalidConstraintError(f"the {what} of a tool is a str, not {type(given).__name__}: {given!r}")
        if not NAME.fullmatch(name):
            raise InvalidConstraintError(f"{name!r} is no name of a tool: letters, digits, '_', '.' and '-'")
        self.name, self.description = name, description
        self.schema: Mapping[str, Any] | None = parameters if isinstance(parameters, Mapping) else None
        self.parameters: Constraint[Any] = of(parameters)

    @classmethod
    def of(cls, thing: Any) -> Tool:
        """A tool as it is; a Python function, whose value is the dict of its arguments; or a dict with name,
        description and parameters (of OpenAI's, Mistral's, Anthropic's shape), by itself or under "function".

        Raises `InvalidConstraintError` for anything else.
        """
        if isinstance(thing, Tool):
            return thing
        if isinstance(thing, Mapping):
            inner = thing.get("function", thing) if thing.get("type", "function") == "function" else thing
            if not isinstance(inner, Mapping) or "name" not in inner:
                raise InvalidConstraintError(f"a tool as a dict has a name (and parameters), not {list(thing)}")
            parameters = inner.get("parameters", inner.get("input_schema"))
            return cls(inner["name"], _NOTHING if parameters is None else parameters, inner.get("description") or "")
        if not callable(thing) or not hasattr(thing, "__name__"):
            raise InvalidConstraintError(f"{thing!r} is no tool: pass a Tool, a function or a dict")
        return cls(thing.__name__, thing, (thing.__doc__ or "").strip())

    @cached_property
    def _any_spelling(self) -> Automaton | None:
        """What decides whether arguments fit, however they are written; None where the source itself has to."""
        return None if self.schema is None else byte_automaton(JsonSchema(self.schema, profile="exact").grammar())

    def read(self, arguments: object) -> Any:
        """The value of arguments that were read from JSON. Raises `InvalidTextError` where they do not fit."""
        try:
            text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError):
            raise InvalidTextError(f"the arguments of {self.name!r} are no JSON") from None
        if self._any_spelling is not None and not accepts(self._any_spelling, text):
            raise InvalidTextError(f"the arguments of {self.name!r} do not fit: {self._problem(arguments, text)}")
        return self.parameters.parse(text)

    def _problem(self, arguments: object, text: str) -> str:
        """What is wrong with arguments that do not fit."""
        schema = self.schema or {}
        if not isinstance(arguments, dict):
            return f"they are no JSON object: {text[:80]}"
        required, known = schema.get("required", ()), schema.get("properties", {})
        missing = [key for key in required if key not in arguments]
        extra = [key for key in arguments if key not in known] if schema.get("additionalProperties") is False else []
        found = (("required and missing:", missing), ("not known:", extra))
        problems = [f"{what} {', '.join(map(repr, keys))}" for what, keys in found if keys]
        if problems:
            return "; ".join(problems)
        try:
            JsonSchema(schema, profile="exact").parse(text)
        except InvalidTextError as problem:
            return str(problem)
        return text[:200]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_any_spelling"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and (self.name, self.parameters) == (other.name, other.parameters)

    def __hash__(self) -> int:
        return hash((self.name, self.parameters))

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, {self.parameters!r})"
