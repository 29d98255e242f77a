"""Checks of a whole core schema of Pydantic, whose parts are read differently from what they say alone.

In strict mode, Pydantic reads some types from JSON but not from the values that a function returns. A type that occurs
several times is read with the configurations of models that contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from guideway.arguments import short_repr
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

_EXTRA = "extra_fields_behavior"
"""The option of a configuration that says whether other keys than those of the fields are allowed."""

_BY_ALIAS = "validate_by_alias"
"""The option of a configuration that says whether fields with an alias are read from it, and not from their names."""

_Config: TypeAlias = "tuple[tuple[str, Any], ...]"
"""The values of `_EXTRA`, `_BY_ALIAS` and the options in `OF_STRINGS`, with their names."""

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
    """Yield a core schema and the core schemas in it. Those in it of the kinds `closed` are not entered."""
    todo = [schema]
    while todo:
        one = todo.pop()
        yield one
        if one is schema or one["type"] not in closed:
            todo += _inner(one)


def check_shared(schema: Any) -> None:
    """Raise `UnsupportedError` if a type that occurs several times accepts different texts in different places.

    The JSON Schema describes all occurrences of such a type once. Pydantic reads an alias or a NamedTuple with the
    configuration of the model around it, or, where the core schema only refers to it, of another model that contains
    it. A TypedDict or a dataclass of the standard library without a configuration has the configuration of the model
    around it. Models and dataclasses of Pydantic have their own.
    """
    for ref, found in _occurrences(schema).items():
        if (option := _changing(found)) is not None:
            raise UnsupportedError(
                f"the type {short_repr(ref.partition(':')[0])}, which is recursive or occurs several times, is not supported "
                f"where a model has {option}; use a class with its own configuration, such as a BaseModel, in its place"
            )


class _Occurrence(NamedTuple):
    """A place in which a core schema with a reference is used."""

    schema: Any
    """The core schema."""
    configs: set[_Config]
    """The configurations that it can be read with."""
    generators: Mapping[int, Any] = MappingProxyType({})
    """For a reference, by their `id`: the functions that make the aliases in the classes around it; None: no function."""


def _changing(found: list[_Occurrence]) -> str | None:
    """Return an option in which the occurrences of a type differ, and which changes what it accepts; None: none."""
    configs = [dict(one) for one in set().union(*(each.configs for each in found))]
    first = found[0].schema
    inherits = _inherits(first)
    if len(configs) > 1:
        options = _options(_class_in(first) if inherits else first)
        if "str_min_length" in options and any(one["str_min_length"] for one in configs):
            options.add("str_strip_whitespace")
        for name in OF_STRINGS:
            if name in options and any(one[name] != configs[0][name] for one in configs):
                return name
    if not inherits or len(found) == 1:
        return None
    if {"allow", "forbid"} <= {one[_EXTRA] for one in configs}:
        return "extra"  # "ignore" has the texts of "forbid": objects are closed
    keys = _keys(first)
    if any(_keys(one.schema) != keys for one in found if one.schema is not first):
        return "alias_generator"
    generators = {key: made for one in found for key, made in one.generators.items()}
    if len(generators) > 1:
        made = [_keys_with(first, one) for one in generators.values()]
        if made[0] is None or any(one != made[0] for one in made):
            return "alias_generator"
    if len({one[_BY_ALIAS] for one in configs}) > 1 and any(name != key for name, key in keys):
        return _BY_ALIAS
    return None


def _occurrences(schema: Any) -> dict[str, list[_Occurrence]]:
    """Return the places in which the types that are no models are used, by their references.

    A finished model contains copies of the types that occur in it once, and refers to the others.
    """
    definitions = _definitions(schema)
    inside, classes, places = _references(schema, definitions)
    inheriting = {name for name, one in classes.items() if _inherits(one)}
    closed = classes.keys() - inheriting
    default = _config_of({})
    # `used`: the configurations of all classes that contain a definition; `around`: of the innermost ones. A class that
    # inherits its configuration can have that of each innermost class around it, and that in its core schema.
    used: dict[Any, set[_Config]] = {None: {default}, **{ref: {default} for ref in definitions}}
    around: dict[Any, set[_Config]] = {None: {default}, **{ref: set() for ref in definitions}}
    by_config: dict[_Config, set[Any]] = {}

    def directly(names: set[Any]) -> set[Any]:
        """Return the definitions and the inheriting classes that these classes contain, but not in another class."""
        begin = set().union(*(inside[name] for name in names)) - closed
        reached = _reached(begin, lambda name: inside.get(name, set()) - closed)
        return reached & (definitions.keys() | inheriting)

    for name, one in classes.items():
        config = _config_of(one.get("config") or {})
        used[name] = around[name] = {config}
        by_config.setdefault(config, set()).add(name)
    for config, names in by_config.items():
        for ref in _reached(names, lambda name: inside.get(name, set())) & definitions.keys():
            used[ref].add(config)
        for ref in directly(names):
            around[ref].add(config)
    generators = _generators({name: classes[name] for name in closed}, directly)
    found: dict[str, list[_Occurrence]] = {}
    for one, owner in places:
        if one["type"] != "definition-ref":
            own = _class_in(one).get("config")
            configs = used[owner] if own is None else {_config_of(own)}
            found.setdefault(one["ref"], []).append(_Occurrence(one, configs))
        elif (definition := definitions.get(one["schema_ref"])) is not None and _inherits(definition):
            # A model that was finished before can have had another definition, which Pydantic then still uses.
            made = generators.get(owner, {})
            found.setdefault(one["schema_ref"], []).append(_Occurrence(definition, around[owner], made))
    return found


def _inherits(schema: Any) -> bool:
    """Return whether a core schema is of a TypedDict or a dataclass that takes the configuration around it."""
    of_class = _class_in(schema)
    return of_class["type"] in ("typed-dict", "dataclass") and not _has_config(of_class.get("cls"))


def _has_config(cls: Any) -> bool:
    # A TypedDict does not inherit the attributes of its bases.
    return hasattr(cls, "__pydantic_config__") or any(map(_has_config, getattr(cls, "__orig_bases__", ())))


def _config_of(config: Mapping[str, Any]) -> _Config:
    """Return the options of a configuration that say which strings and which keys are allowed."""
    default = {**OF_STRINGS, _EXTRA: "ignore", _BY_ALIAS: True}
    return tuple((name, value if config.get(name) is None else config[name]) for name, value in default.items())


def _keys(schema: Any) -> list[tuple[Any, ...]]:
    """Return the names of the fields of a TypedDict or a dataclass, and what they are read from."""
    one = next((one for one in _parts(_class_in(schema)) if one["type"] in ("typed-dict", "dataclass-args")), None)
    fields: Any = {} if one is None else one["fields"]
    listed = fields.items() if isinstance(fields, dict) else [(field["name"], field) for field in fields]
    return [(name, field.get("validation_alias") or name) for name, field in listed]


def _keys_with(schema: Any, generator: Any) -> list[tuple[Any, ...]] | None:
    """Return `_keys` in a model with this function that makes aliases. None: Pydantic cannot read the class alone."""
    from pydantic import ConfigDict, create_model

    cls = _class_in(schema).get("cls")
    try:
        model = create_model("Around", __config__=ConfigDict(alias_generator=generator), field=(cls, ...))
        whole = model.__pydantic_core_schema__
    except Exception:  # of Pydantic or of the function, or the class refers to local names
        return None
    of_class = (one for one in _parts(whole, frozenset()) if one["type"] in ("typed-dict", "dataclass"))
    one = next((one for one in of_class if one.get("cls") is cls), None)
    return None if one is None else _keys(one)


def _generators(classes: Mapping[Any, Any], directly: Callable[[set[Any]], set[Any]]) -> dict[Any, dict[int, Any]]:
    """Return the functions that make aliases, by their `id`, in each class, and around definitions and other classes.

    None in place of a function: the names are used.

    Args:
        classes: The classes that have their own configuration.
        directly: A function that returns what such classes contain, but not in another one.
    """
    found: dict[Any, dict[int, Any]] = {}
    users: dict[int, set[Any]] = {id(None): {None}}
    made: dict[int, Any] = {id(None): None}
    for name, one in classes.items():
        generator = _config_in(one["cls"]).get("alias_generator")
        made[id(generator)] = generator
        users.setdefault(id(generator), set()).add(name)
    for key, names in users.items():
        for name in names | directly(names):
            found.setdefault(name, {})[key] = made[key]
    return found


def _config_in(cls: Any) -> Mapping[str, Any]:
    """Return the configuration of a class of Pydantic, or of a TypedDict or a dataclass."""
    for name in ("model_config", "__pydantic_config__"):
        if (found := getattr(cls, name, None)) is not None:
            return dict(found)
    return next(filter(None, map(_config_in, getattr(cls, "__orig_bases__", ()))), {})


def _class_in(schema: Any) -> Any:
    """Return a core schema without the functions around it."""
    while schema["type"].startswith("function-") and schema.get("schema") is not None:
        schema = schema["schema"]
    return schema


def _options(schema: Any) -> set[str]:
    """Return the options of a configuration that can change which texts a core schema accepts.

    The classes in it are left out.
    """
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


def _references(
    schema: Any, definitions: Mapping[str, Any]
) -> tuple[dict[Any, set[Any]], dict[Any, Any], list[tuple[Any, Any]]]:
    """Return which classes and definitions each class and definition contains, the classes, and the shared types.

    The third value lists the references and the core schemas with a reference that are no models, each with the class
    or definition that directly contains it. A definition is represented by its reference, a class with a configuration
    by the `id` of its core schema, and what is outside of both by None.
    """
    inside: dict[Any, set[Any]] = {None: set(), **{ref: set() for ref in definitions}}
    classes: dict[Any, Any] = {}
    places: list[tuple[Any, Any]] = []
    outside = schema["schema"] if schema["type"] == "definitions" else schema
    todo: list[tuple[Any, Any]] = [(outside, None), *((one, ref) for ref, one in definitions.items())]
    while todo:
        one, owner = todo.pop()
        if one["type"] == "definition-ref":
            inside[owner].add(one["schema_ref"])
            places.append((one, owner))
        elif one.get("ref") is not None and _class_in(one)["type"] != "model":
            places.append((one, owner))
        if one["type"] == "model" or (one["type"] in _CLASSES and one.get("config") is not None):
            inside[owner].add(id(one))
            if id(one) in inside:
                continue
            owner = id(one)
            inside[owner] = set()
            classes[owner] = one
        todo += [(part, owner) for part in _inner(one)]
    return inside, classes, places


def _reached(begin: Iterable[Any], following: Callable[[Any], set[Any]]) -> set[Any]:
    reached: set[Any] = set()
    todo = list(begin)
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += following(one)
    return reached
