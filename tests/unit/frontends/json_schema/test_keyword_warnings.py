"""Warnings about keywords that probably do not do what their author expects."""

from __future__ import annotations

import json
import random
import warnings
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.cli.app import main
from guideway.constraints.wire import from_wire, to_wire
from guideway.errors import InvalidConstraintError
from guideway.frontends.json_schema.keyword_warnings import _KNOWN_FORMATS, _KNOWN_KEYWORDS, MAX_SHOWN, _nearest
from tests.helpers.counts import counts

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def warned(schema: Any, **options: Any) -> list[str]:
    """The texts of the warnings about a schema."""
    with warnings.catch_warnings(record=True) as found, gw.cache.disabled():
        warnings.simplefilter("always")
        gw.JsonSchema(schema, **options)
    assert all(one.category is gw.SchemaWarning for one in found)
    return [str(one.message) for one in found]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"propertes": {}}, "at '/propertes': unknown keyword 'propertes', did you mean 'properties'?"),
        ({"type": "string", "maxlength": 3}, "at '/maxlength': unknown keyword 'maxlength', did you mean 'maxLength'?"),
        ({"type": "array", "item": {}}, "at '/item': unknown keyword 'item', did you mean 'items'?"),
        (
            {"type": "string", "format": "datetime"},
            "at '/format': the format 'datetime' is not known and has no effect, did you mean 'date-time'?",
        ),
        ({"type": "string", "format": "zip"}, "at '/format': the format 'zip' is not known and has no effect"),
        (
            {"type": "array", "additionalItems": False},
            "at '/additionalItems': 'additionalItems' is not a keyword of 2020-12 and has no effect; it is a keyword of "
            'draft-04, draft-06, draft-07, 2019-09, see "$schema"',
        ),
        (
            {
                "$schema": DRAFT_7,
                "properties": {"a": {"$ref": "#/definitions/b", "minLength": 4}},
                "definitions": {"b": {}},
            },
            "at '/properties/a/minLength': 'minLength' has no effect next to $ref in draft-07",
        ),
    ],
)
def test_text_of_the_warning(schema: dict[str, Any], expected: str) -> None:
    assert warned(schema) == [expected]
    assert warned(schema, profile="exact") == [expected]
    assert warned(schema, whitespace="indented") == [expected]  # the general path alone
    assert not warned(schema, unknown_keywords="ignore")
    with pytest.raises(InvalidConstraintError) as refused:
        gw.JsonSchema(schema, unknown_keywords="error")
    assert str(refused.value) == expected
    assert refused.value.place == expected.partition("'")[2].partition("'")[0]


WRONG = {"type": "string", "minLenght": 1}
PLACES: list[tuple[Any, str]] = [
    ({"properties": {"a/b": WRONG}}, "/properties/a~1b"),
    ({"type": "array", "items": WRONG}, "/items"),
    ({"anyOf": [{"type": "null"}, WRONG]}, "/anyOf/1"),
    ({"allOf": [WRONG, {"maxLength": 4}]}, "/allOf/0"),
    ({"type": "object", "patternProperties": {"^a": WRONG}}, "/patternProperties/^a"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": WRONG}}, "/$defs/b"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b", "maxLength": 4}}, "$defs": {"b": WRONG}}, "/$defs/b"),
    ({"not": {"not": WRONG}}, "/not/not"),
]


@pytest.mark.parametrize(("schema", "place"), PLACES)
def test_every_reachable_schema_is_checked(schema: Any, place: str) -> None:
    (text,) = warned(schema)
    assert text == f"at '{place}/minLenght': unknown keyword 'minLenght', did you mean 'minLength'?"


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "string",
            "x-order": 1,
            "_minLength": 3,
            "nullable": True,
            "example": "a",
            "title": "t",
            "$comment": "c",
        },
        {"type": "integer", "format": "int32"},
        {"type": "string", "format": "date-time", "deprecated": True},
        {"type": "object", "properties": {"minLenght": {"type": "string"}}},
        {"enum": [{"minLenght": 1}], "default": {"minLenght": 1}},
        {"type": "object", "dependencies": {"a": ["b"]}},
        {"type": "string", "unrelated": 1},
    ],
)
def test_no_warning(schema: Any) -> None:
    assert not warned(schema)
    assert not warned(schema, profile="exact", whitespace="indented")


def test_formats_that_the_caller_switched_off_or_refuses() -> None:
    assert not warned({"type": "string", "format": "zip"}, formats="annotate")


def test_error_refuses_every_name_that_is_no_keyword() -> None:
    with pytest.raises(InvalidConstraintError, match="at '/unrelated': unknown keyword 'unrelated'"):
        gw.JsonSchema({"type": "string", "unrelated": 1, "x-mine": 2, "example": 3}, unknown_keywords="error")


def test_unknown_choice() -> None:
    with pytest.raises(InvalidConstraintError, match="unknown_keywords='warm': expected one of"):
        gw.JsonSchema({}, unknown_keywords="warm")  # type: ignore[arg-type]  # the slip is the test


def test_one_warning_names_several_keywords_and_is_bounded() -> None:
    schema = {"properties": {f"k{i}": {"type": "string", "minLenght": i} for i in range(1000)}}
    (text,) = warned(schema)
    assert text.startswith("1000 keywords:\n  at '/properties/k0/minLenght'")
    assert text.count("\n") == MAX_SHOWN + 1
    assert text.endswith("and 992 more")
    (text,) = warned({"minLengt" + "h" * 10_000: 1, "format": "x" * 10_000})
    assert len(text) < 21_000  # the place, and a part of the format


def test_each_text_is_shown_once_for_a_line() -> None:
    with warnings.catch_warnings(record=True) as found, gw.cache.disabled():
        warnings.simplefilter("default")
        for _ in range(3):
            gw.JsonSchema(WRONG)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_compile_of_a_dict_warns_the_caller() -> None:
    vocabulary = gw.Vocabulary([bytes([i]) for i in range(256)] + [b""], eos_ids=[256])
    with pytest.warns(gw.SchemaWarning, match="minLenght") as found:
        gw.compile({"type": "string", "minLenght": 2}, vocabulary, cache=False)
    assert found[0].filename == __file__


def test_copies_do_not_warn_again() -> None:
    with pytest.warns(gw.SchemaWarning), gw.cache.disabled():
        made = gw.JsonSchema(WRONG)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        gw.JsonSchema({**WRONG, "title": "once"}, unknown_keywords="warn")
        gw.JsonSchema({**WRONG, "title": "once"}, unknown_keywords="warn")
    assert len(found) == 1  # an equal constraint shares its state
    assert from_wire(to_wire(made)).grammar().nodes == made.grammar().nodes
    assert made.parse('""') == ""  # the exact profile is lowered for it


def test_command_line_shows_the_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(WRONG), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as end:
            main(["check", "--schema", str(schema), "--walks", "1", "--max-tokens", "20"])
    assert end.value.code == 0
    assert "guideway: warning: at '/minLenght': unknown keyword" in capsys.readouterr().err


@pytest.mark.parametrize("dialect", ["2019-09", "2020-12"])
def test_dependencies_are_enforced_in_later_drafts(dialect: str) -> None:
    made = gw.JsonSchema({"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}}, profile="exact", dialect=dialect)
    assert made.parse('{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    for text in ('{"a": 1}', '{"c": 1, "d": 2}'):
        with pytest.raises(gw.errors.InvalidTextError):
            made.parse(text)


@counts(300, 5_000)
def test_suggestions_are_those_of_difflib_alone(count: int) -> None:
    """Most names are excluded before `difflib` compares them; none of these is similar."""
    rng, suggested = random.Random(1), 0
    every = [one.name for one in (*_KNOWN_KEYWORDS, *_KNOWN_FORMATS)]
    for _ in range(count):
        name = list(rng.choice(every))
        for _ in range(rng.randrange(5)):
            at = rng.randrange(len(name) + 1)
            name[at : at + rng.choice((0, 1))] = rng.choice(("", *"abcdefghijklmnopqrstuvwxyzAI-_$é"))
        for table in (_KNOWN_KEYWORDS, _KNOWN_FORMATS):
            names = {one.lower: one.name for one in table}
            near = get_close_matches("".join(name).lower(), names, 1, 0.8)
            assert _nearest("".join(name), table) == (names[near[0]] if near else None), name
            suggested += bool(near)
    assert suggested > count / 3
