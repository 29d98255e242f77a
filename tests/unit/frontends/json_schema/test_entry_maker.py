"""`EntryMaker`: entries of properties, made in C++ where a schema names one type."""

from __future__ import annotations

from typing import Any

import pytest

from guideway.frontends.json_schema.shared_nodes import SharedNodes
from guideway.frontends.json_schema.style import Profile, make_style
from guideway.grammar.nodes import Property

PLAIN = frozenset({"type", "title", "description"})


def made(properties: dict[Any, Any], required: set[str], profile: Profile = "exact", value: int | None = 9) -> Any:
    """Return the entries, the calls of `number`, and the keys."""
    common = SharedNodes(make_style(profile, None, None, None, None, "known"))
    calls: list[Any] = []
    keys: dict[str, Any] = {}

    def number(schema: object, place: object) -> int | None:
        calls.append((schema, place))
        return value

    types = {"string": 3, None: 5}
    return common.entry_maker.entries(properties, required, types, keys, PLAIN, number, "/a"), calls, keys, common


@pytest.mark.parametrize("profile", ["exact", "generation"])
def test_known_types_need_no_call(profile: Profile) -> None:
    properties = {"a": {"type": "string"}, "b": {"title": "x"}, 'ü"\n': {"description": "d", "type": "string"}}
    entries, calls, keys, common = made(properties, {"b"}, profile)
    assert calls == []
    assert entries == [Property(common.new_key(name), 5 if name == "b" else 3, name == "b") for name in properties]
    assert list(keys) == list(properties)
    assert all(keys[name] is one.key for name, one in zip(keys, entries, strict=True))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": ["string"]},
        {"type": "string", "minLength": 2},
        {"minLength": 2},
        {"$ref": "#"},
        {"type": "string", "titel": "x"},
        {"titel": "x"},
        True,
        False,
        3,
    ],
)
def test_other_schemas_are_passed_on(schema: object) -> None:
    entries, calls, _, common = made({"a": schema}, set())
    assert calls == [(schema, ("/a", "properties", "a"))]
    assert entries == [Property(common.new_key("a"), 9, False)]


def test_properties_without_a_value() -> None:
    assert made({"a": False, "b": {"type": "string"}}, {"b"}, value=-1)[0] == [
        Property(made({}, set())[3].new_key("b"), 3, True)
    ]
    assert made({"a": False}, {"a"}, value=-1)[0] is None
    assert made({"a": 3}, set(), value=None)[0] is None


def test_errors_are_raised() -> None:
    common = made({}, set())[3]
    with pytest.raises(ZeroDivisionError):
        common.entry_maker.entries({"a": {}}, set(), {}, {}, PLAIN, lambda *_: 1 // 0, "")
    with pytest.raises(TypeError):  # an unhashable key of a schema cannot exist; a result that is no number can
        common.entry_maker.entries({"a": {}}, set(), {}, {}, PLAIN, lambda *_: "x", "")
