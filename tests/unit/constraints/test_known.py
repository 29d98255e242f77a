"""Equal constraints share one state, in this process, and one program on disk, in others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

import guideway as gw
from guideway import caching, disk
from guideway.constraints import known, programs
from guideway.constraints.base import Literal
from guideway.constraints.known import states
from guideway.frontends.python_types import texts as texts_of_types
from tests.helpers.byte_tokens import BYTES, accepts

if TYPE_CHECKING:
    from typing_extensions import Self

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {f"name {i}": {"type": "string", "maxLength": i + 1} for i in range(60)},
    "required": ["name 0"],
}
LARK = 'start: item+\nitem: "a" NUMBER ";"\nNUMBER: /[0-9]+/\n' + "".join(f'x{i}: "b{i}"\n' for i in range(40))


def person() -> type[pydantic.BaseModel]:
    """Return a new class each time."""
    fields: dict[str, Any] = {f"field_{i}": (int, ...) for i in range(60)}
    return pydantic.create_model("Person", **fields)


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(SCHEMA))
    return found


KINDS: dict[str, tuple[Callable[[], Any], str, bool]] = {
    "schema": (lambda: gw.JsonSchema(schema()), '{"name 0": "a"}', True),
    "schema text": (lambda: gw.JsonSchema(json.dumps(SCHEMA)), '{"name 0": "a"}', True),
    "schema options": (lambda: gw.JsonSchema(schema(), whitespace="any"), '{ "name 0": "a"}', True),
    "dict": (schema, '{"name 0": "a"}', True),
    "type": (lambda: gw.constraints.PythonType(person()), json.dumps({f"field_{i}": i for i in range(60)}), True),
    "lark": (lambda: gw.Lark(LARK), "a1;a22;", True),
    "gbnf": (lambda: gw.Gbnf('root ::= "a"+ other\nother ::= ' + '"b" | ' * 200 + '"c"'), "aab", True),
    "ebnf": (lambda: gw.Ebnf("root ::= 'a'+ other\nother ::= " + "'b' | " * 200 + "'c'"), "aac", True),
    "tags": (lambda: gw.Tags([gw.constraints.Tag("<a>", gw.JsonSchema(schema()), "</a>")]), "x", True),
    "reasoning": (lambda: gw.Reasoning(gw.JsonSchema(schema())), '<think>x</think>{"name 0": "a"}', True),
    "tools": (
        lambda: gw.ToolCalls([{"name": "f", "parameters": schema()}], family="hermes"),
        "text",
        True,
    ),
    "regex": (lambda: gw.Regex("a+b", flags="i"), "AAb", False),
    "choice": (lambda: gw.Choice(["a", "b"]), "b", False),
    "format": (lambda: gw.constraints.Format("date"), "2020-01-02", False),
    "substring": (lambda: gw.constraints.Substring("some text"), "me te", False),
    "union": (lambda: gw.Regex("a+") | gw.JsonSchema(schema()), "aa", False),
    "sequence": (lambda: Literal("x") + gw.JsonSchema(schema()), 'x{"name 0": "a"}', False),
    "intersection": (lambda: gw.Regex("a+") & gw.Regex("a{2}"), "aa", False),
    "complement": (lambda: ~gw.Regex("a+"), "b", False),
    "repeat": (lambda: gw.Regex("ab").repeat(1, 3, separator=","), "ab,ab", False),
    "capture": (lambda: gw.JsonSchema(schema()).capture("x"), '{"name 0": "a"}', True),
}
"""A function that creates the constraint, an accepted text, and whether an expensive program is stored on disk."""


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", str(tmp_path))
    gw.cache.clear()


@pytest.mark.parametrize("kind", KINDS)
def test_an_equal_constraint_is_compiled_once(kind: str) -> None:
    make, text, _ = KINDS[kind]
    made = gw.compile(make(), BYTES)
    hits, automata = states.info().hits, gw.cache.hits
    lowered = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gw.compiler.compilation, "encode", lambda grammar: lowered.append(grammar))
        assert gw.compile(make(), BYTES) is made
    assert not lowered
    assert gw.cache.hits == automata + 1
    assert kind == "dict" or states.info().hits > hits
    assert accepts(made, text)
    assert caching.info()["guideway.constraints.known.states"] == states.info()


@pytest.mark.parametrize("kind", [kind for kind, (_, _, stored) in KINDS.items() if stored])
def test_another_process_finds_the_program(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`clear` removes all caches of the process here; the next test uses separate processes."""
    monkeypatch.setattr(programs, "STORE_SECONDS", 0.0)
    monkeypatch.setattr(programs, "LOOK_BYTES", 0)
    make, text, _ = KINDS[kind]
    made = gw.compile(make(), BYTES)
    files = disk.cache()
    assert files is not None
    gw.cache.clear()
    hits = files.statistics.hits
    monkeypatch.setattr(gw.compiler.compilation, "encode", lambda grammar: pytest.fail("the program was made again"))
    source = make()
    again = gw.compile(source, BYTES)
    assert files.statistics.hits > hits
    assert again is not made
    for one in (text, text[:-1], text + "}", ""):
        assert accepts(again, one) == accepts(made, one)
    monkeypatch.undo()
    if not isinstance(source, dict):  # its grammar is made when it is needed
        assert source.parse(text) is not None
        assert gw.compile(source, BYTES, cache=False).matcher() is not None


def test_only_programs_that_are_searched_for_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "STORE_SECONDS", 0.0)
    monkeypatch.setattr(programs, "LOOK_BYTES", 200)
    files = disk.cache()
    assert files is not None
    for stored, source in ((False, gw.JsonSchema({"type": "integer"})), (True, gw.JsonSchema(schema()))):
        before = files.statistics.writes
        gw.compile(source, BYTES)
        assert files.statistics.writes == before + stored


COUNT = """
import sys
import guideway as gw
from guideway import disk
from guideway.constraints import known, programs
from tests.helpers.byte_tokens import BYTES
from tests.unit.constraints.test_known import KINDS
programs.STORE_SECONDS, programs.LOOK_BYTES = 0.0, 0
for kind, (make, _, stored) in KINDS.items():
    if stored:
        gw.compile(make(), BYTES)
found = disk.cache().statistics
print(found.hits, found.writes)
"""


def test_a_second_process_lowers_nothing() -> None:
    root = Path(__file__).parents[3]
    found = []
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", COUNT], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True
        )
        assert ran.returncode == 0, ran.stderr.decode()
        found.append([int(one) for one in ran.stdout.split()])
    (_, written), (hits, again) = found
    assert written >= 9
    assert hits >= written
    assert again == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: gw.JsonSchema({"const": 1}), lambda: gw.JsonSchema({"const": True})),
        (lambda: gw.JsonSchema({"const": 1}), lambda: gw.JsonSchema({"const": 1.5})),
        (lambda: gw.JsonSchema({}), lambda: gw.JsonSchema({}, profile="exact")),
        (lambda: gw.Regex("a"), lambda: gw.Regex("a", flags="i")),
        (lambda: gw.Regex("a"), lambda: gw.Choice(["a"])),
        (lambda: gw.Choice(["a", "b"]), lambda: gw.Choice(["ab"])),
        (lambda: gw.Regex("a") | gw.Regex("b"), lambda: gw.Regex("a") | gw.Regex("c")),
        (lambda: gw.Regex("a") | gw.Regex("b"), lambda: gw.Regex("a") + gw.Regex("b")),
        (lambda: gw.Lark('start: "a"'), lambda: gw.Lark('start: "a"', lexer="contextual")),
        (lambda: gw.Regex("a").repeat(1), lambda: gw.Regex("a").repeat(True and 2)),
        (lambda: gw.Lark("start: x", parts={"x": gw.Regex("a")}), lambda: gw.Lark("start: x", parts={"x": int})),
    ],
)
def test_different_constraints_share_nothing(one: Callable[[], Any], other: Callable[[], Any]) -> None:
    first, second = one(), other()
    assert first.__dict__ is not second.__dict__
    assert first.__dict__ is one().__dict__
    assert second.__dict__ is other().__dict__
    if type(first) is type(second):
        assert first._stable is None or first._stable != second._stable


def test_a_changed_dict_is_another_schema() -> None:
    given = schema()
    first = gw.JsonSchema(given)
    given["properties"]["name 0"]["maxLength"] = 7
    second = gw.JsonSchema(given)
    assert first != second
    assert accepts(gw.compile(second, BYTES), '{"name 0": "abcdefg"}')
    assert not accepts(gw.compile(first, BYTES), '{"name 0": "abcdefg"}')


def test_a_rebuilt_model_is_another_type() -> None:
    made = person()
    first = gw.constraints.PythonType(made)
    assert gw.constraints.PythonType(made).__dict__ is first.__dict__
    made.model_fields["field_0"].annotation = str
    made.model_rebuild(force=True)
    assert gw.constraints.PythonType(made).__dict__ is not first.__dict__


@pytest.mark.parametrize(
    "make", [lambda: pydantic.FutureDate, lambda: gw.constraints.PythonType(list[pydantic.FutureDate])]
)
def test_types_that_depend_on_the_date_are_lowered_again_each_day(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts() -> set[str]:
        made = gw.compile(make(), BYTES)
        days = (f'"{start + timedelta(after)}"' for after in range(20))
        return {text for text in days if accepts(made, text if make() is pydantic.FutureDate else f"[{text}]")}

    class Today(date):
        @classmethod
        def today(cls) -> Self:
            return cls.fromtimestamp(now[0])

    now = [1_800_000_000.0]
    start = date.fromtimestamp(now[0])
    monkeypatch.setattr(known, "time", lambda: now[0])
    monkeypatch.setattr(texts_of_types, "date", Today)
    first = texts()
    assert first == texts()
    assert len(first) == 15
    now[0] += 3 * 86_400
    assert len(texts()) == 12
    assert texts() < first


def test_classes_of_users_share_nothing() -> None:
    class Own(gw.Regex):
        pass

    assert Own("a").__dict__ is not Own("a").__dict__


def test_an_invalid_constraint_is_invalid_again() -> None:
    for _ in range(2):
        with pytest.raises(gw.errors.InvalidConstraintError):
            gw.JsonSchema({"type": "nothing"})
        with pytest.raises(gw.errors.InvalidConstraintError):
            gw.Lark("start: missing")


def test_the_states_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guideway.constraints.known.MAX_BYTES", 40_000)
    for number in range(100):
        gw.Regex(f"a{number}")
    assert 5 < states.info().entries <= 40


def test_the_switch_disables_sharing() -> None:
    with gw.cache.disabled():
        assert gw.Regex("a").__dict__ is not gw.Regex("a").__dict__


def test_a_constraint_is_made_if_the_code_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Path) -> bytes:
        raise OSError(24, "Too many open files")

    caching.clear_all()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", failing)
        assert gw.JsonSchema(schema()).parse('{"name 0": "a"}') == {"name 0": "a"}
    caching.clear_all()
    assert gw.JsonSchema(schema()).parse('{"name 0": "a"}') == {"name 0": "a"}


def test_shared_parts_are_equal_to_copies() -> None:
    """The key of a constraint depends on the content of its arguments, not on which parts are one object."""
    part = {"type": "string", "maxLength": 7}
    one = gw.JsonSchema({"properties": {"a": part, "b": part}})
    other = gw.JsonSchema({"properties": {"a": dict(part), "b": dict(part)}})
    assert one.__dict__ is other.__dict__


def test_huge_arguments_have_no_key() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        schema = {"properties": {"a": schema, "b": schema}}
    assert known._key(gw.JsonSchema, (schema,), {}) is None


def test_a_type_that_occurs_often_counts_once() -> None:
    """Each occurrence is written to the key, but only different types can be nested in each other."""
    occurrences = (int | None,) * (2 * known.MAX_REDUCED)
    assert known._key(gw.JsonSchema, occurrences, {}) is not None
    nested: Any = int
    for _ in range(2 * known.MAX_REDUCED):
        nested = list[nested]
    assert known._key(gw.JsonSchema, (nested,), {}) is None


def test_a_constraint_that_occurs_often_is_held_once() -> None:
    """Otherwise the estimated size of nested sums doubles at each level, and none of them is kept."""
    part = gw.Regex("a{0,3}")
    found = known._key(gw.Choice, (part, [part, part]), {})
    assert found is not None
    assert found[1] == [part, part.__dict__]


@pytest.mark.parametrize("module", ["requests", "types_of_users", "regex", "guideway.constraints_of_users"])
def test_objects_of_other_modules_have_no_key(module: str) -> None:
    others = type("Others", (), {"__module__": module})()
    assert known._key(gw.JsonSchema, ({}, others), {}) is None
    assert known._key(gw.JsonSchema, ({}, re.compile("a"), list[int]), {}) is not None
