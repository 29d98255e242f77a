"""Finds out which values some core schemas of Pydantic allow, if the core schemas alone do not say this.

These are the core schemas of literals, defaults, and types that Pydantic defines by functions. The answer follows from
the names of these functions, or from a call of a validator.
"""

from __future__ import annotations

import functools
import json
from enum import Enum
from typing import Any

from guideway.errors import UnsupportedError
from guideway.frontends.python_types.texts import FORMATS

__all__ = ["accepts", "is_encoded_str", "key_texts", "length_bound", "other_bound", "read_from_json", "special"]

_OF_THE_MACHINE = "depends on the files of the machine, so it is not supported; use Path or str"
_REFUSED = {
    "pattern_bytes_validator": "patterns of bytes are not read from JSON; use re.Pattern[str]",
    "PathType.validate_file": f"a path that must be a file {_OF_THE_MACHINE}",
    "PathType.validate_directory": f"a path that must be a directory {_OF_THE_MACHINE}",
    "PathType.validate_new": f"a path that must not exist {_OF_THE_MACHINE}",
    "PathType.validate_socket": f"a path that must be a socket {_OF_THE_MACHINE}",
    "PaymentCardNumber.validate": "the check digit of a card number is not supported; use str, and check it in a validator",
    "import_string": "ImportString imports the text, so it is not supported; use str",
}
_BOUNDS = frozenset({"gt", "ge", "lt", "le", "multiple_of", "max_digits", "decimal_places"})
_LENGTHS = frozenset({"max_length_validator", "min_length_validator"})


def special(schema: Any, json_bytes: str) -> dict[str, Any] | None:
    """Return the JSON Schema of a type that Pydantic defines by a function. None: Pydantic's own schema is kept.

    Args:
        schema: The core schema.
        json_bytes: How bytes are written in JSON: "utf8", "base64" or "hex".

    Raises:
        UnsupportedError: The texts of the type cannot be described, for example because they depend on files.
    """
    function = _function(schema)
    if function is None:
        return None
    plain = function.func if isinstance(function, functools.partial) else function
    if not _is_of_pydantic(plain):
        return None
    name = getattr(plain, "__qualname__", "")
    if name in _REFUSED:
        raise UnsupportedError(_REFUSED[name])
    if name in _LENGTHS and _is_bytes(schema.get("schema")):
        raise UnsupportedError("length bounds on bytes are not supported; use a str with length bounds")
    if name == "ByteSize._validate":
        return dict(FORMATS["byte size"])
    if name == "EncodedBytes.decode" and json_bytes != "utf8":
        raise UnsupportedError(f"encoded bytes in JSON with val_json_bytes={json_bytes!r} are not supported")
    if name == "EncodedStr.decode_str":
        encoder = getattr(getattr(function, "__self__", None), "encoder", None)
        known = {"Base64Encoder": "base64 of ASCII", "Base64UrlEncoder": "base64url of ASCII"}
        form = known.get(getattr(encoder, "__name__", ""))
        return None if form is None else dict(FORMATS[form])
    return None


def is_encoded_str(schema: Any) -> bool:
    """Return whether Pydantic decodes a str, such as a `Base64Str`, after the rules of the configuration for strings."""
    return getattr(_function(schema), "__qualname__", "") == "EncodedStr.decode_str"


def length_bound(schema: Any) -> tuple[str, int] | None:
    """Return the kind ("min" or "max") and the value of a length bound that Pydantic checks by a function.

    None if the core schema is not such a check.
    """
    function = _function(schema)
    if not isinstance(function, functools.partial) or getattr(function.func, "__name__", "") not in _LENGTHS:
        return None
    return next(((name[:3], value) for name, value in function.keywords.items() if name.endswith("_length")), None)


def other_bound(schema: Any) -> str | None:
    """Return the name of a bound of numbers, such as "gt", that Pydantic checks by a function.

    Pydantic does so if the type is not a number type. None if there is no such bound, or if it applies to the result of
    a validator of the user.
    """
    function = _function(schema)
    name = getattr(getattr(function, "func", None), "__name__", "")
    if not isinstance(function, functools.partial) or name in _LENGTHS or not _is_of_pydantic(function.func):
        return None
    bounds = [key for key in function.keywords if key in _BOUNDS]
    while (inner := _function(schema)) is not None:
        if not _is_of_pydantic(inner.func if isinstance(inner, functools.partial) else inner):
            return None
        schema = schema.get("schema")
    return bounds[0] if bounds else None


def _function(schema: Any) -> Any:
    """Return the function of a core schema; None if it has none."""
    found = schema.get("function") if isinstance(schema, dict) else None
    return found.get("function") if isinstance(found, dict) else None


def _is_of_pydantic(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("pydantic.")


def _is_bytes(schema: Any) -> bool:
    """Return whether Pydantic reads a JSON text of this core schema as bytes."""
    while isinstance(schema, dict):
        if schema.get("type") == "bytes":
            return True
        schema = next((schema[name] for name in ("schema", "lax_schema", "json_schema") if name in schema), None)
    return False


def read_from_json(value: object) -> bool:
    """Return whether Pydantic reads the JSON text of `value`, a value of a `Literal`, as this value."""
    from pydantic_core import SchemaValidator, ValidationError, core_schema

    if isinstance(value, bytes):
        return False
    data = value.value if isinstance(value, Enum) else value
    try:
        text = json.dumps(data)
        SchemaValidator(core_schema.literal_schema([value])).validate_json(text)
    except (TypeError, ValueError, ValidationError):
        return False
    return True


def key_texts(schema: Any) -> list[str]:
    """Return the texts that Pydantic reads, as keys of a JSON object, as the values of a `Literal` or an `Enum`.

    Args:
        schema: The core schema of the keys.
    """
    from pydantic_core import SchemaValidator, ValidationError, core_schema

    values = schema["expected"] if schema["type"] == "literal" else [member.value for member in schema["members"]]
    validator = SchemaValidator(core_schema.dict_schema(schema))
    found = []
    for value in values:
        if not isinstance(value, (str, int)) or isinstance(value, bool):  # a function's result has no keys for bool
            continue
        try:
            text = str.__str__(value) if isinstance(value, str) else int.__repr__(value)
            validator.validate_json(json.dumps({text: None}))
            found.append(text)
        except (ValueError, ValidationError):  # ValueError: a number with too many digits
            continue
    return list(dict.fromkeys(found))


def accepts(schema: Any, value: object, definitions: list[Any], config: Any) -> bool:
    """Return whether a core schema accepts a Python value. False also if its validator cannot be constructed.

    Args:
        schema: The core schema.
        value: The value.
        definitions: The core schemas that it may refer to.
        config: The core configuration; None: the default.
    """
    from pydantic_core import SchemaValidator

    whole = {"type": "definitions", "schema": schema, "definitions": definitions} if definitions else schema
    try:
        SchemaValidator(whole, config).validate_python(value)
    except Exception:  # a validation error, an incomplete schema, or an error of a validator of the user
        return False
    return True
