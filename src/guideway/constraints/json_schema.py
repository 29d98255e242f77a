"""`JsonSchema`: the JSON texts that a JSON Schema allows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any

from guideway.arguments import short_repr, shortened
from guideway.caching import cached_property
from guideway.constraints.base import Constraint, check_text
from guideway.constraints.captures import Reading, values_of
from guideway.constraints.known import DeferredLowering
from guideway.errors import (
    ConstraintError,
    InvalidConstraintError,
    InvalidTextError,
    LimitExceededError,
    SchemaWarning,
    UnsupportedError,
)
from guideway.frontends.json_schema.dnf import Expander
from guideway.frontends.json_schema.fast_path import FastPath
from guideway.frontends.json_schema.keyword_warnings import KeywordFinding, UnknownKeywords, findings, in_one_text
from guideway.frontends.json_schema.keywords import Dialect, dialect_named
from guideway.frontends.json_schema.lower import Lowering
from guideway.frontends.json_schema.references import Documents, simple_dialect
from guideway.frontends.json_schema.report import (
    MAX_PLACES,
    MAX_TRIAL_UNITS,
    MAX_TRIAL_WORK,
    Explanation,
    conflict,
    draw_examples,
    explain,
    keyword_report,
    value_at,
)
from guideway.frontends.json_schema.strings import MAX_STATES
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
from guideway.frontends.json_schema.validate import Validator
from guideway.frontends.json_schema.verbatim import bound, has_format, is_verbatim, marked, sources
from guideway.grammar.nodes import Grammar, Origin
from guideway.grammar.recognizer import is_empty as grammar_is_empty, single_bytes
from guideway.grammar.substrings import Source
from guideway.grammar.work import BoundedWork
from guideway.jsontext.copying import copy_schema, copy_value
from guideway.jsontext.decoder import loads, read_json
from guideway.jsontext.encoder import write_json
from guideway.jsontext.numbers import read_float, read_int, written_float
from guideway.jsontext.pointer import child, unescape

__all__ = ["JsonSchema", "explain_schema", "refuse_wrapper"]

Unusual = list[tuple[dict[str, Any], Origin, Dialect]]


def explain_schema(
    schema: Mapping[str, object] | bool | str,
    *,
    profile: Profile = "generation",
    formats: Formats = "known",
    dialect: str | None = None,
    resources: Mapping[str, object] | None = None,
    examples: int = 3,
) -> Explanation:
    """Explain what a schema enforces, even if `JsonSchema` refuses it or no value satisfies it.

    Args:
        schema: A mapping, a boolean, or JSON text.
        profile: As for `JsonSchema`.
        formats: As for `JsonSchema`.
        dialect: As for `JsonSchema`.
        resources: As for `JsonSchema`.
        examples: The maximum number of example texts.

    Returns:
        The effect of each keyword (`keyword_report`), the places that cannot be enforced with the reasons (`refusals`),
        example texts (`examples`), and for an unsatisfiable schema the keywords that contradict each other
        (`conflict`).

    Raises:
        InvalidConstraintError: The schema or another argument is not valid.
        UnsupportedError: The dialect that `$schema` names is not supported.
        LimitExceededError: The schema is too large.
    """
    style = make_style(profile, None, None, None, None, formats)
    document, named = _copied(schema)
    given = None if dialect is None else dialect_named(dialect)
    supplied = _copied_resources(resources)
    found = explain(Documents(document, given, supplied, named), style, examples)
    if found.conflict is None:
        return found
    source = JsonSchema(
        schema, profile=profile, formats=formats, dialect=dialect, resources=resources, unknown_keywords="ignore"
    )
    why = source.conflict(found.place)
    return found if why is None else replace(found, conflict=f"no value satisfies {why}")


def _copied_resources(resources: Mapping[str, object] | None) -> dict[str, Any]:
    """Return copies of the resources of a schema. The place of an error begins with the URI of the resource and "#"."""
    copies = {}
    for uri, one in (resources or {}).items():
        try:
            copies[uri] = copy_value(one)
        except ConstraintError as error:
            raise type(error)(f"in the resource {short_repr(uri)}: {error}", f"{uri}#{error.place or ''}") from error
    return copies


def _copied(schema: Mapping[str, object] | bool | str) -> tuple[dict[str, Any] | bool, bool]:
    """Return a copy of the document with exact numbers, and whether its subschemas may have identifiers or anchors."""
    if type(schema) is not dict and not isinstance(schema, (Mapping, bool, str)):  # the first test is faster
        raise InvalidConstraintError(
            f"a schema must be a mapping, a boolean or JSON text, got {type(schema).__name__}", ""
        )
    given = read_json(schema) if isinstance(schema, str) else schema
    document, named = copy_schema(given)  # a parsed text is copied, too, because the copy finds identifiers
    if not isinstance(document, (dict, bool)):
        raise InvalidConstraintError("a schema must be a JSON object or a boolean", "")
    if isinstance(document, dict):
        refuse_wrapper(document)
    return document, named


_COMMON = {"name", "description", "strict", "type"}
_WRAPPERS = {
    "schema": ("OpenAI's wrapper", _COMMON),
    "input_schema": ("a tool of Anthropic's API", _COMMON | {"cache_control"}),
    "parameters": ("a tool of OpenAI's API", _COMMON),
}
"""Objects of APIs that contain a schema: by the key of the schema, what the object is, and its other possible keys.

Of these keys, only "description" and "type" are keywords of JSON Schema.
"""

_WRAPPER_KEYS = {"json_schema", "function", *_WRAPPERS}


def refuse_wrapper(document: Mapping[str, Any]) -> None:
    """Raise `InvalidConstraintError` if a document is not a schema, but an object of an API that contains a schema."""
    if _WRAPPER_KEYS.isdisjoint(document):
        return
    kind = document.get("type")
    for outer, key in (("json_schema", "schema"), ("function", "parameters")):
        if kind == outer and isinstance(document.get(outer), Mapping):
            what = 'the "response_format"' if outer == "json_schema" else "a tool"
            raise InvalidConstraintError(
                f'this is {what} of OpenAI\'s API, not a schema; pass its "{outer}"["{key}"]', ""
            )
    for key, (what, others) in _WRAPPERS.items():
        if not isinstance(document.get(key), (Mapping, bool)) or not document.keys() <= {key, *others}:
            continue
        strict = key == "schema" and isinstance(document.get("strict"), bool)
        if strict or isinstance(document.get("name"), str) or kind == "json_schema":
            shown = ", ".join(map(repr, document))
            raise InvalidConstraintError(f'this is {what} with the keys {shown}, not a schema; pass its "{key}"', "")


def _report(found: list[KeywordFinding], how: UnknownKeywords) -> None:
    """Report keywords that probably do not do what their author expects. `found` is not empty.

    If `how` is "error", raises `InvalidConstraintError`. Otherwise issues a `SchemaWarning` at the line of the nearest
    caller outside this library.
    """
    text = in_one_text(found)
    if how == "error":
        raise InvalidConstraintError(text, found[0].place)
    here = sys._getframe()
    outside: FrameType | None = here
    while outside is not None and str(outside.f_globals.get("__name__")).partition(".")[0] in _INNER_MODULES:
        outside = outside.f_back
    caller = outside or here
    if len(_WARNED) > _MAX_WARNED:  # `warnings` adds an entry for each new text
        _WARNED.clear()
    module = str(caller.f_globals.get("__name__"))
    warnings.warn_explicit(text, SchemaWarning, caller.f_code.co_filename, caller.f_lineno, module, _WARNED)


_WARNED: dict[str | tuple[str, type[Warning], int], int] = {}
"""The registry with which `warnings` issues a text once for a line of code. It is cleared if it is too large."""

_MAX_WARNED = 1000
_INNER_MODULES = ("guideway", "functools")  # packages whose stack frames are skipped to find the caller


class JsonSchema(DeferredLowering, Constraint[Any]):
    """The JSON texts that a JSON Schema allows. The value is the JSON value.

    A keyword that cannot be enforced exactly is refused: `UnsupportedError` names the location of each such keyword.

    The profile "generation" allows texts on one line, with keys in the order of the schema, one spelling of each
    character of a string, and plain numbers: numbers have no exponent, and numbers of the type "integer" no fraction.
    Objects with `properties` may only have keys that the keywords of their schema name, unless it has
    `additionalProperties`. The profile "exact" allows every JSON text of every value that the schema allows.

    Args:
        schema: A mapping, a boolean, or JSON text.
        profile: "generation" or "exact". Each of the next four arguments overrides one aspect of it; None does not.
        key_order: "schema" or "any".
        whitespace: "one-line", "compact", "indented" (two spaces per level; levels from the ninth on are written on
            one line) or "any".
        escapes: "canonical" (one spelling of each character) or "any".
        numbers: "plain" or "any".
        formats: "known" (unknown format names have no effect), "annotate" (`format` has no effect, except "verbatim"
            with a source) or "strict" (unknown format names are refused).
        dialect: "draft-04" to "2020-12", for documents without `$schema`.
        resources: Documents by URI, for `$ref`. Nothing is fetched from the network.
        max_integer_digits: The maximum number of digits before the point in plain numbers, unless a bound or
            `multipleOf` needs more. Default: 19 for integers, 16 for other numbers.
        max_fraction_digits: The maximum number of digits after the point in plain numbers, unless a bound needs more.
            Default: 16. With a `multipleOf`, a number has only the digits that its multiples need.
        unknown_keywords: "warn" (a `SchemaWarning` names misspelt keywords, unknown formats and keywords of other
            drafts), "error" (these are refused, and all other names that are not keywords, except known annotations and
            names that begin with "x-") or "ignore".

    Raises:
        InvalidConstraintError: The schema or another argument is not valid, or the schema has keywords that
            `unknown_keywords` refuses.
        UnsupportedError: A keyword cannot be enforced exactly, `$schema` names an unknown dialect, or a reference is to
            a document that is not in `resources`.
        LimitExceededError: The schema is too large.
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
        max_integer_digits: int | None = None,
        max_fraction_digits: int | None = None,
        unknown_keywords: UnknownKeywords = "warn",
    ) -> None:
        if unknown_keywords not in ("warn", "error", "ignore"):
            raise InvalidConstraintError(
                f"unknown_keywords={short_repr(unknown_keywords)}: expected one of 'warn', 'error', 'ignore'"
            )
        self._document, self._named = _copied(schema)
        self._dialect = None if dialect is None else dialect_named(dialect)
        self._supplied = _copied_resources(resources) if resources else {}
        self._style = make_style(
            profile, key_order, whitespace, escapes, numbers, formats, max_integer_digits, max_fraction_digits
        )
        self._unknown_keywords = unknown_keywords
        self.quoted: str | None = None
        self._sources: dict[str, Source] = {}
        self._prepare()

    @cached_property
    def _unbound(self) -> Grammar:
        grammar, unusual = self._lowered(self._style)
        # Every schema with a `format` is in `unusual`, so the document need not be searched for the format.
        self.__dict__["is_verbatim"] = False
        if unusual:
            self.__dict__["is_verbatim"] = any(is_verbatim(schema.get("format")) for schema, _, _ in unusual)
            if self._unknown_keywords != "ignore":
                found = list(findings(unusual, self._style, self._unknown_keywords == "error"))
                if found:
                    self._stable = None  # so that the program is not stored on disk, and each process warns
                    _report(found, self._unknown_keywords)
        return grammar

    @cached_property
    def _grammar(self) -> Grammar:
        grammar = self._unbound
        return self._bound(grammar) if self.is_verbatim else grammar

    def _bound(self, grammar: Grammar) -> Grammar:
        """Return a grammar in which strings of the format "verbatim" are substrings of the source text.

        Without a source text they are any strings. With `formats="strict"` and without a source text, the placeholders
        remain, and the compiler refuses them.
        """
        if not self.is_verbatim or (self.quoted is None and self._style.formats == "strict"):
            return grammar
        return bound(grammar, None if self.quoted is None else self._sources)

    def quoting(self, text: str) -> JsonSchema:
        """Return this constraint with a source text: strings of the format "verbatim" must be substrings of it.

        Without a source text, the format has no effect, and `formats="strict"` refuses it.

        Args:
            text: The source text.

        Raises:
            InvalidConstraintError: The source is not a str, or has a lone surrogate.
            LimitExceededError: The source is too long.
        """
        made = self._copied_without_grammar()
        made.quoted = check_text(text, "the source")
        made._sources = sources(self._unbound, text)
        return made

    def verbatim(self, format: str) -> JsonSchema:
        """Return this constraint with a format in each string schema without `const`, `enum`, `format` and `pattern`.

        Args:
            format: The name of the format, such as "verbatim".
        """
        made = self._copied_without_grammar()
        made._document = marked(self._document, format)
        for name in ("schema", "_text", "_expander", "_unbound", "is_verbatim"):
            made.__dict__.pop(name, None)
        return made

    @cached_property
    def is_verbatim(self) -> bool:
        """Whether the document or `resources` has the format "verbatim". Schemas that are not used may be ignored."""
        return has_format([self._document, self._supplied])

    @property
    def quoted_sources(self) -> tuple[Source, ...]:
        """The source text as `Source` objects, one for each name of the format, such as "verbatim:ignore-case".

        The tuple is empty if there is no source text.
        """
        return tuple(self._sources.values())

    def excluding(self, values: Sequence[tuple[str, Any]], record: Any) -> JsonSchema:
        """Return this constraint without certain values at certain locations.

        Args:
            values: Pairs of a JSON Pointer and a JSON value that is not allowed there.
            record: A JSON value that fits this constraint and has these locations. Its text before each of the values
                fits the new constraint.
        """
        made = self._copied_without_grammar()
        uri = f"urn:guideway:excluding:{len(self._supplied)}"
        # The new keywords are in a separate document, because the draft of the original may not have them, or may
        # ignore them. Also, references to the root of the original, and `unevaluatedProperties` in it, keep their
        # meaning.
        made._supplied = {**self._supplied, uri: self._document}
        made._document = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": uri,  # not in `allOf`, so that the original determines the order of keys
            "allOf": [_without(place, value, record) for place, value in values],
        }
        made._unknown_keywords = "ignore"  # they were reported for the original
        for name in ("schema", "_text", "_expander", "_unbound", "_resources"):
            made.__dict__.pop(name, None)
        if made.quoted is not None:
            made._sources = sources(made._unbound, made.quoted)
        return made

    def _copied_without_grammar(self) -> JsonSchema:
        made = type(self).__new__(type(self))
        made.__dict__ = dict(self.__dict__)  # a copy, because other constraints may share this `__dict__`
        for name in (
            "_grammar",
            "_validator",
            "_digest",
            "_stable",
            "_stored",
        ):  # these belong to the original constraint
            made.__dict__.pop(name, None)
        return made

    def _lowered(self, style: Style) -> tuple[Grammar, Unusual]:
        """Lower the schema in a style.

        Returns:
            The grammar, with placeholders for verbatim strings; and the schemas that `findings` checks.
        """
        document = self._document
        plain = None if self._named else simple_dialect(document, self._dialect)
        with BoundedWork(""):
            if plain is None or style.whitespace == "indented" or not isinstance(document, dict):
                documents = self._documents()
                return Lowering(Expander(documents), style).run(), documents.unusual
            fast_path = FastPath(document, style, plain, self._general_path)
            return fast_path.run(), fast_path.unusual

    def _general_path(self, fast_path: FastPath) -> Lowering:
        documents = self._documents()
        documents.unusual = fast_path.unusual
        return Lowering(Expander(documents), fast_path.style, fast_path)

    def _documents(self) -> Documents:
        return Documents(self._document, self._dialect, self._supplied, self._named)

    @cached_property
    def _expander(self) -> Expander:
        """The `Expander` after the general path has lowered the document, for reports.

        If a limit is exceeded, the lowering ends early, and the reports lack the rest of the document.
        """
        made = Expander(self._documents())
        with suppress(LimitExceededError):  # the general path takes more steps than the fast path
            Lowering(made, self._style).run()
        return made

    @cached_property
    def schema(self) -> Any:
        """A copy of the schema, as a JSON value. Each access returns the same copy."""
        return copy_value(self._document, exact=False)

    def exact_schema(self) -> Any:
        """Return a copy of the schema, as a JSON value. `JsonSchema` reads all digits of its floats."""
        return copy_value(self._document, exact=False, parse_float=written_float)

    @cached_property
    def _text(self) -> str:
        return write_json(self._document)

    def grammar(self) -> Grammar:
        """Return the grammar."""
        return self._grammar

    def shape(self) -> Reading:
        """Return the function that captures each value under its JSON Pointer."""
        return Reading(values_of)

    def keyword_report(self) -> list[tuple[str, str, str]]:
        """Report the effect of each keyword, in all schemas that were visited when the document was lowered.

        For a schema that is refused, use `explain_schema`.

        Returns:
            One tuple per keyword: the JSON Pointer of its schema, its name, and its effect. The effect is "enforced",
            "annotation" or "no effect" (the keyword applies only to types that are not allowed there, or the keyword
            that it modifies is missing). For an unknown name, a note follows, such as "annotation: unknown keyword, did
            you mean 'properties'?".
        """
        return keyword_report(self._expander, self._style)

    def examples(self, count: int = 3, seed: int = 0) -> list[str]:
        """Return distinct texts that this constraint allows: first a shortest text, then random texts.

        Args:
            count: The maximum number of texts. There are fewer if the next one would take too much work, or if the
                random texts repeat too often.
            seed: The seed of the random choices.

        Raises:
            UnsatisfiableError: The schema allows no text.
            LimitExceededError: A shortest text takes too much work.
        """
        return draw_examples(self._grammar, count, seed)

    def conflict(self, place: str | None) -> str | None:
        """Return a phrase with the keywords that contradict each other; None: not known. See `Constraint.conflict`."""
        if len(self._expander.places) > MAX_PLACES:
            return None
        document, searched, left = copy_value(self._document), single_bytes(MAX_STATES), MAX_TRIAL_WORK

        def is_empty() -> bool:
            nonlocal left
            expander = Expander(Documents(document, self._dialect, self._supplied, True), left)
            try:
                return grammar_is_empty(Lowering(expander, self._style).run(), searched)
            except (InvalidConstraintError, UnsupportedError):  # without the keyword, the schema cannot be compiled
                return False
            finally:
                left -= expander.work

        try:
            with BoundedWork(units=MAX_TRIAL_UNITS):
                found = conflict(document, place or "", is_empty)
        except LimitExceededError:
            return None
        shown = [self._with_value(one) for one in found]
        return " and ".join(part for part in (", ".join(shown[:-1]), *shown[-1:]) if part) or None

    def _with_value(self, place: str) -> str:
        """Return the JSON Pointer of a keyword. A pattern, or a hint about the source text, follows in parentheses."""
        name, shown = place.rpartition("/")[2], shortened(place)
        if name == "format" and self.quoted is not None and is_verbatim(value_at(self._document, place)):
            return f"{shown} (no such string occurs in the source text; allow null, or an empty string)"
        value = value_at(self._document, place) if name == "pattern" else None
        return f"{shown} ({short_repr(value, 400)})" if isinstance(value, str) else shown

    def parse(self, text: str) -> Any:
        """Return the JSON value if the schema allows it, in any JSON spelling.

        If the exact profile of the schema exceeds a limit or is not supported, only texts that the constraint allows
        are accepted.

        Args:
            text: JSON text.

        Returns:
            The value. A number that is too large for a float (1e999), or too small (1e-999), is a `Decimal`.

        Raises:
            InvalidTextError: The text is not JSON, or the schema does not allow it. In the second case, the message has
                line and column, and `place` is the JSON Pointer.
            TypeError: `text` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        value = self.read(text)
        self._validator.check(text)
        return value

    @cached_property
    def _validator(self) -> Validator:
        exact = make_style("exact", None, None, None, None, self._style.formats)
        try:
            return Validator(self._bound(self._lowered(exact)[0]), True)
        except (LimitExceededError, UnsupportedError):  # the exact profile is too large or not supported
            return Validator(self._grammar, False)

    def _options(self) -> dict[str, Any]:
        """Return the arguments of the constructor, without the schema and `unknown_keywords`, as JSON values."""
        style = self._style
        limits = {"max_integer_digits": style.integer_digits, "max_fraction_digits": style.fraction_digits}
        return {
            **{name: digits for name, digits in limits.items() if digits is not None},
            "profile": "generation" if style.closed else "exact",
            "key_order": style.key_order,
            "whitespace": style.whitespace,
            "escapes": style.escapes,
            "numbers": "plain" if style.plain_numbers else "any",
            "formats": style.formats,
            "dialect": self._dialect and self._dialect.name,
            "resources": {uri: write_json(one) for uri, one in self._supplied.items()},
        }

    def read(self, text: str) -> Any:
        """Return the JSON value of a text, without checking it against the schema.

        Raises `InvalidTextError` if the text is not JSON.
        """
        try:
            return loads(text, parse_float=read_float, parse_int=read_int)
        except (ValueError, ConstraintError) as problem:
            raise InvalidTextError(f"the text is not JSON: {problem}", text=text) from problem

    def _content(self) -> object:
        return self._text, self._style, self._dialect and self._dialect.name, self._resources, self.quoted

    @cached_property
    def _resources(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((uri, write_json(one)) for uri, one in self._supplied.items()))

    def __repr__(self) -> str:
        return f"JsonSchema({self._text if len(self._text) < 200 else self._text[:200] + '…'})"


def _without(place: str, value: Any, record: Any) -> dict[str, Any]:
    """Return a schema that does not allow `value` at the JSON Pointer `place`.

    The schema determines the order of keys where the original does not. So it lists the keys of `record` up to those of
    the place, and the text of the record before the value still fits.
    """
    steps: list[tuple[str, Any]] = []
    here = record
    for part in place.split("/")[1:]:
        name = unescape(part)
        steps.append((name, here))
        here = child(here, name)
    made: dict[str, Any] = {"not": {"const": value}}
    for name, container in reversed(steps):
        if isinstance(container, list):
            made = {"prefixItems": [*[True] * int(name), made]}
        else:
            keys = list(container) if isinstance(container, dict) and name in container else [name]
            earlier = dict.fromkeys(keys[: keys.index(name)], True)
            made = {"properties": {**earlier, name: made}, "additionalProperties": True}
    return made
