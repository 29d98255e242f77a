"""Numbers by value: every spelling of small numbers, compared with exact fractions."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from fractions import Fraction

import pytest

import guideway as gw
from guideway.constraints import Constraint
from guideway.grammar.nodes import Cell, Grammar, Number
from tests.helpers.byte_tokens import BYTES

JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
LETTERS = [bytes([b]) for b in b"-+.e0123456789"]

BOUNDS = "0 1 -1 2 5 7 10 12 99 100 -3 -20 0.5 0.05 1.5 2.25 -0.1 1e3 1e-4 123"
DIVISORS = "1 1 2 5 3 7 10 0.5 0.1 0.01 0.3 2.5 4 1e2 8 25"
ENDINGS = "0 5 .0 .5 .25 e1 e-1 e-2 e3 00 0e-3 25 1 75 9"


class Made(Constraint[str]):
    """A number alone."""

    def __init__(self, number: Number) -> None:
        self.number = number

    def grammar(self) -> Grammar:
        made = Grammar()
        made.root = made.add(self.number)
        return made

    def parse(self, text: str) -> str:
        return text

    def _content(self) -> object:
        return self.number


VOCABULARY = gw.Vocabulary([*LETTERS, b"</s>"], eos_ids=[len(LETTERS)])


def within(cell: Cell, value: Fraction) -> bool:
    if cell.low is not None and (value < Fraction(cell.low) or (cell.open_low and value == Fraction(cell.low))):
        return False
    if cell.high is not None and (value > Fraction(cell.high) or (cell.open_high and value == Fraction(cell.high))):
        return False
    whole = all((value / Fraction(d)).denominator == 1 for d in cell.multiple_of)
    return whole and not any((value / Fraction(d)).denominator == 1 for d in cell.not_multiple_of)


def member(number: Number, text: str) -> bool:
    if not JSON_NUMBER.fullmatch(text):
        return False
    value = Fraction(Decimal(text))
    if number.spelling == "any":
        return any(within(cell, value) for cell in number.cells)
    if "e" in text:
        return False
    return any(
        within(cell, value) and not ("." in text and any(d == d.to_integral_value() for d in cell.multiple_of))
        for cell in number.cells
    )


def drawn(rng: random.Random) -> Number:
    def some() -> Decimal:
        return Decimal(rng.choice(BOUNDS.split()))

    def divisor() -> Decimal:
        return Decimal(rng.choice(DIVISORS.split()))

    cells = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        low, high = (some() if rng.random() < 0.6 else None for _ in range(2))
        if low is not None and high is not None and low > high:
            low, high = high, low
        multiples = tuple(divisor() for _ in range(rng.choice((0, 1, 1, 1, 2))))
        others = tuple(divisor() for _ in range(rng.choice((0, 0, 0, 1, 2))))
        cells.append(Cell(low, high, rng.random() < 0.3, rng.random() < 0.3, multiples, others))
    return Number(tuple(cells), rng.choice(("any", "any", "plain")))


def agree(number: Number, rng: random.Random, walks: int, depth: int) -> None:
    try:
        automaton = gw.compile(Made(number), VOCABULARY, cache=False)
    except gw.errors.UnsatisfiableError:
        for text in [
            "0",
            *(f"{s}{n}{f}" for s in ("", "-") for n in range(130) for f in ("", ".5", ".25", ".01", "e3")),
        ]:
            assert not member(number, text), (number, text)
        return
    matcher = automaton.matcher()
    for _ in range(walks):
        text = ""
        while len(text) <= depth and not re.search(r"e[+-]?0*[1-9]\d\d", text.lower()):
            before = member(number, text)
            assert matcher.is_accepting == before, (number, text)
            legal = []
            for token, letter in enumerate(LETTERS):
                try:
                    matcher.advance(token)
                except gw.errors.RejectedTokenError:
                    after = text + letter.decode()
                    for more in ("", *ENDINGS.split()):
                        assert not member(number, after + more), (number, after + more)
                    continue
                legal.append(token)
                matcher.rollback(1)
            if not legal:
                assert before, (number, text)
                break
            token = rng.choice(legal)
            matcher.advance(token)
            text += LETTERS[token].decode()
        if re.search(r"e[+-]?0*[1-9]\d\d", text.lower()):
            matcher.rollback(matcher.position)
            continue  # fractions of that size take too long
        completed = text + matcher.completion().decode()
        assert member(number, completed), (number, text, completed)
        matcher.rollback(matcher.position)


def test_drawn_numbers() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        agree(drawn(rng), rng, 12, 9)


@pytest.mark.slow
def test_many_drawn_numbers() -> None:
    for seed in range(1000, 9000):
        rng = random.Random(seed)
        agree(drawn(rng), rng, 20, 12)


FAR = "1" + "0" * 30


@pytest.mark.parametrize(
    ("kind", "text", "taken"),
    [
        ("number", "[1e99999,1e99998]", True),
        ("number", "[1e99999,10E+99998]", False),
        ("integer", "[1e999999999,7,8,1e888888888]", True),
        ("integer", "[1e99999,10e99998]", False),
        ("number", f"[0e{FAR},1]", True),
        ("number", f"[0e{FAR},-0.0]", False),
        ("number", f"[1e{FAR},-1e{FAR},1e-{FAR},-1e-{FAR},0]", True),
        ("number", f"[1e-{FAR},0.1e-{FAR}]", False),  # not distinguished, so they count as equal
        ("number", "[2e99999999999999999,2e99999999999999998]", True),
    ],
)
def test_different_items_with_far_exponents(kind: str, text: str, taken: bool) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": kind}}
    matcher = gw.compile(gw.JsonSchema(schema, profile="exact"), BYTES).matcher()
    ids = [*text.encode(), 256]
    assert (matcher.validate(ids) == len(ids)) is taken
