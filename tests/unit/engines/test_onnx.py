"""ONNX exports: step by step gives the logits of one call, for every naming; unsupported graphs are named."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the graphs of these tests are written with onnx")

import guideway as gw
from guideway.engines.base import Cache, Logits, StepEngine
from guideway.engines.kv_cache import ArrayBatch, RowCache, alone
from guideway.engines.onnx import OnnxEngine, blocks as onnx_blocks, cache as onnx_cache
from guideway.engines.onnx.blocks import Blocks
from guideway.errors import ContextOverflowError, EngineError, ModelNotFoundError
from guideway.tokenizers import Tokenizer
from tests.helpers.onnx_models import Shape, write

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
SHAPES = {
    "all inputs": Shape(),
    "ids only": Shape(positions=False, attention_mask=False),
    "branch": Shape(branch=True),
    "float16 cache": Shape(half_cache=True),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("model"), Shape())


def one(engine: StepEngine, ids: list[int], cache: Cache | None = None) -> tuple[np.ndarray, Cache]:
    logits, caches = engine.forward([ids], [cache])
    return logits[0], caches[0]


@pytest.mark.parametrize("name", SHAPES)
def test_step_by_step_equals_at_once(name: str, tmp_path: Path) -> None:
    engine = OnnxEngine(write(tmp_path, SHAPES[name]))
    assert (engine.vocab_size, engine.context_size) == (50, 64)
    at_once, whole = one(engine, IDS)
    cache: Cache | None = None
    for token in IDS:
        logits, cache = one(engine, [token], cache)
    assert cache is not None
    assert cache.length == whole.length == len(IDS)
    tolerance = 0.02 if SHAPES[name].half_cache else 1e-5
    assert np.abs(logits - at_once).max() < tolerance
    assert logits.dtype == np.float32


def test_all_exports_agree(tmp_path: Path) -> None:
    found = [
        one(OnnxEngine(write(tmp_path / name, SHAPES[name])), IDS)[0] for name in ("all inputs", "ids only", "branch")
    ]
    assert np.allclose(found[0], found[1], atol=1e-5)
    assert np.allclose(found[0], found[2], atol=1e-5)


def test_logits_depend_on_every_token(folder: Path) -> None:
    engine = OnnxEngine(folder)
    base, _ = one(engine, IDS)
    for place in range(len(IDS)):
        changed = [*IDS]
        changed[place] = 40
        assert np.abs(one(engine, changed)[0] - base).max() > 1e-4


def test_truncated_caches_go_back_and_the_old_one_stays(folder: Path) -> None:
    engine = OnnxEngine(folder)
    _, cache = one(engine, IDS)
    back = cache.truncated(4)
    assert np.allclose(one(engine, [7, 8], back)[0], one(engine, [*IDS[:4], 7, 8])[0], atol=1e-5)
    assert np.allclose(one(engine, [7], cache)[0], one(engine, [*IDS, 7])[0], atol=1e-5)
    assert np.allclose(one(engine, [7], cache.truncated(0))[0], one(engine, [7])[0], atol=1e-5)
    with pytest.raises(ValueError, match="truncated"):
        cache.truncated(12)


def test_rows_of_any_lengths_go_together(folder: Path) -> None:
    engine = OnnxEngine(folder)
    rows = [[1, 2, 3], [4, 5, 6], [7], [8, 9, 10]]
    logits, caches = engine.forward(rows, [None] * 4)
    more, caches = engine.forward([[11], [12], [13], [14, 15]], caches)
    for index, (row, new) in enumerate(zip(rows, [[11], [12], [13], [14, 15]], strict=True)):
        assert np.allclose(logits[index], one(engine, row)[0], atol=1e-5)
        assert np.allclose(more[index], one(engine, row + new)[0], atol=1e-5)
    swapped, _ = engine.forward([[1], [1]], [caches[1].truncated(3), caches[0].truncated(2)])
    assert np.allclose(swapped[0], one(engine, [4, 5, 6, 1])[0], atol=1e-5)
    assert np.allclose(swapped[1], one(engine, [1, 2, 1])[0], atol=1e-5)


def test_one_list_can_be_given_as_several_rows(folder: Path) -> None:
    engine = OnnxEngine(folder)
    found, _ = engine.forward_all([IDS, IDS], [None, None])
    assert [one.shape for one in found] == [(len(IDS), 50)] * 2
    np.testing.assert_array_equal(found[0], found[1])


def test_all_logits_of_rows_with_different_lengths() -> None:
    with gw.load("tiny") as model:
        engine: Any = model.engine
        assert engine.pads_rows
        long = [300 + i * 7 % 500 for i in range(600)]
        _, caches = engine.forward([IDS, IDS[:4], long], [None, None, None])
        before = engine.counts.calls
        rows = [IDS[:5], IDS[3:5], [7]]
        found, made = engine.forward_all(rows, caches)
        assert engine.counts.calls == before + 1
        assert [cache.length for cache in made] == [16, 6, 601]
        for row, cache, logits in zip(rows, caches, found, strict=True):
            for token, expected in zip(row, logits, strict=True):
                alone, cache = one(engine, [token], cache)
                np.testing.assert_allclose(alone, expected, atol=1e-3)
        both, _ = engine.forward_all([long, long[:596]], [None, None])  # in two parts of the new tokens
        assert [len(logits) for logits in both] == [600, 596]
        np.testing.assert_allclose(both[0][:596], both[1], atol=1e-3)


def test_long_prompts_run_in_parts(tmp_path: Path) -> None:
    engine = OnnxEngine(write(tmp_path, Shape(context=1400)))
    ids = [i * 7 % 50 for i in range(1300)]
    at_once, cache = one(engine, ids)
    _, first = one(engine, ids[:700])
    assert cache.length == 1300
    assert np.allclose(one(engine, ids[700:], first)[0], at_once, atol=1e-4)


def test_external_data_and_the_hubs_folders(tmp_path: Path, folder: Path) -> None:
    write(tmp_path / "onnx", Shape(), external=True)
    (tmp_path / "onnx" / "config.json").rename(tmp_path / "config.json")
    assert (tmp_path / "onnx" / "weights.bin").stat().st_size > 1000
    engine = OnnxEngine(tmp_path)
    assert np.allclose(one(engine, IDS)[0], one(OnnxEngine(folder / "model.onnx"), IDS)[0], atol=1e-6)


def test_the_context_is_a_limit(folder: Path) -> None:
    engine = OnnxEngine(folder, context_size=5)
    _, cache = one(engine, IDS[:5])
    with pytest.raises(ContextOverflowError, match="row 0 has 6 tokens, but the context of the model is 5"):
        one(engine, [1], cache)
    with pytest.raises(ValueError, match="context_size"):
        OnnxEngine(folder, context_size=0)
    with pytest.raises(ValueError, match="threads"):
        OnnxEngine(folder, threads=0)


def test_misuse_is_an_engine_error(folder: Path) -> None:
    engine = OnnxEngine(folder)
    with pytest.raises(EngineError, match="at least one new token"):
        one(engine, [])
    for wrong in (50, -1):
        with pytest.raises(EngineError, match=r"row 0: token ids must be in 0\.\.49"):
            one(engine, [wrong])
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        one(engine, [1])


MISFITS = {
    "the inputs ids": Shape(rename={"input_ids": "ids"}),
    "the outputs scores": Shape(rename={"logits": "scores"}),
    "export the model with a KV cache": Shape(
        rename={f"past_key_values.{i}.{p}": f"past_{p}_{i}" for i in range(2) for p in ("key", "value")}
    ),
    "not past_key_values.0.value": Shape(rename={"past_key_values.0.value": "past_key_values.9.value"}),
    "expected the output present.1.key": Shape(leave_out=("present.1.key",)),
    "unknown inputs beam": Shape(rename={"attention_mask": "beam"}),
}


@pytest.mark.parametrize("message", MISFITS)
def test_misfits_are_named(message: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=message):
        OnnxEngine(write(tmp_path, MISFITS[message]))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "/".join(["y" * 200] * 30)], ids=["name", "NUL", "path"])
def test_paths_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    shown = str(path) if len(str(path)) < 400 else f"{str(path)[:400]}…"
    for use in (lambda: gw.load(f"onnx:{path}"), lambda: Tokenizer.of(path)):
        with pytest.raises(ModelNotFoundError, match=f"^no (ONNX model|tokenizer) at {re.escape(shown)}: expected"):
            use()


def test_what_is_not_there_is_not_available(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no \\.onnx file found"):
        OnnxEngine(tmp_path)
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(ModelNotFoundError, match=r"a\.onnx, b\.onnx"):
        OnnxEngine(tmp_path)


def test_damaged_files_are_engine_errors(tmp_path: Path) -> None:
    write(tmp_path, Shape(), external=True)
    config = (tmp_path / "config.json").read_text("utf-8")
    for text, message in (("{", "cannot read"), ("[]", "JSON object"), ("{}", "pass context_size=")):
        (tmp_path / "config.json").write_text(text, "utf-8")
        with pytest.raises(EngineError, match=message):
            OnnxEngine(tmp_path)
    (tmp_path / "config.json").write_text(config, "utf-8")
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(EngineError, match="cannot load"):
        OnnxEngine(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07junk")
    with pytest.raises(EngineError, match="cannot load"):
        OnnxEngine(tmp_path)


def test_context_sizes_that_are_none_are_refused(tmp_path: Path) -> None:
    write(tmp_path, Shape())
    for wrong in (0, -1, True, "64", 1 << 40, None):
        (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": wrong}), "utf-8")
        with pytest.raises(EngineError, match="context"):
            OnnxEngine(tmp_path)
    assert OnnxEngine(tmp_path, context_size=9).context_size == 9


def test_load_session_object() -> None:
    import onnxruntime

    folder = Path(gw.__file__).parent / "tiny"
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    constraint = gw.Regex("[a-z ]{5,20}")
    with gw.load("tiny") as named, gw.load(session, tokenizer=folder) as model:
        assert model.engine._session is session
        assert gw.generate(model, "I feel ", constraint) == gw.generate(named, "I feel ", constraint)
    session._model_path = None  # as of a session that was made from bytes
    with pytest.raises(EngineError, match="made from bytes"):
        gw.load(session, tokenizer=folder)


FLOAT = np.dtype(np.float32)


def an_array(blocks: Blocks, numbers: int) -> np.ndarray:
    return blocks.block(4 * numbers).array((numbers,), FLOAT)


def test_a_block_is_reused_when_no_array_refers_to_it() -> None:
    blocks = Blocks()
    first = an_array(blocks, 4 * 2 * 1000 * 16)
    first[:] = 2
    assert float(first.sum()) == 4 * 2 * 1000 * 16 * 2
    begin, part = first.ctypes.data, first[5:700]
    del first
    other = an_array(blocks, 8 * 2 * 1000 * 16)
    assert other.ctypes.data != begin  # `part` still refers to the block
    assert (part == 2).all()
    del part
    larger = an_array(blocks, 4 * 2 * 1020 * 16)
    assert larger.ctypes.data == begin


def test_unused_blocks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_blocks, "KEPT_BYTES", 1 << 20)
    blocks = Blocks()
    held = [an_array(blocks, 100_000) for _ in range(10)]
    each = 1 << 19
    del held[3:]
    assert [len(block) for block in blocks._unused] == [each] * 7  # as many were used recently
    del held[1:]
    assert [len(block) for block in blocks._unused] == [each] * 9
    small = an_array(blocks, 30_000)
    assert len(blocks._unused) == 9  # a much larger block is not used for it
    blocks.count_run()
    assert len(blocks._unused) == 8  # used and unused blocks have at most as many bytes as were used
    small = np.empty(0)
    del held[:]
    assert sum(map(len, blocks._unused)) <= 1 << 20
    assert blocks._used_bytes == 0
    assert blocks._unused_bytes == sum(map(len, blocks._unused))
    assert small.size == 0


def test_blocks_that_do_not_fit_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_blocks, "KEPT_BYTES", 1 << 19)
    blocks = Blocks()
    held = [an_array(blocks, 100_000) for _ in range(8)]
    del held[1:]
    held.append(an_array(blocks, 1_000_000))
    assert blocks._used_bytes == 9 << 19  # more than at any time before
    blocks.count_run()
    assert [len(block) for block in blocks._unused] == [1 << 19]
    assert len(held) == 2


def test_blocks_that_are_no_longer_needed_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_blocks, "KEPT_BYTES", 1 << 19)
    monkeypatch.setattr(onnx_blocks, "PERIOD", 8)
    blocks = Blocks()
    many = [an_array(blocks, 100_000) for _ in range(10)]
    del many[1:]
    for _ in range(8):
        assert len(blocks._unused) == 9
        blocks.count_run()
    for _ in range(8):
        blocks.count_run()
    assert len(blocks._unused) == 1
    assert many[0].size == 100_000


def test_steps_in_several_calls_mostly_use_old_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    mapped: list[int] = []
    new = onnx_blocks._mapped
    monkeypatch.setattr(onnx_blocks, "_mapped", lambda nbytes: mapped.append(nbytes) or new(nbytes))
    blocks, chance, asked = Blocks(), np.random.default_rng(5), 0

    def group(rows: int, tokens: int) -> list[np.ndarray]:
        blocks.count_run()
        return [an_array(blocks, rows * 6 * tokens * 32) for _ in range(14)]

    groups = [group(16, 100)]
    for step in range(100):
        if step == 20:
            mapped.clear()
        cut = int(chance.integers(1, 16))
        groups = [group(rows, 100 + step // 8) for rows in (cut, 16 - cut)]  # joined rows, while the old ones exist
        asked += 28 * (step >= 20)
    assert len(mapped) < 0.3 * asked
    assert len(groups) == 2


def test_a_batch_grows_in_the_memory_of_its_layers(folder: Path) -> None:
    engine = OnnxEngine(folder)
    assert engine._runs_in_place
    prompts = [[*IDS, *IDS], [*IDS[::-1], *IDS]]  # 22 tokens: the blocks have room for 32
    _, caches = engine.forward(prompts, [None, None])
    _, caches = engine.forward([[7], [8]], caches)
    first, early = caches[0], caches
    assert isinstance(first, RowCache)
    held = {block.address for block in [*first.batch.blocks, *first.batch.spare]}
    before = [[part.copy() for part in cache.used()] for cache in early]
    for token in range(5):
        _, caches = engine.forward([[token], [token + 1]], caches)
        assert caches[0].batch is first.batch
        assert {block.address for block in [*first.batch.blocks, *first.batch.spare]} == held
    for cache, parts in zip(early, before, strict=True):  # caches of fewer tokens are valid
        assert cache.length == 23
        for part, old in zip(cache.used(), parts, strict=True):
            assert np.array_equal(part, old)
    again, _ = engine.forward([[0], [1]], early)
    single = [one(engine, [*prompts[0], 7, 0])[0], one(engine, [*prompts[1], 8, 1])[0]]
    np.testing.assert_allclose(again, single, atol=1e-5)


@pytest.mark.parametrize("complete", range(5))
def test_caches_are_valid_after_a_run_that_fails_at_a_layer(complete: int, folder: Path) -> None:
    """The outputs of the first layers are complete when the run fails, so inputs of earlier layers are overwritten."""
    graph = dataclasses.replace(OnnxEngine(folder)._graph, heads=(2,) * 6, channels=(4,) * 6)
    pool, chance = Blocks(), np.random.default_rng(complete)
    start = onnx_cache.gather(graph, [None, None], pool, 5)
    outputs = onnx_cache.CacheOutputs.of(graph, start, 2, 5, pool, in_place=True)
    for array in outputs.arrays:
        array[...] = chance.normal(size=array.shape)
    batch = outputs.done()
    for grown in (6, 8):
        kept = [array.copy() for array in batch.arrays]
        outputs = onnx_cache.CacheOutputs.of(graph, batch, 2, grown, pool, in_place=True)
        for layer in range(3):  # as a graph runs: the keys and values of a layer need those of the previous layer
            for index in (2 * layer, 2 * layer + 1):
                made = np.concatenate([batch.arrays[index], np.ones((2, 2, grown - batch.tip, 4), np.float32)], 2)
                if grown == 6 or index < complete:
                    outputs.arrays[index][...] = made
        if grown == 6:
            outputs.done()
    outputs.failed()
    assert batch.tip == 6
    for array, old in zip(batch.arrays, kept, strict=True):
        assert np.array_equal(array, old)
    outputs = onnx_cache.CacheOutputs.of(graph, batch, 2, 8, pool, in_place=True)
    assert not any(np.shares_memory(made, array) for made in outputs.arrays for array in batch.arrays)


def test_inputs_are_kept_where_the_next_layer_is_smaller(folder: Path) -> None:
    """The memory of a longer input is not used for a shorter output."""
    graph = dataclasses.replace(OnnxEngine(folder)._graph, heads=(5, 5, 4, 4), channels=(4,) * 4)
    pool, chance = Blocks(), np.random.default_rng(0)
    start = onnx_cache.gather(graph, [None, None], pool, 8)
    outputs = onnx_cache.CacheOutputs.of(graph, start, 2, 8, pool, in_place=True)
    for array in outputs.arrays:
        array[...] = chance.normal(size=array.shape)
    batch = outputs.done()
    kept = [array.copy() for array in batch.arrays]
    onnx_cache.CacheOutputs.of(graph, batch, 2, 9, pool, in_place=True)
    for array, old in zip(batch.arrays, kept, strict=True):
        assert np.array_equal(array, old)


@pytest.mark.parametrize("copied_bytes", [0, 1 << 16])
def test_a_failed_run_leaves_the_caches(copied_bytes: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = OnnxEngine(folder)
    engine._copied_bytes = copied_bytes  # 0: the arrays are in blocks, also if they are small
    _, caches = engine.forward([IDS[:3], IDS[3:6]], [None, None])
    _, caches = engine.forward([[7], [8]], caches)
    expected, _ = engine.forward([[9], [9]], [caches[1], caches[0]])
    for error in (RuntimeError("out of memory"), KeyboardInterrupt()):
        with monkeypatch.context() as patch:
            patch.setattr(engine, "_session", _Failing(engine._session, error))
            patch.setattr(engine, "_calls", None)  # made again, for this session
            with pytest.raises(EngineError if isinstance(error, RuntimeError) else KeyboardInterrupt):
                engine.forward([[9], [9]], caches)
        found, caches = engine.forward([[9], [9]], caches)
        assert np.array_equal(found, expected[::-1])
        caches = [cache.truncated(4) for cache in caches]
        _, caches = engine.forward([[5], [5]], [cache.truncated(3) for cache in caches])
        _, caches = engine.forward([[7], [8]], [cache.truncated(3) for cache in caches])


class _Failing:
    """A session that fails after its run."""

    def __init__(self, session: Any, error: BaseException) -> None:
        self._session, self._error = session, error
        self.io_binding = session.io_binding

    def run(self, *given: Any) -> None:
        self._session.run(*given)
        raise self._error

    def run_with_ortvaluevector(self, *given: Any) -> None:
        self._session.run_with_ortvaluevector(*given)
        raise self._error


def rows_one_by_one(rows: list[RowCache[ArrayBatch] | None], longest: int) -> list[np.ndarray]:
    """The joined arrays of rows, each copied separately."""
    joined = [np.zeros((len(rows), 2, longest, channels), np.float32) for channels in (3, 5)]
    for place, row in enumerate(rows):
        for array, part in zip(joined, row.used() if row is not None else (), strict=False):
            array[place, :, longest - part.shape[2] :] = part[0]
    return joined


def test_adjacent_rows_are_joined_like_single_rows(folder: Path) -> None:
    graph = dataclasses.replace(OnnxEngine(folder)._graph, heads=(2, 2), channels=(3, 5))
    chance = np.random.default_rng(3)
    for _ in range(200):
        batches = []
        for _ in range(int(chance.integers(1, 4))):
            tokens, count = int(chance.integers(1, 12)), int(chance.integers(1, 6))
            arrays = tuple(chance.normal(size=(count, 2, tokens, c)).astype(np.float32) for c in (3, 5))
            starts = [int(n) for n in chance.integers(0, tokens, count)]
            batches.append((ArrayBatch(onnx_cache.NUMPY, arrays, tuple(starts)), starts, tokens))
        rows: list[RowCache[ArrayBatch] | None] = []
        for batch, starts, tokens in batches:
            for row, start in enumerate(starts):
                if chance.random() < 0.8:
                    length = tokens - start
                    cut = int(chance.integers(0, length)) if chance.random() < 0.2 else 0
                    rows.append(RowCache(batch, row, length - cut, start))
            if chance.random() < 0.3:
                rows.append(None)
        if not any(row is not None for row in rows):
            continue
        found = onnx_cache.gather(graph, rows, Blocks(), 1)
        expected = rows_one_by_one(rows, found.tip)
        begins = found.starts or (0,) * len(rows)
        for place, begin in enumerate(begins):
            row = rows[place]
            assert found.tip - begin == (0 if row is None else row.length)
            for array, other in zip(found.arrays, expected, strict=True):
                assert np.array_equal(array[place, :, begin:], other[place, :, begin:])
                assert np.isfinite(array[place]).all()


def test_a_block_may_return_while_the_lock_is_held() -> None:
    blocks = Blocks()
    arrays = [an_array(blocks, 100_000)]
    with blocks._lock:
        arrays.clear()
    assert len(blocks._returned) == 1
    begun = an_array(blocks, 100_000)
    assert not blocks._returned
    assert not blocks._unused
    assert begun.size == 100_000


def test_gaps_of_rows_are_closed() -> None:
    arrays = tuple(np.arange(5 * 2 * 9 * 3, dtype=np.float32).reshape(5, 2, 9, 3) + at for at in range(2))
    before = [array.copy() for array in arrays]
    after = onnx_cache.without_gaps(arrays, 6, [3, 1, 2, 3, 1])
    for array, old in zip(after, before, strict=True):
        for row, count in enumerate([3, 1, 2, 3, 1]):
            gap = 3 - count
            assert np.array_equal(array[row, :, gap : 6 + gap], old[row, :, :6])
            assert np.array_equal(array[row, :, 6 + gap :], old[row, :, 6 + gap :])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the operating system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_has_its_own_blocks() -> None:
    array = an_array(Blocks(), 100_000)
    array[:] = 1
    if not (child := os.fork()):
        array[:] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert (array == 1).all()


@pytest.mark.parametrize("tokens", [3, 700])
def test_a_row_that_is_kept_alone_has_its_own_block(tokens: int) -> None:
    chance = np.random.default_rng(tokens)
    arrays = tuple(chance.normal(size=(3, 2, tokens, channels)).astype(np.float32) for channels in (16, 16, 24, 24))
    row = RowCache(ArrayBatch(onnx_cache.NUMPY, arrays), 1, tokens - 1, 1)
    kept = alone(row)
    assert isinstance(kept, RowCache)
    assert kept.length == tokens - 1
    assert kept.nbytes == sum(part.nbytes for part in row.used())
    for part, copy in zip(row.used(), kept.used(), strict=True):
        assert np.array_equal(part, copy)
        assert copy.flags.c_contiguous
        assert not any(np.shares_memory(copy, array) for array in arrays)
    first, second = kept.batch.arrays[:2]
    assert second.ctypes.data - first.ctypes.data == -(-first.nbytes // 64) * 64
    assert alone(kept) is kept


def test_copies_use_the_memory_of_deleted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    returned = onnx_blocks._Returned()
    monkeypatch.setattr(onnx_blocks, "_RETURNED", returned)
    monkeypatch.setattr(onnx_blocks, "_SPARE_BYTES", 1 << 20)
    parts = [np.full(90_000, at, np.float32) for at in range(2)]
    copies = onnx_blocks.copies_in_block(parts)
    (address,) = {copies[0].ctypes.data}
    others = onnx_blocks.copies_in_block(parts)
    del copies
    assert len(returned._blocks) == 1
    again = onnx_blocks.copies_in_block([part + 2 for part in parts])
    assert again[0].ctypes.data == address
    assert [part[0] for part in [*again, *others]] == [2, 3, 0, 1]
    small = onnx_blocks.copies_in_block([part[:50_000] for part in parts])
    del again, others, small
    assert sum(map(len, returned._blocks)) <= 1 << 20
    assert len(returned._blocks) == 1
    with returned._lock:
        held = onnx_blocks._mapped(1 << 16)
        returned.give_back(held)
    assert held not in returned._blocks


def test_a_single_row_is_copied_out_of_its_batch() -> None:
    arrays = tuple(np.full((1, 2, 9, 16), at, np.float32) for at in range(2))
    row = RowCache(ArrayBatch(onnx_cache.NUMPY, arrays), 0, 7)
    kept = alone(row)
    assert isinstance(kept, RowCache)
    assert [part.shape for part in kept.batch.arrays] == [(1, 2, 7, 16)] * 2
    for part, copy in zip(row.used(), kept.used(), strict=True):
        assert np.array_equal(part, copy)
        assert not np.shares_memory(part, copy)


@pytest.fixture(scope="module")
def tiny_engine() -> OnnxEngine:
    """Return the bundled model, whose rows can run with padding, with caches in blocks although they are small."""
    engine = OnnxEngine(Path(gw.__file__).parent / "tiny")
    assert engine.pads_rows
    engine._copied_bytes = 0
    return engine


def batch_of(engine: OnnxEngine, rows: list[list[int]]) -> list[Cache]:
    """Return caches of rows that ran together, with one more token each."""
    _, caches = engine.forward(rows, [None] * len(rows))
    return list(engine.forward([[7]] * len(rows), caches)[1])


def place_of(cache: Cache) -> tuple[ArrayBatch, int]:
    assert isinstance(cache, RowCache)
    return cache.batch, cache.row


def expect_same(engine: OnnxEngine, caches: list[Cache], texts: list[list[int]], logits: Logits) -> None:
    """Compare logits, and the caches, with those of rows that run alone."""
    for cache, text, found in zip(caches, texts, logits, strict=True):
        alone_logits, (single,) = engine.forward([text], [None])
        assert np.allclose(found, alone_logits[0], atol=1e-3)
        for name, array in engine.export(single).items():
            assert np.allclose(array, engine.export(cache)[name], atol=1e-3)


def test_a_new_row_takes_the_place_of_a_row_without_caches(tiny_engine: OnnxEngine) -> None:
    engine = tiny_engine
    texts = [[3, 1, 4, 1, 5], [9, 2, 6], [5, 3, 5, 8]]
    caches = batch_of(engine, texts)
    batch, place = place_of(caches[1])
    _, (new,) = engine.forward([[2, 7, 1]], [None])
    del caches[1]
    logits, made = engine.forward([[4]] * 3, [new, caches[1], caches[0]])
    assert [place_of(cache) for cache in made] == [(batch, place), (batch, 2), (batch, 0)]
    expect_same(engine, made, [[2, 7, 1, 4], [*texts[2], 7, 4], [*texts[0], 7, 4]], logits)
    expect_same(engine, [new], [[2, 7, 1]], engine.forward([[2, 7, 1]], [None])[0])


@pytest.mark.parametrize("length", [None, 2])
def test_a_place_with_a_cache_is_not_used_again(tiny_engine: OnnxEngine, length: int | None) -> None:
    engine = tiny_engine
    texts = [[3, 1, 4, 1, 5], [9, 2, 6], [5, 3, 5, 8]]
    caches = batch_of(engine, texts)
    kept = caches.pop(1)
    if length is not None:
        kept = kept.truncated(length)
    before = engine.export(kept)
    _, (new,) = engine.forward([[2, 7, 1]], [None])
    logits, made = engine.forward([[4]] * 3, [new, *caches])
    expect_same(engine, made, [[2, 7, 1, 4], [*texts[0], 7, 4], [*texts[2], 7, 4]], logits)
    for name, array in engine.export(kept).items():
        assert np.array_equal(array, before[name])


def test_a_place_without_caches_is_dropped(tiny_engine: OnnxEngine) -> None:
    """The row of the last place moves to it, with all its caches."""
    engine = tiny_engine
    texts = [[3, 1, 4, n] for n in range(8)]
    caches = batch_of(engine, texts)
    (batch, _), (_, place), short = place_of(caches[0]), place_of(caches[3]), caches[7].truncated(3)
    before = engine.export(short)
    del caches[3], texts[3]
    for token in range(6):
        logits, caches = engine.forward([[token]] * 7, caches)
        texts = [[*text, 7, token] if not token else [*text, token] for text in texts]
        expect_same(engine, caches, texts, logits)
        assert {place_of(cache)[0] for cache in caches} == {batch}
        assert batch.rows == 7
        assert place_of(caches[6])[1] == place_of(short)[1] == place
    for name, array in engine.export(short).items():
        assert np.array_equal(array, before[name])


def test_a_new_row_gets_a_new_place_after_the_others(tiny_engine: OnnxEngine) -> None:
    engine = tiny_engine
    texts = [[3, 1, 4, 1, 5], [9, 2, 6]]
    caches = batch_of(engine, texts)
    batch, _ = place_of(caches[0])
    assert isinstance(batch, onnx_cache.GrowingBatch)
    held = [array.ctypes.data for array in batch.arrays]
    _, (new,) = engine.forward([[2, 7, 1]], [None])
    logits, made = engine.forward([[4]] * 3, [new, *caches])
    assert [place_of(cache) for cache in made] == [(batch, 2), (batch, 0), (batch, 1)]
    assert [array.ctypes.data for array in batch.arrays][2:] == held[:-2]  # the blocks of the previous layer
    expect_same(engine, made, [[2, 7, 1, 4], [*texts[0], 7, 4], [*texts[1], 7, 4]], logits)


def test_rows_that_do_not_run_for_long_are_left_in_their_batch(tiny_engine: OnnxEngine) -> None:
    engine = tiny_engine
    texts = [[3, 1, 4, n] for n in range(8)]
    caches = batch_of(engine, texts)
    idle = caches.pop(3)
    before, (batch, _) = engine.export(idle), place_of(idle)
    texts = [[*text, 7] for n, text in enumerate(texts) if n != 3]
    batches = []
    for token in range(6):
        logits, caches = engine.forward([[token]] * 7, caches)
        texts = [[*text, token] for text in texts]
        expect_same(engine, caches, texts, logits)
        batches.append(place_of(caches[0])[0])
    assert batches[0] is batch
    assert batches[-1] is not batch
    assert batches[-1].rows == 7
    for name, array in engine.export(idle).items():
        assert np.array_equal(array, before[name])


@pytest.mark.parametrize("interrupted", [False, True])
def test_unused_indexes_are_removed(
    tiny_engine: OnnxEngine, interrupted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those before the first token of the longest row, after a longer one has ended."""
    engine, copies = tiny_engine, onnx_cache._copy_ends
    text = [n % 50 for n in range(40)]
    texts = [[3, 1, 4, n] for n in range(3)]
    caches = batch_of(engine, [text, *texts])
    batch, _ = place_of(caches[0])
    assert isinstance(batch, onnx_cache.GrowingBatch)
    del caches[0]

    def interrupts(left: list[Any], count: int) -> None:
        monkeypatch.setattr(onnx_cache, "_copy_ends", copies)
        part = left[-3:]
        copies(part, count)
        del left[-3:]
        raise KeyboardInterrupt

    texts = [[*text, 7] for text in texts]
    monkeypatch.setattr(onnx_cache, "_copy_ends", interrupts if interrupted else copies)
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            engine.forward([[0]] * 3, caches)
    for token in range(3):
        logits, caches = engine.forward([[token]] * 3, caches)
        texts = [[*text, token] for text in texts]
        assert {place_of(cache)[0] for cache in caches} == {batch}
        assert batch.tip == 6 + token
        expect_same(engine, caches, texts, logits)


def test_rows_of_a_failed_run_are_valid_in_their_new_places(
    tiny_engine: OnnxEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tiny_engine
    texts = [[3, 1, 4, n] for n in range(5)]
    caches = batch_of(engine, texts)
    _, (new,) = engine.forward([[2, 7, 1]], [None])
    del caches[1:3], texts[1:3]
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_session", _Failing(engine._session, RuntimeError("out of memory")))
        patch.setattr(engine, "_calls", None)
        with pytest.raises(EngineError):
            engine.forward([[9]] * 4, [*caches, new])
    monkeypatch.setattr(engine, "_calls", None)
    logits, made = engine.forward([[4]] * 4, [new, *caches])
    expect_same(engine, made, [[2, 7, 1, 4], *([*text, 7, 4] for text in texts)], logits)


def test_a_batch_does_not_exceed_the_context(tiny_engine: OnnxEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short row takes the place of a long one, so the indexes before both rows could exceed the context."""
    engine = tiny_engine
    monkeypatch.setattr(engine, "context_size", 64)
    text = [n % 50 for n in range(36)]
    caches = batch_of(engine, [text, [n % 50 for n in range(58)]])
    batch = place_of(caches[0])[0]
    caches[1] = engine.forward([text], [None])[1][0]
    texts = [[*text, 7], text]
    for step in range(20):
        logits, caches = engine.forward([[step]] * 2, caches)
        texts = [[*one, step] for one in texts]
        found = place_of(caches[0])[0]
        assert step or found is batch
        assert found.tip <= 64
        expect_same(engine, caches, texts, logits)


def test_a_new_row_does_not_read_what_was_in_its_place(tiny_engine: OnnxEngine) -> None:
    engine = tiny_engine
    texts = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 3, 5, 8]]
    caches = batch_of(engine, texts)
    batch, place = place_of(caches[1])
    for array in batch.arrays:
        array[place] = np.nan
    _, (new,) = engine.forward([[2, 7, 1]], [None])
    del caches[1]
    logits, made = engine.forward([[4]] * 3, [new, *caches])
    assert place_of(made[0]) == (batch, place)
    expect_same(engine, made, [[2, 7, 1, 4], [*texts[0], 7, 4], [*texts[2], 7, 4]], logits)


def test_the_mark_is_no_result_of_arithmetic() -> None:
    with np.errstate(invalid="ignore"):
        numbers = [np.float16(np.inf) - np.float16(np.inf), np.float32(np.inf) - np.float32(np.inf), np.float16(np.nan)]
    for number in (*numbers, np.float16(-np.inf), np.float32(-np.inf), np.float32(-1e35)):
        assert number.tobytes()[-1] != onnx_cache._MARK


def test_random_rows_that_join_and_leave_are_like_single_rows(tiny_engine: OnnxEngine) -> None:
    engine, chance = tiny_engine, np.random.default_rng(5)
    rows: list[tuple[list[int], Cache]] = []
    kept: list[tuple[list[int], Cache]] = []
    for _ in range(60):
        while len(rows) < 5 and chance.random() < 0.7:
            text = chance.integers(0, engine.vocab_size, int(chance.integers(1, 9))).tolist()
            rows.append((text, engine.forward([text], [None])[1][0]))
        if not rows:
            continue
        chance.shuffle(rows)  # type: ignore[arg-type]  # a list is a sequence that can be changed
        tokens = chance.integers(0, engine.vocab_size, len(rows)).tolist()
        logits, made = engine.forward([[token] for token in tokens], [cache for _, cache in rows])
        rows = [([*text, token], cache) for (text, _), token, cache in zip(rows, tokens, made, strict=True)]
        expect_same(engine, [cache for _, cache in rows], [text for text, _ in rows], logits)
        del made
        rows = [row for row in rows if chance.random() < 0.85 and len(row[0]) < engine.context_size - 2]
        if rows and chance.random() < 0.3:
            text, cache = rows[0]
            length = int(chance.integers(1, len(text) + 1))
            kept.append((text[:length], cache.truncated(length)))
    for text, cache in kept:
        _, (single,) = engine.forward([text], [None])
        for name, array in engine.export(single).items():
            assert np.allclose(array, engine.export(cache)[name], atol=1e-3)


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_device_whose_libraries_are_missing_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime itself would run such a graph on the CPU."""
    import onnxruntime

    known = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: known)
    with pytest.raises(EngineError, match=r"cannot use the device 'cuda'.*onnxruntime-gpu\[cuda,cudnn\]"):
        OnnxEngine(folder, device="cuda")


def test_threads_that_load_cuda_at_once_keep_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    from guideway.engines.onnx.runtime import _load_cuda_libraries

    begun, before = threading.Event(), sys.stdout

    def load() -> None:
        begun.set()
        time.sleep(0.1)

    monkeypatch.setattr(onnxruntime, "preload_dlls", load)
    monkeypatch.setattr(sys, "stdout", before)  # restored after a failure
    threads = [threading.Thread(target=_load_cuda_libraries) for _ in range(2)]
    for one in threads:
        one.start()
        assert begun.wait(30)
        time.sleep(0.02)
    for one in threads:
        one.join()
    assert sys.stdout is before
