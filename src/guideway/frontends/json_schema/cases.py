"""Divides the objects that a conjunction of schemas allows into alternatives, by the values of their keys.

The conjunction becomes a Boolean formula. Its variables are the keys that some schema names. The values of a key are
partitioned into the classes that the schemas distinguish. One more class means that the key is absent. Other assertions
(about all other keys, or about the number of entries) are variables with two classes. The formula is split by the
variable that leaves the smallest formulas. Therefore a discriminator, required or not, is decided before disjunctions
are multiplied. Classes that leave the same formula are not separated. A negated conjunction that requires some entry is
kept as a demand (an existential property).

A disjunction of many conjunctions of conditions on keys is not expanded if few of the conjunctions (branches) share keys:
it becomes a tally. While the object is read, each entry marks the branches that it makes fail, and an absent key those
that require it. The object may end if the number of marks is within limits. So the state is the set of branches that
can still hold, and it is built during the parse. "Exactly one" of many cubes over the same keys (closed objects) is
divided into these cubes; the negations of the others depend only on the keys that the one cube allows.

This is Shannon expansion into a multi-valued decision diagram. Each of its paths is one alternative (Bryant,
"Graph-based algorithms for Boolean function manipulation", 1986).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.bundles import (
    ANYTHING,
    ARRAY,
    FALSE,
    NOTHING,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Demand,
    Group,
    ObjectPart,
    StringPart,
    Tally,
    Want,
    box_key,
    join,
)
from guideway.frontends.json_schema.formulas import (
    ABSENT,
    All,
    AnyOf,
    Cube,
    Formula,
    Formulas,
    Negated,
    One,
    TooHard,
    product,
    shape_of,
)
from guideway.frontends.json_schema.keys import EmptinessTest
from guideway.frontends.json_schema.limits import (
    MAX_CASES,
    MAX_CLASSES,
    MAX_DEMANDS,
    MAX_FORMULA,
    MAX_OPENED,
    MAX_SHARED,
    MAX_TALLY,
    MAX_TRIED,
    MIN_TALLY,
)
from guideway.frontends.json_schema.opposites import bundle_of_value
from guideway.frontends.json_schema.reading import KEYWORD_NAMES
from guideway.frontends.json_schema.scalars import pattern_language
from guideway.frontends.json_schema.terms import Fork, Term, want
from guideway.grammar.regular import both

if TYPE_CHECKING:
    from guideway.frontends.json_schema.expand import Expander

__all__ = ["TooHard", "objects_by_cases"]

_MAX_DEPTH = 40
_CANDIDATES = 6
_OTHERS = (NULL, TRUE, FALSE, NUMBER, STRING, ARRAY)


class _Key:
    """A key: the literals that some schema asserts of its value, and the classes that these literals distinguish."""

    __slots__ = ("classes", "full", "literals", "masks", "name", "signed", "wants")

    def __init__(self, name: str) -> None:
        self.name = name
        self.literals: dict[int, None] = {}
        self.classes: list[Want] = []
        self.masks: dict[int, int] = {}  # by literal, the bits of the classes in which it holds
        self.full = 0
        self.signed: list[tuple[int, int]] = []  # (classes, literal) of all literals and negations, few classes first
        self.wants: dict[int, Want] = {}  # by classes


def objects_by_cases(expander: Expander, wanted: Want) -> tuple[list[ObjectPart], int, list[int]]:
    """Divide the objects that meet a want into alternatives.

    Returns:
        The alternatives; the bits of the other types of which every value meets the want; and the other types for which
        the result depends on the value.

    Raises:
        TooHard: If the formula is too large or not expressible.
    """
    return _Cases(expander).run(wanted)


class _Cases(Formulas):
    def __init__(self, expander: Expander) -> None:
        super().__init__()
        self._expander = expander
        self._keys: dict[str, int] = {}  # key name -> variable
        self._vars: list[_Key | None] = []  # None: the variable is not a key
        self._atoms: dict[Any, int] = {}
        self._formulas: dict[int, Formula] = {}
        self._same: dict[Any, int] = {}
        self._same_of: dict[int, int] = {}
        self._listed: list[tuple[Cube, Group]] = []
        self._orders: list[tuple[str, ...]] = []  # the keys that each schema lists, in its order
        self._open: list[Group] = []  # groups with a condition on all keys that they do not name
        self._apart: dict[tuple[int, int], bool] = {}
        self._emptiness = EmptinessTest()
        self._absent: Cube = {}
        self._divided: dict[tuple[int, ...], _Key] = {}  # by literals, a key with them
        self._tallied: dict[int, tuple[Formula, bool]] = {}  # by identity of disjunctions, whether they can be tallies

    def run(self, wanted: Want) -> tuple[list[ObjectPart], int, list[int]]:
        order = self._collect(wanted)
        whole_types, other_types = 0, []
        for types in _OTHERS:
            found = self._of_type(types, order, wanted)
            if found is None:
                other_types.append(types)
            elif found:
                whole_types |= types
        self._formulas.clear()
        for place in order:  # inner schemas first
            self._formulas[place] = self._read(self._term(place))
        whole = self._all([self._formula(one) for one in sorted(wanted)])
        return self._split(whole), whole_types, other_types

    def _of_type(self, types: int, order: list[int], wanted: Want) -> bool | None:
        """Whether all values of a type meet a want (True) or none does (False). None: it depends on the value."""
        formulas = self._formulas
        formulas.clear()
        for place in order:
            term = self._term(place)
            own = term.own
            if own.types & types:
                part = own.number if types == NUMBER else own.string if types == STRING else own.array
                if (types & (NUMBER | STRING | ARRAY) and part is not None) or (types == ARRAY and own.boxes):
                    formulas[place] = One((), True)  # an opaque formula: the result is unknown
                    continue
            parts: list[Formula] = [bool(own.types & types), *(self._formula(one) for one in term.also)]
            parts += (fork.kind == "when" or self._fork(fork) for fork in term.forks)
            formulas[place] = self._all(parts)
        made = self._all([self._formula(one) for one in sorted(wanted)])
        return made if isinstance(made, bool) else None

    # -- formulas of schemas

    def _term(self, literal: int) -> Term:
        return self._expander.term(self._expander.places[literal >> 1])

    def _collect(self, wanted: Want) -> list[int]:
        """The schemas that apply to the object itself, inner ones first. Also records the keys that they name."""
        order: list[int] = []
        depth = {one & ~1: 0 for one in wanted if one > 1}
        todo = [(one, False) for one in depth]
        done: set[int] = set()
        while todo:
            literal, left = todo.pop()
            if left:
                order.append(literal)
                continue
            if literal in done:
                continue
            done.add(literal)
            term = self._term(literal)
            if term.left is not None or len(done) > MAX_FORMULA:
                raise TooHard
            self._note_names(term)
            todo.append((literal, True))
            for one in reversed(list(term.leads)):  # the worklist is a stack, so the first literal is read first
                if one > 1 and one & ~1 not in done:
                    depth[one & ~1] = depth[literal] + 1
                    if depth[literal] > _MAX_DEPTH:
                        raise TooHard
                    todo.append((one & ~1, False))
        return order

    def _note_names(self, term: Term) -> None:
        """Record the keys of a schema in the order that objects of the generation profile use."""
        part = term.own.object
        if part is not None:
            if part.demands:
                raise TooHard
            for group in part.groups:
                self._orders.append(tuple(group.names))
                for name, one in group.names.items():
                    self._note(name, one)
                if not group.patterns and group.extra and group.extra != NOTHING:
                    self._open.append(group)
            for name in (*part.required, *sorted(part.banned)):
                self._note(name)
        for box in (term.own.boxes or {}).values():
            if isinstance(box, dict):
                for name, value in box.items():
                    self._note(name, want(self._listing([value])))
        for fork in term.forks:
            if fork.kind == "when":
                self._note(fork.name)
                for name in fork.needs:
                    self._note(name)

    def _note(self, name: str, wanted: Want = ANYTHING) -> None:
        var = self._keys.get(name)
        if var is None:
            var = self._keys[name] = len(self._vars)
            self._vars.append(_Key(name))
            self._full.append(0)
            self._is_key.append(True)
        key = self._vars[var]
        if key is not None:
            for one in wanted:
                if one > 1:
                    key.literals[self._canonical(one)] = None

    def _canonical(self, literal: int) -> int:
        """The first even literal whose schema has the same content."""
        base = literal & ~1
        found = self._same_of.get(base)
        if found is None:
            place = self._expander.places[base >> 1]
            schema, term = place.schema, self._term(base)
            shape: Any
            if term.plain:
                shape = id(term)
            elif isinstance(schema, dict) and schema:
                told = {name: one for name, one in schema.items() if name in KEYWORD_NAMES}
                shape = (box_key(told), id(place.resource), place.scope)
            else:
                shape = base
            found = self._same_of[base] = self._same.setdefault(shape, base)
        return found

    def _formula(self, literal: int) -> Formula:
        if literal < 2:
            return not literal
        made = self._formulas[literal & ~1]
        return self._negated(made) if literal & 1 else made

    def _read(self, term: Term) -> Formula:
        own = term.own
        if not own.types & OBJECT:
            return False
        parts: list[Formula] = []
        if own.boxes is not None:
            boxes = [box for box in own.boxes.values() if isinstance(box, dict)]
            if len(boxes) > MAX_OPENED:
                raise TooHard
            parts.append(self._any([self._box(box) for box in boxes]))
        if own.object is not None:
            parts.append(self._object(own.object))
        parts += (self._formula(one) for one in term.also)
        parts += (self._fork(fork) for fork in term.forks)
        return self._all(parts)

    def _fork(self, fork: Fork) -> Formula:
        literals = [self._formula(one) for one in fork.literals]
        if fork.kind == "any":
            return self._any(literals)
        if fork.kind == "one":
            return self._one(literals, True)
        if fork.kind == "if":
            condition, then, other = literals
            return self._all([self._any([self._negated(condition), then]), self._any([condition, other])])
        has = All({self._var(name): self._present(name) for name in fork.needs if name != fork.name})
        absent = All({self._var(fork.name): ABSENT})
        return self._any([absent, self._all([has, *literals])])

    def _box(self, box: dict[str, Any]) -> Formula:
        part = bundle_of_value(box, lambda value: self._listing([value])).object
        return True if part is None else self._object(part)

    def _object(self, part: ObjectPart) -> Formula:
        """The formula of the object keywords of one schema."""
        cubes: list[Formula] = []
        for group in part.groups:
            made = self._group(group)
            cubes.append(made)
            if group.listed and isinstance(made, All):
                self._listed.append((made.cube, group))
        cube: Cube = {}
        for name in part.required:
            cube[self._var(name)] = self._present(name)
        for name in part.banned:
            cube[self._var(name)] = ABSENT
        if part.fewest:
            cube[self._count(part.fewest)] = 2
        if part.most is not None:
            cube[self._count(part.most + 1)] = 1
        if part.keys:
            fails = ObjectPart(demands=(Demand(ANYTHING, keys=_opposite(part.keys)),))
            cube[self._atom(("keys", part.keys), ObjectPart(keys=part.keys), fails)] = 2
        return self._all([All(cube), *cubes])

    def _count(self, least: int) -> int:
        return self._atom(("count", least), ObjectPart(fewest=least), ObjectPart(most=least - 1))

    def _group(self, group: Group) -> Formula:
        extra = group.extra
        closed = extra == NOTHING and not group.patterns
        cube: Cube = self._all_absent() if closed else {}
        for name, one in group.names.items():
            if closed:
                cube.pop(self._var(name), None)
            self._bound(cube, name, one)
        for pattern, at, one in group.patterns:
            if one:
                holds = ObjectPart((Group({}, ((pattern, at, one),)),))
                fails = ObjectPart(demands=(Demand(_opposite(one), inside=((pattern, at),)),))
                cube[self._atom(("pattern", pattern, self._same_wants(one)), holds, fails)] = 2
        if extra and group.patterns:
            names = dict.fromkeys(group.names, ANYTHING)
            passed = tuple((pattern, at, ANYTHING) for pattern, at, _ in group.patterns)
            outside = tuple((pattern, at) for pattern, at, _ in group.patterns)
            holds = ObjectPart((Group(names, passed, extra),))
            fails = ObjectPart(demands=(Demand(_opposite(extra), frozenset(names), (), outside),))
            key = ("rest", frozenset(names), frozenset(one[0] for one in outside), self._same_wants(extra))
            cube[self._atom(key, holds, fails)] = 2
        elif extra:
            for name in self._keys if not closed else ():
                if name not in group.names:
                    self._bound(cube, name, extra)
            fails = ObjectPart(demands=(Demand(_opposite(extra), frozenset(self._keys)),))
            cube[self._atom(("others", self._same_wants(extra)), ObjectPart((Group({}, (), extra),)), fails)] = 2
        if any(not bits for bits in cube.values()):
            return False
        return All(cube) if cube else True

    def _all_absent(self) -> Cube:
        """The cube in which all keys are absent."""
        if not self._absent:
            self._absent = {self._var(name): ABSENT for name in self._keys}
        return dict(self._absent)

    def _same_wants(self, wanted: Want) -> Want:
        return frozenset(self._canonical(one) | (one & 1) if one > 1 else one for one in wanted)

    def _bound(self, cube: Cube, name: str, wanted: Want) -> None:
        """Restrict a cube: the key is absent, or its value meets a want."""
        if not wanted:
            return
        var = self._var(name)
        bits = cube.get(var, self._full[var])
        for one in wanted:
            if one == 1:
                bits &= ABSENT
            elif one:
                self._limit_value(cube, var, self._canonical(one), not one & 1)
        bits &= cube.get(var, bits)
        if bits != self._full[var]:
            cube[var] = bits

    def _limit_value(self, cube: Cube, var: int, literal: int, holds: bool) -> None:
        """Restrict a cube: the key is absent, or its value meets a literal (or, if not `holds`, violates it)."""
        key = self._vars[var]
        mask = key.masks.get(literal) if key is not None else None
        full = self._full[var]
        if mask is not None:
            cube[var] = cube.get(var, full) & ((mask if holds else full & ~mask) | ABSENT)
            return
        if not holds:
            raise TooHard
        known = self._atoms.get((var, literal))
        if known is None:
            known = self._atom((var, literal), ObjectPart(), ObjectPart())
            self._value_of[known] = (var, literal)
            self._values_at.setdefault(var, []).append(known)
        cube[known] = 2

    def _atom(self, key: Any, holds: ObjectPart, fails: ObjectPart) -> int:
        """A variable with two classes. Bit 0: the assertion fails. Bit 1: it holds."""
        var = self._atoms.get(key)
        if var is None:
            var = self._atoms[key] = len(self._vars)
            self._vars.append(None)
            self._full.append(3)
            self._is_key.append(False)
            self._parts[var] = (holds, fails)
        return var

    def _present(self, name: str) -> int:
        return self._full[self._var(name)] & ~ABSENT

    # -- classes of values

    def _var(self, name: str) -> int:
        var = self._keys[name]
        if not self._full[var]:
            key = self._vars[var]
            if key is not None:
                self._divide(key)
                self._full[var] = key.full
        return var

    def _divide(self, key: _Key) -> None:
        """Partition the values of a key.

        Listed scalars are grouped by the literals that hold, other literals by trial.
        """
        for group in self._open:
            if key.name not in group.names:
                for one in group.extra or ():
                    key.literals[self._canonical(one)] = None
        literals = list(key.literals)
        same = self._divided.setdefault(tuple(literals), key)
        if same is not key:
            key.classes, key.full, key.masks, key.signed = same.classes, same.full, same.masks, same.signed
            key.wants = same.wants
            return
        classes: list[tuple[Want, frozenset[int]]] = [(ANYTHING, frozenset())]
        finite = {one: values for one in literals if (values := self._finite(one)) is not None}
        if len(finite) > 1:
            classes = self._counted(finite)
        else:
            finite = {}
        others = [one for one in literals if one not in finite]
        if len(others) > MAX_TRIED and not all(map(self._patterns, others)):  # each becomes a separate variable
            literals, others = list(finite), []
        for one in others:
            classes = self._tried(classes, one)
        key.classes = [wanted for wanted, _ in classes]
        key.full = (2 << len(classes)) - 1
        for one in literals:
            key.masks[one] = sum(2 << i for i, (_, holders) in enumerate(classes) if one in holders)

    def _finite(self, literal: int) -> list[Any] | None:
        """The scalars that a literal lists, each with its type. None if the literal is not a list of scalars."""
        term = self._term(literal)
        own = term.own
        if term.also or term.forks or term.left is not None or own.types & (ARRAY | OBJECT) or not own.types:
            return None
        values: list[Any] = [(bit, word) for bit, word in ((1, None), (2, True), (4, False)) if own.types & bit]
        if own.types & NUMBER:
            if own.number is None or own.number.given is None:
                return None
            values += ((NUMBER, one) for one in own.number.given)
        if own.types & STRING:
            if own.string is None or own.string.given is None or own.string.tests:
                return None
            values += ((STRING, one) for one in own.string.given)
        return values

    def _counted(self, finite: dict[int, list[Any]]) -> list[tuple[Want, frozenset[int]]]:
        """The classes of listed scalars, grouped by the literals that list them, and the class of all other values."""
        holders: dict[Any, set[int]] = {}
        for one, values in finite.items():
            for value in values:
                holders.setdefault(value, set()).add(one)
        classes: dict[frozenset[int], list[Any]] = {}
        for value, found in holders.items():
            classes.setdefault(frozenset(found), []).append(value[1])
        whole = self._listing([value[1] for value in holders])
        if len(classes) > MAX_CLASSES:
            raise TooHard
        made = [(want(self._listing(values)), found) for found, values in classes.items()]
        return [*made, (want(whole ^ 1), frozenset())]

    def _listing(self, values: list[Any]) -> int:
        expander = self._expander
        return expander.value_literal(expander.places[0], {"enum": values})

    def _tried(self, classes: list[tuple[Want, frozenset[int]]], literal: int) -> list[tuple[Want, frozenset[int]]]:
        made = []
        for wanted, holders in classes:
            for one, found in ((literal, holders | {literal}), (literal ^ 1, holders)):
                met = join(wanted, want(one))
                if 1 not in met and not self._expander.has_no_value(met) and not self._has_no_text(met):
                    made.append((met, found))
        if len(made) > MAX_CLASSES:
            raise TooHard
        return made

    def _patterns(self, literal: int) -> bool:
        """Whether a literal asserts only that the value is a string that matches patterns."""
        term = self._term(literal)
        own = term.own
        if term.also or term.forks or term.left is not None or own.types != STRING or own.string is None:
            return False
        part = own.string
        plain = part.given is None and not part.fewest and part.most is None
        return plain and bool(part.tests) and all(kind == "pattern" for _, kind, _, _ in part.tests)

    def _has_no_text(self, wanted: Want) -> bool:
        """Whether two patterns of a want are disjoint."""
        patterns = [one for one in sorted(wanted) if not one & 1 and self._patterns(one)]
        return any(self._are_apart(one, other) for i, one in enumerate(patterns) for other in patterns[:i])

    def _are_apart(self, one: int, other: int) -> bool:
        known = self._apart.get((one, other))
        if known is None:
            tests = [test for part in (one, other) for test in self._string(part).tests]
            try:
                known = self._emptiness(both(*(pattern_language(text, at) for _, _, text, at in tests)))
            except LimitExceededError:
                known = False
            self._apart[one, other] = known
        return known

    def _string(self, literal: int) -> StringPart:
        return self._term(literal).own.string or StringPart()

    def _wanted(self, var: int, bits: int) -> Want:
        """The condition that a value is in one of these classes."""
        key = self._vars[var]
        if key is None:
            raise TooHard
        bits &= ~ABSENT
        found = key.wants.get(bits)
        if found is None:
            found = key.wants[bits] = self._found_want(key, bits)
        return found

    def _found_want(self, key: _Key, bits: int) -> Want:
        left = key.full & ~ABSENT
        if bits == left:
            return ANYTHING
        if not bits:
            return NOTHING
        made = ANYTHING
        if not key.signed:
            signed = [(mask, one) for one, mask in key.masks.items()]
            signed += [(left & ~mask, one ^ 1) for mask, one in signed]
            key.signed = sorted(signed, key=lambda both: both[0].bit_count())
        for mask, one in key.signed:
            if not bits & ~mask and left & ~mask:
                made = join(made, want(one))
                left &= mask
                if left == bits:
                    return made
        each = [key.classes[i] for i in range(len(key.classes)) if bits >> (i + 1) & 1]
        if len(each) == 1:
            return each[0]
        place = self._expander.places[0]
        return self._expander.any_of(place, tuple(self._expander.all_of(place, one) for one in each))

    # -- the case split

    def _split(self, whole: Formula) -> list[ObjectPart]:
        found: list[ObjectPart] = []
        todo: list[Formula] = [whole]
        count = 0
        while todo:
            one = todo.pop()
            if one is False:
                continue
            if one is True:
                one = All({})
            if not isinstance(one, All):
                one = All({}, (one,))
            tally = None if self._is_simple(one.rest) else self._tally(one)
            if tally is not None:
                made = self._emitted(*tally)
                if made is not None:
                    found.append(made)
            elif self._is_simple(one.rest):
                made = self._emitted(one)
                if made is not None:
                    found.append(made)
            else:
                todo += reversed(self._cases(one))
            count += 1
            if len(found) + len(todo) > MAX_CASES or count > 4 * MAX_CASES:
                raise TooHard
        return found

    def _is_simple(self, rest: tuple[Formula, ...]) -> bool:
        """Whether every remaining formula can be written as a demand."""
        return len(rest) <= MAX_DEMANDS and all(isinstance(one, Negated) and self._is_demand(one) for one in rest)

    def _tally(self, one: All) -> tuple[All, Tally] | None:
        """Write a disjunction of many conditions on the values of keys as a tally.

        Returns:
            The rest of the formula, and the tally. None if the formula has another form, or if more than `MAX_SHARED`
            branches share keys, directly or through other branches.
        """
        if not self._may_tally(one):
            return None
        (part,) = one.rest
        branches: list[All] = list(part.parts)  # type: ignore[union-attr,arg-type]  # as `_may_tally` says
        cube, holders = dict(one.cube), _holders(branches)
        for var, owners in holders.items():
            if len(owners) == len(branches):  # one of the branches must hold
                union = 0
                for branch in branches:
                    union |= branch.cube[var]
                cube[var] = cube.get(var, self._full[var]) & union
        made = Tally(len(branches), 1 if isinstance(part, One) else len(branches), {}, {})
        for var, owners in holders.items():
            if not self._add_ways(made, cube, branches, var, owners):
                return None
        return All(cube), made

    def _may_tally(self, one: All | One | AnyOf) -> bool:
        """Whether a formula can be written as a tally."""
        rest: tuple[Formula, ...] = one.rest if isinstance(one, All) else (one,)
        part = rest[0] if len(rest) == 1 else None
        if not isinstance(part, (AnyOf, One)) or not MIN_TALLY <= len(part.parts) <= MAX_TALLY:
            return False
        known = self._tallied.get(id(part))
        if known is None:
            known = self._tallied[id(part)] = part, self._is_divisible(part)
        return known[1]

    def _is_divisible(self, part: One | AnyOf) -> bool:
        """Whether all parts are cubes of keys, and few parts share keys."""
        branches = [each for each in part.parts if isinstance(each, All) and not each.rest]
        if (isinstance(part, One) and not part.holds) or len(branches) < len(part.parts):
            return False
        groups = list(range(len(branches)))
        for var, owners in _holders(branches).items():
            if self._vars[var] is None:
                return False
            if len(owners) == len(branches) and all(one.cube[var] == branches[0].cube[var] for one in branches):
                continue
            if len(owners) > MAX_SHARED:
                return False
            first = _root(groups, owners[0])
            for i in owners[1:]:
                groups[_root(groups, i)] = first
        sizes: dict[int, int] = {}
        for i in range(len(branches)):
            root = _root(groups, i)
            sizes[root] = sizes.get(root, 0) + 1
        return max(sizes.values()) <= MAX_SHARED

    def _add_ways(self, tally: Tally, cube: Cube, branches: list[All], var: int, owners: list[int]) -> bool:
        """Add a key to a tally. Returns False if the key allows no value and must not be absent."""
        key = self._vars[var]
        if key is None:
            return False
        allowed = cube.get(var, self._full[var])
        cells: dict[int, int] = {}  # by marks, the classes
        for bit in (1 << n for n in range(allowed.bit_length())):
            if allowed & bit:
                marks = sum(1 << i for i in owners if not branches[i].cube[var] & bit)
                cells[marks] = cells.get(marks, 0) | bit
        every = (1 << tally.branches) - 1
        touched = 0
        for marks, bits in cells.items():
            if marks == every:  # no branch holds
                cube[var] = cube.get(var, self._full[var]) & ~bits
                continue
            touched |= marks
            if bits & ABSENT and marks:
                tally.missing[key.name] = marks
            if bits & ~ABSENT:
                tally.ways.setdefault(key.name, []).append((marks, self._wanted(var, bits)))
        if not touched:
            tally.ways.pop(key.name, None)
        return bool(cube.get(var, 1))

    def _cases(self, one: All) -> list[Formula]:
        """Split the formula by a variable, or by the branches of its first disjunction."""
        best: list[Formula] | None = self._by_cubes(one)
        if best is not None and sum(map(self._weight, best)) <= 2 * len(best):
            return best
        best = None
        least = float("inf")
        counts: dict[int, int] = {}
        masks: dict[int, set[int]] = {}
        for part in one.rest:
            self._count_vars(part, counts, masks)
        order = sorted(counts, key=lambda var: -counts[var] * len(masks[var]))[:_CANDIDATES]
        for var in order:
            made = self._by_variable(one, var, masks[var])
            weight = sum(map(self._parts_weight, made))
            if weight < least:
                best, least = made, weight
        # an estimate of what a split by branches gives
        if best is not None and least <= product(map(self._weight, one.rest)):
            return best
        branches = self._by_branches(one)
        return branches if best is None or sum(map(self._weight, branches)) <= least else best

    def _parts_weight(self, one: Formula) -> float:
        """An estimate of the number of alternatives that the division of a formula makes."""
        return 1.0 if isinstance(one, (All, One, AnyOf)) and self._may_tally(one) else self._weight(one)

    def _by_variable(self, one: All, var: int, masks: set[int]) -> list[Formula]:
        allowed = one.cube.get(var, self._full[var])
        cells = [allowed]
        for mask in masks:  # do not separate classes that no part of the formula distinguishes
            cells = [cell for whole in cells for cell in (whole & mask, whole & ~mask) if cell]
        same: dict[Any, int] = {}
        left: dict[Any, tuple[Formula, ...] | None] = {}
        for cell in cells:
            parts = tuple(self._assumed(part, {var: cell}) for part in one.rest)
            if any(part is False for part in parts):
                continue
            shape = tuple(part if part is True else shape_of(part) for part in parts)
            same[shape] = same.get(shape, 0) | cell
            left[shape] = parts
        return [
            made
            for shape, cell in same.items()
            if (made := self._all([All({**one.cube, var: cell}), *(left[shape] or ())])) is not False
        ]

    def _by_cubes(self, one: All) -> list[Formula] | None:
        """Split "exactly one" by its parts, if these are cubes of the same variables. None if they are not.

        The negation of another part, where one part holds, depends on few variables: those that need not be absent.
        """
        part = one.rest[0]
        if len(one.rest) > 1 or not isinstance(part, One) or not part.holds or len(part.parts) < MIN_TALLY:
            return None
        cubes = [each.cube for each in part.parts if isinstance(each, All) and not each.rest]
        if len(cubes) < len(part.parts) or self._values_at or any(cube.keys() != cubes[0].keys() for cube in cubes):
            return None
        needed = [[var for var, bits in cube.items() if not bits & ABSENT] for cube in cubes]
        made: list[Formula] = []
        for i, cube in enumerate(cubes):
            whole = self._all([All(one.cube), All(cube)])
            if not isinstance(whole, All):
                continue
            held = whole.cube
            open_vars = [(var, bits) for var, bits in held.items() if bits != ABSENT and var in cube]
            others: dict[frozenset[tuple[int, int]], Formula] = {}
            self._spend(len(cubes) * (1 + len(open_vars) // 8))
            for j, other in enumerate(cubes):
                if j == i or any(held[var] == ABSENT for var in needed[j]):
                    continue
                left = {var: other[var] & bits for var, bits in open_vars if bits & ~other[var]}
                if all(left.values()):  # else the other part cannot hold
                    others[frozenset(left.items())] = Negated(left) if left else False
            if False not in others.values():
                made.append(All(held, tuple(others.values())))
        return made

    def _by_branches(self, one: All) -> list[Formula]:
        """Split by the options of the part that has the fewest."""
        at = min(range(len(one.rest)), key=lambda i: self._weight(one.rest[i]))
        for i, part in enumerate(one.rest):
            demand = isinstance(part, Negated) and self._is_demand(part)
            if not demand and (isinstance(one.rest[at], Negated) or self._weight(part) < self._weight(one.rest[at])):
                at = i
        part = one.rest[at]
        others = [other for i, other in enumerate(one.rest) if i != at]
        base = All(one.cube)
        options: list[list[Formula]] = []
        if isinstance(part, Negated):
            held: Cube = {}
            for var, bits in part.cube.items():
                options.append([All({**held, var: self._full[var] & ~bits})])
                held[var] = bits
        elif isinstance(part, AnyOf):
            options = [[branch] for branch in part.parts]
        elif isinstance(part, One) and part.holds:
            for i, branch in enumerate(part.parts):
                options.append([branch, *(self._negated(other) for j, other in enumerate(part.parts) if j != i)])
        elif isinstance(part, One):
            options.append([self._negated(branch) for branch in part.parts])
            options += ([a, b] for i, a in enumerate(part.parts) for b in part.parts[:i])
        made = [self._all([base, *option, *others]) for option in options]
        return [formula for formula in made if formula is not False]

    # -- alternatives

    def _emitted(self, one: All, tally: Tally | None = None) -> ObjectPart | None:
        """The objects of a cube with demands or a tally. None if the conjunction is contradictory."""
        cube = one.cube
        part = ObjectPart(tallies=() if tally is None else (tally,))
        counted = tally.ways if tally else {}
        names: dict[str, Want] = {}
        banned = []
        groups: list[Group] = []
        closed: Want | None = None
        for var, bits in cube.items():
            key = self._vars[var]
            if var in self._value_of:
                continue
            if key is None:
                holds, fails = self._parts[var]
                chosen = holds if bits == 2 else fails
                if bits == 2 and len(holds.groups) == 1 and not (holds.groups[0].patterns or holds.groups[0].names):
                    closed = join(closed or ANYTHING, holds.groups[0].extra or ANYTHING)
                else:
                    groups += chosen.groups
                    part.keys = join(part.keys, chosen.keys)
                    part.demands += chosen.demands
                    part.fewest = max(part.fewest, chosen.fewest)
                    if chosen.most is not None:
                        part.most = chosen.most if part.most is None else min(part.most, chosen.most)
                continue
            if bits == ABSENT:
                banned.append(key.name)
                continue
            names[key.name] = ANYTHING if key.name in counted else self._wanted(var, bits)
            if not bits & ABSENT:
                part.required[key.name] = None
        for var, bits in cube.items():
            if var in self._value_of:
                owner, literal = self._value_of[var]
                key = self._vars[owner]
                if key is not None and cube.get(owner) != ABSENT:
                    names[key.name] = join(names.get(key.name, ANYTHING), want(literal if bits == 2 else literal ^ 1))
                    if bits == 1:
                        part.required[key.name] = None
        for name in part.required:
            wanted = names.get(name, ANYTHING)
            if 1 in wanted or (len(wanted) > 1 and self._expander.has_no_value(wanted)):
                return None
        part.demands += tuple(self._demand(clause, cube) for clause in one.rest if isinstance(clause, Negated))
        if part.most is not None and max(part.fewest, len(part.required)) > part.most:
            return None
        names.update(dict.fromkeys((name for name in counted if name not in names), ANYTHING))
        told = dict.fromkeys(names)
        if closed is None:
            part.banned = frozenset(banned)
        else:
            absent = frozenset(banned)
            told = dict.fromkeys(name for name in self._keys if name not in absent)
            if 1 not in closed:
                names.update(dict.fromkeys(banned, NOTHING))
                told.update(dict.fromkeys(banned))
        if told or closed is not None:
            ordered = {name: names.get(name, ANYTHING) for name in self._in_order(told)}
            groups.insert(0, Group(ordered, (), closed))
        present = [(var, bits) for var, bits in cube.items() if bits != ABSENT]
        for held, group in self._listed:
            if any(bits & ~held.get(var, bits) for var, bits in present):
                continue
            if all(not cube.get(var, self._full[var]) & ~bits for var, bits in held.items()):
                groups.append(Group(dict.fromkeys(group.names, ANYTHING), (), None, True))
        part.groups = tuple(groups)
        return part

    def _in_order(self, told: dict[str, None]) -> dict[str, None]:
        """Order the keys: first by the schemas whose keys are all in `told`, then by the order of first occurrence."""
        lists = [names for names in self._orders if all(name in told for name in names)]
        return dict.fromkeys((*(name for names in lists for name in names), *sorted(told, key=self._keys.__getitem__)))

    def _demand(self, clause: Negated, cube: Cube) -> Demand:
        ways: dict[str, list[Want]] = {}
        value, names = NOTHING, frozenset[str]()
        for var, bits in clause.cube.items():
            key = self._vars[var]
            if var in self._value_of:
                owner, literal = self._value_of[var]
                key = self._vars[owner]
                if key is not None:
                    ways.setdefault(key.name, []).append(want(literal ^ 1))
            elif key is None:
                (only,) = self._parts[var][1].demands
                value, names = only.value, only.names
            else:
                left = self._full[var] & ~bits & cube.get(var, self._full[var])
                ways.setdefault(key.name, []).append(self._wanted(var, left))
        named = []
        place, expander = self._expander.places[0], self._expander
        for name, each in ways.items():
            one = each[0] if len(each) == 1 else expander.any_of(place, tuple(expander.all_of(place, x) for x in each))
            named.append((name, one))
        return Demand(value, names, named=tuple(named))


def _holders(branches: list[All]) -> dict[int, list[int]]:
    """For each variable, the branches that have a condition on it."""
    made: dict[int, list[int]] = {}
    for i, branch in enumerate(branches):
        for var in branch.cube:
            made.setdefault(var, []).append(i)
    return made


def _root(groups: list[int], i: int) -> int:
    """The representative of an element of a union-find forest."""
    while groups[i] != i:
        groups[i] = groups[groups[i]]
        i = groups[i]
    return i


def _opposite(one: Want) -> Want:
    return want(next(iter(one)) ^ 1) if one else NOTHING
