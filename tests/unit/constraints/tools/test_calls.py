"""Tool calls of each family: generated as the chat templates write them, and parsed."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

import guideway as gw
from guideway.constraints import Reply, ToolCall
from guideway.constraints.tools import FAMILIES, family_of
from guideway.errors import InvalidConstraintError
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.tokenizers.chat_template import render_template
from tests.property.sampling import samples

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 0},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "places": {"type": "array", "items": {"type": "number"}, "maxItems": 3},
        "exact": {"type": "boolean"},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
NOW: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = [gw.Tool("weather", WEATHER), gw.Tool("weather_now", NOW), gw.Tool("now", NOW)]
Call = tuple[str, dict[str, Any]]


def dumped(arguments: object) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def thought(reasoning: str) -> str:
    return f"<think>{reasoning}</think>" if reasoning else ""


def hermes(text: str, calls: list[Call], reasoning: str = "") -> str:
    found = [f'<tool_call>\n{{"name": "{n}", "arguments": {dumped(a)}}}\n</tool_call>' for n, a in calls]
    return thought(reasoning) + text + "\n".join(found)


def llama(text: str, calls: list[Call], reasoning: str = "") -> str:
    return "; ".join(f'{{"name": "{n}", "parameters": {dumped(a)}}}' for n, a in calls) or text


def pythonic(text: str, calls: list[Call], reasoning: str = "") -> str:
    def value(one: object) -> str:
        return dumped(one) if isinstance(one, str) else repr(one)

    found = [f"{name}({', '.join(f'{key}={value(one)}' for key, one in given.items())})" for name, given in calls]
    return f"[{', '.join(found)}]" if calls else text


def coder(text: str, calls: list[Call], reasoning: str = "") -> str:
    found = []
    for name, arguments in calls:
        pairs = [
            f"<parameter={key}>\n{value if isinstance(value, str) else dumped(value)}\n</parameter>\n"
            for key, value in arguments.items()
        ]
        found.append(f"<tool_call>\n<function={name}>\n{''.join(pairs)}</function>\n</tool_call>")
    return thought(reasoning) + text + "\n".join(found)


def mistral(text: str, calls: list[Call], reasoning: str = "") -> str:
    found = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return text + f"[TOOL_CALLS]{dumped(found)}" if calls else text


def mistral_v11(text: str, calls: list[Call], reasoning: str = "") -> str:
    before = f"[THINK]{reasoning}[/THINK]" if reasoning else ""
    return before + text + "".join(f"[TOOL_CALLS]{name}[ARGS]{dumped(arguments)}" for name, arguments in calls)


def deepseek(text: str, calls: list[Call], reasoning: str = "") -> str:
    found = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{dumped(a)}\n```<｜tool▁call▁end｜>"
        for n, a in calls
    ]
    text = thought(reasoning) + text
    return f"{text}<｜tool▁calls▁begin｜>{chr(10).join(found)}<｜tool▁calls▁end｜>" if calls else text


def deepseek_v31(text: str, calls: list[Call], reasoning: str = "") -> str:
    found = [f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{dumped(a)}<｜tool▁call▁end｜>" for n, a in calls]
    text = thought(reasoning) + text
    return f"{text}<｜tool▁calls▁begin｜>{''.join(found)}<｜tool▁calls▁end｜>" if calls else text


def glm(text: str, calls: list[Call], reasoning: str = "") -> str:
    found = []
    for name, arguments in calls:
        pairs = [
            f"<arg_key>{key}</arg_key>\n<arg_value>{value if isinstance(value, str) else dumped(value)}</arg_value>\n"
            for key, value in arguments.items()
        ]
        found.append(f"<tool_call>{name}\n{''.join(pairs)}</tool_call>")
    return thought(reasoning) + text + "\n".join(found)


def harmony(text: str, calls: list[Call], reasoning: str = "") -> str:
    before = f"<|channel|>analysis<|message|>{reasoning}<|end|><|start|>assistant" if reasoning else ""
    if not calls:
        return f"{before}<|channel|>final<|message|>{text}"
    name, arguments = calls[0]
    return f"{before}<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dumped(arguments)}<|call|>"


WRITERS: dict[str, Callable[..., str]] = {
    "llama": llama,
    "llama-pythonic": pythonic,
    "hermes": hermes,
    "qwen": hermes,
    "qwen-coder": coder,
    "mistral": mistral,
    "mistral-v11": mistral_v11,
    "deepseek": deepseek,
    "deepseek-v3.1": deepseek_v31,
    "glm": glm,
    "harmony": harmony,
}
MIXED = [name for name, family in FAMILIES.items() if family.trigger and not family.answer]  # text and calls in one
LETTERS = 'ab é日🎉"\\\n{}<>_[]/|:;,1'


def word(rng: random.Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(rng.randrange(12)))


def drawn(rng: random.Random) -> Call:
    if rng.random() < 0.2:
        return rng.choice(["now", "weather_now"]), {}
    arguments: dict[str, Any] = {"city": word(rng), "days": rng.randrange(10**6)}
    more = {"unit": rng.choice("CF"), "places": [rng.randrange(-9, 9) / 4, 7], "exact": rng.random() < 0.5}
    return "weather", arguments | {key: value for key, value in more.items() if rng.random() < 0.6}


def hold(family: str, count: int) -> None:
    """Random calls as the family writes them: within the constraint, and read as what they were."""
    source = gw.ToolCalls(TOOLS, family=family)
    automaton = byte_automaton(source.grammar())
    rng = random.Random(family)
    for _ in range(count):
        calls = [drawn(rng) for _ in range(rng.randrange(1, 4) if FAMILIES[family].several else 1)]
        text = rng.choice(["", "Let me see. ", "Ü <tool_calls [TOOL"]) if family in MIXED else ""
        reasoning = rng.choice(["", "Hm.\n", "a <tool"]) if FAMILIES[family].thoughts else ""
        reasoning = reasoning.replace("<", "") if family == "harmony" else reasoning
        written = WRITERS[family](text, calls, reasoning)
        assert accepts(automaton, written), written
        reply = source.parse(written)
        assert [(call.name, call.arguments) for call in reply.calls] == calls
        assert (reply.text, reply.reasoning) == (text, reasoning)


@pytest.mark.parametrize("family", WRITERS)
def test_calls_are_read(family: str) -> None:
    hold(family, 40)


@pytest.mark.slow
@pytest.mark.parametrize("family", WRITERS)
def test_a_thousand_calls_are_read(family: str) -> None:
    hold(family, 1000)
    sampled(family, 1000)


def sampled(family: str, count: int) -> None:
    """Masked samples: what is read and written again is the sample."""
    source = gw.ToolCalls(TOOLS, family=family, choice="required")
    for text in samples(source, count, 1):
        reply = source.parse(text)
        assert reply.calls
        again = WRITERS[family](reply.text, [(call.name, call.arguments) for call in reply.calls], reply.reasoning)
        assert [replace(call, id="") for call in reply.calls] == list(source.parse(again).calls)


@pytest.mark.parametrize("family", WRITERS)
def test_samples_are_read(family: str) -> None:
    sampled(family, 15)


@pytest.mark.parametrize("family", WRITERS)
def test_choices(family: str) -> None:
    write = WRITERS[family]
    text, call = write("Hello.", []), write("", [("now", {})])
    weather = write("", [("weather", {"city": "Rome", "days": 1})])
    expected = {
        "auto": (True, True, True),
        "required": (False, True, True),
        "none": (True, False, False),
        "now": (False, True, False),
    }
    for choice, fits in expected.items():
        source = gw.ToolCalls(TOOLS, family=family, choice=choice)
        for written, good in zip((text, call, weather), fits, strict=True):
            if good:
                source.parse(written)
            else:
                with pytest.raises(gw.errors.InvalidTextError):
                    source.parse(written)


@pytest.mark.parametrize("family", [name for name in WRITERS if FAMILIES[name].several])
def test_parallel_calls_can_be_forbidden(family: str) -> None:
    twice = WRITERS[family]("", [("now", {}), ("now", {})])
    assert len(gw.ToolCalls(TOOLS, family=family).parse(twice).calls) == 2
    with pytest.raises(gw.errors.InvalidTextError):
        gw.ToolCalls(TOOLS, family=family, parallel=False).parse(twice)


def test_a_tool_that_was_chosen_is_called_once() -> None:
    twice = hermes("", [("now", {}), ("now", {})])
    chosen = gw.ToolCalls(TOOLS, family="hermes", choice="now")
    assert not accepts(byte_automaton(chosen.grammar()), twice)
    with pytest.raises(gw.errors.InvalidTextError, match="found 2"):
        chosen.parse(twice)
    asked = gw.ToolCalls(TOOLS, family="hermes", choice="now", parallel=True)
    assert len(asked.parse(twice).calls) == 2
    assert gw.ToolCalls(TOOLS, family="hermes", choice="required").parallel


def test_a_model_tells_its_family() -> None:
    tiny = gw.load("tiny")
    assert gw.ToolCalls(TOOLS, family=tiny).family == FAMILIES["hermes"]
    with pytest.raises(gw.errors.UnsupportedError, match="pass family="):
        gw.ToolCalls(TOOLS, family=tiny.tokenizer.with_chat_template("{{ messages }}"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gw.ToolCalls("f", family="hermes"), "tools must be a list"),
        (lambda: gw.ToolCalls(3, family="hermes"), "tools must be a list"),
        (lambda: gw.ToolCalls({"name": "f"}, family="hermes"), "tools must be a list"),
        (lambda: gw.ToolCalls(TOOLS, family=3), "family must be a name"),
        (lambda: gw.ToolCalls(TOOLS, family="hermes", choice=3), "choice"),
        (lambda: gw.ToolCalls(TOOLS, family="hermes", parallel="no"), "parallel must be True"),
        (lambda: gw.Tool(3, NOW), "the name of a tool"),
        (lambda: gw.Tool.of({"name": 3}), "the name of a tool"),
        (lambda: gw.Tool("f", NOW, description=4), "the description of a tool"),
        (lambda: gw.Tool("f", 4), "4"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match=words):
        make()


def test_bad_arguments_do_not_fit() -> None:
    source = gw.ToolCalls(TOOLS, family="hermes")
    for call in (("weather", {"city": 1, "days": 1}), ("weather", {"days": 1}), ("rain", {}), ("now", {"a": 1})):
        with pytest.raises(gw.errors.InvalidTextError):
            source.parse(hermes("", [call]))


def test_families_by_template() -> None:
    signs = {
        "hermes": "{{- '<tool_call>\\n{\"name\": ' }}",
        "llama": "<|start_header_id|>… <|python_tag|>",
        "mistral": "[AVAILABLE_TOOLS] [TOOL_CALLS]",
        "llama-pythonic": "Use exact format: [func_name1(param1=value1)] <|python_start|>",
        "mistral-v11": "[TOOL_CALLS]' + name + '[ARGS]",
        "qwen-coder": "<tool_call>\n<function=example>",
        "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>…\n```json",
        "deepseek-v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "glm": "<tool_call>{name}\n<arg_key>",
        "harmony": "<|start|>assistant<|channel|>final",
    }
    assert {family_of(template): template for template in signs.values()} == signs
    with pytest.raises(gw.errors.UnsupportedError, match="pass family="):
        family_of("{{ messages }}")


def test_what_is_refused() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="a tool name must have at most 128 letters"):
        gw.Tool("a b", NOW)
    with pytest.raises(gw.errors.InvalidConstraintError, match="must be unique"):
        gw.ToolCalls([TOOLS[2], TOOLS[2]], family="hermes")
    with pytest.raises(gw.errors.InvalidConstraintError, match="choice"):
        gw.ToolCalls(TOOLS, family="hermes", choice="never")
    with pytest.raises(gw.errors.InvalidConstraintError, match="family"):
        gw.ToolCalls(TOOLS, family="gpt")
    odd = gw.Tool("odd", {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}})
    marked = gw.Tool("f", {"type": "object", "properties": {"a": {"type": "string", "enum": ["b", "</parameter>"]}}})
    with pytest.raises(gw.errors.UnsupportedError, match="without '</parameter>', which ends a value"):
        gw.ToolCalls([marked], family="qwen-coder").grammar()
    for family in ("glm", "qwen-coder"):
        with pytest.raises(gw.errors.UnsupportedError, match="always text or never text"):
            gw.ToolCalls([odd], family=family)
    with pytest.raises(gw.errors.UnsupportedError, match="Python identifiers"):
        gw.ToolCalls([gw.Tool("a-b", NOW)], family="llama-pythonic")
    for thing in (3, {"type": "function"}, {"function": {"description": "none"}}):
        with pytest.raises(gw.errors.InvalidConstraintError, match="tool"):
            gw.ToolCalls([thing], family="hermes")  # type: ignore[list-item]  # the slip is the test


def test_functions_are_tools() -> None:
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    tool = gw.Tool.of(add)
    assert (tool.name, tool.description) == ("add", "Adds.")
    reply = gw.ToolCalls([tool], family="qwen", choice="add").parse(hermes("", [("add", {"a": 1, "b": 5})]))
    assert add(**reply.calls[0].arguments) == 6


def test_tools_as_apis_write_them() -> None:
    inner = {"name": "weather", "description": "Of a city.", "parameters": WEATHER}
    tools = [
        {"type": "function", "function": inner},
        {"type": "function", **inner},
        inner,
        {"name": "weather", "description": "Of a city.", "input_schema": WEATHER},
    ]
    for tool in tools:
        assert gw.Tool.of(tool) == gw.Tool("weather", WEATHER)
        assert gw.Tool.of(tool).description == "Of a city."
    nothing = gw.Tool.of({"type": "function", "function": {"name": "now"}})
    assert nothing == gw.Tool("now", NOW)
    chosen = gw.ToolCalls([inner, nothing], family="qwen", choice={"type": "function", "function": {"name": "now"}})
    assert chosen.choice == "now"
    assert gw.ToolCalls([inner], family="qwen", choice="any").choice == "required"


def test_python_notation_of_every_value() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {},
            "b": {"enum": [True, None, "true", [False, "null"], {"x": True}]},
            "c": {"type": ["boolean", "null"]},
        },
        "required": ["b", "c"],
        "additionalProperties": False,
    }
    source = gw.ToolCalls([gw.Tool("f", schema)], family="llama-pythonic", choice="required")
    seen = set()
    for text in samples(source, 60, 1):
        (call, *_) = source.parse(text).calls
        assert call.arguments["b"] in schema["properties"]["b"]["enum"]  # type: ignore[index]  # a schema is Any
        seen.add(repr(call.arguments["b"]))
    assert len(seen) == 5
    assert accepts(byte_automaton(source.grammar()), '[f(b=[False, "null"], c=None)]')
    assert not accepts(byte_automaton(source.grammar()), '[f(b=[false, "null"], c=null)]')


@dataclasses.dataclass
class Point:
    x: int
    y: int


def forecast(
    city: str,
    days: int,
    unit: Literal["C", "F"] = "C",
    places: list[float] | None = None,
    at: Point | None = None,
    exact: bool = False,
) -> None:
    """Forecasts the weather."""


@pytest.mark.parametrize("family", FAMILIES)
def test_functions_are_tools_of_every_family(family: str) -> None:
    source = gw.ToolCalls([forecast], family=family, choice="forecast")
    automaton = byte_automaton(source.grammar())
    for text in samples(source, 40, seed=3):
        (call,) = source.parse(text).calls
        assert call.name == "forecast"
        assert {"city", "days"} <= call.arguments.keys()
        assert isinstance(call.arguments["at"], Point | None)
        assert accepts(automaton, text)


def test_functions_whose_texts_are_not_plain_are_refused() -> None:
    def when(day: date) -> None: ...

    def named(name: str | None = None) -> None: ...

    for function in (when, named):
        with pytest.raises(gw.errors.UnsupportedError, match="always text or never text"):
            gw.ToolCalls([function], family="qwen-coder")
        gw.ToolCalls([function], family="llama-pythonic")


def test_a_reply_as_a_message() -> None:
    reply = Reply("Look: ", (ToolCall("forecast", {"city": "Ålesund", "at": Point(1, 2)}, "abc"),), "Hm.")
    arguments = {"city": "Ålesund", "at": {"x": 1, "y": 2}}
    assert reply.as_message() == {
        "role": "assistant",
        "content": "Look: ",
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "abc", "type": "function", "function": {"name": "forecast", "arguments": arguments}},
        ],
    }
    (call,) = reply.as_message(arguments="json")["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == arguments
    assert Reply("Hi").as_message() == {"role": "assistant", "content": "Hi"}
    with pytest.raises(ValueError, match='arguments must be "object" or "json"'):
        reply.as_message(arguments="text")  # type: ignore[arg-type]  # refused


class Aliased(BaseModel):
    """A model of which the names in JSON are other ones."""

    model_config = ConfigDict(populate_by_name=True)
    city: str = Field(validation_alias="town")
    days: int = Field(default=3, alias="for")
    rate: float = 0.0
    data: bytes = b""


def test_a_parsed_reply_as_a_message_has_the_arguments_of_its_text() -> None:
    tools = gw.ToolCalls([gw.Tool("weather", Aliased)], family="hermes")
    given = {"town": "Oslo", "for": 2, "rate": 1.5, "data": "é"}
    reply = tools.parse(hermes("Look: ", [("weather", given)]))
    assert reply.calls[0].arguments.city == "Oslo"
    (call,) = reply.as_message()["tool_calls"]
    assert call["function"]["arguments"] == given
    (call,) = reply.as_message(arguments="json")["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == given
    assert replace(reply.calls[0], arguments={"town": "Rome"}).json_arguments() == {"town": "Rome"}
    assert reply.calls[0] == ToolCall("weather", reply.calls[0].arguments)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), b"\xff", object(), [{"a": -float("inf")}]])
def test_arguments_without_a_json_text_are_refused(value: object) -> None:
    reply = Reply("", (ToolCall("forecast", {"at": value}),))
    for form in ("object", "json"):
        with pytest.raises(ValueError, match="the arguments of the call of 'forecast' have no JSON text"):
            reply.as_message(arguments=form)  # type: ignore[arg-type]  # of a loop


def test_a_message_goes_through_a_chat_template() -> None:
    template = (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>\n"
        "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}\n</tool_call>{% endfor %}{% endfor %}"
    )
    tools = gw.ToolCalls(TOOLS, family="hermes")
    text = hermes("Look: ", [("weather", {"city": "Oslo", "days": 2})])
    reply = tools.parse(text)
    assert render_template(template, [reply.as_message()], special_tokens={}) == text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("special", {}),
        ("special", [None]),
        ("several", "x"),
        ("pair", "xyz"),
        ("call_id", ["a"]),
        ("thoughts", "ab"),
        ("begins", 5),
        ("arguments", "x"),
        ("middle", "\ud800"),
    ],
)
def test_wrong_types_in_the_family_of_a_wire_document(field: str, value: object) -> None:
    tools = [{"name": "f", "parameters": {"type": "object"}}]
    family = replace(FAMILIES["hermes"], lead="\n")  # a family without a name is written with all its fields
    document = gw.to_wire(gw.ToolCalls(tools, family=family))
    written = document["options"]["family"]
    assert gw.from_wire(document) == gw.ToolCalls(tools, family=family)
    written[field] = value
    del document["digest"]
    with pytest.raises(InvalidConstraintError, match=f"{field} of a family must be"):
        gw.from_wire(document)
