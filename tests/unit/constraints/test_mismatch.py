"""Messages for texts that do not fit: where they stop, and what could follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pydantic
import pytest

import guideway as gw
from guideway.constraints import PythonType
from guideway.errors import InvalidConstraintError, InvalidTextError, UnsatisfiableError
from guideway.grammar.mismatch import mismatch

VOCABULARY = gw.Vocabulary([*(bytes([b]) for b in range(256)), b""], eos_ids=[256])
SUMS = 'root ::= num ("+" num)*\nnum ::= [0-9]+'


@pytest.mark.parametrize(
    ("source", "text", "position", "words"),
    [
        (gw.Regex("[0-9]{4}-[0-9]{2}"), "2024-x1", 5, "stops fitting at character 5, where 'x1' was found; expected '0' to '9'"),
        (gw.Regex("[0-9]{4}-[0-9]{2}"), "2024", 4, "the text ends at character 4; expected '-'"),
        (gw.Regex("a"), "ab", 1, "where 'b' was found; expected the end of the text"),
        (gw.Regex("[ab]c?"), "ax", 1, "expected 'c' or the end of the text"),
        (gw.Regex(".é"), "aè", 1, "stops fitting at character 1, where 'è' was found; expected 'é'"),
        (gw.Regex("[^a]"), "a", 0, "'b' to '\\x7f' or other characters"),
        (gw.Regex("[^b]"), "", 0, "the text ends at character 0"),
        (gw.Regex("[a-b]\n[c]"), "a\nd", 2, "character 2 (line 2, column 1), where 'd'"),
        (gw.Regex("a"), "\ud800", 0, "expected 'a'"),
        (gw.Regex("(?=b)a"), "a", 0, "expected nothing, since no text fits"),
        (gw.Choice(["red", "green"]), "gray", 2, "'gray' is not one of the 2 choices: it stops fitting at character 2"),
        (gw.Gbnf(SUMS), "1+x", 2, "where 'x' was found; expected '0' to '9'"),
        (gw.Gbnf(SUMS), "1+", 2, "the text ends at character 2; expected '0' to '9'"),
        (gw.Lark('start: "a" "b"+'), "abc", 2, "expected 'b' or the end of the text"),
        (gw.Ebnf('start ::= "a" | "b"', start="start"), "c", 0, "expected 'a' or 'b'"),
        (gw.Format("date"), "2020-13-01", 6, "where '3-01' was found; expected '0' to '2'"),
        (gw.constraints.Substring("hello"), "help", 3, "expected 'l' or the end of the text"),
        (gw.Regex("a") + "bc", "abx", 2, "expected 'c'"),
        (gw.Regex("a").repeat(2, 3), "a", 1, "expected 'a'"),
        (gw.Tags([gw.Tag("<t>", gw.Regex("[0-9]"), "</t>")]), "x<t>a</t>", 4, "expected '0' to '9'"),
        (gw.Reasoning(gw.Regex("[0-9]")), "<think>x</think>a", 16, "where 'a' was found"),
    ],
    ids=str,
)  # fmt: skip
def test_a_text_that_does_not_fit(source: gw.Constraint[Any], text: str, position: int, words: str) -> None:
    with pytest.raises(InvalidTextError) as found:
        source.parse(text)
    assert found.value.position == position
    assert words in str(found.value)
    assert found.value.text == text


def test_captures_say_where_the_text_stops() -> None:
    with pytest.raises(InvalidTextError, match=r"stops fitting at character 1"):
        gw.Regex("a(?P<x>b)").captures("ac")


def test_long_texts_are_shortened() -> None:
    with pytest.raises(InvalidTextError) as found:
        gw.Regex("a*").parse("a" * 100_000 + "b")
    assert found.value.position == 100_000
    assert len(str(found.value)) < 600
    with pytest.raises(InvalidTextError) as found:
        gw.Choice(["a" + "b" * 1000]).parse("a")
    assert len(str(found.value)) < 300


def test_the_position_is_the_longest_beginning_that_fits() -> None:
    """Every shorter beginning has a continuation that fits, and the next character has none."""
    grammar = gw.Regex("(ab|ac)*é[x-z]?").grammar()
    for text, expected in (("", 0), ("a", 1), ("aba", 3), ("abb", 2), ("abé", 3), ("abéw", 3), ("abè", 2)):
        assert mismatch(grammar, text).position == expected


# -- Pydantic ----------------------------------------------------------------------------------------------------------


class Item(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(alias="the/name")]
    sizes: list[int | str]

    @pydantic.field_validator("name")
    @classmethod
    def no_digits(cls, value: str) -> str:
        if value.isdigit():
            raise ValueError("digits")
        return value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": [{"the/name": "x", "sizes": [1, []]}]}', "/a/0/sizes/1"),
        ('{"a": [{"the/name": "x", "sizes": []}, {"the/name": "7", "sizes": []}]}', "/a/1/the~1name"),
        ('{"a": [{"the/name": "x"}]}', "/a/0"),
        ('{"a": 1}', "/a"),
        ("[]", ""),
        ('{"a"', None),
    ],
)
def test_the_place_of_a_value_that_pydantic_refuses(text: str, place: str | None) -> None:
    with pytest.raises(InvalidTextError) as found:
        PythonType(dict[str, list[Item]]).parse(text)
    assert found.value.place == place


# -- constraints that no text fits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gw.Regex("(?=b)a"), "the pattern '(?=b)a'"),
        (lambda: gw.Regex("a") & gw.Regex("b"), "Regex('a') & Regex('b')"),
        (lambda: gw.JsonSchema({"pattern": "^(?=b)a", "type": "string"}), "/pattern ('^(?=b)a')"),
        (
            lambda: gw.JsonSchema({"type": "string", "pattern": "^a{5}$", "maxLength": 3}),
            "/type, /pattern ('^a{5}$') and /maxLength",
        ),
        (
            lambda: PythonType(Annotated[str, pydantic.StringConstraints(pattern="^a{5}$", max_length=3)]),
            "/pattern ('^a{5}$')",
        ),
        (lambda: gw.Lark('start: "x" other', parts={"other": gw.Regex("a(?=b)")}), "the pattern 'a(?=b)' in the rule 'other'"),
        (lambda: gw.Lark('start: "x" /(?=b)a/ "y"'), "a pattern in the rule '/(?=b)a/'"),
    ],
)  # fmt: skip
def test_a_constraint_that_no_text_fits_names_its_pattern(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(UnsatisfiableError) as found:
        gw.compile(make(), VOCABULARY)
    assert words in str(found.value)


# -- OpenAI's wrapper --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [gw.JsonSchema, lambda given: gw.compile(given, VOCABULARY)])
def test_the_wrapper_of_openai_is_no_schema(make: Callable[[Any], Any]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for wrapper in (
        {"name": "x", "strict": True, "schema": schema},
        {"name": "x", "schema": schema},
        {"name": "x", "description": "y", "strict": False, "schema": schema},
    ):
        with pytest.raises(InvalidConstraintError, match=r'OpenAI\'s wrapper .* pass its "schema"'):
            make(wrapper)
    with pytest.raises(InvalidConstraintError, match='pass its "json_schema"'):
        make({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
    make(schema)
    make({"type": "object", "properties": {"name": {}, "schema": {}}})
    make({"type": "object", "name": "x", "schema": schema, "properties": {"a": schema}})


@pytest.mark.parametrize("make", [gw.JsonSchema, lambda given: gw.compile(given, VOCABULARY)])
@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        ({"strict": True, "schema": {"type": "integer"}}, 'OpenAI\'s wrapper .* pass its "schema"'),
        ({"type": "json_schema", "name": "x", "schema": {}}, 'OpenAI\'s wrapper .* pass its "schema"'),
        ({"type": "json_schema", "schema": {}}, 'OpenAI\'s wrapper .* pass its "schema"'),
        ({"name": "x", "input_schema": {}}, 'Anthropic\'s API .* pass its "input_schema"'),
        ({"name": "x", "description": "y", "input_schema": {}}, 'Anthropic\'s API .* pass its "input_schema"'),
        ({"type": "custom", "name": "x", "input_schema": {}}, 'Anthropic\'s API .* pass its "input_schema"'),
        ({"name": "x", "description": "y", "parameters": {}}, 'OpenAI\'s API .* pass its "parameters"'),
        ({"type": "function", "name": "x", "parameters": {}}, 'OpenAI\'s API .* pass its "parameters"'),
        ({"type": "function", "function": {"name": "x"}}, 'pass its "function"\\["parameters"\\]'),
    ],
)
def test_wrappers_of_apis_are_no_schemas(make: Callable[[Any], Any], wrapper: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConstraintError, match=words) as found:
        make(wrapper)
    assert found.value.place == ""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("enum", "write the keyword 'enum'"),
        ("undefined", "leave it out of 'required'"),
        ("json_object", "the type 'object'"),
        ("datetime", "'format': 'date-time'"),
        ("interger", "did you mean 'integer'"),
        ("file", "got 'file'$"),
        ("bytes", "got 'bytes'$"),
        ("number?", "did you mean 'number'"),
    ],
)
def test_suggestions_for_unknown_types(kind: str, words: str) -> None:
    with pytest.raises(InvalidConstraintError, match=words):
        gw.JsonSchema({"type": kind})
