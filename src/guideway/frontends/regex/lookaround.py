"""Translates patterns with assertions in any position to a DFA, exactly.

The pattern becomes an NFA (`nfa.py`) whose epsilon transitions may have a condition. What the rest of the text must
meet is a Boolean formula in disjunctive normal form. Its variables are claims. A claim is "the rest of the text is
accepted from this NFA state", or "the text ends here". It can be negated. Reading a character replaces each claim by
the formula that must hold after this character. A lookahead adds its claim as a conjunct, a negative lookahead adds the
negated claim. A state of the DFA is such a formula and, for each lookbehind, the NFA states that the lookbehind has
reached, each with the formula under which it is reached. If the lookbehind contains no assertion, this formula is true
or false.

This is the determinization of an alternating automaton (Chandra, Kozen and Stockmeyer, "Alternation", 1981) over the
character classes that the pattern distinguishes. The number of states can be exponential, so it is limited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from guideway.background import checkpoint
from guideway.frontends.regex.nfa import AssertionNfa, TooLargeError
from guideway.frontends.regex.syntax import AlternationPart, Anchor, ConcatPart, Lookaround, Part, RepeatPart
from guideway.grammar.automata.alphabet import character_classes
from guideway.grammar.automata.minimize import minimal_automaton
from guideway.grammar.regular import Ranges, Regular

__all__ = ["MAX_STATES", "TooLarge", "to_dfa"]

MAX_STATES = 4_000
"""Maximum number of states of the DFA."""

_MAX_WORK = 400_000  # maximum number of operations on states, claims and clauses; these take about a second
_MAX_CLAUSES = 300  # maximum number of clauses of one formula

# A claim is 2 * state, or 2 * state + 1 for its negation. A clause is a conjunction of claims, a formula is a
# disjunction of clauses. Claim 0 is the end of the text.
Formula = frozenset[frozenset[int]]
TRUE: Formula = frozenset({frozenset()})
FALSE: Formula = frozenset()
_AT_END: Formula = frozenset({frozenset({0})})

TooLarge = Callable[[str, int], object]


def to_dfa(part: Part, too_large: TooLarge) -> Regular:
    """Return the language that a part matches completely, as a DFA.

    If a limit is exceeded, calls `too_large`, which must raise, with a message and a position in the pattern.
    """
    try:
        nfa = AssertionNfa()
        start, final = nfa.add_part(part)
        return _Determinizer(nfa, start, final).graph()
    except TooLargeError as problem:
        too_large(f"repeated or backward-looking assertions (lookaround, \\b, anchors) need {problem}", _first(part))
        raise


def _first(part: Part) -> int:
    """Return the position in the pattern of the first lookaround or repetition with assertions; 0 if there is none."""
    waiting = [part]
    while waiting:
        match waiting.pop(0):
            case Lookaround(at=at) | RepeatPart(at=at):
                return at
            case ConcatPart(parts) | AlternationPart(parts):
                waiting = [*parts, *waiting]
            case _:
                pass
    return 0


@dataclass(slots=True)
class _Here:
    """A position in the text.

    Attributes:
        first: Whether it is the start of the text.
        held: For each lookbehind, by its number, the formula under which it holds here.
        claims: A cache: for each NFA state, the formula of its claim at this position.
    """

    first: bool
    held: dict[int, Formula] = field(default_factory=dict)
    claims: dict[int, Formula] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _DfaState:
    claim: Formula  # what the rest of the text must meet
    tracked: tuple[tuple[tuple[int, Formula], ...], ...]  # for each lookbehind: (NFA state, formula) pairs


class _Determinizer:
    def __init__(self, nfa: AssertionNfa, start: int, final: int) -> None:
        self._nfa, self._start = nfa, start
        self._ends = {final: _AT_END}
        self._back: list[int] = []
        for number in reversed(range(len(nfa.assertions))):
            look = nfa.assertions[number].look
            if isinstance(look, Lookaround) and not look.ahead:
                self._back.append(number)
            elif isinstance(look, Lookaround):
                self._ends[nfa.assertions[number].final] = TRUE
        sets = list(dict.fromkeys(take[0] for take in nfa.takes if take))
        self._classes = character_classes(sets)
        number_of = {ranges: number for number, ranges in enumerate(sets)}
        self._sets = [number_of[take[0]] if take else -1 for take in nfa.takes]
        self._heres: dict[tuple[Formula, ...], _Here] = {}
        self._work = 0

    def graph(self) -> Regular:
        """Return the minimal DFA, without states from which no text is accepted."""
        here, tracked = self._tracked(None, 0)
        first = _DfaState(self._claim(self._start, here), tracked)
        numbers, order = {first: 0}, [first]
        rows: list[dict[int, list[Ranges]]] = []
        for state in order:  # the list grows during iteration
            row: dict[int, list[Ranges]] = {}
            for ranges, held in self._classes:
                after = self._moved(state, held)
                if after.claim == FALSE:
                    continue
                if after not in numbers:
                    if len(order) >= MAX_STATES:
                        raise TooLargeError(
                            f"more than {MAX_STATES:,} automaton states; use fewer repetitions or assertions"
                        )
                    numbers[after] = len(order)
                    order.append(after)
                row.setdefault(numbers[after], []).append(ranges)
            rows.append(row)
        return minimal_automaton(rows, [_holds_at_end(state.claim) for state in order])

    def _moved(self, state: _DfaState, held: int) -> _DfaState:
        """Return the DFA state after a character. `held` has the bits of the character sets that contain it."""
        self._spend(1)
        here, tracked = self._tracked(state, held)
        return _DfaState(self._after(state.claim, held, here), tracked)

    def _tracked(self, state: _DfaState | None, held: int) -> tuple[_Here, tuple[tuple[tuple[int, Formula], ...], ...]]:
        """Return the position after a character, and the states of the lookbehinds there.

        Args:
            state: The DFA state before the character; None: return the start of the text.
            held: The bits of the character sets that contain the character.
        """
        here = _Here(state is None)
        if not self._back:
            key: tuple[Formula, ...] = (TRUE,) if here.first else ()
            return self._heres.setdefault(key, here), ()
        tracked = []
        for at, number in enumerate(self._back):  # a lookbehind inside another one comes before it
            assertion = self._nfa.assertions[number]
            seeds = {assertion.start: TRUE}
            before = state.tracked[at] if state else ()
            self._spend(len(before))
            for place, formula in before:
                target = self._target(place, held)
                if target is not None:
                    seeds[target] = self._either(seeds.get(target, FALSE), self._after(formula, held, here))
            reached = self._reached(seeds, here)
            here.held[number] = reached.get(assertion.final, FALSE)
            taking = ((place, formula) for place, formula in reached.items() if self._sets[place] >= 0)
            tracked.append(tuple(sorted(taking, key=lambda pair: pair[0])))
        key = (*here.held.values(), TRUE) if here.first else tuple(here.held.values())
        return self._heres.setdefault(key, here), tuple(tracked)

    def _target(self, place: int, held: int) -> int | None:
        """Return the NFA state after a character with the bits `held`; None: the state has no transition for it."""
        take = self._nfa.takes[place]
        return take[1] if take and held >> self._sets[place] & 1 else None

    def _after(self, formula: Formula, held: int, here: _Here) -> Formula:
        """Return the formula after a character with the bits `held` was read. `here` is the position after it."""
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
        """Return the condition under which the rest of the text is accepted from the NFA state `place`.

        It is a formula over the end of the text and the claims of states that read a character. It is stored in `here`.
        """
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
        """Return all NFA states that are reached from `seeds` without reading, each with the formula of reaching it."""
        reached, waiting = dict(seeds), list(seeds)
        while waiting:
            place = waiting.pop()
            plain, conditional = self._nfa.free[place], self._nfa.conditional[place]
            self._spend(1 + len(plain) + len(conditional))
            for target, assertion in (*((target, None) for target in plain), *conditional):
                formula = reached[place]
                if assertion is not None:
                    formula = self._both(formula, self._condition(*assertion, here))
                old = reached.get(target, FALSE)
                new = self._either(old, formula)
                if new != old:
                    reached[target] = new
                    waiting.append(target)
        return reached

    def _condition(self, number: int, opposite: bool, here: _Here) -> Formula:
        assertion = self._nfa.assertions[number]
        if isinstance(assertion.look, Anchor):
            return _AT_END if not assertion.look.start else TRUE if here.first else FALSE
        # The recursion depth is bounded: the parser limits the nesting of groups with assertions.
        formula = self._claim(assertion.start, here) if assertion.look.ahead else here.held[number]
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
        """Return the disjunction of clauses, without contradictory ones and without those that imply another one."""
        kept: list[frozenset[int]] = []
        for clause in sorted(clauses, key=len):
            if any(claim ^ 1 in clause for claim in clause) or any(one <= clause for one in kept):
                continue
            kept.append(clause)
        self._spend(1 + len(clauses))
        if len(kept) > _MAX_CLAUSES:
            raise TooLargeError(f"more than {_MAX_CLAUSES} clauses in a formula")
        return frozenset(kept)

    def _spend(self, steps: int) -> None:
        """Count operations. Raises `TooLargeError` if there are more than `_MAX_WORK`."""
        checkpoint()
        self._work += steps
        if self._work > _MAX_WORK:
            raise TooLargeError(f"more than {_MAX_WORK:,} operations")


def _holds_at_end(formula: Formula) -> bool:
    return any(all(claim == 0 or (claim & 1 and claim > 1) for claim in clause) for clause in formula)
