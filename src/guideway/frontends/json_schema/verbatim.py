"""The format "verbatim": strings that occur in a source text.

The name is "verbatim", or "verbatim:" with options separated by commas, as `OPTIONS` lists them. A schema is lowered once,
with a placeholder for the substrings; `bound` replaces it by the substrings of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from guideway.caching import cached
from guideway.errors import InvalidConstraintError
from guideway.frontends.json_schema.schema_copy import copied
from guideway.grammar.nodes import Grammar, Leaf, Object, Property
from guideway.grammar.regular import (
    ANY_TEXT,
    Complement,
    Concat,
    Intersection,
    JsonEscaped,
    Regular,
    Repeat,
    Substrings,
    Union,
)
from guideway.grammar.substrings import Source, source_of

__all__ = [
    "NAME",
    "OPTIONS",
    "bound",
    "has_format",
    "is_verbatim",
    "marked",
    "options_of",
    "placeholder",
    "sources",
]

NAME = "verbatim"
OPTIONS = {
    "any-boundary": "word_boundaries",
    "ignore-case": "ignore_case",
    "normalize-whitespace": "normalize_whitespace",
    "allow-empty": "allow_empty",
}
"""The options of the format, and the arguments of `source_of`. "any-boundary" switches one off, the others one on."""

_NOT_FREE = ("const", "enum", "format", "pattern")


def is_verbatim(name: object) -> bool:
    """Return whether this is a name of the format."""
    return isinstance(name, str) and (name == NAME or name.startswith(f"{NAME}:"))


def options_of(name: str, place: str = "") -> dict[str, bool]:
    """Return the arguments of `source_of` for a name. Raises `InvalidConstraintError` for an unknown option."""
    made = {"word_boundaries": True, "ignore_case": False, "normalize_whitespace": False, "allow_empty": False}
    for option in name.removeprefix(NAME).removeprefix(":").split(","):
        if option not in OPTIONS and (option or name != NAME):
            raise InvalidConstraintError(
                f"the format {name!r} has the option {option!r}; known are {', '.join(OPTIONS)}", place
            )
        if option:
            made[OPTIONS[option]] = option != "any-boundary"
    return made


@cached(32)
def placeholder(name: str) -> Substrings:
    """Return the language that `bound` replaces."""
    return Substrings("a", b"\1", b"\0\1", name=name)


def marked(schema: Any, name: str) -> Any:
    """Return a schema in which every free string has the format: one without `const`, `enum`, `format` and `pattern`."""

    def mark(one: dict[str, Any]) -> None:
        kinds = one.get("type")
        is_string = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
        if is_string and not any(word in one for word in _NOT_FREE):
            one["format"] = name

    return copied(schema, mark, unchanged=("propertyNames",))


def sources(grammar: Grammar, text: str) -> dict[str, Source]:
    """Return the source for each name of the format in a grammar."""
    names = {one.name for language in _languages(grammar) for one in _placeholders(language)}
    return {name: source_of(text, **options_of(name)) for name in sorted(names)}


def has_format(schema: object) -> bool:
    """Return whether a schema has the format at any place."""
    todo = [schema]
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping):
            if is_verbatim(one.get("format")):
                return True
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return False


def bound(grammar: Grammar, found: Mapping[str, Source] | None) -> Grammar:
    """Return a grammar with the substrings of a text in place of the placeholders; None: with any text."""
    languages: dict[str, Regular] = {} if found is None else {name: one.language for name, one in found.items()}
    replaced: dict[int, Regular] = {}

    def changed(language: Regular) -> Regular:
        if id(language) not in replaced:
            replaced[id(language)] = _replaced(language, languages) if _placeholders(language) else language
        return replaced[id(language)]

    def entries(given: tuple[Property, ...]) -> tuple[Property, ...]:
        return tuple(replace(one, key=changed(one.key)) for one in given)

    nodes = list(grammar.nodes)
    for number, node in enumerate(nodes):
        if isinstance(node, Leaf) and (text := changed(node.text)) is not node.text:
            nodes[number] = Leaf(text)
        elif isinstance(node, Object) and any(_placeholders(one.key) for one in (*node.properties, *node.open)):
            nodes[number] = replace(node, properties=entries(node.properties), open=entries(node.open))
    return replace(grammar, nodes=nodes)


def _languages(grammar: Grammar) -> list[Regular]:
    made: list[Regular] = []
    for node in grammar.nodes:
        if isinstance(node, Leaf):
            made.append(node.text)
        elif isinstance(node, Object):
            made += [one.key for one in (*node.properties, *node.open)]
    return made


def _parts(language: Regular) -> tuple[Regular, ...]:
    match language:
        case Concat(parts) | Union(parts) | Intersection(parts):
            return parts
        case Complement(part) | Repeat(part) | JsonEscaped(part):
            return (part,)
    return ()


def _placeholders(language: Regular) -> list[Substrings]:
    found: list[Substrings] = []
    todo = [language]
    while todo:
        one = todo.pop()
        if isinstance(one, Substrings):
            found += [one] if one.name else []
        todo += _parts(one)
    return found


def _replaced(language: Regular, languages: Mapping[str, Regular]) -> Regular:
    """Return a language with other placeholders, from the inner parts out: no recursion on the nesting."""
    made: dict[int, Regular] = {}
    todo = [language]
    while todo:
        one = todo[-1]
        if missing := [part for part in _parts(one) if id(part) not in made]:
            todo += missing
            continue
        todo.pop()
        parts = tuple(made[id(part)] for part in _parts(one))
        match one:
            case Substrings(name=name) if name:
                made[id(one)] = languages.get(name, ANY_TEXT)
            case Concat() | Union() | Intersection():
                made[id(one)] = type(one)(parts)
            case Complement() | Repeat() | JsonEscaped():
                made[id(one)] = replace(one, part=parts[0])
            case _:
                made[id(one)] = one
    return made[id(language)]
