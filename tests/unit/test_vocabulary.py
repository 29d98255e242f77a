"""`Vocabulary`: immutable, compared by content, the same digest in every process; and text from bytes as they come."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guideway.errors import InvalidToken
from guideway.vocabulary import TextStream, Vocabulary

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
        "from guideway.vocabulary import Vocabulary;"
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
    with pytest.raises(InvalidToken, match="eos_ids holds 3"):
        Vocabulary([b"a"], eos_ids=[3])
    with pytest.raises(InvalidToken, match="special_ids holds -1"):
        Vocabulary([b"a"], special_ids=[-1])
    for wrong in (7, -1, 1 << 70, "x", 1.0):
        with pytest.raises(InvalidToken):
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
