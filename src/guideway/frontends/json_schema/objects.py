"""Lowers object assertions to nodes: entries by name, and the key classes of all other keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from itertools import count

from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.bundles import ANYTHING, NOTHING, STRING, Group, ObjectPart, Tally, Want, join
from guideway.frontends.json_schema.expand import Expander
from guideway.frontends.json_schema.implications import Implications
from guideway.frontends.json_schema.keys import Test, classes, finite_texts, matches
from guideway.frontends.json_schema.scalars import pattern_language, text
from guideway.frontends.json_schema.style import Style
from guideway.grammar.nodes import Marked, Object, Property, Punctuation, Value
from guideway.grammar.regular import ANY_TEXT, Complement, Literals, Regular, both, either
from guideway.jsontext.pointer import shown

__all__ = ["MAX_READINGS", "Objects", "Ways", "check_readings", "value_of"]

MAX_READINGS = 256
"""The maximum number of ways to read one entry or item, if demands and counters distinguish them."""

Ways = list[tuple[int, Want]]  # the marks of demands or counters, and the condition on a value that is read so
Holds = Callable[[Test], bool]  # whether a key, or a key class, passes a test
Tests = dict[tuple[str, object], Test]
Needs = list[tuple[int, Want, frozenset[str], dict[str, Want], list[tuple[tuple[str, object], bool]]]]
_SERIALS = count()
_SILENT = Group()


def check_readings(found: int, place: str) -> None:
    """Raise an error if a value has too many ways to be read."""
    if found > MAX_READINGS:
        raise LimitExceededError(
            f"at {shown(place)}: one value matches alternatives in more than {MAX_READINGS} ways; use fewer branches that overlap",
            place,
        )


def value_of(ways: Ways, node_of: Callable[[Want], int]) -> Value:
    """The value that can be read in these ways."""
    if not ways:
        return node_of(NOTHING)
    if len(ways) == 1 and not ways[0][0]:
        return node_of(ways[0][1])
    return tuple(Marked(marks, node_of(one)) for marks, one in ways)


class Objects:
    """Lowers the objects of one document. `node_of` returns the number of the node of a want."""

    def __init__(self, expander: Expander, style: Style, node_of: Callable[[Want], int]) -> None:
        self._expander = expander
        self._implications = Implications(expander)
        self._style = style
        self._node_of = node_of
        self._met: dict[tuple[Hashable, str], bool] = {}  # by test and key
        self._properties: dict[tuple[str, int, bool, int], Property] = {}
        self._values: dict[Hashable, Value] = {}  # by the level, the condition and the demands
        self._marks = 0  # identifies the punctuation of the current level
        self._serial = next(_SERIALS)  # identifies the tests of this object in caches, which outlive it

    def node(self, part: ObjectPart, place: str, marks: Punctuation) -> Object | None:
        """The node of an object. None if there is no such object."""
        if len(part.groups) < 2 and not (part.demands or part.keys or part.banned or part.tallies):
            group = part.groups[0] if part.groups else _SILENT
            if not group.patterns:
                return self._plain(part, group, marks)
        self._marks = id(marks)
        tally = self._only_tally(part, place)
        needs = self._needs(part)
        tests = self._tests(part)
        names = self._names(part, tests)
        keys = tests.get(("keys", part.keys)) if part.keys else None
        entries = []
        simple = not needs and not part.tallies
        for name, wanted in self._wanted(part, names, tests).items():
            missing = tally.missing.get(name, 0) if tally else 0
            if 1 in wanted or (keys is not None and not self._passes(name, keys)):
                if name in part.required:
                    return None
                if missing:  # the key is always absent
                    entries.append(self._property(name, self._node_of(NOTHING), False, missing))
                continue
            value: Value
            if simple:
                value = self._node_of(wanted)
            else:
                value = self._entry(part, wanted, name, partial(self._passes, name), tests, needs, place)
            entries.append(self._property(name, value, name in part.required, missing))
        others = self._open(part, names, tests, needs, place)
        ordered = self._style.key_order == "schema"
        limits = part.fewest, part.most
        if tally is None:
            demands = (1 << len(part.demands)) - 1
            return Object(marks, tuple(entries), others, ordered, *limits, demands)
        count = tally.branches
        failing = max(count - tally.most, 0), count - 1
        return Object(marks, tuple(entries), others, ordered, *limits, (1 << count) - 1, *failing)

    def _passes(self, name: str, test: Test) -> bool:
        """Whether a key passes a test."""
        key = test[0], name
        found = self._met.get(key)
        if found is None:
            found = self._met[key] = matches(test, name)
        return found

    def _property(self, name: str, value: Value, required: bool, missing: int) -> Property:
        """The entry of a key. Entries with equal fields are one object."""
        if isinstance(value, tuple):
            return Property(self._style.strings((name,)), value, required, missing)
        key = name, value, required, missing
        found = self._properties.get(key)
        if found is None:
            found = self._properties[key] = Property(self._style.strings((name,)), value, required, missing)
        return found

    @staticmethod
    def _only_tally(part: ObjectPart, place: str) -> Tally | None:
        """The tally of an object. Objects count the marks of one tally, or of demands."""
        if not part.tallies:
            return None
        if part.demands or len(part.tallies) > 1:
            raise LimitExceededError(f"at {place!r}: too many alternatives that depend on absent keys", place)
        return part.tallies[0]

    def _plain(self, part: ObjectPart, group: Group, marks: Punctuation) -> Object | None:
        """The common case: the `properties`, `required` and `additionalProperties` of one schema."""
        required, key_of, node_of = part.required, self._style.strings, self._node_of
        others = ANYTHING if group.extra is None else group.extra
        wants = {**group.names, **{name: others for name in required if name not in group.names}}
        entries = []
        for name, wanted in wants.items():
            if 1 not in wanted:
                entries.append(Property(key_of((name,)), node_of(wanted), name in required))
            elif name in required:
                return None
        rest: tuple[Property, ...] = ()
        if 1 not in others and not (self._style.closed and group.listed and group.extra is None):
            keys = Complement(Literals(tuple(wants))) if wants else ANY_TEXT
            rest = (Property(self._style.quoted(keys), node_of(others), False),)
        ordered = self._style.key_order == "schema"
        return Object(marks, tuple(entries), rest, ordered, part.fewest, part.most)

    def _tests(self, part: ObjectPart) -> Tests:
        """The tests of keys: patterns, and conditions on keys as strings."""
        tests: Tests = {}
        found = [(pattern, at) for group in part.groups for pattern, at, _ in group.patterns]
        for demand in part.demands:
            found += (*demand.inside, *demand.outside)
            if demand.keys:
                tests["keys", demand.keys] = self._key_test(demand.keys)
        for pattern, at in found:
            if ("pattern", pattern) not in tests:
                tests["pattern", pattern] = (pattern, pattern_language(pattern, at))
        if part.keys:
            tests["keys", part.keys] = self._key_test(part.keys)
        return tests

    def _key_test(self, wanted: Want) -> Test:
        parts = [one.string for one in self._expander.alternatives(wanted) if one.types & STRING]
        language = either(text(part, self._style) for part in parts)
        return ((self._serial, wanted), language)

    def _names(self, part: ObjectPart, tests: Tests) -> dict[str, None]:
        """The keys that are handled individually."""
        names: dict[str, None] = {}
        for group in part.groups:
            names.update(dict.fromkeys(group.names))
        names.update(part.required)
        names.update(dict.fromkeys(sorted(part.banned)))
        for tally in part.tallies:
            names.update(dict.fromkeys(tally.ways))
        for demand in part.demands:
            names.update(dict.fromkeys(sorted(demand.names)))
            names.update(dict.fromkeys(name for name, _ in demand.named))
        for key, (_, language) in tests.items():
            listed = finite_texts(language)
            if listed is not None:
                names.update(dict.fromkeys(listed))
                tests[key] = (tests[key][0], Literals(listed))
        return names

    def _by_pattern(self, group: Group, inner: Want | None, holds: Holds, tests: Tests) -> Want:
        """The condition of one group on a key (or a key class) that passes some tests."""
        wanted, hit = inner or ANYTHING, inner is not None
        for pattern, _, one in group.patterns:
            if holds(tests["pattern", pattern]):
                wanted, hit = join(wanted, one), True
        return wanted if hit else group.extra or ANYTHING

    def _wanted(self, part: ObjectPart, names: dict[str, None], tests: Tests) -> dict[str, Want]:
        """The conditions of all groups on the keys that are handled individually."""
        wants = dict.fromkeys(names, ANYTHING)
        for group in part.groups:
            inside, extra = group.names, group.extra
            if group.patterns:
                for name in names:
                    inner = self._by_pattern(group, inside.get(name), partial(self._passes, name), tests)
                    wants[name] = join(wants[name], inner)
                continue
            for name, inner in inside.items():
                if inner:
                    wants[name] = join(wants[name], inner)
            if extra:
                for name in names:
                    if name not in inside:
                        wants[name] = join(wants[name], extra) if wants[name] is not NOTHING else NOTHING
        for name in part.banned:
            wants[name] = NOTHING
        return wants

    def _entry(
        self, part: ObjectPart, wanted: Want, name: str | None, holds: Holds, tests: Tests, needs: Needs, place: str
    ) -> Value:
        """The ways to read the value of a key (or of the keys of a class), by the demands and branches that it meets."""
        applied = []
        for mark, value, names, named, conditions in needs:
            given = named.get(name) if named and name is not None else None
            if given is not None:
                applied.append((mark, given))
            elif name in names or 1 in value:
                continue
            elif not conditions or all(holds(tests[key]) is should for key, should in conditions):
                applied.append((mark, value))
        tally = None
        if name is not None and part.tallies:
            tally = next((one.ways[name] for one in part.tallies if name in one.ways), None)
        if not applied and tally is None:
            return self._node_of(wanted)
        if tally is not None:
            met_ways = ((marks, join(wanted, one)) for marks, one in tally)
            return value_of([way for way in met_ways if 1 not in way[1]], self._node_of)
        key = self._marks, wanted, tuple(applied)
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = value_of(self._ways(wanted, applied, place), self._node_of)
        return found

    def _ways(self, wanted: Want, applied: list[tuple[int, Want]], place: str) -> Ways:
        """The ways to read a value, by the demands that apply to its key.

        A way with fewer marks is left out if all its values also have the marks of another way.
        """
        ways: Ways = [(0, wanted)]
        for number, (mark, value) in enumerate(applied):
            made: dict[int, Want] = {}  # by all marks that the values of a way have
            for marks, one in ways:
                met = join(one, value)
                for found, each in ((marks | mark, met), (marks, one)):
                    if 1 in each or (found == marks and met == one) or (found != marks and self._never(one, value)):
                        continue
                    whole = found | self._marks_of(each, found, applied[: number + 1])
                    known = made.get(whole)
                    if known is None or len(each) < len(known):
                        made[whole] = each
            ways = list(made.items())
            check_readings(len(ways), place)
        return ways

    def _marks_of(self, wanted: Want, marks: int, applied: list[tuple[int, Want]]) -> int:
        """The marks of more demands that all values of a want meet."""
        found = 0
        for mark, value in applied:
            if not mark & marks and len(value) == 1:
                (literal,) = value
                if literal & 1 and literal > 1 and self._implications.excludes(wanted, literal ^ 1):
                    found |= mark
        return found

    def _never(self, wanted: Want, value: Want) -> bool:
        """Whether no value of a want meets the value of a demand, a negated schema."""
        if len(value) != 1:
            return False
        (literal,) = value
        return bool(literal & 1) and self._implications.implies(wanted, literal ^ 1)

    @staticmethod
    def _needs(part: ObjectPart) -> Needs:
        """The demands of an object: mark, value, excluded names, named values, and the conditions on keys."""
        made: Needs = []
        for bit, demand in enumerate(part.demands):
            conditions: list[tuple[tuple[str, object], bool]] = [(("pattern", one), True) for one, _ in demand.inside]
            conditions += [(("pattern", one), False) for one, _ in demand.outside]
            if demand.keys:
                conditions.append((("keys", demand.keys), True))
            made.append((1 << bit, demand.value, demand.names, dict(demand.named), conditions))
        return made

    def _open(
        self, part: ObjectPart, names: dict[str, None], tests: Tests, needs: Needs, place: str
    ) -> tuple[Property, ...]:
        """The key classes of all other keys."""
        closed = (
            self._style.closed
            and any(group.listed for group in part.groups)
            and all(group.extra is None for group in part.groups)
        )
        # The keys of a finite list are among the names.
        infinite = [key for key, (_, language) in tests.items() if finite_texts(language) is None]
        if part.keys and ("keys", part.keys) not in infinite:
            return ()
        patterns = {("pattern", pattern) for group in part.groups for pattern, _, _ in group.patterns}
        found: dict[Value, list[Regular]] = {}
        for passed, language in classes([tests[key] for key in infinite], place):
            held = {tests[key][0] for key, holds in zip(infinite, passed, strict=True) if holds}
            if part.keys and tests["keys", part.keys][0] not in held:
                continue
            if closed and not any(tests[key][0] in held for key in patterns):
                continue

            def holds(test: Test, held: set[Hashable] = held) -> bool:
                return test[0] in held

            wanted = ANYTHING
            for group in part.groups:
                inner = self._by_pattern(group, None, holds, tests) if group.patterns else group.extra
                if inner:
                    wanted = join(wanted, inner)
            if 1 in wanted:
                continue
            found.setdefault(self._entry(part, wanted, None, holds, tests, needs, place), []).append(language)
        made = []
        for value, languages in found.items():
            keys = either(languages)
            if names:
                keys = (
                    Complement(Literals(tuple(names)))
                    if keys is ANY_TEXT
                    else both(keys, Complement(Literals(tuple(names))))
                )
            made.append(Property(self._style.quoted(keys), value, False))
        return tuple(made)
