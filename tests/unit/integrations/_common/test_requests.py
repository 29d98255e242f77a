"""Constraints in requests of servers: kinds, texts, and both forms of structural tags."""

from __future__ import annotations

import json

import pytest

import guideway as gw
from guideway.constraints import of
from guideway.errors import ConstraintError, InvalidConstraintError
from guideway.integrations._common.requests import KINDS, requested
from tests.helpers.byte_tokens import BYTES, accepts


def fits(constraint: object, text: str) -> bool:
    return accepts(gw.compile(constraint, BYTES), text)


VERBATIM = gw.JsonSchema({"type": "string", "format": "verbatim"}).quoting("Ada Byron")
ACCEPTED = [
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
    ("grammar", json.dumps(gw.to_wire(VERBATIM)), '"Ada"', '"Ad"'),
    ("json", VERBATIM, '"Byron"', '"Bob"'),
]


@pytest.mark.parametrize(("kind", "spec", "good", "bad"), ACCEPTED)
def test_kinds(kind: str, spec: object, good: str, bad: str) -> None:
    constraint = requested(kind, spec)
    assert fits(constraint, good)
    assert not fits(constraint, bad)


def test_every_kind_has_an_example() -> None:
    """tests/wheels compares the kinds with those of vLLM."""
    assert set(KINDS) == {kind for kind, *_ in ACCEPTED} | {"structural_tag"}  # test_structural_tags.py


def test_recent_requests_are_cached() -> None:
    for kind, spec in (("regex", "a{3}b"), ("grammar", 'root ::= "xy"'), ("choice", '["p", "q"]')):
        assert requested(kind, spec) is requested(kind, spec)
        assert gw.compile(requested(kind, spec), BYTES) is gw.compile(requested(kind, spec), BYTES)
    schema = json.dumps({"properties": {"a": {"const": 1}}})
    assert gw.compile(requested("json", schema), BYTES) is gw.compile(requested("json", schema), BYTES)


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


def test_names_of_types_in_errors() -> None:
    with pytest.raises(InvalidConstraintError, match="json_object"):
        requested("xml", "")
