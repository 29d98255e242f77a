"""Constraints in requests of servers: kinds, texts, and both forms of structural tags."""

from __future__ import annotations

import json

import pytest

import guideway as gw
from guideway.constraints import of
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.integrations._common.requests import KINDS, requested
from guideway.integrations._common.structural_tags import DEPTH

TABLE = gw.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos_ids=[256])


def fits(constraint: object, text: str) -> bool:
    tokens = list(text.encode())
    matcher = gw.compile(constraint, TABLE).matcher()
    return matcher.validate([*tokens, 256]) == len(tokens) + 1


@pytest.mark.parametrize(
    ("kind", "spec", "good", "bad"),
    [
        ("json", '{"type": "integer"}', "12", '"a"'),
        ("json", {"type": "integer"}, "12", '"a"'),
        ("json", "true", "null", "nul"),
        ("json", gw.Regex("a+"), "aa", "b"),
        ("json_object", "", '{"a": [1]}', "[1]"),
        ("json_object", True, "{}", "1"),
        ("regex", r"\d{2}", "12", "123"),
        ("choice", '["red", "green"]', "green", "gree"),
        ("choice", ["red", "green"], "red", "blue"),
        ("grammar", 'root ::= "a" root | "b"', "aab", "aa"),
        ("grammar", 'start: "a" start | "b"', "aab", "aa"),
    ],
)
def test_kinds(kind: str, spec: object, good: str, bad: str) -> None:
    constraint = requested(kind, spec)
    assert fits(constraint, good)
    assert not fits(constraint, bad)


def test_recent_requests_are_cached() -> None:
    for kind, spec in (("regex", "a{3}b"), ("grammar", 'root ::= "xy"'), ("choice", '["p", "q"]')):
        assert requested(kind, spec) is requested(kind, spec)
        assert gw.compile(requested(kind, spec), TABLE) is gw.compile(requested(kind, spec), TABLE)
    schema = json.dumps({"properties": {"a": {"const": 1}}})
    assert gw.compile(requested("json", schema), TABLE) is gw.compile(requested("json", schema), TABLE)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("json", "{"),
        ("json", "[" * 100_000),
        ("json", "3"),
        ("json_object", False),
        ("regex", "a("),
        ("choice", "[]"),
        ("choice", "[1]"),
        ("choice", '"abc"'),
        ("choice", '{"a": 1}'),
        ("regex", 3),
        ("grammar", "root ::= nothing"),
        ("grammar", ""),
        ("structural_tag", "[]"),
        ("structural_tag", '{"structures": 3, "triggers": []}'),
        ("structural_tag", '{"structures": [{"begin": "<a>"}], "triggers": ["<"]}'),
        ("structural_tag", '{"format": {"type": "regex"}}'),
        ("structural_tag", '{"format": {"type": "any_text", "max_chars": -1}}'),
        ("structural_tag", '{"format": {"type": "any_text", "max_chars": "x"}}'),
        ("yaml", "a: b"),
    ],
)
def test_errors_are_typed(kind: str, spec: object) -> None:
    with pytest.raises(ConstraintError):
        of(requested(kind, spec)).grammar()


def test_kinds_are_those_of_vllm() -> None:
    assert set(KINDS) == {"json", "json_object", "regex", "choice", "grammar", "structural_tag"}


OLD = {
    "type": "structural_tag",
    "structures": [{"begin": "<f=a>", "schema": {"type": "integer"}, "end": "</f>"}],
    "triggers": ["<f="],
}
CALL = {
    "type": "tag",
    "begin": "<f=a>",
    "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
    "end": "</f>",
}


def tag(content: object) -> str:
    return json.dumps({"type": "structural_tag", "format": content})


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        (json.dumps(OLD), ["", "free", "so <f=a>12</f> it is <f=a>1</f>"], ["<f=", "<f=b>12</f>", "<f=a>x</f>"]),
        (tag(CALL), ["<f=a>12</f>"], ["", "x<f=a>12</f>", "<f=a>12</f><f=a>12</f>"]),
        (
            tag({"type": "triggered_tags", "triggers": ["<f="], "tags": [CALL], "at_least_one": True}),
            ["<f=a>1</f>", "x <f=a>1</f> y"],
            ["", "x", "<f=a>x</f>"],
        ),
        (
            tag({"type": "triggered_tags", "triggers": ["<f="], "tags": [CALL], "stop_after_first": True}),
            ["x", "<f=a>1</f>"],
            ["<f=a>1</f><f=a>1</f>"],
        ),
        (
            tag({"type": "tags_with_separator", "separator": ", ", "tags": [CALL], "at_least_one": True}),
            ["<f=a>1</f>, <f=a>2</f>"],
            ["", "<f=a>1</f>,<f=a>2</f>"],
        ),
        (
            tag(
                {
                    "type": "sequence",
                    "elements": [
                        {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
                        {"type": "or", "elements": [{"type": "const_string", "value": "no"}, CALL]},
                    ],
                }
            ),
            ["<think>hm < ok</think>no", "<think></think><f=a>3</f>"],
            ["no", "<think>a</think>b</think>no", "<think>x"],
        ),
        (tag({"type": "tag", "begin": "(", "content": CALL, "end": [")", "]"]}), ["(<f=a>1</f>]"], ["(<f=a>1</f>}"]),
        (tag({"type": "regex", "pattern": "a+"}), ["aa"], ["", "b"]),
        (tag({"type": "grammar", "grammar": 'root ::= "x"'}), ["x"], ["y"]),
        (tag({"type": "any_text", "excludes": ["no"], "max_chars": 4}), ["", "yes"], ["no", "anno", "abcde"]),
    ],
)
def test_structural_tags(spec: str, good: list[str], bad: list[str]) -> None:
    constraint = requested("structural_tag", spec)
    for text in good:
        assert fits(constraint, text), text
    for text in bad:
        assert not fits(constraint, text), text


STYLED = {"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"type": "token", "token": 3}, "/format"),
        ({"type": "sequence", "elements": [{"type": "any_tokens"}]}, "/format/elements/0"),
        ({"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": {"type": "token"}}, "/format/end"),
        ({"type": "tag", "begin": "<", "content": STYLED, "end": ">"}, "/format/content"),
    ],
)
def test_structural_tags_that_are_not_supported_say_where(content: object, place: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        requested("structural_tag", tag(content))
    assert caught.value.place == place


def test_structural_tags_nest_within_bounds() -> None:
    content: object = {"type": "const_string", "value": "x"}
    for _ in range(DEPTH + 1):
        content = {"type": "sequence", "elements": [content]}
    with pytest.raises(LimitExceededError, match="deep"):
        requested("structural_tag", tag(content))


def test_names_of_types_in_errors() -> None:
    with pytest.raises(InvalidConstraintError, match="json_object"):
        requested("xml", "")
