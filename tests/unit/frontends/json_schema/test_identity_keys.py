"""Caches of the lowering that identify objects by their address keep these objects alive.

Otherwise another object could get the address later, and its result would be that of the first.
"""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

import guideway as gw
from guideway.frontends.json_schema import lower
from guideway.frontends.json_schema.assertions import PropertyRules
from guideway.frontends.json_schema.lower import ObjectLowering

BRANCH = {"properties": {"a": {"type": "string"}, "b": {"minimum": 3}}, "additionalProperties": {"maxLength": 9}}
SCHEMAS: list[dict[str, Any]] = [
    {"allOf": [BRANCH, {"properties": {"b": {"maximum": 9}, "c": True}, "required": ["b"]}]},
    {
        "type": "object",
        "patternProperties": {"^x": {"type": "string"}, "y$": {"maxLength": 3}},
        "properties": {"xy": True},
    },
    {
        "type": "object",
        "anyOf": [
            {
                "properties": {"kind": {"const": kind}, kind: BRANCH, "n": {"type": ["integer", "string"]}},
                "required": ["kind"],
            }
            for kind in "pqr"
        ],
        "not": {"properties": {"n": {"type": "string"}}, "required": ["n", "p"]},
        "dependentRequired": {"p": ["q"]},
    },
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
@pytest.mark.parametrize("profile", ["exact", "generation"])
def test_addresses_in_keys_are_those_of_held_objects(
    schema: dict[str, Any], profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ObjectLowering] = []

    class Kept(ObjectLowering):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(lower, "ObjectLowering", Kept)
    with gw.cache.disabled():
        gw.JsonSchema(json.loads(json.dumps(schema)), profile=profile)
    gc.collect()
    assert made
    assert any(one._nodes for one in made)
    assert any(one._known_conditions for one in made)
    for one in made:
        for key in one._known_conditions:  # the objects themselves, which are compared by identity
            assert all(isinstance(rules, PropertyRules) for rules in key)
        for node_key, (part, node) in one._nodes.items():
            assert isinstance(node_key, tuple)
            assert node_key[1] is part.rule_sets
            assert node is None or node_key[0] == id(node.punctuation)
        for (name, value, required, missing), entry in one._properties.items():
            assert (entry.required, entry.missing) == (required, missing), name
            assert value == ((id(entry.value),) if isinstance(entry.value, tuple) else entry.value)
