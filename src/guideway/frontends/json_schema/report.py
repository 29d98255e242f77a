"""Reports about a schema: how each keyword is treated, example instances, and why a schema is unsatisfiable.

The reason is a minimal set of keywords that no value meets together. A deletion filter looks for one. It removes one
keyword at a time, and restores the keyword if the schema then has an instance (Chinneck and Dravnieks, "Locating
minimal infeasible constraint sets", 1991).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from guideway.caching import cached
from guideway.errors import ConstraintError, LimitExceededError, UnsatisfiableError, UnsupportedError
from guideway.frontends.json_schema.dnf import Expander
from guideway.frontends.json_schema.keyword_warnings import similar_keyword
from guideway.frontends.json_schema.keywords import (
    ALL_TYPES,
    BOOLS_ONCE,
    KEYWORDS,
    NOTES,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMAS,
    Dialect,
    check_keyword,
)
from guideway.frontends.json_schema.lower import Lowering
from guideway.frontends.json_schema.references import Documents
from guideway.frontends.json_schema.strings import is_asserted
from guideway.frontends.json_schema.style import Style
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import byte_automaton, with_place
from guideway.grammar.work import BoundedWork, spend
from guideway.jsontext.pointer import MISSING, child, pointer, unescape

__all__ = [
    "EXAMPLE_WORK",
    "MAX_PLACES",
    "MAX_TRIALS",
    "MAX_TRIAL_UNITS",
    "MAX_TRIAL_WORK",
    "Explanation",
    "conflict",
    "draw_examples",
    "explain",
    "keyword_report",
    "value_at",
]


MAX_TRIALS = 60
"""The maximum number of keywords and subschemas that a search for conflicting keywords removes on trial."""

MAX_TRIAL_WORK = 5_000
"""The maximum number of search steps (dnf.py) for all removals of one such search together."""

MAX_TRIAL_UNITS = 50_000_000
"""The maximum work for all removals of one such search together, in the units of `CompileLimits.max_work`."""

MAX_PLACES = 500
"""The maximum number of schemas that a document may have if conflicting keywords are to be searched in it."""

MAX_BYTES = 160
"""The maximum number of bytes of a random example, unless the length of the shortest text plus 40 is greater."""

EXAMPLE_WORK = 100_000_000
"""The maximum work for the examples of a schema, in the units of `CompileLimits.max_work`."""

_END = 256
_WALK_STEPS = 40  # the steps that `spend` counts for one byte of a random text
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789{}[]:,-. " + b'"')


def keyword_report(expander: Expander, style: Style) -> list[tuple[str, str, str]]:
    """Report every keyword of the schemas that the `Expander` has reached.

    Returns:
        One row for each keyword: the JSON Pointer of the schema, the name of the keyword, and its status. The status is
        "enforced", "refused", "no effect" (the keyword applies to none of the schema's types, or the keyword that it
        modifies is missing) or "annotation" (it asserts nothing). After "annotation", a colon and a note may follow.
    """
    found: dict[tuple[str, str], str] = {}
    given = _dicts(one.root for one in expander.documents.resources.values())
    for place in expander.places[1:]:
        schema = place.schema
        if not isinstance(schema, dict) or id(schema) not in given:
            continue  # the schema is not part of a document: the expansion to alternatives has added it
        dialect = place.resource.dialect
        named = schema.get("type", sorted(ALL_TYPES))
        names = named if isinstance(named, list) else [named]
        types = frozenset(name for name in names if isinstance(name, str))  # an invalid `type` gives no names
        types |= {"number"} if "integer" in types else frozenset()
        for name, value in schema.items():
            row = None
            if not (dialect.ref_alone and "$ref" in schema) or name == "$ref":
                row = check_keyword(name, value, place.pointer, dialect)
            status = _note(name, dialect)
            if row is not None:
                status = "enforced" if row.types & types and _is_used(name, value, schema, dialect) else "no effect"
            if name == "format" and row is not None and not is_asserted(value, style):
                status = "annotation"
            if row is not None and pointer(place.pointer, name) in expander.refusals:
                status = "refused"
            found.setdefault((place.pointer, name), status)
    for where, name in expander.resolved_references:
        found.setdefault((where, name), "refused" if pointer(where, name) in expander.refusals else "enforced")
    return [(where, name, status) for (where, name), status in found.items()]


_MODIFIED = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
"""Keywords that have an effect only next to another keyword, with the other keyword."""


def _is_used(name: str, value: object, schema: dict[str, Any], dialect: Dialect) -> bool:
    """Return False for a keyword without effect because the keyword that it modifies is missing."""
    if name == "additionalItems":
        return isinstance(schema.get("items"), list)
    if name in BOOLS_ONCE and isinstance(value, bool):
        return name.removeprefix("exclusive").lower() in schema
    other = _MODIFIED.get(name)
    return other is None or (other in schema and other not in dialect.unknown)


def _dicts(documents: Iterable[object]) -> set[int]:
    """Return the identities of all dicts in documents."""
    made: set[int] = set()
    todo = list(documents)
    while todo:
        one = todo.pop()
        if isinstance(one, dict) and id(one) not in made:
            made.add(id(one))
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return made


@cached(4096, characters=1 << 20, size=lambda name, _: len(name))
def _note(name: str, dialect: Dialect) -> str:
    """Return the status of a name that asserts nothing. A note says if the name is unknown or of another draft."""
    if name in dialect.unknown:
        return f"annotation: no keyword of {dialect.name}"
    if name in NOTES or name in KEYWORDS:
        return "annotation"
    near = similar_keyword(name)
    return "annotation: unknown keyword" if near is None else f"annotation: unknown keyword, did you mean {near!r}?"


_Removable = tuple[dict[str, Any], str, list[str], bool]
"""A dict with removable members: the dict, its JSON Pointer, the members, and whether they are schemas."""


def conflict(document: Any, place: str, is_empty: Callable[[], bool]) -> list[str]:
    """Return the JSON Pointers of a minimal set of conflicting keywords, or an empty list if none was found.

    A keyword is left out if a keyword inside its value is in the set. For the schema `false`, `place` is returned.

    Args:
        document: The document as dicts and lists. The search removes keywords from it.
        place: The JSON Pointer of the unsatisfiable schema.
        is_empty: Returns whether the document in its current state has no instance.
    """
    schema = value_at(document, place)
    if not isinstance(schema, dict):
        return [place] if schema is False else []
    named: list[str] = []
    todo: list[_Removable] = [(schema, place, _keywords(schema), False)]
    trials = 0
    while todo:
        composite, where, names, schemas = todo.pop(0)
        for name in names:
            trials += 1
            if trials > MAX_TRIALS:
                return []
            value = composite.pop(name)
            if is_empty():
                continue
            composite[name] = value
            at = pointer(where, name)
            named.append(at)
            if schemas or name in SCHEMAS or name in SCHEMA_LISTS:
                todo += _inside(value, at)
            elif name in SCHEMA_MAPS:
                todo.append((value, at, list(value), True))
    return [one for one in named if not any(other.startswith(one + "/") for other in named)]


def _keywords(schema: dict[str, Any]) -> list[str]:
    return [name for name in schema if name in KEYWORDS]


def value_at(document: Any, place: str) -> Any:
    """Return the value at a JSON Pointer, or None if there is none."""
    for part in place.split("/")[1:]:
        if (document := child(document, unescape(part))) is MISSING:
            return None
    return document


def _inside(value: Any, where: str) -> Iterator[_Removable]:
    """Yield the schemas in the value of a keyword: a schema, or a list of schemas. `where` is its JSON Pointer."""
    if isinstance(value, dict):
        yield value, where, _keywords(value), False
    elif isinstance(value, list):
        for i, one in enumerate(value):
            if isinstance(one, dict):
                at = pointer(where, i)
                yield one, at, _keywords(one), False


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a schema.

    Attributes:
        keyword_report: The rows that the function `keyword_report` returns.
        refusals: For each place that cannot be enforced, the reason. A place is the JSON Pointer of a keyword, or of a
            schema if no single keyword is the reason.
        examples: Texts of instances; empty if the schema is refused or unsatisfiable.
        conflict: The message of the `UnsatisfiableError`; None: there was no such error.
        place: The JSON Pointer of that error; None: there is no error, or its location is not known.
    """

    keyword_report: list[tuple[str, str, str]]
    refusals: dict[str, str] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    conflict: str | None = None
    place: str | None = None

    def rows(self, prefix: str = "") -> list[dict[str, str]]:
        """Return one object for each keyword: `place`, `keyword`, `status`, and `reason` if the keyword is refused.

        A refused schema for which no single keyword is the reason has a row with the keyword "", at the end.

        Args:
            prefix: It is put before each place.
        """
        reasons, rows = dict(self.refusals), []
        for place, keyword, status in self.keyword_report:
            row = {"place": prefix + place, "keyword": keyword, "status": status}
            if (reason := reasons.pop(pointer(place, keyword), None)) is not None:
                row["reason"] = reason
            rows.append(row)
        for place, reason in reasons.items():
            rows.append({"place": prefix + place, "keyword": "", "status": "refused", "reason": reason})
        return rows


def explain(documents: Documents, style: Style, examples: int = 3) -> Explanation:
    """Explain a schema. A schema that is refused or unsatisfiable raises no error: the result says why.

    Args:
        documents: The schema and the documents that it may refer to.
        style: The style in which the schema is lowered.
        examples: The maximum number of examples.

    Raises:
        InvalidConstraintError: As for `JsonSchema`.
        LimitExceededError: As for `JsonSchema`.
    """
    expander = Expander(documents)
    try:
        grammar = Lowering(expander, style).run()
        return Explanation(keyword_report(expander, style), {}, draw_examples(grammar, examples))
    except UnsupportedError as problem:
        return Explanation(keyword_report(expander, style), expander.refusals or {problem.place or "": str(problem)})
    except UnsatisfiableError as problem:
        return Explanation(keyword_report(expander, style), {}, [], str(problem), problem.place)


def draw_examples(grammar: Grammar, count: int, seed: int = 0) -> list[str]:
    """Draw at most `count` distinct texts of a grammar: first a shortest text, then random texts.

    There are fewer if the next one would exceed `EXAMPLE_WORK`, or if the random texts repeat too often. Raises the
    errors of `compile`, and `LimitExceededError` if the shortest text exceeds `EXAMPLE_WORK`.
    """
    found: dict[str, None] = {}
    try:
        with BoundedWork(units=EXAMPLE_WORK, purpose="sampled"):
            automaton = byte_automaton(grammar)
            found[automaton.matcher().completion().decode("utf-8", "replace")] = None
            rng = random.Random(seed)
            for _ in range(4 * count):
                if len(found) >= count:
                    break
                found[_walk(automaton.matcher(), rng)] = None
    except ConstraintError as error:
        if isinstance(error, LimitExceededError) and found:
            return list(found)[:count]
        raise with_place(error, grammar) from None
    return list(found)[:count]


def _walk(matcher: Any, rng: random.Random) -> str:
    """Draw a random text: random legal bytes, then a shortest completion.

    Bytes of `_PLAIN` are preferred. If the end or a quotation mark is legal, 30% of the choices are among these two.
    The text has at most `MAX_BYTES` bytes, or 40 more than a shortest text if that is larger.
    """
    import numpy as np

    text = bytearray()
    row = np.zeros(matcher.words, np.uint32)
    limit = max(MAX_BYTES, matcher.min_tokens_to_complete() + 40)
    while len(text) < limit and matcher.fill_mask_within(row, limit - len(text)):
        spend(_WALK_STEPS)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        legal = [int(one) for one in np.flatnonzero(bits[: _END + 1])]
        plain = [one for one in legal if one in _PLAIN]
        ends = [one for one in legal if one in (_END, ord('"'))]
        token = rng.choice(ends if ends and rng.random() < 0.3 else plain or legal)
        if token == _END:
            break
        matcher.advance(token)
        text.append(token)
    return (bytes(text) + bytes(matcher.completion())).decode("utf-8", "replace")
