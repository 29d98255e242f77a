"""Captures by name, from each kind of constraint; hostile texts end within bounded work."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.constraints import Constraint, of
from guideway.constraints.captures import Captures, derivation
from guideway.generation import complete
from tests.helpers.counts import counts
from tests.helpers.work import lines


def spans(found: Captures) -> list[tuple[str, int, int]]:
    return [(one.name, one.start, one.end) for one in found.spans]


def test_patterns() -> None:
    source = gw.Regex(r"(?P<user>[a-z.]+)@(?P<host>(?:(?P<label>[a-z]+)\.?)+)")
    found = source.captures("a.b@love.com")
    assert dict(found) == {"user": "a.b", "host": "love.com", "label": "com"}
    assert [one.text for one in found.all("label")] == ["love", "com"]
    assert found.all("nothing") == ()
    assert repr(found).startswith("Captures({'user': 'a.b'")
    with pytest.raises(gw.errors.InvalidTextError):
        source.captures("a.b")
    assert dict(gw.Regex("(?<x>a|ab)(?<y>c|bcd)(?<z>d*)", dialect="ecma").captures("abcd")) == {
        "x": "a",
        "y": "bcd",
        "z": "",
    }
    assert len(gw.Regex("ab").captures("ab")) == 0


def test_places_in_bytes() -> None:
    found = gw.Regex("é(?P<x>日+)").captures("é日日")
    assert (found.last("x").start, found.last("x").end, found.last("x").byte_span) == (1, 3, (2, 8))


def test_rules_of_grammars() -> None:
    sums = gw.Lark('start: sum\nsum: sum "+" _t | _t\n_t: N | "(" sum ")"\nN: /[0-9]+/\n%ignore " "')
    found = sums.captures("1 + (2 )")
    assert spans(found) == [("start", 0, 8), ("sum", 0, 8), ("sum", 0, 1), ("N", 0, 1), ("sum", 5, 6), ("N", 5, 6)]
    ebnf = gw.Ebnf("word ::= (Name - 'if') ' '?\nName ::= [a-z]+")
    assert spans(ebnf.captures("of ")) == [("word", 0, 3), ("Name", 0, 2)]
    with pytest.raises(gw.errors.InvalidTextError):
        ebnf.captures("if")
    cyclic = gw.Gbnf('root ::= root root | "a" | ""')
    assert spans(cyclic.captures(""))[0] == ("root", 0, 0)
    assert {one.text for one in cyclic.captures("aaa").all("root")} >= {"aaa", "a"}


class Person(BaseModel):
    name: str
    tags: list[int]


def test_json_by_pointer() -> None:
    schema = gw.JsonSchema({"properties": {"a/b": {"type": "array"}, "~": {}}}, profile="exact")
    found = schema.captures('{ "a\\/b" : [1, {"x": "]\\""}], "~": null}')
    assert found["/a~1b"] == '[1, {"x": "]\\""}]'
    assert found["/a~1b/1/x"] == '"]\\""'
    assert (found["/a~1b/0"], found["/~0"]) == ("1", "null")
    assert found[""] == found.text
    assert of(Person).captures('{"name": "Ada", "tags": [1, 2]}')["/tags/1"] == "2"


def test_parts_of_each_other() -> None:
    call = gw.Lark(
        'start: NAME "(" arguments ")"\n%import common.CNAME -> NAME',
        parts={"arguments": gw.JsonSchema({"type": "object"})},
    )
    found = call.captures('f({"x": [1]})')
    assert (found["NAME"], found["arguments"], found["arguments/x/0"]) == ("f", '{"x": [1]}', "1")
    tags = gw.Tags([gw.Tag("<n>", gw.Regex(r"\d+").capture("n"), "</n>")])
    assert [one.text for one in tags.captures("a <n>42</n> b <n>7</n>").all("n")] == ["42", "7"]
    thought = gw.Reasoning(gw.Choice(["yes", "no"]).capture("answer"))
    assert thought.captures("<think>no</think>\nyes")["answer"] == "yes"
    weather = gw.Tool("weather", {"properties": {"city": {"type": "string"}}, "required": ["city"]})
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    assert gw.ToolCalls([weather], family="hermes").captures(call)["weather/city"] == '"Rome"'
    both = gw.Regex("(?P<first>.).*") & gw.Regex(".*(?P<last>.)") & ~gw.Choice(["no"])
    assert dict(both.captures("abc")) == {"first": "a", "last": "c"}
    asserting = "<" + gw.Regex(r"(?P<w>\b\w+\b)(?!x)") + ">"
    assert dict(asserting.captures("<word>")) == {"w": "word"}
    quoted = gw.constraints.Substring("the quick fox").capture("quote") + "!"
    assert quoted.captures("quick!")["quote"] == "quick"
    lazy = gw.Regex(".*?").capture("before") + "END" + gw.Regex(".*").capture("after")
    assert dict(lazy.captures("xENDyENDz")) == {"before": "x", "after": "yENDz"}
    assert gw.Choice(["a"]).capture("x") == gw.Choice(["a"]).capture("x") != gw.Choice(["a"]).capture("y")
    assert gw.Choice(["a"]).capture("x").parse("a") == "a"


def test_of_a_generation() -> None:
    model = gw.load("tiny")
    found = complete(model, "When: ", gw.Regex(r"(?P<year>\d{4})-(?P<month>\d\d) é"), seed=1)
    assert found.captures["year"] == found.text[:4]
    low, high = found.token_span(found.captures.last("month"), model)
    assert model.vocabulary.bytes_of(found.tokens[low:high]).decode() == found.captures["month"]
    with pytest.raises(ValueError, match="need a constraint"):
        _ = complete(model, "When: ", max_tokens=1).captures


# Constraints and texts with many derivations, and the last span of each name; None: more steps than are allowed.
HOSTILE: list[tuple[Constraint[str], str, dict[str, tuple[int, int]] | None]] = [
    (gw.Regex("(?P<x>(?:a*)*b|a)*"), "a" * 3000, None),
    (
        gw.Regex("(?P<a>.*)(?P<b>.*)(?P<c>.*)(?P<d>.*)"),
        "a" * 3000,
        {"a": (0, 3000), "b": (3000, 3000), "c": (3000, 3000), "d": (3000, 3000)},
    ),
    (gw.Regex("(?:(?P<x>a?){0,1000}){0,1000}"), "a" * 150, {"x": (150, 150)}),
    (gw.Regex("(?P<x>(?:a|aa|aaa){1,4294967294})"), "a" * 800, {"x": (0, 800)}),
    (gw.Regex(r"(?P<x>(?:(?=a*b)|a)*)b"), "a" * 1000 + "b", {"x": (0, 1000)}),
    (gw.Regex(r"(?:(?<=a*)(?<x>a))*", dialect="ecma"), "a" * 1000, {"x": (999, 1000)}),
    (gw.Gbnf('root ::= root root | "a" | ""'), "a" * 40, {"root": (39, 40)}),
    (gw.Gbnf('root ::= "a" root | "a" root "b" | ""'), "a" * 300, {"root": (300, 300)}),
    (gw.Lark("start: (A | B)*\nA: /a+/\nB: /[ab]+/"), "a" * 200, {"start": (0, 200), "A": (0, 200)}),
    (gw.JsonSchema(True), "[" * 5000 + "]" * 5000, None),
]


@counts(derivation.MAX_STEPS // 8, derivation.MAX_STEPS)
@pytest.mark.parametrize(("source", "text", "expected"), HOSTILE, ids=lambda given: repr(given)[:40])
def test_hostile_texts_end_within_counted_steps(
    source: Constraint[str],
    text: str,
    expected: dict[str, tuple[int, int]] | None,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if expected is None:
        monkeypatch.setattr(derivation, "MAX_STEPS", count)
        with pytest.raises(gw.errors.LimitExceededError, match="more than"):
            source.captures(text)
        return
    found = source.captures(text)
    assert {name: (found.last(name).start, found.last(name).end) for name in found} == expected


def test_repetitions_in_repetitions() -> None:
    for least, most in ((0, None), (0, 3), (1, 2)):
        source: Constraint[str] = gw.Regex("a").capture("x")
        for _ in range(14):
            source = source.repeat(least, most)
        found: list[int] = []
        executed = lines(lambda: found.append(source.captures("a" * 30).last("x").start))  # noqa: B023  # called here
        assert found == [29]
        assert executed < 3_000_000  # 14 nested repetitions would have 2**14 times the ways of one


def test_unmatched_names_are_absent() -> None:
    found = gw.Regex("(?P<a>x)|(?P<b>y)").captures("x")
    assert "b" not in found
    assert found.get("nope") is None
    for ask in (found.__getitem__, found.last):
        with pytest.raises(KeyError, match="nothing was captured as 'nope'; captured names: 'a'"):
            ask("nope")


@counts(1_500, 3_000)
def test_deeply_nested_constraints(count: int) -> None:
    def deep() -> list[Constraint[str]]:
        named: Constraint[str] = gw.Regex("x").capture("x0")
        joined, repeated, other = named, named, named
        for number in range(1, count):
            named = named.capture(f"x{number}")
            joined = (joined + "y").capture("y")
            repeated = repeated.optional()
            other = ~other
        return [named, joined, repeated, other]

    made, again = deep(), deep()
    assert made == again
    assert set(made) == set(again)
    assert all(len(repr(one)) > 2 * count for one in made)
    found = made[0].captures("x")
    assert len(found) == count
    assert found["x0"] == found[f"x{count - 1}"] == "x"


def test_lines_of_patterns() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match=r"line 2, column 3:\n b\(\n  \^"):
        gw.Regex("a\n b(", flags="x")


def test_a_text_out_of_thousands_of_parts() -> None:
    source: Constraint[str] = gw.Regex("x").capture("x0")
    for number in range(1, 300):
        source = (source + "y").capture(f"x{number}") if number % 2 else source.optional()
    assert len(source.captures("x" + "y" * 150)) == 151
