"""The serialised form of constraints, and pickles."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway import constraints as c
from guideway.constraints import Constraint, from_wire, to_wire
from guideway.errors import (
    ConstraintError,
    GuidewayError,
    InvalidConstraintError,
    LimitExceededError,
    UnsatisfiableError,
    UnsupportedError,
)
from guideway.grammar.program import encode
from guideway.remote.fragments import wire_fragment
from tests.helpers.byte_tokens import filled, legal
from tests.helpers.counts import counts


class Point(BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Line:
    name: str
    points: list[Point]


def shift(point: Point, by: Literal[1, 2]) -> None:
    """A function whose arguments are a constraint."""


SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string", "maxLength": 3}}}


def examples() -> list[Constraint[Any]]:
    """Return new constraints, so that no grammar was made before another test cleared the caches."""
    return [
        c.Choice(["a", "b\n", "é"]),
        c.Regex("a+(?P<n>b|c)", flags="i"),
        c.Regex(r"\d+", dialect="ecma"),
        c.Format("date-time"),
        c.Substring("some words", least=2, most=5),
        c.SpecialToken("<|x|>"),
        c.Gbnf('root ::= "a" root | value', parts={"value": c.JsonSchema(SCHEMA)}),
        c.Lark('start: "a" start | other\nother: "b"', lexer="contextual"),
        c.Lark('start: "a"\nother: "b"', start="other"),
        c.Ebnf('a ::= "x" a | "y"'),
        c.Ebnf("b = 'x' | 'y';", start="b", form="iso"),
        c.JsonSchema(SCHEMA),
        c.JsonSchema(SCHEMA, profile="exact"),
        c.JsonSchema({"$ref": "http://x/y"}, resources={"http://x/y": {"type": "integer"}}, dialect="draft-07"),
        c.JsonSchema({"const": 123456789012345678901234567890}),
        c.Regex("a") | "b" | c.Choice(["x"]),
        c.Regex("a") + "b",
        c.Regex("[ab]+") & c.Regex("a*b"),
        ~c.Regex("abc"),
        c.Regex("a").repeat(1, 4, separator=","),
        c.JsonSchema(SCHEMA).capture("value"),
        c.Tags([c.Tag("<a>", SCHEMA, "</a>"), c.Tag("<b>", "x", "</b>")], most=3),
        c.Tags([c.Tag("<a>", "x", "</a>")], separator=";", least=1, special=["<a>"]),
        c.Reasoning(SCHEMA, optional=True),
        c.ToolCalls(
            [{"name": "f", "description": "d", "parameters": SCHEMA}, shift], family="hermes", choice="required"
        ),
        c.PythonType(Point),
        c.PythonType(list[Point] | None, whitespace="compact"),
        c.PythonType(dict[str, tuple[int, ...]]),
        c.PythonType(Literal["a", 1]),
        c.PythonType(Line),
        c.PythonType(shift),
    ]


CONSENT = [__name__]
NAMES = [repr(one).partition(" at 0x")[0][:60] for one in examples()]


def program(one: Constraint[Any]) -> Any:
    return encode(one.grammar())


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_round_trip(index: int) -> None:
    one = examples()[index]
    document = json.loads(json.dumps(to_wire(one)))
    back = from_wire(document, types=CONSENT)
    assert back == one
    assert type(back) is type(one)
    assert program(back) == program(one)
    assert to_wire(back) == document
    assert from_wire(json.dumps(document).encode(), types=CONSENT) == one


@pytest.mark.parametrize("index", range(len(NAMES)), ids=NAMES)
def test_pickle(index: int) -> None:
    one = examples()[index]
    back = pickle.loads(pickle.dumps(one))
    assert back == one
    assert program(back) == program(one)


def test_pickle_after_use() -> None:
    one = c.Gbnf('root ::= "a" root | "b"')
    assert one.parse("aab") == "aab"
    assert pickle.loads(pickle.dumps(one)).parse("ab") == "ab"


def test_tool_calls_without_a_family_stay_without_one() -> None:
    tools = [{"name": "f", "parameters": SCHEMA}]
    plain, named = c.ToolCalls(tools), c.ToolCalls(tools, family="hermes")
    for copy in (from_wire(to_wire(plain)), pickle.loads(pickle.dumps(plain))):
        assert isinstance(copy, c.ToolCalls)
        assert copy.has_default_family
        assert program(copy) == program(plain)
    assert not pickle.loads(pickle.dumps(named)).has_default_family
    assert wire_fragment(plain) == {"extra_body": {"constraint": to_wire(named)}}
    reasoning = wire_fragment(c.Reasoning(plain))
    assert reasoning == {"extra_body": {"constraint": to_wire(c.Reasoning(named))}}


def test_deep_nesting_needs_no_recursion() -> None:
    one: Constraint[Any] = c.Regex("a")
    for number in range(3000):
        one = one.capture(f"n{number}")
    assert from_wire(to_wire(one)) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_equal_parts_are_written_once() -> None:
    one: Constraint[Any] = c.JsonSchema(SCHEMA)
    for _ in range(5):
        one = c.Tags([c.Tag("<a>", one, "</a>"), c.Tag("<b>", one, "</b>")], most=1)
    assert len(to_wire(one)["parts"]) == 5


def random_constraint(draw: random.Random, depth: int = 0) -> Constraint[Any]:
    words = ["a", "bc", "é", '"', "\\", "x y", "0"]
    plain: list[Callable[[], Constraint[Any]]] = [
        lambda: c.Choice(draw.sample(words, draw.randint(1, 4))),
        lambda: c.Regex(
            draw.choice(["a+", "[b-d]{2,3}", "(?P<k>x|y)*", r"\d", "(?!a)[a-c]"]), flags=draw.choice(["", "i"])
        ),
        lambda: c.Format(draw.choice(["date", "ipv4", "uuid"])),
        lambda: c.Substring("some text", least=draw.randint(0, 2), most=draw.choice([None, 4])),
        lambda: c.JsonSchema(
            {"type": draw.choice(["integer", "string", "boolean"]), "enum": draw.sample([1, "a", True, 2.5], 3)}
            if draw.random() < 0.3
            else {
                "properties": {draw.choice(words): {"type": "integer", "minimum": draw.randint(-5, 5)}},
                "minProperties": 0,
            },
            profile=draw.choice(["generation", "exact"]),
        ),
        lambda: c.PythonType(draw.choice([int, list[int], Point, Literal["a", "b"]])),
        lambda: c.Gbnf(f'root ::= "{draw.choice(["a", "b"])}" root | "c"'),
        lambda: c.SpecialToken(draw.choice(["<x>", "<y>"])),
    ]
    if depth > 3 or draw.random() < 0.3:
        return draw.choice(plain)()

    def inner() -> Constraint[Any]:
        return random_constraint(draw, depth + 1)

    nested: list[Callable[[], Constraint[Any]]] = [
        lambda: inner() | inner(),
        lambda: inner() + draw.choice(words) + inner(),
        lambda: ~c.Regex("ab?") & c.Choice(words),
        lambda: inner().repeat(draw.randint(0, 2), draw.choice([None, 3]), separator=draw.choice(["", ", "])),
        lambda: inner().capture(draw.choice(["one", "two"])),
        lambda: c.Tags([c.Tag("<a>", inner(), "</a>")], least=draw.randint(0, 1)),
        lambda: c.Reasoning(inner(), optional=draw.random() < 0.5),
        lambda: c.Lark('start: "k" part', parts={"part": inner()}),
    ]
    return draw.choice(nested)()


SPECIAL = ("</s>", "<x>", "<y>")
BYTES = gw.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *(name.encode() for name in SPECIAL)],
    eos_ids=[256],
    special_ids=[256, 257, 258],
)


def masks(one: Constraint[Any], draw: random.Random) -> list[list[int]]:
    """Return the legal tokens along a random walk."""
    matcher = gw.compile(one, BYTES).matcher()
    found = []
    for _ in range(12):
        found.append(legal(filled(matcher)))
        if not found[-1] or matcher.is_finished:
            break
        matcher.advance(draw.choice(found[-1]))
    return found


@counts(600, 2000)
def test_random_constraints_round_trip(count: int) -> None:
    draw = random.Random(20)
    made = walked = 0
    while made < count:
        try:
            one = random_constraint(draw)
        except UnsatisfiableError:  # an enum without a value of its type, inside rules
            continue
        made += 1
        text = json.dumps(to_wire(one))
        back, plain = from_wire(text, types=CONSENT), from_wire(text)
        assert back == one
        assert program(back) == program(one), one
        assert plain.grammar().nodes == one.grammar().nodes  # without consent: the same language
        try:
            expected = masks(one, random.Random(made))
        except ConstraintError as error:  # the random constraint cannot be compiled
            with pytest.raises(type(error)):
                gw.compile(back, BYTES)
            continue
        walked += 1
        assert masks(back, random.Random(made)) == expected
        assert masks(plain, random.Random(made)) == expected
    assert walked > 9 * count // 10


def test_types_need_consent() -> None:
    document = to_wire(Point)
    assert from_wire(document) == c.JsonSchema(c.PythonType(Point).schema, formats="strict")
    assert from_wire(document, types=[Point]).parse('{"x": 1}') == Point(x=1)
    assert from_wire(document, types={f"{__name__}:Point": Point}).parse('{"x": 1}') == Point(x=1)
    assert isinstance(from_wire(document, types=[Line]), c.JsonSchema)


def test_nothing_is_imported_without_consent(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_by_wire.py").write_text("class Thing: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    document = to_wire(int)
    document["spec"]["type"] = {"path": "imported_by_wire:Thing"}
    del document["digest"]
    assert isinstance(from_wire(document), c.JsonSchema)
    document["spec"]["type"] = {"union": [{"path": "builtins:int"}, {"path": "imported_by_wire:Thing"}]}
    assert isinstance(from_wire(document), c.JsonSchema)
    assert "imported_by_wire" not in sys.modules
    with pytest.raises(ConstraintError):
        from_wire(document, types=["imported_by_wire"])
    assert "imported_by_wire" in sys.modules


def test_a_type_that_changed_is_refused() -> None:
    document = to_wire(Point)
    with pytest.raises(InvalidConstraintError, match="changed"):
        from_wire(document, types={f"{__name__}:Point": Line})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"guideway": 2}, UnsupportedError),
        ({"guideway": True}, UnsupportedError),
        ({"guideway": None}, UnsupportedError),
        ({"kind": "eval"}, UnsupportedError),
        ({"kind": ["regex"]}, InvalidConstraintError),
        ({"spec": 3}, InvalidConstraintError),
        ({"spec": "("}, InvalidConstraintError),
        ({"options": {"flags": 2}}, InvalidConstraintError),
        ({"options": {"dialekt": "ecma"}}, InvalidConstraintError),
        ({"options": []}, InvalidConstraintError),
        ({"extra": 1}, InvalidConstraintError),
        ({"parts": {}}, InvalidConstraintError),
        ({"parts": [{"kind": "regex"}]}, InvalidConstraintError),
        ({"parts": [{"kind": "not", "spec": 0}]}, InvalidConstraintError),
        ({"parts": [None] * 100_001}, LimitExceededError),
        ({"kind": "not", "spec": True, "parts": [{"kind": "regex", "spec": "a"}]}, InvalidConstraintError),
        ({"kind": "not", "spec": -1, "parts": [{"kind": "regex", "spec": "a"}]}, InvalidConstraintError),
        ({"kind": "any", "spec": []}, InvalidConstraintError),
        ({"kind": "json", "spec": '{"type": '}, InvalidConstraintError),
        ({"kind": "json", "spec": {"type": 3}}, InvalidConstraintError),
        ({"kind": "json", "spec": {}, "options": {"resources": {"a": 1}}}, InvalidConstraintError),
        ({"kind": "choice", "spec": "abc"}, InvalidConstraintError),
        ({"kind": "choice", "spec": [1]}, InvalidConstraintError),
        ({"kind": "tags", "spec": [[1, 2]]}, InvalidConstraintError),
        ({"kind": "tools", "spec": [], "options": {"family": {"prefix": 1}}}, InvalidConstraintError),
        ({"kind": "type", "spec": {"schema": "{}"}}, InvalidConstraintError),
        ({"kind": "substring", "spec": "ab", "options": {"least": True}}, InvalidConstraintError),
        (
            {"kind": "repeat", "spec": 0, "options": {"least": 2**40}, "parts": [{"kind": "regex", "spec": "a"}]},
            LimitExceededError,
        ),
        (
            {
                "kind": "tags",
                "spec": [["<a>", 0, "</a>"]],
                "options": {"least": 2**64},
                "parts": [{"kind": "regex", "spec": "a"}],
            },
            LimitExceededError,
        ),
    ],
)
def test_hostile_documents(change: dict[str, Any], error: type[Exception]) -> None:
    document = {"guideway": 1, "kind": "regex", "spec": "a", **change}
    with pytest.raises(error):
        from_wire(document)


@pytest.mark.parametrize("kind", ["any", "joined", "all", "tags"])
def test_shared_parts_cannot_grow_exponentially(kind: str) -> None:
    def spec(part: int) -> list[Any]:
        return [["<a>", part, "</a>"], ["<b>", part, "</b>"]] if kind == "tags" else [part, part]

    parts = [{"kind": "regex", "spec": "a"}, *({"kind": kind, "spec": spec(number)} for number in range(60))]
    with pytest.raises(LimitExceededError, match="may describe 100,000 constraints"):
        from_wire({"guideway": 1, "kind": kind, "spec": spec(60), "parts": parts})


JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**64,
    10**30,
    1.5,
    1e308,
    "",
    "a",
    "(",
    "[[",
    [],
    [1],
    {},
    {"a": 1},
    [[]],
]
JUNK += [
    [["a", 0, "b"]],
    "x{1000000}",
    "(a{1000}){1000}",
    "start: start",
    "root ::= root",
    '{"$ref": "#"}',
    "date",
    "any",
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """The containers of a JSON value, each with each of its keys or indices."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, (dict, list)):
            keys = list(one) if isinstance(one, dict) else list(range(len(one)))
            found += ((one, key) for key in keys)
            todo += (one[key] for key in keys)
    return found


@counts(400, 20_000)
def test_changed_documents_have_typed_errors(count: int) -> None:
    known = [to_wire(one) for one in examples()]
    errors = 0
    for seed in range(count):
        draw = random.Random(seed)
        document = json.loads(json.dumps(draw.choice(known)))
        del document["digest"]
        for _ in range(draw.choice([1, 1, 2, 3])):
            box, key = draw.choice(places(document))
            other, at = draw.choice(places(document))
            if draw.random() < 0.15:
                del box[key]
            else:
                box[key] = json.loads(json.dumps(other[at] if draw.random() < 0.2 else draw.choice(JUNK)))
            if not document:
                break
        try:
            gw.compile(from_wire(document), BYTES)
        except GuidewayError:
            errors += 1
    assert errors > count // 2


def test_hostile_texts() -> None:
    for text in (
        "",
        "[]",
        "1",
        "null",
        b"\xff",
        '{"guideway": 1',
        "[" * 100_000,
        '{"guideway":1,"kind":"regex","spec":NaN}',
    ):
        with pytest.raises(ConstraintError):
            from_wire(text)
    deep: Any = {}
    for _ in range(100_000):
        deep = {"not": deep}
    with pytest.raises(ConstraintError):
        from_wire({"guideway": 1, "kind": "json", "spec": deep, "digest": ""})


def test_digest() -> None:
    document = to_wire(c.Regex("a"))
    document["spec"] = "b"
    with pytest.raises(InvalidConstraintError, match="digest"):
        from_wire(document)
    one, other = ({"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}})
    assert to_wire(one)["digest"] != to_wire(other)["digest"]  # the order of keys is that of the text


class Own(c.Regex):
    """A class of a user."""


def test_classes_of_others_have_no_form() -> None:
    with pytest.raises(UnsupportedError, match="Own"):
        to_wire(Own("a") | "b")
    assert pickle.loads(pickle.dumps(Own("a"))) == Own("a")


def test_start_rules_and_dialects_are_part_of_the_content() -> None:
    text = 'start: "a"\nother: "b"'
    assert c.Lark(text, start="start") != c.Lark(text, start="other")
    assert c.JsonSchema({"$ref": "u:x"}, resources={"u:x": True}) != c.JsonSchema(
        {"$ref": "u:x"}, resources={"u:x": {"type": "null"}}
    )
