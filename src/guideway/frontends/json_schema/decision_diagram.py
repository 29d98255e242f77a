"""Divides the objects that a conjunction of schemas allows into alternatives, by the values of their keys.

The conjunction becomes a Boolean formula (formulas.py). Its variables are the keys that the schemas name. The values of
a key are partitioned into the classes that the schemas distinguish. One more class means that the key is absent. Other
assertions (about all other keys, or about the number of entries) are variables with two classes. The formula is usually
split by the variable that leaves the smallest formulas, so a discriminator, required or not, is decided early. Classes
that leave the same formula are not separated. A negated cube that requires an entry is not split if it can be written
as a `Demand`.

A disjunction of many cubes of keys (branches) is not expanded if few branches share keys: it becomes a
`CountedDisjunction`. While the object is parsed, each entry marks the branches that it makes fail, and each absent key
marks the branches that require it. The object may end if the number of marks is within limits. So the set of branches
that can still hold is computed during the parse. "Exactly one" of many cubes over the same keys (objects without other
keys) is divided into one alternative for each cube. In such an alternative, the negations of the other cubes depend
only on the keys that the cube allows.

This is Shannon expansion into a multi-valued decision diagram. Each path of the diagram is one alternative (Bryant,
"Graph-based algorithms for Boolean function manipulation", 1986).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guideway.background import checkpoint
from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.assertions import (
    ANYTHING,
    ARRAY,
    FALSE,
    NOTHING,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    Conjunction,
    CountedDisjunction,
    Demand,
    ObjectAssertions,
    PropertyRules,
    StringAssertions,
    assertions_of_constant,
    conjunction_of,
    constant_key,
    join,
)
from guideway.frontends.json_schema.formulas import (
    ABSENT,
    AllOf,
    AnyOf,
    Cube,
    ExactlyOne,
    Formula,
    Formulas,
    Not,
    TooComplex,
    product,
    structural_key,
)
from guideway.frontends.json_schema.parse import KEYWORD_NAMES, Applicator, SchemaAnalysis
from guideway.frontends.json_schema.strings import EmptinessTest, pattern_language
from guideway.grammar.regular import both
from guideway.grammar.work import spend

if TYPE_CHECKING:
    from guideway.frontends.json_schema.dnf import Expander

__all__ = ["MAX_EXPANDED", "MIN_COUNTED", "TooComplex", "divide_objects"]

MAX_EXPANDED = 16
"""The maximum number of constant arrays and objects that are replaced by conditions on their items and entries.

It applies to each schema, and to each alternative of a branch.
"""

MAX_CASES = 1000
"""The maximum number of alternatives in a division by cases."""

MAX_CLASSES = 128
"""The maximum number of value classes of one key in a division by cases."""

MAX_DEMANDS = 6
"""The maximum number of demands of one alternative in a division by cases."""

MAX_FORMULA = 2_000
"""The maximum number of schemas in a division by cases."""

MAX_TRIED = 4
"""The maximum number of literals about the value of one key that are combined into classes.

If there are more, each literal becomes a variable, unless all of them are patterns.
"""

MIN_COUNTED = 8
"""The minimum number of branches of a `CountedDisjunction`."""

MAX_COUNTED = 64
"""The maximum number of branches of a `CountedDisjunction`."""

MAX_SHARED = 6
"""The maximum number of branches of a `CountedDisjunction` that share keys, directly or through other branches."""

_MAX_DEPTH = 40
_CANDIDATES = 6
_STEPS = 3  # the steps that `spend` counts for a step of the formulas
_OTHERS = (NULL, TRUE, FALSE, NUMBER, STRING, ARRAY)


# Known splits of a conjunction: its formulas; for each variable by which they may be split, the class sets of the
# variable that occur in them; and, by variable and its allowed classes, the result of `_by_cells`.
_Prepared = tuple[tuple[Formula, ...], dict[int, set[int]], dict[tuple[int, int], list["_Cell"]]]

# A class set of a variable; the formulas that remain if the variable has one of these classes; and their conjunction,
# if it is the same with every cube, else None.
_Cell = tuple[int, tuple[Formula, ...], AllOf | None]


class _Key:
    """A key: the literals that schemas assert of its value, and the classes of values that these literals distinguish.

    Bit i + 1 of a class set means class i. Bit 0 means that the key is absent.
    """

    __slots__ = ("classes", "conjunctions", "full", "literals", "masks", "name", "signed")

    def __init__(self, name: str) -> None:
        self.name = name
        self.literals: dict[int, None] = {}
        self.classes: list[Conjunction] = []
        self.masks: dict[int, int] = {}  # literal -> class set: the classes in which it holds
        self.full = 0
        # (class set, literal) for all literals and their negations, sorted by the number of classes
        self.signed: list[tuple[int, int]] = []
        self.conjunctions: dict[int, Conjunction] = {}  # by class set, the condition that the value is in it


def divide_objects(expander: Expander, conjunction: Conjunction) -> tuple[list[ObjectAssertions], int, list[int]]:
    """Divide the objects that meet a conjunction into alternatives.

    Args:
        expander: The `Expander` of the document.
        conjunction: The conjunction.

    Returns:
        The alternatives of objects; the bits of the other types all of whose values meet the conjunction; and a list of
        the other types for which this may depend on the value. No value of the remaining types meets it.

    Raises:
        TooComplex: The schemas cannot be written as a formula, or the formula is too large.
        InvalidConstraintError: A keyword has an invalid value, or a reference has no schema as its target.
        LimitExceededError: The expansion of a schema inside the object exceeds a limit.
    """
    diagram = _DecisionDiagram(expander)
    try:
        found = diagram.run(conjunction)
    except TooComplex:
        spend(_STEPS * diagram.work)
        raise
    spend(_STEPS * diagram.work)
    return found


class _DecisionDiagram(Formulas):
    def __init__(self, expander: Expander) -> None:
        super().__init__()
        self._expander = expander
        self._keys: dict[str, int] = {}  # key name -> variable
        self._vars: list[_Key | None] = []  # None: the variable is not a key
        self._atoms: dict[Any, int] = {}
        self._formulas: dict[int, Formula] = {}
        self._same: dict[Any, int] = {}
        self._same_of: dict[int, int] = {}
        self._listed: list[tuple[Cube, PropertyRules]] = []
        self._orders: dict[tuple[str, ...], frozenset[str]] = {}  # the keys that each schema lists, in its order
        self._open: list[PropertyRules] = []  # property rules with a condition on all keys that they do not name
        self._disjoint: dict[tuple[int, int], bool] = {}
        self._emptiness = EmptinessTest()
        self._absent: Cube = {}
        self._divided: dict[tuple[int, ...], _Key] = {}  # by the literals about a key, the first key with these
        # by the identity of a disjunction: the disjunction, and whether it can be a `CountedDisjunction`
        self._countable: dict[int, tuple[Formula, bool]] = {}
        self._split_by: dict[tuple[Any, ...], _Prepared] = {}  # by the `structural_key` of each part of `AllOf.rest`

    def run(self, conjunction: Conjunction) -> tuple[list[ObjectAssertions], int, list[int]]:
        order = self._collect(conjunction)
        whole_types, other_types = 0, []
        for types in _OTHERS:
            found = self._of_type(types, order, conjunction)
            if found is None:
                other_types.append(types)
            elif found:
                whole_types |= types
        self._formulas.clear()
        for place in order:  # inner schemas first
            self._formulas[place] = self._read(self._analysis(place))
        whole = self._all([self._formula(one) for one in sorted(conjunction)])
        return self._split(whole), whole_types, other_types

    def _of_type(self, types: int, order: list[int], conjunction: Conjunction) -> bool | None:
        """Return True if all values of a type meet a conjunction, False if none does.

        None: it may depend on the value.
        """
        formulas = self._formulas
        formulas.clear()
        for place in order:
            analysis = self._analysis(place)
            own = analysis.own
            if own.types & types:
                part = own.number if types == NUMBER else own.string if types == STRING else own.array
                if (types & (NUMBER | STRING | ARRAY) and part is not None) or (types == ARRAY and own.composites):
                    formulas[place] = ExactlyOne((), True)  # not simplified: whether a value meets these is unknown
                    continue
            parts: list[Formula] = [bool(own.types & types), *(self._formula(one) for one in analysis.conjuncts)]
            parts += (
                applicator.kind == "dependent" or self._applicator(applicator) for applicator in analysis.applicators
            )
            formulas[place] = self._all(parts)
        made = self._all([self._formula(one) for one in sorted(conjunction)])
        return made if isinstance(made, bool) else None

    # -- formulas of schemas

    def _analysis(self, literal: int) -> SchemaAnalysis:
        return self._expander.analysis(self._expander.places[literal >> 1])

    def _collect(self, conjunction: Conjunction) -> list[int]:
        """Return the even literals of the schemas that apply to the object itself, and record the keys that they name.

        The literal of a schema comes after those of the schemas that it applies, such as the branches of its `anyOf`.
        """
        order: list[int] = []
        depth = {one & ~1: 0 for one in conjunction if one > 1}
        todo = [(one, False) for one in depth]
        done: set[int] = set()
        while todo:
            checkpoint()
            literal, left = todo.pop()
            if left:
                order.append(literal)
                continue
            if literal in done:
                continue
            done.add(literal)
            analysis = self._analysis(literal)
            if analysis.unevaluated is not None or len(done) > MAX_FORMULA:
                raise TooComplex
            self._note_names(analysis)
            todo.append((literal, True))
            for one in reversed(list(analysis.in_place)):  # the worklist is a stack, so the first literal is read first
                if one > 1 and one & ~1 not in done:
                    depth[one & ~1] = depth[literal] + 1
                    if depth[literal] > _MAX_DEPTH:
                        raise TooComplex
                    todo.append((one & ~1, False))
        return order

    def _note_names(self, analysis: SchemaAnalysis) -> None:
        """Record the keys that a schema names, in its order, and the literals that it asserts of their values."""
        part = analysis.own.object
        if part is not None:
            if part.demands:
                raise TooComplex
            for rules in part.rule_sets:
                self._orders[tuple(rules.names)] = frozenset(rules.names)
                for name, one in rules.names.items():
                    self._note(name, one)
                if not rules.patterns and rules.additional and rules.additional != NOTHING:
                    self._open.append(rules)
            for name in (*part.required, *sorted(part.forbidden)):
                self._note(name)
        for composite in (analysis.own.composites or {}).values():
            if isinstance(composite, dict):
                for name, value in composite.items():
                    self._note(name, conjunction_of(self._listing([value])))
        for applicator in analysis.applicators:
            if applicator.kind == "dependent":
                self._note(applicator.name)
                for name in applicator.required_keys:
                    self._note(name)

    def _note(self, name: str, conjunction: Conjunction = ANYTHING) -> None:
        var = self._keys.get(name)
        if var is None:
            var = self._keys[name] = len(self._vars)
            self._vars.append(_Key(name))
            self._full.append(0)
            self._is_key.append(True)
        key = self._vars[var]
        if key is not None:
            for one in conjunction:
                if one > 1:
                    key.literals[self._canonical(one)] = None

    def _canonical(self, literal: int) -> int:
        """Return one even literal for all schemas that have the same keywords, resource and dynamic scope."""
        base = literal & ~1
        found = self._same_of.get(base)
        if found is None:
            place = self._expander.places[base >> 1]
            schema, analysis = place.schema, self._analysis(base)
            shape: Any
            if analysis.plain:
                shape = id(analysis)
            elif isinstance(schema, dict) and schema:
                asserted = {name: one for name, one in schema.items() if name in KEYWORD_NAMES}
                shape = (constant_key(asserted), id(place.resource), place.scope)
            else:
                shape = base
            found = self._same_of[base] = self._same.setdefault(shape, base)
        return found

    def _formula(self, literal: int) -> Formula:
        if literal < 2:
            return not literal
        made = self._formulas[literal & ~1]
        return self._negated(made) if literal & 1 else made

    def _read(self, analysis: SchemaAnalysis) -> Formula:
        own = analysis.own
        if not own.types & OBJECT:
            return False
        parts: list[Formula] = []
        if own.composites is not None:
            composites = [composite for composite in own.composites.values() if isinstance(composite, dict)]
            if len(composites) > MAX_EXPANDED:
                raise TooComplex
            parts.append(self._any([self._composite(composite) for composite in composites]))
        if own.object is not None:
            parts.append(self._object(own.object))
        parts += (self._formula(one) for one in analysis.conjuncts)
        parts += (self._applicator(applicator) for applicator in analysis.applicators)
        return self._all(parts)

    def _applicator(self, applicator: Applicator) -> Formula:
        literals = [self._formula(one) for one in applicator.literals]
        if applicator.kind == "anyOf":
            return self._any(literals)
        if applicator.kind == "oneOf":
            return self._one(literals, True)
        if applicator.kind == "if":
            condition, then, other = literals
            return self._all([self._any([self._negated(condition), then]), self._any([condition, other])])
        has = AllOf(
            {self._var(name): self._present(name) for name in applicator.required_keys if name != applicator.name}
        )
        absent = AllOf({self._var(applicator.name): ABSENT})
        return self._any([absent, self._all([has, *literals])])

    def _composite(self, composite: dict[str, Any]) -> Formula:
        part = assertions_of_constant(composite, lambda value: self._listing([value])).object
        return True if part is None else self._object(part)

    def _object(self, part: ObjectAssertions) -> Formula:
        """Return the formula of the object keywords of one schema."""
        cubes: list[Formula] = []
        for rules in part.rule_sets:
            made = self._property_rules(rules)
            cubes.append(made)
            if rules.has_properties and isinstance(made, AllOf):
                self._listed.append((made.cube, rules))
        cube: Cube = {}
        for name in part.required:
            cube[self._var(name)] = self._present(name)
        for name in part.forbidden:
            cube[self._var(name)] = ABSENT
        if part.minimum:
            cube[self._count(part.minimum)] = 2
        if part.maximum is not None:
            cube[self._count(part.maximum + 1)] = 1
        if part.keys:
            fails = ObjectAssertions(demands=(Demand(ANYTHING, keys=_negated_condition(part.keys)),))
            cube[self._atom(("keys", part.keys), ObjectAssertions(keys=part.keys), fails)] = 2
        return self._all([AllOf(cube), *cubes])

    def _count(self, least: int) -> int:
        return self._atom(("count", least), ObjectAssertions(minimum=least), ObjectAssertions(maximum=least - 1))

    def _property_rules(self, rules: PropertyRules) -> Formula:
        additional = rules.additional
        closed = additional == NOTHING and not rules.patterns
        cube: Cube = self._all_absent() if closed else {}
        for name, one in rules.names.items():
            if closed:
                cube.pop(self._var(name), None)
            self._bound(cube, name, one)
        for pattern, at, one in rules.patterns:
            if one:
                holds = ObjectAssertions((PropertyRules({}, ((pattern, at, one),)),))
                fails = ObjectAssertions(demands=(Demand(_negated_condition(one), inside=((pattern, at),)),))
                cube[self._atom(("pattern", pattern, self._canonical_conjunction(one)), holds, fails)] = 2
        if additional and rules.patterns:
            names = dict.fromkeys(rules.names, ANYTHING)
            passed = tuple((pattern, at, ANYTHING) for pattern, at, _ in rules.patterns)
            outside = tuple((pattern, at) for pattern, at, _ in rules.patterns)
            holds = ObjectAssertions((PropertyRules(names, passed, additional),))
            fails = ObjectAssertions(demands=(Demand(_negated_condition(additional), frozenset(names), (), outside),))
            key = (
                "rest",
                frozenset(names),
                frozenset(one[0] for one in outside),
                self._canonical_conjunction(additional),
            )
            cube[self._atom(key, holds, fails)] = 2
        elif additional:
            for name in self._keys if not closed else ():
                if name not in rules.names:
                    self._bound(cube, name, additional)
            fails = ObjectAssertions(demands=(Demand(_negated_condition(additional), frozenset(self._keys)),))
            cube[
                self._atom(
                    ("others", self._canonical_conjunction(additional)),
                    ObjectAssertions((PropertyRules({}, (), additional),)),
                    fails,
                )
            ] = 2
        if any(not bits for bits in cube.values()):
            return False
        return AllOf(cube) if cube else True

    def _all_absent(self) -> Cube:
        """Return a new cube in which all keys are absent."""
        if not self._absent:
            self._absent = {self._var(name): ABSENT for name in self._keys}
        return dict(self._absent)

    def _canonical_conjunction(self, conjunction: Conjunction) -> Conjunction:
        return frozenset(self._canonical(one) | (one & 1) if one > 1 else one for one in conjunction)

    def _bound(self, cube: Cube, name: str, conjunction: Conjunction) -> None:
        """Add a condition to a cube: the key is absent, or its value meets the conjunction."""
        if not conjunction:
            return
        var = self._var(name)
        bits = cube.get(var, self._full[var])
        for one in conjunction:
            if one == 1:
                bits &= ABSENT
            elif one:
                self._limit_value(cube, var, self._canonical(one), not one & 1)
        bits &= cube.get(var, bits)
        if bits != self._full[var]:
            cube[var] = bits

    def _limit_value(self, cube: Cube, var: int, literal: int, holds: bool) -> None:
        """Add a condition to a cube: the key is absent, or its value meets the literal. Without `holds`: violates it.

        Raises `TooComplex` without `holds` if the literal is not one by which the classes of the key are formed.
        """
        key = self._vars[var]
        mask = key.masks.get(literal) if key is not None else None
        full = self._full[var]
        if mask is not None:
            cube[var] = cube.get(var, full) & ((mask if holds else full & ~mask) | ABSENT)
            return
        if not holds:
            raise TooComplex
        known = self._atoms.get((var, literal))
        if known is None:
            known = self._atom((var, literal), ObjectAssertions(), ObjectAssertions())
            self._value_of[known] = (var, literal)
            self._values_at.setdefault(var, []).append(known)
        cube[known] = 2

    def _atom(self, key: Any, holds: ObjectAssertions, fails: ObjectAssertions) -> int:
        """Return the number of the variable of an assertion. Its classes are "fails" (bit 0) and "holds" (bit 1).

        Args:
            key: Identifies the assertion: equal keys have the same variable.
            holds: Allows the objects for which the assertion holds.
            fails: Allows the objects for which it fails.
        """
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
        """Partition the values of a key into classes, by the literals about the key.

        If several literals list scalars (`_finite`), `_counted` makes classes of these scalars. Each other literal
        divides each class into the values that meet it and those that do not; classes that are known to be empty are
        left out. If there are too many other literals (`MAX_TRIED`), they divide nothing, unless all of them assert
        only patterns.
        """
        for rules in self._open:
            if key.name not in rules.names:
                for one in rules.additional or ():
                    key.literals[self._canonical(one)] = None
        literals = list(key.literals)
        same = self._divided.setdefault(tuple(literals), key)
        if same is not key:
            key.classes, key.full, key.masks, key.signed = same.classes, same.full, same.masks, same.signed
            key.conjunctions = same.conjunctions
            return
        classes: list[tuple[Conjunction, frozenset[int]]] = [(ANYTHING, frozenset())]
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
        key.classes = [conjunction for conjunction, _ in classes]
        key.full = (2 << len(classes)) - 1
        for one in literals:
            key.masks[one] = sum(2 << i for i, (_, holders) in enumerate(classes) if one in holders)

    def _finite(self, literal: int) -> list[tuple[int, Any, bool]] | None:
        """Return the scalars that a schema allows, if they are null, booleans or listed. None for other schemas.

        A scalar is a tuple: type bit, value, and whether its text must be an integer of draft 4 (without a fraction and
        an exponent).
        """
        analysis = self._analysis(literal)
        own = analysis.own
        if (
            analysis.conjuncts
            or analysis.applicators
            or analysis.unevaluated is not None
            or own.types & (ARRAY | OBJECT)
            or not own.types
        ):
            return None
        values: list[tuple[int, Any, bool]] = [
            (bit, word, False) for bit, word in ((NULL, None), (TRUE, True), (FALSE, False)) if own.types & bit
        ]
        if own.types & NUMBER:
            if own.number is None or own.number.enum is None:
                return None
            values += ((NUMBER, one, own.number.digits_only is True) for one in own.number.enum)
        if own.types & STRING:
            if own.string is None or own.string.enum is None or own.string.tests:
                return None
            values += ((STRING, one, False) for one in own.string.enum)
        return values

    def _counted(self, finite: dict[int, list[tuple[int, Any, bool]]]) -> list[tuple[Conjunction, frozenset[int]]]:
        """Return the classes of listed scalars, and the class of all other values.

        `finite` has the scalars that each literal lists. Each class is returned as its condition and the literals that
        its values meet. In draft 4, only texts without a fraction and an exponent are integers. If a literal requires
        this of a number, the texts of the number that are integers and its other texts are in different classes.
        """
        integers = {value for values in finite.values() for _, value, is_integer in values if is_integer}
        holders: dict[tuple[int, Any, bool | None], set[int]] = {}
        for one, values in finite.items():
            for bit, value, is_integer in values:
                separated = bit == NUMBER and value in integers
                for kind in (None,) if not separated else (True,) if is_integer else (True, False):
                    holders.setdefault((bit, value, kind), set()).add(one)
        classes: dict[tuple[frozenset[int], bool | None], list[Any]] = {}
        for (_, value, kind), found in holders.items():
            classes.setdefault((frozenset(found), kind), []).append(value)
        if len(classes) > MAX_CLASSES:
            raise TooComplex
        place = next((one for one, values in finite.items() if any(is_integer for *_, is_integer in values)), 0)
        made = [(self._in_class(values, kind, place), found) for (found, kind), values in classes.items()]
        listed = [value for _, value, kind in holders if not kind]
        only_integers = [value for bit, value, kind in holders if kind and (bit, value, False) not in holders]
        others = ANYTHING
        for kind, values_ in ((None, listed), (True, only_integers)):
            for one in self._in_class(values_, kind, place) if values_ else ():
                others = join(others, conjunction_of(one ^ 1))
        return [*made, (others, frozenset())]

    def _in_class(self, values: list[Any], kind: bool | None, literal: int) -> Conjunction:
        """Return the condition that a value is one of `values`.

        `kind`: True: its text is an integer of draft 4 (without a fraction and an exponent). False: its text is none.
        None: both are allowed. `literal` is the literal of a schema of draft 4, unless `kind` is None.
        """
        if kind is None:
            return conjunction_of(self._listing(values))
        expander, place = self._expander, self._expander.places[literal >> 1]
        if kind:
            return conjunction_of(expander.value_literal(place, {"type": "integer", "enum": values}))
        whole = expander.value_literal(place, {"type": "integer"})
        return join(conjunction_of(self._listing(values)), conjunction_of(whole ^ 1))

    def _listing(self, values: list[Any]) -> int:
        expander = self._expander
        return expander.value_literal(expander.places[0], {"enum": values})

    def _tried(
        self, classes: list[tuple[Conjunction, frozenset[int]]], literal: int
    ) -> list[tuple[Conjunction, frozenset[int]]]:
        made = []
        for conjunction, holders in classes:
            for one, found in ((literal, holders | {literal}), (literal ^ 1, holders)):
                met = join(conjunction, conjunction_of(one))
                if 1 not in met and not self._expander.is_unsatisfiable(met) and not self._has_disjoint_patterns(met):
                    made.append((met, found))
        if len(made) > MAX_CLASSES:
            raise TooComplex
        return made

    def _patterns(self, literal: int) -> bool:
        """Return whether a schema has no assertions but `type: string` and patterns. `literal` must be even."""
        analysis = self._analysis(literal)
        own = analysis.own
        if (
            analysis.conjuncts
            or analysis.applicators
            or analysis.unevaluated is not None
            or own.types != STRING
            or own.string is None
        ):
            return False
        part = own.string
        plain = part.enum is None and not part.minimum and part.maximum is None
        return plain and bool(part.tests) and all(kind == "pattern" for _, kind, _, _ in part.tests)

    def _has_disjoint_patterns(self, conjunction: Conjunction) -> bool:
        """Return whether two schemas of a conjunction that assert only patterns have no string in common.

        A pair that is too complex to decide counts as not disjoint.
        """
        patterns = [one for one in sorted(conjunction) if not one & 1 and self._patterns(one)]
        return any(self._are_disjoint(one, other) for i, one in enumerate(patterns) for other in patterns[:i])

    def _are_disjoint(self, one: int, other: int) -> bool:
        known = self._disjoint.get((one, other))
        if known is None:
            tests = [test for part in (one, other) for test in self._string(part).tests]
            try:
                known = self._emptiness(both(*(pattern_language(text, at) for _, _, text, at in tests)))
            except LimitExceededError:
                known = False
            self._disjoint[one, other] = known
        return known

    def _string(self, literal: int) -> StringAssertions:
        return self._analysis(literal).own.string or StringAssertions()

    def _conjunction(self, var: int, bits: int) -> Conjunction:
        """Return the condition that the value of a key is in one of the classes `bits`. "Absent" is ignored."""
        key = self._vars[var]
        if key is None:
            raise TooComplex
        bits &= ~ABSENT
        found = key.conjunctions.get(bits)
        if found is None:
            found = key.conjunctions[bits] = self._make_conjunction(key, bits)
        return found

    def _make_conjunction(self, key: _Key, bits: int) -> Conjunction:
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
                made = join(made, conjunction_of(one))
                left &= mask
                if left == bits:
                    return made
        each = [key.classes[i] for i in range(len(key.classes)) if bits >> (i + 1) & 1]
        if len(each) == 1:
            return each[0]
        place = self._expander.places[0]
        return self._expander.any_of(place, tuple(self._expander.all_of(place, one) for one in each))

    # -- the expansion

    def _split(self, whole: Formula) -> list[ObjectAssertions]:
        found: list[ObjectAssertions] = []
        todo: list[Formula] = [whole]
        count = 0
        while todo:
            checkpoint()
            one = todo.pop()
            if one is False:
                continue
            if one is True:
                one = AllOf({})
            if not isinstance(one, AllOf):
                one = AllOf({}, (one,))
            counted_disjunction = None if self._is_simple(one.rest) else self._counted_disjunction(one)
            if counted_disjunction is not None:
                made = self._emitted(*counted_disjunction)
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
                raise TooComplex
        return found

    def _is_simple(self, rest: tuple[Formula, ...]) -> bool:
        """Return whether each formula can be written as a `Demand`, and there are at most `MAX_DEMANDS`."""
        return len(rest) <= MAX_DEMANDS and all(isinstance(one, Not) and self._is_demand(one) for one in rest)

    def _counted_disjunction(self, one: AllOf) -> tuple[AllOf, CountedDisjunction] | None:
        """Write the only disjunction of a formula as a `CountedDisjunction`.

        Returns:
            The formula without the disjunction, and the `CountedDisjunction`. None if `_is_countable` returns False.
        """
        if not self._is_countable(one):
            return None
        (part,) = one.rest
        branches: list[AllOf] = list(part.parts)  # type: ignore[union-attr,arg-type]  # as `_is_countable` says
        cube = dict(one.cube)
        made = CountedDisjunction(len(branches), 1 if isinstance(part, ExactlyOne) else len(branches), {}, {})
        for var, owners in _holders(branches).items():
            if len(owners) == len(branches):  # more than `MAX_SHARED`, so all have the same condition
                cube[var] = cube.get(var, self._full[var]) & branches[0].cube[var]
            else:
                self._add_readings(made, cube, branches, var, owners)
        return AllOf(cube), made

    def _is_countable(self, one: AllOf | ExactlyOne | AnyOf) -> bool:
        """Return whether a formula is one disjunction that can be a `CountedDisjunction`, alone or with a cube."""
        rest: tuple[Formula, ...] = one.rest if isinstance(one, AllOf) else (one,)
        part = rest[0] if len(rest) == 1 else None
        if not isinstance(part, (AnyOf, ExactlyOne)) or not MIN_COUNTED <= len(part.parts) <= MAX_COUNTED:
            return False
        known = self._countable.get(id(part))
        if known is None:
            known = self._countable[id(part)] = part, self._is_divisible(part)
        return known[1]

    def _is_divisible(self, part: ExactlyOne | AnyOf) -> bool:
        """Return whether all parts are cubes of keys, and at most `MAX_SHARED` of them share keys.

        A key on which all parts have the same condition does not count. False for the negation of an `ExactlyOne`.
        """
        branches = [each for each in part.parts if isinstance(each, AllOf) and not each.rest]
        if (isinstance(part, ExactlyOne) and not part.holds) or len(branches) < len(part.parts):
            return False
        components = list(range(len(branches)))
        for var, owners in _holders(branches).items():
            if self._vars[var] is None:
                return False
            if len(owners) == len(branches) and all(one.cube[var] == branches[0].cube[var] for one in branches):
                continue
            if len(owners) > MAX_SHARED:
                return False
            first = _root(components, owners[0])
            for i in owners[1:]:
                components[_root(components, i)] = first
        sizes: dict[int, int] = {}
        for i in range(len(branches)):
            root = _root(components, i)
            sizes[root] = sizes.get(root, 0) + 1
        return max(sizes.values()) <= MAX_SHARED

    def _add_readings(
        self, counted_disjunction: CountedDisjunction, cube: Cube, branches: list[AllOf], var: int, owners: list[int]
    ) -> None:
        """Add the readings of a key to a counted disjunction.

        For each set of branches that fail together, this is the condition on the value that makes them fail.

        Args:
            counted_disjunction: It is modified.
            cube: The conditions that hold with every branch.
            branches: The branches.
            var: The variable of the key.
            owners: The indices of the branches that have a condition on the key. Other branches have none.
        """
        key: _Key = self._vars[var]  # type: ignore[assignment]  # `_is_divisible` returns False for other variables
        allowed = cube.get(var, self._full[var])
        cells: dict[int, int] = {}  # by the marks of the branches that fail, the classes that make them fail
        for bit in (1 << n for n in range(allowed.bit_length())):
            if allowed & bit:
                marks = sum(1 << i for i in owners if not branches[i].cube[var] & bit)
                cells[marks] = cells.get(marks, 0) | bit
        touched = 0
        for marks, bits in cells.items():
            touched |= marks
            if bits & ABSENT and marks:
                counted_disjunction.missing[key.name] = marks
            if bits & ~ABSENT:
                counted_disjunction.readings.setdefault(key.name, []).append((marks, self._conjunction(var, bits)))
        if not touched:
            counted_disjunction.readings.pop(key.name, None)

    def _cases(self, one: AllOf) -> list[Formula]:
        """Split a formula into a disjunction of simpler ones: by cubes, by a variable, or by the ways in which a part
        can hold.
        """
        best: list[Formula] | None = self._by_cubes(one)
        if best is not None and sum(map(self._weight, best)) <= 2 * len(best):
            return best
        best = None
        least = float("inf")
        rest, masks, cells = self._prepared(one.rest)
        for var, groups in masks.items():
            allowed = one.cube.get(var, self._full[var])
            split = cells.get((var, allowed))
            if split is None:
                split = cells[var, allowed] = self._by_cells(rest, var, allowed, groups)
            found = self._by_variable(one, var, split, least)
            if found is not None:
                best, least = found
        # the product is an estimate of the number of alternatives after a split by branches
        if best is not None and least <= product(map(self._weight, one.rest)):
            return best
        branches = self._by_branches(one)
        return branches if best is None or sum(map(self._weight, branches)) <= least else best

    def _parts_weight(self, one: Formula) -> float:
        """Return an estimate of the number of alternatives of a formula: 1 if it can be a `CountedDisjunction`."""
        return 1.0 if isinstance(one, (AllOf, ExactlyOne, AnyOf)) and self._is_countable(one) else self._weight(one)

    def _prepared(self, rest: tuple[Formula, ...]) -> _Prepared:
        """Return the known splits of the conjunction of `rest`. They are cached: `rest` occurs with several cubes."""
        shape = tuple(map(structural_key, rest))
        known = self._split_by.get(shape)
        if known is None:
            counts: dict[int, int] = {}
            masks: dict[int, set[int]] = {}
            for part in rest:
                self._count_vars(part, counts, masks)
            order = sorted(counts, key=lambda var: -counts[var] * len(masks[var]))[:_CANDIDATES]
            known = self._split_by[shape] = rest, {var: masks[var] for var in order}, {}
        return known

    def _by_variable(self, one: AllOf, var: int, split: list[_Cell], most: float) -> tuple[list[Formula], float] | None:
        """Split a formula by the classes of a variable.

        Args:
            one: The formula.
            var: The variable.
            split: The result of `_by_cells`.
            most: The limit of the sum of the weights.

        Returns:
            One formula for each class set that allows an object, and the sum of their weights. None if that sum is at
            least `most`.
        """
        found: list[tuple[int, Formula, AllOf | None]] = []
        weight = 0.0
        for cell, rest, shared in split:
            part: Formula
            if shared is None:
                part = self._restricted(one, var, cell, rest)
                if part is False:
                    continue
                weight += self._parts_weight(part)
            else:
                part = shared
                if shared.weight >= 0:  # cached; a step is counted anyway, so that limits do not depend on the cache
                    self._spend(1)
                weight += self._parts_weight(shared)
            if weight >= most:
                return None
            found.append((cell, part, shared))
        made: list[Formula] = []
        for cell, part, shared in found:
            if shared is not None:
                part = AllOf({**one.cube, var: cell}, shared.rest)
                part.weight = shared.weight
            made.append(part)
        return made, weight

    def _by_cells(self, rest: tuple[Formula, ...], var: int, allowed: int, masks: set[int]) -> list[_Cell]:
        """Return the class sets of a variable that leave different formulas, each with these formulas.

        Args:
            rest: The formulas to split.
            var: The variable.
            allowed: The classes that are allowed for the variable.
            masks: The class sets of the variable that occur in the formulas.
        """
        cells = [allowed]
        for mask in masks:  # do not separate classes that no part of the formula distinguishes
            cells = [cell for whole in cells for cell in (whole & mask, whole & ~mask) if cell]
        same: dict[Any, int] = {}
        left: dict[Any, list[Formula]] = {}
        for cell in cells:
            given = {var: cell}
            parts: list[Formula] = []
            shape: list[Any] = []
            for part in rest:
                made = self._assumed(part, given)
                if made is False:
                    break
                if made is not True:
                    parts.append(made)
                    shape.append(structural_key(made))
            else:
                key = tuple(shape)
                same[key] = same.get(key, 0) | cell
                left[key] = parts
        return [(cell, tuple(left[key]), self._shared(left[key])) for key, cell in same.items()]

    def _shared(self, rest: list[Formula]) -> AllOf | None:
        """Return the conjunction of formulas if it is the same with every cube: it adds no condition to the cube.

        None if a formula may add conditions to the cube.
        """
        if self._values_at or any(isinstance(part, AllOf) for part in rest):
            return None
        return AllOf({}, tuple({structural_key(part): part for part in rest}.values()))

    def _by_cubes(self, one: AllOf) -> list[Formula] | None:
        """Split a formula that is "exactly one" of many cubes over the same variables. None for other formulas.

        Each result is one cube together with the negations of the other cubes. These negations depend only on the
        variables that the one cube does not require to be absent.
        """
        part = one.rest[0]
        if len(one.rest) > 1 or not isinstance(part, ExactlyOne) or not part.holds or len(part.parts) < MIN_COUNTED:
            return None
        cubes = [each.cube for each in part.parts if isinstance(each, AllOf) and not each.rest]
        if len(cubes) < len(part.parts) or self._values_at or any(cube.keys() != cubes[0].keys() for cube in cubes):
            return None
        needed = [[var for var, bits in cube.items() if not bits & ABSENT] for cube in cubes]
        made: list[Formula] = []
        for i, cube in enumerate(cubes):
            whole = self._all([AllOf(one.cube), AllOf(cube)])
            if not isinstance(whole, AllOf):
                continue
            held = whole.cube
            open_vars = [(var, bits) for var, bits in held.items() if bits != ABSENT and var in cube]
            others: dict[frozenset[tuple[int, int]], Formula] = {}
            self._spend(len(cubes) * (1 + len(open_vars) // 8))
            for j, other in enumerate(cubes):
                if j == i or any(held[var] == ABSENT for var in needed[j]):
                    continue
                left = {var: other[var] & bits for var, bits in open_vars if bits & ~other[var]}
                if all(left.values()):  # otherwise the other cube contradicts this one
                    others[frozenset(left.items())] = Not(left) if left else False
            if False not in others.values():
                made.append(AllOf(held, tuple(others.values())))
        return made

    def _by_branches(self, one: AllOf) -> list[Formula]:
        """Split a formula by the ways in which one part of `rest` can hold.

        This part has a low `_weight`, and is no `Not` if possible. A part that can be a `Demand` is split only if all
        parts can be.
        """
        at = min(range(len(one.rest)), key=lambda i: self._weight(one.rest[i]))
        for i, part in enumerate(one.rest):
            demand = isinstance(part, Not) and self._is_demand(part)
            if not demand and (isinstance(one.rest[at], Not) or self._weight(part) < self._weight(one.rest[at])):
                at = i
        part = one.rest[at]
        others = [other for i, other in enumerate(one.rest) if i != at]
        base = AllOf(one.cube)
        options: list[list[Formula]] = []
        if isinstance(part, Not):
            held: Cube = {}
            for var, bits in part.cube.items():
                options.append([AllOf({**held, var: self._full[var] & ~bits})])
                held[var] = bits
        elif isinstance(part, AnyOf):
            options = [[branch] for branch in part.parts]
        elif isinstance(part, ExactlyOne) and part.holds:
            for i, branch in enumerate(part.parts):
                options.append([branch, *(self._negated(other) for j, other in enumerate(part.parts) if j != i)])
        elif isinstance(part, ExactlyOne):
            options.append([self._negated(branch) for branch in part.parts])
            options += ([a, b] for i, a in enumerate(part.parts) for b in part.parts[:i])
        made = [self._all([base, *option, *others]) for option in options]
        return [formula for formula in made if formula is not False]

    # -- alternatives

    def _emitted(self, one: AllOf, counted_disjunction: CountedDisjunction | None = None) -> ObjectAssertions | None:
        """Return the assertions of a cube with demands, or with a counted disjunction.

        None if a contradiction shows that no object meets them.
        """
        # An assertion that may hold or fail is left out. A key that may have every value is kept, because the property
        # rules must name it.
        cube = {var: bits for var, bits in one.cube.items() if self._is_key[var] or bits != self._full[var]}
        part = ObjectAssertions(counted_disjunctions=() if counted_disjunction is None else (counted_disjunction,))
        counted = counted_disjunction.readings if counted_disjunction else {}
        names: dict[str, Conjunction] = {}
        forbidden = []
        rule_sets: list[PropertyRules] = []
        closed: Conjunction | None = None
        for var, bits in cube.items():
            key = self._vars[var]
            if var in self._value_of:
                continue
            if key is None:
                holds, fails = self._parts[var]
                chosen = holds if bits == 2 else fails
                if (
                    bits == 2
                    and len(holds.rule_sets) == 1
                    and not (holds.rule_sets[0].patterns or holds.rule_sets[0].names)
                ):
                    closed = join(closed or ANYTHING, holds.rule_sets[0].additional or ANYTHING)
                else:
                    rule_sets += chosen.rule_sets
                    part.keys = join(part.keys, chosen.keys)
                    part.demands += chosen.demands
                    part.minimum = max(part.minimum, chosen.minimum)
                    if chosen.maximum is not None:
                        part.maximum = chosen.maximum if part.maximum is None else min(part.maximum, chosen.maximum)
                continue
            if bits == ABSENT:
                forbidden.append(key.name)
                continue
            names[key.name] = ANYTHING if key.name in counted else self._conjunction(var, bits)
            if not bits & ABSENT:
                part.required[key.name] = None
        for var, bits in cube.items():
            if var in self._value_of:
                owner, literal = self._value_of[var]
                key = self._vars[owner]
                if key is not None and cube.get(owner) != ABSENT:
                    names[key.name] = join(
                        names.get(key.name, ANYTHING), conjunction_of(literal if bits == 2 else literal ^ 1)
                    )
                    if bits == 1:
                        part.required[key.name] = None
        for name in part.required:
            conjunction = names.get(name, ANYTHING)
            if 1 in conjunction or (len(conjunction) > 1 and self._expander.is_unsatisfiable(conjunction)):
                return None
        part.demands += tuple(self._demand(clause, cube) for clause in one.rest if isinstance(clause, Not))
        if part.maximum is not None and max(part.minimum, len(part.required)) > part.maximum:
            return None
        names.update(dict.fromkeys((name for name in counted if name not in names), ANYTHING))
        mentioned = dict.fromkeys(names)
        if closed is None:
            part.forbidden = frozenset(forbidden)
        else:
            absent = frozenset(forbidden)
            mentioned = dict.fromkeys(name for name in self._keys if name not in absent)
            if 1 not in closed:
                names.update(dict.fromkeys(forbidden, NOTHING))
                mentioned.update(dict.fromkeys(forbidden))
        if mentioned or closed is not None:
            ordered = {name: names.get(name, ANYTHING) for name in self._in_order(mentioned)}
            rule_sets.insert(0, PropertyRules(ordered, (), closed))
        for held, rules in self._listed:
            if self._implies(cube, held):
                rule_sets.append(PropertyRules(dict.fromkeys(rules.names, ANYTHING), (), None, True))
        part.rule_sets = tuple(rule_sets)
        return part

    def _implies(self, cube: Cube, other: Cube) -> bool:
        """Return whether the conditions of `cube` imply those of `other`."""
        full = self._full
        for var, bits in other.items():  # noqa: SIM110  # faster than `all`
            if cube.get(var, full[var]) & ~bits:
                return False
        return True

    def _in_order(self, mentioned: dict[str, None]) -> dict[str, None]:
        """Return the keys in the order in which objects of the generation profile are written.

        The keys of the schemas whose keys are all in `mentioned` come first, in the order of these schemas. The other
        keys follow in the order in which they were recorded.
        """
        lists = [names for names, each in self._orders.items() if each <= mentioned.keys()]
        return dict.fromkeys(
            (*(name for names in lists for name in names), *sorted(mentioned, key=self._keys.__getitem__))
        )

    def _demand(self, clause: Not, cube: Cube) -> Demand:
        readings: dict[str, list[Conjunction]] = {}
        value, names = NOTHING, frozenset[str]()
        for var, bits in clause.cube.items():
            key = self._vars[var]
            if var in self._value_of:
                owner, literal = self._value_of[var]
                key = self._vars[owner]
                if key is not None:
                    readings.setdefault(key.name, []).append(conjunction_of(literal ^ 1))
            elif key is None:
                (only,) = self._parts[var][1].demands
                value, names = only.value, only.names
            else:
                left = self._full[var] & ~bits & cube.get(var, self._full[var])
                readings.setdefault(key.name, []).append(self._conjunction(var, left))
        named = []
        place, expander = self._expander.places[0], self._expander
        for name, each in readings.items():
            one = each[0] if len(each) == 1 else expander.any_of(place, tuple(expander.all_of(place, x) for x in each))
            named.append((name, one))
        return Demand(value, names, named=tuple(named))


def _holders(branches: list[AllOf]) -> dict[int, list[int]]:
    """Return, for each variable, the indices of the branches that have a condition on it."""
    made: dict[int, list[int]] = {}
    for i, branch in enumerate(branches):
        for var in branch.cube:
            made.setdefault(var, []).append(i)
    return made


def _root(components: list[int], i: int) -> int:
    """Return the representative of the set of `i` in a union-find forest."""
    while components[i] != i:
        components[i] = components[components[i]]
        i = components[i]
    return i


def _negated_condition(one: Conjunction) -> Conjunction:
    return conjunction_of(next(iter(one)) ^ 1) if one else NOTHING
