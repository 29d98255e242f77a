"""llama.cpp with separate streams for rows: the same results as with shared cells, whatever moves in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from guideway.errors import EngineError, KVCacheFullError
from guideway.testing import tiny_model
from tests.helpers.engines import check_engine, model_of

pytestmark = pytest.mark.engine("llama_cpp", "gguf")

Costs = Callable[[str], None]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.helpers.gguf_models import write_gguf

    folder = tiny_model("llama", tmp_path_factory.mktemp("llama"), context=1024)
    return write_gguf(folder, folder / "model.gguf")


@pytest.fixture
def arranged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of streams of all contexts that are created."""
    from guideway.engines.llama_cpp.context import Context

    found: list[int] = []
    arrange = Context.arrange

    def noted(context: Any, streams: int) -> None:
        found.append(streams)
        arrange(context, streams)

    monkeypatch.setattr(Context, "arrange", noted)
    return found


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Sets the estimated costs so that streams are made as soon as possible, or the arrangement changes in each call."""
    from guideway.engines.llama_cpp import streams

    def put(kind: str) -> None:
        monkeypatch.setattr(streams, "_MOVE", 0)
        monkeypatch.setattr(streams, "_PENALTY", 0 if kind == "streams" else 3)
        monkeypatch.setattr(streams, "_CREATE", 0 if kind == "streams" else -1e9)

    return put


@pytest.mark.parametrize("kind", ["streams", "alternating"])
def test_sessions(kind: str, file: Path, costs: Costs, arranged: list[int], tmp_path: Path) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    costs(kind)
    with model_of(LlamaCppEngine(file), file) as model:
        check_engine(model, tmp_path / "session", tolerance=1e-3, exact=False)
    assert arranged.count(1) > 5
    assert max(arranged) > 1


class Twins:
    """Random calls of two engines, one of which always shares the cells."""

    def __init__(self, seed: int, file: Path, **options: Any) -> None:
        from guideway.engines.llama_cpp import LlamaCppEngine

        self.rng = random.Random(seed)
        self.ours, self.plain = LlamaCppEngine(file, **options), LlamaCppEngine(file, kv_unified=True, rows=64)
        self.held: list[tuple[Any, Any]] = [(None, None)]

    def ids(self) -> list[int]:
        return [self.rng.randrange(3, 300) for _ in range(self.rng.choice([1, 1, 1, 2, 7, 40]))]

    def step(self) -> None:
        rng, act = self.rng, self.rng.random()
        picked = rng.choices(self.held, k=rng.choice([1, 2, 3, 5, 6]))
        if act < 0.2:
            one, other = picked[0]
            if one is not None:
                length = rng.randint(0, one.length)
                self.held.append((one.truncated(length), other.truncated(length)))
        elif act < 0.3:
            one, other = picked[0]
            if one is not None:
                self.held.append((self.ours.restore(self.ours.export(one)), other))
        elif act < 0.4:
            rows = [self.ids() for _ in picked]
            found, made = self.ours.forward_all(rows, [one for one, _ in picked])
            expected, others = self.plain.forward_all(rows, [other for _, other in picked])
            for mine, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, atol=1e-3)
            self.held += zip(made, others, strict=True)
        else:
            rows = [self.ids() for _ in picked]
            logits, made = self.ours.forward(rows, [one for one, _ in picked])
            there, others = self.plain.forward(rows, [other for _, other in picked])
            np.testing.assert_allclose(logits, there, atol=1e-3)
            self.held += zip(made, others, strict=True)
        rng.shuffle(self.held)
        del self.held[12:]
        self.held = [(one, other) for one, other in self.held if one is None or one.length < 200]
        if not any(one is None for one, _ in self.held):
            self.held.append((None, None))


@pytest.mark.parametrize("seed", range(6))
def test_random_calls(seed: int, file: Path, costs: Costs, arranged: list[int]) -> None:
    costs("alternating" if seed % 3 == 2 else "streams")
    twins = Twins(seed, file, kv_cache_tokens=[1024, 2048, 6000][seed % 3], rows=30)
    for _ in range(150):
        twins.step()
    assert max(arranged) > 1
    twins.ours.close()
    twins.plain.close()


@pytest.mark.parametrize("streams", [False, True])
def test_each_new_token_is_in_one_call(streams: bool) -> None:
    from guideway.engines.llama_cpp.dividing import LONGEST_PIECE, PAGE, Divider

    rng = random.Random(0)
    for _ in range(300):
        divider = Divider(streams=streams, pass_cells=rng.choice([0, 500, 1e9]))
        count = rng.randint(1, 12)
        numbers = rng.sample(range(20), count)
        sequences = [SimpleNamespace(number=n, tip=rng.choice([0, 5, 200, 256, 300])) for n in numbers]
        rows = [[7] * rng.choice([1, 1, 2, 9, 33, 255, 256, 260, 400, 700]) for _ in numbers]
        size = LONGEST_PIECE if streams else PAGE
        calls = divider.calls(sequences, rows, size)
        assert all(sum(end - begin for _, begin, end in pieces) <= size for pieces in calls)
        for index, row in enumerate(rows):
            parts = [(begin, end) for pieces in calls for i, begin, end in pieces if i == index]
            assert [at for begin, end in parts for at in range(begin, end)] == list(range(len(row)))
            if streams and len(row) > 32:
                ends = [(sequences[index].tip + end) % PAGE for _, end in parts[:-1]]
                assert all(end == 0 for end in ends[:-1])
                assert ends[-1:] in ([], [0]) or parts[-1][1] - parts[-1][0] == 16


def test_groups_of_streams_by_length() -> None:
    from guideway.engines.llama_cpp.dividing import Divider

    sequences = [SimpleNamespace(number=15 - n, tip=300 if n < 6 else 100) for n in range(16)]
    rising = list(range(16))[::-1]
    assert Divider(streams=False, pass_cells=0).order(sequences) is None
    assert Divider(streams=True, pass_cells=2561).order(sequences) == rising  # one pass: 10 rows read 256 cells more
    assert Divider(streams=True, pass_cells=2559).order(sequences) == [5, 4, 3, 2, 1, 0, *range(15, 5, -1)]
    sequences[10].tip = 300  # number 5: numbers 6 to 9 read 256 cells more, so that two passes are enough
    assert Divider(streams=True, pass_cells=1200).order(sequences) == [*range(10, -1, -1), *range(15, 10, -1)]


def test_rows_of_different_lengths_in_streams(file: Path, costs: Costs, arranged: list[int]) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    costs("streams")
    engine, plain = LlamaCppEngine(file), LlamaCppEngine(file, kv_unified=True)
    engine._context.pass_cells = 0  # streams with few cells always run in their own pass
    rng = random.Random(3)
    rows = [[rng.randrange(3, 300) for _ in range(count)] for count in (260, 20, 400, 3, 250, 120, 310, 40)]
    caches: list[Any] = [None] * 8
    others: list[Any] = [None] * 8
    reordered = 0
    for _ in range(12):
        logits, caches = engine.forward(rows, caches)  # type: ignore[assignment] # a list
        there, others = plain.forward(rows, others)  # type: ignore[assignment] # a list
        np.testing.assert_allclose(logits, there, atol=1e-3)
        order = engine._context.running._divider.order([one.sequence for one in caches])
        reordered += order is not None and [caches[i].sequence.number for i in order] != list(range(8))
        rows = [[rng.randrange(3, 300) for _ in range(rng.choice([1, 1, 2, 5]))] for _ in range(8)]
        found, caches = engine.forward_all(rows, caches)  # type: ignore[assignment] # a list
        expected, others = plain.forward_all(rows, others)  # type: ignore[assignment] # a list
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-3)
    assert max(arranged) >= 8
    assert reordered > 8


def test_rows_longer_than_a_stream_share_the_cells(file: Path, costs: Costs, arranged: list[int]) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    costs("streams")
    engine, plain = LlamaCppEngine(file, kv_cache_tokens=2048), LlamaCppEngine(file, kv_unified=True)
    rows = [[5 + n] * 40 for n in range(8)]
    _, caches = engine.forward(rows, [None] * 8)
    _, others = plain.forward(rows, [None] * 8)
    assert arranged == [1, 1, 8]
    more = [[9] * 300, *[[9]] * 7]
    logits, caches = engine.forward(more, caches)
    there, others = plain.forward(more, others)
    assert arranged[-1] == 1
    np.testing.assert_allclose(logits, there, atol=1e-3)
    logits, _ = engine.forward([[7], [8]], caches[:2])  # two rows fit into streams again
    there, _ = plain.forward([[7], [8]], others[:2])
    assert arranged[-1] > 1
    np.testing.assert_allclose(logits, there, atol=1e-3)


def test_one_row_and_equal_prefixes_share_the_cells(file: Path, arranged: list[int]) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    engine = LlamaCppEngine(file)
    _, (cache,) = engine.forward([[7] * 300], [None])
    caches = [cache] * 12
    for token in range(60):
        _, caches = engine.forward([[token + n + 3] for n in range(12)], caches)
    assert arranged == [1]


def test_different_rows_get_streams(file: Path, arranged: list[int]) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    rows = [[5 + n] * 200 for n in range(8)]
    engine, plain = LlamaCppEngine(file), LlamaCppEngine(file, kv_unified=True)
    logits, caches = engine.forward(rows, [None] * 8)
    there, _ = plain.forward(rows, [None] * 8)
    np.testing.assert_allclose(logits, there, atol=1e-3)
    assert arranged == [1, 1, 8]
    idle = caches[3:5]
    for token in range(30):  # rows leave, and the others move together
        logits, caches = engine.forward([[token + 3]] * (8 - token // 5), caches[: 8 - token // 5])
    assert arranged == [1, 1, 8]
    assert [one.length for one in idle] == [200, 200]
    calls, prompts = engine.counts.calls, engine.counts.prompt_calls
    engine.forward([[7] * 100, [8], [9]], [None, *caches[:2]])
    assert (engine.counts.calls, engine.counts.prompt_calls) == (calls + 2, prompts + 1)
    assert engine.counts.filled == 1.0  # the row with a prompt is not active in the call of the others


@pytest.mark.parametrize("rows", [1, 4])
def test_prompts_of_few_rows_get_streams(rows: int, file: Path, arranged: list[int]) -> None:
    """A token of a prompt that attends to the cells of other rows, or of kept prefixes, takes as long as in a stream."""
    from guideway.engines.llama_cpp import LlamaCppEngine

    engine, rng = LlamaCppEngine(file), random.Random(0)
    kept: list[Any] = []
    active: list[Any] = []
    for _ in range(20):  # one row leaves and the next one joins
        prompt = [rng.randrange(3, 300) for _ in range(300)]
        _, active = engine.forward([*[[5]] * len(active), prompt], [*active, None])
        for token in range(30):
            _, active = engine.forward([[token + 3]] * len(active), active)
        if len(active) == rows:
            kept.append(active.pop(0))
        del kept[: -3 if rows == 1 else len(kept)]
    assert arranged[0] == 1
    assert len(arranged) == 2
    assert arranged[1] >= rows


def test_rejected_states_leave_the_streams(file: Path, costs: Costs, arranged: list[int]) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    costs("streams")
    engine = LlamaCppEngine(file)
    _, caches = engine.forward([[5] * 30, [6] * 20], [None, None])
    assert arranged[-1] > 1
    arrays = dict(engine.export(caches[0]))
    state = np.asarray(arrays["state"])
    for data in (state[:0], state[:9], state[:14], state[:-5], np.roll(state, 3), np.full_like(state, 255)):
        with pytest.raises(EngineError, match="rejected the state"):
            engine.restore({**arrays, "state": np.array(data)})
    for length in (-1, 29, 10**15):
        with pytest.raises(EngineError, match=r"rejected the state|at most 1024 tokens"):
            engine.restore({**arrays, "length": np.array([length])})
    logits, _ = engine.forward([[9], [9]], [caches[0], engine.restore(arrays)])
    np.testing.assert_allclose(logits[0], logits[1], atol=1e-4)


def test_cells_stay_shared_if_streams_cannot_be_made(
    file: Path, costs: Costs, arranged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    import llama_cpp

    from guideway.engines.llama_cpp import LlamaCppEngine

    costs("streams")
    engine, make = LlamaCppEngine(file), llama_cpp.llama_init_from_model
    _, (cache,) = engine.forward([[5] * 30], [None])
    monkeypatch.setattr(
        llama_cpp, "llama_init_from_model", lambda model, given: make(model, given) if given.kv_unified else None
    )
    for _ in range(3):
        logits, _ = engine.forward([[9], [5] * 31], [cache, None])
    assert arranged == [1, 32, 1]
    monkeypatch.undo()
    there, _ = LlamaCppEngine(file, kv_unified=True).forward([[5] * 30 + [9], [5] * 31], [None, None])
    np.testing.assert_allclose(logits, there, atol=1e-3)


def test_idle_rows_are_bounded(file: Path, costs: Costs) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    costs("streams")
    engine = LlamaCppEngine(file, kv_cache_tokens=1024, rows=64)
    held: list[Any] = []

    def fill() -> None:
        for n in range(60):
            held.extend(engine.forward([[5 + n] * 60, [6 + n] * 60], [None, None])[1])

    with pytest.raises(KVCacheFullError, match=r"kv_cache_tokens="):
        fill()
    assert 1024 <= sum(one.length for one in held) <= 2 * 1280 + 120
    before = len(held)
    logits, _ = engine.forward([[9]], [held.pop()])
    fresh = LlamaCppEngine(file, kv_unified=True)
    there, _ = fresh.forward([[6 + before // 2 - 1] * 60 + [9]], [None])
    np.testing.assert_allclose(logits, there, atol=1e-3)


def test_copies_of_a_row_share_its_saved_state(
    file: Path, costs: Costs, arranged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine
    from guideway.engines.llama_cpp.context import Context

    costs("streams")
    engine, plain = LlamaCppEngine(file, kv_cache_tokens=4096), LlamaCppEngine(file, kv_unified=True)
    long, saved = [5] * 10 + [6] * 390, []
    _, caches = engine.forward([long, [9] * 100], [None, None])
    engine.forward([[7], [8]], caches)
    assert arranged[-1] == 2
    state = Context.state

    def noted(context: Context, number: int) -> Any:
        found = state(context, number)
        saved.append(found.nbytes)
        return found

    monkeypatch.setattr(Context, "state", noted)
    more = [[7 + n] for n in range(12)]
    logits, _ = engine.forward(more, [caches[0].truncated(10)] * 12)
    assert sum(saved) < 4 * max(saved), "the state of the row was saved for each copy"
    there, _ = plain.forward([[5] * 10 + row for row in more], [None] * 12)
    np.testing.assert_allclose(logits, there, atol=1e-3)


def test_kept_prefixes_lose_their_streams(file: Path, costs: Costs, arranged: list[int]) -> None:
    """Prefixes of prompts that are kept do not run. They never fill more than the KV cache, so the streams stay."""
    from guideway.engines.llama_cpp import LlamaCppEngine

    costs("streams")
    with model_of(LlamaCppEngine(file, kv_cache_tokens=2048), file) as model:
        made: list[list[int]] = []
        for _ in range(2):
            made.clear()
            for n in range(12):  # each has 300 tokens; seven prefixes fit into 2,304 cells
                session = model.session()
                session.feed([5 + n] * 300)
                session.logits()
                made.append([session.infer() for _ in range(3)])
                del session
        statistics = model.prefixes.statistics
        assert 6 <= statistics.entries <= 7
        assert statistics.evictions > 6
        assert arranged == [1, 2]
    plain = model_of(LlamaCppEngine(file, kv_unified=True), file)
    alone = plain.session()
    alone.feed([5 + 11] * 300)
    assert [alone.infer() for _ in range(3)] == made[-1]


def test_a_call_without_a_choice_adds_no_costs() -> None:
    """The estimated costs of an earlier call are not added to those of a call with one sequence."""
    from guideway.engines.llama_cpp.streams import Arranger

    sequence: Any = SimpleNamespace(number=0)
    pool: Any = SimpleNamespace(
        context=SimpleNamespace(separable=True, streams=1), live=[sequence], reclaim=lambda: None
    )
    arranger = Arranger(pool, unified=False)
    arranger._rate = 5.0
    arranger.place([sequence], [1])
    arranger.ran(10)
    assert arranger._excess == arranger._saved_cost == 0.0
