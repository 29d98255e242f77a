"""What the sources of all notations share: rules, parts from elsewhere, and the grammar they come to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from guideway.constraints.base import Constraint, check_text
from guideway.constraints.captures import Rules
from guideway.constraints.embed import source_of, term_of
from guideway.errors import InvalidTextError
from guideway.frontends.cfg.scanner import Reader
from guideway.grammar.cfg import Lowered, Rule, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import accepts, byte_automaton

if TYPE_CHECKING:
    from guideway._kernel import Automaton

_AHEAD = 2_000_000  # units of work, some 20 ms: what reading a large grammar takes anyway; a small one needs a tenth

__all__ = ["RuleConstraint"]


_NAME = re.compile(r"[^\W_][\w.-]*")  # of a rule that captures what it derives


class RuleConstraint(Constraint[str]):
    """A grammar in some notation. The value of a text is the text itself."""

    def __init__(self, text: str, start: str | None, parts: Mapping[str, object] | None) -> None:
        self.text = check_text(text, "the grammar")
        self.parts = {name: source_of(part) for name, part in (parts or {}).items()}
        rules, self.start = self._read(start)
        lowered = self._take(rules, self.start, {rule.name: rule.name for rule in rules})
        self.unreachable = lowered.unreachable
        """Rules that nothing leads to from the start."""
        self.unproductive = lowered.unproductive
        """Rules that no text can end; whatever needs them is left out."""

    def _take(self, rules: list[Rule], start: str, names: Mapping[str, str]) -> Lowered:
        """Stand for what these rules derive; `names`: which rule of the text each is one of."""
        shown = {rule: name for rule, name in names.items() if _NAME.fullmatch(name)}
        self._shape = Rules(tuple(rules), start, shown)
        lowered = lower(rules, start)
        self._grammar = lowered.grammar
        self._grammar.ahead = _AHEAD
        self._automaton: Automaton | None = None
        return lowered

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        """The rules, and the one to start with."""
        raise NotImplementedError

    def _completed(self, rules: list[Rule], reader: Reader, mentioned: Mapping[str, int]) -> set[str]:
        """Adds the parts as rules; the names of all. Names that are mentioned must be among them."""
        names = {rule.name for rule in rules}
        rules += [Rule(name, term_of(part)) for name, part in self.parts.items() if name not in names]
        names.update(self.parts)
        for name, at in mentioned.items():
            if name not in names:
                reader.fail(f"the rule {name!r} is not defined; there are {', '.join(sorted(names))}", at)
        return names

    def grammar(self) -> Grammar:
        """The nodes that the rules come to."""
        return self._grammar

    def shape(self) -> Rules:
        """The rules. All capture what they derive, but those whose name begins with an underscore."""
        return self._shape

    def parse(self, text: str) -> str:
        """The text itself, if the grammar derives it."""
        if self._automaton is None:
            self._automaton = byte_automaton(self._grammar)
        if not accepts(self._automaton, text):
            raise InvalidTextError(f"{text!r} is not derived by {self!r}")
        return text

    def _content(self) -> object:
        return self.text, self.start, tuple(sorted(self.parts.items(), key=lambda item: item[0]))

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:59] + "…"
        return f"{type(self).__name__}({shown!r})"
