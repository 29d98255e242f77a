"""Wants -> bundles: what a set of schemas, positive and negative, comes down to, as alternatives that may overlap.

The search keeps its own stack. A state is a bundle, the literals still to read, and the forks still to take; a fork
whose options contradict the bundle is cut off at once, so that tags and types decide before anything is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from guideway.errors import InvalidConstraint, LimitExceeded

from .bundles import (
    ALL,
    ARRAY,
    FREE,
    OBJECT,
    STRING,
    Bundle,
    Group,
    ObjectPart,
    Want,
    join,
    merge,
    says,
)
from .documents import Documents
from .evaluated import NOTHING_EVALUATED, Evaluated, left_over, missed
from .limits import (
    MAX_ALTERNATIVES,
    MAX_LOOKAHEAD,
    MAX_NESTED,
    MAX_OPENED,
    MAX_STEPS,
    MAX_STEPS_AHEAD,
    MAX_TOLD_APART,
    MAX_WORK,
)
from .opposites import bundle_of_value, opposites
from .places import Places
from .rivals import discriminator, plainly_said, rivals_of
from .scalars import tested
from .terms import Fork, Place, Term, want

__all__ = ["Expander"]

_NO_OBJECT = Bundle(ALL & ~OBJECT)


class Expander(Places):
    """What wants come down to."""

    def __init__(self, documents: Documents) -> None:
        super().__init__(documents)
        self._known: dict[Want, list[Bundle]] = {}
        self._sound: set[int] = set()
        self._offers: dict[tuple[Fork, bool | None], list[_Choice] | None] = {}
        self._misses: dict[int, list[_Choice]] = {}  # by literal, as the next
        self._rests: dict[tuple[int, bool | None], list[_Choice]] = {}
        self._bares: dict[int, int] = {}
        self._undecided: set[Want] = set()
        self._depth = 0
        self._steps = 0
        self._work = 0
        self._at = ""

    # -- alternatives

    def alternatives(self, wanted: Want) -> list[Bundle]:
        """What a value must be to meet them all: any of these bundles. None: no value can."""
        found = self._known.get(wanted)
        if found is None:
            found = self._known[wanted] = self._alternatives(wanted)
        return found

    def _alternatives(self, wanted: Want) -> list[Bundle]:
        if not wanted:
            return [FREE]
        if len(wanted) == 1:
            (literal,) = wanted
            if literal == 1:
                return []
            if not literal & 1:
                term = self.term(self.places[literal >> 1])
                if not term.also and not term.forks and term.left is None and not term.own.boxes:
                    return [term.own] if term.own.types else []
        for literal in wanted:
            self._check_circles(literal >> 1)
        return [bundle for bundle, _ in self._search(wanted, None)]

    def _check_circles(self, start: int) -> None:
        """Refuse references that lead back without any text in between."""
        if start in self._sound:
            return
        path: list[tuple[int, list[int]]] = [(start, self._leads(start))]
        entered = {start}
        while path:
            number, waiting = path[-1]
            if not waiting:
                self._sound.add(number)
                entered.discard(number)
                path.pop()
                continue
            following = waiting.pop()
            if following in entered:
                place = self.places[following].pointer
                raise InvalidConstraint(f"at {place!r}: the references lead back here without any text", place)
            if following not in self._sound:
                entered.add(following)
                path.append((following, self._leads(following)))

    def _leads(self, number: int) -> list[int]:
        return [one >> 1 for one in self.term(self.places[number]).leads if one > 1]

    def _search(self, wanted: Want, tracked: bool | None) -> list[tuple[Bundle, Evaluated]]:
        """Depth first. `tracked`: None, or record what is evaluated (True: exactly so much; False: at least)."""
        place = self.places[min(wanted) >> 1].pointer
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise LimitExceeded(f"at {place!r}: more than {MAX_NESTED} choices stand in one another", place)
        start = [~one if tracked is not None else one for one in sorted(wanted)]
        found: list[tuple[Bundle, Evaluated]] = []
        stack: list[_State] = [_State(FREE, NOTHING_EVALUATED, start, [], set())]
        if self._depth == 1:
            self._steps = 0
        while stack:
            state = stack.pop()
            self._steps += 1 + len(state.forks)
            self._at = place
            self._spend(1 + len(state.forks), place)
            if len(found) > MAX_ALTERNATIVES or self._steps > MAX_STEPS:
                raise LimitExceeded(f"at {place!r}: comes down to more than {MAX_ALTERNATIVES} alternatives", place)
            if not self._settle(state, tracked):
                continue
            if not state.forks:
                found += ((bundle, state.evaluated) for bundle in self._unboxed(state.bundle))
                continue
            stack += reversed(self._branches(state))
        self._depth -= 1
        return found

    def _spend(self, work: int, place: str) -> None:
        """Count the work on the whole document; what one place may cost is counted apart."""
        self._work += work
        if self._work > MAX_WORK + 20 * len(self.places):
            raise LimitExceeded(f"at {place!r}: too many alternatives in all, up to here", place)

    def _settle(self, state: _State, exactly: bool | None) -> bool:
        """Read the literals that wait; False where they contradict each other."""
        while state.waiting:
            mark = state.waiting.pop()
            if mark in state.done:
                continue
            literal = ~mark if mark < 0 else mark
            if literal == 0:
                continue
            if literal == 1 or (literal ^ 1) in state.done or ~(literal ^ 1) in state.done:
                return False
            state.done.add(mark)
            place = self.places[literal >> 1]
            if literal & 1:
                opposites = self._missing(place)
                if not opposites:
                    return False
                state.forks.append(opposites)
                continue
            term = self.term(place)
            if term.left is not None:
                rest = self._with_left(place, term, exactly if mark < 0 else None)
                if not rest:
                    return False
                state.forks.insert(0, rest if mark < 0 else [(bundle, marks, None) for bundle, marks, _ in rest])
                continue
            merged = merge(state.bundle, term.own) if term.own is not FREE else state.bundle
            if merged is None:
                return False
            state.bundle = merged
            tracked = mark < 0
            if tracked:
                state.evaluated |= term.evaluates
            state.waiting += _marks(term.also, tracked)
            for fork in term.forks:
                choices = self._choices(fork, exactly if tracked else None)
                if choices is not None:
                    state.forks.append(choices)
        return True

    def _branches(self, state: _State) -> list[_State]:
        """The states that the narrowest of the forks leads to; the forks that say nothing new are dropped."""
        best: list[_Choice] | None = None
        at = -1
        for number, fork in reversed(list(enumerate(state.forks))):
            live = self._live(state, fork)
            if live is None:
                del state.forks[number]
                at -= 1
            elif best is None or len(live) <= len(best):
                best, at = live, number
                if len(live) == 0:
                    return []
        if best is None:
            return [state]
        del state.forks[at]
        made = []
        for bundle, marks, evaluated in best:
            seen = state.evaluated if evaluated is None else state.evaluated | evaluated
            made.append(
                _State(bundle or state.bundle, seen, [*state.waiting, *marks], list(state.forks), set(state.done))
            )
        return made

    def _live(self, state: _State, choices: list[_Choice]) -> list[_Choice] | None:
        """What is left of a fork, each choice with the state's bundle; None where one of them holds already."""
        live: list[_Choice] = []
        self._spend(len(choices), self._at)
        telling = any(mark < 0 for _, marks, _ in choices for mark in marks)
        for bundle, marks, evaluated in choices:
            if any(mark == 1 or (mark >= 0 and mark ^ 1 in state.done) for mark in marks):
                continue
            held = bundle is None or says(state.bundle, bundle)
            if held and not telling and evaluated is None and all(one == 0 or one in state.done for one in marks):
                return None
            merged = state.bundle if held or bundle is None else merge(state.bundle, bundle)
            if merged is None or not all(self._agrees(merged, mark) for mark in marks):
                continue
            if bundle is not None and not held and bundle.object is not None and self._is_dead(merged, bundle.object):
                continue
            live.append((merged, marks, evaluated))
        return live

    def _agrees(self, bundle: Bundle, mark: int) -> bool:
        """Whether what a positive literal plainly says leaves any type."""
        literal = ~mark if mark < 0 else mark
        if literal & 1 or not literal:
            return True
        term = self.term(self.places[literal >> 1])
        return term.left is not None or term.own is FREE or merge(bundle, term.own) is not None

    def _is_dead(self, bundle: Bundle, added: ObjectPart) -> bool:
        """Whether a key that was just asked for can have no value."""
        part = bundle.object
        if part is None or bundle.types != OBJECT:
            return False
        for name in added.required:
            wanted = plainly_said(part, name)
            if 1 in wanted or (len(wanted) > 1 and self._has_no_value(wanted)):
                return True
        return False

    # -- choices

    def _choices(self, fork: Fork, exactly: bool | None) -> list[_Choice] | None:
        """What a fork offers; None where it says nothing."""
        key = (fork, exactly)
        if key not in self._offers:
            self._offers[key] = self._offer(fork, exactly)
        return self._offers[key]

    def _offer(self, fork: Fork, exactly: bool | None) -> list[_Choice] | None:
        tracked, literals = exactly is not None, fork.literals
        if fork.kind == "when":
            return self._when(fork, tracked)
        if fork.kind == "if":
            condition, then, other = literals
            if not (then or other or tracked):
                return None
            return [
                (None, _marks((condition, then), tracked), None),
                (None, _marks((condition ^ 1, other), tracked), None),
            ]
        if fork.kind == "one":
            return self._one_of(fork, tracked)
        if 0 in literals and not tracked:
            return None
        if not tracked:
            return [(None, (one,), None) for one in literals]
        return self._any_evaluated(fork, bool(exactly))

    def _when(self, fork: Fork, tracked: bool) -> list[_Choice] | None:
        without = Bundle(object=ObjectPart(banned=frozenset((fork.name,))))
        need = {fork.name: None, **dict.fromkeys(fork.needs)}
        if len(need) == 1 and not any(fork.literals):
            return None
        has = Bundle(OBJECT, object=ObjectPart(required=need))
        return [(without, (), None), (has, _marks(fork.literals, tracked), None)]

    def _one_of(self, fork: Fork, tracked: bool) -> list[_Choice]:
        literals = fork.literals
        faces = [self._face(one, fork.beside) for one in literals]
        rivals = rivals_of(literals, faces, self._term_of, self._has_no_value, fork.place)
        made: list[_Choice] = []
        for i, one in enumerate(literals):
            marks = _marks((one,), tracked)
            made += self._none_of(rivals[i], literals, faces, FREE, marks)
        return made

    def _none_of(
        self, among: Sequence[int], literals: Sequence[int], faces: list[list[Bundle]], beside: Bundle, marks: _Marks
    ) -> list[_Choice]:
        """The marks, and none of some branches. Where a key tells those apart, its value leaves at most one to miss."""
        name, told = discriminator(among, faces, self._term_of) if len(among) > 2 else ("", {})
        marks = (*marks, *(literals[j] ^ 1 for j in among if j not in told))
        bundle = None if beside is FREE else beside
        if len(told) < 2:
            return [(bundle, (*marks, *(literals[j] ^ 1 for j in told)), None)]
        absent = tuple(literals[j] ^ 1 for j, (_, needed) in told.items() if not needed)
        without = Bundle(OBJECT, object=ObjectPart(banned=frozenset((name,))))
        cases = [(_NO_OBJECT, marks), (without, (*marks, *absent))]
        cases += ((self._tagged(name, tags, 0), (*marks, literals[j] ^ 1)) for j, (tags, _) in told.items())
        cases.append((self._tagged(name, {tag for tags, _ in told.values() for tag in tags}, 1), marks))
        both = ((merge(beside, case), here) for case, here in cases)
        return [(one, here, None) for one, here in both if one is not None]

    def _face(self, literal: int, beside: Bundle) -> list[Bundle]:
        """What a branch comes down to where it stands; a few given arrays and objects as what their parts must be."""
        made = []
        for bundle in self.alternatives(want(literal)):
            few = bundle.boxes is not None and len(bundle.boxes) <= MAX_OPENED
            made += self._opened(bundle) if few else [bundle]
        both = (bundle if beside is FREE else merge(bundle, beside) for bundle in made)
        return [bundle for bundle in both if bundle is not None]

    def _tagged(self, name: str, tags: set[str], sign: int) -> Bundle:
        """Objects whose value at a key is one of the strings (or, by the sign, none of them)."""
        value = self.value_literal(self.places[0], {"enum": sorted(tags)}) ^ sign
        return Bundle(OBJECT, object=ObjectPart((Group({name: want(value)}),), {name: None}))

    def _term_of(self, literal: int) -> Term:
        return self.term(self.places[literal >> 1])

    def _has_no_value(self, wanted: Want) -> bool:
        """Whether no value can meet a want, as far as is worth looking."""
        if self._depth > MAX_LOOKAHEAD or wanted in self._undecided:
            return False
        depth, steps = self._depth, self._steps
        self._steps = MAX_STEPS - MAX_STEPS_AHEAD
        try:
            return not self.alternatives(wanted)
        except LimitExceeded:
            if self._work > MAX_WORK + 20 * len(self.places):
                raise
            self._undecided.add(wanted)
            return False
        finally:
            self._depth, self._steps = depth, steps + MAX_STEPS_AHEAD // 50

    def _any_evaluated(self, fork: Fork, exactly: bool) -> list[_Choice]:
        """Which branches hold decides what is evaluated: every set of those that evaluate anything."""
        telling = [one for one in fork.literals if self._evaluates(one)]
        others = [one for one in fork.literals if one not in telling]
        if len(telling) > MAX_TOLD_APART:
            raise LimitExceeded(
                f"at {fork.place!r}: more than {MAX_TOLD_APART} branches decide what is evaluated", fork.place
            )
        made: list[_Choice] = []
        for bits in range(1 << len(telling)):
            held = tuple(one for i, one in enumerate(telling) if bits >> i & 1)
            missed_ones = tuple(one ^ 1 for i, one in enumerate(telling) if not bits >> i & 1) if exactly else ()
            marks = (*_marks(held, True), *missed_ones)
            if held:
                made.append((None, marks, None))
            else:
                made += ((None, (*marks, one), None) for one in others)
        return made

    def _evaluates(self, literal: int) -> bool:
        """Whether a schema, or one that holds in its place, evaluates anything."""
        seen, todo = set(), [literal]
        while todo:
            one = todo.pop()
            if one in seen or one < 2 or one & 1:
                continue
            seen.add(one)
            term = self.term(self.places[one >> 1])
            if term.told is not None:
                return True
            todo += term.leads
        return False

    def _missing(self, place: Place) -> list[_Choice]:
        if place.literal not in self._misses:
            term = self.term(place)
            options = opposites(term, lambda schema: self.value_literal(place, schema))
            choices: list[_Choice] = [(bundle, marks, None) for bundle, marks in options]
            for fork in term.forks:
                if fork.kind in ("any", "one"):
                    choices += self._not_chosen(fork)
            choices = [choice for choice in choices if 1 not in choice[1]]
            if term.left is not None:
                keys, items = (None if one is None else want(one ^ 1) for one in term.left)
                for bundle, seen in self._search(frozenset((self._bare(place),)), True):
                    choices += ((one, (), None) for one in missed(bundle, seen, keys, self._items(place, items, seen)))
            self._misses[place.literal] = choices
        return self._misses[place.literal]

    def _not_chosen(self, fork: Fork) -> list[_Choice]:
        """None of the branches; or, where one must be, two of them."""
        literals = fork.literals
        if len(literals) < 3 or 0 in literals:
            made: list[_Choice] = [(None, tuple(one ^ 1 for one in literals), None)]
            pairs = [(a, b) for i, a in enumerate(literals) for b in literals[:i]]
            return made + [(None, pair, None) for pair in pairs if fork.kind == "one"]
        faces = [self._face(one, fork.beside) for one in literals]
        made = self._none_of(range(len(literals)), literals, faces, fork.beside, ())
        if fork.kind == "one":
            rivals = rivals_of(literals, faces, self._term_of, self._has_no_value, fork.place)
            bundle = None if fork.beside is FREE else fork.beside
            made += ((bundle, (literals[i], literals[j]), None) for i, row in enumerate(rivals) for j in row if j < i)
        return made

    def _with_left(self, place: Place, term: Term, exactly: bool | None) -> list[_Choice]:
        """A schema with `unevaluated*`: what the rest of it comes down to, each with what is left over."""
        key = (place.literal, exactly)
        if key not in self._rests:
            keys, items = (None if one is None else want(one) for one in term.left or (None, None))
            choices: list[_Choice] = []
            for bundle, seen in self._search(frozenset((self._bare(place),)), bool(exactly)):
                loose = items
                if items is not None and seen.contains and not seen.all_items:
                    loose = self.any_of(place, (*seen.contains, *(items or (0,))))
                made = left_over(bundle, seen, keys, loose)
                if made is not None:
                    choices.append((made, (), seen | term.evaluates))
            self._rests[key] = choices
        return self._rests[key]

    def _items(self, place: Place, items: Want | None, seen: Evaluated) -> Want | None:
        """What an item that misses `unevaluatedItems` must be: none that `contains` has found."""
        if items is None:
            return None
        wanted = items
        for one in seen.contains:
            wanted = join(wanted, want(one ^ 1))
        return wanted

    def _bare(self, place: Place) -> int:
        """The literal of the schema without its `unevaluated*`."""
        if place.literal not in self._bares:
            made = Place(2 * len(self.places), place.schema, place.pointer, place.resource, place.scope)
            term = self.term(place)
            told = term.told
            if told is not None:
                found = {name: one for name, one in told[0].items() if not name.startswith("unevaluated")}
                told = (found, *told[1:])
            made.term = replace(term, left=None, told=told)
            self.places.append(made)
            self._bares[place.literal] = made.literal
        return self._bares[place.literal]

    # -- given arrays and objects

    def _unboxed(self, bundle: Bundle) -> list[Bundle]:
        """Given arrays and objects that something else is said about become what their parts must be."""
        if bundle.string and bundle.string.given and bundle.string.tests:
            bundle = replace(bundle, string=tested(bundle.string))
            bundle.types &= ~0 if bundle.string else ~STRING
        if not bundle.types:
            return []
        if bundle.boxes is None or not (bundle.array or bundle.object):
            return [bundle]
        return self._opened(bundle)

    def _opened(self, bundle: Bundle) -> list[Bundle]:
        plain = replace(bundle, types=bundle.types & ~(ARRAY | OBJECT), boxes=None, array=None, object=None)
        made = [plain] if plain.types else []
        place = self.places[0]
        for box in (bundle.boxes or {}).values():
            inner = bundle_of_value(box, lambda value: self.value_literal(place, {"enum": [value]}))
            merged = merge(replace(bundle, boxes=None), inner)
            made += [merged] if merged else []
        return made


def _marks(literals: tuple[int, ...], tracked: bool) -> tuple[int, ...]:
    """Positive literals as their complement where what they evaluate counts."""
    if not tracked:
        return literals
    return tuple(one if one & 1 or not one else ~one for one in literals)


_Marks = tuple[int, ...]
_Choice = tuple[Bundle | None, tuple[int, ...], Evaluated | None]


@dataclass(slots=True, eq=False)
class _State:
    """What is known, what was evaluated, what waits to be read, and the choices still to make.

    `waiting` and `done` hold literals; one whose evaluations count is written as its complement.
    """

    bundle: Bundle
    evaluated: Evaluated
    waiting: list[int]
    forks: list[list[_Choice]]
    done: set[int]
