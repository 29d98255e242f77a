"""Splits rules by the states of parser and lexer, merges equivalent ones, and writes them as rules.

A specialised rule (`_Copy`) is what a rule derives from a parser state and a lexer context (`steps.py`), with the set
of lexer contexts after it. Specialised rules with equal productions up to equivalence are merged by partition
refinement, starting with one block per rule. The lexer context after a text is known only at its end. Therefore
contexts with the same continuation are requested together, as sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from guideway.errors import LimitExceededError, UnsatisfiableError
from guideway.frontends.cfg.lark.contextual_lexer.lalr import Plain, Symbol, Tables
from guideway.frontends.cfg.lark.contextual_lexer.steps import Accepted, Steps
from guideway.frontends.cfg.lark.contextual_lexer.terminals import Scanners, Terminal
from guideway.grammar.cfg import Choice, Ref, Rule, Series, Term, Text
from guideway.grammar.regular import Regular

__all__ = ["Split", "contextual_rules"]

_MAX_CELLS = 1_000_000
_ENDS = -1_000_000_000  # less than all keys of terminals
_ROOT = "%start"

_Seams = frozenset[int]

# A prepared item: whether it is at the start of a production; the specialised rule after the dot, or None for a terminal
# or the end; the key of the terminal or the end; per lexer context after the symbol, the index of the next item.
_Prepared = tuple[bool, int | None, int, tuple[tuple[int, int], ...]]


@dataclass(slots=True, eq=False)
class _Copy:
    """A specialised rule. `cells`: items in its productions, as (production, dot, parser state, lexer context)."""

    state: int
    rule: int
    seam: int
    exits: set[int] = field(default_factory=set)
    cells: dict[tuple[int, int, int, int], None] = field(default_factory=dict)  # used as an ordered set
    users: list[tuple[_Copy, tuple[int, int, int, int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Split:
    """The rules, the start symbol, and per rule the rule of the grammar that it specialises."""

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
        terminals: The terminals.
        ignored: Names of ignored terminals.
        special: Terminals that are special tokens, which the lexer does not inspect.
        pieces: Per terminal, the source of its `Text` with the ignored text after it, for captures.

    Raises:
        Conflict: The grammar is not LALR(1).
        UnsupportedError: The order of terminals depends on names that Lark generates.
        UnsatisfiableError: No text is accepted.
        LimitExceededError: The grammar is too large.
    """
    plain = Plain(rules)
    tables = Tables(plain, plain.numbers[start])
    steps = Steps(Scanners(terminals), ignored, special)
    made = _Splitting(plain, tables, steps, frozenset(ignored))
    return _Writing(made, pieces).run()


class _Splitting:
    """Computes the reachable specialised rules and the lexer contexts after each."""

    def __init__(self, plain: Plain, tables: Tables, steps: Steps, ignored: frozenset[str]) -> None:
        self.plain, self.tables, self.steps = plain, tables, steps
        self.accepted: list[Accepted] = [one | ignored for one in tables.accepted]
        self.copies: dict[tuple[int, int, int], _Copy] = {}
        self._todo: list[tuple[_Copy, tuple[int, int, int, int]]] = []
        self._cells = 0
        self.begins = sorted(steps.begin(self.accepted[0]))
        for seam in self.begins:
            self.copy(0, tables.start, seam)
        while self._todo:
            self._follow(*self._todo.pop())

    def copy(self, state: int, rule: int, seam: int) -> _Copy:
        """Return a specialised rule; a new one is added with the initial items of its productions."""
        key = state, rule, seam
        if key not in self.copies:
            made = self.copies[key] = _Copy(state, rule, seam)
            for production in self.tables.by_rule[rule]:
                self._add(made, (production, 0, state, seam))
        return self.copies[key]

    def _add(self, copy: _Copy, cell: tuple[int, int, int, int]) -> None:
        if cell in copy.cells:
            return
        self._cells += 1
        if self._cells > _MAX_CELLS:
            raise LimitExceededError(
                f"lexer='contextual': splitting the rules by lexer states gives more than {_MAX_CELLS:,} items"
            )
        copy.cells[cell] = None
        self._todo.append((copy, cell))

    def _follow(self, copy: _Copy, cell: tuple[int, int, int, int]) -> None:
        production, place, state, seam = cell
        body = self.tables.productions[production][1]
        if place == len(body):
            lost = self.tables.lost.get((state, production))
            left = self.steps.closed(seam, lost) if lost else seam
            if left not in copy.exits:
                copy.exits.add(left)
                for user, at in copy.users:
                    self._add(user, self.after(at, body_symbol(self.tables, at), left))
            return
        symbol = body[place]
        if isinstance(symbol, str):
            seams: Iterable[int] = self.steps.step(symbol, seam, self.accepted[self.tables.goto[state][symbol]])
        else:
            callee = self.copy(state, symbol, seam)
            callee.users.append((copy, cell))
            seams = callee.exits
        for one in sorted(seams):
            self._add(copy, self.after(cell, symbol, one))

    def after(self, cell: tuple[int, int, int, int], symbol: Symbol, seam: int) -> tuple[int, int, int, int]:
        """Return the item after a symbol, with the lexer context after it."""
        production, place, state, _ = cell
        return production, place + 1, self.tables.goto[state][symbol], seam

    def left(self, copy: _Copy, cell: tuple[int, int, int, int]) -> Iterable[int]:
        """Return the lexer contexts after the symbol of an item."""
        symbol = body_symbol(self.tables, cell)
        if isinstance(symbol, str):
            return self.steps.step(symbol, cell[3], self.accepted[self.tables.goto[cell[2]][symbol]])
        return self.copies[cell[2], symbol, cell[3]].exits

    def end(self, cell: tuple[int, int, int, int]) -> int:
        """Return the lexer context after a complete production."""
        lost = self.tables.lost.get((cell[2], cell[0]))
        return self.steps.closed(cell[3], lost) if lost else cell[3]


def body_symbol(tables: Tables, cell: tuple[int, int, int, int]) -> Symbol:
    """Return the symbol after the dot of an item."""
    return tables.productions[cell[0]][1][cell[1]]


class _Writing:
    """Merges equivalent specialised rules, and writes rules per requested set of lexer contexts."""

    def __init__(self, made: _Splitting, pieces: Mapping[str, object]) -> None:
        self._made, self._pieces = made, pieces
        self._copies = list(made.copies.values())
        self._ordered = {id(one): sorted(one.cells, key=lambda cell: -cell[1]) for one in self._copies}
        self._block: dict[int, int] = {}
        self._rules: list[Rule] = []
        self._names: dict[str, str] = {}
        self._known: dict[object, str] = {}
        self._todo: list[tuple[str, _Copy, _Seams]] = []
        self._part()

    def run(self) -> Split:
        """Write all rules that are reachable from the start."""
        made, steps = self._made, self._made.steps
        options: list[Term] = []
        for seam in made.begins:
            copy = made.copies[0, made.tables.start, seam]
            exits = frozenset(one for one in copy.exits if steps.ends(one))
            if exits:
                gap = Text(steps.gap(made.accepted[0], frozenset((seam,))), "ignored")
                options.append(Series((gap, self._rule(copy, exits))))
        if not options:
            raise UnsatisfiableError(
                "no text is accepted: with the order of terminals of the contextual lexer, no rule can be completed"
            )
        while self._todo:
            name, copy, seams = self._todo.pop()
            self._rules.append(Rule(name, self._term(copy, seams)))
        return Split([*self._rules, Rule(_ROOT, Choice(tuple(options)))], _ROOT, self._names)

    def _part(self) -> None:
        """Compute the equivalence classes of specialised rules by partition refinement."""
        names = self._made.plain.names
        block = {id(one): one.rule if names[one.rule] else -1 for one in self._copies}
        prepared = [(id(one), self._prepared(one)) for one in self._copies]
        count = len(set(block.values()))
        while True:
            known: dict[object, int] = {}
            after: dict[int, int] = {}
            for copy, cells in prepared:
                content = self._content(cells, block, known)
                after[copy] = known.setdefault((block[copy], content), len(known))
            block = after
            if len(set(block.values())) == count:
                break
            count = len(set(block.values()))
        self._block = block

    def _prepared(self, copy: _Copy) -> list[_Prepared]:
        made, steps = self._made, self._made.steps
        tables = made.tables
        number = {cell: n for n, cell in enumerate(self._ordered[id(copy)])}
        prepared: list[_Prepared] = []
        for cell in number:
            body = tables.productions[cell[0]][1]
            if cell[1] == len(body):
                prepared.append((not body, None, _ENDS - made.end(cell), ()))
                continue
            symbol = body[cell[1]]
            ways = tuple((one, number[made.after(cell, symbol, one)]) for one in made.left(copy, cell))
            if isinstance(symbol, str):
                key = steps.key(symbol, cell[3], made.accepted[tables.goto[cell[2]][symbol]])
                prepared.append((cell[1] == 0, None, -1 - key, ways))
            else:
                prepared.append((cell[1] == 0, id(made.copies[cell[2], symbol, cell[3]]), 0, ways))
        return prepared

    @staticmethod
    def _content(cells: list[_Prepared], block: dict[int, int], known: dict[object, int]) -> object:
        at: list[int] = []
        starts = []
        for begins, callee, number, ways in cells:
            symbol = number if callee is None else block[callee]
            at.append(known.setdefault((symbol, frozenset([(one, at[to]) for one, to in ways])), len(known)))
            if begins:
                starts.append(at[-1])
        return frozenset(starts)

    def _rule(self, copy: _Copy, seams: _Seams) -> Ref:
        key = self._block[id(copy)], seams
        if key not in self._known:
            rule = self._made.plain.names[copy.rule]
            name = self._known[key] = f"%{rule} {len(self._known)}"
            if rule:
                self._names[name] = rule
            self._todo.append((name, copy, seams))
        return Ref(self._known[key])

    def _terminal(self, name: str, cell: tuple[int, int, int, int], seams: _Seams) -> Ref:
        made = self._made
        accepted = made.accepted[made.tables.goto[cell[2]][name]]
        language = made.steps.text(name, cell[3], accepted, seams)
        key = name, id(language)  # `steps` keeps the language alive
        if key not in self._known:
            self._known[key] = f"%{name} {len(self._known)}"
            self._names[self._known[key]] = name
            self._rules.append(Rule(self._known[key], Text(language, self._pieces.get(name))))
        return Ref(self._known[key])

    def _term(self, copy: _Copy, seams: _Seams) -> Term:
        """Return what a specialised rule derives with one of the lexer contexts after it."""
        made = self._made
        tables = made.tables
        rest: dict[tuple[int, int, int, int], tuple[int, Term] | None] = {}
        numbers: dict[object, int] = {}
        options: list[Term] = []
        for cell in self._ordered[id(copy)]:
            body = tables.productions[cell[0]][1]
            if cell[1] == len(body):
                rest[cell] = (-1, Series(())) if made.end(cell) in seams else None
            else:
                rest[cell] = self._rest(copy, cell, body[cell[1]], rest, numbers)
            found = rest[cell]
            if cell[1] == 0 and found is not None:
                options.append(found[1])
        return Choice(tuple(options))

    def _rest(
        self,
        copy: _Copy,
        cell: tuple[int, int, int, int],
        symbol: Symbol,
        rest: dict[tuple[int, int, int, int], tuple[int, Term] | None],
        numbers: dict[object, int],
    ) -> tuple[int, Term] | None:
        """Return what follows from an item on, and a number that is equal for equal continuations."""
        made = self._made
        groups: dict[int, tuple[Term, set[int]]] = {}
        for seam in sorted(made.left(copy, cell)):
            behind = rest[made.after(cell, symbol, seam)]
            if behind is not None:
                groups.setdefault(behind[0], (behind[1], set()))[1].add(seam)
        if not groups:
            return None
        ways: list[tuple[str, int]] = []
        options: list[Term] = []
        for number, (behind_term, found) in sorted(groups.items()):
            wanted = frozenset(found)
            if isinstance(symbol, str):
                head = self._terminal(symbol, cell, wanted)
            else:
                head = self._rule(made.copies[cell[2], symbol, cell[3]], wanted)
            ways.append((head.name, number))
            options.append(Series((head, behind_term)) if number != -1 else head)
        key = frozenset(ways)
        return numbers.setdefault(key, len(numbers)), options[0] if len(options) == 1 else Choice(tuple(options))
