"""Writes a grammar as context-free rules, for exports to the notations of other libraries.

`rules_of` rewrites objects and arrays as rules. The right side of each rule is a term: a character class, a fixed text,
a concatenation, an alternation, a repetition or a reference. The rules derive exactly the texts of the grammar, or with
`duplicate_keys`, also texts in which a key occurs twice. If that is impossible, `UnsupportedError` names what a
context-free grammar cannot express.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsupportedError
from guideway.grammar.derivatives import MAX_STATES, Speller, determinized
from guideway.grammar.nodes import Alternative, Array, Grammar, Leaf, Number, Object, Sequence, Value
from guideway.grammar.regular import (
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    Literals,
    Regular,
    Repeat,
    Union,
    chars,
    distinct,
    parts_of,
)
from guideway.grammar.work import spend

__all__ = ["MAX_RULES", "Class", "FixedText", "Join", "RuleRef", "Rules", "Term", "TermChoice", "Times", "rules_of"]

MAX_RULES = 50_000
"""Maximum number of rules of an export."""


@dataclass(frozen=True)
class FixedText:
    """A fixed text."""

    text: str


@dataclass(frozen=True)
class Class:
    """One character of a class, which is not empty."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Join:
    """A concatenation."""

    parts: tuple[Term, ...]


@dataclass(frozen=True)
class TermChoice:
    """An alternation; without parts: the empty language."""

    parts: tuple[Term, ...]


@dataclass(frozen=True)
class Times:
    """`least` to `most` repetitions of a term (None: unbounded)."""

    part: Term
    least: int
    most: int | None


@dataclass(frozen=True)
class RuleRef:
    """A reference to a rule by its number."""

    rule: int


Term = FixedText | Class | Join | TermChoice | Times | RuleRef
Rules = list[Term]

_SHORT = 8
"""A term that occurs several times is written at each place if it consists of at most this many terms.

A larger one becomes a rule.
"""

_TERM_STEPS = 20
"""The steps that are counted for a term, which takes about 10 microseconds from the expression to its text."""

_ENTRY_STEPS = 10
"""The steps that are counted each time that a rule of an object contains an entry, or a rule of an array an item.

The rules of an object with 14 keys in any order contain 115,000 entries. This must not reach the limit of an export.
"""

_FEW_KEYS = 3
"""If an object has more properties, in any order, each entry after the first one has a rule."""

_MAX_DEPTH = 50
"""The nesting depth at which a term becomes a rule. It bounds the recursion of functions that read terms."""

_SPACE = Times(Class(chars("\t\n", "\r\r", "  ").ranges), 0, None)


def rules_of(grammar: Grammar, *, duplicate_keys: bool = False, limit: int = MAX_RULES) -> Rules:
    """Return the right sides of the rules of a grammar by number. Rule 0 is the root.

    Args:
        grammar: The grammar.
        duplicate_keys: Whether the rules may derive objects with a key that occurs twice, if the object has open
            properties. A context-free grammar cannot exclude this, so such objects raise an error otherwise.
        limit: The maximum number of rules.

    Raises:
        UnsupportedError: The grammar has no equivalent context-free rules, or contains special tokens.
        LimitExceededError: There would be too many rules, or the automaton of an expression is too large.
    """
    return _Maker(grammar, duplicate_keys, limit).run()


class _Written(NamedTuple):
    """The term of an expression.

    Attributes:
        expression: The expression. It is stored so that its identity, the key of `_Maker._terms`, stays valid.
        term: The term.
        size: The number of terms that the term consists of, including itself. A reference counts as one.
        depth: The nesting depth of the term.
    """

    expression: Regular
    term: Term
    size: int
    depth: int


def _written_parts(one: Regular) -> tuple[Regular, ...]:
    """Return the parts of an expression whose terms are parts of its term."""
    return () if isinstance(one, (Intersection, Complement)) else parts_of(one)


class _Maker:
    def __init__(self, grammar: Grammar, duplicate_keys: bool, limit: int) -> None:
        self._grammar, self._duplicates, self._limit = grammar, duplicate_keys, limit
        self._rules: list[Term | None] = []
        self._nodes: dict[int, int] = {}
        self._speller = Speller()
        self._terms: dict[int, _Written] = {}  # by the identity of the expression
        self._todo: list[Callable[[], None]] = []

    def run(self) -> Rules:
        self._node(self._grammar.root)
        while self._todo:
            checkpoint()
            self._todo.pop()()
        return [rule if rule is not None else TermChoice(()) for rule in self._rules]

    def _reserve(self) -> int:
        if len(self._rules) >= self._limit:
            raise self._too_many()
        self._rules.append(None)
        return len(self._rules) - 1

    def _too_many(self) -> LimitExceededError:
        return LimitExceededError(f"the exported grammar needs more than {self._limit:,} rules")

    def _node(self, number: int) -> RuleRef:
        if number not in self._nodes:
            rule = self._nodes[number] = self._reserve()
            self._todo.append(lambda: self._define(rule, number))
        return RuleRef(self._nodes[number])

    def _define(self, rule: int, number: int) -> None:
        node = self._grammar.nodes[number]
        match node:
            case Leaf(text):
                self._rules[rule] = self._language(text)
            case Sequence(parts):
                self._rules[rule] = Join(tuple(map(self._node, parts)))
            case Alternative(parts):
                self._rules[rule] = TermChoice(tuple(map(self._node, parts)))
            case Object():
                self._rules[rule] = self._object(node, number)
            case Array():
                self._rules[rule] = self._array(node, number)
            case Number():
                raise UnsupportedError(
                    "numbers with divisibility or in any spelling are not context-free; remove multipleOf or use the"
                    ' profile "generation"',
                    self._grammar.place(number),
                )
            case None:
                raise AssertionError(number)

    # -- objects and arrays

    def _ways(self, value: Value) -> list[tuple[int, RuleRef]]:
        if isinstance(value, int):
            return [(0, self._node(value))]
        return [(way.marks, self._node(way.node)) for way in value]

    def _object(self, node: Object, index: int) -> Term:
        if node.open and not self._duplicates and node.maximum not in (0, 1):
            raise UnsupportedError(
                "a context-free grammar cannot exclude that an open key occurs twice; set additionalProperties to false"
                " or pass duplicate_keys=True",
                self._grammar.place(index),
            )
        mark, size = node.punctuation, len(node.properties)
        values = [self._ways(entry.value) for entry in (*node.properties, *node.open)]
        if not node.ordered:
            possible = sum(map(bool, values[:size]))
            chosen = possible if node.maximum is None else min(node.maximum, possible)
            sets = (
                1 << chosen
                if chosen >= self._limit.bit_length()
                else sum(math.comb(possible, n) for n in range(chosen + 1))
            )
            if sets > self._limit:
                raise self._too_many()  # each set of properties has a rule
        space: tuple[Term, ...] = (_SPACE,) if mark.space else ()
        comma: tuple[Term, ...] = (FixedText(mark.comma), *space)
        colon: tuple[Term, ...] = (*space, FixedText(mark.colon), *space)
        highest = max(node.minimum, 1) if node.maximum is None else node.maximum
        keys = [self._named(entry.key) for entry in (*node.properties, *node.open)]
        # For each entry and value: the marks, and the terms before the reference to the rule of the rest of the object.
        first = [
            [(marks, (key, *colon, way, *space)) for marks, way in ways] for key, ways in zip(keys, values, strict=True)
        ]
        later = [[(marks, (*comma, *head)) for marks, head in heads] for heads in first]
        # In any order, an entry occurs in the rules of up to 2 ** (size - 1) sets of properties, so it becomes a rule.
        if not node.ordered and size > _FEW_KEYS:
            later = [[(marks, (self._rule(Join(head)),)) for marks, head in heads] for heads in later]
        required = sum(1 << number for number, entry in enumerate(node.properties) if entry.required)
        missing = [entry.missing & node.demands for entry in node.properties]
        demanded = node.demands.bit_count()
        fewest = demanded if node.least is None else node.least
        most = demanded if node.most is None else node.most
        # The rules of the rest of an object, by (properties, count, demands). Properties: the number of the next
        # property if they are ordered, otherwise the bits of those that did not occur yet. Count: the number of entries
        # so far. Demands: the bits of `Object.demands` that are marked so far.
        known: dict[tuple[int, int, int], RuleRef] = {}

        def state(left: int, count: int, met: int) -> RuleRef:
            key = (left, highest if node.maximum is None and count > highest else count, met)
            rule = known.get(key)
            if rule is None:
                rule = known[key] = RuleRef(self._reserve())
                self._todo.append(lambda: define(*key))
            return rule

        def entry(number: int, count: int, left: int, met: int) -> list[Term]:
            if node.maximum is not None and count >= node.maximum:
                return []
            spend(_ENTRY_STEPS * len(values[number]))
            demands = node.demands
            return [
                Join((*head, state(left, count + 1, (met | marks) & demands)))
                for marks, head in (later if count else first)[number]
            ]

        def define(left: int, count: int, met: int) -> None:
            options: list[Term] = []
            if node.ordered:
                if left < size:
                    options += entry(left, count, left + 1, met)
                    if not required >> left & 1:
                        options.append(state(left + 1, count, met | missing[left]))
                ended = left == size
                more, absent = ended, 0
            else:
                for number in range(size):
                    if left >> number & 1:
                        options += entry(number, count, left & ~(1 << number), met)
                ended, more = not left & required, True
                absent = functools.reduce(operator.or_, (missing[n] for n in range(size) if left >> n & 1), 0)
            if more:
                for number in range(size, len(keys)):
                    options += entry(number, count, left, met)
            if ended and count >= node.minimum and fewest <= (met | absent).bit_count() <= most:
                options.append(FixedText(mark.close))
            self._rules[known[left, count, met].rule] = TermChoice(tuple(options))

        return Join((FixedText(mark.open), *space, state(0 if node.ordered else (1 << size) - 1, 0, 0)))

    def _array(self, node: Array, index: int) -> Term:
        if node.unique and (node.maximum is None or node.maximum > 1):
            raise UnsupportedError(
                "a context-free grammar cannot express uniqueItems; remove it", self._grammar.place(index)
            )
        mark = node.punctuation
        space: tuple[Term, ...] = (_SPACE,) if mark.space else ()
        prefix = [self._ways(value) for value in node.prefix]
        rest = None if node.rest is None else self._ways(node.rest)
        if not node.counts:
            return self._plain_array(node, prefix, rest, space)
        settled = max(len(prefix), node.minimum, 1) if node.maximum is None else node.maximum
        tops = [(low if high is None else high + 1) for low, high in node.counts]
        known: dict[tuple[int, tuple[int, ...]], int] = {}

        def state(at: int, seen: tuple[int, ...]) -> RuleRef:
            key = min(at, settled) if node.maximum is None else at, tuple(map(min, seen, tops))
            if key not in known:
                known[key] = self._reserve()
                self._todo.append(lambda: define(key))
            return RuleRef(known[key])

        def define(key: tuple[int, tuple[int, ...]]) -> None:
            at, seen = key
            options: list[Term] = []
            ways = prefix[at] if at < len(prefix) else rest
            if ways is not None and (node.maximum is None or at < node.maximum):
                spend(_ENTRY_STEPS * len(ways))
                for marks, way in ways:
                    after = tuple(count + (marks >> bit & 1) for bit, count in enumerate(seen))
                    if all(high is None or count <= high for count, (_, high) in zip(after, node.counts, strict=True)):
                        comma = (FixedText(mark.comma), *space) if at else ()
                        options.append(Join((*comma, way, *space, state(at + 1, after))))
            enough = all(count >= low for count, (low, _) in zip(seen, node.counts, strict=True))
            if at >= node.minimum and enough:
                options.append(FixedText(mark.close))
            self._rules[known[key]] = TermChoice(tuple(options))

        return Join((FixedText(mark.open), *space, state(0, (0,) * len(node.counts))))

    def _plain_array(
        self,
        node: Array,
        prefix: list[list[tuple[int, RuleRef]]],
        rest: list[tuple[int, RuleRef]] | None,
        space: tuple[Term, ...],
    ) -> Term:
        mark = node.punctuation

        def item(ways: list[tuple[int, RuleRef]], first: bool) -> Term:
            found = tuple(way for _, way in ways)
            before: tuple[Term, ...] = () if first else (FixedText(mark.comma), *space)
            return Join((*before, found[0] if len(found) == 1 else TermChoice(found), *space))

        size = len(prefix)
        least = node.minimum
        most = node.maximum if rest is not None else (size if node.maximum is None else min(size, node.maximum))
        if most is not None and most < least:
            return TermChoice(())
        after: Term = Join(())
        fixed = size if most is None else min(size, most)
        if rest is not None and (most is None or most > size):
            more = None if most is None else most - max(size, 1)
            after = Times(item(rest, False), max(least - max(size, 1), 0), more)
            if size == 0:
                one = Join((item(rest, True), after))
                after = one if least > 0 else TermChoice((Join(()), one))
        made = after
        for at in range(fixed - 1, -1, -1):
            one = Join((item(prefix[at], at == 0), made))
            made = one if at < least else TermChoice((Join(()), one))
        return Join((FixedText(mark.open), *space, made, FixedText(mark.close)))

    # -- regular parts

    def _named(self, language: Regular) -> Term:
        """Return a term for a language that occurs in many rules: a fixed text, a character class, or a reference."""
        term = self._language(language)
        return term if isinstance(term, (FixedText, Class, RuleRef)) else self._rule(term)

    def _rule(self, term: Term) -> RuleRef:
        """Add a rule with this right side, and return a reference to it."""
        rule = self._reserve()
        self._rules[rule] = term
        return RuleRef(rule)

    def _language(self, language: Regular) -> Term:
        """Return the term of a language. A part that occurs in it several times becomes a rule, unless it is short.

        So does a part whose term has the nesting depth `_MAX_DEPTH`.
        """
        root = self._speller.run(language)
        known = self._terms
        order = list(distinct(root, _written_parts, known))
        uses = Counter(id(part) for one in order for part in _written_parts(one))
        for one in order:
            checkpoint()
            parts = [known[id(part)] for part in _written_parts(one)]
            spend(_TERM_STEPS + 2 * len(parts))
            term = self._regular(one, tuple(part.term for part in parts))
            size = 1 + sum(part.size for part in parts)
            if isinstance(term, TermChoice) and isinstance(one, Literals):
                size += len(term.parts)
            depth = 1 + max((part.depth for part in parts), default=0)
            if (size > _SHORT and uses[id(one)] > 1) or depth == _MAX_DEPTH:
                rule = self._reserve()
                self._rules[rule] = term
                term, size, depth = RuleRef(rule), 1, 1
            known[id(one)] = _Written(one, term, size, depth)
        return known[id(root)].term

    def _regular(self, one: Regular, parts: tuple[Term, ...]) -> Term:
        match one:
            case Chars(ranges):
                return _class(ranges)
            case Literals(texts):
                return FixedText(texts[0]) if len(texts) == 1 else TermChoice(tuple(map(FixedText, texts)))
            case Concat():
                return Join(parts)
            case Union():
                return TermChoice(parts)
            case Repeat(_, least, most):
                return Times(parts[0], least, most)
            case Intersection() | Complement():
                return self._graph(determinized(one, MAX_STATES))
            case Dfa():
                return self._graph(one)
        raise AssertionError(one)

    def _graph(self, graph: Dfa) -> Term:
        numbers = [self._reserve() for _ in graph.states]
        for number, (accepts, steps) in enumerate(graph.states):
            options: list[Term] = [Join((_class(chars.ranges), RuleRef(numbers[to]))) for chars, to in steps]
            if accepts:
                options.append(Join(()))
            self._rules[numbers[number]] = TermChoice(tuple(options))
        return RuleRef(numbers[0])


def _class(ranges: tuple[tuple[int, int], ...]) -> Term:
    kept = []
    for low, high in ranges:
        if low < 0xD800:
            kept.append((low, min(high, 0xD7FF)))
        if high > 0xDFFF:
            kept.append((max(low, 0xE000), high))
    return Class(tuple(kept)) if kept else TermChoice(())
