"""`Vocabulary`: immutable, compared by content, the same digest in every process; decoding of partial bytes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from guideway import disk
from guideway._kernel import Automaton, KernelVocabulary, flatten, unflatten
from guideway.compiler import compile
from guideway.constraints import Regex
from guideway.errors import InvalidTokenError
from guideway.grammar.program import encode
from guideway.tokenizers import TextStream, Vocabulary
from guideway.tokenizers.vocabulary import _restored
from tests.helpers.byte_tokens import legal

TOKENS = [b"", b"a", b"ab", b"a", b"\xc3", b"\xa9", b""]


def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, eos_ids=[6], special_ids=[0, 6])


def test_fields_are_kept_sorted_and_once() -> None:
    made = Vocabulary(TOKENS, eos_ids=[6, 0, 6], special_ids={6, 0})
    assert (made.token_bytes, made.eos_ids, made.special_ids) == (tuple(TOKENS), (0, 6), (0, 6))
    assert len(made) == 7


@pytest.mark.parametrize("name", ["token_bytes", "eos_ids", "_hash", "anything"])
def test_assignment_raises(name: str) -> None:
    with pytest.raises(AttributeError, match="immutable"):
        setattr(vocabulary(), name, ())
    with pytest.raises(AttributeError, match="immutable"):
        delattr(vocabulary(), name)


def test_equality_is_by_fields() -> None:
    assert vocabulary() == vocabulary()
    assert hash(vocabulary()) == hash(vocabulary())
    assert vocabulary() != Vocabulary(TOKENS, eos_ids=[6], special_ids=[6])
    assert vocabulary() != Vocabulary(TOKENS[::-1], eos_ids=[6], special_ids=[0, 6])
    assert vocabulary() != Vocabulary(TOKENS, eos_ids=[0], special_ids=[0, 6])
    assert vocabulary() != "a vocabulary"


def test_fingerprint_follows_content_and_not_order() -> None:
    same = Vocabulary(TOKENS, eos_ids=iter([6]), special_ids=[6, 0, 0])
    assert same.fingerprint == vocabulary().fingerprint
    others = [
        Vocabulary(TOKENS, [6], [6]),
        Vocabulary(TOKENS, [0, 6], [6]),
        Vocabulary(TOKENS, [0], [6]),
        Vocabulary([*TOKENS, b""], [6], [0, 6]),
        Vocabulary([b"", b"aa", b"b", *TOKENS[3:]], [6], [0, 6]),  # the same bytes, cut elsewhere
    ]
    assert len({v.fingerprint for v in [vocabulary(), *others]}) == 6


def test_fingerprint_is_the_same_in_another_process() -> None:
    code = (
        "from guideway.tokenizers import Vocabulary;"
        f"print(Vocabulary({TOKENS!r}, eos_ids={{6}}, special_ids={{0, 6}}).fingerprint)"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == vocabulary().fingerprint


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=20), st.data())
def test_pickle_and_copies_are_equal(tokens: list[bytes], data: st.DataObject) -> None:
    ids = st.sets(st.integers(0, len(tokens) - 1))
    made = Vocabulary(tokens, data.draw(ids), data.draw(ids))
    assert len(made.fingerprint) == 32
    assert hash(made) == hash(made)
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert again.fingerprint == made.fingerprint
    assert copy.copy(made) is copy.deepcopy(made) is made


def test_pickle_holds_no_hash_of_this_process() -> None:
    plain, used = vocabulary(), vocabulary()
    assert len({hash(used), used.fingerprint}) == 2  # filled, so that they would show
    assert pickle.dumps(plain) == pickle.dumps(used)


def test_bytes_of_leaves_specials_out() -> None:
    marked = Vocabulary([b"</s>", b"a", b"\xc3"], eos_ids=[0])
    assert marked.bytes_of([1, 0, 2]) == b"a\xc3"


def test_unusable_ids_say_why() -> None:
    assert Vocabulary([b"", b"a", b"", b"x"], [3], [2]).unusable() == {0: "empty", 2: "special", 3: "special"}


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match=r"token_bytes\[1\] is str"):
        Vocabulary([b"a", "b"])  # type: ignore[list-item]  # the mistake under test
    with pytest.raises(InvalidTokenError, match="eos_ids has the id 3"):
        Vocabulary([b"a"], eos_ids=[3])
    with pytest.raises(InvalidTokenError, match="special_ids has the id -1"):
        Vocabulary([b"a"], special_ids=[-1])
    for wrong in (7, -1, 1 << 70, "x", 1.0):
        with pytest.raises(InvalidTokenError):
            vocabulary().bytes_of([1, wrong])  # type: ignore[list-item]  # the mistake under test


@given(st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=3).map(str.encode))))
def test_stream_joined_is_the_whole(pieces: list[bytes]) -> None:
    stream = TextStream()
    shown = [stream.push(piece) for piece in pieces] + [stream.finish()]
    assert "".join(shown) == b"".join(pieces).decode("utf-8", "replace")


def test_stream_never_shows_half_a_character() -> None:
    stream = TextStream()
    assert [stream.push(bytes([b])) for b in "né€".encode()] == ["n", "", "é", "", "", "€"]
    assert stream.push(b"\xe2\x82") == ""
    assert stream.finish() == "�"
    assert stream.push(b"a") == "a"


# -- the kernel's table on disk ---------------------------------------------------------------------------------------


def large() -> Vocabulary:
    words = [f"{a}{b}".encode() for a in "abcdefghijklmnopqrstuvwxyz" for b in range(100)]
    return Vocabulary([*(bytes([b]) for b in range(256)), *words, "é€".encode(), b"\xe2\x82", b"</s>"], [2858], [0])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> disk.DiskCache:
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", str(tmp_path))
    found = disk.cache()
    assert found is not None
    return found


def masks(vocabulary: Vocabulary) -> list[bytes]:
    """Computes masks along a text, for a constraint with special, incomplete and long tokens."""
    matcher = compile(Regex(r"[a-z0-9é€]{2,9}|\.\.+"), vocabulary, cache=False).matcher()
    rows = []
    for token in (97, 300, 299):
        row = np.zeros((len(vocabulary) + 31) // 32, dtype=np.uint32)
        matcher.fill_mask(row)
        rows.append(row.tobytes())
        matcher.advance(token)
    return rows


def test_a_table_from_disk_gives_the_same_masks(files: disk.DiskCache) -> None:
    with disk.disabled():
        expected = masks(large())
    assert masks(large()) == expected
    assert (files.statistics.writes, files.statistics.hits) == (1, 0)
    assert masks(large()) == expected
    assert (files.statistics.writes, files.statistics.hits) == (1, 1)
    assert large().kernel.save() == large().kernel.save()
    assert [entry.key for entry in files.entries()] == [large().fingerprint]


def test_small_vocabularies_are_not_stored(files: disk.DiskCache) -> None:
    assert vocabulary().kernel.size == 7
    assert files.entries() == []


@given(st.data())
def test_fuzz_damaged_tables_are_refused_or_stay_within_bounds(data: st.DataObject) -> None:
    """A table with wrong content and a correct checksum raises an error or stays within its bounds."""
    fields = large()._fields()
    whole = np.frombuffer(large().kernel.save(), dtype=np.uint8)
    broken = whole.copy()
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    for wrong in (broken, whole[: data.draw(st.integers(0, len(whole) - 1))], np.append(whole, whole[:8])):
        try:
            table = KernelVocabulary.load(*fields, wrong)
        except ValueError:
            continue
        matcher = Automaton.compile(table, encode(Regex("[a-z0-9]*").grammar())).matcher()
        row = np.zeros(matcher.words, dtype=np.uint32)
        for token in (97, 300, 299):
            matcher.fill_mask(row)
            assert max(legal(row), default=0) < table.size
            matcher.advance(token)  # the bytes of tokens are not read from the file
        assert matcher.position == 3


def test_blocks_of_tokens() -> None:
    for tokens in ((), (b"",), (b"", b"a", b"\xff" * 254, b"b" * 255, b"c" * 70_000, b"")):
        assert unflatten(flatten(tokens)) == tokens
    whole = flatten((b"ab", b"c" * 300))
    for wrong in (
        b"",
        whole[:3],
        whole[:-1],
        whole + b"x",
        b"\xff" * 8,
        whole[:5] + b"\xff\xff\xff\xff\xff" + whole[10:],
    ):
        with pytest.raises(ValueError, match="not the bytes of tokens"):
            unflatten(wrong)
        with pytest.raises(ValueError, match="not the bytes of tokens"):
            KernelVocabulary.of_block(wrong, [], [])


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=30), st.data())
def test_special_tokens_are_masked_in_free_text(tokens: list[bytes], data: st.DataObject) -> None:
    ids = st.sets(st.integers(0, len(tokens) - 1))
    special = data.draw(ids)
    table = KernelVocabulary.of_block(flatten(tuple(tokens)), [], sorted(special))
    matcher = Automaton.compile(table, encode(Regex("(?s:.*)").grammar())).matcher()
    plain = KernelVocabulary([b"" if i in special else t for i, t in enumerate(tokens)], [], [])
    same = Automaton.compile(plain, encode(Regex("(?s:.*)").grammar())).matcher()
    rows = [np.zeros(matcher.words, dtype=np.uint32) for _ in range(2)]
    matcher.fill_mask(rows[0])
    same.fill_mask(rows[1])
    assert rows[0].tolist() == rows[1].tolist()


def test_a_pickled_vocabulary_is_not_taken_apart(files: disk.DiskCache) -> None:
    again = pickle.loads(pickle.dumps(large()))
    assert masks(again) == masks(large())
    assert again._tokens is None
    assert (again, again.token_bytes) == (large(), large().token_bytes)
    assert len(pickle.dumps(again)) < 1.2 * sum(map(len, large().token_bytes)) + 3_000 + len(large())


def test_a_pickle_of_another_format_is_digested_anew() -> None:
    made = _restored(*vocabulary()._fields(), b"guideway vocabulary 0\n", "0" * 32)
    assert made.fingerprint == vocabulary().fingerprint


def test_a_stored_table_that_is_none_is_made_anew(files: disk.DiskCache) -> None:
    assert large().kernel
    (entry,) = files.entries()
    files.put(entry.kind, entry.key, b"12345678")
    assert large().kernel.size == len(large())
    assert files.entries()[0].size == entry.size
