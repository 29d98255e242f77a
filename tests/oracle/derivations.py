"""The first derivation of a text, by trying all in order: the oracle of `guideway.constraints.captures`.

Terms are tuples: ("text", "ab"), ("longest", texts), ("series", terms), ("choice", terms), ("name", name, term),
("times", term, least, most, lazy), ("rule", name). A derivation is the list of captures in the order in which they
began. Exponential and recursive, so for short texts only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["first_derivation"]

Term = tuple[Any, ...]
Rules = dict[str, Term]
Spans = tuple[tuple[str, int, int], ...]


def first_derivation(term: Term, text: str, rules: Rules | None = None) -> list[tuple[str, int, int]] | None:
    """What the first derivation captures; None where there is none. Rules must not go round and read nothing."""
    for end, spans in _Twin(text, rules or {}).ways(term, 0, 0):
        if end == len(text):
            return list(spans)
    return None


class _Twin:
    """`needed`, below: the minimum number of characters after the current term. It ends left recursion."""

    def __init__(self, text: str, rules: Rules) -> None:
        self.text, self.rules = text, rules
        self.lengths = dict.fromkeys(rules, 1000)
        while (found := {name: self.least(term) for name, term in rules.items()}) != self.lengths:
            self.lengths = found

    def least(self, term: Term) -> int:
        """How many characters a term has at least."""
        match term:
            case ("text", text):
                return len(text)
            case ("longest", texts):
                return min(len(one) for one in texts)
            case ("series", terms):
                return sum(self.least(one) for one in terms)
            case ("choice", terms):
                return min(self.least(one) for one in terms)
            case ("name", _, inner):
                return self.least(inner)
            case ("times", inner, least, _, _):
                return int(least) * self.least(inner)
        return self.lengths[term[1]]

    def ways(self, term: Term, at: int, needed: int) -> Iterator[tuple[int, Spans]]:
        """Where the term may end, in order."""
        if at + needed + self.least(term) > len(self.text):
            return
        match term:
            case ("text", text):
                if self.text.startswith(text, at):
                    yield at + len(text), ()
            case ("longest", texts):
                for one in sorted(texts, key=len, reverse=True):
                    if self.text.startswith(one, at):
                        yield at + len(one), ()
            case ("series", terms):
                yield from self.series(terms, at, needed)
            case ("choice", terms):
                for one in terms:
                    yield from self.ways(one, at, needed)
            case ("name", name, inner):
                for end, spans in self.ways(inner, at, needed):
                    yield end, ((name, at, end), *spans)
            case ("rule", name):
                yield from self.ways(self.rules[name], at, needed)
            case _:
                yield from self.times(term, at, needed, 0)

    def series(self, terms: Any, at: int, needed: int) -> Iterator[tuple[int, Spans]]:
        if not terms:
            yield at, ()
            return
        rest = sum(self.least(one) for one in terms[1:])
        for middle, spans in self.ways(terms[0], at, needed + rest):
            for end, more in self.series(terms[1:], middle, needed):
                yield end, spans + more

    def times(self, term: Term, at: int, needed: int, done: int) -> Iterator[tuple[int, Spans]]:
        _, part, least, most, lazy = term
        if lazy and done >= least:
            yield at, ()
        if most is None or done < most:
            for middle, spans in self.ways(part, at, needed):
                if middle > at or done < least:
                    for end, more in self.times(term, middle, needed, done + 1):
                        yield end, spans + more
        if not lazy and done >= least:
            yield at, ()
