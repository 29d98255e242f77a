"""Regular expressions over characters and their derivatives.

The derivative of a language by a character is what may follow that character. A text is a member if the derivative by
all its characters contains the empty text; it is a viable prefix if that derivative is not empty. (Brzozowski 1964;
Owens, Reppy, Turon 2009 for the normal forms that limit the number of derivatives.)

Expressions are interned: equal ones are the same object, so they are cheap dictionary keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)


@dataclass(frozen=True, eq=False)
class Expr:
    """An expression: its kind and its parts. Only the functions below create it."""

    kind: str
    parts: tuple[Any, ...]


NEVER, EMPTY = Expr("or", (frozenset(),)), Expr("empty", ())
FORGETFUL: list[Any] = []  # caches elsewhere that hold expressions
_interned: dict[tuple[str, tuple[Any, ...]], Expr] = {}


def _expr(kind: str, *parts: Any) -> Expr:
    key = (kind, parts)
    found = _interned.get(key)
    if found is None:
        if not _interned:
            _interned.update({(one.kind, one.parts): one for one in (NEVER, EMPTY)})
            return _expr(kind, *parts)
        found = _interned[key] = Expr(kind, parts)
    return found


def never() -> Expr:
    """No text at all."""
    return NEVER


def empty() -> Expr:
    """The empty text only."""
    return EMPTY


def one(*ranges: tuple[int, int]) -> Expr:
    """One character out of inclusive ranges of code points."""
    return _expr("one", tuple(sorted(ranges))) if ranges else never()


def anything() -> Expr:
    """Every text."""
    return times(one((0, MAX_CODE_POINT)), 0, None)


def cat(*parts: Expr) -> Expr:
    """One after the other."""
    made = empty()
    for part in reversed(parts):
        made = _cat_two(part, made)
    return made


def _cat_two(first: Expr, rest: Expr) -> Expr:
    if first is never() or rest is never():
        return never()
    if first is empty():
        return rest
    if rest is empty():
        return first
    if first.kind == "cat":
        return _expr("cat", first.parts[0], _cat_two(first.parts[1], rest))
    return _expr("cat", first, rest)


def either(*parts: Expr) -> Expr:
    """Any of the parts."""
    flat: set[Expr] = set()
    for part in parts:
        flat |= part.parts[0] if part.kind == "or" else {part}
    return next(iter(flat)) if len(flat) == 1 else _expr("or", frozenset(flat))


def both(*parts: Expr) -> Expr:
    """All of the parts at once."""
    flat: set[Expr] = set()
    for part in parts:
        flat |= part.parts[0] if part.kind == "and" else {part}
    if never() in flat:
        return never()
    flat.discard(anything())
    if not flat:
        return anything()
    return next(iter(flat)) if len(flat) == 1 else _expr("and", frozenset(flat))


def complement(part: Expr) -> Expr:
    """Every text that the part does not match."""
    if part is never():
        return anything()
    return part.parts[0] if part.kind == "not" else _expr("not", part)  # type: ignore[no-any-return]  # parts are Any


def times(part: Expr, low: int, high: int | None) -> Expr:
    """The part, `low` to `high` times over."""
    if high is not None and high < low:
        return never()
    if high == 0 or part is empty():
        return empty()
    if part is never():
        return empty() if low == 0 else never()
    return part if (low, high) == (1, 1) else _expr("times", part, low, high)


def graph(states: tuple[tuple[bool, tuple[tuple[tuple[tuple[int, int], ...], int], ...]], ...], at: int = 0) -> Expr:
    """An automaton drawn out: by state whether a text may end there, and its steps (ranges, the state after)."""
    return _expr("graph", states, at)


def literal(text: str) -> Expr:
    """Exactly this text."""
    return cat(*(one((ord(c), ord(c))) for c in text))


def search(part: Expr, *, start: bool = False, end: bool = False) -> Expr:
    """Every text that has the part somewhere in it (at the start, at the end)."""
    return cat(empty() if start else anything(), part, empty() if end else anything())


@cache
def nullable(expr: Expr) -> bool:
    """Whether the empty text is a member."""
    match expr.kind:
        case "empty":
            return True
        case "one":
            return False
        case "cat" | "and":
            parts: Iterable[Expr] = expr.parts if expr.kind == "cat" else expr.parts[0]
            return all(nullable(p) for p in parts)
        case "or":
            return any(nullable(p) for p in expr.parts[0])
        case "not":
            return not nullable(expr.parts[0])
        case "graph":
            return bool(expr.parts[0][expr.parts[1]][0])
        case _:
            return expr.parts[1] == 0 or nullable(expr.parts[0])


@cache
def derive(expr: Expr, char: int) -> Expr:
    """What may follow `char`."""
    match expr.kind:
        case "empty":
            return never()
        case "one":
            return empty() if any(low <= char <= high for low, high in expr.parts[0]) else never()
        case "cat":
            first, rest = expr.parts
            after = cat(derive(first, char), rest)
            return either(after, derive(rest, char)) if nullable(first) else after
        case "or":
            return either(*(derive(p, char) for p in expr.parts[0]))
        case "and":
            return both(*(derive(p, char) for p in expr.parts[0]))
        case "not":
            return complement(derive(expr.parts[0], char))
        case "graph":
            states, at = expr.parts
            steps = ((any(low <= char <= high for low, high in ranges), after) for ranges, after in states[at][1])
            return either(*(graph(states, after) for fits, after in steps if fits))
        case _:
            part, low, high = expr.parts
            rest = times(part, max(low - 1, 0), None if high is None else high - 1)
            return cat(derive(part, char), rest)


@cache
def borders(expr: Expr) -> tuple[int, ...]:
    """Where the expression starts to treat characters differently: two characters between borders are alike."""
    match expr.kind:
        case "empty":
            found: set[int] = set()
        case "one":
            found = {at for low, high in expr.parts[0] for at in (low, high + 1)}
        case "or" | "and":
            found = {at for part in expr.parts[0] for at in borders(part)}
        case "cat":
            found = {at for part in expr.parts for at in borders(part)}
        case "graph":
            steps = expr.parts[0][expr.parts[1]][1]
            found = {at for ranges, _ in steps for low, high in ranges for at in (low, high + 1)}
        case _:
            found = set(borders(expr.parts[0]))
    return tuple(sorted(found))


def samples(expr: Expr, low: int = 0, high: int = MAX_CODE_POINT) -> list[int]:
    """A character of every sort that the expression tells apart, out of `low`..`high`; no surrogates."""
    found = []
    for start in [low, SURROGATES[1] + 1, *borders(expr)]:
        if SURROGATES[0] <= start <= SURROGATES[1]:
            continue
        if low <= start <= high:
            found.append(start)
    return found


@cache
def alive(expr: Expr) -> bool:
    """Whether there is any member: is a derivative that has the empty text within reach?"""
    seen, stack = {expr}, [expr]
    while stack:
        state = stack.pop()
        if nullable(state):
            return True
        for char in samples(state):
            after = derive(state, char)
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return False


def member(expr: Expr) -> str | None:
    """A shortest member."""
    seen, queue = {expr}, [(expr, "")]
    for state, text in queue:
        if nullable(state):
            return text
        for char in samples(state):
            after = derive(state, char)
            if after not in seen:
                seen.add(after)
                queue.append((after, text + chr(char)))
    return None


def alive_after(expr: Expr, low: int, high: int) -> bool:
    """Whether some character in `low`..`high` can come next."""
    return any(alive(derive(expr, char)) for char in samples(expr, low, high))


def forget() -> None:
    """Empties the caches between worlds. Expressions of different worlds must not be mixed."""
    _interned.clear()
    for cached in (nullable, derive, borders, alive, *FORGETFUL):
        cached.cache_clear()
