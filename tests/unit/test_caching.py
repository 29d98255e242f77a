"""Function caches: budgets, and `gw.cache.clear()` empties all of them."""

from __future__ import annotations

import ast

import pytest

import guideway as gw
from guideway import caching
from guideway._kernel import Automaton
from guideway.grammar import program
from tests.packaging.repository import PACKAGE, python_files

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "day": {"type": "string", "format": "date"},
        "host": {"type": "string", "format": "hostname"},
        "code": {"type": "string", "pattern": r"^\p{Lu}\w+\b$"},
        "kind": {"enum": ["a", "b", 3]},
    },
    "patternProperties": {"^x": {"type": "integer"}, "^y": {"type": "number"}},
    "title": "T",
    "unknownKeyword": 1,
}
ONCE = {"integrations/vllm/runner_v1.py": "_show_tokens"}
"""Functions that must run once per process: they patch a library."""


def used() -> dict[str, int]:
    return {name: state.entries for name, state in gw.cache.info().items() if state.entries}


def test_clear_empties_all_function_caches() -> None:
    vocabulary = gw.Vocabulary([*(bytes([b]) for b in range(256)), b""], eos_ids=[256])
    automaton = gw.compile(gw.JsonSchema(SCHEMA, profile="exact"), vocabulary)
    gw.JsonSchema(SCHEMA).parse('{"name": "ab", "day": "2020-01-31"}')
    gw.Regex(r"(?i)(?:\bk\w|[k-z])*").parse("k")
    found = used()
    expected = (
        "any_scalar",
        "_shared_format",
        "_pattern",
        "_strings",
        "_classes",
        "_single_bytes",
        "shared",
        "shared_nodes_of",
    )
    names = {name.rpartition(".")[2] for name in found} | {name.rpartition("._")[2] for name in found}
    assert len(found) > 15, found
    for name in expected:
        assert any(one.endswith(name.removeprefix("_")) for one in names), (name, found)
    gw.cache.clear(functions=False)
    assert used() == found
    gw.cache.clear()
    assert used() == {}
    again = gw.compile(gw.JsonSchema(SCHEMA, profile="exact"), vocabulary)
    text = b'{"name":"ab","code":"Ab"}'
    assert automaton.matcher().validate([*text]) == again.matcher().validate([*text]) == len(text)


def test_every_function_cache_is_registered() -> None:
    """No `lru_cache` or `cache` of functools outside of `caching.py`, except functions that must run once."""
    for path in python_files():
        name = str(path.relative_to(PACKAGE))
        text = path.read_text("utf-8")
        if name == "caching.py" or "functools" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert not {one.name for one in node.names} & {"cache", "lru_cache"}, name
            if isinstance(node, ast.Attribute) and node.attr in ("cache", "lru_cache"):
                of_functools = isinstance(node.value, ast.Name) and node.value.id == "functools"
                assert not of_functools or name in ONCE, name


def test_entries_are_bounded() -> None:
    calls: list[str] = []

    def double(text: str) -> str:
        calls.append(text)
        return 2 * text

    function = caching.cached(2)(double)
    assert [function(one) for one in "abab"] == ["aa", "bb", "aa", "bb"]
    assert calls == ["a", "b"]
    function("c")
    function("a")  # the least recently used entry was dropped
    assert calls == ["a", "b", "c", "a"]
    state = next(state for name, state in caching.info().items() if name.endswith("double"))
    assert state == caching.CacheInfo(entries=2, max_entries=2, hits=2, misses=4)


def test_characters_are_bounded() -> None:
    calls: list[str] = []

    def triple(text: str) -> str:
        calls.append(text)
        return 3 * text

    function = caching.cached(100, characters=10, size=len)(triple)
    for one in ("abcd", "efgh", "abcd", "ijk", "abcd", "efgh", "ijk"):
        assert function(one) == 3 * one
    # The first "ijk" exceeds the budget, so the others were dropped. The second "efgh" exceeds it together with "ijk".
    assert calls == ["abcd", "efgh", "ijk", "abcd", "efgh", "ijk"]
    assert function.__wrapped__("z") == "zzz"
    with pytest.raises(TypeError):
        function([])  # type: ignore[arg-type]  # not hashable


def test_long_texts_of_users_are_not_kept() -> None:
    gw.cache.clear()
    for number in range(40):
        gw.JsonSchema({"properties": {f"{number}{'x' * 300_000}": {}}}, profile="exact").grammar()
    strings = next(state for name, state in gw.cache.info().items() if name.endswith("_new_strings"))
    assert strings.entries <= 28, strings  # 8 MiB of characters
    gw.cache.clear()


def test_shared_encodings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_MAX_RECENT", 10)
    gw.cache.clear()
    programs = []
    for number in range(40):
        grammar = gw.JsonSchema({"type": "array", "items": {"type": "string", "maxLength": 5 + number}}).grammar()
        programs.append((grammar, program.encode(grammar)))
        assert gw.cache.info()["guideway.grammar.program.shared"].entries <= 30
    gw.cache.clear()
    vocabulary = gw.Vocabulary([*(bytes([b]) for b in range(256)), b""], eos_ids=[256])
    for number, (grammar, _) in enumerate(programs):  # their expressions are not shared now
        fits = Automaton.compile(vocabulary.kernel, program.encode(grammar)).matcher()
        text = f'["{"x" * (5 + number)}"]'.encode()
        assert fits.validate([*text, 256]) == len(text) + 1
