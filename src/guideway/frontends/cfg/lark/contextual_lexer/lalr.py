"""Expands rules to productions as Lark does, and computes the LALR(1) automaton of the productions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from guideway.background import checkpoint
from guideway.errors import LimitExceededError
from guideway.grammar.automata.determinize import Numbered
from guideway.grammar.cfg import Alternation, Concatenation, Ref, Repetition, Term, parts_first, parts_of
from guideway.grammar.cfg.fixpoint import reached
from guideway.grammar.cfg.scc import strongly_connected_components

__all__ = ["END", "Conflict", "PlainRules", "Symbol", "Tables"]

END = "%end"
"""The end-of-text terminal."""

_MAX_SYMBOLS = 200_000  # maximum size of all productions
_MAX_STATES = 20_000
_AT_ONCE = 50  # a counted repetition with a smaller maximum is expanded to one alternative for each count

Symbol = int | str  # the number of a nonterminal, or the name of a terminal
Production = tuple[Symbol, ...]


class Conflict(Exception):
    """The grammar has a reduce/reduce conflict.

    `rule`: the name of a rule that the conflict concerns; None: it concerns no named rule.
    """

    def __init__(self, message: str, rule: str | None) -> None:
        super().__init__(message)
        self.rule = rule


class PlainRules:
    """The productions of rules. Nested alternations are expanded. Unbounded and long repetitions become new rules.

    Attributes:
        names: The names of the rules by number; "" for new rules.
        numbers: The numbers of the rules of the grammar by name.
        of: The productions of each rule.

    Raises:
        LimitExceededError: The productions have too many symbols.
    """

    def __init__(self, rules: Mapping[str, Term]) -> None:
        self.names: list[str] = list(rules)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.of: list[list[Production]] = [[] for _ in self.names]
        self._more: dict[object, int] = {}
        self._size = 0
        for number, term in enumerate(rules.values()):
            self.of[number] = self._options(term)

    def _options(self, root: Term) -> list[Production]:
        """Return the alternatives of a term as productions."""
        made: dict[int, list[Production]] = {}
        for term in parts_first(root):
            made[id(term)] = self._distinct(self._written(term, [made[id(part)] for part in parts_of(term)]))
        return made[id(root)]

    def _written(self, term: Term, parts: list[list[Production]]) -> Iterable[Production]:
        match term:
            case Ref(name):
                return [(self.numbers.get(name, name),)]
            case Alternation():
                return (one for part in parts for one in part)
            case Concatenation():
                return self._joined(parts)
            case Repetition(_, least, None):
                again = self._repeated(parts[0])
                some: list[Production] = [(again,)]
                return self._joined([parts[0]] * (least - 1) + [some]) if least else [*some, ()]
            case Repetition(_, least, int(most)):
                return self._counted(parts[0], least, most)
        raise TypeError(term)

    def _counted(self, part: list[Production], least: int, most: int) -> list[Production]:
        if most >= _AT_ONCE and most > least:  # one new rule for each optional repetition: the size is linear
            start = self._joined([part] * least)
            more: list[Production] = [()]
            for number in range(most - least):
                key = (tuple(part), "up to", number)
                if key not in self._more:
                    self._more[key] = self._rule(self._distinct([*self._joined([part, more]), ()]))
                more = [(self._more[key],)]
            return self._joined([start, more])
        return [one for times in range(least, most + 1) for one in self._joined([part] * times)]

    def _repeated(self, part: list[Production]) -> int:
        """Return the number of a rule for one or more repetitions. `part` has the alternatives of what is repeated."""
        key = tuple(part)
        if key not in self._more:
            self._more[key] = again = self._rule([])
            self.of[again] = self._distinct([*part, *((again, *one) for one in part)])
        return self._more[key]

    def _rule(self, productions: list[Production]) -> int:
        self.of.append(productions)
        self.names.append("")
        return len(self.of) - 1

    def _joined(self, parts: list[list[Production]]) -> list[Production]:
        found: list[Production] = [()]
        for part in parts:
            self._count(len(found) * len(part))
            found = [before + one for before in found for one in part]
            self._count(sum(map(len, found)) - sum(map(len, part)) if len(part) > 1 else 0)
        return found

    def _distinct(self, options: Iterable[Production]) -> list[Production]:
        found = list(dict.fromkeys(options))
        self._count(len(found))
        return found

    def _count(self, more: int) -> None:
        self._size += max(more, 0)
        if self._size > _MAX_SYMBOLS:
            raise LimitExceededError(
                f"lexer='contextual': the rules expand to more than {_MAX_SYMBOLS:,} symbols; use fewer alternatives"
            )


class Tables:
    """The LALR(1) automaton. State 0 is initial. In a shift/reduce conflict the parser shifts, as in Lark.

    Attributes:
        start: The number of the start symbol.
        productions: The productions, each with the number of its rule. Production 0 derives the start symbol.
        by_rule: For each rule, the numbers of its productions.
        goto: For each state, its transitions by symbol.
        accepted: For each state, the terminals for which the parser has an action.
        lost: For each (state, production), the lookahead terminals for which the parser shifts, although it could also
            reduce the production. Without an entry, there are none.

    Raises:
        Conflict: There is a reduce/reduce conflict. As in Lark, it is an error also if the parser would shift the
            terminal. Lark's priorities of rules, which can resolve it, are not supported.
        LimitExceededError: There are too many states.
    """

    def __init__(self, plain: PlainRules, start: int) -> None:
        self.start = start
        self.productions: list[tuple[int, Production]] = [(-1, (start,))]
        self.by_rule: dict[int, list[int]] = {-1: [0]}
        for rule, options in enumerate(plain.of):
            self.by_rule[rule] = list(range(len(self.productions), len(self.productions) + len(options)))
            self.productions += [(rule, one) for one in options]
        self._plain = plain
        self.goto: list[dict[Symbol, int]] = []
        self._draw()
        ends = self._lookahead()
        self.accepted = [
            frozenset({s for s in row if isinstance(s, str)} | {t for _, found in ends.get(state, ()) for t in found})
            for state, row in enumerate(self.goto)
        ]
        self.lost: dict[tuple[int, int], frozenset[str]] = {}
        for state, found in ends.items():
            self._settle(state, found)

    def _draw(self) -> None:
        """Compute the states, which are sets of LR(0) items, and their transitions."""
        why = f"lexer='contextual': the parser needs more than {_MAX_STATES:,} states; use a smaller grammar"
        states = Numbered(frozenset({(0, 0)}), _MAX_STATES, why)
        for kernel in states.order:
            after: dict[Symbol, set[tuple[int, int]]] = {}
            todo, seen = list(kernel), set[int]()
            while todo:
                checkpoint()
                production, at = todo.pop()
                body = self.productions[production][1]
                if at == len(body):
                    continue
                symbol = body[at]
                after.setdefault(symbol, set()).add((production, at + 1))
                if isinstance(symbol, int) and symbol not in seen:
                    seen.add(symbol)
                    todo += [(one, 0) for one in self.by_rule[symbol]]
            self.goto.append({symbol: states.number(frozenset(places)) for symbol, places in after.items()})

    def _lookahead(self) -> dict[int, list[tuple[int, list[str]]]]:
        """Return, for each state, the productions that can be reduced, with their lookahead terminals.

        The method is that of DeRemer and Pennello (1982).
        """
        goto = self.goto
        moves = [(state, symbol) for state, row in enumerate(goto) for symbol in row if isinstance(symbol, int)]
        number = {move: n for n, move in enumerate(moves)}
        terminals = [END, *sorted({one for row in goto for one in row if isinstance(one, str)})]
        bit = {one: 1 << n for n, one in enumerate(terminals)}
        empty = self._nullable()
        reads: list[list[int]] = []
        own: list[int] = []
        for state, rule in moves:
            row = goto[goto[state][rule]]
            own.append(sum(bit[one] for one in row if isinstance(one, str)) | ((state, rule) == (0, self.start)))
            reads.append([number[goto[state][rule], one] for one in row if isinstance(one, int) and one in empty])
        seen = _union(own, reads)
        includes: list[list[int]] = [[] for _ in moves]
        ends: dict[int, dict[int, list[int]]] = {}
        for move, (start, rule) in enumerate(moves):
            for production in self.by_rule[rule]:
                body, state = self.productions[production][1], start
                last = len(body)
                while last and isinstance(body[last - 1], int) and body[last - 1] in empty:
                    last -= 1
                for at, symbol in enumerate(body):
                    if isinstance(symbol, int) and at + 1 >= last:
                        includes[number[state, symbol]].append(move)
                    state = goto[state][symbol]
                ends.setdefault(state, {}).setdefault(production, []).append(move)
        follow = _union(seen, includes)
        found = {
            state: [
                (production, [one for one in terminals if any(follow[move] & bit[one] for move in moves_back)])
                for production, moves_back in rows.items()
            ]
            for state, rows in ends.items()
        }
        found.setdefault(goto[0][self.start], []).append((0, [END]))
        return found

    def _nullable(self) -> set[int]:
        group = dict(enumerate(self._plain.of))

        def needs(one: Production) -> set[int] | None:
            return None if any(isinstance(symbol, str) for symbol in one) else {s for s in one if isinstance(s, int)}

        return reached(group, needs)[0]

    def _settle(self, state: int, ends: list[tuple[int, list[str]]]) -> None:
        taken: dict[str, int] = {}
        for production, terminals in ends:
            for one in terminals:
                if one in taken:
                    self._conflict(taken[one], production, one)
                taken[one] = production
            lost = frozenset(one for one in terminals if one in self.goto[state])
            if lost:
                self.lost[state, production] = lost

    def _conflict(self, one: int, other: int, terminal: str) -> None:
        rules = [self.productions[production][0] for production in (one, other)]
        before = "the end of the text" if terminal == END else f"the terminal {terminal}"
        names = ["the whole grammar" if rule < 0 else self._plain.names[rule] or "a repetition" for rule in rules]
        raise Conflict(
            f"lexer='contextual' needs an LALR(1) grammar: before {before} the parser cannot decide between reducing "
            f"{names[0]} and {names[1]} (reduce/reduce conflict)",
            next((self._plain.names[rule] for rule in rules if rule >= 0 and self._plain.names[rule]), None),
        )


def _union(own: list[int], edges: list[list[int]]) -> list[int]:
    """Return, for each node of a graph, the union of the bit sets `own` of all nodes that are reachable from it."""
    made = list(own)
    to: Callable[[int], list[int]] = edges.__getitem__
    for component in strongly_connected_components(range(len(own)), to):
        whole = 0
        for one in component:
            whole |= own[one]
            for after in edges[one]:
                whole |= made[after]
        for one in component:
            made[one] = whole
    return made
