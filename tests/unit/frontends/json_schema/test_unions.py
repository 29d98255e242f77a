"""Unions of many objects: `oneOf` and `anyOf` whose discriminator may be absent, in any position, or missing."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import guideway as gw
from guideway.frontends.json_schema import decision_diagram, dnf
from guideway.grammar.nodes import Object

END = 256
BYTES = gw.Vocabulary([*(bytes([i]) for i in range(END)), b""], eos_ids=[END], special_ids=[END])
TYPES: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"enum": ["x", "y"]},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "string", "minLength": 2},
    {"type": "array", "items": {"type": "integer"}},
)
VALUES = ("x", "y", "zz", 1, None, True, [], [1], ["q"], 1.5)
RIGHT = {"string": "zz", "integer": 3, "boolean": True, "array": [2]}


def union(branches: int, keys: int, *, closed: bool, required: str = "") -> dict[str, Any]:
    """Branches with their own keys and a discriminator with a default, as Pydantic writes them."""
    made = []
    for b in range(branches):
        names = {f"b{b}_{i}": dict(TYPES[i % 3], title=f"B{b} {i}") for i in range(keys - 1)}
        entries = {"kind": {"const": f"k{b}", "default": f"k{b}", "type": "string"}, **names}
        made.append({"type": "object", "properties": entries})
        if required:
            made[-1]["required"] = [f"b{b}_0"] if required == "one" else list(entries)
        if closed:
            made[-1]["additionalProperties"] = False
    return {"oneOf": made}


def drawn(rng: random.Random) -> dict[str, Any]:
    """A random union; keys are mostly those of one branch."""
    branches, closed = [], rng.choice((0.0, 0.0, 1.0, 0.5))
    for b in range(rng.choice((3, 8, 9, 10))):
        entries = {}
        for i in range(rng.randrange(1, 4)):
            name = f"b{b}_{i}" if rng.random() < 0.9 else f"p{i}"
            entries[name] = dict(rng.choice(TYPES), title=f"{b} {i}")
        if rng.random() < 0.8:
            entries["kind"] = rng.choice(({"const": f"k{b}", "default": f"k{b}"}, {"enum": [f"k{b}", f"K{b}"]}))
        names = list(entries)
        rng.shuffle(names)
        branch: dict[str, Any] = {"type": "object", "properties": {name: entries[name] for name in names}}
        if rng.random() < 0.5:
            branch["required"] = rng.sample(names, rng.randrange(min(3, len(names) + 1)))
        if rng.random() < closed:
            branch["additionalProperties"] = False
        branches.append(branch)
    made: dict[str, Any] = {rng.choice(("oneOf", "oneOf", "anyOf")): branches}
    if rng.random() < 0.2:
        made["properties"] = {"id": {"type": "integer"}}
    if rng.random() < 0.2:
        made[rng.choice(("minProperties", "maxProperties"))] = rng.randrange(1, 5)
    return made


def value(rng: random.Random, schema: dict[str, Any]) -> object:
    """Returns a value that usually matches the schema."""
    if rng.random() < 0.3:
        return rng.choice(VALUES)
    if "const" in schema:
        return schema["const"]
    return rng.choice(schema["enum"]) if "enum" in schema else RIGHT[schema.get("type", "string")]


def instance(rng: random.Random, schema: dict[str, Any]) -> dict[str, object]:
    """An object near the border of a union: some keys of some branches, and wrong values for the others."""
    branches = schema.get("oneOf") or schema["anyOf"]
    made: dict[str, object] = {}
    for branch in rng.sample(branches, rng.randrange(min(3, len(branches) + 1))):
        for name, inner in branch["properties"].items():
            if rng.random() < 0.6:
                made[name] = value(rng, inner)
    if rng.random() < 0.5:
        for branch in rng.sample(branches, len(branches) - rng.choice((1, 1, 1, 0, 2)) % len(branches)):
            made.setdefault(rng.choice(list(branch["properties"])), 1.5)
    if rng.random() < 0.3:
        made[rng.choice(("other", "id"))] = rng.choice(VALUES)
    items = list(made.items())
    rng.shuffle(items)
    return dict(items)


def accepts(automaton: gw.Automaton, text: bytes) -> bool:
    """Whether an automaton accepts a text."""
    matcher = automaton.matcher()
    try:
        for token in (*text, END):
            matcher.advance(token)
    except gw.errors.RejectedTokenError:
        return False
    return True


def compiled(schema: dict[str, Any], profile: str = "exact") -> gw.Automaton:
    """The automaton of a schema."""
    return gw.compile(gw.JsonSchema(schema, profile=profile), BYTES, cache=False)  # type: ignore[arg-type]  # a profile


def test_random_instances() -> None:
    rng, valid, compared = random.Random(28), 0, 0
    for _ in range(25):
        schema = drawn(rng)
        try:
            automaton = compiled(schema)
        except gw.errors.UnsatisfiableError:
            continue
        judge = jsonschema.Draft202012Validator(schema)
        for _ in range(20):
            data = instance(rng, schema)
            try:
                accepted = accepts(automaton, json.dumps(data).encode())
            except gw.errors.LimitExceededError:
                continue
            compared += 1
            valid += accepted
            assert accepted == judge.is_valid(data), (schema, data)
    assert compared > 300
    assert valid > 50


@pytest.mark.parametrize("profile", ["exact", "generation"])
def test_every_text_that_masks_allow_can_be_completed(profile: str) -> None:
    rng = random.Random(2)
    words = np.zeros((END + 32) // 32, np.uint32)
    for required in ("", "one"):
        schema = union(9, 3, closed=False, required=required)
        judge, automaton = jsonschema.Draft202012Validator(schema), compiled(schema, profile)
        for _ in range(5):
            matcher, text = automaton.matcher(), bytearray()
            for _ in range(rng.randrange(300)):
                matcher.fill_mask(words)
                allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
                quiet = [one for one in allowed if one < END and chr(one).isprintable() and one not in b"\\"]
                if not quiet:
                    break
                token = int(rng.choice(quiet))
                matcher.advance(token)
                text.append(token)
            text += matcher.completion()
            assert judge.is_valid(json.loads(text)), text


@pytest.mark.parametrize("required", ["", "one", "all"])
@pytest.mark.parametrize("closed", [False, True])
def test_the_grammar_of_a_large_union_is_linear(closed: bool, required: str) -> None:
    source = gw.JsonSchema(union(50, 20, closed=closed, required=required), profile="exact")
    objects = [node for node in source.grammar().nodes if isinstance(node, Object)]
    assert sum(len(node.properties) for node in objects) <= 2500
    only = dict.fromkeys((f"b7_{i}" for i in range(19)), "x")
    data = {"kind": "k7", **{name: (("x", 1, True)[i % 3]) for i, name in enumerate(only)}}
    automaton = gw.compile(source, BYTES, cache=False)
    for text, expected in ((data, True), (dict(reversed(data.items())), True), ({**data, "b7_1": "x"}, False)):
        assert accepts(automaton, json.dumps(text).encode()) is expected


def test_an_absent_discriminator_leaves_exactly_one_branch() -> None:
    schema = union(9, 2, closed=False)
    automaton = compiled(schema)
    wrong = {f"b{b}_0": 1 for b in range(9)}
    del wrong["b4_0"]
    assert accepts(automaton, json.dumps(wrong).encode())
    assert accepts(automaton, json.dumps({**wrong, "b4_0": "right"}).encode())
    assert not accepts(automaton, json.dumps({**wrong, "b4_0": 1}).encode())
    del wrong["b5_0"]
    assert not accepts(automaton, json.dumps(wrong).encode())


def test_a_key_that_another_schema_forbids_counts_as_absent() -> None:
    branches = [{"properties": {f"b{b}": {"type": "string"}}, "required": [f"b{b}"]} for b in range(9)]
    schema = {
        "type": "object",
        "properties": {f"b{b}": {} for b in range(8)},
        "additionalProperties": False,
        "oneOf": branches,
    }
    automaton = compiled(schema)
    for data, expected in (({"b1": "x"}, True), ({"b1": "x", "b2": "y"}, False), ({"b8": "x"}, False), ({}, False)):
        assert accepts(automaton, json.dumps(data).encode()) is expected


def test_unions_with_and_without_tallies_accept_the_same_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    for _ in range(6):
        schema = union(rng.choice((2, 3)), 3, closed=rng.random() < 0.3, required=rng.choice(("", "one")))
        divided = compiled(schema)
        with monkeypatch.context() as patch:
            for module in (decision_diagram, dnf):
                patch.setattr(module, "MIN_COUNTED", 2)
            tallied = compiled(schema)
        for _ in range(25):
            text = json.dumps(instance(rng, schema)).encode()
            assert accepts(tallied, text) == accepts(divided, text), (schema, text)


def test_a_large_number_of_keys_is_refused_before_it_is_planned() -> None:
    with pytest.raises(gw.errors.LimitExceededError):
        compiled({**union(9, 2, closed=False), "minProperties": 10**9})
    automaton = compiled({**union(9, 2, closed=False), "maxProperties": 10**9})
    assert not accepts(automaton, b"{}")


def settings(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Closed objects that share some keys, mostly with equal conditions."""
    pool = {f"s{i}": rng.choice(TYPES) for i in range(6)}
    made = []
    for i in range(count):
        entries = {f"o{i}_{j}": rng.choice(TYPES) for j in range(rng.randrange(1, 3))}
        entries |= {name: pool[name] for name in rng.sample(sorted(pool), rng.randrange(4))}
        if rng.random() < 0.3:
            entries[rng.choice(sorted(entries))] = rng.choice(TYPES)
        one: dict[str, Any] = {"properties": entries, "additionalProperties": False}
        made.append(one if rng.random() < 0.2 else {"type": "object", **one})
    return made


def nested(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Branches that differ in a nested object, in a map of such objects, and in an optional discriminator."""
    branches = []
    for i in range(len(options)):
        one = {"$ref": f"#/$defs/d{i}"}
        rest = {"type": "object", "additionalProperties": one}
        entries = {"kind": {"const": f"k{i}"}, "options": one, "others": rest}
        branches.append({"type": "object", "properties": entries})
    return {"oneOf": branches, "$defs": {f"d{i}": one for i, one in enumerate(options)}}


def test_nested_objects_that_share_keys() -> None:
    rng, valid, compared = random.Random(11), 0, 0
    for _ in range(8):
        options = settings(rng, rng.choice((3, 5, 8)))
        schema = nested(options)
        automaton, judge = compiled(schema), jsonschema.Draft202012Validator(schema)

        def drawn_options(known: list[dict[str, Any]] = options) -> dict[str, object]:
            entries = {k: v for one in rng.sample(known, rng.choice((1, 1, 2))) for k, v in one["properties"].items()}
            names = rng.sample(sorted(entries), rng.randrange(min(4, len(entries) + 1)))
            return {name: value(rng, entries[name]) for name in names}

        for _ in range(40):
            data: dict[str, object] = {}
            if rng.random() < 0.2:
                data["kind"] = rng.choice(("k0", "k1", "k9"))
            if rng.random() < 0.8:
                data["options"] = drawn_options()
            if rng.random() < 0.6:
                data["others"] = {name: drawn_options() for name in "ab"[: rng.randrange(3)]}
            accepted = accepts(automaton, json.dumps(data).encode())
            compared += 1
            valid += accepted
            assert accepted == judge.is_valid(data), (schema, data)
    assert compared == 320
    assert valid > 60


def test_negations_that_follow_from_others_are_not_combined() -> None:
    entries = [{f"o{i}_{j}": TYPES[j % 3] for j in range(6)} | {"s": TYPES[0]} for i in range(8)]
    options = [{"type": "object", "properties": one, "additionalProperties": False} for one in entries]
    grammar = gw.JsonSchema(nested(options), profile="exact").grammar()
    assert sum(isinstance(node, Object) for node in grammar.nodes) < 300  # 2,521 without implications


def test_wrapped_schema_is_expanded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`allOf` of a `$ref` and a description has the alternatives of the target."""
    searched: list[int] = []
    search = dnf.Expander._search_or_divide

    def counted(self: dnf.Expander, conjunction: Any) -> Any:
        searched.append(min(conjunction))
        return search(self, conjunction)

    monkeypatch.setattr(dnf.Expander, "_search_or_divide", counted)
    target = union(3, 2, closed=True)
    keys = {f"k{i}": {"allOf": [{"$ref": "#/$defs/t"}, {"description": f"key {i}"}]} for i in range(9)}
    schema = {"type": "object", "properties": keys, "$defs": {"t": target}, "additionalProperties": False}
    with gw.cache.disabled():
        gw.JsonSchema(schema, profile="exact").grammar()
        all_targets = len(searched)
        searched.clear()
        gw.JsonSchema({**schema, "properties": {"k0": keys["k0"]}}, profile="exact").grammar()
    assert all_targets == len(searched)


def test_equal_objects_are_one_node() -> None:
    """Alternatives that come from branches with equal assertions do not repeat the object."""
    schema = {
        "type": "object",
        "allOf": [{"properties": {name: {"type": "string"}}} for name in "ab"],
        "anyOf": [{"required": ["a"]}, {"required": ["a"], "title": "the same"}, {"required": ["b"]}],
        "not": {"required": ["c"]},
    }
    with gw.cache.disabled():
        grammar = gw.JsonSchema(schema, profile="exact").grammar()
    assert sum(isinstance(node, Object) and len(node.properties) == 2 for node in grammar.nodes) == 2


def test_the_exact_profile_divides_objects_after_a_short_search() -> None:
    """Independent choices about optional keys are expanded to fewer alternatives, which allow the same values."""
    pairs = [(f"a{i}", f"b{i}") for i in range(7)]
    schema = {
        "type": "object",
        "properties": {name: TYPES[0] for pair in pairs for name in pair},
        "allOf": [{"anyOf": [{"required": [name]} for name in pair]} for pair in pairs],
        "additionalProperties": False,
    }
    with gw.cache.disabled():
        sources = [gw.JsonSchema(schema, profile=profile) for profile in ("exact", "generation")]
        grammars = [source.grammar() for source in sources]
    assert [source._expander.divides_early for source in sources] == [True, False]
    exact, generation = (sum(isinstance(node, Object) for node in grammar.nodes) for grammar in grammars)
    assert exact < 10 < generation
