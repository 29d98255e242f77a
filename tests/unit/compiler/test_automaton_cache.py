"""The memory cache of `compile`: keys by content, hits, and the switch that disables it."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pydantic
import pytest

import guideway as gw
from guideway import disk
from guideway.compiler import CompileLimits, cache_keys as memo
from guideway.compiler.automaton_cache import AutomatonCache
from guideway.constraints import programs
from guideway.errors import InvalidConstraintError, LimitExceededError, UnsatisfiableError
from tests.helpers.byte_tokens import BYTES, accepts
from tests.helpers.work import lines

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
LARGE: dict[str, Any] = {
    "type": "object",
    "properties": {f"name {i}": {"type": "string", "maxLength": i + 1} for i in range(300)},
}


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", str(tmp_path / "cache"))
    gw.cache.clear()
    yield
    gw.cache.clear()


def counts() -> tuple[int, int]:
    return gw.cache.hits, gw.cache.misses


def stored() -> disk.DiskCache:
    found = disk.cache()
    assert found is not None
    return found


# -- in memory --------------------------------------------------------------------------------------------------------


def test_one_miss_then_hits_by_object_by_content_and_by_another_spelling() -> None:
    source = gw.JsonSchema(SCHEMA)
    made = gw.compile(source, BYTES)
    assert counts() == (0, 1)
    for again in (source, gw.JsonSchema(SCHEMA), copy.deepcopy(SCHEMA), json.loads(json.dumps(SCHEMA)), SCHEMA):
        assert gw.compile(again, BYTES) is made
    assert counts() == (5, 1)


def test_a_changed_dict_is_another_constraint() -> None:
    schema = copy.deepcopy(SCHEMA)
    first = gw.compile(schema, BYTES)
    schema["properties"]["a"]["type"] = "string"  # type: ignore[index]  # a plain dict of dicts
    second = gw.compile(schema, BYTES)
    assert first is not second
    assert accepts(first, '{"a": 1}')
    assert not accepts(second, '{"a": 1}')
    assert accepts(second, '{"a": "1"}')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"const": 1}, {"const": True}),
        ({"const": 1}, {"const": "1"}),
        ({"const": None}, {"const": "null"}),
        ({"enum": ["ab", "c"]}, {"enum": ["a", "bc"]}),
        ({"enum": [["a"], "b"]}, {"enum": ["a", ["b"]]}),
        ({"const": {"a": 1, "b": 2}}, {"const": {"a": 1, "c": 2}}),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "maximum": 1}),
    ],
)
def test_different_contents_have_different_keys(one: dict[str, object], other: dict[str, object]) -> None:
    assert memo.content_key(one) != memo.content_key(other)
    assert memo.quick_key(one) != memo.quick_key(other)
    assert gw.compile(one, BYTES) is not gw.compile(other, BYTES)


def test_non_plain_data_has_no_key() -> None:
    class Odd(dict[str, object]):
        pass

    cyclic: dict[str, object] = {}
    cyclic["a"] = cyclic
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for value in ({"const": Decimal(1)}, Odd(), {"a": Odd()}, {"a": object()}, {"a": print}, [], "x", deep):
        assert memo.quick_key(value) is None
        assert not isinstance(value, dict) or memo.content_key(value) is None
    with pytest.raises((InvalidConstraintError, LimitExceededError)):
        gw.compile(cyclic, BYTES)
    while deep:  # delete level by level: recursive deletion would be too deep for some versions of Python
        deep = deep["a"]  # type: ignore[assignment]  # dicts of dicts, to no depth that a type could tell


def test_shared_parts_do_not_blow_up() -> None:
    node: object = "a"
    for _ in range(60):
        node = [node, node]
    assert memo.quick_key({"const": node}) is not None
    keys: list[object] = []
    assert lines(lambda: keys.append(memo.content_key({"const": node}))) < 10_000_000  # 4 million; a walk has 2**60
    assert keys == [None]


def test_the_key_of_files_depends_on_the_content_alone() -> None:
    shared = {"type": "string"}
    one = {"a": shared, "b": shared}
    other = {"a": {"type": "string"}, "b": {"type": "".join(["str", "ing"])}}
    assert memo.quick_key(one) != memo.quick_key(other)
    assert memo.content_key(one) == memo.content_key(other)  # type: ignore[arg-type]  # dicts are invariant
    assert gw.compile({"properties": one}, BYTES) is gw.compile({"properties": other}, BYTES)


def test_types_are_known_and_a_rebuilt_model_is_another() -> None:
    class Person(pydantic.BaseModel):
        name: str

    made = gw.compile(Person, BYTES)
    assert gw.compile(Person, BYTES) is made
    assert counts() == (1, 1)
    Person.model_fields["name"].annotation = int
    Person.model_rebuild(force=True)
    assert accepts(gw.compile(Person, BYTES), '{"name": 1}')


def test_sources_are_held_weakly() -> None:
    known = gw.cache.programs
    source = gw.Regex("abc")
    gw.compile(source, BYTES)
    assert known.of_object(source) is not None
    before = len(known._by_identity)
    del source
    gc.collect()
    assert len(known._by_identity) == before - 1


def test_different_vocabularies_have_different_digests() -> None:
    tokens = list(BYTES.token_bytes)
    made = gw.compile(SCHEMA, BYTES)
    equal = gw.Vocabulary(tokens, eos_ids=[256])
    assert gw.compile(SCHEMA, equal) is made
    others = [
        gw.Vocabulary([*tokens, b"ab"], eos_ids=[256]),
        gw.Vocabulary(tokens, eos_ids=[255, 256]),
        gw.Vocabulary(tokens, eos_ids=[256], special_ids=[0]),
        gw.Vocabulary([*tokens[:97], b"A", *tokens[98:]], eos_ids=[256]),
    ]
    assert len({id(gw.compile(SCHEMA, other)) for other in [BYTES, *others]}) == 5


def test_cache_can_be_disabled() -> None:
    made = gw.compile(SCHEMA, BYTES)
    assert gw.compile(SCHEMA, BYTES, cache=False) is not made
    with gw.cache.disabled():
        assert not gw.cache.enabled
        assert gw.compile(SCHEMA, BYTES) is not made
        assert gw.compile(LARGE, BYTES)
    assert stored().entries() == []
    gw.cache.enabled = False
    try:
        assert gw.compile(SCHEMA, BYTES) is not made
    finally:
        gw.cache.enabled = True
    assert gw.compile(SCHEMA, BYTES) is made
    gw.cache.clear()
    assert gw.compile(SCHEMA, BYTES) is not made


def test_the_budget_holds() -> None:
    cache = AutomatonCache(budget_bytes=100_000)
    automaton = gw.compile(SCHEMA, BYTES, cache=False)
    for number in range(50):
        cache.put((bytes([number]), "v"), automaton, 10_000)
        assert cache.used_bytes <= 100_000
    assert len(cache) == 3
    assert cache.get((b"\x00", "v")) is None
    assert cache.get((bytes([49]), "v")) is automaton
    other = gw.compile(SCHEMA, BYTES, cache=False)
    assert cache.put((bytes([49]), "v"), other, 10) is automaton  # who was first stays


# -- on disk ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _store_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "STORE_SECONDS", 0.0)
    monkeypatch.setattr(programs, "LOOK_BYTES", 0)


@pytest.mark.usefixtures("_store_all")
def test_a_stored_program_is_the_same_automaton() -> None:
    made = gw.compile(LARGE, BYTES)
    assert [entry.kind for entry in stored().entries()] == ["program-1"]
    gw.cache.clear()
    again = gw.compile(json.loads(json.dumps(LARGE)), BYTES)
    assert stored().statistics.hits >= 1
    assert again is not made
    for text in ('{"name 0": "a"}', '{"name 0": "ab"}', "{}", '{"name 299": "x"}'):
        assert accepts(again, text) == accepts(made, text)


@pytest.mark.usefixtures("_store_all")
def test_entries_of_other_versions_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    gw.compile(LARGE, BYTES)
    gw.cache.clear()
    before = stored().statistics.hits
    monkeypatch.setattr(programs, "_meaning", lambda: b"another version's code")
    gw.compile(LARGE, BYTES)
    assert stored().statistics.hits == before
    assert len(stored().entries()) == 2


@pytest.mark.usefixtures("_store_all")
def test_damage_on_disk_is_healed() -> None:
    gw.compile(LARGE, BYTES)
    (entry,) = stored().entries()
    whole = entry.path.read_bytes()
    for broken in (whole[:-5], whole[:100] + b"\xff" + whole[101:], b"", b"\0" * len(whole)):
        entry.path.write_bytes(broken)
        gw.cache.clear()
        assert accepts(gw.compile(LARGE, BYTES), '{"name 0": "a"}')
        assert entry.path.read_bytes() == whole


@pytest.mark.usefixtures("_store_all")
def test_a_stored_program_that_cannot_be_used_is_compiled_from_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}},
        "required": ["a"],
    }
    for _ in range(2):  # the second time the program comes from disk
        gw.cache.clear()
        with pytest.raises(UnsatisfiableError) as caught:
            gw.compile(impossible, BYTES)
        assert "/properties/a" in str(caught.value) or caught.value.place is not None


def test_fast_programs_are_not_stored() -> None:
    gw.compile(SCHEMA, BYTES)
    assert not [entry for entry in stored().entries() if entry.kind.startswith("program")]


# -- limits, and async --------------------------------------------------------------------------------------------------


def test_limits_name_their_value_and_parameter() -> None:
    wanted = gw.Regex("(a|b){50}c(a|b){50}")
    assert gw.compile(wanted, BYTES, limits=CompileLimits()) is gw.compile(wanted, BYTES)
    for name, few, many in (("max_states", 20, 100_000), ("max_work", 300, 10_000_000)):
        with pytest.raises(LimitExceededError, match=rf"{name} = {few} .*limits=CompileLimits\({name}=\.\.\.\)"):
            gw.compile(wanted, BYTES, limits=CompileLimits(**{name: few})).matcher().completion()
        automaton = gw.compile(wanted, BYTES, limits=CompileLimits(**{name: many}))
        assert accepts(automaton, "a" * 50 + "c" + "b" * 50)
    with pytest.raises(ValueError, match="max_states"):
        CompileLimits(max_states=0)


FIXED = {
    "remainders of a divisor": (
        50_000,
        lambda: gw.JsonSchema({"type": "number", "multipleOf": 0.000123457}, profile="exact"),
    ),
    "levels of nested regular expressions": (400, lambda: nested_repetition(500)),
}


def nested_repetition(levels: int) -> Any:
    constraint: Any = gw.Regex("[ab]")
    for _ in range(levels):
        constraint = constraint.repeat(2, 3)
    return constraint


@pytest.mark.parametrize("what", FIXED)
def test_fixed_limits_name_their_value_and_a_remedy(what: str) -> None:
    limit, make = FIXED[what]
    with pytest.raises(LimitExceededError, match=rf"more than {limit} {what}.* \(a fixed limit\): \w+"):
        gw.compile(make(), BYTES).matcher().completion()


def test_limits_hold_in_nodes_that_the_kernel_adds() -> None:
    """The kernel adds nodes for items that must differ; an error in one of them has no place in the schema."""
    item = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    items = {**item, "properties": {**item["properties"], "c": {"type": "array", "uniqueItems": True, "items": item}}}
    source = gw.JsonSchema({"type": "array", "uniqueItems": True, "items": items}, profile="exact")
    served = []
    for exponent in range(18):
        try:
            gw.compile(source, BYTES, cache=False, limits=CompileLimits(max_work=2**exponent))
            served.append(True)
        except LimitExceededError:
            served.append(False)
    assert served == sorted(served)
    assert set(served) == {False, True}


def test_async() -> None:
    async def main() -> None:
        before = gw.compile(SCHEMA, BYTES)
        assert await gw.compiler.acompile(SCHEMA, BYTES) is before
        with gw.cache.disabled():
            assert await gw.compiler.acompile(SCHEMA, BYTES) is not before

    asyncio.run(main())


def test_threads_share_one_automaton() -> None:
    found: list[gw.Automaton] = []
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        found.extend(gw.compile(copy.deepcopy(SCHEMA), BYTES) for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in found}) == 1


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.cli import main

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main(["cache", *words])
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out + captured.err

    stored().put("program-1", "ab" * 8, b"content")
    assert run("show") == (0, run("show")[1])
    assert "1 entries" in run("show", "--files")[1]
    assert "abab" in run("show", "--files")[1]
    assert run("verify") == (0, "1 entries are valid, 0 were damaged and removed\n")
    stored().entries()[0].path.write_bytes(b"")
    assert run("verify")[0] == 1
    stored().put("program-1", "ab" * 8, b"content")
    assert "1 entries removed" in run("clear")[1]
    assert stored().entries() == []
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", "")
    status, text = run("show")
    assert status == 2
    assert "no cache on disk" in text


@pytest.mark.usefixtures("_store_all")
def test_another_kernel_has_other_entries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = programs._meaning()
    (tmp_path / "kernel.so").write_bytes(b"another kernel")
    with monkeypatch.context() as patch:
        patch.setattr(programs._kernel, "__file__", str(tmp_path / "kernel.so"))
        programs._meaning.cache_clear()
        assert programs._meaning() != before
    programs._meaning.cache_clear()
    assert programs._meaning() == before
