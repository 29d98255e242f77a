"""Computes the choices that an applicator offers: for `anyOf` and similar keywords, negations and `unevaluated*`.

A choice has three fields: a bundle or None, literals that must also hold, and the evaluated keys and items if they are
already known. A literal whose evaluations are tracked is written as its bitwise complement. Such a signed literal is
called a mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.bundles import (
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
    StringPart,
    Want,
    join,
    merge,
)
from guideway.frontends.json_schema.documents import Documents
from guideway.frontends.json_schema.evaluated import Evaluated, left_over, missed
from guideway.frontends.json_schema.limits import MAX_OPENED, MAX_TOLD_APART
from guideway.frontends.json_schema.opposites import bundle_of_value, opposites
from guideway.frontends.json_schema.places import Places
from guideway.frontends.json_schema.rivals import Tags, discriminator, rivals_of, tags_of
from guideway.frontends.json_schema.scalars import tested
from guideway.frontends.json_schema.terms import Fork, Place, Term, want
from guideway.jsontext.pointer import shown

__all__ = ["Choice", "Choices", "Marks", "marks_of"]

Marks = tuple[int, ...]
Choice = tuple[Bundle | None, Marks, Evaluated | None]

_NO_OBJECT = Bundle(ALL & ~OBJECT)


def marks_of(literals: tuple[int, ...], tracked: bool) -> tuple[int, ...]:
    """Replace positive literals by their complement if their evaluations are tracked."""
    if not tracked:
        return literals
    return tuple(one if one & 1 or not one else ~one for one in literals)


class Choices(Places):
    """The choices of one document. The subclass `Expander` implements the search through them."""

    def __init__(self, documents: Documents) -> None:
        super().__init__(documents)
        self._offers: dict[tuple[Fork, bool | None], list[Choice] | None] = {}
        self._misses: dict[int, list[Choice]] = {}  # by literal, also in the next two
        self._rests: dict[tuple[int, bool | None], list[Choice]] = {}
        self._bares: dict[int, int] = {}
        self._boxed: dict[str, Bundle] = {}  # by constant array or object, the conditions on its parts

    def alternatives(self, wanted: Want) -> list[Bundle]:
        """Return the disjunctive normal form of a want."""
        raise NotImplementedError

    def search(self, wanted: Want, tracked: bool | None) -> list[tuple[Bundle, Evaluated]]:
        """Return the disjunctive normal form of a want, each bundle with what it evaluates."""
        raise NotImplementedError

    def has_no_value(self, wanted: Want) -> bool:
        """Whether no value can meet a want. The search is bounded; False may mean that it was not decided."""
        raise NotImplementedError

    def spend_pairs(self, count: int) -> None:
        """Count compared pairs of alternatives.

        Raises:
            LimitExceededError: If too many pairs are compared.
        """
        raise NotImplementedError

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
            options = opposites(term, lambda schema: self.value_literal(place, schema))
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
        rest = replace(bundle, boxes=None)
        for key, box in (bundle.boxes or {}).items():
            inner = self._boxed.get(key)
            if inner is None:
                inner = bundle_of_value(box, lambda value: self.value_literal(place, {"enum": [value]}))
                self._boxed[key] = inner
            merged = merge(rest, inner)
            made += [merged] if merged else []
        return made
