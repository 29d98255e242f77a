"""The memory of an automaton is bounded: learned states are released without visible effect."""

from __future__ import annotations

import itertools
import json
import random
from concurrent.futures import ThreadPoolExecutor

import guideway as gw
from guideway import _kernel
from guideway.constraints import of
from guideway.grammar.program import encode
from tests.helpers.byte_tokens import filled

TOKENS = [*(bytes([byte]) for byte in range(256)), b"", b'{"', b'": ', b', "']
EOS = 256
MAP = gw.JsonSchema({"type": "object", "additionalProperties": {"type": "integer"}})


def automaton(**limits: int) -> gw.Automaton:
    return gw.Automaton.compile(_kernel.KernelVocabulary(TOKENS, [EOS], [], **limits), encode(of(MAP).grammar()))


def request(made: gw.Automaton, rng: random.Random) -> _kernel.Matcher:
    """Reads an entry with a new key."""
    matcher = made.matcher()
    for byte in b'{"' + bytes(rng.choices(b"abcdefghij", k=30)) + b'": 1, "':
        matcher.advance(byte)
    return matcher


def test_a_hot_automaton_stays_within_its_stores_budget() -> None:
    rng, made = random.Random(1), automaton(store_bytes=150_000)
    first = request(made, rng)
    known = filled(first).tolist()
    most, renewed, before = 0, 0, 0
    for _ in range(800):
        matcher = request(made, rng)
        learned = made.stats()["expressions"]
        renewed, before, most = renewed + (learned < before), learned, max(most, learned)
        assert filled(matcher).tolist() == known
    assert renewed >= 2, "the store was never left"
    assert most < 20_000
    # A matcher that was created before a renewal of the store continues from its state.
    assert filled(first).tolist() == known
    for byte in b'b": 2}':
        first.advance(byte)
    assert first.is_accepting
    first.rollback(6)
    assert filled(first).tolist() == known


def test_compiling_finds_what_the_first_tokens_need() -> None:
    code = gw.JsonSchema({"type": "string", "pattern": "^[0-9a-f]{8}$"}, profile="exact")
    made = gw.Automaton.compile(_kernel.KernelVocabulary(TOKENS, [EOS], []), encode(of(code).grammar()))
    matcher, found = made.matcher(), made.stats()["memo_misses"]
    filled(matcher).tolist()
    matcher.advance(ord('"'))
    filled(matcher).tolist()
    assert found > 2
    assert made.stats()["memo_misses"] <= found + 1


def codes(n: int) -> bytes:
    letters = "".join(chr(0x100 + n * 8 + i) for i in range(8))
    return encode(
        of(gw.JsonSchema({"type": "string", "pattern": f"^[{letters}]+[^{letters}]*$"}, profile="exact")).grammar()
    )


def test_compiling_alone_stays_within_the_cache_budget() -> None:
    table = _kernel.KernelVocabulary(TOKENS, [EOS], [], memo_bytes=100_000)
    sizes = [gw.Automaton.compile(table, codes(n)).stats()["memo_bytes"] for n in range(100)]
    assert max(sizes) < 300_000
    assert any(after < before for before, after in itertools.pairwise(sizes)), "nothing was dropped"


def test_precomputation_does_not_renew_the_automaton() -> None:
    made = gw.Automaton.compile(_kernel.KernelVocabulary(TOKENS, [EOS], [], store_bytes=1), codes(0))
    made.matcher()
    learned = made.stats()
    made.matcher()
    assert made.stats() == learned


def test_unique_objects_with_many_optional_keys_are_distinguished_early() -> None:
    properties = {f"key{n}": {"type": "string"} for n in range(12)}
    rows = gw.JsonSchema(
        {"type": "array", "uniqueItems": True, "items": {"type": "object", "properties": properties}}, profile="exact"
    )
    made = gw.Automaton.compile(_kernel.KernelVocabulary(TOKENS, [EOS], []), encode(of(rows).grammar()))
    matcher = made.matcher()
    for byte in json.dumps([dict.fromkeys(properties, "a value")]).encode()[:-1]:
        matcher.advance(byte)
    before = made.stats()["expressions"]
    for byte in b', {"':
        matcher.advance(byte)
        filled(matcher).tolist()
    assert made.stats()["expressions"] < before + 100


def test_an_idle_automaton_gives_its_store_back() -> None:
    table = _kernel.KernelVocabulary(TOKENS, [EOS], [], store_bytes=1)
    idle = gw.Automaton.compile(table, encode(of(MAP).grammar()))
    known, size = filled(idle.matcher()).tolist(), idle.stats()["expressions"]
    for n in range(20):
        words = [f"word{n}{k}" for k in range(50)]
        gw.Automaton.compile(table, encode(of(gw.JsonSchema({"enum": words})).grammar()))
    assert filled(idle.matcher()).tolist() == known
    assert idle.stats()["expressions"] <= size + 1000


def test_threads_that_find_it_worn_at_once() -> None:

    made = automaton(store_bytes=300_000)
    known = filled(request(made, random.Random(0))).tolist()

    def work(seed: int) -> bool:
        rng = random.Random(seed)
        return all(filled(request(made, rng)).tolist() == known for _ in range(60))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
