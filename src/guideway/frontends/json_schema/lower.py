"""Lowers conjunctions to grammar nodes, with an explicit worklist instead of recursion.

An object becomes an `Object` node. Each allowed key that assertions name or finite tests list has a property. The key
classes of the other keys have open properties. Key classes with equal values share an open property.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Set
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsupportedError
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
    UNCONSTRAINED,
    ArrayAssertions,
    Conjunction,
    CountedDisjunction,
    Demand,
    NumberAssertions,
    ObjectAssertions,
    PropertyRules,
    StringAssertions,
    TypeAssertions,
    conjunction_of,
    constant_key,
    join,
)
from guideway.frontends.json_schema.dnf import MAX_WIDE, Expander
from guideway.frontends.json_schema.fast_path import MAX_NODES, FastPath, open_entries, reserve
from guideway.frontends.json_schema.implications import Implications
from guideway.frontends.json_schema.numbers import number
from guideway.frontends.json_schema.parse import SchemaAnalysis
from guideway.frontends.json_schema.shared_nodes import MOST_TYPES, SPACE, anything, plain_scalar, punctuation
from guideway.frontends.json_schema.strings import Test, classes, finite_texts, matches, pattern_language, string, text
from guideway.frontends.json_schema.style import MAX_INDENTED, Style
from guideway.grammar.nodes import (
    Alternative,
    Array,
    Grammar,
    Leaf,
    Marked,
    Node,
    Number,
    Object,
    Origin,
    Property,
    Punctuation,
    Sequence,
    Value,
    children,
    pointer_of,
)
from guideway.grammar.regular import ANY_TEXT, NEVER, Complement, Literals, Regular, either
from guideway.jsontext.encoder import write_json
from guideway.jsontext.pointer import pointer, shown

__all__ = ["MAX_NODES", "MAX_READINGS", "Lowering", "ObjectLowering", "Readings", "check_readings", "value_of"]

MAX_READINGS = 256
"""The maximum number of readings of one entry or item."""

MAX_COMPOSITES = 2000
"""The maximum number of constant arrays and objects in one alternative of a node, if each has several spellings.

The matcher has one parser state for each of them.
"""

_WORDS = ((NULL, "null"), (TRUE, "true"), (FALSE, "false"))

Readings = list[tuple[int, Conjunction]]
"""The ways to read a value, each as the marks that it sets, and the condition that the value then meets."""

Applied = tuple[tuple[int, Conjunction], ...]
"""The demands that an entry with a given key can meet: the mark of each, and the condition on the value."""

Holds = Callable[[Test], bool]
"""Returns whether a key, or every key of a class, passes a test."""

Tests = dict[tuple[str, object], Test]
"""Tests of keys, by ("pattern", the pattern) or ("keys", a condition on keys)."""

DemandTests = list[
    tuple[
        int, Conjunction, frozenset[str], dict[str, Conjunction], list[tuple[tuple[str, object], bool]], dict[str, bool]
    ]
]
"""For each demand: mark, value, excluded names, named values, the tests of the key with their required results, and by
key whether it passes these tests (as far as known)."""

_SERIALS = count()
_NO_RULES = PropertyRules()


def check_readings(found: int, place: str) -> None:
    """Raise `LimitExceededError` if the number `found` of readings of one value is more than `MAX_READINGS`.

    `place` is the JSON Pointer that the error names.
    """
    if found > MAX_READINGS:
        raise LimitExceededError(
            f"at {shown(place)}: one value matches alternatives in more than {MAX_READINGS} ways; use fewer branches that overlap",
            place,
        )


def value_of(readings: Readings, node_of: Callable[[Conjunction], int]) -> Value:
    """Return the `Value` (grammar/nodes.py) with these readings; without readings, the node that no value matches.

    `node_of` returns the number of the node of a conjunction.
    """
    if not readings:
        return node_of(NOTHING)
    if len(readings) == 1 and not readings[0][0]:
        return node_of(readings[0][1])
    return tuple(Marked(marks, node_of(one)) for marks, one in readings)


class ObjectLowering:
    """Lowers the objects of one document.

    Args:
        expander: The `Expander` of the document.
        style: How JSON is written.
        node_of: Returns the number of the node of a conjunction.
    """

    def __init__(self, expander: Expander, style: Style, node_of: Callable[[Conjunction], int]) -> None:
        self._expander = expander
        self._implications = Implications(expander)
        self._style = style
        self._node_of = node_of
        self._met: dict[tuple[Hashable, str], bool] = {}  # by the identifier of a test, and the key
        self._met_demands: dict[Demand, dict[str, bool]] = {}  # whether a key passes the tests of a demand
        self._properties: dict[tuple[str, int | tuple[int], bool, int], Property] = {}
        # by (punctuation, demands), and then by the condition on the value
        self._values: dict[tuple[int, Applied], dict[Conjunction, Value]] = {}
        # by (punctuation, demands), and then by key and condition: the properties of optional keys
        self._optional: dict[tuple[int, Applied], dict[tuple[str, Conjunction], Property]] = {}
        # by property rules: the keys that they name (the values have no meaning), and the conditions on these keys
        self._named: dict[tuple[PropertyRules, ...], dict[str, Any]] = {}
        self._known_conditions: dict[tuple[PropertyRules, ...], dict[str, Conjunction]] = {}
        # by punctuation and content of assertions: the assertions, and the node; the assertions are stored so that the
        # identities in the key stay valid
        self._nodes: dict[Hashable, tuple[ObjectAssertions, Object | None]] = {}
        # by the named keys, and by the value, or the values and languages, of the classes of the other keys
        self._open_entries: dict[Hashable, tuple[Property, ...]] = {}
        self._marks = 0  # the identity of the punctuation of the current nesting level
        self._serial = next(_SERIALS)  # distinguishes the tests of this instance in the caches of strings.py

    def node(self, part: ObjectAssertions, place: str, marks: Punctuation) -> Object | None:
        """Return the node of the objects that meet assertions. None if a required key is not allowed.

        Args:
            part: The assertions.
            place: The JSON Pointer that errors name.
            marks: The punctuation of objects at the current nesting level.

        Raises:
            UnsupportedError: A pattern or format for keys is not supported.
            InvalidConstraintError: A pattern, a format or another keyword is invalid.
            LimitExceededError: A limit is exceeded, such as the number of key classes, readings or nodes.
        """
        if len(part.rule_sets) < 2 and not (part.demands or part.keys or part.forbidden or part.counted_disjunctions):
            rules = part.rule_sets[0] if part.rule_sets else _NO_RULES
            if not rules.patterns:
                return self._plain(part, rules, marks)
        key = (
            id(marks),
            part.rule_sets,
            tuple(part.required),
            part.forbidden,
            part.minimum,
            part.maximum,
            part.keys,
            part.demands,
            part.counted_disjunctions,
        )
        if key in self._nodes:
            return self._nodes[key][1]
        made = self._new_node(part, place, marks)
        self._nodes[key] = part, made
        return made

    def _new_node(self, part: ObjectAssertions, place: str, marks: Punctuation) -> Object | None:
        self._marks = id(marks)
        counted_disjunction = self._only_counted_disjunction(part, place)
        demand_tests = self._demand_tests(part)
        tests = self._tests(part)
        names = self._names(part, tests)
        keys = tests.get(("keys", part.keys)) if part.keys else None
        entries = []
        excepted, applied = _applied_to_all(part, names, demand_tests)
        required = part.required
        missed = counted_disjunction.missing if counted_disjunction else {}
        conditions = self._conditions(part, names, tests)
        # these are treated one by one: whether they have a property, and which, depends on more than their condition
        special = conditions if keys is not None else {*required, *excepted, *missed}
        known = self._optional.setdefault((self._marks, applied), {})
        for name, conjunction in conditions.items():
            is_special = name in special
            entry = None if is_special else known.get((name, conjunction))
            if entry is None:
                missing = missed.get(name, 0)
                if 1 in conjunction or (keys is not None and not self._passes(name, keys)):
                    if name in required:
                        return None
                    if missing:  # the key is always absent
                        entries.append(self._property(name, self._node_of(NOTHING), False, missing))
                    continue
                if name in excepted:
                    value = self._entry(
                        part, conjunction, name, partial(self._passes, name), tests, demand_tests, place
                    )
                else:
                    value = self._read_by(conjunction, applied, place)
                entry = self._property(name, value, name in required, missing)
                if not is_special:
                    known[name, conjunction] = entry
            entries.append(entry)
        others = self._open(part, names, tests, demand_tests, place)
        ordered = self._style.key_order == "schema"
        limits = part.minimum, part.maximum
        if counted_disjunction is None:
            demands = (1 << len(part.demands)) - 1
            return Object(marks, tuple(entries), others, ordered, *limits, demands)
        count = counted_disjunction.branches
        failing = max(count - counted_disjunction.maximum, 0), count - 1
        return Object(marks, tuple(entries), others, ordered, *limits, (1 << count) - 1, *failing)

    def _passes(self, name: str, test: Test) -> bool:
        """Return whether a key passes a test. Results are cached."""
        key = test[0], name
        found = self._met.get(key)
        if found is None:
            found = self._met[key] = matches(test, name)
        return found

    def _property(self, name: str, value: Value, required: bool, missing: int) -> Property:
        """Return the property of a key. The same arguments give the same object; tuples are compared by identity."""
        # the cached property keeps a tuple alive, so the identity in the key stays valid
        key = name, (id(value),) if isinstance(value, tuple) else value, required, missing
        found = self._properties.get(key)
        if found is None:
            found = self._properties[key] = Property(self._style.strings((name,)), value, required, missing)
        return found

    @staticmethod
    def _only_counted_disjunction(part: ObjectAssertions, place: str) -> CountedDisjunction | None:
        """Return the counted disjunction of an object; None: it has none.

        Raises `LimitExceededError` if the object has several, or also has demands: the marks of an `Object` node belong
        either to demands or to one counted disjunction.
        """
        if not part.counted_disjunctions:
            return None
        if part.demands or len(part.counted_disjunctions) > 1:
            raise LimitExceededError(
                f"at {shown(place)}: more than one disjunction of an object is counted; use fewer branches", place
            )
        return part.counted_disjunctions[0]

    def _plain(self, part: ObjectAssertions, rules: PropertyRules, marks: Punctuation) -> Object | None:
        """Return the node of an object in the common case. None if a required key is not allowed.

        In the common case, there are property rules of at most one schema (`rules`), without `patternProperties`, and
        neither demands, forbidden keys, conditions on keys nor counted disjunctions.
        """
        required, key_of, node_of = part.required, self._style.strings, self._node_of
        others = ANYTHING if rules.additional is None else rules.additional
        conjunctions = {**rules.names, **{name: others for name in required if name not in rules.names}}
        entries = []
        for name, conjunction in conjunctions.items():
            if 1 not in conjunction:
                entries.append(Property(key_of((name,)), node_of(conjunction), name in required))
            elif name in required:
                return None
        rest: tuple[Property, ...] = ()
        if 1 not in others and not (self._style.closed and rules.has_properties and rules.additional is None):
            keys = Complement(Literals(tuple(conjunctions))) if conjunctions else ANY_TEXT
            rest = (Property(self._style.quoted(keys), node_of(others), False),)
        ordered = self._style.key_order == "schema"
        return Object(marks, tuple(entries), rest, ordered, part.minimum, part.maximum)

    def _tests(self, part: ObjectAssertions) -> Tests:
        """Return the tests of keys that the assertions need: patterns, and conditions on keys (`propertyNames`)."""
        tests: Tests = {}
        found = [(pattern, at) for rules in part.rule_sets for pattern, at, _ in rules.patterns]
        for demand in part.demands:
            found += (*demand.inside, *demand.outside)
            if demand.keys:
                tests["keys", demand.keys] = self._key_test(demand.keys)
        for pattern, at in found:
            if ("pattern", pattern) not in tests:
                try:
                    tests["pattern", pattern] = (pattern, pattern_language(pattern, pointer(at, pattern)))
                except UnsupportedError as problem:  # the keyword is refused
                    raise UnsupportedError(str(problem), at) from None
        if part.keys:
            tests["keys", part.keys] = self._key_test(part.keys)
        return tests

    def _key_test(self, conjunction: Conjunction) -> Test:
        parts = [one.string for one in self._expander.alternatives(conjunction) if one.types & STRING]
        language = either(text(part, self._style) for part in parts)
        return ((self._serial, conjunction), language)

    def _names(self, part: ObjectAssertions, tests: Tests) -> dict[str, Any]:
        """Return the keys that belong to no key class: those that assertions name, and those that finite tests list.

        They include keys that must be absent. A finite test is one whose keys `finite_texts` lists. In `tests`, its
        language is replaced by the `Literals` of these keys. Only the keys of the returned dict have a meaning.
        """
        named = self._named.get(part.rule_sets)
        if named is None:
            named = {}
            for rules in part.rule_sets:
                named.update(rules.names)
            self._named[part.rule_sets] = named
        names: dict[str, Any] = dict(named)
        names.update(part.required)
        if part.forbidden:
            names.update(dict.fromkeys(sorted(part.forbidden)))
        for counted_disjunction in part.counted_disjunctions:
            names.update(counted_disjunction.readings)
        for demand in part.demands:
            if not demand.names <= names.keys():
                names.update(dict.fromkeys(sorted(demand.names)))
            names.update(demand.named)
        for key, (_, language) in tests.items():
            listed = finite_texts(language)
            if listed is not None:
                names.update(dict.fromkeys(listed))
                tests[key] = (tests[key][0], Literals(listed))
        return names

    def _by_pattern(self, rules: PropertyRules, inner: Conjunction | None, holds: Holds, tests: Tests) -> Conjunction:
        """Return the condition of property rules on the value of a key, or of the keys of a class.

        Args:
            rules: The property rules of one schema.
            inner: The condition in `rules.names` for the key; None: the key is not in `rules.names`.
            holds: Returns whether the key passes a test.
            tests: The tests of the object.
        """
        conjunction, hit = inner or ANYTHING, inner is not None
        for pattern, _, one in rules.patterns:
            if holds(tests["pattern", pattern]):
                conjunction, hit = join(conjunction, one), True
        return conjunction if hit else rules.additional or ANYTHING

    def _conditions(self, part: ObjectAssertions, names: dict[str, None], tests: Tests) -> dict[str, Conjunction]:
        """Return, for each key of `names`, the condition of all property rules on its value.

        The condition on a forbidden key is `NOTHING`.
        """
        made = self._known_conditions.get(part.rule_sets)
        if made is None:
            named = self._named[part.rule_sets]
            made = self._known_conditions[part.rule_sets] = self._new_conditions(part.rule_sets, named, tests)
        if len(names) > len(made):
            others = {name: None for name in names if name not in made}
            made = {**made, **self._new_conditions(part.rule_sets, others, tests)}
        return {**made, **dict.fromkeys(part.forbidden, NOTHING)} if part.forbidden else made

    def _new_conditions(
        self, rule_sets: tuple[PropertyRules, ...], names: dict[str, None], tests: Tests
    ) -> dict[str, Conjunction]:
        conjunctions = dict.fromkeys(names, ANYTHING)
        for rules in rule_sets:
            inside, additional = rules.names, rules.additional
            if rules.patterns:
                for name in names:
                    inner = self._by_pattern(rules, inside.get(name), partial(self._passes, name), tests)
                    conjunctions[name] = join(conjunctions[name], inner)
                continue
            if additional:
                for name in names:
                    inner = inside.get(name, additional)
                    if inner:
                        conjunctions[name] = join(conjunctions[name], inner)
                continue
            for name, inner in inside.items():
                if inner and name in names:
                    conjunctions[name] = join(conjunctions[name], inner)
        return conjunctions

    def _entry(
        self,
        part: ObjectAssertions,
        conjunction: Conjunction,
        name: str | None,
        holds: Holds,
        tests: Tests,
        demand_tests: DemandTests,
        place: str,
    ) -> Value:
        """Return the `Value` of a key or of a key class.

        Its readings set the marks of the demands that the entry can meet, or those of the counted disjunction.

        Args:
            part: The assertions of the object.
            conjunction: The condition on the value.
            name: The key; None: a key class.
            holds: Returns whether the key passes a test.
            tests: The tests of the object.
            demand_tests: The demands of the object.
            place: The JSON Pointer that errors name.
        """
        applied = []
        for mark, value, names, named, conditions, known in demand_tests:
            named_value = named.get(name) if named and name is not None else None
            if named_value is not None:
                applied.append((mark, named_value))
            elif name in names or 1 in value:
                continue
            elif not conditions:
                applied.append((mark, value))
            else:
                met = None if name is None else known.get(name)
                if met is None:
                    met = all(holds(tests[key]) is should for key, should in conditions)
                    if name is not None:
                        known[name] = met
                if met:
                    applied.append((mark, value))
        counted_disjunction = None
        if name is not None and part.counted_disjunctions:
            counted_disjunction = next(
                (one.readings[name] for one in part.counted_disjunctions if name in one.readings), None
            )
        if counted_disjunction is not None:
            met_ways = ((marks, join(conjunction, one)) for marks, one in counted_disjunction)
            return value_of([way for way in met_ways if 1 not in way[1]], self._node_of)
        return self._read_by(conjunction, tuple(applied), place)

    def _read_by(self, conjunction: Conjunction, applied: Applied, place: str) -> Value:
        """Return the `Value` for a condition on a value, and for the demands that the key can meet. Cached."""
        known = self._read_by_all(applied)
        found = known.get(conjunction)
        if found is None:
            if applied:
                found = value_of(self._readings(conjunction, applied, place), self._node_of)
            else:
                found = self._node_of(conjunction)
            known[conjunction] = found
        return found

    def _read_by_all(self, applied: Applied) -> dict[Conjunction, Value]:
        """Return the cache of `_read_by` for these demands: `Value` objects by the condition on the value."""
        return self._values.setdefault((self._marks, applied), {})

    def _readings(self, conjunction: Conjunction, applied: Applied, place: str) -> Readings:
        """Return the readings of a value: sets of demands that it can meet, each with the condition for meeting them.

        Readings may overlap. A set occurs in at most one reading. A reading without a demand is left out if all values
        that it allows are known to meet the demand.
        """
        readings: Readings = [(0, conjunction)]
        negated: list[tuple[int, int]] = []  # for demands of the negation of one schema: the mark, and the schema
        for mark, value in applied:
            schema = _negated_schema(value)
            if schema:
                negated.append((mark, schema))
            made: dict[int, Conjunction] = {}  # by the marks of all demands that every value is known to meet
            for marks, one in readings:
                met = join(one, value)
                # left out if it is known that no value that meets `one` meets the demand
                if 1 not in met and not (schema and self._implications.implies(one, schema)):
                    self._add_reading(made, marks | mark, met, negated)
                if met != one:
                    self._add_reading(made, marks, one, negated)
            readings = list(made.items())
            check_readings(len(readings), place)
        return readings

    def _add_reading(
        self, readings: dict[int, Conjunction], marks: int, conjunction: Conjunction, negated: list[tuple[int, int]]
    ) -> None:
        """Add a reading, with the marks of all demands that every value of the conjunction is known to meet.

        Args:
            readings: The conditions by marks. Of two readings with equal marks, the one with fewer literals remains.
            marks: The marks of the reading.
            conjunction: The condition on the value.
            negated: The demands that a value meets if it violates a schema: the mark of each, and the schema.
        """
        whole = marks
        for mark, schema in negated:
            if not mark & marks and self._implications.excludes(conjunction, schema):
                whole |= mark
        known = readings.get(whole)
        if known is None or len(conjunction) < len(known):
            readings[whole] = conjunction

    def _demand_tests(self, part: ObjectAssertions) -> DemandTests:
        """Return the demands of an object as `DemandTests`. The mark of demand i is bit i."""
        made: DemandTests = []
        for bit, demand in enumerate(part.demands):
            conditions: list[tuple[tuple[str, object], bool]] = [(("pattern", one), True) for one, _ in demand.inside]
            conditions += [(("pattern", one), False) for one, _ in demand.outside]
            if demand.keys:
                conditions.append((("keys", demand.keys), True))
            known = self._met_demands.setdefault(demand, {}) if conditions else {}
            made.append((1 << bit, demand.value, demand.names, dict(demand.named), conditions, known))
        return made

    def _open(
        self, part: ObjectAssertions, names: dict[str, None], tests: Tests, demand_tests: DemandTests, place: str
    ) -> tuple[Property, ...]:
        """Return the open properties, for the allowed classes of the keys that are not in `names`."""
        closed = (
            self._style.closed
            and any(rules.has_properties for rules in part.rule_sets)
            and all(rules.additional is None for rules in part.rule_sets)
        )
        if not tests:
            return () if closed else self._open_without_tests(part, names, demand_tests, place)
        # Only infinite tests are needed here: `names` has all keys that finite tests list (see `_names`).
        infinite = [key for key, (_, language) in tests.items() if finite_texts(language) is None]
        if part.keys and ("keys", part.keys) not in infinite:
            return ()
        patterns = {("pattern", pattern) for rules in part.rule_sets for pattern, _, _ in rules.patterns}
        found: list[tuple[Value, Regular]] = []
        for passed, language in classes([tests[key] for key in infinite], place):
            held = {tests[key][0] for key, holds in zip(infinite, passed, strict=True) if holds}
            if part.keys and tests["keys", part.keys][0] not in held:
                continue
            if closed and not any(tests[key][0] in held for key in patterns):
                continue

            def holds(test: Test, held: set[Hashable] = held) -> bool:
                return test[0] in held

            conjunction = ANYTHING
            for rules in part.rule_sets:
                inner = self._by_pattern(rules, None, holds, tests) if rules.patterns else rules.additional
                if inner:
                    conjunction = join(conjunction, inner)
            if 1 in conjunction:
                continue
            found.append((self._entry(part, conjunction, None, holds, tests, demand_tests, place), language))
        if not found:
            return ()
        return self._known_open_entries((tuple(names), tuple(found)), found, names)

    def _open_without_tests(
        self, part: ObjectAssertions, names: dict[str, None], demand_tests: DemandTests, place: str
    ) -> tuple[Property, ...]:
        """Return the open property of an object without tests of keys: all keys outside `names` are one key class."""
        conjunction = ANYTHING
        for rules in part.rule_sets:
            if rules.additional:
                conjunction = join(conjunction, rules.additional)
        if 1 in conjunction:
            return ()
        applied = tuple((mark, value) for mark, value, *_ in demand_tests if 1 not in value)
        value = self._read_by(conjunction, applied, place)
        return self._known_open_entries((tuple(names), value), ((value, ANY_TEXT),), names)

    def _known_open_entries(
        self, key: Hashable, found: Collection[tuple[Value, Regular]], names: dict[str, None]
    ) -> tuple[Property, ...]:
        """Return `open_entries(found, names, …)`. The results are cached by `key`, which identifies the arguments."""
        made = self._open_entries.get(key)
        if made is None:
            made = self._open_entries[key] = open_entries(found, names, self._style.quoted)
        return made


class Lowering:
    """Lowers one document to a grammar.

    Args:
        expander: The `Expander` of the document.
        style: How JSON is written.
        fast_path: The fast path of the document, which lowers simple schemas. This instance then lowers only the other
            schemas, into the same grammar. None: it lowers all schemas.

    Attributes:
        refusals: By the JSON Pointer of each keyword or schema that cannot be enforced, the reason.
    """

    def __init__(self, expander: Expander, style: Style, fast_path: FastPath | None = None) -> None:
        expander.divides_early = style.key_order == "any" and not style.closed
        self._expander = expander
        self._style = style
        self._fast_path = fast_path
        self._grammar = Grammar() if fast_path is None else fast_path.grammar
        self._deepest = MAX_INDENTED if style.whitespace == "indented" else 0
        levels = range(self._deepest + 1)
        self._numbers: list[dict[Conjunction, int]] = [{} for _ in levels]
        # node numbers by literal, for conjunctions with one literal, and for the empty conjunction (literal 0)
        self._singles: list[dict[int, int]] = [{} for _ in levels]
        # node numbers by plain analysis, which all schemas share that assert only the same type
        self._plain: list[dict[SchemaAnalysis, int]] = [{} for _ in levels]
        self._values: list[dict[str, int]] = [{} for _ in levels]
        self._todo: list[tuple[int, Any, Any]] = [] if fast_path is None else fast_path.todo
        self._level = 0  # the nesting level of the current node, for indented output
        self._texts: dict[StringAssertions | None, Regular] = {}
        self._punctuation = punctuation(style)
        self._objects = ObjectLowering(expander, style, self._node)
        self.refusals = expander.refusals

    def run(self) -> Grammar:
        """Build the grammar of the whole document.

        Raises:
            UnsupportedError: Schemas cannot be enforced. The message lists all of them.
            InvalidConstraintError: A keyword has an invalid value. A reference has no schema as its target, or leads
                back to itself.
            LimitExceededError: A limit is exceeded, such as the number of nodes, alternatives or search steps.
        """
        root = self._single_at(self._expander.root(), 0)
        while self._todo:
            checkpoint()
            self.define(*self._todo.pop())
        self.finish()
        if self._style.whitespace == "any":
            space = self._grammar.add(Leaf(SPACE))
            root = self._grammar.add(Sequence((space, root, space)))
        self._grammar.root = root
        return self._grammar

    def define(self, number: int, conjunction: Conjunction | _Constant, level: int) -> None:
        """Define a node of the worklist, whose number is reserved: of a conjunction, or of a constant.

        `level` is the number of arrays and objects that contain the node, as far as it determines the indentation.
        """
        self._level = level
        if isinstance(conjunction, _Constant):
            self._define_value(number, conjunction.value, level)
            return
        place = self._grammar.place(number) or ""
        try:
            self._define(number, conjunction, place)
        except UnsupportedError as problem:
            self._refuse(problem, place)
            self._grammar.define(number, Leaf(NEVER))

    def define_schema(self, number: int, schema: dict[str, Any]) -> None:
        """Define the node with this number, which is reserved, as the node of a schema of the document."""
        self.define(number, conjunction_of(self._literal(schema, self._grammar.places[number])), 0)

    def reference(self, schema: dict[str, Any], place: Origin) -> int | None:
        """Implement `GeneralPath.reference`."""
        literal = self._literal(schema, place)
        if literal == 1:
            return -1
        return None if self._expander.places[literal >> 1].schema is schema else self._single_at(literal, 0)

    def _literal(self, schema: dict[str, Any], place: Origin) -> int:
        expander = self._expander
        return expander.literal(schema, pointer_of(place) or "", expander.documents.main, ())

    def finish(self) -> None:
        """Raise the errors that need the complete grammar. No node can be defined afterwards.

        Raises:
            UnsupportedError: Schemas cannot be enforced. The message lists all of them.
            LimitExceededError: Nodes with more than `MAX_WIDE` object alternatives are nested.
        """
        self._raise_refusals()
        self._check_breadth()
        del self._objects  # breaks a cycle of references, so that this instance is freed without garbage collection

    def _check_breadth(self) -> None:
        """Raise `LimitExceededError` if a node with more than `MAX_WIDE` object alternatives contains such a node.

        A recursive node contains itself.
        """
        nodes = self._grammar.nodes
        wide = {i for i, node in enumerate(nodes) if isinstance(node, Alternative) and len(node.parts) > MAX_WIDE}
        wide = {i for i in wide if sum(isinstance(nodes[part], Object) for part in nodes[i].parts) > MAX_WIDE}  # type: ignore[union-attr]  # alternatives, as above
        for start in wide:
            seen, todo = set[int](), [start]
            while todo:
                node = nodes[todo.pop()]
                new = set(children(node)) - seen if node is not None else set()
                if new & wide:
                    place = self._grammar.place(start) or ""
                    raise LimitExceededError(
                        f"at {shown(place)}: more than {MAX_WIDE} alternatives of an object contain another object with more than "
                        f"{MAX_WIDE} alternatives; use fewer branches in anyOf or oneOf",
                        place,
                    )
                seen |= new
                todo += new

    def _node(self, conjunction: Conjunction) -> int:
        """Return the number of the node of a conjunction, for a value inside the current array or object.

        The number of a new node is reserved. Some simple nodes are defined at once, others are added to the worklist.
        """
        level = self._level + 1 if self._level < self._deepest else self._deepest
        if len(conjunction) < 2:
            return self._single_at(next(iter(conjunction), 0), level)
        found = self._numbers[level].get(conjunction)
        if found is None:
            found = self._numbers[level][conjunction] = reserve(
                self._grammar, self._expander.places[min(conjunction) >> 1].pointer
            )
            self._todo.append((found, conjunction, level))
        return found

    def _single_at(self, literal: int, level: int) -> int:
        numbers, plain = self._singles[level], self._plain[level]
        found = numbers.get(literal)
        if found is not None:
            return found
        fast_path, place = self._fast_path, self._expander.places[literal >> 1]
        if fast_path is not None and not literal & 1 and (not literal or self._expander.is_own(place)):
            if not literal:
                return fast_path.any_number()
            known = fast_path.numbers.get(id(place.schema))
            return fast_path.own_number(place.schema, place.pointer) if known is None else known
        analysis = None if literal & 1 or not literal else self._expander.plain_analysis(place)
        if analysis is not None and (found := plain.get(analysis)) is not None:
            numbers[literal] = found
            return found
        found = numbers[literal] = reserve(self._grammar, place.pointer if literal else None)
        if analysis is not None:
            plain[analysis] = found
        scalar = None if analysis is None else plain_scalar(analysis.own.types, analysis.own.number, self._style)
        if scalar is not None:
            self._grammar.define(found, scalar)
        elif (analysis is not None and analysis.own is UNCONSTRAINED) or not literal:
            self._define_anything(found, level)
        else:
            self._todo.append((found, conjunction_of(literal), level))
        return found

    def _define_anything(self, number: int, level: int) -> None:
        """Define the node of any JSON value at a nesting level."""
        inside = number if level == self._deepest else self._single_at(0, level + 1)
        scalar, array, object_ = anything(self._grammar, self._style, inside, level)
        nodes = [scalar, *self._frames(array, level), *self._frames(object_, level)]
        self._grammar.define(number, Alternative(tuple(map(self._grammar.add, nodes))))

    def _frames(self, frame: Array | Object | None, level: int) -> list[Node]:
        """Return the nodes of an array or object, given as its node. An empty list for None.

        On indented levels, the empty array or object is a separate node, because it is written on one line.
        """
        if frame is None:
            return []
        marks = frame.punctuation
        if level == self._deepest or frame.minimum or self._never_empty(frame):
            return [frame]
        return [Leaf(Literals((marks.open[0] + marks.close[-1],))), replace(frame, minimum=1)]

    @staticmethod
    def _never_empty(frame: Array | Object) -> bool:
        if isinstance(frame, Array):
            return any(least for least, _ in frame.counts)
        return bool(frame.demands) or any(entry.required for entry in frame.properties)

    def _define(self, number: int, conjunction: Conjunction, place: str) -> None:
        """Define the node with the reserved number `number` as the alternation of all alternatives of a conjunction."""
        alternatives = self._expander.alternatives(conjunction)
        if len(alternatives) == 1 and (made := self._single(alternatives[0], place)) is not None:
            self._grammar.define(number, made)
            return
        texts, nodes = self._scalars(alternatives, place)
        level = self._level
        for array in _widest(one.array for one in alternatives if one.types & ARRAY and one.composites is None):
            nodes += self._frames(self._array(array or ArrayAssertions(), place), level)
        for part in _widest(one.object for one in alternatives if one.types & OBJECT and one.composites is None):
            nodes += self._frames(
                self._objects.node(part or ObjectAssertions(), place, self._punctuation[level][1]), level
            )
        parts: list[int] = []
        for assertions in alternatives:
            if assertions.composites:
                parts += self._composites(assertions.composites, texts, place)
        # without duplicates: `ObjectLowering` may return the same node for several alternatives
        nodes = list({id(node): node for node in nodes}.values())
        if texts:
            nodes.insert(0, Leaf(either(texts)))
        if len(nodes) == 1 and not parts:
            self._grammar.define(number, nodes[0])
        elif nodes or parts:
            parts = [self._grammar.add(node, place) for node in nodes] + parts
            self._grammar.define(number, Alternative(tuple(dict.fromkeys(parts))))
        else:
            self._grammar.define(number, Leaf(NEVER))

    def _single(self, assertions: TypeAssertions, place: str) -> Node | None:
        """Return the node of assertions that allow a single type. None if `_define` must lower them in another way."""
        types = assertions.types
        if types == STRING:
            return Leaf(self._string(assertions.string, place))
        if types == OBJECT and assertions.composites is None and self._level == self._deepest:
            marks = self._punctuation[self._level][1]
            return self._objects.node(assertions.object or ObjectAssertions(), place, marks) or Leaf(NEVER)
        if types == NUMBER:
            made = number(assertions.number, self._style)
            return made if isinstance(made, Number) else Leaf(made)
        if types == ARRAY and assertions.composites is None and self._level == self._deepest:
            return self._array(assertions.array or ArrayAssertions(), place) or Leaf(NEVER)
        return None

    # -- null, booleans, numbers, strings

    def _scalars(self, alternatives: list[TypeAssertions], place: str) -> tuple[list[Regular], list[Node]]:
        types = 0
        for assertions in alternatives:
            types |= assertions.types
        words = tuple(word for bit, word in _WORDS if types & bit)
        texts: list[Regular] = [Literals(words)] if words else []
        nodes: list[Node] = []
        for part in _widest(one.number for one in alternatives if one.types & NUMBER):
            made = number(part, self._style)
            if isinstance(made, Number):
                nodes.append(made)
            elif made is not NEVER:
                texts.append(made)
        for one in _widest(one.string for one in alternatives if one.types & STRING):
            texts.append(self._string(one, place))
        return texts, nodes

    def _string(self, part: StringAssertions | None, place: str) -> Regular:
        if part not in self._texts:
            try:
                self._texts[part] = string(part, self._style)
            except UnsupportedError as problem:
                self._refuse(problem, place)
                self._texts[part] = NEVER
        return self._texts[part]

    # -- arrays

    def _array(self, part: ArrayAssertions, place: str) -> Array | None:
        if part.duplicates:
            reason = "a `not` around uniqueItems demands two equal items; leave it out, and check the value"
            raise UnsupportedError(reason, self._at("not", place))
        minimum, maximum = part.minimum, part.maximum
        counted = []
        for start, what, least, limit in part.contains:
            if what:
                counted.append((start, what, least, limit))
            elif limit is not None and (maximum is None or start + limit < maximum):
                maximum = start + limit
            if not what and least:
                minimum = max(minimum, start + least)
        if maximum is not None and minimum > maximum:
            return None
        length = max([len(part.prefix), *(start for start, *_ in counted)])
        length = length if maximum is None else min(length, maximum)
        prefix = tuple(
            self._item(part.prefix[i] if i < len(part.prefix) else part.rest, counted, i, place) for i in range(length)
        )
        rest = None
        if (maximum is None or maximum > length) and 1 not in part.rest:
            rest = self._item(part.rest, counted, length, place)
        counts = tuple((least, limit) for _, _, least, limit in counted)
        marks = self._punctuation[self._level][0]
        unique = part.unique and not self._all_differ(part, maximum)
        if unique and counts:
            reason = "uniqueItems together with contains; leave one of them out, and check the value"
            raise UnsupportedError(reason, self._at("uniqueItems", place))
        if unique and prefix and minimum > 1:
            reason = (
                "uniqueItems with prefixItems and a minimum of two or more items; leave uniqueItems out and check the "
                "value, or give each item another type and forbid more items"
            )
            raise UnsupportedError(reason, self._at("uniqueItems", place))
        return Array(marks, prefix, rest, minimum, maximum, unique, counts)

    def _at(self, keyword: str, place: str) -> str:
        """Return the JSON Pointer of a keyword of the schema at `place`, or `place` if the schema lacks the keyword."""
        here = (one.schema for one in self._expander.places if one.pointer == place)
        return pointer(place, keyword) if any(isinstance(one, dict) and keyword in one for one in here) else place

    def _all_differ(self, part: ArrayAssertions, maximum: int | None) -> bool:
        """Return True if no two items have a type in common, so that no two items can be equal.

        `maximum` is the maximum number of items. False if it is None (no limit) or more than the number of types.
        """
        if maximum is None or maximum > MOST_TYPES:
            return False
        seen = 0
        for i in range(maximum):
            types = 0
            for assertions in self._expander.alternatives(part.prefix[i] if i < len(part.prefix) else part.rest):
                types |= assertions.types
            if types & seen:
                return False
            seen |= types
        return True

    def _item(
        self, conjunction: Conjunction, counted: list[tuple[int, Conjunction, int, int | None]], at: int, place: str
    ) -> Value:
        """Return the `Value` of an item. Each reading of the item has the marks of the counters that it increments.

        If a counter has a maximum, readings that increment it are disjoint from those that do not.

        Args:
            conjunction: The condition on the item.
            counted: The counters, as in `ArrayAssertions.contains`. Counter j has the mark of bit j.
            at: The index of the item. For the items after the prefix, that of the first one.
            place: The JSON Pointer that errors name.
        """
        readings: list[tuple[int, Conjunction]] = [(0, conjunction)]
        for j, (start, what, _, limit) in enumerate(counted):
            if at < start:
                continue
            split: list[tuple[int, Conjunction]] = []
            for marks, one in readings:
                met = join(one, what)
                if met == one:
                    split.append((marks | 1 << j, one))
                    continue
                split.append((marks | 1 << j, met))
                split += [(marks, one)] if limit is None else [(marks, other) for other in self._without(one, what)]
            readings = [way for way in split if 1 not in way[1]]
            check_readings(len(readings), place)
        return value_of(readings, self._node)

    def _without(self, conjunction: Conjunction, what: Conjunction) -> list[Conjunction]:
        """Return disjoint conditions that together allow the values that meet `conjunction` but violate `what`.

        There is one for each literal of `what`.
        """
        found, held = [], conjunction
        for literal in sorted(what):
            found.append(join(held, frozenset((literal ^ 1,))))
            held = join(held, frozenset((literal,)))
        return found

    # -- constant arrays and objects

    def _composites(self, composites: dict[str, object], texts: list[Regular], place: str) -> list[int]:
        """Lower constant arrays and objects.

        If the style allows one text for each constant, adds these texts to `texts` and returns no nodes. Otherwise
        returns the numbers of their nodes.
        """
        if not self._style.fixed:
            if len(composites) > MAX_COMPOSITES:
                raise LimitExceededError(
                    f"at {shown(place)}: enum and const have more than {MAX_COMPOSITES:,} arrays and objects in total, "
                    f"each of which has many spellings; use fewer values, or profile='generation'",
                    place,
                )
            return [self._constant(composite, self._level) for composite in composites.values()]
        style = self._style
        texts.append(
            Literals(
                tuple(
                    dict.fromkeys(write_json(composite, style.comma, style.colon) for composite in composites.values())
                )
            )
        )
        return []

    def _constant(self, value: object, level: int) -> int:
        key, values = constant_key(value), self._values[level]
        if key not in values:
            values[key] = self._grammar.reserve()
            self._todo.append((values[key], _Constant(value), level))
        return values[key]

    def _define_value(self, number_: int, value: object, level: int) -> None:
        """Define the node of a `_Constant`. Its number `number_` is reserved."""
        node: Node
        marks, inside = self._punctuation[level], min(level + 1, self._deepest)
        if isinstance(value, list):
            items = tuple(self._constant(one, inside) for one in value)
            node = self._frames(Array(marks[0], items, None, len(items), len(items)), level)[0]
        elif isinstance(value, dict):
            ordered, key_of = self._style.key_order == "schema", self._style.strings
            entries = (Property(key_of((key,)), self._constant(one, inside), True) for key, one in value.items())
            node = self._frames(Object(marks[1], tuple(entries), (), ordered), level)[0]
        elif isinstance(value, str):
            node = Leaf(self._style.strings((value,)))
        elif value is None or isinstance(value, bool):
            node = Leaf(Literals((write_json(value),)))
        else:
            made = number(NumberAssertions(enum=frozenset((value,))), self._style)  # type: ignore[arg-type]  # a number
            node = made if isinstance(made, Number) else Leaf(made)
        self._grammar.define(number_, node)

    # -- refusals

    def _refuse(self, problem: UnsupportedError, place: str) -> None:
        self.refusals.setdefault(place if problem.place is None else problem.place, str(problem))

    def _raise_refusals(self) -> None:
        """Raise one `UnsupportedError` that lists all refusals, if there are any."""
        if not self.refusals:
            return
        lines = [f"at {shown(place)}: {what}" for place, what in self.refusals.items()]
        first = next(iter(self.refusals))
        if len(lines) == 1:
            raise UnsupportedError(f"not supported {lines[0]}", first)
        raise UnsupportedError(f"not supported in {len(lines)} places:\n  " + "\n  ".join(lines), first)


class _Constant(NamedTuple):
    """A listed array or object, or a value inside one, in the worklist. It is used for styles that are not `fixed`."""

    value: object


_Part = TypeVar("_Part")


def _applied_to_all(
    part: ObjectAssertions, names: dict[str, None], demand_tests: DemandTests
) -> tuple[Set[str], Applied]:
    """Find the keys of `names` that can meet the same demands, so that their readings are computed only once.

    Returns:
        The keys that must be treated one by one, and the demands that each of the other keys can meet. If a demand has
        conditions on keys, all keys must be treated one by one.
    """
    excepted: set[str] = set()
    applied = []
    for mark, value, excluded, named, conditions, _ in demand_tests:
        excepted.update(named)
        if 1 not in value:
            if conditions:
                return names.keys(), ()
            excepted |= excluded
            applied.append((mark, value))
    for counted_disjunction in part.counted_disjunctions:
        excepted.update(counted_disjunction.readings)
    return excepted, tuple(applied)


def _negated_schema(value: Conjunction) -> int:
    """Return the even literal of the schema if a conjunction is the negation of one schema, else 0."""
    if len(value) != 1:
        return 0
    (literal,) = value
    return literal ^ 1 if literal & 1 else 0


def _widest(parts: Iterable[_Part | None]) -> list[_Part | None]:
    """Return the distinct assertions of a disjunction. If one of them is None (no assertion), return [None]."""
    found = dict.fromkeys(parts)
    return [None] if None in found else list(found)
