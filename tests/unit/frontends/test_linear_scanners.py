"""Scanners of user input take linear time: repeated fragments of 20 to 100 KB that made a scanner backtrack."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Callable

import pytest

import guideway as gw
from guideway.constraints.tools import ToolCalls
from guideway.frontends.cfg.lark import statements
from guideway.grammar.automata.minimize import minimal_automaton
from tests.helpers.byte_tokens import BYTES
from tests.helpers.hostile_constraints import CLASSES

TOOLS = [gw.Tool("f", {"type": "object", "properties": {"a": {"type": "string"}}})]
REPLY = ToolCalls(TOOLS, family="hermes")

INPUTS: dict[str, Callable[[], object]] = {
    "Lark string of backslashes": lambda: gw.Lark('start: "' + "\\" * 50_000),
    "Lark pattern of backslashes": lambda: gw.Lark("start: /" + "\\" * 50_000),
    "Lark string of escaped quotes": lambda: gw.Lark('start: "' + '\\"' * 50_000),
    "Lark pattern of escaped slashes": lambda: gw.Lark("start: /" + "\\/" * 50_000),
    "Lark blank lines": lambda: gw.Lark("start: " + "\n \r\n" * 20_000 + "?"),
    "EBNF comments without an end": lambda: gw.Ebnf("/*" * 50_000),
    "EBNF notes without an end": lambda: gw.Ebnf("(*" * 50_000),
    "EBNF quotes": lambda: gw.Ebnf("a = " + "'\"" * 30_000),
    "ISO EBNF empty alternatives": lambda: gw.Ebnf("a = " + "!" * 95_000),
    "ISO EBNF alternatives": lambda: gw.Ebnf("a = " + "!/a/" * 20_000),
    "boundaries": lambda: gw.Regex(r"\b" * 47_500),
    "ends": lambda: gw.Regex("$" * 60_000 + "->"),
    "a boundary in a repetition": lambda: gw.Regex(r"(?:\b\dba[^a]{2000}[ab]+)*"),
    "a boundary in a repetition, ECMA": lambda: gw.Regex(r"(?:\b\dba[^a]{2000}[ab]+)*", dialect="ecma"),
    "boundaries in repetitions": lambda: gw.Regex(r"(?:\b(?:a|b\b)[^a]{900}\B[ab]{900})*"),
    "lookbehind in a repetition": lambda: gw.Regex(r"(?:(?<=a{300})b{300}|a)*"),
    "white space in a reply": lambda: REPLY.parse(" " * 100_000 + "x" + "\n" * 100_000 + "x"),
    "white space before a call": lambda: ToolCalls(TOOLS, family="llama").parse("\n" * 95_000 + "?"),
    "end markers in a reply": lambda: REPLY.parse("<|im_end|> " * 10_000 + "x"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_time_is_bounded(name: str) -> None:
    start = time.process_time()
    with contextlib.suppress(gw.GuidewayError):  # a refusal is fine; only the time counts here
        INPUTS[name]()
    assert time.process_time() - start < 4  # 0.1 to 2 s; without linear scanners, 5 s to hours


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("regex", "lazy"),
        ("regex", "unicode classes"),
        ("Lark", "templates that double"),
        ("JSON Schema", "consts of depth"),
    ],
)
def test_compiling_is_bounded(kind: str, name: str) -> None:
    start = time.process_time()
    with contextlib.suppress(gw.GuidewayError):
        gw.compile(CLASSES[kind][name](), BYTES, cache=False).matcher()
    assert time.process_time() - start < 6  # 0.1 to 1.8 s on an idle core; 8 to 40 s where steps are not counted


def test_lark_literals_end_where_larks_own_pattern_ends() -> None:
    own = re.compile(r'"(?:\\"|\\\\|[^"\n])*?"i?|/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*')
    rng = random.Random(1)
    literals = 0
    for _ in range(20_000):
        text = rng.choice('"/') + "".join(rng.choice('"\\/ai\n') for _ in range(rng.randrange(12)))
        found = statements._TOKENS.match(text)
        if found is not None and found.lastgroup == "space":
            continue  # a comment
        end = found.end() if found is not None else statements._end_of_literal(text, 0)
        expected = own.match(text)
        assert end == (expected.end() if expected is not None else 0), text
        literals += expected is not None
    assert literals > 5_000


def test_partition_refinement_agrees_with_moores() -> None:
    rng = random.Random(2)
    symbols = [((65, 65),), ((66, 66),), ((67, 70),)]
    merged = 0
    for _ in range(400):
        count = rng.randrange(1, 9)
        rows: list[dict[int, list[tuple[tuple[int, int], ...]]]] = []
        for _ in range(count):
            row: dict[int, list[tuple[tuple[int, int], ...]]] = {}
            for symbol in symbols:
                if rng.random() < 0.8:
                    row.setdefault(rng.randrange(count), []).append(symbol)
            rows.append(row)
        accepting = [rng.random() < 0.4 for _ in range(count)]
        graph = minimal_automaton(rows, accepting)
        classes = moore(rows, accepting)
        assert len(getattr(graph, "states", ())) == classes
        merged += classes < count
    assert merged > 100


def moore(rows: list[dict[int, list[tuple[tuple[int, int], ...]]]], accepting: list[bool]) -> int:
    """How many classes of reachable and productive states there are, by naive refinement over a complete automaton."""
    dead = len(rows)
    moves = [{symbol: after for after, parts in row.items() for symbol in parts} for row in rows] + [{}]
    block = [int(one) for one in accepting] + [0]
    symbols = {symbol for row in moves for symbol in row}
    while True:
        names: dict[object, int] = {}
        keys = [(block[n], tuple(block[moves[n].get(s, dead)] for s in sorted(symbols))) for n in range(dead + 1)]
        after = [names.setdefault(key, len(names)) for key in keys]
        if len(set(after)) == len(set(block)):
            break
        block = after
    reached, todo = {0}, [0]
    while todo:
        for target in moves[todo.pop()].values():
            if target not in reached:
                reached.add(target)
                todo.append(target)
    productive = {n for n in range(dead) if block[n] != block[dead]}
    return len({block[n] for n in reached & productive}) if block[0] != block[dead] else 0
