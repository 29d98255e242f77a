"""`Tool`: a function that a model may call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from guideway.arguments import short_repr
from guideway.caching import cached_property
from guideway.constraints.base import Constraint
from guideway.constraints.coerce import of
from guideway.constraints.json_schema import JsonSchema
from guideway.constraints.python_types import PythonType
from guideway.constraints.tools.docstrings import described
from guideway.errors import ConstraintError, InvalidConstraintError, InvalidTextError
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.jsontext.encoder import exact_json

if TYPE_CHECKING:
    from guideway._kernel import Automaton

__all__ = ["NAME", "Tool", "named"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


class Tool:
    """A function that a model may call.

    `Tool.of` converts Python functions, and dicts as APIs write tools.

    Args:
        name: At most 128 letters, digits, "_", "." and "-". The first is a letter or "_".
        parameters: A JSON Schema of an object, or a function, a Python type or a constraint whose texts are JSON
            objects.
        description: What the tool does, for prompts.
        function: The Python function that `Chat.run` calls with the arguments; it may be async. None: there is none.

    Raises:
        InvalidConstraintError: An argument is not valid.

    Also raises the errors of `guideway.constraints.of` for `parameters`.
    """

    def __init__(
        self,
        name: str,
        parameters: object,
        description: str = "",
        *,
        function: Callable[..., Any] | None = None,
    ) -> None:
        for what, given in (("name", name), ("description", description)):
            if not isinstance(given, str):
                raise InvalidConstraintError(
                    f"the {what} of a tool must be a str, got {type(given).__name__}: {short_repr(given)}"
                )
        if not NAME.fullmatch(name):
            raise InvalidConstraintError(
                f"a tool name must have at most 128 letters, digits, '_', '.' and '-', and begin with a letter or '_', "
                f"got {short_repr(name, 200)}"
            )
        if function is not None and not callable(function):
            raise InvalidConstraintError(
                f"the function of the tool {short_repr(name)} must be callable, got {short_repr(function)}"
            )
        self.name, self.description, self.function = name, description, function
        self.schema: Mapping[str, Any] | None = parameters if isinstance(parameters, Mapping) else None
        try:
            self.parameters: Constraint[Any] = of(parameters)
        except ConstraintError as error:
            raise named(error, name) from error

    @classmethod
    def of(cls, thing: Any) -> Tool:
        """Convert a value to a `Tool`.

        Args:
            thing: A `Tool`; a Python function, whose arguments are those of the tool; or a dict with "name",
                "description", and "parameters" or "input_schema", as the APIs of OpenAI, Mistral and Anthropic have
                them. These may be under the key "function".

        Raises:
            InvalidConstraintError: The value is none of these, or an argument of `Tool` in it is not valid.
        """
        if isinstance(thing, Tool):
            return thing
        if isinstance(thing, Mapping):
            inner = thing.get("function", thing) if thing.get("type", "function") == "function" else thing
            if not isinstance(inner, Mapping) or "name" not in inner:
                raise InvalidConstraintError(f"a tool as a dict needs the key 'name', got the keys {list(thing)}")
            parameters = inner.get("parameters", inner.get("input_schema"))
            return cls(inner["name"], _NOTHING if parameters is None else parameters, inner.get("description") or "")
        if not callable(thing) or not hasattr(thing, "__name__"):
            raise InvalidConstraintError(f"a tool must be a Tool, a function or a dict, got {short_repr(thing)}")
        is_function = isinstance(thing, (FunctionType, MethodType))
        summary = described(thing).summary if is_function else (thing.__doc__ or "").strip()
        return cls(thing.__name__, thing, summary, function=thing if is_function else None)

    @property
    def object_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of the arguments. None for a boolean schema, and for constraints of other classes."""
        if self.schema is not None:
            return self.schema
        found = self.parameters.schema if isinstance(self.parameters, (JsonSchema, PythonType)) else None
        return found if isinstance(found, Mapping) else None

    @cached_property
    def exact_schema(self) -> Mapping[str, Any] | None:
        """The same schema as `object_schema`. `JsonSchema` reads all digits of its floats."""
        if self.schema is not None or not isinstance(self.parameters, (JsonSchema, PythonType)):
            return self.schema
        found = self.parameters.exact_schema()
        return found if isinstance(found, Mapping) else None

    def to_openai(self) -> dict[str, Any]:
        """Return the tool as a dict in the format of the OpenAI API and of chat templates.

        If the tool has a `function`, and `parameters` was not given as a schema, top-level parameters without a
        description get that of the section "Args" of the function's docstring.
        """
        schema: Any = self.object_schema
        if schema is None:
            schema = {"type": "object"}
        elif self.schema is None:
            schema = _without_titles(schema)
            if self.function is not None:
                schema = _with_descriptions(schema, described(self.function).parameters)
        function = {"name": self.name, "description": self.description, "parameters": schema}
        return {"type": "function", "function": function}

    @cached_property
    def _any_spelling(self) -> Automaton | None:
        """The automaton of all JSON spellings of the arguments; None: `parameters` was not given as a JSON Schema."""
        return (
            None
            if self.schema is None
            else byte_automaton(JsonSchema(self.schema, profile="exact", unknown_keywords="ignore").grammar())
        )

    def read(self, arguments: object) -> Any:
        """Return the value of arguments, as `parameters` parses them.

        Args:
            arguments: The arguments as JSON values.

        Raises:
            InvalidTextError: `parameters` does not allow the arguments.
        """
        try:
            text = exact_json(arguments, allow_nan=False)
        except ValueError:
            raise InvalidTextError(f"the arguments of {self.name!r} cannot be written as JSON") from None
        if self._any_spelling is not None and not accepts(self._any_spelling, text):
            raise InvalidTextError(f"the arguments of {self.name!r} are not valid: {self._problem(arguments, text)}")
        return self.parameters.parse(text)

    def _problem(self, arguments: object, text: str) -> str:
        """Return a description of why arguments do not match the schema. `text` is their JSON text."""
        schema = self.schema or {}
        if not isinstance(arguments, dict):
            return f"expected a JSON object, found {text[:80]}"
        required, known = schema.get("required", ()), schema.get("properties", {})
        missing = [key for key in required if key not in arguments]
        is_closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
        extra = [key for key in arguments if key not in known] if is_closed else []
        found = (("missing required arguments:", missing), ("unknown arguments:", extra))
        problems = [f"{what} {', '.join(map(repr, keys))}" for what, keys in found if keys]
        if problems:
            return "; ".join(problems)
        try:
            JsonSchema(schema, profile="exact", unknown_keywords="ignore").parse(text)
        except InvalidTextError as problem:
            return str(problem)
        return text[:200]

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_any_spelling"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[str, Constraint[Any]]:
        return self.name, self.parameters

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, {self.parameters!r})"


def named(error: ConstraintError, name: str) -> ConstraintError:
    """Modify an error so that its message begins with the name of the tool, and return it."""
    if error.args and isinstance(error.args[0], str) and not error.args[0].startswith("tool "):
        error.args = (f"tool {short_repr(name)}: {error.args[0]}", *error.args[1:])
    return error


def _without_titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without its title and the titles of its properties.

    Pydantic adds them, and they repeat the names.
    """
    found = {key: value for key, value in schema.items() if key != "title"}
    properties = found.get("properties")
    if isinstance(properties, Mapping):
        found["properties"] = {
            key: {k: v for k, v in value.items() if k != "title"} if isinstance(value, Mapping) else value
            for key, value in properties.items()
        }
    return found


def _with_descriptions(schema: dict[str, Any], descriptions: Mapping[str, str]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    found = {
        key: {**value, "description": descriptions[key]}
        if isinstance(value, Mapping) and descriptions.get(key) and "description" not in value
        else value
        for key, value in properties.items()
    }
    return {**schema, "properties": found}
