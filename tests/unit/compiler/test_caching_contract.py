"""A test of caching that fails if equality, hashing, digest, key, switch or checksum is broken.

`contract` is the test; each mutation breaks one property and must make it fail.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

import guideway as gw
from guideway import disk
from guideway.compiler import cache_keys as memo, compilation as automata
from guideway.compiler.automaton_cache import AutomatonCache
from guideway.constraints import programs
from guideway.tokenizers import Tokenizer, Vocabulary
from guideway.tokenizers.huggingface import Private
from tests.helpers.byte_tokens import accepts

TOKENS = [*(bytes([b]) for b in range(256)), b"ab", b"", b"</s>"]
FINGERPRINT = "af3edfd012fbf3e42fe5e5f2e028ac4e"  # of that vocabulary, wherever and whenever it is made
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
LARGE = {"type": "object", "properties": {f"name {i}": {"type": "string"} for i in range(40)}}


def vocabulary(**changes: Any) -> Vocabulary:
    fields: dict[str, Any] = {"token_bytes": TOKENS, "eos_ids": [258], "special_ids": {258, 257}, **changes}
    return Vocabulary(**fields)


def others() -> list[Vocabulary]:
    """Copies that differ in one thing each."""
    return [
        vocabulary(token_bytes=[*TOKENS, b"more"]),
        vocabulary(token_bytes=[*TOKENS[:97], b"A", *TOKENS[98:]]),
        vocabulary(token_bytes=[*TOKENS[:255], b"\xffa", b"b", *TOKENS[257:]]),  # the same bytes, cut elsewhere
        vocabulary(eos_ids=[257]),
        vocabulary(eos_ids=[257, 258]),
        vocabulary(special_ids=[258]),
    ]


def hub_tokenizer() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE({**{c: i for i, c in enumerate("abcd")}, "ab": 4}, [("a", "b")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return made


def identity() -> None:
    one, same = vocabulary(), vocabulary(special_ids=[257, 258, 257])
    assert one == same
    assert hash(one) == hash(same)
    assert one.fingerprint == same.fingerprint == FINGERPRINT
    everything = [one, *others()]
    for left, right in itertools.combinations(everything, 2):
        assert left != right
        assert left.fingerprint != right.fingerprint
    assert len({hash(each) for each in everything}) == len(everything)
    assert one != "a vocabulary"
    assert len({one: 1, same: 2}) == 1
    for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert (again, hash(again), again.fingerprint) == (one, hash(one), one.fingerprint)


def added_tokens() -> None:
    plain, more = hub_tokenizer(), hub_tokenizer()
    more.add_tokens(["<more>"])
    one, other = Tokenizer.of(plain), Tokenizer.of(more)
    assert one == Tokenizer.of(hub_tokenizer())
    assert one != other
    assert one.vocabulary.fingerprint != other.vocabulary.fingerprint
    assert one != Tokenizer.of(plain, eos_ids=[1])
    assert pickle.loads(pickle.dumps(other)) == other


def in_memory() -> None:
    gw.cache.clear()
    made = gw.compile(gw.JsonSchema(SCHEMA), vocabulary())
    assert (gw.cache.hits, gw.cache.misses) == (0, 1)
    assert gw.compile(gw.JsonSchema(SCHEMA), vocabulary()) is made
    assert (gw.cache.hits, gw.cache.misses) == (1, 1)
    found = [gw.compile(gw.JsonSchema(SCHEMA), other) for other in others()]
    assert len({id(each) for each in [made, *found]}) == len(found) + 1
    exact = gw.compile(gw.JsonSchema(SCHEMA, profile="exact"), vocabulary())
    assert accepts(exact, ' {"a":true}', 258)
    assert not accepts(made, ' {"a":true}', 258)

    schema = copy.deepcopy(SCHEMA)
    assert accepts(gw.compile(schema, vocabulary()), '{"a": true}', 258)
    schema["properties"]["a"]["type"] = "string"  # type: ignore[index]  # a plain dict of dicts
    assert not accepts(gw.compile(schema, vocabulary()), '{"a": true}', 258)
    source = gw.Regex("a")
    assert gw.compile(source, vocabulary()) is gw.compile(source, vocabulary())
    assert accepts(gw.compile(gw.Regex("b"), vocabulary()), "b", 258)
    with gw.cache.disabled():
        assert gw.compile(source, vocabulary()) is not gw.compile(source, vocabulary())
    assert gw.compile(source, vocabulary(), cache=False) is not gw.compile(source, vocabulary())
    gw.cache.clear()
    assert (gw.cache.hits, gw.cache.misses, len(gw.cache)) == (0, 0, 0)


def on_disk() -> None:
    files = disk.cache()
    assert files is not None
    small = {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]}
    for _ in range(2):
        gw.cache.clear()
        before = files.statistics.hits
        assert accepts(gw.compile(json.loads(json.dumps(LARGE)), vocabulary()), '{"name 3": ""}', 258)
        gw.cache.clear()
        assert accepts(gw.compile(json.loads(json.dumps(small)), vocabulary()), '{"x": true}', 258)
    assert files.statistics.hits >= before + 2
    for entry in files.entries():
        whole = bytearray(entry.path.read_bytes())
        whole[-8] ^= 1
        entry.path.write_bytes(whole)
        assert files.get(entry.kind, entry.key) is None
    gw.compile(json.loads(json.dumps(LARGE)), vocabulary())
    gw.cache.clear()
    count = len(files.entries())
    with pytest.MonkeyPatch.context() as patch:  # what another version of the library would see
        patch.setattr(programs.sys, "version_info", (9, 9, 9))
        programs._meaning.cache_clear()
        gw.compile(json.loads(json.dumps(LARGE)), vocabulary())
        assert len(files.entries()) == count + 1
    programs._meaning.cache_clear()


def contract() -> None:
    identity()
    added_tokens()
    in_memory()
    on_disk()


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(programs, "STORE_SECONDS", 0.0)
    monkeypatch.setattr(programs, "LOOK_BYTES", 0)


def test_the_contract_holds() -> None:
    contract()


counter = itertools.count()
fingerprint_of = Vocabulary.fingerprint.fget
fields_of = Vocabulary._fields


def fingerprint(of: Callable[[Vocabulary], object]) -> property:
    return property(lambda self: f"{hash(of(self)) & (2**64 - 1):032x}")


MUTATIONS: dict[str, tuple[object, str, object]] = {
    "equality: always": (Vocabulary, "__eq__", lambda self, other: True),
    "equality: never": (Vocabulary, "__eq__", lambda self, other: False),
    "equality: by hash alone": (Vocabulary, "__eq__", lambda self, other: hash(self) == hash(other) or True),
    "equality: without the ends": (Vocabulary, "__eq__", lambda a, b: a.token_bytes == getattr(b, "token_bytes", 0)),
    "equality: length only": (Vocabulary, "__eq__", lambda a, b: isinstance(b, Vocabulary) and len(a) == len(b)),
    "hash: of the object": (Vocabulary, "__hash__", lambda self: id(self)),
    "hash: another each time": (Vocabulary, "__hash__", lambda self: next(counter)),
    "hash: a constant": (Vocabulary, "__hash__", lambda self: 7),
    "fields: without special ids": (Vocabulary, "_fields", lambda self: (*fields_of(self)[:2], ())),
    "fields: without the ends": (Vocabulary, "_fields", lambda self: (self._block, (), self.special_ids)),
    "digest: a constant": (Vocabulary, "fingerprint", property(lambda self: "0" * 32)),
    "digest: of the object": (Vocabulary, "fingerprint", property(lambda self: f"{id(self):032x}")),
    "digest: salted by the process": (Vocabulary, "fingerprint", fingerprint(lambda self: fields_of(self))),
    "digest: without the ends": (
        Vocabulary, "fingerprint", property(lambda self: fingerprint_of(Vocabulary(self.token_bytes)))
    ),
    "digest: without the cuts": (
        Vocabulary, "fingerprint", property(lambda self: fingerprint_of(Vocabulary([b"".join(self.token_bytes)])))
    ),
    "digest: without special ids": (
        Vocabulary, "fingerprint", property(lambda self: fingerprint_of(Vocabulary(self.token_bytes, self.eos_ids)))
    ),
    "tokenizer: equal to all": (Tokenizer, "__eq__", lambda self, other: True),
    "tokenizer: by identity": (Tokenizer, "__eq__", lambda self, other: self is other),
    "tokenizer: pickles without its backend": (
        Private, "__reduce__", lambda self: (Private.of_text, (hub_tokenizer().to_str(),))
    ),
    "key: without the vocabulary": (AutomatonCache, "get", lambda self, key: next(
        (found for known, (found, _) in self._entries.items() if known[0] == key[0]), None)),
    "key: without the program": (AutomatonCache, "get", lambda self, key: next(
        (found for known, (found, _) in self._entries.items() if known[1] == key[1]), None)),
    "key: a program's length": (automata, "_digest", lambda program: b"%d" % (len(program) // 4096)),
    "key: of the dict's identity": (automata, "quick_key", lambda c: (b"%d" % id(c), 9) if type(c) is dict else None),
    "key: of a dict's keys": (
        automata, "quick_key", lambda c: (b"".join(map(str.encode, c)), 9) if type(c) is dict else None
    ),
    "key: every source is one": (memo.ProgramMemo, "of_object", lambda self, constraint: next(
        (found.digest for found in self._by_identity.values()), None)),
    "nothing is found": (AutomatonCache, "get", lambda self, key: None),
    "the kept one is forgotten": (AutomatonCache, "put", lambda self, key, automaton, size: automaton),
    "clear: does nothing": (AutomatonCache, "clear", lambda self, **options: None),
    "switch: without effect": (disk, "is_enabled", lambda: True),
    "disk: every content is one": (automata, "content_key", lambda schema: b"one"),
    "disk: every version is one": (programs, "_meaning", type("Still", (), {
        "__call__": lambda self: b"", "cache_clear": lambda self: None})()),
    "disk: nothing is checked": (disk, "_checksum", lambda name, data: 0),
    "disk: nothing is read": (disk.DiskCache, "get", lambda self, kind, key: None),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_contract_fails_when_this_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, broken = MUTATIONS[name]
    monkeypatch.setattr(where, attribute, broken)
    try:
        with pytest.raises(AssertionError):
            contract()
    finally:
        monkeypatch.undo()
        gw.cache.clear()
        programs._meaning.cache_clear()
