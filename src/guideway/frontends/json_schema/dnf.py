"""Expands wants (conjunctions of possibly negated schema references) to disjunctive normal form.

The result is a list of bundles, which may overlap. The search uses an explicit stack. A state consists of a bundle, the
literals to read, and the forks (disjunctions) to branch on. An option that contradicts the bundle is discarded
immediately. Therefore discriminators and types are decided before disjunctions are multiplied.

An applicator offers choices: `anyOf` and similar keywords, negations and `unevaluated*`. A choice has three fields: a
bundle or None, literals that must also hold, and the evaluated keys and items if they are already known. A literal whose
evaluations are tracked is written as its bitwise complement. Such a signed literal is called a mark.

The work limits are counts, so a schema is accepted or refused equally on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.frontends.json_schema.assertions import (
    ALL,
    ARRAY,
    FREE,
    NUMBER,
    OBJECT,
    STRING,
    Bundle,
    Group,
    NumberPart,
    ObjectPart,
    Option,
    StringPart,
    Want,
    box_key,
    bundle_of_value,
    join,
    merge,
    negations,
    says,
    want,
)
from guideway.frontends.json_schema.decision_diagram import MAX_OPENED, MIN_TALLY, TooHard, objects_by_cases
from guideway.frontends.json_schema.one_of import Tags, discriminator, plainly_said, rivals_of, tags_of
from guideway.frontends.json_schema.parse import Fork, Place, Places, Term
from guideway.frontends.json_schema.references import Documents
from guideway.frontends.json_schema.strings import tested
from guideway.frontends.json_schema.unevaluated import NOTHING_EVALUATED, Evaluated, left_over, missed
from guideway.jsontext.pointer import shown

__all__ = ["MAX_WIDE", "Choice", "Expander", "Marks", "marks_of"]

MAX_ALTERNATIVES = 10_000
"""The maximum number of alternatives of one node."""

MAX_STEPS = 25_000
"""The maximum number of search steps for one node."""

MAX_WORK = 200_000
"""The maximum number of search steps for a document, plus a number for each of its schemas."""

MAX_STEPS_AHEAD = 500
"""The maximum number of search steps to find that the value of a required key is unsatisfiable."""

MAX_LOOKAHEAD = 4
"""The maximum nesting depth at which the value of a required key is checked for satisfiability."""

MAX_NESTED = 50
"""The maximum nesting depth of `oneOf` and `unevaluated*` that apply to the same value."""

MAX_TOLD_APART = 10
"""The maximum number of `anyOf` branches that evaluate keys or items, if `unevaluated*` depends on them."""

MAX_WIDE = 250
"""The maximum number of object alternatives of a node if such nodes are nested: parser states multiply."""

MAX_STEPS_FIRST = 3_000
"""The maximum number of search steps before objects are divided by cases."""

MAX_WORK_FIRST = 20_000
"""The maximum total work of the first search, before objects are divided by cases."""

Marks = tuple[int, ...]
Choice = tuple[Bundle | None, Marks, Evaluated | None]

_NO_OBJECT = Bundle(ALL & ~OBJECT)


def marks_of(literals: tuple[int, ...], tracked: bool) -> tuple[int, ...]:
    """Replace positive literals by their complement if their evaluations are tracked."""
    if not tracked:
        return literals
    return tuple(one if one & 1 or not one else ~one for one in literals)


def negated(term: Term, literal_of: Callable[[Any], int]) -> list[Option]:
    """Return the negation of a term as a disjunction. `unevaluated*` and the forks `any` and `one` are not included."""
    options = negations(term.own, literal_of)
    options += ((None, (one ^ 1,)) for one in term.also)
    for fork in term.forks:
        options += _other_fork(fork)
    return options


def _other_fork(fork: Fork) -> list[Option]:
    literals = fork.literals
    if fork.kind == "if":
        condition, then, other = literals
        return [(None, (condition, then ^ 1)), (None, (condition ^ 1, other ^ 1))]
    if fork.kind == "when":
        has = Bundle(OBJECT, object=ObjectPart(required={fork.name: None}))
        options: list[Option] = [(has, (one ^ 1,)) for one in literals]
        for name in fork.needs:
            part = ObjectPart(required={fork.name: None}, banned=frozenset((name,)))
            options += [(Bundle(OBJECT, object=part), ())] if name != fork.name else []
        return options
    return []  # negations of `any` and `one` are made by `Expander`, which knows which branches overlap


class Expander(Places):
    """Expands wants to bundles. Results are cached per want."""

    def __init__(self, documents: Documents) -> None:
        super().__init__(documents)
        self._known: dict[Want, list[Bundle]] = {}
        self._same: dict[Hashable, list[Bundle]] = {}
        self._sound: set[int] = set()
        self._undecided: set[Want] = set()
        self._depth = 0
        self._steps = 0
        self._limit = MAX_STEPS
        self._ahead = False
        self._work = 0
        self._most = 0  # the work limit of the first, short search; 0: none
        self._at = ""
        self._offers: dict[tuple[Fork, bool | None], list[Choice] | None] = {}
        self._misses: dict[int, list[Choice]] = {}  # by literal, also in the next two
        self._rests: dict[tuple[int, bool | None], list[Choice]] = {}
        self._bares: dict[int, int] = {}

    def alternatives(self, wanted: Want) -> list[Bundle]:
        """Return the disjunctive normal form of a want: a value meets it if it meets any bundle.

        An empty list means that no value meets the want.
        """
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
        if self._ahead:
            return [bundle for bundle, _ in self.search(wanted, None)]
        before = self._steps, self._limit, self._depth
        most = self._most
        self._steps, self._limit = 0, MAX_STEPS_FIRST
        shape = self._shape(min(wanted)) if len(wanted) == 1 else None
        same = None if shape is None else self._same.get(shape)
        try:
            if same is None:
                same = self._first_or_cases(wanted)
                if shape is not None:
                    self._same[shape] = same
            return same
        finally:
            spent = self._steps
            self._steps, self._limit, self._depth = before
            self._most = most
            self._steps += min(spent, MAX_STEPS_FIRST) if self._depth else 0

    def _shape(self, literal: int) -> Hashable | None:
        """A cache key for equal schemas with forks. None for other schemas."""
        place = self.places[literal >> 1]
        if not self.term(place).forks or not isinstance(place.schema, dict) or not place.schema:
            return None
        if len(self.documents.owners) > 1:  # references of equal schemas may resolve differently
            return None
        return literal & 1, box_key(place.schema), id(place.resource), place.scope

    def _first_or_cases(self, wanted: Want) -> list[Bundle]:
        """Run a short search. If its result is too large, divide objects by cases. If that fails, run a long search."""
        found: list[Bundle] | None = None
        depth = self._depth
        problem: LimitExceededError | None = None
        work = self._work
        self._most = work + MAX_WORK_FIRST
        if self._prefers_cases(wanted):
            try:
                return self._by_cases(wanted)
            except (TooHard, LimitExceededError):
                self._depth, self._work = depth, work
                self._steps, self._limit = 0, MAX_STEPS_FIRST
        try:
            found = [bundle for bundle, _ in self.search(wanted, None)]
            if sum(1 for bundle in found if bundle.types & OBJECT) <= MAX_WIDE:
                return found
        except LimitExceededError as error:
            problem = error
            if work + MAX_WORK_FIRST <= self._work <= self._most_work():
                # the search is repeated, so only a tenth of its work is charged
                self._work = work + MAX_WORK_FIRST // 10
        self._depth = depth
        self._most = 0
        self._steps, self._limit = 0, MAX_STEPS
        try:
            divided = self._by_cases(wanted)
            if found is None or len(divided) < len(found):
                return divided
        except (TooHard, LimitExceededError):
            self._depth = depth
        if found is not None:
            return found
        self._steps, self._limit = 0, MAX_STEPS
        if self._work > self._most_work() and problem is not None:
            raise problem
        return [bundle for bundle, _ in self.search(wanted, None)]

    def _prefers_cases(self, wanted: Want) -> bool:
        """Whether a schema is `oneOf` with many objects that have no required key in common."""
        literal = min(wanted)
        if len(wanted) > 1 or literal & 1:
            return False
        term = self.term(self.places[literal >> 1])
        fork = next((fork for fork in term.forks if fork.kind == "one" and len(fork.literals) >= MIN_TALLY), None)
        if fork is None or len(term.forks) > 1 or term.also or term.left is not None:
            return False
        required: set[str] | None = None
        for one in fork.literals:
            branch = self.term(self.places[one >> 1])
            part = branch.own.object
            if one & 1 or one < 2 or part is None or branch.forks or branch.also or branch.left is not None:
                return False
            required = set(part.required) if required is None else required & part.required.keys()
        return not required

    def _by_cases(self, wanted: Want) -> list[Bundle]:
        """Expand the other types by search, and objects by cases."""
        parts, whole, others = objects_by_cases(self, wanted)
        made = [Bundle(whole)] if whole else []
        for types in others:
            self._steps, self._limit = 0, MAX_STEPS
            made += (bundle for bundle, _ in self.search(wanted, None, Bundle(types)))
        return made + [Bundle(OBJECT, object=part) for part in parts]

    def _check_circles(self, start: int) -> None:
        """Raise an error if references form a cycle that consumes no text."""
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
                raise InvalidConstraintError(
                    f"at {shown(place)}: this $ref leads back to itself without consuming text, so it describes no value",
                    place,
                )
            if following not in self._sound:
                entered.add(following)
                path.append((following, self._leads(following)))

    def _leads(self, number: int) -> list[int]:
        return [one >> 1 for one in self.term(self.places[number]).leads if one > 1]

    def search(self, wanted: Want, tracked: bool | None, start: Bundle = FREE) -> list[tuple[Bundle, Evaluated]]:
        """Search depth first.

        Args:
            wanted: The conjunction to expand.
            tracked: None, or whether to record exactly what is evaluated (True) or a lower bound of it (False).
            start: The bundle of the first state.
        """
        place = self.places[min(wanted) >> 1].pointer
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise LimitExceededError(
                f"at {shown(place)}: choices (anyOf, oneOf, if) are nested more than {MAX_NESTED} deep; nest fewer of them",
                place,
            )
        waiting = [~one if tracked is not None else one for one in sorted(wanted)]
        found: list[tuple[Bundle, Evaluated]] = []
        stack: list[_State] = [_State(start, NOTHING_EVALUATED, waiting, [], set())]
        while stack:
            state = stack.pop()
            self._steps += 1 + len(state.forks)
            self._at = place
            self._spend(1 + len(state.forks), place)
            if len(found) > MAX_ALTERNATIVES or self._steps > self._limit:
                raise LimitExceededError(
                    f"at {shown(place)}: the schema expands to more than {MAX_ALTERNATIVES:,} alternatives; use fewer nested branches",
                    place,
                )
            if not self._settle(state, tracked):
                continue
            if not state.forks:
                found += ((bundle, state.evaluated) for bundle in self.unboxed(state.bundle))
                continue
            stack += reversed(self._branches(state))
        self._depth -= 1
        return found

    def spend_pairs(self, count: int) -> None:
        """Count compared pairs. Only a short search is aborted, because the division by cases needs no pairs."""
        if self._limit < MAX_STEPS:
            self._steps += count
            if self._steps > self._limit:
                raise LimitExceededError(
                    f"at {shown(self._at)}: more than the allowed pairs of alternatives must be compared; use fewer branches",
                    self._at,
                )

    def _spend(self, work: int, place: str) -> None:
        """Count the work on the whole document. The work on a single place is counted separately."""
        self._work += work
        if self._work > (self._most or self._most_work()):
            raise LimitExceededError(
                f"at {shown(place)}: the schema up to here expands to too many alternatives; use fewer nested branches",
                place,
            )

    def _most_work(self) -> int:
        return MAX_WORK + 20 * len(self.places)

    def _settle(self, state: _State, exactly: bool | None) -> bool:
        """Read the waiting literals. Returns False if they contradict each other."""
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
                opposites = self.missing(place)
                if not opposites:
                    return False
                state.forks.append(opposites)
                continue
            term = self.term(place)
            if term.left is not None:
                rest = self.with_left(place, term, exactly if mark < 0 else None)
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
            state.waiting += marks_of(term.also, tracked)
            for fork in term.forks:
                choices = self.choices(fork, exactly if tracked else None)
                if choices is not None:
                    state.forks.append(choices)
        return True

    def _branches(self, state: _State) -> list[_State]:
        """The successor states for the fork with the fewest live options.

        Forks that are already satisfied are removed.
        """
        best: list[Choice] | None = None
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

    def _live(self, state: _State, choices: list[Choice]) -> list[Choice] | None:
        """The live options of a fork, each merged with the state's bundle. None if one option already holds."""
        live: list[Choice] = []
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
        """Whether the own assertions of a positive literal leave any type."""
        literal = ~mark if mark < 0 else mark
        if literal & 1 or not literal:
            return True
        term = self.term(self.places[literal >> 1])
        return term.left is not None or term.own is FREE or merge(bundle, term.own) is not None

    def _is_dead(self, bundle: Bundle, added: ObjectPart) -> bool:
        """Whether a newly required key can have no value."""
        part = bundle.object
        if part is None or bundle.types != OBJECT:
            return False
        for name in added.required:
            wanted = plainly_said(part, name)
            if 1 in wanted or (len(wanted) > 1 and self.has_no_value(wanted)):
                return True
        return False

    def has_no_value(self, wanted: Want) -> bool:
        """Whether no value can meet a want. The search is bounded; False may mean that it was not decided."""
        if self._depth > MAX_LOOKAHEAD or wanted in self._undecided:
            return False
        known = self._known.get(wanted)
        if known is not None:
            self._steps += MAX_STEPS_AHEAD // 50
            return not known
        before = self._depth, self._steps, self._limit, self._ahead
        self._steps, self._limit, self._ahead = 0, MAX_STEPS_AHEAD, True
        try:
            return not self.alternatives(wanted)
        except LimitExceededError:
            if self._work > self._most_work():
                raise
            self._undecided.add(wanted)
            return False
        finally:
            self._depth, self._steps, self._limit, self._ahead = before
            self._steps += MAX_STEPS_AHEAD // 50

    # -- the choices of an applicator

    def choices(self, fork: Fork, exactly: bool | None) -> list[Choice] | None:
        """The choices of a fork (disjunction). None if the fork asserts nothing."""
        key = (fork, exactly)
        if key not in self._offers:
            self._offers[key] = self._offer(fork, exactly)
        return self._offers[key]

    def _offer(self, fork: Fork, exactly: bool | None) -> list[Choice] | None:
        tracked, literals = exactly is not None, fork.literals
        if fork.kind == "when":
            return self._when(fork, tracked)
        if fork.kind == "if":
            condition, then, other = literals
            if not (then or other or tracked):
                return None
            return [
                (None, marks_of((condition, then), tracked), None),
                (None, marks_of((condition ^ 1, other), tracked), None),
            ]
        if fork.kind == "one":
            return self._one_of(fork, tracked)
        if 0 in literals and not tracked:
            return None
        if not tracked:
            return self._values_joined([(None, (one,), None) for one in literals])
        return self._any_evaluated(fork, bool(exactly))

    def _when(self, fork: Fork, tracked: bool) -> list[Choice] | None:
        without = Bundle(object=ObjectPart(banned=frozenset((fork.name,))))
        need = {fork.name: None, **dict.fromkeys(fork.needs)}
        if len(need) == 1 and not any(fork.literals):
            return None
        has = Bundle(OBJECT, object=ObjectPart(required=need))
        return [(without, (), None), (has, marks_of(fork.literals, tracked), None)]

    def _one_of(self, fork: Fork, tracked: bool) -> list[Choice]:
        literals = fork.literals
        faces = [self._face(one, fork.beside) for one in literals]
        rivals = rivals_of(literals, faces, self._term_of, self.has_no_value, fork.place, self.spend_pairs)
        self.spend_pairs(sum(map(len, rivals)))
        made: list[Choice] = []
        tags = tags_of(faces, self._term_of) if any(len(row) > 2 for row in rivals) else {}
        for i, one in enumerate(literals):
            marks = marks_of((one,), tracked)
            made += self._none_of(rivals[i], literals, tags, FREE, marks)
        return made if tracked else self._values_joined(made)

    def _values_joined(self, choices: list[Choice]) -> list[Choice]:
        """Combine the choices that only list scalars into one choice."""
        numbers: set[int | Decimal] = set()
        strings: dict[str, None] = {}
        types = 0
        others: list[Choice] = []
        for choice in choices:
            bundle, marks, _ = choice
            own = self._term_of(marks[0]).own if len(marks) == 1 and marks[0] > 1 and not marks[0] & 1 else None
            if bundle is not None or own is None or not self._lists_scalars(marks[0]):
                others.append(choice)
                continue
            types |= own.types
            numbers.update((own.number.given if own.number else None) or ())
            strings.update((own.string.given if own.string else None) or {})
        if len(choices) - len(others) < 2:
            return choices
        number = NumberPart(given=frozenset(numbers)) if numbers else None
        string = StringPart(given=strings) if strings else None
        return [(Bundle(types, number, string), (), None), *others]

    def _lists_scalars(self, literal: int) -> bool:
        term = self._term_of(literal)
        own = term.own
        if term.also or term.forks or term.left is not None or not own.types or own.types & (ARRAY | OBJECT):
            return False
        if own.types & NUMBER and (own.number is None or own.number.given is None):
            return False
        string = own.string
        return not own.types & STRING or (string is not None and string.given is not None and not string.tests)

    def _none_of(
        self, among: Sequence[int], literals: Sequence[int], tags: Tags, beside: Bundle, marks: Marks
    ) -> list[Choice]:
        """The choices for the marks and the negation of some branches.

        If a discriminator separates these branches, then its value leaves at most one branch to negate.
        """
        name, told = discriminator(among, tags) if len(among) > 2 else ("", {})
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
        """The face of a branch: its alternatives, merged with the rest of the schema.

        A small number of constant arrays and objects is expanded to conditions on their items and entries.
        """
        made = []
        for bundle in self.alternatives(want(literal)):
            few = bundle.boxes is not None and len(bundle.boxes) <= MAX_OPENED
            made += self._opened(bundle) if few else [bundle]
        both = (bundle if beside is FREE else merge(bundle, beside) for bundle in made)
        return [bundle for bundle in both if bundle is not None]

    def _tagged(self, name: str, tags: set[str], sign: int) -> Bundle:
        """Objects with a key whose value is one of the strings (or, if `sign` is 1, none of them)."""
        value = self.value_literal(self.places[0], {"enum": sorted(tags)}) ^ sign
        return Bundle(OBJECT, object=ObjectPart((Group({name: want(value)}),), {name: None}))

    def _term_of(self, literal: int) -> Term:
        return self.term(self.places[literal >> 1])

    def _any_evaluated(self, fork: Fork, exactly: bool) -> list[Choice]:
        """The choices of a disjunction with tracked evaluations.

        The set of branches that hold determines what is evaluated, so each subset of the evaluating branches is a
        choice.
        """
        telling = [one for one in fork.literals if self._evaluates(one)]
        others = [one for one in fork.literals if one not in telling]
        if len(telling) > MAX_TOLD_APART:
            raise LimitExceededError(
                f"at {shown(fork.place)}: more than {MAX_TOLD_APART} branches determine which properties or "
                f"items are evaluated; use fewer branches beside unevaluatedProperties or unevaluatedItems",
                fork.place,
            )
        made: list[Choice] = []
        for bits in range(1 << len(telling)):
            held = tuple(one for i, one in enumerate(telling) if bits >> i & 1)
            missed_ones = tuple(one ^ 1 for i, one in enumerate(telling) if not bits >> i & 1) if exactly else ()
            marks = (*marks_of(held, True), *missed_ones)
            if held:
                made.append((None, marks, None))
            else:
                made += ((None, (*marks, one), None) for one in others)
        return made

    def _evaluates(self, literal: int) -> bool:
        """Whether a schema, or a schema that applies to the same value, evaluates any key or item."""
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

    def missing(self, place: Place) -> list[Choice]:
        if place.literal not in self._misses:
            term = self.term(place)
            options = negated(term, lambda schema: self.value_literal(place, schema))
            choices: list[Choice] = [(bundle, marks, None) for bundle, marks in options]
            for fork in term.forks:
                if fork.kind in ("any", "one"):
                    choices += self._not_chosen(fork)
            choices = [choice for choice in choices if 1 not in choice[1]]
            if term.left is not None:
                keys, items = (None if one is None else want(one ^ 1) for one in term.left)
                for bundle, seen in self.search(frozenset((self._bare(place),)), True):
                    choices += ((one, (), None) for one in missed(bundle, seen, keys, self._items(place, items, seen)))
            self._misses[place.literal] = choices
        return self._misses[place.literal]

    def _not_chosen(self, fork: Fork) -> list[Choice]:
        """The negation of a disjunction: none of the branches, or for `oneOf` also two of them."""
        literals = fork.literals
        if len(literals) < 3 or 0 in literals:
            made: list[Choice] = [(None, tuple(one ^ 1 for one in literals), None)]
            pairs = [(a, b) for i, a in enumerate(literals) for b in literals[:i]]
            return made + [(None, pair, None) for pair in pairs if fork.kind == "one"]
        faces = [self._face(one, fork.beside) for one in literals]
        tags = tags_of(faces, self._term_of)
        made = self._none_of(range(len(literals)), literals, tags, fork.beside, ())
        if fork.kind == "one":
            rivals = rivals_of(literals, faces, self._term_of, self.has_no_value, fork.place, self.spend_pairs)
            bundle = None if fork.beside is FREE else fork.beside
            made += ((bundle, (literals[i], literals[j]), None) for i, row in enumerate(rivals) for j in row if j < i)
        return made

    def with_left(self, place: Place, term: Term, exactly: bool | None) -> list[Choice]:
        """The choices of a schema with `unevaluated*`.

        Each is an alternative of the other keywords, with the condition on its unevaluated parts.
        """
        key = (place.literal, exactly)
        if key not in self._rests:
            keys, items = (None if one is None else want(one) for one in term.left or (None, None))
            choices: list[Choice] = []
            for bundle, seen in self.search(frozenset((self._bare(place),)), bool(exactly)):
                loose = items
                if items is not None and seen.contains and not seen.all_items:
                    loose = self.any_of(place, (*seen.contains, *(items or (0,))))
                made = left_over(bundle, seen, keys, loose)
                if made is not None:
                    choices.append((made, (), seen | term.evaluates))
            self._rests[key] = choices
        return self._rests[key]

    def _items(self, place: Place, items: Want | None, seen: Evaluated) -> Want | None:
        """The condition on an item that violates `unevaluatedItems`: it also matches no tracked `contains`."""
        if items is None:
            return None
        wanted = items
        for one in seen.contains:
            wanted = join(wanted, want(one ^ 1))
        return wanted

    def _bare(self, place: Place) -> int:
        """The literal of the schema without its `unevaluated*` keywords."""
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

    # -- constant arrays and objects

    def unboxed(self, bundle: Bundle) -> list[Bundle]:
        """Expand constant arrays and objects that have further assertions to conditions on their items and entries."""
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


@dataclass(slots=True, eq=False)
class _State:
    """A search state.

    `waiting` and `done` hold marks: literals, written as their complement if their evaluations are tracked.

    Attributes:
        bundle: The assertions so far.
        evaluated: What was evaluated so far.
        waiting: The marks to read.
        forks: The forks to branch on, each as its options.
        done: The marks that were read.
    """

    bundle: Bundle
    evaluated: Evaluated
    waiting: list[int]
    forks: list[list[Choice]]
    done: set[int]
