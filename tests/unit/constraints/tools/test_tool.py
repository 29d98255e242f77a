"""`Tool`: conversion from functions and dicts, the form of the OpenAI API, names in errors."""

from __future__ import annotations

import json
import random
import time
from typing import Annotated, Any

import pytest
from pydantic import Field

import guideway as gw
from guideway.constraints.tools.docstrings import described
from guideway.errors import ConstraintError
from guideway.masks import new_rows


def book(
    city: str,
    nights: int = 1,
    guests: Annotated[int, Field(description="Number of guests.", ge=1)] = 2,
    note: str | None = None,
) -> str:
    """Book a room.

    The booking can be cancelled.

    Args:
        city: Name of the city.
        nights (int): Number of nights,
            at most 30.
        guests: Not used, because the type describes it.

    Returns:
        note: not a parameter.
    """
    return city


def test_a_function_in_the_form_of_the_openai_api() -> None:
    tool = gw.Tool.of(book)
    assert tool.function is book
    made = tool.to_openai()
    assert made["type"] == "function"
    function = made["function"]
    assert function["name"] == "book"
    assert function["description"] == "Book a room.\n\nThe booking can be cancelled."
    parameters = function["parameters"]
    assert parameters["required"] == ["city"]
    assert "title" not in parameters
    properties = parameters["properties"]
    assert properties["city"] == {"type": "string", "description": "Name of the city."}
    assert properties["nights"]["description"] == "Number of nights, at most 30."
    assert properties["guests"]["description"] == "Number of guests."
    assert "description" not in properties["note"]
    assert gw.Tool.of(made).to_openai() == made


def test_dicts_keep_their_schema() -> None:
    schema = {"type": "object", "title": "T", "properties": {"a": {"type": "integer", "title": "A"}}}
    tool = gw.Tool.of({"name": "f", "description": "d", "parameters": schema})
    assert tool.to_openai() == {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    assert tool.function is None
    anthropic = gw.Tool.of({"name": "f", "input_schema": schema})
    assert anthropic.to_openai()["function"]["parameters"] == schema


def test_a_tool_with_another_constraint() -> None:
    assert gw.Tool("f", gw.Regex(r"\{\}")).to_openai()["function"]["parameters"] == {"type": "object"}


def test_a_schema_and_a_function() -> None:
    tool = gw.Tool("f", {"type": "object"}, function=book)
    assert tool.function is book
    with pytest.raises(ConstraintError, match="the function of the tool 'f' must be callable"):
        gw.Tool("f", {"type": "object"}, function=3)  # type: ignore[arg-type]  # the wrong type is tested


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": -1}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nothing"}}},
    ],
)
def test_errors_name_the_tool(schema: dict[str, Any]) -> None:
    tools = [{"name": f"tool_{number}", "parameters": {"type": "object"}} for number in range(5)]
    tools.insert(3, {"name": "wrong", "parameters": schema})
    with pytest.raises(ConstraintError, match=r"tool 'wrong'"):
        gw.compile(gw.ToolCalls(tools), gw.load("tiny").vocabulary)


def test_an_impossible_schema_names_the_tool() -> None:
    impossible = {"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}, "required": ["a"]}
    tools = [{"name": "fine"}, {"name": "wrong", "parameters": impossible}]
    with pytest.raises(ConstraintError, match=r"wrong"):
        gw.compile(gw.ToolCalls(tools, choice="wrong"), gw.load("tiny").vocabulary)


def test_arguments_that_a_pattern_allows_are_not_called_unknown() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "patternProperties": {"^x_": {"type": "integer"}},
        "additionalProperties": False,
    }
    tool = gw.Tool("f", schema)
    with pytest.raises(gw.errors.InvalidTextError) as found:
        gw.ToolCalls([tool], family="hermes").parse(
            '<tool_call>\n{"name": "f", "arguments": {"n": "a", "x_1": 1}}\n</tool_call>'
        )
    assert "unknown arguments" not in str(found.value)
    assert "/n" in str(found.value)


def test_many_tools_with_large_schemas() -> None:
    """200 tools with 1 MB of schemas: below 2 seconds of CPU time."""
    rng = random.Random(3)

    def schema(depth: int) -> dict[str, Any]:
        words = {"description": f"One of the arguments, number {rng.randrange(10**9)}, with a long description. " * 2}
        kind = rng.choice(["string", "integer", "boolean", "array", "object", "enum"])
        if kind == "enum":
            return {"enum": [f"value {number} {rng.randrange(999)}" for number in range(9)], **words}
        if kind == "array":
            return {"type": "array", "items": schema(depth - 1) if depth else {"type": "integer"}, **words}
        if kind == "object" and depth:
            inner = {f"part_{number}": schema(depth - 1) for number in range(4)}
            return {
                "type": "object",
                "properties": inner,
                "required": ["part_0"],
                "additionalProperties": False,
                **words,
            }
        return {"type": "string" if kind == "object" else kind, **words}

    def seconds() -> float:
        tools = []
        for number in range(200):
            inner = {f"argument_{place}": schema(2) for place in range(14)}
            parameters = {
                "type": "object",
                "properties": inner,
                "required": ["argument_0"],
                "additionalProperties": False,
            }
            tools.append({"name": f"tool_{number}", "parameters": parameters})
        assert len(json.dumps(tools)) > 1_000_000
        start = time.process_time()
        automaton = gw.compile(gw.ToolCalls(tools, family="hermes"), vocabulary)
        matcher = automaton.matcher()
        row = new_rows(1, len(vocabulary))[0]
        for token in gw.load("tiny").tokenizer.encode('<tool_call>\n{"name": "tool_150", "arguments": {"argument_0": '):
            matcher.fill_mask(row)
            matcher.advance(token)
        matcher.fill_mask(row)
        return time.process_time() - start

    vocabulary = gw.load("tiny").vocabulary
    gw.compile(int, vocabulary)
    # It takes 0.4 to 0.6 s on an idle core. A busy machine gets two more tries, with other schemas.
    assert any(seconds() < 2 for _ in range(3))


def test_docstrings_without_sections() -> None:
    def nothing() -> None: ...

    def one() -> None:
        """Do it."""

    def odd(a: int) -> None:
        """Args:
        a: first
        : nothing
            more
        """

    assert described(nothing) == ("", {})
    assert described(one) == ("Do it.", {})
    assert described(odd).parameters["a"].startswith("first")
