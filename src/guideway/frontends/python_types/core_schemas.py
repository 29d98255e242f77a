"""Checks of a whole core schema of Pydantic, whose parts are read differently from what they say alone.

In strict mode, Pydantic reads some types from JSON but not from the values that a function returns. A type that occurs
several times is read with the configuration of one of the models that contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from guideway.errors import UnsupportedError
from guideway.frontends.python_types.probes import is_encoded_str, length_bound
from guideway.jsontext.pointer import pointer

__all__ = ["OF_STRINGS", "check_shared", "check_strict", "strict_of"]

OF_STRINGS: Mapping[str, Any] = MappingProxyType(
    {
        "str_max_length": None,
        "str_min_length": 0,
        "str_strip_whitespace": False,
        "str_to_lower": False,
        "str_to_upper": False,
        "regex_engine": "rust-regex",
        "val_json_bytes": "utf8",
    }
)
"""The options of a configuration that say which strings are allowed, with their defaults."""

_NOT_FROM_VALUES = frozenset(
    {"bytes", "counter", "date", "datetime", "decimal", "deque", "fraction", "frozendict", "frozenset", "ordered-dict"}
    | {"set", "time", "timedelta", "tuple"}
)
"""The kinds of core schemas that in strict mode are read from JSON, but not from a str, number, list or dict."""

_CLASSES = frozenset({"model", "dataclass", "typed-dict"})
_NOT_READ = frozenset(
    {"serialization", "metadata", "config", "default", "expected", "members", "computed_fields", "python_schema"}
    | {"json_schema_input_schema", "custom_error_context"}
)
"""The names in a core schema whose values are no core schemas, or are not used to read JSON."""


def check_strict(schema: Any, strict: bool | None) -> None:
    """Raise `UnsupportedError` for a type that a function reads first, and Pydantic not from the function's result.

    The input of a function with a `json_schema_input_type` is what this type says, so nothing inside it is checked.

    Args:
        schema: The whole core schema.
        strict: Whether the configuration outside of all models is strict.
    """
    definitions = _definitions(schema)
    # Pydantic reads a definition with the configuration of one of the models that contain it.
    some = bool(strict) or any((one.get("config") or {}).get("strict") for one in _parts(schema, frozenset()))
    seen: set[tuple[int, bool, bool]] = set()
    todo: list[tuple[Any, bool, bool, str]] = [(schema, bool(strict), False, "")]
    while todo:
        one, config, after, place = todo.pop()
        if (id(one), config, after) in seen:
            continue
        seen.add((id(one), config, after))
        if after and (what := _refused(one, config)) is not None:
            where = f"{place}: " if place else ""
            raise UnsupportedError(
                f"{where}a strict {what} is not supported after a function (a validator with the mode 'before' or "
                "'wrap', or a defaultdict), because Pydantic reads it from JSON, but not from the value that the "
                "function returns; use no strict mode for it (Strict(False)), or a validator with the mode 'after'",
                place or None,
            )
        kind = one["type"]
        if kind == "definition-ref":
            if (found := definitions.get(one["schema_ref"])) is not None:
                todo.append((found, config or (after and some), after, place))
            continue
        if kind in _CLASSES and (one.get("config") is not None or kind == "model"):
            config = bool((one.get("config") or {}).get("strict"))
        after = (after or kind in ("function-before", "function-wrap")) and kind != "json"  # its text is read again
        todo += [(part, config, after, _within(place, name)) for name, part in reversed(_read(one, config))]


def strict_of(schema: Any, config: bool | None) -> bool:
    """Return whether Pydantic reads a core schema in strict mode. `config`: whether the configuration is strict."""
    return bool(schema.get("strict", config))


def _refused(schema: Any, config: bool) -> str | None:
    """Return what Pydantic does not read, in this core schema without its parts, from a value of JSON; None: nothing."""
    if schema["type"] in _NOT_FROM_VALUES and strict_of(schema, config):
        return str(schema["type"])
    keys = schema.get("keys_schema")
    if keys is None or not strict_of(keys, config):
        return None
    if keys["type"] == "int":
        return "dict with int keys"
    if keys["type"] == "enum" and not all(isinstance(_value(member), str) for member in keys["members"]):
        return "dict with keys of an Enum whose values are not all str"
    return None


def _value(member: Any) -> object:
    return member.value if isinstance(member, Enum) else member


def _within(place: str, name: str | None) -> str:
    return place if name is None else pointer(place, name)


def _read(schema: Any, config: bool) -> list[tuple[str | None, Any]]:
    """Return the core schemas in a core schema with which Pydantic reads JSON, with their names if they are fields."""
    kind = schema["type"]
    if kind == "lax-or-strict":
        return [(None, schema["strict_schema" if strict_of(schema, config) else "lax_schema"])]
    if kind == "json-or-python":
        return [(None, schema["json_schema"])]
    if kind == "chain":
        return [(None, schema["steps"][0])]
    if kind == "definitions":
        return [(None, schema["schema"])]
    if kind.startswith("function-") and schema.get("json_schema_input_schema") is not None:
        return []
    if kind in ("model-fields", "typed-dict"):
        others = [(None, part) for part in _inner({**schema, "fields": None})]
        return [*schema["fields"].items(), *others]
    if kind == "dataclass-args":
        return [(field["name"], field) for field in schema["fields"]]
    return [(None, part) for part in _inner(schema)]


def _inner(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the core schemas that are directly in a core schema."""
    todo = [value for name, value in reversed(schema.items()) if name not in _NOT_READ]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if isinstance(one.get("type"), str):
                yield one
            else:
                todo += reversed(one.values())
        elif isinstance(one, (list, tuple)):
            todo += reversed(one)


def _parts(schema: Any, closed: frozenset[str] = _CLASSES) -> Iterator[dict[str, Any]]:
    """Yield a core schema and the core schemas in it; those of the kinds `closed` are not entered."""
    todo = [schema]
    while todo:
        one = todo.pop()
        yield one
        if one["type"] not in closed:
            todo += _inner(one)


def check_shared(schema: Any) -> None:
    """Raise `UnsupportedError` if the configuration of a model changes what a shared type without one accepts.

    Pydantic reads such a type, for example a recursive alias, with the configuration of the model that it is reached
    from first. A class has its own configuration.
    """
    definitions = _definitions(schema)
    shared = {ref: _options(one) for ref, one in definitions.items() if one["type"] not in _CLASSES}
    if not any(shared.values()):
        return
    inside, configs = _references(schema, definitions)
    for option, default in OF_STRINGS.items():
        models = [name for name, config in configs.items() if config.get(option, default) != default]
        reached = _reached(models, lambda name: inside.get(name, set()))
        found = next((ref for ref, options in shared.items() if option in options and ref in reached), None)
        if found is not None:
            raise UnsupportedError(
                f"the type {found.partition(':')[0]!r}, which is recursive or occurs several times, is not supported "
                f"where a model has {option}; use a class in place of an alias or a NamedTuple"
            )


def _options(schema: Any) -> set[str]:
    """Return the options of a configuration that can change which texts a core schema accepts. Classes are left out."""
    found: set[str] = set()
    for one in _parts(schema):
        if one["type"] == "str":
            found |= {f"str_{name}" for name in ("max_length", "min_length") if one.get(name) is None}
            if one.get("pattern") is not None or one.get("min_length"):
                found.add("str_strip_whitespace")
            if one.get("pattern") is not None:
                found.add("regex_engine")
        elif one["type"] == "bytes":
            found.add("val_json_bytes")
        if is_encoded_str(one):
            found |= {"str_to_lower", "str_to_upper"}
        least = length_bound(one) or ("min", one.get("min_length") or 0)
        if one["type"] != "str" and least[0] == "min" and least[1] > 1:
            found |= {"str_strip_whitespace", "str_to_lower", "str_to_upper"}  # items or keys can become equal
    return found


def _definitions(schema: Any) -> dict[str, Any]:
    """Return the definitions in a core schema by their references."""
    found = [one["definitions"] for one in _parts(schema, frozenset()) if one["type"] == "definitions"]
    return {one["ref"]: one for listed in found for one in listed}


def _references(schema: Any, definitions: Mapping[str, Any]) -> tuple[dict[Any, set[Any]], dict[Any, dict[str, Any]]]:
    """Return which classes and definitions each class and definition contains, and the configurations of classes.

    A definition is represented by its reference, a class by its `id`, and what is outside of both by None.
    """
    inside: dict[Any, set[Any]] = {None: set(), **{ref: set() for ref in definitions}}
    configs: dict[Any, dict[str, Any]] = {}
    outside = schema["schema"] if schema["type"] == "definitions" else schema
    todo: list[tuple[Any, Any]] = [(outside, None), *((one, ref) for ref, one in definitions.items())]
    while todo:
        one, owner = todo.pop()
        if one["type"] == "definition-ref":
            inside[owner].add(one["schema_ref"])
        elif one["type"] in _CLASSES:
            inside[owner].add(id(one))
            if id(one) in inside:
                continue
            owner = id(one)
            inside[owner] = set()
            configs[owner] = one.get("config") or {}
        todo += [(part, owner) for part in _inner(one)]
    return inside, configs


def _reached(begin: list[Any], following: Callable[[Any], set[Any]]) -> set[Any]:
    reached: set[Any] = set()
    todo = list(begin)
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += following(one)
    return reached
