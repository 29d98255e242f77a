"""Small regular expressions, as Python patterns and as expressions of the oracle: enumerated or random."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tests.oracle import regular
from tests.oracle.machine import Oracle, Plain
from tests.oracle.regular import Expr
from tests.oracle.spelling import Text

COUNTS: dict[str, tuple[int, int | None]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
    "{2}": (2, 2),
    "{1,2}": (1, 2),
    "{2,}": (2, None),
}


@dataclass(frozen=True)
class Pattern:
    """The text that users write, and what it means. `loose`: it must be grouped before a count."""

    text: str
    recipe: tuple[object, ...]
    loose: bool = False

    @property
    def spellable(self) -> bool:
        """Whether only the world's own letters occur: no class that leaves some out."""
        return "[^" not in self.text

    def expr(self) -> Expr:
        """Returns the oracle's expression; created each time, since the oracle clears its caches between worlds."""
        kind, *parts = self.recipe
        if kind == "chars":
            return regular.one(*parts)  # type: ignore[arg-type]  # ranges
        if kind == "times":
            part, low, high = parts
            return regular.times(part.expr(), low, high)  # type: ignore[attr-defined, arg-type]  # a pattern, counts
        made = [part.expr() for part in parts]  # type: ignore[attr-defined]  # patterns
        return regular.cat(*made) if kind == "cat" else regular.either(*made)

    def oracle(self) -> Oracle:
        """Reads texts of the pattern."""
        expr = self.expr()
        return Oracle(Plain(), Text(expr if regular.alive(expr) else regular.never()))


def char(letter: str) -> Pattern:
    """One letter."""
    return Pattern(re.escape(letter), ("chars", (ord(letter), ord(letter))))


def chosen(text: str, *ranges: tuple[int, int]) -> Pattern:
    """A class, spelled by hand."""
    return Pattern(text, ("chars", *ranges))


def grouped(part: Pattern) -> str:
    """As an operand."""
    return f"(?:{part.text})" if part.loose else part.text


def counted(part: Pattern, mark: str) -> Pattern:
    """`part*` and its like."""
    single = part.recipe[0] == "chars"
    text = part.text if single else f"(?:{part.text})"
    return Pattern(text + mark, ("times", part, *COUNTS[mark]), loose=False)


def joined(first: Pattern, second: Pattern) -> Pattern:
    """One after the other."""
    return Pattern(grouped(first) + grouped(second), ("cat", first, second))


def choice(first: Pattern, second: Pattern) -> Pattern:
    """Either of two."""
    return Pattern(f"{first.text}|{second.text}", ("or", first, second), loose=True)


LETTERS = ("a", "b", "c")
WIDE = ("a", "é", "日")


def leaves(letters: tuple[str, ...]) -> list[Pattern]:
    """The letters, two classes and the empty pattern."""
    first, second, last = (ord(letter) for letter in letters)
    some = chosen(f"[{letters[0]}{letters[2]}]", (first, first), (last, last))
    but = chosen(f"[^{letters[1]}]", (0, second - 1), (second + 1, regular.MAX_CODE_POINT))
    return [*(char(letter) for letter in letters), some, but, Pattern("", ("cat",))]


@lru_cache(maxsize=8)
def of_size(size: int, letters: tuple[str, ...] = LETTERS) -> tuple[Pattern, ...]:
    """Returns every pattern of `size` nodes."""
    if size == 1:
        return tuple(leaves(letters))
    return tuple(_made(size, letters))


def leads(pattern: Pattern) -> bool:
    """Whether it represents its renamings by permuted letters (with classes: only first and last are swapped)."""
    orders = ("cba",) if "[" in pattern.text else ("acb", "bac", "bca", "cab", "cba")
    renamed = (pattern.text.translate(str.maketrans("abc", order)).replace("[ca]", "[ac]") for order in orders)
    return all(pattern.text <= text for text in renamed)


def _made(size: int, letters: tuple[str, ...]) -> Iterator[Pattern]:
    for part in of_size(size - 1, letters):
        for mark in COUNTS:
            yield counted(part, mark)
    for left in range(1, size - 1):
        for first in of_size(left, letters):
            for second in of_size(size - 1 - left, letters):
                yield joined(first, second)
                yield choice(first, second)


def drawn(rng: random.Random, size: int, letters: tuple[str, ...] = LETTERS) -> Pattern:
    """Returns a random pattern of `size` nodes."""
    if size <= 1:
        return rng.choice(leaves(letters))
    if size == 2 or rng.random() < 0.35:
        return counted(drawn(rng, size - 1, letters), rng.choice(list(COUNTS)))
    left = rng.randrange(1, size - 1)
    make = joined if rng.random() < 0.6 else choice
    return make(drawn(rng, left, letters), drawn(rng, size - 1 - left, letters))
