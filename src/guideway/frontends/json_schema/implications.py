"""Implications between wants that follow from a comparison of their keywords.

A value that meets a want is compared with a schema key by key: types, required keys, listed keys and their conditions.
The answer True is exact. The answer False means that the comparison does not show the implication.
"""

from __future__ import annotations

from collections.abc import Hashable

from guideway.frontends.json_schema.bundles import (
    ANYTHING,
    ARRAY,
    FREE,
    NOTHING,
    OBJECT,
    ArrayPart,
    Bundle,
    Group,
    ObjectPart,
    Want,
    box_key,
    join,
    merge,
)
from guideway.frontends.json_schema.places import Places
from guideway.frontends.json_schema.reading import KEYWORD_NAMES

__all__ = ["Implications"]

_MAX_DEPTH = 8


class Implications:
    """The implications between the schemas of one document. Answers are cached."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._known: dict[tuple[Want, int], bool] = {}
        self._excluded: dict[tuple[Want, int], bool] = {}
        self._bundles: dict[Want, Bundle | None] = {}
        self._same: dict[Hashable, int] = {}
        self._same_of: dict[int, int] = {}
        self._depth = 0

    def excludes(self, wanted: Want, literal: int) -> bool:
        """Whether no value that meets the want meets the schema of an even literal."""
        key = wanted, literal
        found = self._excluded.get(key)
        if found is None:
            positive = frozenset(one for one in wanted if not one & 1)
            both = positive | {literal}
            found = self._bundle(both) is None or any(one & 1 and self.implies(both, one ^ 1) for one in wanted)
            self._excluded[key] = found
        return found

    def implies(self, wanted: Want, literal: int) -> bool:
        """Whether each value that meets the want meets the schema of an even literal."""
        if not literal or literal in wanted or 1 in wanted:
            return True
        if literal & 1:
            return False
        key = wanted, literal
        found = self._known.get(key)
        if found is None:
            if self._depth >= _MAX_DEPTH:
                return False
            self._known[key] = False  # a want that leads back to itself is not compared
            self._depth += 1
            try:
                found = self._known[key] = self._compare(wanted, literal)
            finally:
                self._depth -= 1
        return found

    def _compare(self, wanted: Want, literal: int) -> bool:
        same = self._canonical(literal)
        if any(not one & 1 and one and self._canonical(one) == same for one in wanted):
            return True
        term = self._places.term(self._places.places[literal >> 1])
        if term.also or term.forks or term.left is not None:
            return False
        given, asked = self._bundle(frozenset(one for one in wanted if not one & 1)), term.own
        if given is None:
            return True
        if given.types & ~asked.types or asked.boxes is not None or asked.number or asked.string:
            return False
        if asked.array and given.types & ARRAY and not self._arrays(given.array or ArrayPart(), asked.array):
            return False
        if asked.object and given.types & OBJECT:
            return self._objects(given.object or ObjectPart(), asked.object)
        return True

    def _bundle(self, wanted: Want) -> Bundle | None:
        """A bundle that each value of a want of even literals meets. None if there is no such value."""
        if wanted not in self._bundles:
            made: Bundle | None = FREE
            for one in wanted:
                term = self._places.term(self._places.places[one >> 1])
                if made is not None and term.left is None and term.own is not FREE:
                    made = merge(made, term.own)
            self._bundles[wanted] = made
        return self._bundles[wanted]

    def _canonical(self, literal: int) -> int:
        """The first literal whose schema has the same keywords in the same resource."""
        found = self._same_of.get(literal)
        if found is None:
            place = self._places.places[literal >> 1]
            schema = place.schema
            shape: Hashable = literal
            if isinstance(schema, dict) and schema:
                told = {name: one for name, one in schema.items() if name in KEYWORD_NAMES}
                shape = (box_key(told), id(place.resource), place.scope)
            found = self._same_of[literal] = self._same.setdefault(shape, literal)
        return found

    def _all(self, wanted: Want, asked: Want) -> bool:
        return all(self.implies(wanted, one) for one in asked)

    def _arrays(self, given: ArrayPart, asked: ArrayPart) -> bool:
        if asked.prefix or asked.contains or asked.unique or asked.twins or asked.fewest > given.fewest:
            return False
        if asked.most is not None and (given.most is None or given.most > asked.most):
            return False
        return all(self._all(one, asked.rest) for one in (*given.prefix, given.rest))

    def _objects(self, given: ObjectPart, asked: ObjectPart) -> bool:
        if asked.banned or asked.keys or asked.demands or asked.tallies or asked.fewest > given.fewest:
            return False
        if asked.most is not None and (given.most is None or given.most > asked.most):
            return False
        if not asked.required.keys() <= given.required.keys():
            return False
        return all(self._group(given, group) for group in asked.groups)

    def _group(self, given: ObjectPart, asked: Group) -> bool:
        if asked.patterns:
            return False
        names = dict.fromkeys(asked.names)
        for group in given.groups:
            names.update(dict.fromkeys(group.names))
        for name in names:
            wanted = _said(given, name)
            if name not in given.banned and not self._all(wanted, asked.names.get(name, asked.extra or ANYTHING)):
                return False
        return self._all(_said(given, None), asked.extra or ANYTHING)


def _said(part: ObjectPart, name: str | None) -> Want:
    """The conditions on a key, or on all keys that no group names, which do not depend on patterns."""
    wanted = ANYTHING
    for group in part.groups:
        inner = None if name is None else group.names.get(name)
        if inner is None and not group.patterns:
            inner = group.extra
        if inner:
            wanted = join(wanted, inner)
    return NOTHING if 1 in wanted else wanted
