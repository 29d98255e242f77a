"""Parser of the W3C's EBNF (XML 1.0 specification, section 6)."""

from __future__ import annotations

import re

from guideway.arguments import short_repr
from guideway.background import checkpoint
from guideway.errors import UnsupportedError
from guideway.frontends.cfg.scanner import Groups, Reader
from guideway.grammar.cfg import Except, Ref, Rule, Term, Text
from guideway.grammar.regular import Chars, literal

__all__ = ["W3cReader"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_HEAD = re.compile(r"(?:\[\d+[a-z]?\]\s*)?([A-Za-z_][A-Za-z0-9_.-]*)\s*::=")
_NOTE = re.compile(r"\[\s*(?:wfc|vc|WFC|VC|NSC|nsc)\s*:")
_SPACE = re.compile(r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/)*")


class W3cReader(Reader):
    """Parser of a grammar. A rule begins with `name ::=` anywhere in a line, optionally after a number in brackets.

    Attributes:
        mentioned: For each name that a rule refers to, the first position of a reference.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.mentioned: dict[str, int] = {}
        # by the `id` of a sequence (a list of terms) that has a `-`: the position of the `-` in the text
        self._minus: dict[int, int] = {}

    def rules(self) -> list[Rule]:
        """Parse all rules, in order."""
        made: dict[str, Rule] = {}
        self._space()
        while self.next:
            checkpoint()
            at = self.at
            head = _HEAD.match(self.text, at)
            if head is None:
                self.expected("a rule: a name and '::='")
            name = head[1]
            if name in made:
                self.fail(f"the rule {short_repr(name)} is defined twice", at)
            self.at = head.end()
            self._space()
            groups = Groups(self)
            while self.next and not _HEAD.match(self.text, self.at):
                self._element(groups)
                self._space()
            self._subtract(groups)
            made[name] = Rule(name, groups.done(), self.place(at))
        return list(made.values())

    def _space(self) -> None:
        self.match(_SPACE)
        if self.text.startswith("/*", self.at):
            self.fail("expected '*/' at the end of this comment")

    def _subtract(self, groups: Groups) -> None:
        """If the current sequence, which is complete, has a `-`, replace its two terms by an `Except`."""
        at = self._minus.pop(id(groups.series), None)
        if at is None:
            return
        if len(groups.series) != 2:
            self.fail("'-' needs exactly one part on each side; put longer operands in parentheses", at)
        groups.series[:] = [Except(groups.series[0], groups.series[1], self.place(at))]

    def _element(self, groups: Groups) -> None:
        at = self.at
        if self.skip("|"):
            if not groups.series:
                self.expected("a part before '|'", at)
            self._subtract(groups)
            groups.bar()
        elif self.skip("("):
            groups.open(")", at)
        elif self.skip(")"):
            if not groups.inside:
                self.fail("this ')' has no matching '('", at)
            self._subtract(groups)
            groups.add(groups.close())
        elif self.skip("-"):
            if len(groups.series) != 1:
                self.fail("'-' needs exactly one part on each side; put longer operands in parentheses", at)
            self._minus[id(groups.series)] = at
        elif self.next and self.next in "*+?":
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.next]
            self.at += 1
            groups.repeat(least, most, at)
        else:
            groups.add(self._atom(at))

    def _atom(self, at: int) -> Term:
        if self.next in ('"', "'"):
            quote = self.next
            end = self.text.find(quote, at + 1)
            if end < 0:
                self.fail(f"expected {quote} at the end of this text", at)
            self.at = end + 1
            return Text(literal(self.text[at + 1 : end]))
        if self.skip("#x"):
            return Text(literal(chr(self.hex(None))))
        if _NOTE.match(self.text, at):
            self.fail("constraints in prose are informal and cannot be enforced", at, UnsupportedError)
        if self.skip("["):
            return Text(self._class(at))
        name = self.match(_NAME)
        if name is None:
            self.expected("a name, a quoted text, a class, '#x…' or a group")
        self.mentioned.setdefault(name, at)
        return Ref(name)

    def _class(self, at: int) -> Chars:
        negated = self.skip("^")
        ranges: list[tuple[int, int]] = []
        while not self.skip("]"):
            if not self.next or self.next == "\n":
                self.fail("expected ']' at the end of this class", at)
            here = self.at
            low = high = self._char()
            if self.next == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._char()
            if high < low:
                self.fail("the start of this range is greater than its end", here)
            ranges.append((low, high))
        return self.set_of(ranges, negated, at)

    def _char(self) -> int:
        if self.skip("#x"):
            return self.hex(None)
        self.at += 1
        return ord(self.text[self.at - 1])
