"""Tool calls: written by the forms of each family, as their chat templates write them, and read back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import guideway as gw
from guideway.sources.tools import FAMILIES, family_of
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


def hermes(text: str, calls: list[Call]) -> str:
    found = [f'<tool_call>\n{{"name": "{n}", "arguments": {dumped(a)}}}\n</tool_call>' for n, a in calls]
    return text + "\n".join(found)


def llama(text: str, calls: list[Call]) -> str:
    return "; ".join(f'{{"name": "{n}", "parameters": {dumped(a)}}}' for n, a in calls) or text


def mistral(text: str, calls: list[Call]) -> str:
    found = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return text + f"[TOOL_CALLS]{dumped(found)}" if calls else text


def deepseek(text: str, calls: list[Call]) -> str:
    found = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{dumped(a)}\n```<｜tool▁call▁end｜>"
        for n, a in calls
    ]
    return f"{text}<｜tool▁calls▁begin｜>{chr(10).join(found)}<｜tool▁calls▁end｜>" if calls else text


def glm(text: str, calls: list[Call]) -> str:
    found = []
    for name, arguments in calls:
        pairs = [
            f"<arg_key>{key}</arg_key>\n<arg_value>{value if isinstance(value, str) else dumped(value)}</arg_value>\n"
            for key, value in arguments.items()
        ]
        found.append(f"<tool_call>{name}\n{''.join(pairs)}</tool_call>")
    return text + "\n".join(found)


def harmony(text: str, calls: list[Call]) -> str:
    if not calls:
        return f"<|channel|>final<|message|>{text}"
    name, arguments = calls[0]
    call = f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dumped(arguments)}<|call|>"
    thoughts = f"<|channel|>analysis<|message|>{text}<|end|><|start|>assistant" if text else ""
    return thoughts + call


WRITERS: dict[str, Callable[[str, list[Call]], str]] = {
    "llama": llama,
    "hermes": hermes,
    "qwen": hermes,
    "mistral": mistral,
    "deepseek": deepseek,
    "glm": glm,
    "harmony": harmony,
}
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
    """Random calls as the family writes them: taken, and read as what they were."""
    source = gw.ToolCalls(TOOLS, family=family)
    rng = random.Random(family)
    for _ in range(count):
        calls = [drawn(rng) for _ in range(rng.randrange(1, 4) if FAMILIES[family].several else 1)]
        text = "" if family == "llama" else rng.choice(["", "Let me see. ", "Ü <tool_calls [TOOL"])
        text = text.replace("<", "") if family == "harmony" else text
        reply = source.parse(WRITERS[family](text, calls))
        assert [(call.name, call.arguments) for call in reply.calls] == calls
        assert (reply.reasoning if family == "harmony" else reply.text) == text


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
        again = WRITERS[family](reply.reasoning, [(call.name, call.arguments) for call in reply.calls])
        assert source.parse(again) == reply


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
                with pytest.raises(gw.InvalidText):
                    source.parse(written)


@pytest.mark.parametrize("family", [name for name in WRITERS if FAMILIES[name].several])
def test_parallel_calls_can_be_forbidden(family: str) -> None:
    twice = WRITERS[family]("", [("now", {}), ("now", {})])
    assert len(gw.ToolCalls(TOOLS, family=family).parse(twice).calls) == 2
    with pytest.raises(gw.InvalidText):
        gw.ToolCalls(TOOLS, family=family, parallel=False).parse(twice)


def test_bad_arguments_do_not_fit() -> None:
    source = gw.ToolCalls(TOOLS, family="hermes")
    for call in (("weather", {"city": 1, "days": 1}), ("weather", {"days": 1}), ("rain", {}), ("now", {"a": 1})):
        with pytest.raises(gw.InvalidText):
            source.parse(hermes("", [call]))


def test_families_by_template() -> None:
    signs = {
        "hermes": "{{- '<tool_call>\\n{\"name\": ' }}",
        "llama": "<|start_header_id|>… <|python_tag|>",
        "mistral": "[AVAILABLE_TOOLS] [TOOL_CALLS]",
        "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "glm": "<tool_call>{name}\n<arg_key>",
        "harmony": "<|start|>assistant<|channel|>final",
    }
    assert {family_of(template): template for template in signs.values()} == signs
    with pytest.raises(gw.NotAvailable, match="name a family"):
        family_of("{{ messages }}")


def test_what_is_refused() -> None:
    with pytest.raises(gw.InvalidConstraint, match="no name of a tool"):
        gw.Tool("a b", NOW)
    with pytest.raises(gw.InvalidConstraint, match="one name"):
        gw.ToolCalls([TOOLS[2], TOOLS[2]], family="hermes")
    with pytest.raises(gw.InvalidConstraint, match="choice"):
        gw.ToolCalls(TOOLS, family="hermes", choice="never")
    with pytest.raises(gw.InvalidConstraint, match="family"):
        gw.ToolCalls(TOOLS, family="gpt")
    odd = gw.Tool("odd", {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}})
    with pytest.raises(gw.Unsupported, match="plain texts"):
        gw.ToolCalls([odd], family="glm")


def test_functions_are_tools() -> None:
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    tool = gw.Tool.of(add)
    assert (tool.name, tool.description) == ("add", "Adds.")
    reply = gw.ToolCalls([tool], family="qwen", choice="add").parse(hermes("", [("add", {"a": 1, "b": 5})]))
    assert add(**reply.calls[0].arguments) == 6
