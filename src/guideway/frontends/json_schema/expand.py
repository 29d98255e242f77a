"""Expands wants (conjunctions of possibly negated schema references) to disjunctive normal form.

The result is a list of bundles, which may overlap. The search uses an explicit stack. A state consists of a bundle, the
literals to read, and the forks (disjunctions) to branch on. An option that contradicts the bundle is discarded
immediately. Therefore discriminators and types are decided before disjunctions are multiplied.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass

from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.frontends.json_schema.bundles import FREE, OBJECT, Bundle, ObjectPart, Want, box_key, merge, says
from guideway.frontends.json_schema.cases import TooHard, objects_by_cases
from guideway.frontends.json_schema.choices import Choice, Choices, marks_of
from guideway.frontends.json_schema.documents import Documents
from guideway.frontends.json_schema.evaluated import NOTHING_EVALUATED, Evaluated
from guideway.frontends.json_schema.limits import (
    MAX_ALTERNATIVES,
    MAX_LOOKAHEAD,
    MAX_NESTED,
    MAX_STEPS,
    MAX_STEPS_AHEAD,
    MAX_STEPS_FIRST,
    MAX_WIDE,
    MAX_WORK,
    MAX_WORK_FIRST,
    MIN_TALLY,
)
from guideway.frontends.json_schema.rivals import plainly_said
from guideway.jsontext.pointer import shown

__all__ = ["Expander"]


class Expander(Choices):
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
        at, again = -1, True
        while again:
            best, at, again = None, -1, False
            for number, fork in reversed(list(enumerate(state.forks))):
                live = self._live(state, fork, MAX_ALTERNATIVES if best is None else len(best))
                if live is None:
                    del state.forks[number]
                    at -= 1
                elif len(live) == 1 and self._is_plain(state, live[0]):
                    state.bundle = live[0][0] or state.bundle
                    del state.forks[number]
                    again = True  # the options of other forks were merged with the bundle of before
                elif best is None or len(live) <= len(best):
                    best, at = live, number
                    if len(live) == 0:
                        return []
            again = again and bool(state.forks)
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

    @staticmethod
    def _is_plain(state: _State, choice: Choice) -> bool:
        """Whether an option only restricts scalars and arrays, so that the order of such options does not matter."""
        bundle, marks, evaluated = choice
        return not marks and evaluated is None and bundle is not None and bundle.object is state.bundle.object

    def _live(self, state: _State, choices: list[Choice], most: int) -> list[Choice] | None:
        """The live options of a fork, each merged with the state's bundle. None if one option already holds.

        If there are more than `most`, some are left out.
        """
        live: list[Choice] = []
        self._spend(len(choices), self._at)
        telling = any(mark < 0 for _, marks, _ in choices for mark in marks)
        listed = _only_keys(state.bundle)
        for bundle, marks, evaluated in choices:
            if listed is not None and bundle is not None and bundle.types == OBJECT and bundle.object is not None:
                required = bundle.object.required
                if required and not required.keys() <= listed:
                    continue
            if any(mark == 1 or (mark >= 0 and mark ^ 1 in state.done) for mark in marks):
                continue
            held = bundle is None or says(state.bundle, bundle)
            if held and not telling and evaluated is None and all(one == 0 or one in state.done for one in marks):
                return None
            if len(live) > most:
                continue
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


def _only_keys(bundle: Bundle) -> Set[str] | None:
    """The keys that some closed object of a bundle lists. None if there is no closed object."""
    if bundle.object is not None:
        for group in bundle.object.groups:
            if group.extra is not None and 1 in group.extra and not group.patterns:
                return group.names.keys()
    return None


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
