"""Languages of keys: which patterns a name matches, and the key classes of all other names.

A key class is the set of keys that match the same patterns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from guideway.caching import cached
from guideway.errors import LimitExceededError, UnsatisfiableError
from guideway.grammar.nodes import Grammar, Leaf
from guideway.grammar.recognizer import accepts, byte_automaton, is_empty, single_bytes
from guideway.grammar.regular import ANY_TEXT, Chars, Complement, Concat, Literals, Regular, Union, both
from guideway.jsontext.pointer import shown

if TYPE_CHECKING:
    from guideway._kernel import Automaton, KernelVocabulary

__all__ = ["MAX_CLASSES", "EmptinessTest", "Test", "classes", "finite_texts", "matches", "passing"]

MAX_CLASSES = 64
"""The maximum number of key classes of one object."""

MAX_TESTS = 32
"""The maximum number of patterns of one object that are not lists of names. Their intersections are computed."""

MAX_STATES = 25_000
"""The maximum number of states in the computation of key classes, for all patterns of an object together."""

MAX_TEXTS = 64
"""The maximum number of keys that a composed pattern may list to be treated as names."""

MAX_NAMES = 4096
"""The maximum number of keys in a list of literals (an enum) to be treated as names. A longer list is a key class."""

Test = tuple[Hashable, Regular]  # an identifier that is unique across schemas, and the language


def _leaf(language: Regular) -> Grammar:
    grammar = Grammar()
    grammar.root = grammar.add(Leaf(language))
    return grammar


class _Same:
    """A language that is compared by its identifier, because hashing the language would traverse it."""

    __slots__ = ("language", "name")

    def __init__(self, test: Test) -> None:
        self.name, self.language = test

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.name == other.name


def matches(test: Test, text: str) -> bool:
    """Whether a key passes a test."""
    return _matches(_Same(test), text)


def passing(test: Test, texts: Iterable[str], holds: bool) -> dict[str, None]:
    """The texts that pass a test or, if not `holds`, fail it. A finite language is a set, so its texts are looked up."""
    listed = finite_texts(test[1])
    if listed is None:
        return {text: None for text in texts if matches(test, text) is holds}
    passed = {text for text in listed if text.isascii() or matches(test, text)}  # not a lone surrogate
    return {text: None for text in texts if (text in passed) is holds}


@cached(4096, characters=1 << 20, size=lambda _, text: len(text))
def _matches(test: _Same, text: str) -> bool:
    automaton = _automaton(test)
    return automaton is not None and accepts(automaton, text)


@cached(256)
def _automaton(test: _Same) -> Automaton | None:
    try:
        return byte_automaton(_leaf(test.language))
    except UnsatisfiableError:
        return None


def _met(tests: Iterable[tuple[bool, _Same]]) -> Regular:
    parts = [test.language if holds else Complement(test.language) for holds, test in tests]
    return both(*parts) if parts else ANY_TEXT


def classes(tests: list[Test], place: str) -> list[tuple[tuple[bool, ...], Regular]]:
    """The nonempty key classes: which tests their keys pass, and their language.

    Raises:
        LimitExceededError: If there are too many classes, or if they need too many states.
    """
    if len(tests) > MAX_TESTS:
        raise LimitExceededError(
            f"at {shown(place)}: one object has more than {MAX_TESTS} patterns for its keys; use fewer patternProperties",
            place,
        )
    try:
        return _classes(tuple(map(_Same, tests)))
    except LimitExceededError as problem:
        raise LimitExceededError(
            f"at {shown(place)}: the patterns divide the keys into too many classes: {problem}; "
            f"use fewer patternProperties that match the same keys",
            place,
        ) from None


@cached(1024)
def _classes(tests: tuple[_Same, ...]) -> list[tuple[tuple[bool, ...], Regular]]:
    found: list[tuple[tuple[bool, _Same], ...]] = [()]
    searched = single_bytes(MAX_STATES)  # a new instance, so that the cost does not depend on earlier calls
    apart: set[tuple[_Same, _Same]] = set()  # pairs of disjoint tests
    for number, test in enumerate(tests):
        apart.update(
            (other, test) for other in tests[:number] if is_empty(_leaf(both(other.language, test.language)), searched)
        )
        split = []
        for one in found:
            if any(holds and (other, test) in apart for holds, other in one):
                split.append((*one, (False, test)))  # the same keys
                continue
            met = (*(part for part in one if part[0] or (part[1], test) not in apart), (True, test))
            if is_empty(_leaf(_met(met)), searched):
                split.append((*one, (False, test)))
                continue
            split.append((*one, (True, test)))
            if number == 0 or not is_empty(_leaf(_met((*one, (False, test)))), searched):
                split.append((*one, (False, test)))
        found = split
        if len(found) > MAX_CLASSES:
            raise LimitExceededError(f"more than {MAX_CLASSES}")
    made = []
    for one in found:
        passed = [test for holds, test in one if holds]
        needed = [
            (holds, test) for holds, test in one if holds or not any(_pair(apart, test, other) for other in passed)
        ]
        made.append((tuple(holds for holds, _ in one), _met(needed)))
    return made


def _pair(apart: set[tuple[_Same, _Same]], one: _Same, other: _Same) -> bool:
    return (one, other) in apart or (other, one) in apart


class EmptinessTest:
    """Tests whether languages are empty. Tests share their states as long as these are few."""

    def __init__(self) -> None:
        self._searched: KernelVocabulary | None = None

    def __call__(self, language: Regular) -> bool:
        """Whether a language is empty. Raises `LimitExceededError` if this needs too many states."""
        if self._searched is not None:
            try:
                return is_empty(_leaf(language), self._searched)
            except LimitExceededError:
                pass
        self._searched = single_bytes(MAX_STATES)
        return is_empty(_leaf(language), self._searched)


_DEEPEST = 16


def finite_texts(language: Regular, deepest: int = _DEEPEST) -> tuple[str, ...] | None:
    """All texts of a language that is syntactically a short list, else None. A list of literals may be longer."""
    if not deepest:
        return None
    if isinstance(language, Literals):
        most = MAX_NAMES if deepest == _DEEPEST else MAX_TEXTS
        return language.texts if len(language.texts) <= most else None
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
