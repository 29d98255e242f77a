"""Expands conjunctions of possibly negated schemas to disjunctive normal form.

The result is a list of alternatives (`TypeAssertions`), which may overlap. The search uses an explicit stack. A state
consists of assertions, literals that were not read yet, and disjunctions. A disjunction is a list of choices, of which
at least one must hold. Applicators, negations and `unevaluated*` (`unevaluatedProperties` and `unevaluatedItems`)
become disjunctions. A choice that contradicts the assertions of the state is discarded. Of all disjunctions, the one
with the fewest remaining choices is branched on first, so types and discriminators are decided before other
disjunctions multiply the number of states.

A choice (`Choice`) is a tuple of three: assertions (None: no assertion), conjuncts, and the keys and items that it
evaluates (None: only those that its conjuncts evaluate). A conjunct is a literal that must hold, or the bitwise
complement of such a literal. The complement means that the search must record which keys and items the schema evaluates
(its evaluations are tracked).

The limits are counts, such as numbers of steps, so a schema is accepted or refused equally on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from guideway.background import checkpoint
from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.frontends.json_schema.assertions import (
    ALL,
    ARRAY,
    NUMBER,
    OBJECT,
    STRING,
    UNCONSTRAINED,
    Conjunction,
    NumberAssertions,
    ObjectAssertions,
    Option,
    PropertyRules,
    StringAssertions,
    TypeAssertions,
    assertions_of_constant,
    can_merge,
    conjunction_of,
    constant_key,
    implies,
    join,
    merge,
    negations,
)
from guideway.frontends.json_schema.decision_diagram import MAX_EXPANDED, MIN_COUNTED, TooComplex, divide_objects
from guideway.frontends.json_schema.one_of import Tags, conditions_of_key, discriminator, overlaps_of, tags_of
from guideway.frontends.json_schema.parse import Applicator, SchemaAnalysis, SchemaGraph, SchemaNode
from guideway.frontends.json_schema.references import Documents
from guideway.frontends.json_schema.strings import filter_enum
from guideway.frontends.json_schema.unevaluated import (
    NOTHING_EVALUATED,
    Evaluated,
    assert_unevaluated,
    violate_unevaluated,
)
from guideway.jsontext.pointer import shown

__all__ = ["MAX_WIDE", "Choice", "Conjuncts", "Expander", "tagged_conjuncts"]

MAX_ALTERNATIVES = 10_000
"""The maximum number of alternatives of one node."""

MAX_STEPS = 25_000
"""The maximum number of search steps for one node."""

MAX_WORK = 200_000
"""The maximum number of search steps for a document is this number, plus 20 for each of its schemas."""

MAX_STEPS_AHEAD = 500
"""The maximum number of search steps of one call of `Expander.is_unsatisfiable`."""

MAX_LOOKAHEAD = 4
"""The maximum nesting depth of searches at which `Expander.is_unsatisfiable` starts another search."""

MAX_NESTED = 50
"""The maximum number of nested searches. The expansion of `oneOf` and `unevaluated*` starts a search inside another."""

MAX_EVALUATING_BRANCHES = 10
"""The maximum number of `anyOf` branches that evaluate keys or items, if `unevaluated*` depends on them."""

MAX_WIDE = 250
"""A node with more alternatives for objects than this must not contain such a node.

The reason is that the numbers of parser states of nested nodes multiply.
"""

MAX_STEPS_FIRST = 3_000
"""The maximum number of search steps for one node in the short search, which comes first.

If the node needs more steps, its objects are divided by cases (`Expander._search_or_divide`).
"""

MAX_WORK_FIRST = 20_000
"""The maximum number of search steps of the short search, including those of the searches nested in it."""

MAX_STEPS_EARLY = 400
"""`MAX_STEPS_FIRST` with `Expander.divides_early`.

With a smaller limit, objects are divided that a short search could expand. With a larger one, objects are expanded to
many alternatives that a division avoids. The published schemas took the least time with this limit.
"""

MAX_WORK_EARLY = 10_000
"""`MAX_WORK_FIRST` with `Expander.divides_early`."""

Conjuncts = tuple[int, ...]
Choice = tuple[TypeAssertions | None, Conjuncts, Evaluated | None]

_NO_OBJECT = TypeAssertions(ALL & ~OBJECT)


def tagged_conjuncts(literals: tuple[int, ...], tracked: bool) -> tuple[int, ...]:
    """Return literals as conjuncts. If `tracked`, even literals except 0 are replaced by their bitwise complement.

    Negated literals and 0 remain, because they evaluate nothing.
    """
    if not tracked:
        return literals
    return tuple(one if one & 1 or not one else ~one for one in literals)


def negated(analysis: SchemaAnalysis, literal_of: Callable[[Any], int]) -> list[Option]:
    """Return the branches of the negation of a schema, except those for `unevaluated*`, `anyOf` and `oneOf`.

    `literal_of` returns the literal of a schema.
    """
    options = negations(analysis.own, literal_of)
    options += ((None, (one ^ 1,)) for one in analysis.conjuncts)
    for applicator in analysis.applicators:
        options += _other_fork(applicator)
    return options


def _other_fork(applicator: Applicator) -> list[Option]:
    literals = applicator.literals
    if applicator.kind == "if":
        condition, then, other = literals
        return [(None, (condition, then ^ 1)), (None, (condition ^ 1, other ^ 1))]
    if applicator.kind == "dependent":
        has = TypeAssertions(OBJECT, object=ObjectAssertions(required={applicator.name: None}))
        options: list[Option] = [(has, (one ^ 1,)) for one in literals]
        for name in applicator.required_keys:
            part = ObjectAssertions(required={applicator.name: None}, forbidden=frozenset((name,)))
            options += [(TypeAssertions(OBJECT, object=part), ())] if name != applicator.name else []
        return options
    return []  # `Expander` negates `anyOf` and `oneOf`, because it knows which branches overlap


class Expander(SchemaGraph):
    """Expands conjunctions to alternatives. Results are cached per conjunction.

    Args:
        documents: The schema and the documents that it may refer to.
        most_work: The maximum number of search steps; None: `MAX_WORK` plus 20 for each schema.

    Attributes:
        divides_early: Whether the short search has lower limits, so that more objects are divided by cases. A search
            and a division allow the same values, but the order of keys may differ, and with `Style.closed` also the
            allowed keys. So it is True only for styles with any order of keys and without `Style.closed`.
    """

    def __init__(self, documents: Documents, most_work: int | None = None) -> None:
        super().__init__(documents)
        self._known: dict[Conjunction, list[TypeAssertions]] = {}
        self._same: dict[Hashable, list[TypeAssertions]] = {}
        self._sound: set[int] = set()
        self._undecided: set[Conjunction] = set()
        self.divides_early = False
        self._depth = 0
        self._steps = 0
        self._limit = MAX_STEPS
        self._ahead = False
        self._work = 0
        self._most_work = most_work
        self._least_work = MAX_WORK if most_work is None else most_work  # `_max_work` is never less
        self._first_limit = 0  # the limit of `_work` during the first, short search; 0: it is not running
        self._at = ""
        self._choices: dict[tuple[Applicator, bool | None], list[Choice] | None] = {}
        # the keys of the next three begin with the literal of a schema
        self._negations: dict[int, list[Choice]] = {}
        self._unevaluated: dict[tuple[int, bool | None], list[Choice]] = {}
        self._stripped: dict[int, int] = {}
        # the assertions that allow only one listed array or object, by its `constant_key`
        self._composite_assertions: dict[str, TypeAssertions] = {}

    def alternatives(self, conjunction: Conjunction) -> list[TypeAssertions]:
        """Return the disjunctive normal form of a conjunction: a value meets it if it meets one of the alternatives.

        An empty list means that no value meets the conjunction.

        Raises:
            InvalidConstraintError: A keyword has an invalid value. A reference has no schema as its target, or leads
                back to itself.
            LimitExceededError: A limit is exceeded, such as the number of alternatives or search steps.
        """
        found = self._known.get(conjunction)
        if found is None:
            inner = self._inner(conjunction)
            found = self._alternatives(conjunction) if inner is conjunction else self.alternatives(inner)
            self._known[conjunction] = found
        return found

    def _inner(self, conjunction: Conjunction) -> Conjunction:
        """If a conjunction is one schema that asserts only one other schema, return the conjunction of the latter.

        An example is `{"allOf": [{"$ref": …}]}`. The step is repeated. Any other conjunction is returned unchanged.
        """
        seen: set[Conjunction] = set()
        found = conjunction
        while len(found) == 1:
            (literal,) = found
            if found in seen:
                return conjunction  # the expansion reports the cycle
            if literal < 2 or literal & 1:
                break
            seen.add(found)
            analysis = self._analysis_of(literal)
            if not analysis.conjuncts or not _asserts_conjuncts_only(analysis):
                break
            asserting = {one for one in analysis.conjuncts if one & 1 or not self._asserts_nothing(one)}
            if len(asserting) != 1:
                break
            found = frozenset(asserting)
        return found

    def _asserts_nothing(self, literal: int) -> bool:
        """Return whether the schema of an even literal asserts nothing."""
        if not literal:
            return True
        analysis = self._analysis_of(literal)
        return not analysis.conjuncts and _asserts_conjuncts_only(analysis)

    def _alternatives(self, conjunction: Conjunction) -> list[TypeAssertions]:
        if not conjunction:
            return [UNCONSTRAINED]
        if len(conjunction) == 1:
            (literal,) = conjunction
            if literal == 1:
                return []
            if not literal & 1:
                analysis = self.analysis(self.places[literal >> 1])
                if (
                    not analysis.conjuncts
                    and not analysis.applicators
                    and analysis.unevaluated is None
                    and not analysis.own.composites
                ):
                    return [analysis.own] if analysis.own.types else []
        for literal in conjunction:
            self._check_cycles(literal >> 1)
        if self._ahead:
            return [assertions for assertions, _ in self.search(conjunction, None)]
        before = self._steps, self._limit, self._depth
        first_limit = self._first_limit
        self._steps, self._limit = 0, self._first_steps
        shape = self._shape(min(conjunction)) if len(conjunction) == 1 else None
        same = None if shape is None else self._same.get(shape)
        try:
            if same is None:
                same = self._search_or_divide(conjunction)
                if shape is not None:
                    self._same[shape] = same
            return same
        finally:
            spent = self._steps
            self._steps, self._limit, self._depth = before
            self._first_limit = first_limit
            self._steps += min(spent, self._first_steps) if self._depth else 0

    @property
    def _first_steps(self) -> int:
        return MAX_STEPS_EARLY if self.divides_early else MAX_STEPS_FIRST

    def _shape(self, literal: int) -> Hashable | None:
        """Return the key of `_same` for the schema of a literal: equal schemas with the same dynamic scope share it.

        None for schemas without applicators, whose results are not stored there. None also if the document has several
        resources, because references in equal schemas may then have different targets.
        """
        place = self.places[literal >> 1]
        if not self.analysis(place).applicators or not isinstance(place.schema, dict) or not place.schema:
            return None
        if len(self.documents.owners) > 1:
            return None
        return literal & 1, constant_key(place.schema), id(place.resource), place.scope

    def _search_or_divide(self, conjunction: Conjunction) -> list[TypeAssertions]:
        """Expand a conjunction by a short search, by a division of the objects into cases, or by a long search.

        The division (`_by_decision_diagram`) is tried first if `_prefers_decision_diagram` returns True, and its result
        is returned. Otherwise, or if it fails, the short search (limit `_first_steps`) follows. If it finds at most
        `MAX_WIDE` alternatives for objects, they are returned. If it finds more, they are returned unless the division
        gives fewer alternatives. If it exceeds its limits, the division is tried, and if that fails, the long search
        (limit `MAX_STEPS`). If the work of the document is used up by then, the error of the short search is raised
        instead.
        """
        found: list[TypeAssertions] | None = None
        depth = self._depth
        problem: LimitExceededError | None = None
        work = self._work
        most = MAX_WORK_EARLY if self.divides_early else MAX_WORK_FIRST
        self._first_limit = work + most
        if self._prefers_decision_diagram(conjunction):
            try:
                return self._by_decision_diagram(conjunction)
            except (TooComplex, LimitExceededError):
                self._depth, self._work = depth, work
                self._steps, self._limit = 0, self._first_steps
        try:
            found = [assertions for assertions, _ in self.search(conjunction, None)]
            if sum(1 for assertions in found if assertions.types & OBJECT) <= MAX_WIDE:
                return found
        except LimitExceededError as error:
            problem = error.with_traceback(None)  # the traceback refers to this stack frame: a reference cycle
            if work + most <= self._work <= self._max_work():
                # the long search may repeat these steps, so only a tenth of them is counted
                self._work = work + most // 10
        self._depth = depth
        self._first_limit = 0
        self._steps, self._limit = 0, MAX_STEPS
        try:
            divided = self._by_decision_diagram(conjunction)
            if found is None or len(divided) < len(found):
                return divided
        except (TooComplex, LimitExceededError):
            self._depth = depth
        if found is not None:
            return found
        self._steps, self._limit = 0, MAX_STEPS
        if self._work > self._max_work() and problem is not None:
            raise problem
        return [assertions for assertions, _ in self.search(conjunction, None)]

    def _prefers_decision_diagram(self, conjunction: Conjunction) -> bool:
        """Return whether the objects are divided by cases before the search is tried.

        True if the conjunction is one schema that is not negated, and its only applicator is a `oneOf` of at least
        `MIN_COUNTED` branches. No branch is negated or a boolean, each has assertions about objects and no applicators,
        and no key is required by all of them: such a key may be a discriminator, by which the search is short. Neither
        the schema nor a branch has conjuncts (such as `allOf` or `$ref`) or `unevaluated*`.
        """
        literal = min(conjunction)
        if len(conjunction) > 1 or literal & 1:
            return False
        analysis = self.analysis(self.places[literal >> 1])
        applicator = next(
            (
                applicator
                for applicator in analysis.applicators
                if applicator.kind == "oneOf" and len(applicator.literals) >= MIN_COUNTED
            ),
            None,
        )
        if (
            applicator is None
            or len(analysis.applicators) > 1
            or analysis.conjuncts
            or analysis.unevaluated is not None
        ):
            return False
        required: set[str] | None = None
        for one in applicator.literals:
            branch = self.analysis(self.places[one >> 1])
            part = branch.own.object
            if (
                one & 1
                or one < 2
                or part is None
                or branch.applicators
                or branch.conjuncts
                or branch.unevaluated is not None
            ):
                return False
            required = set(part.required) if required is None else required & part.required.keys()
        return not required

    def _by_decision_diagram(self, conjunction: Conjunction) -> list[TypeAssertions]:
        """Expand objects by cases (decision_diagram.py), and the other types by search.

        Raises:
            TooComplex: The objects cannot be divided by cases.
            LimitExceededError: A limit is exceeded, such as the number of search steps.
        """
        parts, whole, others = divide_objects(self, conjunction)
        made = [TypeAssertions(whole)] if whole else []
        for types in others:
            self._steps, self._limit = 0, MAX_STEPS
            made += (assertions for assertions, _ in self.search(conjunction, None, TypeAssertions(types)))
        return made + [TypeAssertions(OBJECT, object=part) for part in parts]

    def _check_cycles(self, start: int) -> None:
        """Raise `InvalidConstraintError` if references in a cycle apply a schema to the same value without end.

        `start` is the index of a schema in `places`. This schema is checked, and the schemas that it applies to the
        same value.
        """
        if start in self._sound:
            return
        path: list[tuple[int, list[int]]] = [(start, self._in_place(start))]
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
                path.append((following, self._in_place(following)))

    def _in_place(self, number: int) -> list[int]:
        return [one >> 1 for one in self.analysis(self.places[number]).in_place if one > 1]

    def search(
        self, conjunction: Conjunction, tracked: bool | None, start: TypeAssertions = UNCONSTRAINED
    ) -> list[tuple[TypeAssertions, Evaluated]]:
        """Expand a conjunction by a depth-first search.

        Args:
            conjunction: The conjunction to expand.
            tracked: None: do not record which keys and items are evaluated. True: record exactly these. False: a value
                may evaluate more keys and items than those that are recorded for an alternative that it meets.
            start: The assertions of the first state.

        Returns:
            The alternatives, each with the keys and items that are recorded for it.

        Raises:
            InvalidConstraintError: As for `alternatives`.
            LimitExceededError: There are too many alternatives, steps, or nested searches.
        """
        place = self.places[min(conjunction) >> 1].pointer
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise LimitExceededError(
                f"at {shown(place)}: choices (anyOf, oneOf, if) are nested more than {MAX_NESTED} deep; nest fewer of them",
                place,
            )
        waiting = [~one if tracked is not None else one for one in sorted(conjunction)]
        found: list[tuple[TypeAssertions, Evaluated]] = []
        stack: list[_State] = [_State(start, NOTHING_EVALUATED, waiting, [], {0})]
        while stack:
            checkpoint()
            state = stack.pop()
            self._steps += 1 + len(state.disjunctions)
            self._at = place
            self._spend(1 + len(state.disjunctions), place)
            if len(found) > MAX_ALTERNATIVES or self._steps > self._limit:
                raise LimitExceededError(
                    f"at {shown(place)}: the schema expands to more than {MAX_ALTERNATIVES:,} alternatives; use fewer nested branches",
                    place,
                )
            if state.waiting and not self._settle(state, tracked):
                continue
            if not state.disjunctions:
                for assertions in self.expand_composites(state.assertions):
                    found.append((assertions, state.evaluated))  # the loop nearly always has one iteration
                continue
            stack += reversed(self._branches(state))
        self._depth -= 1
        return found

    def spend_pairs(self, count: int) -> None:
        """Count compared pairs of alternatives as steps of a search whose limit is below `MAX_STEPS`.

        Raises `LimitExceededError` if the limit is exceeded: after a short search, the division by cases can still
        succeed. In a long search, pairs are not counted.
        """
        if self._limit < MAX_STEPS:
            self._steps += count
            if self._steps > self._limit:
                raise LimitExceededError(
                    f"at {shown(self._at)}: more than {self._limit:,} pairs of alternatives must be compared; use fewer branches",
                    self._at,
                )

    def _spend(self, work: int, place: str) -> None:
        """Count search steps of the whole document. Raises `LimitExceededError` if there are too many.

        `_steps` counts the steps of one node.
        """
        self._work += work
        if self._work <= self._least_work and (self._work <= self._first_limit or not self._first_limit):
            return
        limit = min(self._first_limit, self._max_work()) if self._first_limit else self._max_work()
        if self._work > limit:
            raise LimitExceededError(
                f"at {shown(place)}: the schema up to here needs more than {limit:,} steps of expansion; "
                f"use fewer nested branches",
                place,
            )

    @property
    def work(self) -> int:
        """The number of search steps so far."""
        return self._work

    def _max_work(self) -> int:
        return MAX_WORK + 20 * len(self.places) if self._most_work is None else self._most_work

    def _settle(self, state: _State, exactly: bool | None) -> bool:
        """Read all waiting conjuncts of a state into its assertions and disjunctions.

        `exactly` is the argument `tracked` of `search`. Returns False if a contradiction is found.
        """
        while state.waiting:
            conjunct = state.waiting.pop()
            if conjunct in state.done:
                continue
            literal = ~conjunct if conjunct < 0 else conjunct
            if literal == 0:
                continue
            if literal == 1 or (literal ^ 1) in state.done or ~(literal ^ 1) in state.done:
                return False
            state.done.add(conjunct)
            place = self.places[literal >> 1]
            if literal & 1:
                violations = self.negation(place)
                if not violations:
                    return False
                state.disjunctions.append(violations)
                continue
            analysis = self.analysis(place)
            if analysis.unevaluated is not None:
                rest = self.with_unevaluated(place, analysis, exactly if conjunct < 0 else None)
                if not rest:
                    return False
                state.disjunctions.insert(
                    0, rest if conjunct < 0 else [(assertions, conjuncts, None) for assertions, conjuncts, _ in rest]
                )
                continue
            merged = merge(state.assertions, analysis.own) if analysis.own is not UNCONSTRAINED else state.assertions
            if merged is None:
                return False
            state.assertions = merged
            tracked = conjunct < 0
            if tracked:
                state.evaluated |= analysis.evaluates
            state.waiting += tagged_conjuncts(analysis.conjuncts, tracked)
            for applicator in analysis.applicators:
                choices = self.choices(applicator, exactly if tracked else None)
                if choices is not None:
                    state.disjunctions.append(choices)
        return True

    def _branches(self, state: _State) -> list[_State]:
        """Return the successor states: one for each live choice of the disjunction with the fewest live choices.

        A choice is live if no contradiction to the state is found in it. Disjunctions that already hold are removed
        from `state`. If the only live choice of a disjunction adds only assertions, and none about objects
        (`_is_plain`), these are merged into the assertions of `state`. If no disjunction is left, the result has only
        `state`.
        """
        best: list[Choice] | None = None
        at, again = -1, True
        while again:
            best, at, again = None, -1, False
            for number in range(len(state.disjunctions) - 1, -1, -1):
                live = self._live(state, number, MAX_ALTERNATIVES if best is None else len(best))
                if live is None:
                    del state.disjunctions[number]
                    at -= 1
                elif len(live) == 1 and self._is_plain(state, live[0]):
                    state.assertions = live[0][0] or state.assertions
                    del state.disjunctions[number]
                    again = True  # the live choices found so far do not include the new assertions
                elif best is None or len(live) <= len(best):
                    best, at = live, number
                    if len(live) == 0:
                        return []
            again = again and bool(state.disjunctions)
        if best is None:
            return [state]
        del state.disjunctions[at]
        made = []
        for assertions, conjuncts, evaluated in best:
            seen = state.evaluated if evaluated is None else state.evaluated | evaluated
            waiting = [*state.waiting, *conjuncts]
            done = set(state.done) if waiting else state.done  # without waiting conjuncts, it is not modified
            made.append(_State(assertions or state.assertions, seen, waiting, list(state.disjunctions), done))
        return made

    @staticmethod
    def _is_plain(state: _State, choice: Choice) -> bool:
        """Return whether a choice adds only assertions, and none about objects."""
        assertions, conjuncts, evaluated = choice
        return (
            not conjuncts
            and evaluated is None
            and assertions is not None
            and assertions.object is state.assertions.object
        )

    def _live(self, state: _State, number: int, maximum: int) -> list[Choice] | None:
        """Return the live choices of a disjunction: those in which no contradiction to the state is found.

        The assertions of the state are merged into each of them.

        With `divides_early`, the other choices that were examined are removed from the disjunction of `state`, because
        a contradiction also exists in all successor states. Without it, they stay, because the number of examined
        choices determines whether objects are divided by cases.

        Args:
            state: The state.
            number: The index of the disjunction.
            maximum: At most one more than this number of choices is returned.

        Returns:
            The live choices. None if a choice already holds in the state. A choice that evaluates keys or items does
            not count as one that holds, because they must be recorded.
        """
        live: list[Choice] = []
        left: list[Choice] = []
        choices = state.disjunctions[number]
        self._spend(len(choices), self._at)
        current, done = state.assertions, state.done
        listed = _only_keys(current)
        for choice in choices:
            assertions, conjuncts, evaluated = choice
            added = None if assertions is None else assertions.object
            if (
                listed is not None
                and added is not None
                and assertions.types == OBJECT  # type: ignore[union-attr]  # not None, as `added`
                and not added.required.keys() <= listed
            ):
                continue
            if conjuncts and (
                conjuncts[0] ^ 1 in done
                if len(conjuncts) == 1  # nearly always
                else not done.isdisjoint([one ^ 1 for one in conjuncts])
            ):
                continue
            held = assertions is None or (not current.types & ~assertions.types and implies(current, assertions))
            if (
                held
                and evaluated is None
                and (not conjuncts or done.issuperset(conjuncts))
                and not any(one < 0 for _, others, _ in choices for one in others)  # no conjunct is tracked
            ):
                return None
            if len(live) > maximum:
                left.append(choice)
                continue
            merged = current if held or assertions is None else merge(current, assertions)
            if merged is None or (conjuncts and not self._agree(merged, conjuncts)):
                continue
            if not held and added is not None and added.required and self._has_unsatisfiable_key(merged, added):
                continue
            live.append((merged, conjuncts, evaluated))
            left.append(choice)
        if self.divides_early and len(left) < len(choices):
            state.disjunctions[number] = left
        return live

    def _agree(self, assertions: TypeAssertions, conjuncts: Conjuncts) -> bool:
        """Return whether the assertions can be merged with those of each schema that `conjuncts` require.

        Negated schemas, and schemas with `unevaluated*`, are not examined.
        """
        for conjunct in conjuncts:
            literal = ~conjunct if conjunct < 0 else conjunct
            if literal & 1 or not literal:
                continue
            place = self.places[literal >> 1]
            analysis = place.analysis or self.analysis(place)
            own = analysis.own
            if own is not UNCONSTRAINED and analysis.unevaluated is None and not can_merge(assertions, own):
                return False
        return True

    def _has_unsatisfiable_key(self, assertions: TypeAssertions, added: ObjectAssertions) -> bool:
        """Return True if the conditions on the value of a key that `added` requires are found to be unsatisfiable.

        `assertions` includes `added`. Returns False if it allows other types than objects. A single condition is not
        examined.
        """
        part = assertions.object
        if part is None or assertions.types != OBJECT:
            return False
        for name in added.required:
            conjunction = conditions_of_key(part, name)
            if 1 in conjunction or (len(conjunction) > 1 and self.is_unsatisfiable(conjunction)):
                return True
        return False

    def is_unsatisfiable(self, conjunction: Conjunction) -> bool:
        """Return True if a short search shows that no value meets a conjunction. False also means that it failed.

        Raises `LimitExceededError` only if the limit of the whole document is exceeded, and the other errors of
        `alternatives`.
        """
        if self._depth > MAX_LOOKAHEAD or conjunction in self._undecided:
            return False
        known = self._known.get(conjunction)
        if known is not None:
            self._steps += MAX_STEPS_AHEAD // 50
            return not known
        before = self._depth, self._steps, self._limit, self._ahead
        self._steps, self._limit, self._ahead = 0, MAX_STEPS_AHEAD, True
        try:
            return not self.alternatives(conjunction)
        except LimitExceededError:
            if self._work > self._max_work():
                raise
            self._undecided.add(conjunction)
            return False
        finally:
            self._depth, self._steps, self._limit, self._ahead = before
            self._steps += MAX_STEPS_AHEAD // 50

    # -- the choices of an applicator

    def choices(self, applicator: Applicator, exactly: bool | None) -> list[Choice] | None:
        """Return the choices of an applicator. None if it asserts nothing.

        `exactly` is the argument `tracked` of `search`.
        """
        key = (applicator, exactly)
        if key not in self._choices:
            self._choices[key] = self._make_choices(applicator, exactly)
        return self._choices[key]

    def _make_choices(self, applicator: Applicator, exactly: bool | None) -> list[Choice] | None:
        tracked, literals = exactly is not None, applicator.literals
        if applicator.kind == "dependent":
            return self._dependent(applicator, tracked)
        if applicator.kind == "if":
            condition, then, other = literals
            if not (then or other or tracked):
                return None
            return [
                (None, tagged_conjuncts((condition, then), tracked), None),
                (None, tagged_conjuncts((condition ^ 1, other), tracked), None),
            ]
        if applicator.kind == "oneOf":
            return self._one_of(applicator, tracked)
        if 0 in literals and not tracked:
            return None
        if not tracked:
            return self._values_joined([(None, (one,), None) for one in literals])
        return self._any_evaluated(applicator, bool(exactly))

    def _dependent(self, applicator: Applicator, tracked: bool) -> list[Choice] | None:
        without = TypeAssertions(object=ObjectAssertions(forbidden=frozenset((applicator.name,))))
        required = {applicator.name: None, **dict.fromkeys(applicator.required_keys)}
        if len(required) == 1 and not any(applicator.literals):
            return None
        has = TypeAssertions(OBJECT, object=ObjectAssertions(required=required))
        return [(without, (), None), (has, tagged_conjuncts(applicator.literals, tracked), None)]

    def _one_of(self, applicator: Applicator, tracked: bool) -> list[Choice]:
        literals = applicator.literals
        expansions = [self._expansion(one, applicator.beside) for one in literals]
        overlaps = overlaps_of(
            literals, expansions, self._analysis_of, self.is_unsatisfiable, applicator.place, self.spend_pairs
        )
        self.spend_pairs(sum(map(len, overlaps)))
        made: list[Choice] = []
        tags = tags_of(expansions, self._analysis_of) if any(len(row) > 2 for row in overlaps) else {}
        for i, one in enumerate(literals):
            conjuncts = tagged_conjuncts((one,), tracked)
            made += self._none_of(overlaps[i], literals, tags, UNCONSTRAINED, conjuncts)
        return made if tracked else self._values_joined(made)

    def _values_joined(self, choices: list[Choice]) -> list[Choice]:
        """Combine the choices that allow only listed numbers and strings, null and booleans into one, if there are at
        least two.

        The combined choice comes first.
        """
        numbers: set[int | Decimal] = set()
        strings: dict[str, None] = {}
        types = 0
        others: list[Choice] = []
        for choice in choices:
            assertions, conjuncts, _ = choice
            own = (
                self._analysis_of(conjuncts[0]).own
                if len(conjuncts) == 1 and conjuncts[0] > 1 and not conjuncts[0] & 1
                else None
            )
            if assertions is not None or own is None or not self._lists_scalars(conjuncts[0]):
                others.append(choice)
                continue
            types |= own.types
            numbers.update((own.number.enum if own.number else None) or ())
            strings.update((own.string.enum if own.string else None) or {})
        if len(choices) - len(others) < 2:
            return choices
        number = NumberAssertions(enum=frozenset(numbers)) if numbers else None
        string = StringAssertions(enum=strings) if strings else None
        return [(TypeAssertions(types, number, string), (), None), *others]

    def _lists_scalars(self, literal: int) -> bool:
        """Return whether a schema allows only listed numbers and strings, null and booleans, each in all of its
        spellings.
        """
        analysis = self._analysis_of(literal)
        own = analysis.own
        if (
            analysis.conjuncts
            or analysis.applicators
            or analysis.unevaluated is not None
            or not own.types
            or own.types & (ARRAY | OBJECT)
        ):
            return False
        number, string = own.number, own.string
        if own.types & NUMBER and (number is None or number.enum is None or number.digits_only is not None):
            return False
        return not own.types & STRING or (string is not None and string.enum is not None and not string.tests)

    def _none_of(
        self, among: Sequence[int], literals: Sequence[int], tags: Tags, beside: TypeAssertions, conjuncts: Conjuncts
    ) -> list[Choice]:
        """Return the choices of this condition: `beside` and all conjuncts hold, and no branch of `among` holds.

        If a discriminator separates at least two branches, there are these choices: no object; an object without the
        key; for each separated branch, an object whose key has one of the values that the branch lists; an object whose
        key has another value. In each choice, only the branches that it does not exclude are negated.

        Args:
            among: Indices of the branches to negate.
            literals: The literals of all branches.
            tags: The possible discriminators.
            `beside`: Assertions that must hold.
            conjuncts: Conjuncts that must hold.
        """
        name, separated = discriminator(among, tags) if len(among) > 2 else ("", {})
        conjuncts = (*conjuncts, *(literals[j] ^ 1 for j in among if j not in separated))
        assertions = None if beside is UNCONSTRAINED else beside
        if len(separated) < 2:
            return [(assertions, (*conjuncts, *(literals[j] ^ 1 for j in separated)), None)]
        absent = tuple(literals[j] ^ 1 for j, (_, needed) in separated.items() if not needed)
        without = TypeAssertions(OBJECT, object=ObjectAssertions(forbidden=frozenset((name,))))
        cases = [(_NO_OBJECT, conjuncts), (without, (*conjuncts, *absent))]
        cases += ((self._tagged(name, tags, 0), (*conjuncts, literals[j] ^ 1)) for j, (tags, _) in separated.items())
        cases.append((self._tagged(name, {tag for tags, _ in separated.values() for tag in tags}, 1), conjuncts))
        both = ((merge(beside, case), here) for case, here in cases)
        return [(one, here, None) for one, here in both if one is not None]

    def _expansion(self, literal: int, beside: TypeAssertions) -> list[TypeAssertions]:
        """Return the alternatives of a branch, each merged with the assertions of the schema around it (`beside`).

        If there are at most `MAX_EXPANDED` constant arrays and objects, they become conditions on items and entries.
        """
        made = []
        for assertions in self.alternatives(conjunction_of(literal)):
            few = assertions.composites is not None and len(assertions.composites) <= MAX_EXPANDED
            made += self._expanded(assertions) if few else [assertions]
        both = (assertions if beside is UNCONSTRAINED else merge(assertions, beside) for assertions in made)
        return [assertions for assertions in both if assertions is not None]

    def _tagged(self, name: str, tags: set[str], sign: int) -> TypeAssertions:
        """Return assertions that allow only objects in which the value of the key `name` is one of the strings `tags`.

        If `sign` is 1, the key must be present, and its value must be none of these strings.
        """
        value = self.value_literal(self.places[0], {"enum": sorted(tags)}) ^ sign
        return TypeAssertions(
            OBJECT, object=ObjectAssertions((PropertyRules({name: conjunction_of(value)}),), {name: None})
        )

    def _analysis_of(self, literal: int) -> SchemaAnalysis:
        return self.analysis(self.places[literal >> 1])

    def _any_evaluated(self, applicator: Applicator, exactly: bool) -> list[Choice]:
        """Return the choices of `anyOf` if the evaluated keys and items must be recorded.

        These depend on which branches hold. So each nonempty set of the branches that evaluate keys or items is a
        choice. Each branch that evaluates none is also a choice.

        Args:
            applicator: The `anyOf`.
            exactly: Whether a choice also says that the evaluating branches outside its set fail.

        Raises:
            LimitExceededError: More than `MAX_EVALUATING_BRANCHES` branches evaluate keys or items.
        """
        evaluating = [one for one in applicator.literals if self._evaluates(one)]
        others = [one for one in applicator.literals if one not in evaluating]
        if len(evaluating) > MAX_EVALUATING_BRANCHES:
            raise LimitExceededError(
                f"at {shown(applicator.place)}: more than {MAX_EVALUATING_BRANCHES} branches determine which properties or "
                f"items are evaluated; use fewer branches beside unevaluatedProperties or unevaluatedItems",
                applicator.place,
            )
        made: list[Choice] = []
        for bits in range(1 << len(evaluating)):
            held = tuple(one for i, one in enumerate(evaluating) if bits >> i & 1)
            missed_ones = tuple(one ^ 1 for i, one in enumerate(evaluating) if not bits >> i & 1) if exactly else ()
            conjuncts = (*tagged_conjuncts(held, True), *missed_ones)
            if held:
                made.append((None, conjuncts, None))
            else:
                made += ((None, (*conjuncts, one), None) for one in others)
        return made

    def _evaluates(self, literal: int) -> bool:
        """Return whether a schema has a keyword that evaluates keys or items.

        The schemas that it applies to the same value, such as the branches of `allOf`, are included.
        """
        seen, todo = set(), [literal]
        while todo:
            one = todo.pop()
            if one in seen or one < 2 or one & 1:
                continue
            seen.add(one)
            analysis = self.analysis(self.places[one >> 1])
            if analysis.evaluating is not None:
                return True
            todo += analysis.in_place
        return False

    def negation(self, place: SchemaNode) -> list[Choice]:
        """Return the choices of the negation of a schema. An empty list means that every value meets the schema."""
        if place.literal not in self._negations:
            analysis = self.analysis(place)
            options = negated(analysis, lambda schema: self.value_literal(place, schema))
            choices: list[Choice] = [(assertions, conjuncts, None) for assertions, conjuncts in options]
            for applicator in analysis.applicators:
                if applicator.kind in ("anyOf", "oneOf"):
                    choices += self._not_chosen(applicator)
            choices = [choice for choice in choices if 1 not in choice[1]]
            if analysis.unevaluated is not None:
                keys, items = (None if one is None else conjunction_of(one ^ 1) for one in analysis.unevaluated)
                for assertions, seen in self.search(frozenset((self._without_unevaluated(place),)), True):
                    choices += (
                        (one, (), None) for one in violate_unevaluated(assertions, seen, keys, self._items(items, seen))
                    )
            self._negations[place.literal] = choices
        return self._negations[place.literal]

    def _not_chosen(self, applicator: Applicator) -> list[Choice]:
        """Return the choices of the negation of `anyOf` or `oneOf`: no branch holds, or for `oneOf` at least two hold."""
        literals = applicator.literals
        if len(literals) < 3 or 0 in literals:
            made: list[Choice] = [(None, tuple(one ^ 1 for one in literals), None)]
            pairs = [(a, b) for i, a in enumerate(literals) for b in literals[:i]]
            return made + [(None, pair, None) for pair in pairs if applicator.kind == "oneOf"]
        expansions = [self._expansion(one, applicator.beside) for one in literals]
        tags = tags_of(expansions, self._analysis_of)
        made = self._none_of(range(len(literals)), literals, tags, applicator.beside, ())
        if applicator.kind == "oneOf":
            overlaps = overlaps_of(
                literals, expansions, self._analysis_of, self.is_unsatisfiable, applicator.place, self.spend_pairs
            )
            assertions = None if applicator.beside is UNCONSTRAINED else applicator.beside
            made += (
                (assertions, (literals[i], literals[j]), None) for i, row in enumerate(overlaps) for j in row if j < i
            )
        return made

    def with_unevaluated(self, place: SchemaNode, analysis: SchemaAnalysis, exactly: bool | None) -> list[Choice]:
        """Return the choices of a schema with `unevaluated*`.

        Each choice is an alternative of the other keywords, with the conditions on the keys and items that this
        alternative does not evaluate. `exactly` is the argument `tracked` of `search`.
        """
        key = (place.literal, exactly)
        if key not in self._unevaluated:
            keys, items = (None if one is None else conjunction_of(one) for one in analysis.unevaluated or (None, None))
            choices: list[Choice] = []
            for assertions, seen in self.search(frozenset((self._without_unevaluated(place),)), bool(exactly)):
                loose = items
                if items is not None and seen.contains and not seen.all_items:
                    loose = self.any_of(place, (*seen.contains, *(items or (0,))))
                made = assert_unevaluated(assertions, seen, keys, loose)
                if made is not None:
                    choices.append((made, (), seen | analysis.evaluates))
            self._unevaluated[key] = choices
        return self._unevaluated[key]

    def _items(self, items: Conjunction | None, seen: Evaluated) -> Conjunction | None:
        """Return the condition on an item that violates `unevaluatedItems`; None: the schema does not have the keyword.

        The item meets `items`, the negation of the keyword's value. It also meets no `contains` that evaluates items.
        """
        if items is None:
            return None
        conjunction = items
        for one in seen.contains:
            conjunction = join(conjunction, conjunction_of(one ^ 1))
        return conjunction

    def _without_unevaluated(self, place: SchemaNode) -> int:
        """Return the literal of the schema without its `unevaluated*` keywords."""
        if place.literal not in self._stripped:
            made = SchemaNode(2 * len(self.places), place.schema, place.pointer, place.resource, place.scope)
            analysis = self.analysis(place)
            evaluating = analysis.evaluating
            if evaluating is not None:
                found = {name: one for name, one in evaluating[0].items() if not name.startswith("unevaluated")}
                evaluating = (found, *evaluating[1:])
            made.analysis = replace(analysis, unevaluated=None, evaluating=evaluating)
            self.places.append(made)
            self._stripped[place.literal] = made.literal
        return self._stripped[place.literal]

    # -- constant arrays and objects

    def expand_composites(self, assertions: TypeAssertions) -> list[TypeAssertions]:
        """Return alternatives that are together equivalent to assertions. An empty list means that no value is left.

        Listed strings that violate a pattern are removed (`filter_enum`). If there are listed arrays and objects, and
        also assertions about arrays or objects, each listed array and object becomes an alternative with conditions on
        its items or entries.
        """
        if assertions.string and assertions.string.enum and assertions.string.tests:
            assertions = replace(assertions, string=filter_enum(assertions.string))
            assertions.types &= ~0 if assertions.string else ~STRING
        if not assertions.types:
            return []
        if assertions.composites is None or not (assertions.array or assertions.object):
            return [assertions]
        return self._expanded(assertions)

    def _expanded(self, assertions: TypeAssertions) -> list[TypeAssertions]:
        plain = replace(
            assertions, types=assertions.types & ~(ARRAY | OBJECT), composites=None, array=None, object=None
        )
        made = [plain] if plain.types else []
        place = self.places[0]
        rest = replace(assertions, composites=None)
        for key, composite in (assertions.composites or {}).items():
            inner = self._composite_assertions.get(key)
            if inner is None:
                inner = assertions_of_constant(composite, lambda value: self.value_literal(place, {"enum": [value]}))
                self._composite_assertions[key] = inner
            merged = merge(rest, inner)
            made += [merged] if merged else []
        return made


def _asserts_conjuncts_only(analysis: SchemaAnalysis) -> bool:
    """Return whether a schema asserts only its conjuncts."""
    return analysis.own is UNCONSTRAINED and not analysis.applicators and analysis.unevaluated is None


def _only_keys(assertions: TypeAssertions) -> Set[str] | None:
    """Return the keys of the first set of property rules that allows no other keys; None if there is no such set."""
    if assertions.object is not None:
        for rules in assertions.object.rule_sets:
            if rules.additional is not None and 1 in rules.additional and not rules.patterns:
                return rules.names.keys()
    return None


@dataclass(slots=True, eq=False)
class _State:
    """A search state.

    Attributes:
        assertions: The assertions so far.
        evaluated: The keys and items that were evaluated so far, as far as this is tracked.
        waiting: The conjuncts that were not read yet.
        disjunctions: The disjunctions that were not branched on yet, each as a list of choices.
        done: The conjuncts that were read, and 0, which always holds.
    """

    assertions: TypeAssertions
    evaluated: Evaluated
    waiting: list[int]
    disjunctions: list[list[Choice]]
    done: set[int]
