"""Growing values: strings, reasoning, and replies with tool calls."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import guideway as gw
from guideway.constraints.tools import FAMILIES
from guideway.constraints.tools.writing import written_calls
from guideway.errors import InvalidConstraintError
from guideway.generation.partial_values import CallsProgress, ReasoningProgress, progress_of
from guideway.jsontext.partial import PartialReader
from guideway.testing import ScriptedModel

VALUES: list[Any] = [
    {"a": "text", "b": ["one", "two", {"c": "three"}], "d": 12, "e": None, "f": {}, "": "x"},
    ['é"\\\n', "𝄞 日本", "", "end"],
    "a text",
    [[["x"]], [], [1.5, "y"]],
    {"k": {"l": {"m": "deep"}}, "n": True},
]


def parts_of(text: str, seed: int) -> list[str]:
    rng, found, at = random.Random(seed), [], 0
    while at < len(text):
        size = rng.choice((1, 1, 2, 3, 7))
        found.append(text[at : at + size])
        at += size
    return found


def grows_into(part: Any, whole: Any) -> bool:
    """Whether a partial value can become the whole one."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(grows_into, part, whole))
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and grows_into(value, whole[key]) for key, value in part.items())
    return part == whole and type(part) is type(whole)


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_values_grow_into_the_whole_value(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    for seed in range(8):
        reader = PartialReader(lambda key, entry: None)
        seen: list[Any] = []
        for part in parts_of(text, seed):
            reader.push(part)
            if reader.root is not None:
                seen.append((reader.snapshot(), json.dumps(reader.snapshot())))
        reader.finish()
        assert reader.root == reader.snapshot() == value
        assert all(grows_into(one, value) for one, _ in seen)
        assert all(json.dumps(one) == before for one, before in seen)  # later input did not change them


def test_every_character_of_a_string_is_shown() -> None:
    reader = PartialReader(lambda key, entry: None)
    shown = []
    for char in '{"a": "one \\u00e9\\ud834\\udd1e\\n!"}':
        reader.push(char)
        shown.append((reader.root or {}).get("a"))
    grown = list(dict.fromkeys(one for one in shown if one))
    assert grown == ["o", "on", "one", "one ", "one é", "one é𝄞", "one é𝄞\n", "one é𝄞\n!"]


def test_text_after_the_value_is_ignored() -> None:
    reader = PartialReader(lambda key, entry: None)
    assert reader.push('{"a": [1]}}\n</tool_call>') == len('{"a": [1]}')
    assert reader.is_closed
    assert reader.push("more") == 0
    assert reader.root == {"a": [1]}


def test_lone_surrogates_do_not_stop_the_value() -> None:
    reader = PartialReader(lambda key, entry: None)
    for char in '["\\ud834x", "\\udd1e", 1]':
        reader.push(char)
    assert reader.root == ["\ud834x", "\udd1e", 1]


def test_text_after_a_lone_surrogate_is_shown_at_once() -> None:
    reader = PartialReader(lambda key, entry: None)
    shown = []
    for char in '["\\ud834ab\\ud834\\n\\ud834\\u00e9\\ud834\\ud834\\udd1e':
        reader.push(char)
        assert len(reader._rest) <= 12
        shown.append((reader.root or [""])[0])
    grown = list(dict.fromkeys(one for one in shown if one))
    high = "\ud834"
    added = ["a", "b", f"{high}\n", high, "é", high, "𝄞"]
    assert grown == [f"{high}{''.join(added[: n + 1])}" for n in range(len(added))]


def test_long_strings_take_linear_work() -> None:
    reader = PartialReader(lambda key, entry: None)
    reader.push('["')
    for _ in range(20_000):
        reader.push("word ")
    reader.push('"]')
    assert len(reader.root[0]) == 100_000


def test_strings_grow_in_stream_values() -> None:
    text = '{"name": "Ada Lovelace", "jobs": ["mathematician"]}'
    model = ScriptedModel(gw.load("tiny").tokenizer, [text])
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "jobs": {"type": "array", "items": {"type": "string"}}},
        "required": ["name", "jobs"],
        "additionalProperties": False,
    }
    found = list(gw.stream_values(model, "x", gw.JsonSchema(schema)))
    names = list(dict.fromkeys(one.data["name"] for one in found if one.data and "name" in one.data))
    assert len(names) > 2
    assert names[-1] == "Ada Lovelace"
    assert all(one.fields.get("name") in (None, "Ada Lovelace") for one in found)
    assert all(grows_into(one.data, json.loads(text)) for one in found if one.data is not None)
    assert found[-1].value == json.loads(text)


@pytest.mark.parametrize("gap", ["", "\n", "\n\n"])
@pytest.mark.parametrize("seed", range(4))
def test_reasoning_grows(gap: str, seed: int) -> None:
    progress = ReasoningProgress(gw.Reasoning(gw.JsonSchema({"type": "object"})))
    seen = []
    for part in parts_of("<think>It < is </thin true.</think>" + gap + '{"a": "yes"}', seed):
        progress.push(part)
        seen.append(progress.data)
    progress.finish()
    assert progress.data == {"reasoning": "It < is </thin true.", "answer": {"a": "yes"}}
    assert all(progress.data["reasoning"].startswith(one["reasoning"]) for one in seen)
    assert len({one["reasoning"] for one in seen}) > 4


def test_reasoning_that_is_left_out() -> None:
    progress = ReasoningProgress(gw.Reasoning(gw.JsonSchema({"type": "object"}), optional=True))
    for char in '{"a": 1}':
        progress.push(char)
    assert progress.data == {"reasoning": "", "answer": {"a": 1}}
    text = ReasoningProgress(gw.Reasoning(gw.Regex("[a-z]+")))
    for char in "<think>x</think>yes":
        text.push(char)
    assert text.data == {"reasoning": "x", "answer": "yes"}


def find(words: str, most: int = 1) -> None:
    """Search."""


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_calls_grow(name: str, seed: int) -> None:
    family = FAMILIES[name]
    given = [("find", {"words": 'a "b" é', "most": 3}), ("find", {"words": "c"})][: 2 if family.several else 1]
    reasoning = "I look." if family.thoughts else ""
    before = f"{family.thoughts[0]}{reasoning}{family.thoughts[1]}" if family.thoughts else ""
    said = "Let me see. " if family.trigger and not family.answer else ""
    text = before + said + written_calls(family, given)
    source = gw.ToolCalls([find], family=family)
    expected = source.parse(text)
    progress = CallsProgress(source)
    seen = []
    for part in parts_of(text, seed):
        progress.push(part)
        seen.append(progress.data)
    progress.finish()
    data = progress.data
    assert (data["text"], data["reasoning"]) == (said, reasoning)
    if family.arguments != "python":
        assert [call["name"] for call in data["calls"]] == ["find"] * len(given)
    if family.arguments == "json":
        assert [call["arguments"] for call in data["calls"]] == [call.json_arguments() for call in expected.calls]
        assert len({json.dumps(one["calls"]) for one in seen}) > 3
    texts = [one["text"] for one in seen]
    assert all(said.startswith(one) for one in texts)


@pytest.mark.parametrize("name", FAMILIES)
def test_text_without_calls(name: str) -> None:
    family = FAMILIES[name]
    source = gw.ToolCalls([find], family=family)
    for text in ("Hello there < you", "It is [1] {2}.", "", "<", "<th", "[T"):
        progress = CallsProgress(source)
        for char in family.answer + text:
            progress.push(char)
        progress.finish()
        assert progress.data == {"text": text, "reasoning": "", "calls": []}


def test_calls_in_stream_values() -> None:
    text = (
        'I look. <tool_call>\n{"name": "find", "arguments": {"words": "a long text of words", "most": 2}}\n</tool_call>'
    )
    model = ScriptedModel(gw.load("tiny").tokenizer, [text])
    source = gw.ToolCalls([find], family="hermes")
    found = list(gw.stream_values(model, "x", source, max_tokens=300))
    assert found[-1].value == source.parse(text)
    words = [
        call["arguments"]["words"]
        for one in found
        for call in one.data["calls"]
        if (call["arguments"] or {}).get("words")
    ]
    assert len(set(words)) > 3
    assert found[3].text  # fields are attributes
    assert found[-1].calls[0]["arguments"]["most"] == 2


def test_constraints_without_growing_values() -> None:
    with pytest.raises(InvalidConstraintError, match="a stream of values needs"):
        progress_of(gw.Regex("a"))
    with pytest.raises(InvalidConstraintError, match="a stream of values needs"):
        progress_of(None)
