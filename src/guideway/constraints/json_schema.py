"""`JsonSchema`: the JSON texts that a schema allows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Reading, values_of
from guideway.errors import (
    ConstraintError,
    InvalidConstraintError,
    InvalidTextError,
    LimitExceededError,
    UnsupportedError,
)
from guideway.frontends.json_schema.conflicts import MAX_PLACES, conflict
from guideway.frontends.json_schema.contract import contract
from guideway.frontends.json_schema.documents import Documents, simple_dialect
from guideway.frontends.json_schema.expand import Expander
from guideway.frontends.json_schema.explain import Explanation, draw_examples, explain
from guideway.frontends.json_schema.judging import Judge
from guideway.frontends.json_schema.keys import MAX_STATES
from guideway.frontends.json_schema.keywords import dialect_named
from guideway.frontends.json_schema.lowering import Lowering
from guideway.frontends.json_schema.straight import Straight
from guideway.frontends.json_schema.style import (
    Escapes,
    Formats,
    KeyOrder,
    Numbers,
    Profile,
    Style,
    Whitespace,
    make_style,
)
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import is_empty as grammar_is_empty, single_bytes
from guideway.jsontext.decoder import copy_schema, copy_value, loads, read_float, read_int, read_json, write_json

__all__ = ["JsonSchema", "explain_schema"]


def explain_schema(
    schema: Mapping[str, object] | bool | str,
    *,
    profile: Profile = "generation",
    formats: Formats = "known",
    dialect: str | None = None,
    resources: Mapping[str, object] | None = None,
    examples: int = 3,
) -> Explanation:
    """What a schema enforces, also where it is refused; of one without instances, the keywords that cannot be met
    together. Raises `InvalidConstraintError` and `LimitExceededError`.
    """
    style = make_style(profile, None, None, None, None, formats)
    document, named = _copied(schema)
    given = None if dialect is None else dialect_named(dialect)
    supplied = {uri: copy_value(one) for uri, one in (resources or {}).items()}
    found = explain(Documents(document, given, supplied, named), style, examples)
    if found.conflict is None:
        return found
    source = JsonSchema(schema, profile=profile, formats=formats, dialect=dialect, resources=resources)
    why = source.conflict(found.place)
    return found if why is None else replace(found, conflict=f"nothing meets {why}")


def _copied(schema: Mapping[str, object] | bool | str) -> tuple[dict[str, Any] | bool, bool]:
    """The document, and whether schemas inside of it may have identifiers."""
    if type(schema) is not dict and not isinstance(schema, (Mapping, bool, str)):  # which asks an abstract class
        raise InvalidConstraintError(f"a schema is a mapping, a boolean or JSON text, not {type(schema).__name__}", "")
    given = read_json(schema) if isinstance(schema, str) else schema
    document, named = copy_schema(given)  # of a text too: the copy tells whether there are identifiers inside
    if not isinstance(document, (dict, bool)):
        raise InvalidConstraintError("a schema is an object or a boolean", "")
    return document, named


class JsonSchema(Constraint[Any]):
    """The JSON texts that a JSON Schema allows, written as a profile says.

    `schema`: a mapping, a boolean, or JSON text. `profile="generation"` (the default): keys in schema order, one-line
    punctuation, canonical escapes and plain numbers; objects that name their `properties` are closed unless
    `additionalProperties` says otherwise. `profile="exact"`: every JSON text of every value that the schema allows.
    `key_order` ("schema", "any"), `whitespace` ("one-line", "compact", "indented" by two spaces a level, from the ninth
    on in one line, "any"), `escapes` ("canonical", "any") and `numbers` ("plain", "any") change one aspect.
    `formats`: "known" (names that the specification does not know say nothing), "annotate" (none says anything) or
    "strict" (unknown names are refused). `dialect`: that of documents without `$schema` ("draft-04" to "2020-12").
    `resources`: documents by URI, for `$ref`; nothing is ever fetched.

    What cannot be enforced exactly is refused: `UnsupportedError` names every such place; nothing is dropped silently.
    """

    def __init__(
        self,
        schema: Mapping[str, object] | bool | str,
        *,
        profile: Profile = "generation",
        key_order: KeyOrder | None = None,
        whitespace: Whitespace | None = None,
        escapes: Escapes | None = None,
        numbers: Numbers | None = None,
        formats: Formats = "known",
        dialect: str | None = None,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        self._document, self._named = _copied(schema)
        self._dialect = None if dialect is None else dialect_named(dialect)
        self._supplied = {} if resources is None else {uri: copy_value(one) for uri, one in resources.items()}
        self._style = make_style(profile, key_order, whitespace, escapes, numbers, formats)
        self._grammar = self._lowered(self._style)

    def _lowered(self, style: Style) -> Grammar:
        """The grammar in a style."""
        document = self._document
        plain = None if self._named else simple_dialect(document, self._dialect)
        if plain is None or style.whitespace == "indented" or not isinstance(document, dict):
            return Lowering(Expander(self._documents()), style).run()
        return Straight(document, style, plain, partial(self._rest, style)).run()

    def _rest(self, style: Style, straight: Straight) -> Lowering:
        return Lowering(Expander(self._documents()), style, straight)

    def _documents(self) -> Documents:
        return Documents(self._document, self._dialect, self._supplied, self._named)

    @cached_property
    def _expander(self) -> Expander:
        """All places of the document, read."""
        made = Expander(self._documents())
        with suppress(LimitExceededError):  # this way takes more steps than the one that led to the grammar
            Lowering(made, self._style).run()
        return made

    @cached_property
    def schema(self) -> Any:
        """The schema as a value of its own."""
        return copy_value(self._document, exact=False)

    @cached_property
    def _text(self) -> str:
        return write_json(self._document)

    def grammar(self) -> Grammar:
        """One node per place of the schema."""
        return self._grammar

    def shape(self) -> Reading:
        """Values by JSON Pointer."""
        return Reading(values_of)

    def keyword_report(self) -> list[tuple[str, str, str]]:
        """What became of every keyword that was reached: its schema's JSON Pointer, its name, and one of "enforced",
        "annotation" and "no effect" (it speaks about types that are not allowed there). Of a name that the draft does
        not know, more follows: "annotation: unknown keyword, did you mean 'properties'?". Of a schema that is refused,
        `explain_schema` tells as much.
        """
        return contract(self._expander, self._style)

    def examples(self, count: int = 3, seed: int = 0) -> list[str]:
        """Some texts that the schema allows, a shortest one first. Raises `UnsatisfiableError` where there is none."""
        return draw_examples(self._grammar, count, seed)

    def conflict(self, place: str | None) -> str | None:
        """The keywords that cannot be met together."""
        if len(self._expander.places) > MAX_PLACES:
            return None
        document, searched = copy_value(self._document), single_bytes(MAX_STATES)

        def is_empty() -> bool:
            documents = Documents(document, self._dialect, self._supplied, True)
            try:
                return grammar_is_empty(Lowering(Expander(documents), self._style).run(), searched)
            except (InvalidConstraintError, UnsupportedError):  # without a keyword that others need
                return False

        try:
            found = conflict(document, place or "", is_empty)
        except LimitExceededError:
            return None
        return " and ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part) or None

    def parse(self, text: str) -> Any:
        """The JSON value, if the schema allows it, however it is written; `InvalidTextError` says by line, column and JSON
        Pointer (`place`) where it does not. Numbers that no float is near to (1e999) are `Decimal`.
        """
        if not isinstance(text, str):
            raise TypeError(f"JSON text is a str; got {type(text).__name__}")
        value = self.read(text)
        self._judge.check(text)
        return value

    @cached_property
    def _judge(self) -> Judge:
        exact = make_style("exact", None, None, None, None, self._style.formats)
        try:
            return Judge(self._lowered(exact), True)
        except (LimitExceededError, UnsupportedError):  # too much may be written in every way
            return Judge(self._grammar, False)

    def __getstate__(self) -> dict[str, object]:
        """Without what is made again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_judge", "_expander")}

    def read(self, text: str) -> Any:
        """The JSON value of a text that is known to fit. Raises `InvalidTextError` for what is no JSON."""
        try:
            return loads(text, parse_float=read_float, parse_int=read_int)
        except (ValueError, ConstraintError) as problem:
            raise InvalidTextError(f"not JSON: {problem}", text=text) from problem

    def _content(self) -> object:
        return (self._text, self._style)

    def __repr__(self) -> str:
        return f"JsonSchema({self._text if len(self._text) < 200 else self._text[:200] + '…'})"
