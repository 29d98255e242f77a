"""Parser of EBNF as defined by ISO/IEC 14977."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from guideway.arguments import short_repr
from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsupportedError
from guideway.frontends.cfg.scanner import MAX_NESTING, Reader
from guideway.grammar.cfg import Alternation, Concatenation, Except, Ref, Repetition, Rule, Term, Text
from guideway.grammar.regular import EMPTY, literal

__all__ = ["IsoReader"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OTHER_SIGNS = {"(/": "[", "/)": "]", "(:": "{", ":)": "}"}


@dataclass(slots=True)
class _IsoGroup:
    """A group that is not closed yet.

    Attributes:
        closing: The closing bracket; "" for the whole right side of a rule.
        at: The position of the opening bracket.
        options: The alternatives so far, each as a sequence of terms.
        waits: True: a term is expected next. False: an operator or the end of the group is expected.
        count: How often the next term is repeated; None: it has no count.
        left: The left operand of a `-` whose right operand is the next term; None: there is no such `-`.
    """

    closing: str
    at: int
    options: list[list[Term]] = field(default_factory=lambda: [[]])
    waits: bool = True
    count: int | None = None
    left: Term | None = None

    def put(self, part: Term, place: str) -> None:
        """Add a term to the current alternative, with the pending count and the pending `-` applied.

        `place` is the position in the grammar text, for errors.
        """
        if self.count is not None:
            part, self.count = Repetition(part, self.count, self.count), None
        if self.left is not None:
            part, self.left = Except(self.left, part, place), None
        self.options[-1].append(part)
        self.waits = False

    def term(self) -> Term:
        """Return the alternation of all alternatives of the group."""
        return Alternation(tuple(Concatenation(tuple(one)) for one in self.options))


class IsoReader(Reader):
    """Parser of a grammar. A rule is `name = definitions ;` or `name = definitions .`, with commas between terms.

    Attributes:
        mentioned: For each name that a rule refers to, the first position of a reference.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.mentioned: dict[str, int] = {}

    def rules(self) -> list[Rule]:
        """Parse all rules, in order."""
        made: dict[str, Rule] = {}
        self._space()
        while self.next:
            at = self.at
            name = self.match(_NAME) or self.expected("a rule name")
            if name in made:
                self.fail(f"the rule {short_repr(name)} is defined twice", at)
            self._space()
            self.need("=", f" after the name {short_repr(name)}")
            made[name] = Rule(name, self._definitions(), self.place(at))
            self._space()
        return list(made.values())

    def _space(self) -> None:
        """Skip white space and comments. Comments may be nested."""
        while self.next:
            checkpoint()
            if self.next.isspace():
                self.at += 1
            elif self.text.startswith("(*", self.at) and not self.text.startswith("(*)", self.at):
                self._comment()
            else:
                return

    def _comment(self) -> None:
        at, depth = self.at, 0
        while True:
            if self.skip("(*"):
                depth += 1
            elif self.skip("*)"):
                depth -= 1
                if depth == 0:
                    return
            elif not self.next:
                self.fail("expected '*)' at the end of this comment", at)
            else:
                self.at += 1

    def _sign(self) -> str:
        """Read and return an operator or bracket, synonyms as one: `|` for `/` and `!`, `;` for `.`, `[` for `(/`."""
        pair = self.text[self.at : self.at + 2]
        if pair in _OTHER_SIGNS:
            self.at += 2
            return _OTHER_SIGNS[pair]
        self.at += 1
        sign = self.text[self.at - 1]
        return "|" if sign in "/!" else ";" if sign == "." else sign

    def _definitions(self) -> Term:
        groups = [_IsoGroup("", self.at)]
        while True:
            self._space()
            at, group = self.at, groups[-1]
            if not self.next:
                self.fail(
                    f"expected {group.closing!r} at the end of this group", group.at
                ) if group.closing else self.expected("';'")
            if group.waits and (self.next not in ",;.|/!)]}:-" or self.text.startswith("(/", at)):
                self._part(groups, at)
                continue
            sign = self._sign()
            if group.count is not None:
                self.expected("a part after the count", at)
            if sign == "-" and not group.waits:
                group.left, group.waits = group.options[-1].pop(), True
                continue
            if sign not in ",|;)]}" or not sign:
                self.expected("a part" if group.waits else "',', '|', '-' or ';'", at)
            if group.waits:
                group.put(Text(EMPTY), self.place(at))
            group.waits = True
            if sign == "|":
                group.options.append([])
            elif sign in ")]}":
                self._close(groups, sign, at)
            elif sign == ";":
                if group.closing:
                    self.fail(f"expected {group.closing!r} at the end of this group", group.at)
                return group.term()

    def _part(self, groups: list[_IsoGroup], at: int) -> None:
        """Parse a name, a quoted text, a count, or the opening bracket of a group. `at` is the current position."""
        group = groups[-1]
        if self.next in "0123456789":
            if group.count is not None:
                self.expected("a part after the count")
            group.count = self.number()
            self._space()
            self.need("*", " after a count")
        elif self.next in "([{":
            if len(groups) > MAX_NESTING:
                self.fail(f"groups may be nested at most {MAX_NESTING} deep", at, LimitExceededError)
            groups.append(_IsoGroup(_CLOSING[self._sign()], at))
        else:
            group.put(self._atom(at), self.place(at))

    def _close(self, groups: list[_IsoGroup], sign: str, at: int) -> None:
        if groups[-1].closing != sign:
            self.fail(f"{sign!r} has no matching opening bracket", at)
        part = groups.pop().term()
        groups[-1].put(part if sign == ")" else Repetition(part, 0, 1 if sign == "]" else None), self.place(at))

    def _atom(self, at: int) -> Term:
        quote = self.next
        if quote in ('"', "'"):
            end = self.text.find(quote, at + 1)
            if end < 0:
                self.fail(f"expected {quote} at the end of this text", at)
            if end == at + 1:
                self.fail("a quoted text must not be empty; write nothing for the empty text", at)
            self.at = end + 1
            return Text(literal(self.text[at + 1 : end]))
        if quote == "?":
            self.fail("text between question marks is informal and cannot be enforced", at, UnsupportedError)
        name = self.match(_NAME)
        if name is None:
            self.expected("a name, a quoted text or a group")
        self.mentioned.setdefault(name, at)
        return Ref(name)
