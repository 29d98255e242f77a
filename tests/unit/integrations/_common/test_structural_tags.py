"""Structural tags: each field of the format accepts and rejects a text; unknown and mistyped fields are errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

import guideway as gw
from guideway.constraints import of
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.integrations._common.requests import requested
from guideway.integrations._common.structural_tags import _FORMATS, _UNSUPPORTED, DEPTH

SPECIAL = 257
TOKENS = [*(bytes([byte]) for byte in range(256)), b"", b"<|end|>"]
TABLE = gw.Vocabulary(TOKENS, eos_ids=[256], special_ids=[256, SPECIAL])


def made(content: object) -> Any:
    return of(requested("structural_tag", json.dumps({"type": "structural_tag", "format": content})))


def fits(constraint: object, text: str) -> bool:
    """Return whether a constraint accepts a text. "§" is the special token."""
    tokens = [SPECIAL if char == "§" else byte for char in text for byte in (char.encode() if char != "§" else b"x")]
    matcher = gw.compile(constraint, TABLE).matcher()
    return matcher.validate([*tokens, 256]) == len(tokens) + 1


def text(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


ANY = {"type": "any_text"}
CALL = {
    "type": "tag",
    "begin": "<f=a>",
    "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
    "end": "</f>",
}
OTHER = {"type": "tag", "begin": "<f=b>", "content": text("x"), "end": "</f>"}
TRIGGERED = {"type": "triggered_tags", "triggers": ["<f="], "tags": [CALL, OTHER]}
SEPARATED = {"type": "tags_with_separator", "tags": [CALL], "separator": ", "}
DISPATCH = {"type": "dispatch", "rules": [["<a>", text("1")], ["<b>", text("2")]]}
TOKEN = {"type": "token", "token": "<|end|>"}

FIELDS: list[tuple[str, str, dict[str, Any], str, str]] = [
    ("const_string", "type", text("ab"), "ab", ""),
    ("const_string", "value", text("ab"), "ab", "abc"),
    ("json_schema", "type", {"type": "json_schema", "json_schema": True}, "3", "x"),
    ("json_schema", "json_schema", {"type": "json_schema", "json_schema": {"type": "integer"}}, "3", '"a"'),
    ("json_schema", "style", {"type": "json_schema", "json_schema": {"const": 1}, "style": "json"}, "1", "2"),
    (
        "json_schema",
        "any_order",
        {
            "type": "json_schema",
            "json_schema": {"properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"]},
            "any_order": False,
        },
        '{"a": 1, "b": 2}',
        '{"b": 2, "a": 1}',
    ),
    (
        "json_schema",
        "max_whitespace_cnt",
        {"type": "json_schema", "json_schema": {"const": [1]}, "max_whitespace_cnt": None},
        "[1]",
        "[2]",
    ),
    (
        "json_schema",
        "excludes",
        {"type": "json_schema", "json_schema": {"const": [1]}, "excludes": []},
        "[1]",
        "[2]",
    ),
    ("grammar", "type", {"type": "grammar", "grammar": 'root ::= "x" root | "y"'}, "xxy", "xx"),
    ("grammar", "grammar", {"type": "grammar", "grammar": 'start: "x" start | "y"'}, "xxy", "yx"),
    ("regex", "type", {"type": "regex", "pattern": "a+"}, "aa", ""),
    ("regex", "pattern", {"type": "regex", "pattern": "a+"}, "a", "b"),
    ("any_text", "type", {**ANY, "max_chars": 1}, "\n", "ab"),
    ("any_text", "excludes", {**ANY, "excludes": ["no", "x.y"]}, "n o xay", "an x.y"),
    ("any_text", "max_tokens", {**ANY, "max_tokens": None, "excludes": ["x"]}, "a" * 50, "x"),
    ("any_text", "max_chars", {**ANY, "max_chars": 4}, "äöü€", "abcde"),
    ("sequence", "type", {"type": "sequence", "elements": [text("a"), text("b")]}, "ab", "a"),
    ("sequence", "elements", {"type": "sequence", "elements": [text("a"), text("b")]}, "ab", "ba"),
    ("or", "type", {"type": "or", "elements": [text("a"), text("b")]}, "a", "ab"),
    ("or", "elements", {"type": "or", "elements": [text("a"), text("b")]}, "b", "c"),
    ("optional", "type", {"type": "optional", "content": text("a")}, "", "aa"),
    ("optional", "content", {"type": "optional", "content": text("a")}, "a", "b"),
    ("plus", "type", {"type": "plus", "content": text("ab")}, "abab", ""),
    ("plus", "content", {"type": "plus", "content": text("ab")}, "ab", "aba"),
    ("star", "type", {"type": "star", "content": text("ab")}, "", "a"),
    ("star", "content", {"type": "star", "content": CALL}, "<f=a>1</f><f=a>2</f>", "<f=a>1</f>,"),
    ("repeat", "type", {"type": "repeat", "min": 1, "max": 2, "content": text("a")}, "a", "aaa"),
    ("repeat", "min", {"type": "repeat", "min": 2, "max": -1, "content": text("a")}, "aaaaa", "a"),
    ("repeat", "max", {"type": "repeat", "min": 0, "max": 2, "content": text("a")}, "", "aaa"),
    ("repeat", "content", {"type": "repeat", "min": 0, "max": 0, "content": text("a")}, "", "a"),
    ("tag", "type", CALL, "<f=a>12</f>", "12"),
    ("tag", "begin", {**CALL, "begin": "["}, "[1</f>", "<f=a>1</f>"),
    ("tag", "begin", {**CALL, "begin": TOKEN}, "§1</f>", "<|end|>1</f>"),
    ("tag", "content", {**CALL, "content": {**ANY, "excludes": ["no"]}}, "<f=a>n o</f>", "<f=a>no</f>"),
    ("tag", "end", {**CALL, "content": ANY, "end": [")", "]"]}, "<f=a>x]", "<f=a>)x]"),
    ("tag", "end", {**CALL, "content": ANY, "end": {"type": "token", "token": SPECIAL}}, "<f=a>)x§", "<f=a>§x§"),
    ("triggered_tags", "type", TRIGGERED, "free <f=a>1</f> <f=b>x</f> text <f", "<f="),
    ("triggered_tags", "triggers", {**TRIGGERED, "triggers": ["<f=a", "<f=b"]}, "<f=c> <f=a>1</f>", "<f=a> "),
    ("triggered_tags", "tags", {**TRIGGERED, "tags": [CALL]}, "<f=a>1</f>", "<f=b>x</f>"),
    ("triggered_tags", "at_least_one", {**TRIGGERED, "at_least_one": True}, "<f=a>1</f> y", "x <f=a>1</f>"),
    ("triggered_tags", "stop_after_first", {**TRIGGERED, "stop_after_first": True}, "x <f=a>1</f>", "<f=a>1</f> y"),
    ("triggered_tags", "excludes", {**TRIGGERED, "excludes": ["no"]}, "n o<f=a>1</f>", "<f=a>1</f>no"),
    ("tags_with_separator", "type", SEPARATED, "", "x"),
    ("tags_with_separator", "tags", SEPARATED, "<f=a>1</f>", "<f=b>x</f>"),
    ("tags_with_separator", "separator", SEPARATED, "<f=a>1</f>, <f=a>2</f>", "<f=a>1</f>,<f=a>2</f>"),
    ("tags_with_separator", "separator", {**SEPARATED, "separator": ""}, "<f=a>1</f><f=a>2</f>", "<f=a>1</f>, "),
    ("tags_with_separator", "at_least_one", {**SEPARATED, "at_least_one": True}, "<f=a>1</f>", ""),
    (
        "tags_with_separator",
        "stop_after_first",
        {**SEPARATED, "stop_after_first": True},
        "<f=a>1</f>",
        "<f=a>1</f>, <f=a>2</f>",
    ),
    ("dispatch", "type", DISPATCH, "no rule <a", "<a>2"),
    ("dispatch", "rules", DISPATCH, "x<a>1y<b>2<a>1", "x<a>1y<b>1"),
    ("dispatch", "loop", {**DISPATCH, "loop": False}, "x<a>1", "x<a>1y"),
    ("dispatch", "excludes", {**DISPATCH, "excludes": ["no"]}, "n o<a>1", "<a>1no"),
    ("token", "type", TOKEN, "§", "<|end|>"),
    ("token", "token", {"type": "token", "token": SPECIAL}, "§", "§§"),
]


@pytest.mark.parametrize(("kind", "field", "content", "good", "bad"), FIELDS)
def test_fields(kind: str, field: str, content: dict[str, Any], good: str, bad: str) -> None:
    assert content["type"] == kind
    assert field in content
    constraint = made(content)
    assert fits(constraint, good)
    assert not fits(constraint, bad)


def test_every_field_of_every_format_has_a_case() -> None:
    listed = {(kind, name) for kind, (fields, _) in _FORMATS.items() for name in ("type", *fields)}
    assert {(kind, field) for kind, field, *_ in FIELDS} == listed


@pytest.mark.parametrize("kind", [*_FORMATS, *_UNSUPPORTED])
def test_unknown_fields_are_refused(kind: str) -> None:
    content = next((case[2] for case in FIELDS if case[0] == kind), {"type": kind})
    with pytest.raises(ConstraintError) as caught:
        made({**content, "colour": "red"})
    assert caught.value.place == "/format"
    if kind in _FORMATS:
        assert isinstance(caught.value, InvalidConstraintError)
        assert "unknown field 'colour'" in str(caught.value)


WRONG = {
    "value": [3, None],
    "json_schema": ["{}", [], None, 3],
    "grammar": [3, None],
    "pattern": [3, None],
    "excludes": ["no", [3], [""], None],
    "max_chars": [-1, "4", 1.5, True, 2**31],
    "elements": [[], "a", None, [3]],
    "content": ["a", None, [], {"type": "paragraph"}, {"value": "a"}],
    "min": [-1, None, 1.0, True, 3],
    "max": [-2, None, "2", False],
    "begin": [3, None, ["<"], {"type": "any_text"}],
    "end": [3, None, [], [3], {"type": "token"}],
    "triggers": ["<", [], [""], [3], ["<f=", "<f="], ["<f=", "<g="], ["<f=", "f="], ["<g="]],
    "tags": [{}, [], [3], [{"type": "or", "elements": []}], [{**CALL, "name": "f"}], [{**CALL, "begin": TOKEN}]],
    "at_least_one": [1, "true", None],
    "stop_after_first": [0, "", None],
    "separator": [3, None],
    "rules": [{}, [], [["<a>"]], [["", text("1")]], [[3, text("1")]], [["<a>", text("1")], ["a", text("1")]]],
    "loop": [1, None],
    "token": [-1, 1.5, "", None, True],
    "type": ["paragraph", None, 3],
}


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (kind, name, value)
        for kind, (fields, _) in _FORMATS.items()
        for name in ("type", *fields)
        for value in WRONG.get(name, [])
        if (kind, name) != ("tags_with_separator", "tags") or value != [{**CALL, "begin": TOKEN}]
    ],
)
def test_mistyped_fields_are_refused(kind: str, field: str, value: object) -> None:
    content = next(case[2] for case in FIELDS if case[:2] == (kind, field))
    if (kind, field) == ("repeat", "min"):
        content = {**content, "max": 2}
    with pytest.raises(ConstraintError) as caught:
        of(made({**content, field: value})).grammar()
    assert (caught.value.place or "").startswith("/format")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        *(({"type": kind}, "/format") for kind in _UNSUPPORTED),
        ({"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}, "/format/style"),
        ({"type": "json_schema", "json_schema": {}, "any_order": True}, "/format/any_order"),
        ({"type": "json_schema", "json_schema": {}, "max_whitespace_cnt": 2}, "/format/max_whitespace_cnt"),
        ({"type": "json_schema", "json_schema": {}, "excludes": ["</call>"]}, "/format/excludes"),
        ({"type": "tag", "begin": "<", "content": {**ANY, "max_tokens": 3}, "end": ">"}, "/format/content/max_tokens"),
        ({"type": "sequence", "elements": [{"type": "any_tokens"}]}, "/format/elements/0"),
    ],
)
def test_unsupported_formats_and_fields_have_a_place(content: object, place: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        made(content)
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ([], ""),
        ({}, ""),
        ({"type": "regex", "format": text("a")}, "/type"),
        ({"type": 3, "format": text("a")}, "/type"),
        ({"format": text("a"), "name": "x"}, ""),
        ({"format": text("a"), "triggers": ["<"]}, ""),
        ({"structures": [], "triggers": ["<"]}, "/tags"),
        ({"structures": 3, "triggers": ["<"]}, "/structures"),
        ({"structures": [{"begin": "<a>", "end": "</a>"}], "triggers": ["<"]}, "/structures/0"),
        ({"structures": [{"begin": "<a>", "schema": "{}", "end": "</a>"}], "triggers": ["<"]}, "/structures/0/schema"),
        ({"structures": [{"begin": "<a>", "schema": {}, "end": "", "x": 1}], "triggers": ["<"]}, "/structures/0"),
        ({"structures": [{"begin": "<a>", "schema": {}, "end": ""}], "triggers": "<"}, "/triggers"),
    ],
)
def test_outer_fields(spec: object, place: str) -> None:
    with pytest.raises(InvalidConstraintError) as caught:
        requested("structural_tag", json.dumps(spec))
    assert caught.value.place == place


@pytest.mark.parametrize("value", [None, 1, {}])
@pytest.mark.parametrize(
    "others", [{"format": ANY}, {"structures": [{"begin": "<f=", "schema": {}}], "triggers": ["<f="]}]
)
def test_unknown_outer_fields_are_refused_even_if_they_are_null(others: dict[str, Any], value: object) -> None:
    spec = {"type": "structural_tag", **others}
    of(requested("structural_tag", json.dumps(spec)))
    of(requested("structural_tag", json.dumps({"format": None, "structures": None, "triggers": None} | spec)))
    with pytest.raises(InvalidConstraintError, match="unknown field 'formats'") as found:
        requested("structural_tag", json.dumps({**spec, "formats": value}))
    assert found.value.place == ""


@pytest.mark.parametrize(
    "given",
    [
        '{"format": {"type": "any_text"}, "format": {"type": "const_string", "value": "a"}}',
        '{"format": {"type": "const_string", "value": "a", "value": "b"}}',
        '{"format": {"type": "json_schema", "json_schema": {"type": "object", "type": "array"}}}',
    ],
)
def test_repeated_keys_are_refused(given: str) -> None:
    with pytest.raises(InvalidConstraintError, match=r"the key '(format|value|type)' is repeated"):
        requested("structural_tag", given)


def test_deep_texts_are_refused() -> None:
    with pytest.raises(LimitExceededError, match="nested deeper than"):
        requested("structural_tag", '{"format":' * 10_000 + "0" + "}" * 10_000)


def test_older_form() -> None:
    structures = [{"begin": "<f=a>", "schema": {"type": "integer"}, "end": "</f>"}]
    spec = {"type": "structural_tag", "structures": structures, "triggers": ["<f="]}
    constraint = requested("structural_tag", json.dumps(spec))
    for good in ("", "free", "so <f=a>12</f> it is <f=a>1</f>"):
        assert fits(constraint, good)
    for bad in ("<f=", "<f=b>12</f>", "<f=a>x</f>"):
        assert not fits(constraint, bad)


@pytest.mark.parametrize(
    ("content", "good", "bad"),
    [
        (ANY, "a", "a>b"),
        ({**ANY, "excludes": ["no"]}, "a", "a>b"),
        ({"type": "sequence", "elements": [text("("), ANY]}, "(a", "(a>b"),
        ({"type": "or", "elements": [{"type": "optional", "content": ANY}, text(">>")]}, ">>", ">>>"),
        ({"type": "repeat", "min": 1, "max": 2, "content": ANY}, "a", "a>b"),
        (
            {**TRIGGERED, "triggers": ["[f"], "tags": [{**CALL, "begin": "[f]", "end": "[/f]"}]},
            "a[f]1[/f]",
            "a>[f]1[/f]",
        ),
        ({"type": "dispatch", "rules": [["[a]", ANY]], "loop": False}, "a>b[a]c", "a[a]b>c"),
        ({"type": "tag", "begin": "[", "content": ANY, "end": "]"}, "[a>b]", "[a]b]"),
    ],
)
def test_the_end_of_the_nearest_tag_is_kept_out_of_free_text(content: object, good: str, bad: str) -> None:
    constraint = made({"type": "tag", "begin": "<", "content": content, "end": ["", ">"]})
    assert fits(constraint, f"<{good}>")
    assert not fits(constraint, f"<{bad}>")


def test_contradictory_markers_are_refused() -> None:
    with pytest.raises(InvalidConstraintError, match="contains the excluded text"):
        made({**TRIGGERED, "excludes": ["<f"]})
    with pytest.raises(InvalidConstraintError, match="exactly one trigger"):
        made({**TRIGGERED, "triggers": ["<f=", "<f=a"]})


def test_formats_nest_within_bounds() -> None:
    content: object = text("x")
    for _ in range(DEPTH):
        content = {"type": "sequence", "elements": [content]}
    assert fits(made(content), "x")
    with pytest.raises(LimitExceededError, match="deep"):
        made({"type": "sequence", "elements": [content]})
