"""The texts of values in messages: of values of any size and depth."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, strategies
from pydantic import Field

import guideway as gw
from guideway.arguments import first_line, integer, short_list, short_repr
from guideway.batch.bodies import read_body, request_of
from guideway.constraints import Choice, JsonSchema, PythonType, ToolCalls, from_wire, of
from guideway.errors import GuidewayError
from guideway.integrations._common.structural_tags import structural_tag
from guideway.sampling import Sampler

DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]
LONG = "x" * 10_000_000

VALUES = strategies.recursive(
    strategies.one_of(
        *(strategies.none(), strategies.booleans(), strategies.integers(-(10**9), 10**9), strategies.floats()),
        *(strategies.text(), strategies.binary()),
    ),
    lambda inner: strategies.one_of(
        *(strategies.lists(inner), strategies.dictionaries(strategies.text(), inner)),
        *(strategies.tuples(inner), strategies.tuples(inner, inner), strategies.lists(inner).map(collections.deque)),
        *(strategies.sets(strategies.integers(-9, 9)), strategies.frozensets(strategies.text(max_size=2))),
    ),
)


@given(VALUES, strategies.integers(0, 100))
def test_short_repr_is_the_beginning_of_repr(value: Any, most: int) -> None:
    whole = repr(value)
    assert short_repr(value, most) == (whole if len(whole) <= most else whole[:most] + "…")


@pytest.mark.parametrize(
    "base",
    [str, bytes, bytearray, int, list, tuple, dict, set, frozenset, collections.deque],
    ids=lambda base: base.__name__,
)
def test_short_repr_of_subclasses(base: Any) -> None:
    """Their own methods are not called; a `__repr__` that they define is."""

    def fails(*_: object) -> Any:
        raise OSError

    names = ("__iter__", "__len__", "__bool__", "__getitem__", "__eq__", "items", "bit_length")
    foreign: Any = type("Foreign", (base,), dict.fromkeys(names, fails))
    plain: Any = type("Foreign", (base,), {})
    some: Any = {int: 5, dict: {"a": 1, "b": 2}, str: "abc"}.get(base, [1])
    for arguments in ((some,), ()):
        assert short_repr([foreign(*arguments)] * 2, 300) == repr([plain(*arguments)] * 2)
    large: Any = {int: 10**100_000, dict: dict.fromkeys(range(10**6)), str: "x" * 10**6}.get(base, b"a" * 10**6)
    begun = "an int of 332,193 bits" if base is int else repr(plain(large))
    assert short_repr(foreign(large)) == (begun if len(begun) <= 80 else begun[:80] + "…")
    named: Any = type("Named", (base,), {"__repr__": lambda _: "named"})
    assert short_repr(named()) == "named"


def test_short_repr_does_not_make_the_repr_of_a_large_subclass() -> None:
    class Items(list):  # type: ignore[type-arg]  # of any items
        pass

    calls = 0

    class Counted:
        def __repr__(self) -> str:
            nonlocal calls
            calls += 1
            return "counted"

    assert short_repr(Items([Counted()] * 1000)).startswith("[counted, counted")
    assert calls < 20
    assert short_repr(Items([DEEP])) == "[" * 80 + "…"


def test_short_repr_of_objects_whose_class_is_not_usable() -> None:
    class Unhashable(type):
        def __eq__(cls, other: object) -> bool:
            raise OSError

    class Unnamed(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]  # the mistake under test
            raise OSError

    class First(metaclass=Unhashable):
        pass

    class Second(metaclass=Unnamed):
        def __repr__(self) -> str:
            raise OSError

    assert short_repr(First()).startswith("<")
    assert "First" in short_repr(First(), 200)
    assert short_repr([Second()]) == "[<Second>]"


def test_short_repr_of_a_deque_with_a_maximum() -> None:
    assert short_repr(collections.deque([1, 2], 5)) == "deque([1, 2], maxlen=5)"


class Broken:
    def __repr__(self) -> str:
        raise OSError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (DEEP, "[" * 80 + "…"),
        ({"a": (DEEP,)}, "{'a': (" + "[" * 73 + "…"),
        (LONG, "'" + "x" * 79 + "…"),
        (range(10**9), "range(0, 1000000000)"),
        (10**100_000, "an int of 332,193 bits"),
        ([Broken()], "[<Broken>]"),
        (collections.OrderedDict(a=DEEP), "<OrderedDict>"),
        (set(), "set()"),
    ],
    ids=range(8),
)
def test_short_repr_of_large_values(value: Any, shown: str) -> None:
    assert short_repr(value) == shown


CALLS: dict[str, Callable[[Any], object]] = {
    "integer": lambda value: integer("n", -value if isinstance(value, int) else value, 0),
    "of": of,
    "from_wire": lambda value: from_wire({"guideway": value}),
    "from_wire option": lambda value: from_wire({"guideway": 1, "root": 0, "nodes": [{"kind": value}]}),
    "JsonSchema type": lambda value: JsonSchema({"type": value}),
    "JsonSchema style": lambda value: JsonSchema({"type": "null"}, whitespace=value),
    "Choice repetition": lambda value: Choice(["a"]).repeat(value),
    "ToolCalls": lambda value: ToolCalls([value]),
    "ToolCalls choice": lambda value: ToolCalls([], choice=value),
    "structural tags": lambda value: structural_tag({"type": "structural_tag", "format": value}),
    "message": lambda value: gw.Chat(gw.load("tiny")).append(value),
    "message of a chat": lambda value: gw.Chat(gw.load("tiny")).ask([value]),
    "sampler": lambda value: gw.generate(gw.load("tiny"), "a", sampler=value),
    "stop": lambda value: gw.generate(gw.load("tiny"), "a", stop=[value]),
    "model": lambda value: gw.generate(value, "a"),
    "prompt": lambda value: gw.generate(gw.load("tiny"), value),
    "load": gw.load,
    "type": lambda value: PythonType(Annotated[int, Field(ge=value)]),
    "options": lambda value: gw.score(gw.load("tiny"), "a", value),
}


@pytest.mark.parametrize("value", [DEEP, {"a": DEEP}, 10**5000], ids=["list", "dict", "int"])
@pytest.mark.parametrize("name", CALLS)
def test_messages_about_large_values(name: str, value: Any) -> None:
    with pytest.raises((GuidewayError, TypeError, ValueError, KeyError)) as caught:
        CALLS[name](value)
    assert "Exceeds the limit" not in str(caught.value) or name == "type"
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("field", ["messages", "stop", "n", "tools", "tool_choice", "response_format", "x"])
def test_messages_about_fields_of_requests(field: str) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "a"}], field: DEEP}
    with pytest.raises(GuidewayError) as caught:
        read_body("/v1/chat/completions", "a", body)
    assert len(str(caught.value)) < 3000
    with pytest.raises(GuidewayError):
        request_of({"custom_id": "a", "method": "POST", "url": DEEP, "body": body})


LONG_NAME = "x" * 100_000
LONG_CALLS: dict[str, Callable[[str], object]] = {
    "logit_bias": lambda text: Sampler(logit_bias={1: text}),  # type: ignore[dict-item]  # not a number
    "model": gw.load,
    "folder of a model": lambda text: gw.load(f"onnx:{text}"),
    "option of a model": lambda text: gw.load("tiny", **{text: 1}),
    "device": lambda text: gw.load("tiny", device=text),
    "base_url": lambda text: gw.load(text, base_url="http://a"),
    "option": lambda text: gw.generate(gw.load("tiny"), "a", **{text: 1}),
    "options of score": lambda text: gw.score(gw.load("tiny"), "a", [text, text + "y"]),
    "token": lambda _: gw.load("tiny").vocabulary.bytes_of([10**4000]),
    "file": lambda text: gw.load("tiny").load_session(text),
    "attribute": lambda text: getattr(gw, text),
    "Format": gw.Format,
    "text that does not match": lambda text: gw.Regex(text).parse("b"),
    "text of a special token": lambda text: gw.SpecialToken(f"<{text}>").parse("b"),
    "group name": lambda text: gw.Regex(f"(?P<{text}>a)(?P<{text}>a)"),
    "character name": lambda text: gw.Regex(rf"\N{{{text}}}"),
    "capture": lambda text: gw.Regex("a").capture(text).captures("a").last("b"),
    "Lark name": lambda text: gw.Lark(f"start: {text}"),
    "Lark rules": lambda text: gw.Lark(f'{text}: "a"'),
    "Lark start": lambda text: gw.Lark('start: "a"', start=text),
    "Lark part": lambda text: gw.Lark(f'start: "a"\n{text}: "b"', parts={text: gw.Regex("a")}),
    "Lark directive": lambda text: gw.Lark(f'%{text} a\nstart: "a"'),
    "Lark import": lambda text: gw.Lark(f'%import common.{text.upper()}\nstart: "a"'),
    "Lark terminal": lambda text: gw.Lark(f'start: A\nA: {text}\n{text}: "a"'),
    "Lark template": lambda text: gw.Lark(f'start: {text}{{"a"}}\n{text}{{a,b}}: a b'),
    "Lark pattern": lambda text: gw.Lark(f"start: /({text}/"),
    "rule without a text": lambda text: gw.Gbnf(f'root ::= {text}\n{text} ::= {text} "a"'),
    "Gbnf name": lambda text: gw.Gbnf(f"root ::= {text}"),
    "Gbnf token ids": lambda text: gw.Gbnf(f"root ::= <[{text}]>"),
    "Gbnf rules": lambda text: gw.Gbnf(f'{text} ::= "a"\n{text}y ::= "a"'),
    "Ebnf start": lambda text: gw.Ebnf('root ::= "a"', start=text),
    "trigger": lambda text: gw.Tags([gw.Tag("a", gw.Regex("b"), "c")], triggers=[text]),
    "family": lambda text: ToolCalls([gw.Tool(name="a", parameters={})], family=text),
    "$ref": lambda text: JsonSchema({"$ref": f"#/{text}"}),
    "$ref of another document": lambda text: JsonSchema({"$ref": text}),
    "anchor": lambda text: JsonSchema({"$ref": f"#{text}"}),
    "$schema": lambda text: JsonSchema({"$schema": text}),
    "place": lambda text: JsonSchema({"properties": {text: {"type": text}}}),
    "conflict": lambda text: gw.compile(
        JsonSchema({"properties": {text: False}, "required": [text], "type": "object"}), gw.load("tiny")
    ),
    "format": lambda text: JsonSchema({"format": text}, formats="strict"),
    "verbatim": lambda text: JsonSchema({"format": f"verbatim:{text}"}),
    "place of a value": lambda text: JsonSchema({"properties": {text: {"type": "null"}}}).parse(f'{{"{text}": 1}}'),
    "literal": lambda text: PythonType(Literal[text]).parse("3"),  # type: ignore[valid-type]  # made at run time
    "name of a type": lambda text: PythonType(type(text, (), {})),
    "type that is not defined": lambda text: PythonType(list[text]),  # type: ignore[valid-type]  # made at run time
    "model of a pool": lambda text: gw.Pool(None, {"a": "tiny"}).lease(text),
    "models of a pool": lambda text: gw.Pool(None, {text: "tiny", text + "1": "tiny"}).lease("b"),
    "structural tag": lambda text: structural_tag({"type": "structural_tag", text: 1}),
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_messages_about_long_texts(name: str) -> None:
    with pytest.raises((GuidewayError, TypeError, ValueError, KeyError, AttributeError)) as caught:
        LONG_CALLS[name](LONG_NAME)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([], ""),
        (["a", "b"], "a, b"),
        (["a" * 81], "a" * 80 + "…"),
        (["abc"] * 1000, ", ".join(["abc"] * 5) + ", …"),
    ],
)
def test_short_list(names: list[str], shown: str) -> None:
    assert short_list(names, 20) == shown


def test_no_message_truncates_a_whole_repr() -> None:
    """`{value!r:.80}` makes the whole `repr` first, which can be long, nested too deeply or an error."""
    files = Path(gw.__file__).parent.rglob("*.py")
    assert [str(file) for file in files if re.search(r"!r:\.\d", file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (OSError("a\nb"), "a"),
        (TimeoutError(), "TimeoutError"),
        (OSError("\nb"), "OSError"),
        (OSError("a" * 500), "a" * 400 + "…"),
    ],
)
def test_first_line(error: Exception, shown: str) -> None:
    assert first_line(error) == shown
