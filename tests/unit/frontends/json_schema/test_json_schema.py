"""`JsonSchema`: every sampled text is valid by an independent validator, and every valid text that the profile can
write is allowed."""

from __future__ import annotations

import json
import pickle
from typing import Any

import jsonschema
import pytest

from guideway.constraints import JsonSchema
from guideway.constraints.json_schema import explain_schema
from guideway.errors import InvalidConstraintError, InvalidTextError, LimitExceededError, UnsupportedError
from guideway.frontends.json_schema import report
from guideway.grammar.nodes import Leaf
from guideway.grammar.recognizer import fits as allows
from tests.helpers.grammar_sampler import Sampler
from tests.helpers.reference_grammar import fits

TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["value", "next"],
}
SCHEMAS: list[Any] = [
    True,
    {},
    {"type": "null"},
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "string"},
    {"type": ["string", "integer", "null"]},
    {"type": "integer", "minimum": -3, "maximum": 12},
    {"type": "integer", "exclusiveMinimum": 0.5, "exclusiveMaximum": 103},
    {"type": "integer", "minimum": 10**25},
    {"type": "number", "minimum": -1.25, "exclusiveMaximum": 100},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "maximum": -0.001},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "pattern": "^[a-z]{2,3}-\\d+$", "maxLength": 6},
    {"type": "string", "pattern": "a|b"},
    {"type": "string", "format": "date"},
    {"minLength": 3},
    {"minimum": 5, "maxItems": 1},
    {"enum": ["a", 1, 2.5, None, True, [1, {"x": "é\n"}], {"b": [], "a": {}}]},
    {"enum": ["a", 1, 2.5, 7.0, None], "type": ["integer", "null"]},
    {"enum": ["a", "bb", "ccc", "xb"], "minLength": 2, "pattern": "b"},
    {"enum": [1, 5, 9, "x"], "minimum": 4, "type": "number"},
    {"const": {"a": [1, "two", None]}},
    {"const": 1, "enum": [1.0, 2]},
    {"type": "array"},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}, "minItems": 2},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]},
    {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "properties": {"a": {"const": 1}}, "required": ["z", "a"]},
    {"type": "object", "required": ["z"], "additionalProperties": {"type": "integer"}},
    {"properties": {"a": False, "b": True}},
    {"type": "object", "properties": {'q"/~': {"type": "null"}}, "required": ['q"/~']},
    {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 0}, {"type": "string"}]},
    {"type": "integer", "anyOf": [{"minimum": 10}, {"type": ["string", "integer"], "maximum": 3}]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {
        "oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
        "$defs": {
            "cat": {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]},
            "dog": {"type": "object", "properties": {"kind": {"enum": ["dog", "hound"]}}, "required": ["kind"]},
        },
    },
    {"allOf": [{"type": "string"}], "default": "x"},
    TREE,
    {"$ref": "#/$defs/a%20b/x~1y", "$defs": {"a b": {"x/y": {"type": "integer"}}}},
    {"$defs": {"t": {"type": ["string", "null"]}}, "$ref": "#/$defs/t", "type": "string"},
    {"items": {"$ref": "#"}, "type": "array"},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "null"}]},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "null"}],
        "additionalItems": {"type": "boolean"},
    },
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "integer"}},
        "$ref": "#/definitions/n",
        "type": "string",
    },
    {"type": "string", "multipleOf": 3, "minProperties": 2, "uniqueItems": True},
    {"type": "array", "uniqueItems": False, "items": {"type": "integer", "title": "n", "unknown": 1}},
    {"anyOf": [False, {"type": "integer", "minimum": 3, "maximum": 1}, {"const": "ok"}]},
]
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        3,
        5,
        9,
        11,
        12,
        13,
        -3,
        -4,
        103,
        -1,
        2.5,
        3.5,
        0.001,
        -1.25,
        -1.26,
        -0.001,
        99.99,
    ),
    *("", "a", "bb", "ab", "abc", "xb", "ok", "two", "aéé", "ab-12", "ab-1", "\n\t\x7f\u2028\U0001f600", 'q"\\/', "x"),
    *("2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0001-01-01", "0000-02-29", "2024-13-01", "2024-04-31"),
    *(
        [],
        [1],
        [1, 2],
        [None],
        [None, True],
        [1, "s"],
        [1, "s", None],
        [1, True],
        [[], [[]]],
        [1, {"x": "é\n"}],
        ["a"] * 4,
    ),
    *(
        {},
        {"a": 1},
        {"b": "x"},
        {"a": 1, "b": "x"},
        {"a": 1, "z": True},
        {"z": 3},
        {"b": [], "a": {}},
        {"a": [1, "two", None]},
    ),
    *(
        {'q"/~': None},
        {"kind": "cat"},
        {"kind": "hound"},
        {"kind": "mouse"},
        {"value": 1, "next": {"value": 2, "next": None}},
    ),
]


def valid(schema: Any, value: Any) -> bool:
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return bool(kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(value))


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:70])
def test_samples_are_valid(schema: Any) -> None:
    grammar = JsonSchema(schema, unknown_keywords="ignore").grammar()
    for seed in range(60):
        text = Sampler(grammar, seed).sample()
        assert text is not None
        assert written(json.loads(text)) == text or "." in text or "e" in text
        assert valid(schema, json.loads(text)), text
        assert fits(grammar, text), text


def closed(schema: Any) -> Any:
    """What the generation profile adds: objects that name their properties have no others."""
    if isinstance(schema, dict):
        made = {key: closed(value) if key not in ("const", "enum") else value for key, value in schema.items()}
        if isinstance(made.get("properties"), dict) and "additionalProperties" not in made:
            names = [*made["properties"], *made.get("required", [])]
            made["properties"] = {name: made["properties"].get(name, True) for name in names}
            made["additionalProperties"] = False
        return made
    return [closed(one) for one in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:70])
def test_allows_what_is_valid(schema: Any) -> None:
    generation = JsonSchema(schema, unknown_keywords="ignore").grammar()
    strict = closed(schema)
    for value in VALUES:
        assert fits(generation, written(value)) == valid(strict, value), value


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:70])
def test_exact_profile(schema: Any) -> None:
    grammar = JsonSchema(schema, profile="exact", unknown_keywords="ignore").grammar()
    for value in VALUES:
        for text in (written(value), "\n" + json.dumps(value, indent=1).replace("/", "\\/") + " "):
            assert fits(grammar, text) == valid(schema, value), text
        if isinstance(value, dict):
            backwards = json.dumps(dict(reversed(value.items())), separators=(",", ":"))
            assert fits(grammar, backwards) == valid(schema, value), backwards


def test_profile_options() -> None:
    schema = {"type": "object", "properties": {"a": {"const": "é"}, "b": {"const": 1}}, "required": ["a", "b"]}

    def allows(text: str, **knobs: Any) -> bool:
        return fits(JsonSchema(schema, **knobs).grammar(), text)

    assert allows('{"a": "é", "b": 1}')
    assert not allows('{"b": 1, "a": "é"}')
    assert allows('{"b": 1, "a": "é"}', key_order="any")
    assert allows('{"a":"é","b":1}', whitespace="compact")
    assert allows(' {"a" :"é",\n"b":1}', whitespace="any")
    assert allows(r'{"\u0061": "\u00E9", "b": 1}', escapes="any")
    assert not allows(r'{"a": "\u00E9", "b": 1}')
    with pytest.raises(InvalidConstraintError, match="one-line"):
        JsonSchema(schema, whitespace="pretty")  # type: ignore[arg-type]  # what a user may get wrong


@pytest.mark.parametrize(
    ("schema", "places"),
    [
        (
            {"properties": {"a/b": {"pattern": r"(a)\1"}, "c": {"pattern": r"(b)\1"}}},
            ["/properties/a~1b/pattern", "/c/p"],
        ),
        ({"$ref": "https://example.com/x.json"}, ["/$ref"]),
        ({"format": "email", "not": {"uniqueItems": True}}, ["/not"]),
        ({"pattern": r"(a)\1"}, ["/pattern"]),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, ["/$schema"]),
    ],
)
def test_refused_with_every_place(schema: Any, places: list[str]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        JsonSchema(schema)
    assert caught.value.place is not None
    for place in places:
        assert (place or "the whole schema") in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "text"}, "/type"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength"),
        ({"enum": "a"}, "/enum"),
        ({"required": "a"}, "/required"),
        ({"items": [{}]}, "/items"),
        ({"anyOf": []}, "/anyOf"),
        ({"$ref": "#/$defs/none"}, "/$ref"),
        ({"$ref": "#"}, ""),
        ({"allOf": [{"$ref": "#"}]}, ""),
        (
            {
                "items": {"$ref": "#/$defs/a"},
                "minItems": 1,
                "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
            },
            "/$defs/a",
        ),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, ""),
        ({"pattern": "(a"}, "/pattern"),
        ({"minimum": "1"}, "/minimum"),
        ({"properties": {"a": 1}}, "/properties"),
        ({"oneOf": [{"type": {"a": 1}}, {"type": "null"}]}, "/oneOf/0/type"),
        ({"$ref": "#anchor"}, "/$ref"),
    ],
)
def test_malformed_with_the_place(schema: Any, place: str) -> None:
    with pytest.raises(InvalidConstraintError) as caught:
        JsonSchema(schema)
    assert caught.value.place == place


@pytest.mark.parametrize(
    "schema", ["{", "[1, 2", '{"a" 1}', "nul", '{"a": 1} x', "", "1", object(), {1: 2}, float("nan")]
)
def test_non_schemas_are_refused(schema: Any) -> None:
    with pytest.raises(InvalidConstraintError):
        JsonSchema(schema)


def test_depth_and_size_use_no_stack() -> None:
    depth = 3000
    nested: dict[str, Any] = {"type": "null"}
    for _ in range(depth):
        nested = {"type": "array", "items": nested}
    text = '{"type": "array", "items": ' * depth + '{"type": "null"}' + "}" * depth
    assert len(JsonSchema(nested).grammar().nodes) == len(JsonSchema(text).grammar().nodes) == depth + 1
    assert JsonSchema(text) == JsonSchema(nested)
    assert JsonSchema(True).parse("[" * 5000 + "]" * 5000)
    value: Any = 1
    for _ in range(400 - 1):
        value = [value]
    assert len(JsonSchema({"const": value}).grammar().nodes) == 1
    JsonSchema({"const": value}, key_order="any")
    with pytest.raises(LimitExceededError, match="nested deeper than 400 levels"):
        JsonSchema({"const": [[value]]})
    circle: dict[str, Any] = {}
    circle["not"] = circle
    with pytest.raises(LimitExceededError):
        JsonSchema(circle)


def test_large_enum_is_one_leaf() -> None:
    names = [f"name {i}" for i in range(10_000)]
    grammar = JsonSchema({"anyOf": [{"enum": names}, {"type": "null"}]}).grammar()
    assert [type(node) for node in grammar.nodes] == [Leaf]


def test_numbers_are_exact() -> None:
    schema = JsonSchema('{"type": "number", "minimum": 0.1, "maximum": 0.30000000000000000001}').grammar()
    assert fits(schema, "0.1")
    assert fits(schema, "0.3")
    assert fits(schema, "0.300000000000000000010")
    assert not fits(schema, "0.300000000000000000011")
    assert not fits(schema, "0.09999999")
    for text in ("-0", "-0.0", "00", "1.", ".5", "1e2", "+1"):
        assert not fits(JsonSchema({"type": "number"}).grammar(), text)
    with pytest.raises(LimitExceededError):
        JsonSchema('{"type": "number", "minimum": 1e100000}')


def test_parse_takes_what_the_schema_allows_however_it_is_written() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"uniqueItems": True}}, "required": ["a"]}
    for profile in ("generation", "exact"):
        source = JsonSchema(schema, profile=profile)  # type: ignore[arg-type]  # a str
        assert source.parse(' {"b" : [1, [1]],"\\u0061": 1e2, "c": null}\n') == {"b": [1, [1]], "a": 100.0, "c": None}
        for text in (
            '{"a": 1.5}',
            "{}",
            '{"a": 1, "b": [0, -0]}',
            '{"a": 1, "a": 1}',
            '{"a": NaN}',
            '{"a": "\ud800"}',
            "",
        ):
            with pytest.raises(InvalidTextError):
                source.parse(text)
    assert pickle.loads(pickle.dumps(source)).parse('{"a": 2}') == {"a": 2}  # also after it has read something
    either = JsonSchema({"type": "integer"}) | JsonSchema({"type": "string"}) | "true"
    assert [either.parse(text) for text in ("1", '"1"', "true")] == [1, "1", "true"]
    assert JsonSchema({"type": "integer"}).read("true") is True
    with pytest.raises(InvalidTextError):
        JsonSchema({"minLength": 2, "maxLength": 1, "type": "string"}).parse('"a"')


def test_contract_parse_and_equality() -> None:
    source = JsonSchema('{"type": "object", "title": "T", "properties": {"a": {"format": "int32"}}}')
    assert ("", "type", "enforced") in source.keyword_report()
    assert ("", "title", "annotation") in source.keyword_report()
    assert ("", "minimum", "no effect") in JsonSchema({"type": "null", "minimum": 1}).keyword_report()
    for name, formats, status in (
        ("date", "known", "enforced"),
        ("date", "annotate", "annotation"),
        ("dat", "known", "annotation"),
        ("password", "strict", "annotation"),
    ):
        asked = JsonSchema({"type": "string", "format": name}, formats=formats, unknown_keywords="ignore")
        assert ("", "format", status) in asked.keyword_report()
    assert ("", "format", "refused") in explain_schema(
        {"type": "string", "format": "dat"}, formats="strict"
    ).keyword_report
    assert source.parse('{"a": 1.5}') == {"a": 1.5}
    assert source.schema["title"] == "T"
    with pytest.raises(InvalidTextError):
        source.parse("{")
    assert (
        JsonSchema({"type": "null"}) == JsonSchema('{"type": "null"}') != JsonSchema({"type": "null"}, whitespace="any")
    )
    assert len({JsonSchema(True), JsonSchema(True)}) == 1


def test_the_report_has_only_keywords_of_the_document() -> None:
    source = JsonSchema({"minItems": 1, "oneOf": [{"enum": [[1], 3]}, {"required": ["a"]}], "enum": [[1], [2], 3]})
    assert [row[:2] for row in source.keyword_report()] == [
        ("", "minItems"),
        ("", "oneOf"),
        ("", "enum"),
        ("/oneOf/0", "enum"),
        ("/oneOf/1", "required"),
    ]


def test_the_report_says_if_the_keyword_that_another_modifies_is_missing() -> None:
    def status(schema: dict[str, Any], name: str, **options: Any) -> str:
        return {row[:2]: row[2] for row in JsonSchema(schema, **options).keyword_report()}["", name]

    for one, other in (("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains")):
        value: object = {} if other == "if" else 1
        assert status({one: value}, one) == "no effect"
        assert status({one: value, other: {}}, one) == "enforced"
    for schema, found in (({"items": [{}]}, "enforced"), ({"items": {}}, "no effect"), ({}, "no effect")):
        assert status({**schema, "additionalItems": {}}, "additionalItems", dialect="draft-07") == found
    for more, found in (({}, "no effect"), ({"minimum": 1}, "enforced")):
        assert status({"exclusiveMinimum": True, **more}, "exclusiveMinimum", dialect="draft-04") == found


def test_the_report_has_all_references_of_a_chain() -> None:
    found = JsonSchema(
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}}
    ).keyword_report()
    assert sorted(found) == [
        ("", "$ref", "enforced"),
        ("/$defs/a", "$ref", "enforced"),
        ("/$defs/b", "type", "enforced"),
    ]


def test_many_constants_with_many_spellings_are_refused() -> None:
    schema = {"enum": [[number] for number in range(2001)]}
    assert allows(JsonSchema(schema).grammar(), "[2000]")
    with pytest.raises(LimitExceededError, match=r"each of which has many spellings; use fewer values, or profile="):
        JsonSchema(schema, profile="exact").grammar()


def test_different_items_beside_what_counts_them() -> None:
    """Items of different types differ anyway; else such arrays are refused, with their place."""
    pair = {"uniqueItems": True, "prefixItems": [{"type": "integer"}, {"enum": ["a", None]}], "items": False}
    source = JsonSchema({"type": "array", **pair, "minItems": 2, "contains": {"const": 3}}, profile="exact").grammar()
    assert allows(source, '[3, "a"]')
    assert not allows(source, "[3]")
    assert not allows(source, "[2, null]")
    for more in ({"contains": {"const": 1}}, {"prefixItems": [{}], "minItems": 2}):
        schema = {"properties": {"x": {"type": "array", "uniqueItems": True, **more}}}
        with pytest.raises(UnsupportedError) as caught:
            JsonSchema(schema)
        assert caught.value.place == "/properties/x/uniqueItems"
        assert ("/properties/x", "uniqueItems", "refused") in explain_schema(schema).keyword_report


def test_an_unsupported_pattern_refuses_its_keyword() -> None:
    schema = {"patternProperties": {"^x": True, r"^(a|b)\1$": {"type": "null"}}}
    for given, place in ((schema, ""), ({"not": schema}, "/not")):
        found = explain_schema(given)
        assert (place, "patternProperties", "refused") in found.keyword_report
        assert list(found.refusals) == [f"{place}/patternProperties"]
        (row,) = (one for one in found.rows() if one["status"] == "refused")
        assert (row["place"], row["keyword"]) == (place, "patternProperties")
        assert r"^(a|b)\1$" in row["reason"]
    with pytest.raises(InvalidConstraintError) as caught:
        JsonSchema({"patternProperties": {"(": True}})
    assert caught.value.place == "/patternProperties/("


def test_examples_within_a_limit_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = JsonSchema({"type": "string", "pattern": "^[a-z]{40}$"}, profile="exact")
    assert len(schema.examples(3)) == 3
    monkeypatch.setattr(report, "EXAMPLE_WORK", 100_000)
    assert schema.examples(3)[0] == schema.examples(1)[0]
    assert len(schema.examples(3)) < 3
    monkeypatch.setattr(report, "EXAMPLE_WORK", 1)
    with pytest.raises(LimitExceededError, match="before it is sampled"):
        JsonSchema({"type": "string", "pattern": "^[ab]{3}c[de]{41,77}(xyz|vw)*$"}).examples(3)
