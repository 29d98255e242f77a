"""Saved sessions: only used positions are stored, and the restored session is equal."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the model of these tests is written with onnx")

import guideway as gw
from guideway.engines.onnx import OnnxEngine
from guideway.errors import InvalidFileError, SnapshotError
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.sessions import Session
from guideway.testing import ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.onnx_models import Shape, write

TOKENS = [b"", *(bytes([b]) for b in b"abcdefgh "), b"ab", b"cab"]
VOCABULARY = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = write(tmp_path_factory.mktemp("model"), Shape(vocab=len(TOKENS) + 3, context=3000))
    return Model(OnnxEngine(folder), Tokenizer.of(VOCABULARY), name="small")


def started(model: Model) -> Session:
    session = model.session(seed=7, sampler=Sampler(1.0, top_k=5)).fork(row=2)
    session.feed("cab deaf ")
    session.infer()
    return session


def test_restored_session_continues_bit_for_bit(model: Model, tmp_path: Path) -> None:
    session = started(model)
    logits = session.logits()
    session.save(tmp_path / "s")
    session.save(tmp_path / "s")  # over the old one
    again = model.load_session(tmp_path / "s")
    assert again.tokens == session.tokens
    assert np.array_equal(again.logits(), logits)
    assert again.counts.run == 0
    assert [again.infer() for _ in range(20)] == [session.infer() for _ in range(20)]
    assert np.array_equal(again.logits(), session.logits())
    assert again.rewind(22) == session.rewind(22)
    assert np.allclose(again.logits(), session.logits(), atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_numbers_of_numpy_are_saved(model: Model, tmp_path: Path) -> None:
    session = model.session(seed=np.int64(3), row=np.int32(2), sampler=Sampler(np.float32(0.5)))
    session.feed("ab")
    session.save(tmp_path / "s")
    again = model.load_session(tmp_path / "s")
    assert (again.seed, again.row, again.sampler) == (3, 2, Sampler(0.5))


def test_only_used_positions_are_stored(model: Model, tmp_path: Path) -> None:
    session = model.session()
    session.feed([1] * 2000)
    session.logits()
    session.save(tmp_path / "long")
    session.rewind(1990)
    session.save(tmp_path / "short")
    # 2 layers, keys and values, width 16, 4 bytes: 256 bytes a token.
    assert (tmp_path / "long").stat().st_size < 2000 * 256 + 9000
    assert (tmp_path / "short").stat().st_size < 10 * 256 + 1000
    assert model.load_session(tmp_path / "short").tokens == [1] * 10


def test_constraints_come_back_with_their_automaton(model: Model, tmp_path: Path) -> None:
    automaton = gw.compile(gw.Regex("(cab|bad) (dab|fad)"), VOCABULARY)
    session = started(model)
    session.constrain(automaton.matcher())
    session.feed("cab")
    session.save(tmp_path / "s")
    with pytest.raises(gw.errors.ConstraintError, match="is not a constraint"):
        model.load_session(tmp_path / "s", constraint="(cab|bad) (dab|fad)")
    assert model.load_session(tmp_path / "s", constraint=gw.Regex("(cab|bad) (dab|fad)")).text == session.text
    again = model.load_session(tmp_path / "s", constraint=automaton)
    assert again.matcher is not None
    assert [again.infer() for _ in range(4)] == [session.infer() for _ in range(4)]
    with pytest.raises(SnapshotError, match="saved with a constraint: pass it"):
        model.load_session(tmp_path / "s")
    with pytest.raises(SnapshotError, match="with a different constraint"):
        model.load_session(tmp_path / "s", constraint=gw.compile(gw.Regex("x?"), VOCABULARY))
    started(model).save(tmp_path / "free")
    with pytest.raises(SnapshotError, match="without a constraint"):
        model.load_session(tmp_path / "free", constraint=automaton)


def test_snapshots_of_other_models_are_refused_by_name(model: Model, tmp_path: Path) -> None:
    started(model).save(tmp_path / "s")
    folder = write(tmp_path / "other", Shape(vocab=len(TOKENS) + 3, context=2999))
    with pytest.raises(SnapshotError, match="s was saved with a different model than small"):
        Model(OnnxEngine(folder), model.tokenizer, name="small").load_session(tmp_path / "s")
    others = Vocabulary([*TOKENS[:-1], b"bac"], eos_ids=[0], special_ids=[0])
    with pytest.raises(SnapshotError, match="different tokenizer"):
        Model(model.engine, Tokenizer.of(others)).load_session(tmp_path / "s")
    data = bytearray((tmp_path / "s").read_bytes())
    data[8] = 9
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(SnapshotError, match="has format 9; this version reads format 2"):
        model.load_session(tmp_path / "s")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a\ud800", ".", "none/s"])
def test_paths_that_cannot_be_used(name: str, model: Model, tmp_path: Path) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidFileError, match=f"^cannot write {re.escape(str(path))}: "):
        started(model).save(path)
    with pytest.raises(InvalidFileError, match=f"^cannot read {re.escape(str(path))}: "):
        model.load_session(path)
    assert not list(tmp_path.iterdir())
    assert not list(tmp_path.parent.glob("*.tmp"))


def test_damaged_files_are_refused(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "s"
    started(model).save(path)
    whole = path.read_bytes()
    choose = random.Random(3)
    cut = [whole[: choose.randrange(len(whole))] for _ in range(40)]
    flipped = []
    for _ in range(200):
        data = bytearray(whole)
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        flipped.append(bytes(data))
    for data in [b"", b"GWSESSON", *cut, *flipped, whole + b"x"]:
        path.write_bytes(data)
        with pytest.raises(SnapshotError):
            model.load_session(path)


def test_files_with_a_right_digest_and_wrong_content_are_refused(tmp_path: Path) -> None:
    import hashlib
    import zlib

    from guideway.sessions import snapshot

    model = Model(ToyEngine(len(TOKENS)), Tokenizer.of(VOCABULARY))
    path = tmp_path / "s"
    session = started(model)
    session.logits()
    session.save(path)
    data = path.read_bytes()
    _, _, size, raw_size, _ = snapshot._HEADER.unpack_from(data)
    start = snapshot._HEADER.size
    meta, raw = json.loads(data[start : start + size]), zlib.decompress(data[start + size :])

    def forged(content: bytes = raw, announced: int = raw_size, **changes: object) -> None:
        text = json.dumps({**meta, **changes}).encode()
        body = text + zlib.compress(content)
        digest = hashlib.blake2b(body, digest_size=32).digest()
        path.write_bytes(snapshot._HEADER.pack(b"GWSESSON", snapshot.FORMAT, len(text), announced, digest) + body)

    forged()
    assert model.load_session(path).tokens == session.tokens
    arrays = meta["arrays"]
    for changes in (
        {"tokens": [1, 99]},
        {"tokens": []},
        {"tokens": [1] * 5000},
        {"tokens": None},
        {"seed": "x"},
        {"seed": math.inf},
        {"memory": [[math.inf, 1, 2.0]]},
        {"sampler": {"temperature": -1}},
        {"sampler": {"heat": 1}},
        {"sampler": {"dry": 3}},
        {"memory": [[1, 2]]},
        {"constrained_from": "x"},
        {"arrays": []},
        {"arrays": [["a", "object", [1]]]},
        {"arrays": [["cache/states", "float32", [1 << 40]]]},
        {"arrays": [[*arrays[0][:2], [raw_size // 4]]]},
        {"arrays": [["cache/states", "float32", [1 << 61]]], "announced": 1 << 63},
        {"announced": raw_size - 1},
        {"arrays": [["cache/states", "uint8", [1 << 26]]], "announced": 1 << 26, "content": bytes(1 << 26)},
        {"content": raw + bytes(1 << 20)},
        {"content": raw[:-1]},
    ):
        forged(**changes)  # type: ignore[arg-type]  # several kinds of changes
        with pytest.raises(SnapshotError):
            model.load_session(path)
