"""Wants -> bundles: what a set of schemas, positive and negative, comes down to, as alternatives that may overlap.

The search keeps its own stack. A state is a bundle, the literals still to read, and the forks still to take; a fork
whose options contradict the bundle is cut off at once, so that tags and types decide before anything is multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from guideway.errors import InvalidConstraint, LimitExceeded, Unsupported

from .bundles import ANYTHING, ARRAY, FREE, OBJECT, Bundle, ObjectPart, Want, box_key, join, merge
from .documents import Documents, Resource
from .evaluated import NOTHING_EVALUATED, Evaluated, evaluated_by, left_over, missed
from .keywords import KEYWORDS, pointer
from .opposites import bundle_of_value, opposites
from .rivals import rivals_of
from .terms import Fork, Place, Term, read_schema, want

__all__ = ["MAX_ALTERNATIVES", "Expander"]

MAX_ALTERNATIVES = 10_000
"""How many alternatives one place may come down to."""

MAX_NESTED = 50
"""How deep `oneOf` and `unevaluated*` may stand in one another, at one place of the value."""

MAX_TOLD_APART = 10
"""How many branches of one `anyOf` may decide what is left for `unevaluated*`."""


class Expander:
    """The places of a document that were reached, by literal; and what wants come down to."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.places: list[Place] = []
        self._literals: dict[tuple[int, tuple[Resource, ...]], int] = {}
        self._values: dict[str, int] = {}
        self._kept: list[object] = []  # schemas that were made here: an identity is never used twice
        self._known: dict[Want, list[Bundle]] = {}
        self._sound: set[int] = set()
        self._offers: dict[tuple[int, bool | None], list[_Choice] | None] = {}
        self._bares: dict[int, int] = {}
        self._depth = 0
        self.refusals: dict[str, str] = {}
        self.contract: list[tuple[str, str]] = []
        nothing = documents.main
        self.places.append(Place(0, True, "", nothing, ()))

    # -- places

    def root(self) -> int:
        """The literal of the document."""
        main = self._documents.main
        return self.literal(main.root, main.place, main, (main,) if self._documents.dynamic else ())

    def literal(self, schema: object, where: str, resource: Resource, scope: tuple[Resource, ...]) -> int:
        """The literal of a schema; schemas that are only a reference are those that they lead to."""
        seen: set[tuple[int, tuple[Resource, ...]]] = set()
        while isinstance(schema, dict):
            if not schema:
                return 0
            key = (id(schema), scope)
            found = self._literals.get(key)
            if found is not None:
                return found
            if "$ref" not in schema or not self._only_ref(schema, resource):
                place = Place(2 * len(self.places), schema, where, resource, scope)
                self.places.append(place)
                self._literals[key] = place.literal
                return place.literal
            if key in seen:
                raise InvalidConstraint(f"at {where!r}: the reference leads back to itself", where)
            seen.add(key)
            if len(seen) == 1:
                self.contract.append((where, "$ref"))
            try:
                schema, where, resource, scope = self._target(schema, where, resource, scope, "$ref")
            except Unsupported as problem:
                return self._refuse(problem, where)
        return 0 if schema else 1

    def _only_ref(self, schema: dict[str, Any], resource: Resource) -> bool:
        if not isinstance(schema["$ref"], str):
            return False
        return (
            len(schema) == 1
            or resource.dialect.ref_alone
            or not any(name in KEYWORDS for name in schema if name != "$ref")
        )

    def _target(
        self, schema: dict[str, Any], where: str, resource: Resource, scope: tuple[Resource, ...], name: str
    ) -> tuple[object, str, Resource, tuple[Resource, ...]]:
        documents, reference = self._documents, str(schema[name])
        at = pointer(where, name)
        if name == "$recursiveRef":
            found, target, home = documents.resolve("#", resource, at)
            if home.recursive:
                outer = next((one for one in scope if one.recursive), home)
                found, target, home = outer.root, outer.place, outer
        else:
            found, target, home = documents.resolve(reference, resource, at)
            anchor = reference.partition("#")[2]
            if name == "$dynamicRef" and anchor in home.dynamic and home.dynamic[anchor][0] is found:
                outer = next((one for one in scope if anchor in one.dynamic), home)
                found, target = outer.dynamic[anchor]
                home = outer
        return found, target, home, self._scope(scope, home)

    def _scope(self, scope: tuple[Resource, ...], home: Resource) -> tuple[Resource, ...]:
        if not self._documents.dynamic or home in scope:
            return scope
        return (*scope, home)

    def _child(self, place: Place, schema: object, names: tuple[str | int, ...]) -> int:
        if schema is True:
            return 0
        if schema is False:
            return 1
        resource, scope = place.resource, place.scope
        owners = self._documents.owners
        if owners and id(schema) in owners:
            resource = owners[id(schema)]
            scope = self._scope(scope, resource)
        elif names[-1] in ("enum", "const"):
            self._kept.append(schema)
        return self.literal(schema, pointer(place.pointer, *names), resource, scope)

    def _reference(self, place: Place, name: str, reference: str) -> int:
        try:
            found, where, home, scope = self._target(place.schema, place.pointer, place.resource, place.scope, name)
        except Unsupported as problem:
            return self._refuse(problem, place.pointer)
        return self.literal(found, where, home, scope)

    def _refuse(self, problem: Unsupported, place: str) -> int:
        """A schema that is not known: it is refused in the end, and forbids all until then."""
        self.refusals.setdefault(place if problem.place is None else problem.place, str(problem))
        return 1

    def value_literal(self, place: Place, schema: dict[str, Any]) -> int:
        """The literal of a schema of a given value, which is made here."""
        key = box_key(schema)
        if key not in self._values:
            self._kept.append(schema)
            self._values[key] = self.literal(schema, place.pointer, place.resource, place.scope)
        return self._values[key]

    def any_of(self, place: Place, literals: tuple[int, ...]) -> Want:
        """Any of the literals, as a want."""
        if 0 in literals:
            return ANYTHING
        made = Place(2 * len(self.places), {}, place.pointer, place.resource, place.scope)
        made.term = Term(forks=(Fork("any", place.pointer, literals),), leads=literals)
        self.places.append(made)
        return frozenset((made.literal,))

    def term(self, place: Place) -> Term:
        """What the schema at a place says."""
        if place.term is None:
            place.term = read_schema(place, self._child, self._reference)
        return place.term

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
        steps = 0
        while stack:
            state = stack.pop()
            steps += 1
            if len(found) > MAX_ALTERNATIVES or steps > 4 * MAX_ALTERNATIVES:
                raise LimitExceeded(f"at {place!r}: comes down to more than {MAX_ALTERNATIVES} alternatives", place)
            if not self._settle(state, tracked):
                continue
            if not state.forks:
                found += ((bundle, state.evaluated) for bundle in self._unboxed(state.bundle))
                continue
            choices = self._open_choices(state, state.forks.pop(0))
            if choices is None:
                stack.append(state)
            else:
                stack += reversed(choices)
        self._depth -= 1
        return found

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
                state.forks.insert(0, rest)
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

    def _open_choices(self, state: _State, choices: list[_Choice]) -> list[_State] | None:
        """The states that a fork leads to; None where one of its choices holds already."""
        made = []
        telling = any(mark < 0 for _, marks, _ in choices for mark in marks)
        for bundle, marks, evaluated in choices:
            if any(mark == 1 or (mark >= 0 and mark ^ 1 in state.done) for mark in marks):
                continue
            if (
                not telling
                and bundle is None
                and evaluated is None
                and all(one == 0 or one in state.done for one in marks)
            ):
                return None
            merged = state.bundle if bundle is None else merge(state.bundle, bundle)
            if merged is None:
                continue
            seen = state.evaluated if evaluated is None else state.evaluated | evaluated
            made.append(_State(merged, seen, [*state.waiting, *marks], list(state.forks), set(state.done)))
        return made

    # -- choices

    def _choices(self, fork: Fork, exactly: bool | None) -> list[_Choice] | None:
        """What a fork offers; None where it says nothing."""
        key = (id(fork), exactly)
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
        faces = [self.alternatives(want(one)) for one in literals]
        rivals = rivals_of(literals, faces, lambda one: self.term(self.places[one >> 1]), fork.place)
        return [
            (None, (*_marks((one,), tracked), *(literals[j] ^ 1 for j in rivals[i])), None)
            for i, one in enumerate(literals)
        ]

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
            if term.evaluates is not NOTHING_EVALUATED:
                return True
            todo += term.leads
        return False

    def _missing(self, place: Place) -> list[_Choice]:
        key = (place.literal | 1, None)
        if key not in self._offers:
            term = self.term(place)
            options = opposites(term, lambda schema: self.value_literal(place, schema))
            choices: list[_Choice] = [(bundle, marks, None) for bundle, marks in options if 1 not in marks]
            if term.left is not None:
                keys, items = (None if one is None else want(one ^ 1) for one in term.left)
                for bundle, seen in self._search(frozenset((self._bare(place),)), True):
                    choices += ((one, (), None) for one in missed(bundle, seen, keys, self._items(place, items, seen)))
            self._offers[key] = choices
        return self._offers[key] or []

    def _with_left(self, place: Place, term: Term, exactly: bool | None) -> list[_Choice]:
        """A schema with `unevaluated*`: what the rest of it comes down to, each with what is left over."""
        key = (place.literal, exactly)
        if key not in self._offers and term.left is not None:
            keys, items = (None if one is None else want(one) for one in term.left)
            choices: list[_Choice] = []
            for bundle, seen in self._search(frozenset((self._bare(place),)), bool(exactly)):
                loose = items
                if items is not None and seen.contains and not seen.all_items:
                    loose = self.any_of(place, (*seen.contains, *(items or (0,))))
                made = left_over(bundle, seen, keys, loose)
                if made is not None:
                    choices.append((made, (), seen | term.evaluates))
            self._offers[key] = choices
        return self._offers[key] or []

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
            made.term = replace(self.term(place), left=None, evaluates=self._own_evaluates(place))
            self.places.append(made)
            self._bares[place.literal] = made.literal
        return self._bares[place.literal]

    def _own_evaluates(self, place: Place) -> Evaluated:
        term = self.term(place)
        found = {name: one for name, one in place.schema.items() if not name.startswith("unevaluated")}
        contains = term.evaluates.contains
        return evaluated_by(found, place.resource.dialect.items_list, contains[0] if contains else None)

    # -- given arrays and objects

    def _unboxed(self, bundle: Bundle) -> list[Bundle]:
        """Given arrays and objects that something else is said about become what their parts must be."""
        if not bundle.types:
            return []
        if bundle.boxes is None or not (bundle.array or bundle.object):
            return [bundle]
        plain = replace(bundle, types=bundle.types & ~(ARRAY | OBJECT), boxes=None, array=None, object=None)
        made = [plain] if plain.types else []
        place = self.places[0]
        for box in bundle.boxes.values():
            inner = bundle_of_value(box, lambda value: self.value_literal(place, {"const": value}))
            merged = merge(replace(bundle, boxes=None), inner)
            made += [merged] if merged else []
        return made


def _marks(literals: tuple[int, ...], tracked: bool) -> tuple[int, ...]:
    """Positive literals as their complement where what they evaluate counts."""
    if not tracked:
        return literals
    return tuple(one if one & 1 or not one else ~one for one in literals)


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
