"""`ToolCalls` with random families compared with a recogniser that is written from the documentation of `Family`."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import guideway as gw
from guideway.constraints.tools import FAMILIES, Family
from guideway.grammar.recognizer import accepts, byte_automaton

Tools = dict[str, list[str]]
"""The texts of the arguments that each tool allows."""

MARKERS = ["<c>", "</c>", "[", "]", "::", "|", "", "", "<<", "=>", ";", ")"]
THOUGHTS = [("<think>", "</think>"), ("<t>", "aba"), ("{", "{{}"), ("", "/t>"), ("{{", "}}}")]
FLAG = {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False}
ARGUMENTS = ["{}", '{"a": true}', '{"a": false}']


def drawn(rng: random.Random) -> Family:
    """A family whose texts consist of short markers; its calls are JSON objects, or names before JSON arguments."""
    closing = rng.choice(["", "]", "</c>"])
    opening, separator = rng.choice(["", "", "[", "<cs>"]), rng.choice(["", ";", "\n", ", ", "|"])
    lead = rng.choice(["", "", "", "!", "\n", "lead "])
    is_object = rng.random() < 0.3
    if is_object:
        prefix, middle = rng.choice(["", "<c>\n", "("]) + '{"name": "', '", "arguments": '
        suffix = "}" + rng.choice(["", "</c>", "\n</c>"])
        ids = [(', "id": "', '"')]
    else:
        prefix, middle = rng.choice([*MARKERS, "<f="]), rng.choice([" ", "=>", "\n", "[A]", "\n```json\n"])
        suffix, ids = rng.choice([*MARKERS, "\n"]), [("#", ""), ("[ID]", ""), (" #", "#")]
    head = opening or prefix
    trigger = head[: rng.choice([len(head), len(head), 1])] if rng.random() < 0.7 else ""
    begins = "" if trigger else rf"(?:{re.escape(lead)})?\s*" + (re.escape(head) or "[fg]")
    thoughts = rng.choice(THOUGHTS) if rng.random() < 0.4 else None
    return Family(
        prefix,
        middle,
        suffix,
        trigger,
        opening,
        separator,
        closing,
        begins,
        lead,
        rng.choice(ids) if rng.random() < 0.3 else None,
        several=rng.random() < 0.8,
        thoughts=thoughts if thoughts and not (trigger and trigger in "".join(thoughts) * 2) else None,
    )


def replies(text: str, family: Family, tools: Tools, choice: str, several: bool) -> bool:
    """Whether the text is a reply, with or without reasoning before it."""
    starts = [0]
    if family.thoughts is not None and text.startswith(family.thoughts[0]):
        before, after = family.thoughts
        end = text.find(after, len(before))
        if end >= 0 and not (family.answer and family.trigger in text[len(before) : end]):
            starts.append(end + len(after))
    called = {name: tools[name] for name in tools if choice in ("auto", "required", name)}
    if choice in ("auto", "none"):
        for start in starts:
            answer = text[start:].removeprefix(family.answer)
            if family.trigger:
                free = family.trigger not in answer and text.startswith(family.answer, start)
            else:
                free = not any(re.match(family.begins, text[one:]) for one in starts if one >= start)
            if free:
                return True
    for start in starts:
        rest = text[start:]
        if choice == "auto" and family.trigger and not family.answer:
            at = rest.find(family.trigger)
            found = at >= 0 and calls(rest[at:], family, called, several)
        else:
            leads = {rest, rest.removeprefix(family.lead)}
            found = any(calls(one, family, called, several) for one in leads)
        if found:
            return True
    return False


def calls(text: str, family: Family, tools: Tools, several: bool) -> bool:
    """Whether the text is `opening`, calls and `closing`."""
    todo = list(call(text, 0, family.opening + family.prefix, family, tools))
    ends = set(todo)
    while todo and several:
        after = set(call(text, todo.pop(), family.separator + family.prefix, family, tools)) - ends
        ends |= after
        todo += after
    return any(text[end:] == family.closing for end in ends)


def call(text: str, at: int, before: str, family: Family, tools: Tools) -> Iterator[int]:
    """Yield where a call can end that begins with `before` at the position `at`."""
    first, last = (re.escape(one) for one in family.call_id or ("", ""))
    call_id = f"(?:{first}[A-Za-z0-9]{{9}}{last})?" if family.call_id else ""
    for name, texts in tools.items():
        for arguments in texts:
            fixed = [re.escape(one) for one in (before + name, family.middle + arguments, family.suffix)]
            parts = (fixed[0], fixed[1], call_id, fixed[2]) if family.is_object else (fixed[0], call_id, *fixed[1:])
            found = re.compile("".join(parts)).match(text, at)
            if found is not None:
                yield found.end()


def written(rng: random.Random, family: Family, tools: Tools) -> str:
    """A text that is a reply, or nearly one."""
    after = (family.thoughts or ("", ""))[1]
    pieces = ["a", "b", "<", " ", family.trigger[:-1], family.trigger[1:], family.lead, after[:-1], after[1:]]

    def free() -> str:
        return "".join(rng.choices(pieces, k=rng.randrange(4)))

    made = (family.thoughts[0] + free() + after) if family.thoughts and rng.random() < 0.5 else ""
    made += rng.choice(["", free()]) + rng.choice(["", "", family.lead])
    if rng.random() < 0.85:
        found = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            name = rng.choice(list(tools))
            first, last = family.call_id or ("", "")
            given = first + "abcdefgh1" + last if first and rng.random() < 0.5 else ""
            one, other = ("", given) if family.is_object else (given, "")
            found.append(family.prefix + name + one + family.middle + rng.choice(tools[name]) + other + family.suffix)
        made += family.opening + family.separator.join(found) + family.closing
    if rng.random() < 0.3:
        at = rng.randrange(len(made) + 1)
        made = made[:at] + rng.choice(["", "a", "<", family.trigger, family.prefix]) + made[at + rng.randrange(2) :]
    return made


def compare(seed: int, texts: int) -> int:
    """Returns the number of replies among the texts; raises where the verdicts differ or a reply is not parsed."""
    rng = random.Random(seed)
    known = [family for family in FAMILIES.values() if family.arguments == "json"]
    family = rng.choice(known) if rng.random() < 0.2 else drawn(rng)
    schemas: dict[str, tuple[dict[str, Any], list[str]]] = {
        "f": (FLAG, ARGUMENTS),
        "g": ({**FLAG, "required": ["a"]}, ARGUMENTS[1:]),
        "f.g": (FLAG, ARGUMENTS),
    }
    names = rng.sample(list(schemas), rng.choice([1, 2, 2]))
    tools = {name: schemas[name][1] for name in names}
    choice, parallel = rng.choice(["auto", "auto", "required", "none", *names]), rng.choice([None, None, True, False])
    made = [gw.Tool(name, schemas[name][0]) for name in names]
    source = gw.ToolCalls(made, family=family, choice=choice, parallel=parallel)
    several = family.several and (choice not in names if parallel is None else parallel)
    automaton = byte_automaton(source.grammar())
    count = 0
    for text in {written(rng, family, tools) for _ in range(texts)}:
        expected = replies(text, family, tools, choice, several)
        assert accepts(automaton, text) == expected, (family, names, choice, parallel, text)
        if expected:
            source.parse(text)
            count += 1
    return count


def test_random_families() -> None:
    assert sum(compare(seed, 20) for seed in range(150)) > 1000


@pytest.mark.slow
def test_many_random_families() -> None:
    assert sum(compare(seed, 30) for seed in range(1_000, 6_000)) > 40_000
