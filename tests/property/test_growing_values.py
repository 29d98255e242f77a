"""Growing values: each shows only what the value of the whole text has, and the last one is that value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import guideway as gw
from guideway.constraints.tools import FAMILIES
from guideway.errors import InvalidTextError
from guideway.generation.partial_values import progress_of
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.server.reply_stream import ReplyStream
from tests.conformance.test_conformance import cases
from tests.helpers.counts import counts
from tests.property import test_tool_families as families
from tests.unit.constraints.tools.test_calls import TOOLS, WRITERS, Call, drawn as drawn_call

PIECES = ["a", "é", "日", "𝄞", "\\n", '\\"', "\\\\", "\\/", "\\u0041", "\\ud834\\udd1e", "\\uD834\\uDD1E", "\x7f", " "]
PIECES += ["{", "]", ",", ":", "\\u005c", "\\u0022"]
NUMBERS = ["0", "-0", "1", "-12", "1.0", "1.50", "1e5", "1E+5", "1e-5", "-0.0", "1e400", "1e-400", "0.1", "9" * 400]


def grows(part: Any, whole: Any) -> bool:
    """Whether a partial JSON value can become the whole one: equal types, and keys in the same order."""
    if type(part) is not type(whole):
        return False
    if isinstance(part, str):
        return bool(whole.startswith(part))
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(grows, part, whole))
    if isinstance(part, dict):
        return list(part) == list(whole)[: len(part)] and all(grows(one, whole[key]) for key, one in part.items())
    return bool(part == whole)


def divided(rng: random.Random, text: str) -> list[str]:
    """Returns the characters of a text, or larger parts."""
    if rng.random() < 0.5:
        return list(text)
    cuts = sorted(rng.sample(range(len(text) + 1), min(len(text), rng.randint(0, 8))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def grown(source: Any, parts: list[str]) -> tuple[list[Any], Any]:
    """Returns the values after each part, and the last value. Checks that `changes` counts each change."""
    progress = progress_of(source)
    seen: list[Any] = []
    changes = 0
    for part in parts:
        before = json.dumps(progress.data, default=str)
        progress.push(part)
        if progress.changes == changes:
            assert json.dumps(progress.data, default=str) == before
        else:
            seen.append((progress.data, json.dumps(progress.data, default=str)))
        changes = progress.changes
    progress.finish()
    assert all(json.dumps(one, default=str) == before for one, before in seen)  # later text did not change them
    return [one for one, _ in seen], progress.data


def string(rng: random.Random) -> str:
    return '"' + "".join(rng.choices(PIECES, k=rng.choice([0, 1, 2, 3, 6]))) + '"'


def space(rng: random.Random) -> str:
    return rng.choice(["", "", "", " ", "\n ", "\t\r\n"])


def value(rng: random.Random, depth: int) -> str:
    """The text of a JSON value."""
    drawn = rng.random()
    if depth == 0 or drawn < 0.5:
        huge = ["7" * 5_000] if rng.random() < 0.02 else []  # more digits than Python converts to an int
        return rng.choice(
            [string(rng), string(rng), rng.choice([*NUMBERS, *huge]), rng.choice(["true", "false", "null"])]
        )
    if drawn < 0.75:
        made = [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        return "[" + (space(rng) + "," + space(rng)).join(made) + "]"
    keys = {json.loads(key): key for key in (string(rng) for _ in range(rng.randint(0, 3)))}
    made = [f"{key}{space(rng)}:{space(rng)}{value(rng, depth - 1)}" for key in keys.values()]
    return "{" + space(rng) + ("," + space(rng)).join(made) + space(rng) + "}"


@counts(500, 20_000)
def test_json(count: int) -> None:
    rng, source = random.Random(1), gw.JsonSchema(True)
    for _ in range(count):
        text = space(rng) + value(rng, 3) + space(rng)
        whole = source.read(text)
        seen, last = grown(source, divided(rng, text))
        assert (last, type(last)) == (whole, type(whole)), text
        assert all(grows(one, whole) for one in seen), text


def reply(source: gw.ToolCalls, text: str) -> dict[str, Any]:
    """The value of a reply, as its growing value shows it."""
    found = source.parse(text)
    calls = [{"name": call.name, "arguments": call.json_arguments()} for call in found.calls]
    return {"text": found.text, "reasoning": found.reasoning, "calls": calls}


def has_open_reasoning(source: gw.ToolCalls, text: str, reasoning: str) -> bool:
    """Whether a reply without reasoning begins as reasoning does. It is then shown as reasoning while it grows."""
    begin, _ = source.family.thoughts or ("", "")
    return source.family.thoughts is not None and not reasoning and (text.lstrip() if begin else text).startswith(begin)


def compare(source: gw.ToolCalls, text: str, rng: random.Random) -> list[Any]:
    """Returns the growing values of a reply; raises where one is wrong."""
    whole = reply(source, text)
    seen, last = grown(source, divided(rng, text))
    assert last == whole, (source.family, text)
    if has_open_reasoning(source, text, whole["reasoning"]):
        return seen
    for one in seen:
        given = (source.family, text, one, whole)
        assert whole["text"].startswith(one["text"]), given
        assert whole["reasoning"].startswith(one["reasoning"]), given
        assert len(one["calls"]) <= len(whole["calls"]), given
        for call, expected in zip(one["calls"], whole["calls"], strict=False):
            assert call["name"] == expected["name"], given
            assert call["arguments"] is None or grows(call["arguments"], expected["arguments"]), given
    return seen


@counts(150, 3_000)
def test_replies_of_random_families(count: int) -> None:
    replies = 0
    for seed in range(count):
        rng = random.Random(seed)
        family = families.drawn(rng)
        tools = dict.fromkeys(rng.sample(["f", "g", "f.g", "functions.f"], rng.choice([1, 2, 3])), families.ARGUMENTS)
        choice, parallel = rng.choice(["auto", "auto", "required", "none"]), rng.choice([None, None, True, False])
        made = [gw.Tool(name, families.FLAG) for name in tools]
        source = gw.ToolCalls(made, family=family, choice=choice, parallel=parallel)
        automaton = byte_automaton(source.grammar())
        for text in sorted({families.written(rng, family, tools) for _ in range(20)}):
            if accepts(automaton, text):
                compare(source, text, rng)
                replies += 1
    assert replies > 2 * count


INSIDE = [
    "<tool_call>\n<function=now>\n",
    "<tool_call>now\n",
    "</function>",
    "</tool_call>",
    '{"name": "now", "',
    "[ARGS]",
]
INSIDE += [
    "[TOOL_CALLS]now[ARGS]{}",
    "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}",
    "</think>",
    "\n",
    "{",
    "</arg_value",
    "x",
]


def compare_parts(source: gw.ToolCalls, text: str, rng: random.Random) -> None:
    """Raises if the parts that the server sends while a reply grows differ from the reply."""
    whole, stream = source.parse(text), ReplyStream(source.family, has_calls=True)
    parts = [one for part in divided(rng, text) for one in stream.push(part)] + stream.finish()
    if stream.holds_calls or has_open_reasoning(source, text, whole.reasoning):
        return  # the calls are only in the result
    shown: dict[str, str] = {"text": "", "reasoning": ""}
    calls = [{"name": part.text, "arguments": ""} for part in parts if part.kind == "name"]
    for part in parts:
        if part.kind == "arguments":
            calls[part.call]["arguments"] += part.text
        elif part.kind != "name":
            shown[part.kind] += part.text
    assert shown["reasoning"] == whole.reasoning, (source.family, text)
    assert shown["text"] == (whole.text.lstrip("\n") if whole.reasoning else whole.text), (source.family, text)
    read = [(call["name"], json.loads(call["arguments"])) for call in calls]
    assert read == [(call.name, call.json_arguments()) for call in whole.calls], (source.family, text)


@counts(10, 300)
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_begun", [False, True])
def test_replies_of_known_families(name: str, is_begun: bool, count: int) -> None:
    """The arguments contain parts of calls. `is_begun`: the prompt ends with the text before the reasoning."""
    rng, family = random.Random(name), FAMILIES[name]
    begin, end = family.thoughts or ("", "")
    is_begun = is_begun and bool(family.thoughts) and not family.answer
    if is_begun:
        family = replace(family, thoughts=("", end))
    source = gw.ToolCalls(TOOLS, family=family)
    automaton = byte_automaton(source.grammar())
    found = shown = 0
    for _ in range(count):
        calls: list[Call] = [drawn_call(rng) for _ in range(rng.randrange(1, 4) if family.several else 1)]
        for called, arguments in calls:
            if called == "weather":
                arguments["city"] = "".join(rng.choices(INSIDE, k=rng.randrange(4)))
        text = rng.choice(["", "\n\n", "Let me see. "]) if family.trigger and not family.answer else ""
        if begin and family.trigger and not family.answer and rng.random() < 0.2:
            text = f" \n{begin}Hm{end}{text}"
        thoughts = rng.choice(["", "\nHm.\n"]) if family.thoughts else ""
        written = WRITERS[name](text, calls, thoughts)
        if is_begun and thoughts:
            written = written.removeprefix(begin)
        if accepts(automaton, written):
            found += 1
            shown += any(one["calls"] for one in compare(source, written, rng))
            compare_parts(source, written, rng)
    assert found >= count // 2
    assert shown >= found // (4 if is_begun else 2) or family.arguments == "python"


@pytest.mark.parametrize(
    "case", [case.values[0] for case in cases("tool_calls.toml")], ids=lambda case: case["reply"][:20]
)
def test_replies_in_other_spellings(case: dict[str, Any]) -> None:
    source = gw.ToolCalls(TOOLS, family=case["family"])
    seen, last = grown(source, list(case["reply"]))
    assert last == reply(source, case["reply"])
    assert all(len(one["calls"]) <= len(last["calls"]) for one in seen)


ANSWERS: list[Callable[[], Any]] = [
    lambda: gw.Regex(r"\n*[ab<]*"),
    lambda: gw.Regex(r"\n?a+"),
    lambda: gw.Regex(r"[ab]*"),
    lambda: gw.Regex(r"(?s).*"),
    lambda: gw.JsonSchema({"enum": ["a", "<", 1]}),
    lambda: gw.Reasoning(gw.Regex(r"\n*a"), begin="<b", end="b>", optional=True),
    lambda: gw.Tags([gw.Tag("<", "a", ">")]),
]


@counts(1_000, 30_000)
def test_reasoning(count: int) -> None:
    rng, matching = random.Random(3), 0
    for _ in range(count):
        begin, end = rng.choice(["<b", "<", "", "\n"]), rng.choice(["b>", "b", "\n", "aba"])
        source = gw.Reasoning(rng.choice(ANSWERS)(), begin=begin, end=end, optional=rng.random() < 0.5)
        inside = "".join(rng.choices("ab<>\n", k=rng.randrange(4)))
        breaks = "\n" * rng.choice([0, 0, 1, 2, 3])
        answer = rng.choice(["", "a", "b", "ab", '"a"', "1", "<a>", "<bb>a", '"<"'])
        text = rng.choice([begin + inside + end + breaks + answer, begin + inside + answer, answer, breaks + answer])
        try:
            reasoning, _ = source.parse(text)
        except InvalidTextError:
            continue
        matching += 1
        seen, last = grown(source, divided(rng, text))
        given = (source, begin, end, text, seen, last)
        assert last["reasoning"] == reasoning, given
        answers = [one["answer"] for one in seen if one["answer"] is not None]
        if isinstance(source.answer, gw.Regex):
            assert (last["answer"] or "") == source.split(text)[1], given
            assert all(last["answer"].startswith(one) for one in answers), given
        elif isinstance(source.answer, gw.JsonSchema):
            assert last["answer"] == json.loads(source.split(text)[1]), given
            assert all(grows(one, last["answer"]) for one in answers), given
        if reasoning:
            assert all(reasoning.startswith(one["reasoning"]) for one in seen), given
    assert matching > count // 4


@pytest.mark.parametrize("family", FAMILIES)
def test_white_space_between_calls_takes_linear_time(family: str) -> None:
    call, source = WRITERS[family]("", [("now", {})]), gw.ToolCalls(TOOLS, family=family)
    names = [] if FAMILIES[family].arguments == "python" else ["now"]
    for parts in ([call, " " * 100_000, "!"], [call, *[" "] * 20_000, "!"]):
        progress = progress_of(source)
        for part in parts:
            progress.push(part)
        assert [one["name"] for one in progress.data["calls"]] == names
