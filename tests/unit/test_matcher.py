"""Forced tokens in the tokenizer's spelling, and ids of masks."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import mistral_common
import numpy as np
import pytest

import guideway as gw
from guideway._kernel import bound_work
from guideway.matcher import LoopRows
from tests.helpers.byte_tokens import filled, legal

DATA = Path(mistral_common.__file__).parent / "data"
RECORD = {
    "type": "object",
    "properties": {
        "FireBirdUtils.getViewSource": {"enum": ["naïve señor", "naïve señorita", "日本語"]},
        "operationIdentifier": {"const": "urn:uuid:4d1e-80b2"},
        "tags": {"type": "array", "items": {"enum": ["internationalisation", "interoperability"]}, "minItems": 2},
        "count": {"type": "integer"},
    },
    "required": ["FireBirdUtils.getViewSource", "operationIdentifier", "tags", "count"],
    "additionalProperties": False,
}
TEXTS = [
    json.dumps(dict(zip(RECORD["properties"], values, strict=True)), ensure_ascii=False)  # type: ignore[arg-type]  # names
    for values in (
        ("naïve señorita", "urn:uuid:4d1e-80b2", ["interoperability"] * 2, 12),
        ("日本語", "urn:uuid:4d1e-80b2", ["internationalisation", "interoperability"], 0),
    )
]


# A BPE that is bundled, one whose pieces join letters with what is before them, and sentencepiece, which puts a space
# before a text; each with texts that it does not join with the record.
NAMES = ["tiny", "tekken_240911.json", "tokenizer.model.v1"]
HEADS = {"tiny": ["", "x = "], "tekken_240911.json": ["", "Answer:\n"], "tokenizer.model.v1": ["Answer:\n", "x =\n"]}


@cache
def tokenizer_of(name: str) -> gw.Tokenizer:
    return gw.load("tiny").tokenizer if name == "tiny" else gw.Tokenizer.of(str(DATA / name))


@pytest.mark.parametrize(("name", "head"), [(name, head) for name in NAMES for head in HEADS[name]])
def test_forced_tokens_are_those_of_the_tokenizer(name: str, head: str) -> None:
    """Along the tokenizer's spelling of a text, the forced tokens are the next tokens of that spelling."""
    tokenizer = tokenizer_of(name)
    automaton, forced = gw.compile(gw.JsonSchema(RECORD), tokenizer.vocabulary), 0
    for text in TEXTS:
        before, whole = tokenizer.encode(head), tokenizer.encode(head + text)
        assert whole[: len(before)] == before
        ids, matcher = whole[len(before) :], automaton.matcher()
        for place, token_id in enumerate(ids):
            got = gw.matcher.forced_tokens(matcher, tokenizer, before + ids[:place])
            assert got == ids[place : place + len(got)]
            assert matcher.position == place
            forced += len(got)
            matcher.advance(token_id)
        assert matcher.is_accepting
    assert forced > 100
    if name == "tokenizer.model.v1":
        matcher = automaton.matcher()
        assert gw.matcher.forced_tokens(matcher, tokenizer) != matcher.forced_tokens(), (
            "longest tokens first would have done"
        )


@pytest.mark.parametrize("name", NAMES)
def test_forced_tokens_are_legal_without_what_stands_before(name: str) -> None:
    """Also from within a character, which no text begins with."""
    tokenizer = tokenizer_of(name)
    automaton = gw.compile(gw.JsonSchema(RECORD), tokenizer.vocabulary)
    taken, row = 0, np.zeros((len(tokenizer.vocabulary) + 31) // 32, np.uint32)
    for seed in range(3):
        rng, matcher = random.Random(seed), automaton.matcher()
        while not matcher.is_finished:
            ids = gw.matcher.forced_tokens(matcher, tokenizer)
            assert matcher.validate(ids) == len(ids)
            assert matcher.forced_bytes().startswith(tokenizer.vocabulary.bytes_of(ids))
            taken += len(ids)
            matcher.fill_mask(row)
            matcher.advance(rng.choice(legal(row)))
    assert taken > 60


def test_forced_bytes_are_computed_once_per_state() -> None:
    tokenizer = gw.Tokenizer.of(gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256]))
    automaton = gw.compile(gw.JsonSchema(RECORD), tokenizer.vocabulary)
    text, most = TEXTS[0].encode(), 10**9

    def walk(matcher: gw.Matcher) -> tuple[list[bytes], int]:
        found = []
        bound_work(most)
        for byte in text:
            found.append(matcher.forced_bytes())
            matcher.advance(byte)
        return found, most - (bound_work(None) or 0)

    first = automaton.matcher()
    found, work = walk(first)
    assert work > 100_000
    assert walk(automaton.matcher()) == (found, 0)
    first.rollback(first.position)
    assert walk(first) == (found, 0)
    assert all(text[place:].startswith(forced) for place, forced in enumerate(found))


def test_masks_within_a_budget_are_computed_once_per_state() -> None:
    """A worker thread can compute them for a row (`generation.deferral`), also for a state of many configurations."""
    rules = [f"r{k} ::= " + " | ".join(f"[^a]{{2,40}} r{n}?" for n in range(0, 40, 3)) for k in range(40)]
    vocabulary = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"x" * 7, b"</s>"], eos_ids=[257])
    matcher = gw.compile(gw.Gbnf("\n".join(["root ::= r0", *rules])), vocabulary).matcher()
    for byte in b"bcd":
        matcher.advance(byte)
    rows, most = np.zeros((2, 3, matcher.words), np.uint32), 10**9
    for left, fit in ((1_000, gw.matcher.Fit.ALL), (4, gw.matcher.Fit.SOME)):
        work = []
        for one, row in ((matcher, rows[0]), (matcher.fork(), rows[1])):
            bound_work(most)
            assert one.fill_mask_within(row[0], left)
            assert one.fill_masks_within(row[1], row[2], left) is fit
            assert one.min_tokens_to_complete() == 1
            work.append(most - (bound_work(None) or 0))
        assert work[0] > 100_000
        assert work[1] == 0
        assert np.array_equal(rows[0, :2], rows[1, :2])
        assert fit is gw.matcher.Fit.ALL or np.array_equal(rows[0], rows[1])


def test_forced_tokens_include_the_end() -> None:
    tokenizer = gw.load("tiny").tokenizer
    matcher = gw.compile(gw.Regex("one way or none"), tokenizer.vocabulary).matcher()
    assert gw.matcher.forced_tokens(matcher, tokenizer) == tokenizer.encode("one way or none")
    open_end = gw.compile(gw.Regex("one way or n[a-z]*"), tokenizer.vocabulary).matcher()
    ids = gw.matcher.forced_tokens(open_end, tokenizer)
    assert ids == tokenizer.encode("one way or none")[: len(ids)]
    assert tokenizer.vocabulary.bytes_of(ids) == b"one way or ", "a longer word may come"
    assert gw.matcher.forced_tokens(gw.compile(gw.Regex("[ab]"), tokenizer.vocabulary).matcher(), tokenizer) == []


VOCABULARY = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"", b'{"', b'":', b'", "'], eos_ids=[256])


@pytest.mark.parametrize(
    "schema",
    [
        RECORD,
        {"type": "object", "maxProperties": 3},
        {"uniqueItems": True, "type": "array", "items": {"type": "string"}},
    ],
)
def test_ids_name_masks(schema: Any) -> None:
    """Equal exactly where the masks are, along random walks of two automata."""
    masks: dict[int, list[int]] = {}
    for remembered in (True, False):
        automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY, cache=remembered)
        for seed in range(4):
            rng, matcher = random.Random(seed), automaton.matcher()
            for _ in range(40):
                name, row = matcher.mask_digest(), filled(matcher).tolist()
                assert masks.setdefault(name, row) == row
                assert matcher.fork().mask_digest() == name
                if matcher.is_finished:
                    break
                tokens = legal(np.array(row, np.uint32))
                matcher.advance(rng.choice(tokens))
    assert len({tuple(row) for row in masks.values()}) == len(masks) > 10


def test_one_call_takes_a_token_and_fills() -> None:
    matcher = gw.compile(gw.JsonSchema(RECORD), VOCABULARY).matcher()
    twin, row = matcher.fork(), np.zeros(matcher.words, np.uint32)
    for byte in b'{"Fire':
        matcher.advance_and_fill(byte, row)
        twin.advance(byte)
        assert row.tolist() == filled(twin).tolist()
    before = row.copy()
    with pytest.raises(gw.errors.RejectedTokenError):
        matcher.advance_and_fill(ord("x"), row)
    with pytest.raises(ValueError, match="words"):
        matcher.advance_and_fill(ord("B"), row[:-1])
    assert matcher.position == twin.position
    assert filled(matcher).tolist() == before.tolist() == row.tolist()


def test_rows_of_other_kinds() -> None:
    """NumPy arrays have a fast path. It refuses invalid rows, and other kinds of rows are still accepted."""
    matcher = gw.compile(gw.Regex("[ab]*"), VOCABULARY).matcher()
    right = np.zeros(matcher.words, np.uint32)
    matcher.fill_mask(right)
    fixed = np.zeros(matcher.words, np.uint32)
    fixed.flags.writeable = False
    wrong = (
        fixed,
        np.zeros(matcher.words, np.int64),
        np.zeros(matcher.words, np.float32),
        np.zeros(matcher.words, ">u4"),
        np.zeros((matcher.words, 1), np.uint32),
        np.zeros(2 * matcher.words, np.uint32)[::2],
        [0] * matcher.words,
        None,
    )
    for row in wrong:
        with pytest.raises(TypeError):
            matcher.fill_mask(row)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ValueError, match="words"):
        matcher.fill_mask(np.zeros(matcher.words + 1, np.uint32))

    class Rows(np.ndarray[Any, Any]):
        pass

    block = np.zeros((3, matcher.words), np.uint32)
    others = (
        np.zeros(matcher.words, np.uint32).view(Rows),
        block[1],
        memoryview(bytearray(4 * matcher.words)).cast("I"),
    )
    for row in others:
        matcher.fill_mask(row)  # type: ignore[arg-type]  # what is tested
        assert np.array_equal(np.asarray(row), right)
    assert not block[::2].any()


def test_loop_rows_begun_twice() -> None:
    """Masks that a thread still writes to stay alive until the thread ends, whatever calls come in between."""
    automaton = gw.compile(gw.JsonSchema({}), gw.load("tiny").tokenizer)
    matchers = [automaton.matcher() for _ in range(64)]
    words = matchers[0].words
    for _ in range(20):
        rows = LoopRows([(matcher, 0, 0, 0) for matcher in matchers])
        rows.begin(np.zeros((64, words), np.uint32))
        rows.begin(np.zeros((64, words), np.uint32))
        others = [np.ones((64, words), np.uint32) for _ in range(8)]
        assert rows.held == [True] * 64
        rows.wait()
        assert all((one == 1).all() for one in others)
    with pytest.raises(ValueError, match="words"):
        rows.run(np.zeros((64, words - 1), np.uint32))
    with pytest.raises(TypeError, match="a row is a matcher"):
        LoopRows([(3, 0, 0, 0)])  # type: ignore[list-item]  # what is tested


@pytest.mark.parametrize("length", [1990, 2002, 9000, 59_000])
def test_tokens_of_thousands_of_bytes(length: int) -> None:
    """Walks keep a state for each byte of the longest token."""
    text = "".join(random.Random(1).choice("abcdefgh") for _ in range(length))
    longs = [text, text[:-1] + "z", text + "a"]
    vocabulary = gw.Vocabulary(
        [*(bytes([i]) for i in range(256)), b"<eos>", *(t.encode() for t in longs)], eos_ids=[256]
    )
    for source in (gw.Regex(text), gw.Choice([text, "b"]), gw.Regex(text + "z?")):
        matcher = gw.compile(source, vocabulary, cache=False).matcher()
        row = np.zeros(matcher.words, np.uint32)
        matcher.fill_mask(row)
        assert [bool(row[i >> 5] >> (i & 31) & 1) for i in (257, 258, 259)] == [True, False, False]


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4, 16, 33, 63])
def test_rows_may_begin_at_any_address(at: int) -> None:
    tokens = [b"", *(bytes([byte]) for byte in range(256)), *(b"w%d" % n for n in range(6000))]
    matcher = gw.compile(gw.Regex("[a-z0-9]{0,40}"), gw.Vocabulary(tokens, eos_ids=[0]), cache=False).matcher()
    expected = np.zeros(matcher.words, np.uint32)
    matcher.fill_mask(expected)
    held = bytearray(4 * matcher.words + 128)
    aligned = -np.frombuffer(held, np.uint8).ctypes.data % 64
    row = np.frombuffer(held, np.uint32, count=matcher.words, offset=aligned + at)
    matcher.fill_mask(row)
    assert (row == expected).all()
    assert not any(held[: aligned + at])
    assert not any(held[aligned + at + 4 * matcher.words :])
