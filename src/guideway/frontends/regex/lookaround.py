"""Patterns with assertions anywhere -> an automaton drawn out, exactly.

The pattern becomes a graph of places: an edge takes a character, or none and then perhaps under a condition. What the
rest of the text must be is a formula over claims: "from this place on, the rest of the text is taken" (or is not).
Such a formula is moved over a character by replacing each claim with the claims after that character, so formulas in
disjunctive normal form are the states of an automaton. Lookahead conjoins a claim. What assertions that look back ask
is tracked forwards: for each of them, under which formula the text so far ends with a match; without lookahead inside,
that is simply true or false. States are pairs of both. This is the alternating automaton of the pattern, made
deterministic (Chandra, Kozen and Stockmeyer, "Alternation", 1981), over the few classes of characters that it tells
apart. It can take exponentially many states, so there is a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from guideway.frontends.regex.character_ranges import Ranges, merge
from guideway.frontends.regex.nfa import Places, TooLargeToDraw, classes
from guideway.frontends.regex.syntax import Choice, Edge, Look, Part, Series, Times
from guideway.grammar.regular import NEVER, Chars, Graph, Regular

__all__ = ["MAX_STATES", "TooLarge", "alive", "draw", "tidy"]

MAX_STATES = 4_000
"""How many states its automaton may have."""

_MAX_WORK = 400_000  # steps of places, claims and clauses; about a second
_MAX_CLAUSES = 300  # of one formula

# A claim is 2 * place, or 2 * place + 1 for its opposite; a clause holds if all of its claims do, a formula if any of
# its clauses does. Place 0 claims the end of the text.
Formula = frozenset[frozenset[int]]
TRUE: Formula = frozenset({frozenset()})
FALSE: Formula = frozenset()
_AT_END: Formula = frozenset({frozenset({0})})

TooLarge = Callable[[str, int], object]


def draw(part: Part, too_large: TooLarge) -> Regular:
    """The texts that a part matches as a whole."""
    try:
        places = Places()
        start, final = places.add(part)
        return _Drawing(places, start, final).graph()
    except TooLargeToDraw as problem:
        too_large(f"look-around, \\b and anchors that are repeated or look back take {problem} here", _first(part))
        raise


def _first(part: Part) -> int:
    """Where the first assertion stands."""
    waiting = [part]
    while waiting:
        match waiting.pop(0):
            case Look(at=at) | Times(at=at):
                return at
            case Series(parts) | Choice(parts):
                waiting = [*parts, *waiting]
            case _:
                pass
    return 0


@dataclass(slots=True)
class _Here:
    """What holds at a position: whether it is the start, which assertions that look back hold (by number)."""

    first: bool
    held: dict[int, Formula] = field(default_factory=dict)
    claims: dict[int, Formula] = field(default_factory=dict)  # by place: what it comes to here


@dataclass(frozen=True, slots=True)
class _State:
    claim: Formula
    tracked: tuple[tuple[tuple[int, Formula], ...], ...]  # by assertion that looks back: places, and under what


class _Drawing:
    def __init__(self, places: Places, start: int, final: int) -> None:
        self._places, self._start = places, start
        self._ends = {final: _AT_END}
        self._back: list[int] = []
        for number in reversed(range(len(places.watches))):
            look = places.watches[number].look
            if isinstance(look, Look) and not look.ahead:
                self._back.append(number)
            elif isinstance(look, Look):
                self._ends[places.watches[number].final] = TRUE
        sets = list(dict.fromkeys(take[0] for take in places.takes if take))
        self._classes = classes(sets)
        number_of = {ranges: number for number, ranges in enumerate(sets)}
        self._sets = [number_of[take[0]] if take else -1 for take in places.takes]
        self._heres: dict[tuple[Formula, ...], _Here] = {}
        self._work = 0

    def graph(self) -> Regular:
        """The automaton, without states that lead nowhere."""
        here, tracked = self._tracked(None, 0)
        first = _State(self._claim(self._start, here), tracked)
        numbers, order = {first: 0}, [first]
        rows: list[dict[int, list[Ranges]]] = []
        for state in order:  # grows while it is read
            row: dict[int, list[Ranges]] = {}
            for ranges, held in self._classes:
                after = self._moved(state, held)
                if after.claim == FALSE:
                    continue
                if after not in numbers:
                    if len(order) >= MAX_STATES:
                        raise TooLargeToDraw(f"more than {MAX_STATES} states")
                    numbers[after] = len(order)
                    order.append(after)
                row.setdefault(numbers[after], []).append(ranges)
            rows.append(row)
        return tidy(rows, [_holds_at_end(state.claim) for state in order])

    def _moved(self, state: _State, held: int) -> _State:
        """The state after a character of a class, which the sets in `held` hold."""
        self._spend(1)
        here, tracked = self._tracked(state, held)
        return _State(self._after(state.claim, held, here), tracked)

    def _tracked(self, state: _State | None, held: int) -> tuple[_Here, tuple[tuple[tuple[int, Formula], ...], ...]]:
        """What holds at a position, and how far assertions that look back have come; None: the start of the text."""
        here = _Here(state is None)
        if not self._back:
            key: tuple[Formula, ...] = (TRUE,) if here.first else ()
            return self._heres.setdefault(key, here), ()
        tracked = []
        for at, number in enumerate(self._back):  # those inside others come first
            watch = self._places.watches[number]
            seeds = {watch.start: TRUE}
            before = state.tracked[at] if state else ()
            self._spend(len(before))
            for place, formula in before:
                target = self._target(place, held)
                if target is not None:
                    seeds[target] = self._either(seeds.get(target, FALSE), self._after(formula, held, here))
            reached = self._reached(seeds, here)
            here.held[number] = reached.get(watch.final, FALSE)
            taking = ((place, formula) for place, formula in reached.items() if self._sets[place] >= 0)
            tracked.append(tuple(sorted(taking, key=lambda pair: pair[0])))
        key = (*here.held.values(), TRUE) if here.first else tuple(here.held.values())
        return self._heres.setdefault(key, here), tuple(tracked)

    def _target(self, place: int, held: int) -> int | None:
        """Where a character leads from a place."""
        take = self._places.takes[place]
        return take[1] if take and held >> self._sets[place] & 1 else None

    def _after(self, formula: Formula, held: int, here: _Here) -> Formula:
        """What a formula comes to after a character that leads here."""
        made = FALSE
        for clause in formula:
            part = TRUE
            self._spend(1 + len(clause))
            for claim in clause:
                place, opposite = claim >> 1, claim & 1
                target = self._target(place, held) if place else None
                after = FALSE if target is None else self._claim(target, here)
                part = self._both(part, self._not(after) if opposite else after)
                if part == FALSE:
                    break
            made = self._either(made, part)
        return made

    def _claim(self, place: int, here: _Here) -> Formula:
        """What must hold for the rest of the text to be taken from a place on."""
        known = here.claims.get(place)
        if known is not None:
            return known
        made = FALSE
        for reached, formula in self._reached({place: TRUE}, here).items():
            if reached in self._ends:
                made = self._either(made, self._both(formula, self._ends[reached]))
            if self._sets[reached] >= 0:
                made = self._either(made, self._both(formula, frozenset({frozenset({2 * reached})})))
        here.claims[place] = made
        return made

    def _reached(self, seeds: dict[int, Formula], here: _Here) -> dict[int, Formula]:
        """The places that are reached without a character, and under what."""
        reached, waiting = dict(seeds), list(seeds)
        while waiting:
            place = waiting.pop()
            self._spend(1 + len(self._places.free[place]))
            for target, watch in self._places.free[place]:
                formula = reached[place]
                if watch is not None:
                    formula = self._both(formula, self._condition(*watch, here))
                old = reached.get(target, FALSE)
                new = self._either(old, formula)
                if new != old:
                    reached[target] = new
                    waiting.append(target)
        return reached

    def _condition(self, number: int, opposite: bool, here: _Here) -> Formula:
        watch = self._places.watches[number]
        if isinstance(watch.look, Edge):
            return _AT_END if not watch.look.start else TRUE if here.first else FALSE
        # Recursion is bounded: the parser limits how deep groups with assertions nest.
        formula = self._claim(watch.start, here) if watch.look.ahead else here.held[number]
        return self._not(formula) if opposite else formula

    def _both(self, left: Formula, right: Formula) -> Formula:
        if left == TRUE or right == FALSE:
            return right
        if right == TRUE or left == FALSE:
            return left
        self._spend(len(left) * len(right))
        return self._least({one | other for one in left for other in right})

    def _either(self, left: Formula, right: Formula) -> Formula:
        if left in (FALSE, right) or right == TRUE:
            return right
        if right == FALSE or left == TRUE:
            return left
        return self._least(set(left | right))

    def _not(self, formula: Formula) -> Formula:
        made = TRUE
        for clause in formula:
            made = self._both(made, frozenset(frozenset({claim ^ 1}) for claim in clause))
        return made

    def _least(self, clauses: set[frozenset[int]]) -> Formula:
        """Without clauses that contradict themselves, and without those that another one implies."""
        kept: list[frozenset[int]] = []
        for clause in sorted(clauses, key=len):
            if any(claim ^ 1 in clause for claim in clause) or any(one <= clause for one in kept):
                continue
            kept.append(clause)
        self._spend(1 + len(clauses))
        if len(kept) > _MAX_CLAUSES:
            raise TooLargeToDraw("too much work")
        return frozenset(kept)

    def _spend(self, steps: int) -> None:
        """Counts work; raises `TooLargeToDraw` where the budget is used up."""
        self._work += steps
        if self._work > _MAX_WORK:
            raise TooLargeToDraw("too much work")


def _holds_at_end(formula: Formula) -> bool:
    return any(all(claim == 0 or (claim & 1 and claim > 1) for claim in clause) for clause in formula)


def alive(after: Sequence[Iterable[int]], accepting: Sequence[bool]) -> set[int]:
    """The states from which an accepting one is reached. `after`: by state, those that come after it, each once."""
    into: list[list[int]] = [[] for _ in after]
    for state, targets in enumerate(after):
        for target in targets:
            into[target].append(state)
    todo = [state for state, ends in enumerate(accepting) if ends]
    known = set(todo)
    for state in todo:  # grows while it is read
        fresh = [before for before in into[state] if before not in known]
        known.update(fresh)
        todo += fresh
    return known


def tidy(rows: list[dict[int, list[Ranges]]], accepting: list[bool]) -> Regular:
    """The automaton of those states from which the end can be reached, with equal states as one."""
    known = alive(rows, accepting)
    if 0 not in known:
        return NEVER
    steps = {n: [(tuple(sorted(ranges)), after) for after, ranges in rows[n].items() if after in known] for n in known}
    block = _equivalent(steps, accepting)
    one_of = {block[state]: state for state in known}
    order, numbers = [block[0]], {block[0]: 0}
    states = []
    shared: dict[Ranges, Chars] = {}
    for name in order:  # grows while it is read
        edges = []
        for after, ranges in sorted(_by_block(steps[one_of[name]], block), key=lambda edge: edge[1]):
            if after not in numbers:
                numbers[after] = len(order)
                order.append(after)
            merged = merge(pair for part in ranges for pair in part)
            edges.append((shared.setdefault(merged, Chars(merged)), numbers[after]))
        states.append((accepting[one_of[name]], tuple(edges)))
    return Graph(tuple(states))


def _equivalent(steps: dict[int, list[tuple[tuple[Ranges, ...], int]]], accepting: list[bool]) -> dict[int, int]:
    """The block of each state in the coarsest partition into equivalent states, in O(n log n) splits.

    Hopcroft's partition refinement (1971) for partial automata (Valmari and Lehtinen 2008): every initial block is a
    splitter, and a block that is split adds its smaller half. Ranges are compared as symbols, since all states have the
    same classes.
    """
    sources: dict[int, list[tuple[Ranges, int]]] = {state: [] for state in steps}
    for state, edges in steps.items():
        for parts, after in edges:
            sources[after] += [(one, state) for one in parts]
    block = {state: int(accepting[state]) for state in steps}
    members: list[set[int]] = [set(), set()]
    for state, number in block.items():
        members[number].add(state)
    splitters = [0, 1]
    while splitters:
        before: dict[Ranges, list[int]] = {}
        for state in members[splitters.pop()]:
            for symbol, source in sources[state]:
                before.setdefault(symbol, []).append(source)
        for states in before.values():
            touched: dict[int, set[int]] = {}
            for state in states:
                touched.setdefault(block[state], set()).add(state)
            for number, moved in touched.items():
                rest = len(members[number]) - len(moved)
                if rest == 0:
                    continue
                smaller = moved if len(moved) <= rest else members[number] - moved
                members[number] -= smaller
                for state in smaller:
                    block[state] = len(members)
                splitters.append(len(members))
                members.append(smaller)
    return block


def _by_block(
    steps: Iterable[tuple[tuple[Ranges, ...], int]], block: dict[int, int]
) -> tuple[tuple[int, tuple[Ranges, ...]], ...]:
    found: dict[int, list[Ranges]] = {}
    for ranges, after in steps:
        found.setdefault(block[after], []).extend(ranges)
    return tuple(sorted((after, tuple(sorted(ranges))) for after, ranges in found.items()))
