"""`RuleConstraint`: the base class of the grammar notations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from guideway.arguments import short_list, short_repr
from guideway.caching import cached_property
from guideway.constraints.base import Constraint, check_text
from guideway.constraints.captures import Rules
from guideway.constraints.coerce import source_of
from guideway.constraints.embed import term_of
from guideway.constraints.known import DeferredLowering
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError, UnsatisfiableError
from guideway.frontends.cfg.scanner import Reader
from guideway.grammar.cfg import Lowered, Rule, Text, lower
from guideway.grammar.cfg.terms import parts_first
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.recognizer import accepts, byte_automaton, has_token_names, is_empty
from guideway.grammar.work import BoundedWork

if TYPE_CHECKING:
    from guideway._kernel import Automaton

# The value of `Grammar.ahead`: masks are computed in advance for at most about 20 ms. Parsing a large grammar text
# takes about as long. The masks of a small grammar need about a tenth of this work.
_AHEAD = 2_000_000

__all__ = ["RuleConstraint", "already_defined"]


_NAME = re.compile(r"[^\W_][\w.-]*")  # the names that captures can have; none begins with "_"


def _checked(parts: object) -> Mapping[str, object]:
    """Return the argument `parts`, or {} for None. Raises `InvalidConstraintError` for wrong types and names."""
    if parts is None:
        return {}
    if not isinstance(parts, Mapping):
        raise InvalidConstraintError(f"parts must map names to constraints, got {type(parts).__name__}")
    for name in parts:
        if not isinstance(name, str):
            raise InvalidConstraintError(f"parts: names must be str, got {type(name).__name__}")
        if name.startswith("%"):
            raise InvalidConstraintError(f"parts: {short_repr(name)} cannot be a name in a grammar")
    return parts


class RuleConstraint(DeferredLowering, Constraint[str]):
    """The base class of the grammar notations. The value is the text.

    Attributes:
        text: The grammar text.
        start: The start symbol.
        parts: Constraints for names that the text does not define.
        unreachable: The names of the rules that are not reachable from the start symbol.
        unproductive: The names of the rules that derive no finite text. Alternatives that refer to them are removed.
            Rules that derive none only because of an empty difference (`"a" - "a"`) or pattern may be missing.
    """

    _ahead = _AHEAD

    def __init__(self, text: str, start: str | None, parts: Mapping[str, object] | None) -> None:
        self.text = check_text(text, "the grammar")
        self.parts = {name: source_of(part) for name, part in _checked(parts).items()}
        self._given_start = start
        self._automaton: Automaton | None = None
        self._prepare(*self.parts.values())

    def _derive(self) -> None:
        """Parse and lower the text, and set the attributes that `_derived` returns."""
        with BoundedWork():
            rules, self.start = self._read(self._given_start)
            lowered = self._take(rules, self.start, {rule.name: rule.name for rule in rules})
        self.unreachable, self.unproductive = lowered.unreachable, lowered.unproductive

    def _derived(self, name: str) -> Any:
        self._derive()
        return self.__dict__[name]

    @cached_property
    def start(self) -> str:
        """The start symbol."""
        found: str = self._derived("start")
        return found

    @cached_property
    def unreachable(self) -> tuple[str, ...]:
        """The names of the rules that are not reachable from the start symbol."""
        found: tuple[str, ...] = self._derived("unreachable")
        return found

    @cached_property
    def unproductive(self) -> tuple[str, ...]:
        """The names of the rules that derive no finite text. See the class."""
        found: tuple[str, ...] = self._derived("unproductive")
        return found

    @cached_property
    def _shape(self) -> Rules:
        found: Rules = self._derived("_shape")
        return found

    @cached_property
    def _grammar(self) -> Grammar:
        found: Grammar = self._derived("_grammar")
        return found

    def _take(self, rules: list[Rule], start: str, names: Mapping[str, str]) -> Lowered:
        """Lower rules. Stores the grammar in `_grammar`, and the rules, from which captures are found, in `_shape`.

        Args:
            rules: The rules.
            start: Their start symbol.
            names: The name of the capture of each rule that is captured, by the name of the rule.
        """
        shown = {rule: name for rule, name in names.items() if _NAME.fullmatch(name)}
        self._shape = Rules(tuple(rules), start, shown)
        try:
            lowered = lower(rules, start)
        except UnsatisfiableError as error:
            if (why := self.conflict(None)) is None:
                raise
            raise UnsatisfiableError(f"no text fits the grammar: no text matches {why}", error.place) from None
        self._grammar = lowered.grammar
        self._grammar.ahead = self._ahead
        return lowered

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        """Parse the text. Returns the rules and the start symbol.

        `start` is the argument of the constructor; None: the default of the notation.
        """
        raise NotImplementedError

    def _completed(self, rules: list[Rule], reader: Reader, mentioned: Mapping[str, int]) -> set[str]:
        """Add the constraints of `parts` to the rules, and return the names of all rules.

        `mentioned` maps the names that the text refers to, to their positions in the text. Raises
        `InvalidConstraintError` if one of them is not defined, or if the text defines a name of `parts`.
        """
        for rule in rules:
            if rule.name in self.parts:
                raise already_defined(rule.name, rule.place)
        rules += [Rule(name, term_of(part)) for name, part in self.parts.items()]
        names = {rule.name for rule in rules}
        for name, at in mentioned.items():
            if name not in names:
                reader.fail(f"rule {short_repr(name)} is not defined; defined rules: {short_list(sorted(names))}", at)
        return names

    def grammar(self) -> Grammar:
        """Return the lowered grammar."""
        return self._grammar

    def shape(self) -> Rules:
        """Return the rules.

        A rule captures its text if its name begins with a letter or a digit, and has only letters, digits, "_", "." and
        "-".
        """
        return self._shape

    def parse(self, text: str) -> str:
        """Return the text if the grammar derives it."""
        problem = f"does not match {self!r}"
        automaton = None if has_token_names() else self._automaton
        if automaton is None:
            try:
                automaton = byte_automaton(self._grammar)
            except UnsatisfiableError:
                raise does_not_fit(self._grammar, text, problem) from None
            if not has_token_names():
                self._automaton = automaton
        if not accepts(automaton, text):
            raise does_not_fit(automaton, text, problem)
        return text

    def conflict(self, place: str | None) -> str | None:
        """Return a phrase that names the patterns that no text matches, with their rules; None: there are none."""
        return ", ".join(one for rule in self._shape.rules for one in _empty_texts(rule)) or None

    def _content(self) -> object:
        return self.text, self.start, tuple(sorted(self.parts.items(), key=lambda item: item[0]))

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:59] + "…"
        return f"{type(self).__name__}({shown!r})"


def already_defined(name: str, place: str | None) -> InvalidConstraintError:
    """Return the error for a name of `parts` that the text defines. `place`: the position of the definition."""
    return InvalidConstraintError(
        f"parts: the text already defines {short_repr(name)}; rename the part, or remove the definition", place
    )


def _empty_texts(rule: Rule) -> Iterator[str]:
    """Yield a description of each regular part of a rule that no text matches."""
    for term in parts_first(rule.term):
        if isinstance(term, Text) and is_empty(leaf(term.language)):
            why = term.source.conflict(None) if isinstance(term.source, Constraint) else None
            yield f"{why or 'a pattern'} in the rule {short_repr(rule.name)}"
