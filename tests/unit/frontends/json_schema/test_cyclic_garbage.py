"""Lowering leaves no reference cycles, so its memory is freed without the garbage collector.

A full collection takes as long as the lowering of a large schema, and stops all threads.
"""

import gc
from typing import Any

import pytest

import guideway as gw


def one_of_two(number: int) -> dict[str, Any]:
    return {"anyOf": [{"required": [f"a{number}"]}, {"required": [f"b{number}"]}]}


SCHEMAS: dict[str, dict[str, Any]] = {
    "fast path": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    "both paths": {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"minimum": 3}]}}},
    "short search exceeds its limit": {"type": "object", "allOf": [one_of_two(number) for number in range(12)]},
    "recursive": {
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "allOf": [{"$ref": "#/$defs/node"}],
        "minProperties": 1,
    },
    "negation": {"not": {"properties": {"a": {"type": "integer"}}}},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_lowering_leaves_no_cycles(name: str) -> None:
    gw.JsonSchema(SCHEMAS[name], profile="exact").grammar()  # fills the caches of the modules
    gc.collect()
    gc.disable()
    try:
        with gw.cache.disabled():
            gw.JsonSchema(SCHEMAS[name], profile="exact").grammar()
        assert gc.collect() == 0
    finally:
        gc.enable()
