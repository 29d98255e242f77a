"""Splits rules by the states of parser and lexer, merges equivalent ones, and writes them as rules.

A specialised rule is a rule at a parser state and a lexer context (`steps.py`). Its exits are the lexer contexts that
are possible after the text that it derives. Equivalent specialised rules are merged by partition refinement, which
begins with one block for each rule of the grammar, and one for all rules that repetitions were expanded to. The lexer
context after a text is known only at its end. Therefore, a written rule is a specialised rule with a set of exits: it
derives the texts that lead to one of these. Exits after which the rest of a production has the same term are in one
set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsatisfiableError
from guideway.frontends.cfg.lark.contextual_lexer.lalr import PlainRules, Symbol, Tables
from guideway.frontends.cfg.lark.contextual_lexer.steps import Accepted, Steps
from guideway.frontends.cfg.lark.contextual_lexer.terminals import Terminal, TerminalScanners
from guideway.grammar.cfg import Alternation, Concatenation, Ref, Rule, Term, Text
from guideway.grammar.regular import Regular

__all__ = ["Split", "contextual_rules"]

_MAX_ITEMS = 1_000_000
_ENDS = -1_000_000_000  # prepared items: complete productions have numbers up to this one, terminals greater ones
_ROOT = "%start"

_Contexts = frozenset[int]

# An item, prepared for partition refinement: whether the dot is at the start of the production; the id of the
# specialised rule after the dot (None: a terminal, or the end); a number for the terminal or the end; and, for each
# lexer context after the symbol, the index of the next item.
_PreparedItem = tuple[bool, int | None, int, tuple[tuple[int, int], ...]]


@dataclass(slots=True, eq=False)
class _SpecialisedRule:
    """A rule at a parser state and a lexer context.

    Attributes:
        state: The parser state before the rule.
        rule: The number of the rule.
        context: The lexer context before the rule.
        exits: The lexer contexts after the rule.
        items: The items of its productions that were reached: (production, dot, parser state, lexer context).
        users: The items whose next symbol is this specialised rule, each with the specialised rule that has the item.
    """

    state: int
    rule: int
    context: int
    exits: set[int] = field(default_factory=set)
    items: dict[tuple[int, int, int, int], None] = field(default_factory=dict)  # used as an ordered set
    users: list[tuple[_SpecialisedRule, tuple[int, int, int, int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Split:
    """The result of `contextual_rules`.

    Attributes:
        rules: The rules.
        start: Their start symbol.
        names: For each of the rules, the name of the rule or terminal of the grammar that it specialises. Rules that
            repetitions were expanded to, and the start symbol, are left out.
    """

    rules: list[Rule]
    start: str
    names: dict[str, str]


def contextual_rules(
    rules: Mapping[str, Term],
    start: str,
    terminals: list[Terminal],
    ignored: tuple[str, ...],
    special: Mapping[str, Regular],
    pieces: Mapping[str, object],
) -> Split:
    """Return rules for the texts that Lark's contextual lexer and parser accept.

    Args:
        rules: The rules of the grammar.
        start: Its start symbol.
        terminals: The terminals that are not special tokens.
        ignored: Names of ignored terminals.
        special: Terminals that are special tokens, with their languages. The lexer does not inspect special tokens.
        pieces: By the name of a terminal, the `source` of a `Text` that consists of the terminal and the ignored text
            after it. The returned rules have such a `Text` for each terminal, so that captures can separate the two.
            The `source` of a terminal without an entry is None.

    Raises:
        Conflict: There is a reduce/reduce conflict (see `Tables`).
        UnsupportedError: The order of terminals depends on names that Lark generates.
        UnsatisfiableError: No text is accepted.
        LimitExceededError: The grammar is too large.
    """
    plain = PlainRules(rules)
    tables = Tables(plain, plain.numbers[start])
    steps = Steps(TerminalScanners(terminals), ignored, special)
    made = _Splitting(plain, tables, steps, frozenset(ignored))
    return _Writing(made, pieces).run()


class _Splitting:
    """Computes the reachable specialised rules, with their items and exits.

    Attributes:
        plain: The productions of the rules.
        tables: The LALR(1) automaton.
        steps: The lexer contexts.
        accepted: For each parser state, the terminals that the lexer tries there, with the ignored ones.
        copies: The specialised rules by (parser state, rule, lexer context).
        begins: The lexer contexts at the start, after the ignored text there.
    """

    def __init__(self, plain: PlainRules, tables: Tables, steps: Steps, ignored: frozenset[str]) -> None:
        self.plain, self.tables, self.steps = plain, tables, steps
        self.accepted: list[Accepted] = [one | ignored for one in tables.accepted]
        self.copies: dict[tuple[int, int, int], _SpecialisedRule] = {}
        self._todo: list[tuple[_SpecialisedRule, tuple[int, int, int, int]]] = []
        self._items = 0
        self.begins = sorted(steps.begin(self.accepted[0]))
        for context in self.begins:
            self.copy(0, tables.start, context)
        while self._todo:
            checkpoint()
            self._follow(*self._todo.pop())

    def copy(self, state: int, rule: int, context: int) -> _SpecialisedRule:
        """Return the specialised rule. A new one is added with the first item of each of its productions."""
        key = state, rule, context
        if key not in self.copies:
            made = self.copies[key] = _SpecialisedRule(state, rule, context)
            for production in self.tables.by_rule[rule]:
                self._add(made, (production, 0, state, context))
        return self.copies[key]

    def _add(self, copy: _SpecialisedRule, item: tuple[int, int, int, int]) -> None:
        if item in copy.items:
            return
        self._items += 1
        if self._items > _MAX_ITEMS:
            raise LimitExceededError(
                f"lexer='contextual': splitting the rules by lexer states gives more than {_MAX_ITEMS:,} items"
            )
        copy.items[item] = None
        self._todo.append((copy, item))

    def _follow(self, copy: _SpecialisedRule, item: tuple[int, int, int, int]) -> None:
        production, place, state, context = item
        body = self.tables.productions[production][1]
        if place == len(body):
            lost = self.tables.lost.get((state, production))
            left = self.steps.closed(context, lost) if lost else context
            if left not in copy.exits:
                copy.exits.add(left)
                for user, at in copy.users:
                    self._add(user, self.after(at, symbol_after_dot(self.tables, at), left))
            return
        symbol = body[place]
        if isinstance(symbol, str):
            contexts: Iterable[int] = self.steps.step(symbol, context, self.accepted[self.tables.goto[state][symbol]])
        else:
            callee = self.copy(state, symbol, context)
            callee.users.append((copy, item))
            contexts = callee.exits
        for one in sorted(contexts):
            self._add(copy, self.after(item, symbol, one))

    def after(self, item: tuple[int, int, int, int], symbol: Symbol, context: int) -> tuple[int, int, int, int]:
        """Return the item after `item`: its dot is after `symbol`, and its lexer context is `context`."""
        production, place, state, _ = item
        return production, place + 1, self.tables.goto[state][symbol], context

    def left(self, item: tuple[int, int, int, int]) -> Iterable[int]:
        """Return the lexer contexts that are possible after the symbol that follows the dot of an item.

        The dot must not be at the end of the production.
        """
        symbol = symbol_after_dot(self.tables, item)
        if isinstance(symbol, str):
            return self.steps.step(symbol, item[3], self.accepted[self.tables.goto[item[2]][symbol]])
        return self.copies[item[2], symbol, item[3]].exits

    def end(self, item: tuple[int, int, int, int]) -> int:
        """Return the lexer context after a complete production, whose dot is at its end."""
        lost = self.tables.lost.get((item[2], item[0]))
        return self.steps.closed(item[3], lost) if lost else item[3]


def symbol_after_dot(tables: Tables, item: tuple[int, int, int, int]) -> Symbol:
    """Return the symbol after the dot of an item."""
    return tables.productions[item[0]][1][item[1]]


class _Writing:
    """Merges equivalent specialised rules, and writes a rule for each merged one and each set of exits that is used."""

    def __init__(self, made: _Splitting, pieces: Mapping[str, object]) -> None:
        self._made, self._pieces = made, pieces
        self._copies = list(made.copies.values())
        self._ordered = {id(one): sorted(one.items, key=lambda item: -item[1]) for one in self._copies}
        self._block: dict[int, int] = {}
        self._rules: list[Rule] = []
        self._names: dict[str, str] = {}
        self._known: dict[object, str] = {}
        self._todo: list[tuple[str, _SpecialisedRule, _Contexts]] = []
        self._part()

    def run(self) -> Split:
        """Write all rules that are reachable from the start. Raises `UnsatisfiableError` if no text is accepted."""
        made, steps = self._made, self._made.steps
        options: list[Term] = []
        for context in made.begins:
            copy = made.copies[0, made.tables.start, context]
            exits = frozenset(one for one in copy.exits if steps.ends(one))
            if exits:
                gap = Text(steps.gap(made.accepted[0], frozenset((context,))), "ignored")
                options.append(Concatenation((gap, self._rule(copy, exits))))
        if not options:
            raise UnsatisfiableError(
                "no text is accepted: with the order of terminals of the contextual lexer, no rule can be completed"
            )
        while self._todo:
            checkpoint()
            name, copy, contexts = self._todo.pop()
            self._rules.append(Rule(name, self._term(copy, contexts)))
        return Split([*self._rules, Rule(_ROOT, Alternation(tuple(options)))], _ROOT, self._names)

    def _part(self) -> None:
        """Compute the equivalence classes of specialised rules by partition refinement."""
        names = self._made.plain.names
        block = {id(one): one.rule if names[one.rule] else -1 for one in self._copies}
        prepared = [(id(one), self._prepared(one)) for one in self._copies]
        count = len(set(block.values()))
        while True:
            known: dict[object, int] = {}
            after: dict[int, int] = {}
            for copy, items in prepared:
                content = self._content(items, block, known)
                after[copy] = known.setdefault((block[copy], content), len(known))
            block = after
            if len(set(block.values())) == count:
                break
            count = len(set(block.values()))
        self._block = block

    def _prepared(self, copy: _SpecialisedRule) -> list[_PreparedItem]:
        made, steps = self._made, self._made.steps
        tables = made.tables
        number = {item: n for n, item in enumerate(self._ordered[id(copy)])}
        prepared: list[_PreparedItem] = []
        for item in number:
            body = tables.productions[item[0]][1]
            if item[1] == len(body):
                prepared.append((not body, None, _ENDS - made.end(item), ()))
                continue
            symbol = body[item[1]]
            ways = tuple((one, number[made.after(item, symbol, one)]) for one in made.left(item))
            if isinstance(symbol, str):
                key = steps.key(symbol, item[3], made.accepted[tables.goto[item[2]][symbol]])
                prepared.append((item[1] == 0, None, -1 - key, ways))
            else:
                prepared.append((item[1] == 0, id(made.copies[item[2], symbol, item[3]]), 0, ways))
        return prepared

    @staticmethod
    def _content(items: list[_PreparedItem], block: dict[int, int], known: dict[object, int]) -> object:
        at: list[int] = []
        starts = []
        for begins, callee, number, ways in items:
            symbol = number if callee is None else block[callee]
            at.append(known.setdefault((symbol, frozenset([(one, at[to]) for one, to in ways])), len(known)))
            if begins:
                starts.append(at[-1])
        return frozenset(starts)

    def _rule(self, copy: _SpecialisedRule, contexts: _Contexts) -> Ref:
        key = self._block[id(copy)], contexts
        if key not in self._known:
            rule = self._made.plain.names[copy.rule]
            name = self._known[key] = f"%{rule} {len(self._known)}"
            if rule:
                self._names[name] = rule
            self._todo.append((name, copy, contexts))
        return Ref(self._known[key])

    def _terminal(self, name: str, item: tuple[int, int, int, int], contexts: _Contexts) -> Ref:
        made = self._made
        accepted = made.accepted[made.tables.goto[item[2]][name]]
        language = made.steps.text(name, item[3], accepted, contexts)
        key = name, id(language)  # `steps` keeps the language alive
        if key not in self._known:
            self._known[key] = f"%{name} {len(self._known)}"
            self._names[self._known[key]] = name
            self._rules.append(Rule(self._known[key], Text(language, self._pieces.get(name))))
        return Ref(self._known[key])

    def _term(self, copy: _SpecialisedRule, contexts: _Contexts) -> Term:
        """Return the term for the texts of a specialised rule that lead to one of the lexer contexts `contexts`."""
        made = self._made
        tables = made.tables
        rest: dict[tuple[int, int, int, int], tuple[int, Term] | None] = {}
        numbers: dict[object, int] = {}
        options: list[Term] = []
        for item in self._ordered[id(copy)]:
            body = tables.productions[item[0]][1]
            if item[1] == len(body):
                rest[item] = (-1, Concatenation(())) if made.end(item) in contexts else None
            else:
                rest[item] = self._rest(item, body[item[1]], rest, numbers)
            found = rest[item]
            if item[1] == 0 and found is not None:
                options.append(found[1])
        return Alternation(tuple(options))

    def _rest(
        self,
        item: tuple[int, int, int, int],
        symbol: Symbol,
        rest: dict[tuple[int, int, int, int], tuple[int, Term] | None],
        numbers: dict[object, int],
    ) -> tuple[int, Term] | None:
        """Return the term for the rest of a production from an item on; None: no text leads to the wanted contexts.

        The first member of the result is a number that is equal for equal terms.

        Args:
            item: The item.
            symbol: The symbol after its dot.
            rest: The results for the later items.
            numbers: The numbers by the content of the terms. It is modified.
        """
        made = self._made
        groups: dict[int, tuple[Term, set[int]]] = {}
        for context in sorted(made.left(item)):
            following = rest[made.after(item, symbol, context)]
            if following is not None:
                groups.setdefault(following[0], (following[1], set()))[1].add(context)
        if not groups:
            return None
        ways: list[tuple[str, int]] = []
        options: list[Term] = []
        for number, (following_term, found) in sorted(groups.items()):
            wanted = frozenset(found)
            if isinstance(symbol, str):
                head = self._terminal(symbol, item, wanted)
            else:
                head = self._rule(made.copies[item[2], symbol, item[3]], wanted)
            ways.append((head.name, number))
            options.append(Concatenation((head, following_term)) if number != -1 else head)
        key = frozenset(ways)
        return numbers.setdefault(key, len(numbers)), options[0] if len(options) == 1 else Alternation(tuple(options))
