"""JSON Pointers and the places in errors of copied values."""

from __future__ import annotations

import pytest

from guideway.constraints import JsonSchema
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError
from guideway.jsontext.copying import copy_value
from guideway.jsontext.pointer import target


def test_array_indices_have_no_leading_zeros() -> None:
    document = {"items": ["a", "b"]}
    assert target(document, "#/items/0") == "a"
    assert target(document, "#/items/1") == "b"
    assert target(document, "#/items/01") is None
    assert target(document, "#/items/00") is None
    assert target(document, "#/items/2") is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"a": [{1: 2}]}, InvalidConstraintError),
        ({"a": ["\ud800"]}, InvalidConstraintError),
        ({"a": [10**5000]}, LimitExceededError),
    ],
)
def test_errors_of_copied_values_name_the_place(value: object, error: type[ConstraintError]) -> None:
    with pytest.raises(error) as caught:
        copy_value(value)
    assert caught.value.place == "/a/0"
    assert "'/a/0'" in str(caught.value)


def test_errors_of_resources_name_the_resource() -> None:
    with pytest.raises(InvalidConstraintError, match=r"in the resource 'http://a/b': at '/a/0'") as caught:
        JsonSchema({"type": "object"}, resources={"http://a/b": {"a": ["\ud800"]}})
    assert caught.value.place == "http://a/b#/a/0"
