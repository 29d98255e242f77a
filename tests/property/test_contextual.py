"""`Lark(lexer="contextual")` compared with Lark's LALR(1) parser: the same verdict for every text."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import lark
import pytest

import guideway as gw
from guideway.grammar.recognizer import accepts, byte_automaton
from tests.helpers.counts import counts

from .sampling import samples

REAL = Path(__file__).parent.parent / "real"

TERMINALS = [
    *('"a"', '"b"', '"ab"', '"ba"', '"aa"', '"A"i', '"+"', '"++"', '"a+"', '"b b"'),
    *(
        "/a+/",
        "/b+/",
        "/[ab]+/",
        "/a*b/",
        "/ab?/",
        r"/\+a/",
        "/a+b+/",
        "/[ab]/",
        "/[ab]+/i",
        "/(ab)+/",
        "/b[^+]*b/",
        "/(a|ab)/",
        "/b??a/",
        "/(a|b)*?b/",
        "/a(b|ba)?/",
        "/(?!aa)a*?b/",
        "/a(?!b)[ab]/",
        "/(?=ab)(a|ab)b?/",
    ),
]


def grammar(rng: random.Random) -> str:
    """Some terminals, of which those with names may have priorities, and rules over them."""
    names = [f"T{number}" for number in range(rng.randint(1, 4))]
    lines = []
    for name in names:
        joined = rng.choice(["", f" {rng.choice(TERMINALS)}", f" | {rng.choice(TERMINALS)}"])
        priority = rng.choice(["", "", "", ".2", ".-1"])
        lines.append(f"{name}{priority}: {rng.choice(TERMINALS)}{joined}")
    rules = ["start", *(f"r{number}" for number in range(rng.randint(0, 3)))]

    def item() -> str:
        one = rng.choice([*names, *names, *rng.sample(TERMINALS, 2), *rules[1:]])
        return one + rng.choice(["", "", "", "", "?", "*", "+", "~2", "~1..3"])

    for rule in rules:
        options = [" ".join(item() for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 3))]
        lines.append(f"{rule}: {' | '.join(options)}")
    lines += [rng.choice(["", '%ignore " "', "%ignore /[ ]+/", "%ignore T0", '%ignore " "\n%ignore "+"'])]
    return "\n".join(lines)


def texts(rng: random.Random) -> list[str]:
    """All short ones, and some longer."""
    short = ["".join(one) for length in range(5) for one in itertools.product("ab+ ", repeat=length)]
    return short + ["".join(rng.choices("aabbA+ ", k=rng.randint(5, 12))) for _ in range(60)]


def compare(text: str, rng: random.Random) -> bool:
    """Whether both take the grammar; raises where their verdicts differ."""
    try:
        judge = lark.Lark(text, parser="lalr", lexer="contextual")
    except (lark.exceptions.LarkError, AssertionError):
        judge = None
    try:
        ours = byte_automaton(gw.Lark(text, lexer="contextual").grammar())
    except gw.errors.UnsatisfiableError:
        assert judge is None or not any(takes(judge, one) for one in texts(rng)), text
        return judge is not None
    except (gw.errors.InvalidConstraintError, gw.errors.UnsupportedError) as problem:
        if judge is not None and "names that Lark generates" not in str(problem):
            raise
        return False
    if judge is None:
        return False
    for one in texts(rng):
        assert accepts(ours, one) == takes(judge, one), (text, one, takes(judge, one))
    return True


def takes(judge: lark.Lark, text: str) -> bool:
    try:
        judge.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def hold(seeds: range) -> int:
    """How many of the grammars were compared."""
    return sum(compare(grammar(rng := random.Random(seed)), rng) for seed in seeds)


def test_random_grammars() -> None:
    assert hold(range(60)) > 24


@pytest.mark.slow
def test_many_random_grammars() -> None:
    assert hold(range(10_000, 13_000)) > 1_500


@counts(20, 40)
@pytest.mark.parametrize("name", ["json.lark", "arithmetic.lark", "python.lark"])
def test_samples_of_real_grammars_are_read_back(name: str, count: int) -> None:
    text = (REAL / name).read_text("utf-8")
    judge = lark.Lark(text, parser="lalr", lexer="contextual")
    source = gw.Lark(text, lexer="contextual")
    for one in samples(source, count, 0):
        judge.parse(one)
    automaton = byte_automaton(source.grammar())
    for one in samples(gw.Lark(text), count * 3 // 2, 1):  # of the wider meaning
        assert accepts(automaton, one) == takes(judge, one), one


WORDS = r"""
start: statement+
statement: "if" test "then" statement ["else" statement] | NAME "=" sum ";" | "print" sum ("," sum)* ";"
test: sum ("<" | "<=" | "=" | "in") sum
sum: sum ("+" | "-") atom | atom
atom: NAME | NUMBER | "(" sum ")" | atom "." NAME | "-" atom | STRING
STRING: /"[^"\n]*"/
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS
%import common.SH_COMMENT
%ignore WS
%ignore SH_COMMENT
"""
PIECES = [
    "if",
    "then",
    "else",
    "print",
    "in",
    "a",
    "b1",
    "1",
    "2.5",
    "3.",
    ".5",
    "1e5",
    "=",
    "<",
    "<=",
    "+",
    "-",
    "(",
    ")",
]
PIECES += [".", ";", ",", " ", " ", "\n", "# x\n", '"a"', '"if"', "ifa", "x"]


@counts(1_500, 4_000)
def test_keywords_names_and_numbers_side_by_side(count: int) -> None:
    judge = lark.Lark(WORDS, parser="lalr", lexer="contextual")
    source = gw.Lark(WORDS, lexer="contextual")
    automaton, rng = byte_automaton(source.grammar()), random.Random(1)
    found = samples(source, 100, 2)
    for one in found:
        judge.parse(one)
    seen = set()
    for _ in range(count):  # near misses: pieces of samples put together anew
        one = rng.choice(found)
        at, end = sorted(rng.choices(range(len(one) + 1), k=2))
        changed = one[:at] + "".join(rng.choices(PIECES, k=rng.randint(0, 2))) + one[min(end, at + 2) :]
        verdict = takes(judge, changed)
        seen.add(verdict)
        assert accepts(automaton, changed) == verdict, changed
    assert seen == {True, False}
