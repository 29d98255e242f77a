"""Lowers assertions about strings to regular languages, for values and for keys; computes key classes.

A key class is the set of keys that pass the same tests, such as patterns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from guideway.caching import cached
from guideway.errors import ConstraintError, LimitExceededError, UnsatisfiableError, UnsupportedError
from guideway.frontends.formats import FORMATS, format_language
from guideway.frontends.json_schema.assertions import StringAssertions
from guideway.frontends.json_schema.style import Style
from guideway.frontends.json_schema.verbatim import is_verbatim, options_of, placeholder
from guideway.frontends.regex import parse_pattern
from guideway.grammar.lengths import of_length
from guideway.grammar.nodes import Grammar, Leaf
from guideway.grammar.program import shared
from guideway.grammar.recognizer import accepts, byte_automaton, is_empty, single_bytes
from guideway.grammar.regular import (
    ANY_TEXT,
    Chars,
    Complement,
    Concat,
    JsonEscaped,
    Literals,
    Regular,
    Spelling,
    Union,
    both,
    literal,
)
from guideway.jsontext.pointer import shown

if TYPE_CHECKING:
    from guideway._kernel import Automaton, KernelVocabulary

__all__ = [
    "HARMLESS_FORMATS",
    "MAX_CLASSES",
    "SPECIFIED_FORMATS",
    "EmptinessTest",
    "Test",
    "classes",
    "filter_enum",
    "finite_texts",
    "is_asserted",
    "matches",
    "passing",
    "pattern_language",
    "string",
    "text",
]

MAX_CLASSES = 64
"""The maximum number of key classes of one object."""

MAX_TESTS = 32
"""The maximum number of tests of the keys of one object, without finite tests. Their intersections are computed."""

MAX_STATES = 200_000
"""The maximum number of automaton states of the emptiness tests that share a vocabulary.

The tests for the key classes of one object share a vocabulary.
"""

MAX_NAMES = 4096
"""The maximum number of keys in an `enum` that are treated one by one. A longer `enum` is one key class."""

MAX_TEXTS = 64
"""The maximum number of keys of a pattern with finitely many matches, if these keys are treated one by one."""

SPECIFIED_FORMATS = frozenset(
    name
    for line in (
        "date date-time time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference uri-template",
        "iri iri-reference uuid json-pointer relative-json-pointer regex",
    )
    for name in line.split()
)
"""The formats of the specification. They are enforced, unless `Style.formats` is "annotate".

Any other name asserts nothing, except the names of the format "verbatim".
"""

HARMLESS_FORMATS = frozenset({"password", "path"})
"""Formats that assert nothing and are not refused with `formats="strict"`, because Pydantic writes them."""

# A condition on a string: an identifier, and the language of the decoded strings that meet the condition. Tests with
# equal identifiers have equal languages.
Test = tuple[Hashable, Regular]


def _leaf(language: Regular) -> Grammar:
    grammar = Grammar()
    grammar.root = grammar.add(Leaf(language))
    return grammar


class _NamedLanguage:
    """A test as a cache key. It is compared and hashed by its identifier, because hashing the language is slow."""

    __slots__ = ("language", "name")

    def __init__(self, test: Test) -> None:
        self.name, self.language = test

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NamedLanguage) and self.name == other.name


def matches(test: Test, text: str) -> bool:
    """Return whether a key passes a test, that is, whether its language contains the key."""
    return _matches(_NamedLanguage(test), text)


def passing(test: Test, texts: Iterable[str], holds: bool) -> dict[str, None]:
    """Return the texts that pass a test or, if `holds` is false, the texts that fail it, as the keys of a dict."""
    listed = finite_texts(test[1])
    if listed is None:
        return {text: None for text in texts if matches(test, text) is holds}
    passed = {text for text in listed if text.isascii() or matches(test, text)}  # lone surrogates never match
    return {text: None for text in texts if (text in passed) is holds}


@cached(4096, characters=1 << 20, size=lambda _, text: len(text))
def _matches(test: _NamedLanguage, text: str) -> bool:
    automaton = _automaton(test)
    return automaton is not None and accepts(automaton, text)


@cached(256)
def _automaton(test: _NamedLanguage) -> Automaton | None:
    try:
        return byte_automaton(_leaf(test.language))
    except UnsatisfiableError:
        return None


def _intersection(tests: Iterable[tuple[bool, _NamedLanguage]]) -> Regular:
    parts = [test.language if holds else Complement(test.language) for holds, test in tests]
    return both(*parts) if parts else ANY_TEXT


def classes(tests: list[Test], place: str) -> list[tuple[tuple[bool, ...], Regular]]:
    """Divide all strings into key classes by the tests that they pass.

    Args:
        tests: The tests.
        place: The JSON Pointer of the schema, for errors.

    Returns:
        For each class: for each test, whether the keys of the class pass it; and their language. Empty classes are left
        out, except that the class that fails all tests may be empty.

    Raises:
        LimitExceededError: There are too many tests or classes, or the emptiness tests need too many states.
    """
    if len(tests) > MAX_TESTS:
        raise LimitExceededError(
            f"at {shown(place)}: one object has more than {MAX_TESTS} patterns for its keys; use fewer patternProperties",
            place,
        )
    try:
        return _classes(tuple(map(_NamedLanguage, tests)))
    except LimitExceededError as problem:
        raise LimitExceededError(
            f"at {shown(place)}: the patterns divide the keys into too many classes: {problem}; "
            f"use fewer patternProperties that match the same keys",
            place,
        ) from None


@cached(1024)
def _classes(tests: tuple[_NamedLanguage, ...]) -> list[tuple[tuple[bool, ...], Regular]]:
    found: list[tuple[tuple[bool, _NamedLanguage], ...]] = [()]
    searched = single_bytes(MAX_STATES)  # a new vocabulary, so that its count of states does not include earlier calls
    disjoint: set[tuple[_NamedLanguage, _NamedLanguage]] = set()  # pairs of disjoint tests
    for number, test in enumerate(tests):
        disjoint.update(
            (other, test) for other in tests[:number] if is_empty(_leaf(both(other.language, test.language)), searched)
        )
        split = []
        for one in found:
            if any(holds and (other, test) in disjoint for holds, other in one):
                split.append((*one, (False, test)))  # no key of the class passes the test
                continue
            met = (*(part for part in one if part[0] or (part[1], test) not in disjoint), (True, test))
            if is_empty(_leaf(_intersection(met)), searched):
                split.append((*one, (False, test)))
                continue
            split.append((*one, (True, test)))
            if number == 0 or not is_empty(_leaf(_intersection((*one, (False, test)))), searched):
                split.append((*one, (False, test)))
        found = split
        if len(found) > MAX_CLASSES:
            raise LimitExceededError(f"more than {MAX_CLASSES}")
    made = []
    for one in found:
        passed = [test for holds, test in one if holds]
        needed = [
            (holds, test)
            for holds, test in one
            if holds or not any(_are_disjoint(disjoint, test, other) for other in passed)
        ]
        made.append((tuple(holds for holds, _ in one), _intersection(needed)))
    return made


def _are_disjoint(
    disjoint: set[tuple[_NamedLanguage, _NamedLanguage]], one: _NamedLanguage, other: _NamedLanguage
) -> bool:
    return (one, other) in disjoint or (other, one) in disjoint


class EmptinessTest:
    """Tests whether languages are empty.

    The tests share automaton states. A test that exceeds a limit is repeated with new states.
    """

    def __init__(self) -> None:
        self._searched: KernelVocabulary | None = None

    def __call__(self, language: Regular) -> bool:
        """Return whether a language is empty.

        Raises:
            LimitExceededError: This test alone needs more than `MAX_STATES` states.
        """
        if self._searched is not None:
            try:
                return is_empty(_leaf(language), self._searched)
            except LimitExceededError:
                pass
        self._searched = single_bytes(MAX_STATES)
        return is_empty(_leaf(language), self._searched)


_DEEPEST = 16


def finite_texts(language: Regular, deepest: int = _DEEPEST) -> tuple[str, ...] | None:
    """Return all texts of a language if its expression consists of short lists of texts. None for other languages.

    Also None if there are more than `MAX_TEXTS` texts (more than `MAX_NAMES` if the whole expression is `Literals`), or
    if the expression is nested deeper than `deepest`.
    """
    if not deepest:
        return None
    if isinstance(language, Literals):
        maximum = MAX_NAMES if deepest == _DEEPEST else MAX_TEXTS
        return language.texts if len(language.texts) <= maximum else None
    if isinstance(language, Chars):
        if sum(high - low + 1 for low, high in language.ranges) > MAX_TEXTS:
            return None
        return tuple(chr(code) for low, high in language.ranges for code in range(low, high + 1))
    if isinstance(language, Union):
        lists = [finite_texts(part, deepest - 1) for part in language.parts[: MAX_TEXTS + 1]]
        if len(language.parts) > MAX_TEXTS or any(one is None for one in lists):
            return None
        joined = tuple(dict.fromkeys(text for one in lists for text in one or ()))
        return joined if len(joined) <= MAX_TEXTS else None
    if isinstance(language, Concat):
        texts: tuple[str, ...] = ("",)
        for part in language.parts[: MAX_TEXTS + 1]:
            ends = finite_texts(part, deepest - 1)
            if ends is None or len(texts) * len(ends) > MAX_TEXTS or len(language.parts) > MAX_TEXTS:
                return None
            texts = tuple(start + end for start in texts for end in ends)
        return texts
    return None


def text(part: StringAssertions | None, style: Style) -> Regular:
    """Return the language of the decoded strings that satisfy assertions; None: all strings.

    `style.formats` decides which formats restrict strings.

    Raises:
        UnsupportedError: A pattern is not supported, or `formats="strict"` refuses a format.
        InvalidConstraintError: A pattern or the options of a format are invalid.
        LimitExceededError: A pattern is too large.
    """
    if part is None:
        return ANY_TEXT
    parts: list[Regular] = []
    for holds, kind, name, place in part.tests:
        language = pattern_language(name, place) if kind == "pattern" else _format(name, place, style)
        if language is not None:
            parts.append(language if holds else Complement(language))
        elif not holds:
            return Literals(())  # no string violates a format that asserts nothing
    if part.enum is not None:
        return both(Literals(tuple(part.enum)), *parts)
    parts = of_length(parts, part.minimum, part.maximum)
    if part.excluded:
        parts.append(Complement(Literals(tuple(sorted(part.excluded)))))
    return both(*parts) if parts else ANY_TEXT


@cached(2)
def _free_string(spelling: Spelling) -> Regular:
    return shared(Concat((literal('"'), JsonEscaped(ANY_TEXT, spelling), literal('"'))))


@cached(64)
def _shared_format(name: str) -> Regular:
    return shared(format_language(name))


def string(part: StringAssertions | None, style: Style) -> Regular:
    """Return the language of the JSON strings that satisfy assertions; None: all strings.

    Raises the errors of `text`.
    """
    if part is None:
        return _free_string(style.spelling)
    if part.enum is not None and not part.tests:
        return style.strings(part.enum)
    return style.quoted(text(part, style))


def filter_enum(part: StringAssertions) -> StringAssertions | None:
    """Remove the listed strings that violate a pattern, and then the patterns. Returns None if no string remains.

    Formats remain, and patterns that `pattern_language` refuses. `part.enum` must not be None.
    """
    enum: dict[str, None] = part.enum or {}
    left = []
    for test in part.tests:
        holds, kind, name, place = test
        try:
            known = (name, pattern_language(name, place)) if kind == "pattern" else None
        except ConstraintError:
            known = None
        if known is None:
            left.append(test)
        else:
            enum = passing(known, enum, holds)
    return StringAssertions(tests=tuple(left), enum=enum) if enum else None


@cached(1024, characters=1 << 20, size=len)
def _pattern(pattern: str) -> Regular:
    return parse_pattern(pattern, "ecma", search=True)


def pattern_language(pattern: str, place: str) -> Regular:
    """Return the language of the texts that contain a match of a pattern.

    Args:
        pattern: A regular expression of ECMAScript.
        place: The JSON Pointer of the pattern, which the errors name.

    Raises:
        UnsupportedError: The pattern has a construct that is not supported.
        InvalidConstraintError: The pattern is not a regular expression.
        LimitExceededError: The pattern is too large.
    """
    try:
        return _pattern(pattern)
    except UnsupportedError as problem:
        raise UnsupportedError(str(problem), place) from None
    except ConstraintError as problem:
        raise type(problem)(f"at {shown(place)}: {problem}", place) from None


def _format(name: str, place: str, style: Style) -> Regular | None:
    """Return the language of a format, or None if the format asserts nothing.

    Raises `UnsupportedError` for a format that `formats="strict"` refuses, and `InvalidConstraintError` for invalid
    options of the format "verbatim". `place` is the JSON Pointer of the keyword.
    """
    if is_asserted(name, style) and is_verbatim(name):
        options_of(name, place)
        return placeholder(name)
    if is_asserted(name, style):
        return _shared_format(name)
    if style.formats == "strict" and name not in HARMLESS_FORMATS:
        raise UnsupportedError(f"the format {shown(name)}", place)
    return None


def is_asserted(name: str, style: Style) -> bool:
    """Return whether the format with this name restricts strings in this style."""
    return is_verbatim(name) or (style.formats != "annotate" and name in SPECIFIED_FORMATS and name in FORMATS)
