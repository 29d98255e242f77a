"""`explain`: the enforced keywords and example instances, as data and as a command."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from guideway.cli.app import app
from guideway.constraints import JsonSchema
from guideway.constraints.json_schema import explain_schema

SCHEMA = {
    "type": "object",
    "title": "A pet",
    "properties": {"kind": {"enum": ["cat", "dog"]}, "name": {"type": "string", "minLength": 2}},
    "required": ["kind", "name"],
    "if": {"properties": {"kind": {"const": "cat"}}},
    "then": {"required": ["lives"]},
}


LONG = {"type": "string", "minLength": 3, "maxLength": 2}


def test_examples_are_valid_and_differ() -> None:
    texts = JsonSchema(SCHEMA).examples(5)
    assert len(set(texts)) == 5
    for text in texts:
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert len(texts[0]) == min(map(len, texts))
    assert JsonSchema({"enum": [1, 2]}).examples(5) in (["1", "2"], ["2", "1"])


def test_refused_schemas_are_explained() -> None:
    found = explain_schema({"title": "t", "properties": {"a": {"pattern": r"(a)\1", "maxLength": 3}}})
    assert ("/properties/a", "pattern", "refused") in found.keyword_report
    assert ("/properties/a", "maxLength", "enforced") in found.keyword_report
    assert ("", "title", "annotation") in found.keyword_report
    assert list(found.refusals) == ["/properties/a/pattern"]
    assert found.examples == []
    conflict = explain_schema({"type": "string", "minLength": 3, "maxLength": 2}).conflict
    assert conflict is not None
    assert conflict == "no value satisfies /type, /minLength and /maxLength"


def test_each_refused_place_has_a_reason() -> None:
    """Two refusals in one schema: a keyword, and a `not`. The rows of both keywords are marked."""
    schema = {"properties": {"a": {"pattern": r"(a)\1"}, "b": {"not": {"type": "array", "uniqueItems": True}}}}
    found = explain_schema(schema)
    assert set(found.refusals) == {"/properties/a/pattern", "/properties/b/not"}
    assert "back-reference" in found.refusals["/properties/a/pattern"]
    assert "two equal items" in found.refusals["/properties/b/not"]
    refused = {(place, keyword) for place, keyword, status in found.keyword_report if status == "refused"}
    assert refused == {("/properties/a", "pattern"), ("/properties/b", "not")}


def test_errors_of_compilation_have_their_place() -> None:
    """Some schemas are refused, or found to be empty, only when they are compiled."""
    nested = {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"$ref": "#/$defs/a"}}
    found = explain_schema({"$defs": {"a": nested}, "properties": {"x": {"$ref": "#/$defs/a"}}})
    assert list(found.refusals) == ["/$defs/a"]
    row = {"place": "/x/$defs/a", "keyword": "", "status": "refused", "reason": found.refusals["/$defs/a"]}
    assert found.rows("/x")[-1] == row
    found = explain_schema({"type": "object", "properties": {"a": LONG}, "required": ["a"]})
    assert found.place == "/properties/a"
    assert found.conflict is not None
    assert "/required" not in found.conflict  # only keywords of that place contradict each other


def test_misspelled_keywords_are_reported() -> None:
    schema = {"proprties": {}, "minlength": 1, "nullable": True, "x-order": 1, "additionalItems": {}, "title": "t"}
    said = {name: status for _, name, status in JsonSchema(schema, unknown_keywords="ignore").keyword_report()}
    assert said == {
        "proprties": "annotation: unknown keyword, did you mean 'properties'?",
        "minlength": "annotation: unknown keyword, did you mean 'minLength'?",
        "nullable": "annotation: unknown keyword",
        "x-order": "annotation: unknown keyword",
        "additionalItems": "annotation: no keyword of 2020-12",
        "title": "annotation",
    }


@pytest.mark.parametrize(
    ("schema", "status", "said"),
    [(SCHEMA, 0, "fits: {"), ({"pattern": r"(a)\1"}, 1, "refused"), (LONG, 1, "/type, /minLength")],
)
def test_command(schema: object, status: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema), "utf-8")
    result = CliRunner().invoke(app, ["explain", str(path)])
    assert result.exit_code == status
    assert said in result.output
    assert "enforced" in result.output or status


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"properties": {"a": {"pattern": r"(a)\1"}}}), "utf-8")
    result = CliRunner().invoke(app, ["explain", str(path), "--json"])
    found = json.loads(result.output)
    assert result.exit_code == 1
    reason = found["refusals"]["/properties/a/pattern"]
    assert "back-reference" in reason
    row = {"place": "/properties/a", "keyword": "pattern", "status": "refused", "reason": reason}
    assert found["keywords"] == [{"place": "", "keyword": "properties", "status": "enforced"}, row]
    path.write_text(json.dumps({"const": "é"}), "utf-8")
    result = CliRunner().invoke(app, ["explain", str(path), "--json"])
    assert (result.exit_code, json.loads(result.output)["examples"]) == (0, ['"é"'])
    assert CliRunner().invoke(app, ["explain", "--regex", "a", "--json"]).exit_code != 0
