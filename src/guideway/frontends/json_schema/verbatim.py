"""The format "verbatim": strings that occur in a source text.

The name of the format is "verbatim", or "verbatim:" and options of `OPTIONS` separated by commas. A schema is lowered
once, with placeholders for the substrings. `bound` replaces the placeholders by the substrings of a source text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from guideway.arguments import short_repr
from guideway.caching import cached
from guideway.errors import InvalidConstraintError
from guideway.frontends.json_schema.schema_copy import copied
from guideway.grammar.nodes import Grammar, Leaf, Object, Property
from guideway.grammar.regular import ANY_TEXT, Regular, Substrings, distinct, with_leaves
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
"""For each option of the format, the argument of `source_of` that it sets: "any-boundary" to False, the others to True.
"""

_NOT_FREE = ("const", "enum", "format", "pattern")


def is_verbatim(name: object) -> bool:
    """Return whether a value of the keyword `format` is a name of this format."""
    return isinstance(name, str) and (name == NAME or name.startswith(f"{NAME}:"))


def options_of(name: str, place: str = "") -> dict[str, bool]:
    """Return the options in a value of `format`, such as "verbatim:ignore-case", as arguments of `source_of`.

    Args:
        name: The value of `format`, with or without options.
        place: The JSON Pointer that the error names.

    Raises:
        InvalidConstraintError: An option is unknown.
    """
    made = {"word_boundaries": True, "ignore_case": False, "normalize_whitespace": False, "allow_empty": False}
    for option in name.removeprefix(NAME).removeprefix(":").split(","):
        if option not in OPTIONS and (option or name != NAME):
            raise InvalidConstraintError(
                f"the format {short_repr(name)} has the option {short_repr(option)}; known are {', '.join(OPTIONS)}",
                place,
            )
        if option:
            made[OPTIONS[option]] = option != "any-boundary"
    return made


@cached(32)
def placeholder(name: str) -> Substrings:
    """Return the placeholder for a value of `format`: a language that `bound` replaces."""
    return Substrings("a", b"\1", b"\0\1", name=name)


def marked(schema: Any, name: str) -> Any:
    """Return a copy of a schema in which every free string has the format `name`.

    A string is free if its schema has the type "string", alone or among others, and none of `const`, `enum`, `format`
    and `pattern`. Keys (`propertyNames`) are not free.
    """

    def mark(one: dict[str, Any]) -> None:
        kinds = one.get("type")
        is_string = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
        if is_string and not any(word in one for word in _NOT_FREE):
            one["format"] = name

    return copied(schema, mark, unchanged=("propertyNames",))


def sources(grammar: Grammar, text: str) -> dict[str, Source]:
    """Return, for each name of the format in a grammar, the `Source` of the text with the options in this name."""
    names = {one.name for language in _languages(grammar) for one in _placeholders(language)}
    return {name: source_of(text, **options_of(name)) for name in sorted(names)}


def has_format(schema: object) -> bool:
    """Return whether a member `format` names this format anywhere in a schema, also in data such as `default`."""
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
    """Return a copy of a grammar in which the placeholders are replaced.

    Args:
        grammar: The grammar.
        found: The result of `sources`: a placeholder becomes the substrings of its source. None: it becomes any text.
    """
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


def _placeholders(language: Regular) -> list[Substrings]:
    return [one for one in distinct(language) if isinstance(one, Substrings) and one.name]


def _replaced(language: Regular, languages: Mapping[str, Regular]) -> Regular:
    """Return a language in which each placeholder is replaced by the language with its name, or else by any text."""

    def written(one: Regular) -> Regular:
        return languages.get(one.name, ANY_TEXT) if isinstance(one, Substrings) and one.name else one

    return with_leaves(language, written)
