"""Python types in wire documents: import paths and type arguments. Types are imported only if the caller consents."""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any

from guideway.arguments import short_list, short_repr, shortened
from guideway.errors import InvalidConstraintError

__all__ = ["Consent", "described", "rebuilt"]

Consent = Mapping[str, object] | Collection[object]
"""The types that a wire document may name.

It is a mapping from "module:name" to the type, or a collection. The collection has types, and names of modules: types
of these modules, and of modules inside them, may be imported.
"""

MAX_DEPTH = 32
"""Maximum nesting of type arguments."""

_KNOWN_MODULES = {
    "builtins": "int float complex str bytes bool list dict tuple set frozenset",
    "datetime": "date datetime time timedelta",
    "decimal": "Decimal",
    "uuid": "UUID",
    "ipaddress": "IPv4Address IPv6Address IPv4Network IPv6Network IPv4Interface IPv6Interface",
    "pathlib": "Path PurePath",
    "collections": "deque OrderedDict",
    "collections.abc": "Sequence Mapping Set Iterable",
    "typing": "Any",
}
"""Types of the standard library that need no consent, because importing their modules runs no code of other libraries.
"""
_KNOWN = {f"{module}:{name}" for module, names in _KNOWN_MODULES.items() for name in names.split()}


def described(annotation: Any, depth: int = MAX_DEPTH) -> dict[str, Any] | None:
    """Return a type as JSON data. None for types that have no such form, such as local classes and `Annotated` types.

    `depth` is the maximum nesting depth of type arguments. Deeper types give None, too.
    """
    if depth == 0:
        return None
    if annotation is None or annotation is types.NoneType:
        return {"none": True}
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        values = list(typing.get_args(annotation))
        return {"literal": values} if all(type(one) in (str, int, bool, types.NoneType) for one in values) else None
    if origin is typing.Annotated:
        return None
    if origin is not None:
        arguments = [
            {"ellipsis": True} if one is ... else described(one, depth - 1) for one in typing.get_args(annotation)
        ]
        if not all(arguments):
            return None
        if origin in (typing.Union, types.UnionType):
            return {"union": arguments}
        base = described(origin, depth - 1)
        return base and {**base, "arguments": arguments}
    module, name = getattr(annotation, "__module__", None), getattr(annotation, "__qualname__", None)
    if annotation is Any:
        module, name = "typing", "Any"
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name or module == "__main__":
        return None
    return {"path": f"{module}:{name}"}


def rebuilt(form: object, consent: Consent, depth: int = MAX_DEPTH) -> Any:
    """Return the type that a result of `described` describes.

    Args:
        form: The JSON data.
        consent: The types that may be imported, in addition to `_KNOWN_MODULES`.
        depth: The maximum nesting depth of type arguments.

    Raises:
        InvalidConstraintError: The data is malformed, or a type cannot be imported or has no consent.
    """
    if depth == 0:
        raise InvalidConstraintError(f"a type in the document is nested deeper than {MAX_DEPTH} levels")
    if not isinstance(form, Mapping):
        raise InvalidConstraintError(f"a type must be an object, got {type(form).__name__}")
    match dict(form):
        case {"none": True, **rest} if not rest:
            return None
        case {"literal": list(values), **rest} if (
            not rest and values and all(type(one) in (str, int, bool, types.NoneType) for one in values)
        ):
            return typing.Literal[tuple(values)]
        case {"union": list(parts), **rest} if not rest and parts:
            return typing.Union[tuple(rebuilt(part, consent, depth - 1) for part in parts)]  # noqa: UP007  # made at run time
        case {"path": str(path), **rest} if not rest:
            return _named(path, consent)
        case {"path": str(path), "arguments": list(parts), **rest} if not rest and parts:
            arguments = tuple(
                ... if part == {"ellipsis": True} else rebuilt(part, consent, depth - 1) for part in parts
            )
            base = _named(path, consent)
            try:
                return base[arguments if len(arguments) > 1 else arguments[0]]
            except TypeError as problem:
                raise InvalidConstraintError(
                    f"the type {short_repr(path)} takes no such arguments: {problem}"
                ) from problem
    raise InvalidConstraintError(
        f"a type must have 'path', 'union', 'literal' or 'none', got the keys {short_list(sorted(map(str, form)))}"
    )


def may_import(form: object, consent: Consent) -> bool:
    """Return whether every type in a result of `described` needs no consent or has the caller's consent."""
    todo = [form]
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping):
            path = one.get("path")
            if isinstance(path, str) and path not in _KNOWN and not _given(path, consent):
                return False
            todo += [one.get("arguments"), one.get("union")]
        elif isinstance(one, list):
            todo += one
    return True


def _given(path: str, consent: Consent) -> bool:
    if isinstance(consent, Mapping):
        return path in consent
    module = path.partition(":")[0]
    return any(
        module == one or module.startswith(one + ".") if isinstance(one, str) else described(one) == {"path": path}
        for one in consent
    )


def _named(path: str, consent: Consent) -> Any:
    module, _, name = path.partition(":")
    if path not in _KNOWN:
        if isinstance(consent, Mapping):
            if path in consent:
                return consent[path]
        else:
            for one in consent:
                if not isinstance(one, str) and described(one) == {"path": path}:
                    return one
        if not _given(path, consent):
            raise InvalidConstraintError(
                f"the document names the type {short_repr(path)}; pass it in types= to allow it (nothing is imported otherwise)"
            )
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as problem:
        raise InvalidConstraintError(
            f"the type {short_repr(path)} cannot be imported: {shortened(str(problem))}"
        ) from problem
    return found
