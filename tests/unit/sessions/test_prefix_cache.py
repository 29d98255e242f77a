"""The prefix cache: hits for equal prefixes, the byte budget, and unchanged results."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import guideway as gw
from guideway.errors import KVCacheFullError
from guideway.generation import Model
from guideway.sessions import Counts, PrefixCache
from guideway.testing import ConstantModel, ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary

VOCABULARY = Vocabulary([b"", *(bytes([b]) for b in b"abcdefgh ")], eos_ids=[0], special_ids=[0])


class TextChunk:
    """A cache that stores its tokens."""

    def __init__(self, ids: list[int], size: int = 100) -> None:
        self.ids, self.length, self.nbytes = ids, len(ids), size

    def truncated(self, length: int) -> TextChunk:
        return TextChunk(self.ids[:length], self.nbytes)


def model(*, supports_rollback: bool = True, prefix_bytes: int = 1 << 20) -> Model:
    return Model(
        ToyEngine(10, supports_rollback=supports_rollback), Tokenizer.of(VOCABULARY), prefix_bytes=prefix_bytes
    )


IDS = st.lists(st.integers(0, 2), min_size=1, max_size=9)


class Tree(RuleBasedStateMachine):
    """Against a list of what was put, least recently used first."""

    @initialize(supports_rollback=st.booleans(), room=st.integers(1, 8))
    def begin(self, supports_rollback: bool, room: int) -> None:
        self.supports_rollback, self.room = supports_rollback, room * 1000
        self.cache = PrefixCache(budget_bytes=self.room, supports_rollback=supports_rollback, shortest=1)
        self.held: list[list[int]] = []

    def touch(self, ids: list[int]) -> None:
        self.held.remove(ids)
        self.held.append(ids)

    @rule(ids=IDS)
    def put(self, ids: list[int]) -> None:
        self.cache.put(ids, TextChunk(ids, 1000 - 40 * len(ids)))
        if self.supports_rollback:
            if longer := [one for one in self.held if one[: len(ids)] == ids and one != ids]:
                held = self.cache.find(ids)
                assert held is not None
                self.touch(next(one for one in longer if self.in_front() == one))
                return
            self.held = [one for one in self.held if ids[: len(one)] != one]
        self.held = [*(one for one in self.held if one != ids), ids][-self.room // 1000 :]

    def in_front(self) -> list[int]:
        """What was used last."""
        piece, _ = next(reversed(self.cache._held.values()))
        assert isinstance(piece, TextChunk)
        return piece.ids

    @rule(ids=IDS, more_than=st.integers(0, 3))
    def find(self, ids: list[int], more_than: int) -> None:
        usable = [one for one in self.held if self.supports_rollback or ids[: len(one)] == one]
        best = max((len(np.flatnonzero(common(one, ids))) for one in usable), default=0)
        found = self.cache.find(ids, more_than=more_than)
        if best <= more_than:
            assert found is None
        else:
            assert isinstance(found, TextChunk)
            assert found.ids == ids[:best]
            self.touch(self.in_front())

    @rule()
    def drop(self) -> None:
        assert self.cache.drop_oldest() == bool(self.held)
        del self.held[:1]

    @invariant()
    def holds_what_it_should(self) -> None:
        assert [piece.ids for piece, _ in self.cache._held.values()] == self.held  # type: ignore[attr-defined]  # a TextChunk
        found = self.cache.statistics
        assert (found.entries, found.nbytes) == (len(self.held), 1000 * len(self.held))
        assert found.nbytes <= self.room
        nodes = [self.cache._root]
        for node in nodes:
            nodes += node.children.values()
            assert node is self.cache._root or node in self.cache._held or len(node.children) > 1
            assert all(child.parent is node and child.ids[0] == key for key, child in node.children.items())


def common(one: list[int], other: list[int]) -> list[bool]:
    same = [a == b for a, b in zip(one, other, strict=False)]
    return [all(same[: i + 1]) for i in range(len(same))]


TestTree = Tree.TestCase
TestTree.settings = settings(max_examples=50, stateful_step_count=40)


@pytest.mark.slow
def test_many_trees() -> None:
    run_state_machine_as_test(Tree, settings=settings(max_examples=500, stateful_step_count=40))


def test_a_second_session_runs_only_what_differs() -> None:
    shared = model()
    first, second = shared.session(), shared.session()
    first.feed("abc " * 20 + "a")
    second.feed("abc " * 20 + "hh")
    first.logits()
    second.logits()
    assert first.counts == Counts(run=81)
    assert second.counts == Counts(run=2, cached=80)
    third = shared.session()
    third.feed("abc " * 10)
    third.logits()
    assert third.counts == Counts(run=1, cached=39)  # the last one runs, for its logits
    found = shared.prefixes.statistics
    assert (found.lookups, found.hits, found.tokens_found, found.evictions) == (3, 2, 119, 0)


def test_an_engine_limits_the_budget() -> None:
    engine = ToyEngine(10)
    engine.prefix_limit = 5_000  # type: ignore[attr-defined]  # an optional attribute of engines
    budgets = [
        Model(engine, Tokenizer.of(VOCABULARY), prefix_bytes=size).prefixes.budget_bytes for size in (0, 900, 9_000)
    ]
    assert budgets == [0, 900, 5_000]


@pytest.mark.parametrize("supports_rollback", [True, False], ids=["supports_rollback", "recurrent"])
def test_cached_prefixes_do_not_change_logits(supports_rollback: bool) -> None:
    """Compares sessions with and without the cache: they share a prefix, and are edited, forked and rewound."""
    chance = random.Random(5)
    cached, plain = (
        model(supports_rollback=supports_rollback, prefix_bytes=60_000),
        model(supports_rollback=supports_rollback, prefix_bytes=0),
    )
    texts = ["abc def " * 20, "abc " * 30, "abc def " * 9 + "hhh " * 20]
    found = 0
    for _ in range(60):
        text = chance.choice(texts)[: chance.randrange(1, 200)] + chance.choice(["", "a", "gg ff ee " * 3])
        one, other = cached.session(), plain.session()
        for session in (one, other):
            session.feed(text)
            session.logits()
        back = chance.randrange(len(one))
        for session in (one, other):
            session.rewind(back)
            session.set_text(text[: len(session)] + "bad " * 6)
            session.fork().infer()
        assert np.array_equal(one.logits(), other.logits())
        assert one.counts.run + one.counts.cached >= other.counts.run - other.counts.recomputed
        found += one.counts.cached
        assert other.counts.cached == 0
    assert found > 1000
    assert cached.prefixes.statistics.nbytes <= 60_000
    assert plain.prefixes.statistics.lookups == 0


def test_resumed_generation_uses_the_prefix_cache() -> None:
    shared = ConstantModel(VOCABULARY, np.arange(10.0))
    prompt = "abc def " * 4
    answer = gw.generate(shared, prompt, gw.Regex("[a-h]{40}"))
    session = shared.session()
    session.feed(f"{prompt}{answer} bad")
    session.logits()
    assert session.counts.cached >= len(prompt) + 39


def test_prefixes_larger_than_the_budget_are_not_kept() -> None:
    cache = PrefixCache(budget_bytes=1000)
    cache.put(list(range(20)), TextChunk(list(range(20)), 300))  # ids count too
    assert cache.statistics.entries == 0
    cache.put(list(range(20)), TextChunk(list(range(20)), 200))
    assert (cache.statistics.entries, cache.statistics.nbytes) == (1, 1000)


def test_a_budget_that_shrinks_is_kept_at_once() -> None:
    cache = PrefixCache(budget_bytes=10_000)
    for first in range(5):
        cache.put([first] * 20, TextChunk([first] * 20, 200))
    assert cache.statistics.entries == 5
    cache.budget_bytes = 2500
    assert (cache.statistics.entries, cache.statistics.nbytes, cache.statistics.evictions) == (2, 2000, 3)
    assert cache.find([0] * 20) is None
    assert cache.find([4] * 20) is not None
    cache.clear()
    assert (cache.statistics.entries, cache.find([4] * 20)) == (0, None)
    with pytest.raises(ValueError, match="budget"):
        cache.budget_bytes = -1
    with pytest.raises(ValueError, match="budget"):
        PrefixCache(budget_bytes=-1)


class Crowded(ToyEngine):
    """Has capacity for a limited number of caches; counts the caches in use."""

    room = 3

    def forward(self, rows, caches):  # type: ignore[no-untyped-def]  # as in ToyEngine
        if self.prefixes.statistics.entries >= self.room:
            raise KVCacheFullError("full")
        return super().forward(rows, caches)


def test_an_engine_without_room_gets_that_of_the_oldest_prefix() -> None:
    engine = Crowded(10)
    shared = Model(engine, Tokenizer.of(VOCABULARY))
    engine.prefixes = shared.prefixes
    for letter in "abcdef":
        session = shared.session()
        session.feed(letter * 30)
        session.logits()
    assert (shared.prefixes.statistics.entries, shared.prefixes.statistics.evictions) == (3, 3)
    engine.room = 0
    session.feed("a")
    with pytest.raises(KVCacheFullError):
        session.logits()
    assert shared.prefixes.statistics.entries == 0


def test_threads_share_it() -> None:
    cache = PrefixCache(budget_bytes=20_000, shortest=1)
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(2000):
                ids = [chance.randrange(3) for _ in range(chance.randrange(1, 20))]
                found = cache.find(ids)
                assert found is None or found.ids == ids[: found.length]  # type: ignore[attr-defined]  # a TextChunk
                cache.put(ids, TextChunk(ids))
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert cache.statistics.nbytes <= 20_000


def test_restored_sessions_are_not_shared(tmp_path: Path) -> None:
    shared = model()
    session = shared.session()
    session.feed("abc def " * 5)
    session.save(tmp_path / "s")
    shared.prefixes.clear()
    loaded = shared.load_session(tmp_path / "s")
    for one in (loaded, loaded.fork(), shared.session(kv_cache=loaded.kv_cache())):
        one.feed("abc def " * 4)
        one.logits()
        one.keep_prefix()
    assert shared.prefixes.statistics.entries == 0
    with pytest.raises(ValueError, match="3 tokens for 72 positions"):
        shared.session(kv_cache=replace(loaded.kv_cache(), tokens=(1, 2, 3)))


def test_soft_prompts_and_closed_models_do_not_change_the_cache() -> None:
    shared = model()
    arrays = {"states": np.ones((2, 16), dtype=np.float32), "length": np.array([2])}
    session = shared.session(kv_cache=shared.soft_prompt(arrays))
    session.feed("abc " * 10)
    session.logits()
    session.keep_prefix()
    plain = shared.session()
    plain.feed("abc " * 10)
    plain.logits()
    assert (session.counts.cached, plain.counts.cached) == (0, 0)
    shared.close()
    assert shared.prefixes.statistics.entries == 0


def test_a_kept_prefix_does_not_keep_the_rows_of_its_batch() -> None:
    model = gw.load("tiny")
    prompts = [f"{name} Lovelace lived in London and wrote the first program of all in the year" for name in NAMES]
    model.generate(prompts, max_tokens=20, temperature=0)
    held = [cache for cache, _ in model.prefixes._held.values()]
    assert len(held) == len(NAMES)
    arrays = [array for cache in held for array in cache.batch.arrays]
    owners = [owner_of(array) for array in arrays]
    assert all(array.shape[0] == 1 for array in arrays)
    assert sum({id(one): one.nbytes for one in owners}.values()) <= model.prefixes.statistics.nbytes


def owner_of(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


NAMES = ("Ada", "Bob", "Cy", "Di", "Eve", "Flo")
