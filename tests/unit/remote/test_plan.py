"""Plans: what is sent, what is checked here, and what is refused. No network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.remote import capabilities, dialects, planning
from guideway.remote.capabilities import guessed_dialect
from guideway.remote.sizes import lowered_within
from tests.suites.remote_table import PAGE, page


class Event(BaseModel):
    title: str
    seats: dict[str, int] = {}


def test_a_plan_shows_the_request_and_its_gaps() -> None:
    plan = gw.plan("openai", Event)
    assert plan.route == "json_schema"
    assert plan.guarantee == "checked"
    assert plan.sent["response_format"]["json_schema"]["strict"] is True
    assert "/properties/seats" in str(plan)
    assert json.loads(json.dumps(plan.to_json()))["guarantee"] == "checked"
    assert plan == gw.plan("openai", Event)


def test_text_constraints() -> None:
    assert gw.plan("vllm", gw.Regex("[ab]+")).route == "vllm_grammar"
    assert gw.plan("vllm", gw.Regex("[ab]+")).guarantee == "exact"
    lark = gw.plan("openai", gw.Lark('start: "(" start ")" | "x"'))
    assert lark.route == "custom_tool"
    assert lark.sent["tools"][0]["custom"]["format"]["grammar"]["syntax"] == "lark"
    assert gw.plan("anthropic", gw.Choice(["a", "b"])).guarantee == "exact"
    assert gw.plan("anthropic", gw.Lark('start: "(" start ")" | "x"')).route == "prompt"
    assert gw.plan("unknown", gw.Regex("a")).parts[0].holder == "prompt_only"
    assert gw.plan("guideway", Event).guarantee == "exact"


@pytest.mark.parametrize("name", sorted(dialects()))
def test_every_dialect_plans_every_kind(name: str) -> None:
    for output in (Event, gw.Regex("[a-c]{2}"), gw.Choice(["x"]), {"type": "integer"}, gw.Format("date")):
        plan = gw.plan(name, output)
        assert plan.guarantee in ("exact", "checked")
        json.dumps(plan.to_json())


def test_require_refuses_before_a_request() -> None:
    with pytest.raises(UnsupportedError, match="minLength"):
        gw.plan("azure", {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}}, require="exact")
    lark = {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "additionalProperties": False}
    assert gw.plan("openai", lark, require="exact").route == "custom_tool"
    with pytest.raises(UnsupportedError, match="prompt"):
        gw.plan("unknown", gw.Regex("a"), require="exact")
    with pytest.raises(ValueError, match="require"):
        gw.plan("openai", int, require="all")  # type: ignore[arg-type]  # what is tested


def test_published_limits_are_measured() -> None:
    wide: dict[str, Any] = {
        "type": "object",
        "properties": {
            f"p{number}": {"type": "object", "properties": {"a": {"type": "string"}}} for number in range(3000)
        },
    }
    with pytest.raises(LimitExceededError, match=r"properties .*heaviest parts") as found:
        gw.plan("azure", wide, require="exact")
    assert "5,000" in str(found.value)
    assert gw.plan("azure", wide).route == "json_object"
    assert gw.plan("openai", wide.__class__(wide, properties={"a": {"type": "string"}})).limits["properties"] == (
        1,
        5000,
    )


def test_enumerations_beyond_the_limit_are_checked_here() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "country": {"enum": [f"country {number}" for number in range(1500)]},
            "mood": {"enum": ["fine", "tired"]},
        },
        "required": ["country", "mood"],
        "additionalProperties": False,
    }
    plan = gw.plan("azure", schema)
    sent = plan.sent["response_format"]["json_schema"]["schema"]["properties"]
    assert sent["country"] == {"type": "string"}
    assert sent["mood"]["enum"] == ["fine", "tired"]
    assert (plan.route, plan.guarantee) == ("json_schema", "checked")
    assert plan.limits["enum_values"] == (2, 1000)
    notes = {(one.place, one.keyword): one for one in plan.parts}
    assert notes["/properties/country", "enum"].holder == "provider_superset"
    assert notes["/properties/country", "enum"].detail.startswith("1,500 values")
    long = {"type": "object", "properties": {"a": {"enum": ["x" * 70_000 + str(number) for number in range(3)]}}}
    assert gw.plan("azure", long).limits["characters"][0] < 100
    mixed = {"enum": [*range(1200), "a", None]}
    sent = gw.plan("azure", mixed).sent["response_format"]["json_schema"]["schema"]["properties"]["value"]
    assert {one["type"] for one in sent["anyOf"]} == {"integer", "string", "null"}
    assert gw.plan("openai", schema, require="exact").route == "custom_tool"


@pytest.mark.parametrize(
    ("enumerations", "limits", "kept"),
    [
        pytest.param(
            [["a"] * 2, ["b" * 50_000] * 3], {"characters": 100_000}, [2], id="only the characters are limited"
        ),
        pytest.param(
            [["a"] * n for n in (1, 2, 3, 300, 600, 600)], {"enum_values": 1000}, [1, 2, 3, 300], id="equal sizes"
        ),
        pytest.param([["a"] * 600, ["a"] * 500], {"enum_values": 600}, [500], id="the largest goes first"),
        pytest.param([["a"] * 4, ["a", 1] * 3], {"enum_values": 8}, [4], id="strings and integers"),
        pytest.param([["a"] * 2, ["a"] * 3], {"enum_values": 1}, [], id="none fits"),
    ],
)
def test_only_the_largest_enumerations_are_replaced(
    enumerations: list[list[Any]], limits: dict[str, int], kept: list[int]
) -> None:
    """Each value is made unique by its number: it is added to an integer, and appended to a string."""
    properties = {
        str(number): {"enum": [value + (str(at) if isinstance(value, str) else at) for at, value in enumerate(values)]}
        for number, values in enumerate(enumerations)
    }
    given = capabilities("openai").override(limits=limits)
    sent = lowered_within({"type": "object", "properties": properties, "required": [*properties]}, given).schema
    found = [sum(len(part.get("enum", ())) for part in one.get("anyOf", [one])) for one in sent["properties"].values()]
    assert [size for size in found if size] == kept


def test_routes_of_tools_and_of_tgi() -> None:
    given = capabilities("openai").override(routes=("strict_tool",))
    plan = gw.plan(given, Event)
    assert plan.sent["tools"][0]["function"]["strict"] is True
    assert plan.sent["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    assert gw.plan("deepseek", Event).route == "strict_tool"
    assert gw.plan("tgi", gw.Regex("[ab]+")).sent == {"response_format": {"type": "regex", "value": "[a-b]+"}}
    assert gw.plan("tgi", Event).sent["response_format"]["type"] == "json"


def test_overridden_capabilities() -> None:
    own = capabilities("openai").override(name="own", routes=("prompt",))
    assert gw.plan(own, Event).route == "prompt"
    with pytest.raises(InvalidConstraintError, match="unknown dialect"):
        gw.plan("opneai", Event)


def test_dialects_by_url() -> None:
    assert guessed_dialect("https://api.openai.com/v1/", "openai") == "openai"
    assert guessed_dialect("https://eu.openrouter.ai/api", "openai") == "openrouter"
    assert guessed_dialect("http://127.0.0.1:11434/v1", "openai") == "ollama"
    assert guessed_dialect("http://127.0.0.1:8000/v1", "openai") == "unknown"
    assert guessed_dialect("https://api.openai.com.evil.example/v1", "openai") == "unknown"
    assert guessed_dialect("http://[", "openai") == "unknown"
    assert guessed_dialect("", "anthropic") == "anthropic"


def test_the_documented_table_is_that_of_the_data() -> None:
    assert page(PAGE.read_text("utf-8")) == PAGE.read_text("utf-8"), "run python -m tests.suites.remote_table"


def test_every_dialect_has_dated_evidence() -> None:
    for name, one in dialects().items():
        assert name == "unknown" or (one.updated and one.evidence and all(claim.date for claim in one.evidence))


def test_the_routes_of_a_plan_share_a_limit_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    lark = "start: (A | B)+\nA: /(a|b)*a(a|b){12}/\nB: /c+/"
    assert gw.plan("vllm", gw.Lark(lark)).route != "prompt"
    monkeypatch.setattr(planning, "PLAN_WORK", 1)
    monkeypatch.setattr(planning, "ROUTE_WORK", 1)
    with pytest.raises(LimitExceededError, match="before it is planned"):
        gw.plan("vllm", gw.Lark(lark), require="exact")
