"""UnsatisfiableError schemas: the error names the conflicting keywords."""

from __future__ import annotations

from typing import Any

import pytest

import guideway as gw
from guideway.constraints import json_schema
from guideway.frontends.json_schema.dnf import Expander
from guideway.frontends.json_schema.report import MAX_TRIAL_WORK
from tests.helpers.byte_tokens import BYTES
from tests.helpers.hostile_constraints import SCHEMAS

TWO_LENGTHS = {"type": "string", "minLength": 5, "maxLength": 3, "pattern": "a"}


@pytest.mark.parametrize("profile", ["exact", "generation"])
@pytest.mark.parametrize(
    ("schema", "place", "named"),
    [
        (TWO_LENGTHS, "", "/type, /minLength and /maxLength"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}, {"minLength": 3}]}, "", "/allOf/0/type and /allOf/1/type"),
        ({"type": "string", "pattern": "^a$", "const": "b"}, "", "/pattern ('^a$') and /const"),
        ({"type": ["string", "null"], "not": {}}, "", "/not"),
        (
            {"type": "object", "properties": {"b": {}, "a": False}, "required": ["a"]},
            "",
            "/type, /required and /properties/a",
        ),
        (
            {"type": "object", "properties": {"b": {}, "a/b": TWO_LENGTHS}, "required": ["b", "a/b"]},
            "/properties/a~1b",
            "/properties/a~1b/type, /properties/a~1b/minLength and /properties/a~1b/maxLength",
        ),
        (
            {"type": "array", "items": {"enum": [1, 2]}, "minItems": 3, "uniqueItems": True, "maxItems": 7},
            "",
            "/type, /minItems, /uniqueItems and /items/enum",
        ),
    ],
)
def test_the_keywords_that_cannot_be_met_together(profile: Any, schema: Any, place: str, named: str) -> None:
    for constraint in (gw.JsonSchema(schema, profile=profile), schema):
        with pytest.raises(gw.errors.UnsatisfiableError) as caught:
            gw.compile(constraint, BYTES)
        assert caught.value.place == place
        assert str(caught.value).endswith(f"no value satisfies {named}")


def test_large_schemas_are_not_searched() -> None:
    many = {f"p{n}": {"type": "string", "minLength": n} for n in range(600)}
    with pytest.raises(gw.errors.UnsatisfiableError) as caught:
        gw.compile(gw.JsonSchema({"properties": many, "type": "object", "minProperties": 2, "maxProperties": 1}), BYTES)
    assert str(caught.value) == "no text can fit the constraint (at the whole schema)"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Expander]:
    """The expanders of the trial deletions that follow."""
    found: list[Expander] = []

    class Counted(Expander):
        def __init__(self, documents: Any, most_work: int | None = None) -> None:
            super().__init__(documents, most_work)
            if most_work is not None:
                found.append(self)

    monkeypatch.setattr(json_schema, "Expander", Counted)
    return found


def test_the_search_has_a_bound_of_work(trials: list[Expander]) -> None:
    with pytest.raises(gw.errors.UnsatisfiableError):
        gw.compile(gw.JsonSchema(SCHEMAS["definitions that double, oneOf"]), BYTES)
    assert trials
    assert sum(one.work for one in trials) < 1.1 * MAX_TRIAL_WORK


def test_the_search_counts_divisions_of_objects(trials: list[Expander], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "MAX_TRIAL_UNITS", 10_000_000)
    with pytest.raises(gw.errors.UnsatisfiableError):
        gw.compile(gw.JsonSchema(SCHEMAS["dependent schemas in a chain"], profile="exact"), BYTES)
    assert 1 <= len(trials) < 10
