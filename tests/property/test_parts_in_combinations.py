"""Constraints as parts of others, with special tokens: masks and verdicts compared with the definition of the whole."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import guideway as gw
from guideway import masks
from guideway.constraints import Constraint, SpecialToken, Substring
from guideway.errors import InvalidTextError, UnsatisfiableError, UnsupportedError
from tests.oracle.symbols import Prefix, RecursiveTermError, Symbols, Term, choice, series, text

ALPHABET = 'abc<>1[], "é旨早'  # the last two differ in their last byte
NAMES = ("<a>", "<b>", "<c>")
NUMBERS = {"<a>": (0, 1), "<b>": (2,), "<c>": (3,)}
EMPTY = series()
ANY = choice(*(("char", char) for char in ALPHABET))
ANY_TEXT: Term = ("times", ANY, 0, None)
COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1), "{2}": (2, 2), "{1,2}": (1, 2)}
PIECES = ("ab", "<a>", "<b>", "<c>", "<a", ">1", '"a"', ", ", "[1", "é旨", "a<", "cb", "1]")

Made = tuple[Constraint[Any], Term]


def chars(draw: random.Random) -> tuple[str, Term]:
    """A class of characters in the notation of GBNF, and its term."""
    some = draw.sample("abc<>1é旨", draw.randint(1, 3))
    if draw.random() < 0.3:
        return f"[^{''.join(some)}]", choice(*(("char", one) for one in ALPHABET if one not in some))
    return f"[{''.join(some)}]", choice(*(("char", one) for one in some))


def word(draw: random.Random) -> str:
    return "".join(draw.choices("abc<>é", k=draw.randint(1, 2)))


class Rules:
    """Draws the rules of a grammar, in GBNF or in Lark's notation.

    `part`: a constraint that the rules can contain, and its term.
    """

    def __init__(self, draw: random.Random, part: Made, *, lark: bool, gap: Term = EMPTY) -> None:
        self._draw, self._part, self._lark, self._gap = draw, part, lark, gap
        self.names = ["start", "x"][: draw.randint(1, 2)]
        self.terms: dict[str, Term] = {}
        lines = []
        for name in self.names:
            written, term = self._options(1)
            lines.append(f'{name} {":" if lark else "::="} {written} | "b"')
            self.terms[name] = choice(term, self._spaced(text("b")))
        self.text = "\n".join(lines)

    def _spaced(self, term: Term) -> Term:
        return series(term, self._gap)

    def _options(self, depth: int) -> tuple[str, Term]:
        some = [self._series(depth) for _ in range(self._draw.randint(1, 2))]
        return " | ".join(written for written, _ in some), choice(*(term for _, term in some))

    def _series(self, depth: int) -> tuple[str, Term]:
        some = [self._element(depth) for _ in range(self._draw.randint(1, 3))]
        return " ".join(written for written, _ in some), series(*(term for _, term in some))

    def _element(self, depth: int) -> tuple[str, Term]:
        kind = self._draw.randrange(9)
        if kind < 2:
            one = word(self._draw)
            return f'"{one}"', self._spaced(text(one))
        if kind == 2:
            written, term = chars(self._draw)
            if self._lark and "^" in written:
                return '"a"', self._spaced(text("a"))
            return f"/{written}/" if self._lark else written, self._spaced(term)
        if kind == 3:
            name = self._draw.choice(self.names)
            return name, ("rule", name)
        if kind == 4:
            name = self._draw.choice(NAMES)
            return name, self._spaced(("token", name))
        if kind == 5:
            return "part", self._spaced(self._part[1])
        if kind == 6 and not self._lark:
            name = self._draw.choice(NAMES)
            inside = series(ANY_TEXT, text(name), ANY_TEXT)
            return f"!{name}*", ("both", (ANY_TEXT, ("other", inside)))
        if depth == 0:
            return '"a"', self._spaced(text("a"))
        written, term = self._options(depth - 1)
        sign = self._draw.choice(["", *(["*", "+", "?"] if self._lark else COUNTS)])
        return f"({written}){sign}", ("times", term, *COUNTS[sign]) if sign else term


def pattern(draw: random.Random) -> Made:
    written, term = chars(draw)
    sign = draw.choice(list(COUNTS))
    more = word(draw)
    return gw.Regex(f"(?:{written}{sign}|{more})?{more}"), series(
        ("times", choice(("times", term, *COUNTS[sign]), text(more)), 0, 1), text(more)
    )


def choices(draw: random.Random) -> Made:
    texts = sorted({word(draw) for _ in range(draw.randint(1, 3))})
    return gw.Choice(texts), choice(*map(text, texts))


def substring(draw: random.Random) -> Made:
    source = "".join(draw.choices("ab<é ", k=draw.randint(1, 5)))
    places = range(len(source) + 1)
    return Substring(source), choice(*(text(source[a:b]) for a in places for b in places if a < b))


def schema(draw: random.Random) -> Made:
    values = draw.sample([1, 11, "a", "é", "", "<a>"], draw.randint(1, 2))
    item = choice(*(text(json.dumps(one, ensure_ascii=False)) for one in values))
    if draw.random() < 0.5:
        return gw.JsonSchema({"enum": values}), item
    least = draw.randint(0, 1)
    items = series(item, ("times", series(text(", "), item), 0, None))
    made = gw.JsonSchema({"type": "array", "items": {"enum": values}, "minItems": least})
    return made, series(text("["), items if least else choice(EMPTY, items), text("]"))


def token(draw: random.Random) -> Made:
    name = draw.choice(NAMES)
    return SpecialToken(name), ("token", name)


def gbnf(draw: random.Random, part: Made) -> Made:
    rules = Rules(draw, part, lark=False)
    parts = {"part": part[0]} if "part" in rules.text else {}
    return gw.Gbnf(rules.text, start="start", parts=parts), ("rules", "start", rules.terms)


def lark(draw: random.Random, part: Made) -> Made:
    gap: Term = ("times", ("char", " "), 0, None) if draw.random() < 0.5 else EMPTY
    rules = Rules(draw, part, lark=True, gap=gap)
    parts = {"part": part[0]} if "part" in rules.text else {}
    made = gw.Lark(rules.text + '\n%ignore " "' * (gap != EMPTY), parts=parts)
    return made, series(gap, ("rules", "start", rules.terms))


LEAVES: list[Callable[[random.Random], Made]] = [pattern, choices, substring, schema, token, token]


def combined(draw: random.Random, depth: int) -> Made:
    """A constraint and its term."""
    if depth == 0:
        return draw.choice(LEAVES)(draw)
    one = combined(draw, depth - 1)
    kind = draw.randrange(10)
    try:
        if kind == 0:
            return ~one[0], ("other", one[1])
        if kind < 3:
            return draw.choice([gbnf, lark])(draw, one)
        if kind < 5:
            least, most = draw.choice([(0, None), (1, None), (0, 1), (1, 2), (2, 2)])
            between = draw.choice(["", "", ",", "<b>"])
            rest: Term = ("times", series(text(between), one[1]), max(least - 1, 0), None if most is None else most - 1)
            term: Term = ("times", series(one[1], rest), min(least, 1), 1)
            return one[0].repeat(least, most, separator=between), term
        other = combined(draw, draw.randrange(depth))
        if kind == 5:
            return one[0] & other[0], ("both", (one[1], other[1]))
        if kind < 8:
            return one[0] | other[0], choice(one[1], other[1])
        return one[0] + other[0], series(one[1], other[1])
    except UnsupportedError:  # `&` and `~` of constraints that are not regular
        return one


def compare(seed: int) -> int:
    """Compare along some texts. Returns the number of masks."""
    draw = random.Random(seed)
    present = draw.choice([(), ("<a>",), ("<b>", "<c>"), NAMES])
    try:
        source, term = combined(draw, draw.randrange(4))
        symbols = Symbols(term, ALPHABET, present)
        plain = Symbols(term, ALPHABET, ())
    except (RecursiveTermError, UnsatisfiableError):  # rules that recurse without need, as in `x ::= x | "a"`
        return 0
    names = [name if name in present else f"<{number}>" for name in NAMES for number in NUMBERS[name]]
    pieces = [char.encode() for char in ALPHABET] + [one.encode() for one in PIECES] + [b"a\xe6\x97", b"\xa8", b"\xa8b"]
    tokens = [*(name.encode() for name in names), *pieces, b"</s>"]
    end = len(tokens) - 1
    vocabulary = gw.Vocabulary(tokens, eos_ids=[end], special_ids=range(len(names)))
    try:
        automaton = gw.compile(source, vocabulary, cache=False)
    except UnsatisfiableError:
        assert symbols.is_empty, (seed, source)
        return 0
    assert not symbols.is_empty, (seed, source)
    count = 0
    texts = []
    for _ in range(2):
        matcher, prefix, ids = automaton.matcher(), symbols.begin(), list[int]()
        for _ in range(8):
            row = masks.new_rows(1, len(tokens))[0]
            matcher.fill_mask(row)
            allowed = {number for number in range(len(tokens)) if row[number // 32] >> number % 32 & 1}
            after: dict[int, Prefix] = {}
            for number, data in enumerate(tokens[:end]):
                read = symbols.read(prefix, data if number >= len(names) else [names[number]])
                if read is not None:
                    after[number] = read
            whole = symbols.is_whole(prefix)
            expected = {*after, end} if whole else set(after)
            assert allowed == expected, (seed, source, [tokens[one] for one in ids], allowed ^ expected)
            count += 1
            if whole:
                texts.append(b"".join(tokens[one] for one in ids).decode())
            if not after:
                break
            ids.append(draw.choice(sorted(after)))
            matcher.advance(ids[-1])
            prefix = after[ids[-1]]
    for one in texts[:6]:
        for changed in (one, one[1:], one + draw.choice(ALPHABET), one.replace("a", "b", 1)):
            found = None if plain.is_empty else plain.read(plain.begin(), changed.encode())
            fits = found is not None and plain.is_whole(found)
            assert _fits(source, changed) == fits, (seed, source, changed)
    return count


def _fits(source: Constraint[Any], one: str) -> bool:
    try:
        source.captures(one)
    except InvalidTextError:
        return False
    return True


def test_parts_in_combinations() -> None:
    assert sum(map(compare, range(400))) > 3_000


@pytest.mark.slow
def test_many_parts_in_combinations() -> None:
    assert sum(map(compare, range(1_000, 4_000))) > 25_000
