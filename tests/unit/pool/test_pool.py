"""`Pool` with threads, event loops and models."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.errors import (
    EngineError,
    InvalidFileError,
    LeaseTimeoutError,
    ModelNotFoundError,
    ModelTooLargeError,
)
from guideway.pool import ModelSpec, PooledSession
from guideway.pool.sizes import estimated_bytes, parse_bytes, resident_bytes, weight_bytes
from guideway.sampling import Sampler

from ...helpers.small_model import byte_level, write_model
from ...helpers.toy_models import toy_model


class Loader:
    """Makes toy models, and counts them."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.made: list[gw.Model] = []
        self.seconds = seconds
        self.fails = False

    def __call__(self) -> gw.Model:
        time.sleep(self.seconds)
        if self.fails:
            raise EngineError("the weights are damaged")
        self.made.append(toy_model(gw.Tokenizer.of(byte_level(270)).vocabulary, 1))
        return self.made[-1]

    def spec(self, size: int | None = 6, **options: object) -> ModelSpec:
        return ModelSpec(self, bytes=size, **options)  # type: ignore[arg-type]  # options of any type


@pytest.fixture
def loaders() -> dict[str, Loader]:
    return {"a": Loader(0.02), "b": Loader(0.02)}


@pytest.fixture
def pool(loaders: dict[str, Loader]) -> Iterator[gw.Pool]:
    with gw.Pool(10, {name: one.spec() for name, one in loaders.items()}, turn_requests=2, linger=0.0) as made:
        yield made


def states(pool: gw.Pool) -> dict[str, str]:
    return {one.name: one.state for one in pool.status()}


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.005)


def test_a_lease_loads_a_model_and_keeps_it(pool: gw.Pool, loaders: dict[str, Loader]) -> None:
    assert states(pool) == {"a": "cold", "b": "cold"}
    with pool.lease("a") as model:
        assert model is loaders["a"].made[0]
        assert pool.status()[0].leases == 1
    with pool.lease("a") as again:
        assert again is model
    assert len(loaders["a"].made) == 1
    assert pool.status()[0].idle_seconds is not None


def test_threads_and_tasks_load_a_model_once(pool: gw.Pool, loaders: dict[str, Loader]) -> None:
    seen: list[object] = []

    def in_thread() -> None:
        with pool.lease("a") as model:
            seen.append(model)

    async def in_task() -> None:
        async with pool.lease("a") as model:
            seen.append(model)

    async def all_tasks() -> None:
        await asyncio.gather(*(in_task() for _ in range(8)))

    threads = [threading.Thread(target=in_thread) for _ in range(8)]
    for thread in threads:
        thread.start()
    asyncio.run(all_tasks())
    for thread in threads:
        thread.join()
    assert len(loaders["a"].made) == 1
    assert seen == loaders["a"].made * 16


def test_another_model_replaces_an_idle_one(pool: gw.Pool, loaders: dict[str, Loader]) -> None:
    with pool.lease("a") as first:
        pass
    with pool.lease("b"):
        assert states(pool) == {"a": "cold", "b": "ready"}
    assert isinstance(first, gw.Model)
    with pytest.raises(EngineError, match="closed"):
        first.engine  # noqa: B018  # the property raises


def test_a_timeout_ends_the_wait(pool: gw.Pool) -> None:
    with pool.lease("a"):
        with pytest.raises(LeaseTimeoutError, match=r"'b' did not become free within 0\.05 seconds"):
            pool.lease("b", timeout=0.05).acquire()
        with pytest.raises(LeaseTimeoutError):
            asyncio.run(pool.lease("b", timeout=0.05).aacquire())
        assert [one.waiting for one in pool.status()] == [0, 0]


def test_a_cancelled_task_does_not_keep_a_lease(pool: gw.Pool) -> None:
    async def run() -> None:
        task = asyncio.create_task(pool.lease("b").aacquire())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with pool.lease("a"):
        asyncio.run(run())
    until(lambda: all(not one.leases and not one.waiting for one in pool.status()))


def test_errors_of_a_load_reach_each_request_and_are_not_kept(pool: gw.Pool, loaders: dict[str, Loader]) -> None:
    loaders["a"].fails = True
    with pytest.raises(EngineError, match="the weights are damaged"):
        pool.lease("a").acquire()
    assert "the weights are damaged" in pool.status()[0].error
    loaders["a"].fails = False
    with pool.lease("a"):
        assert pool.status()[0].error == ""


def test_a_timeout_error_of_a_load_is_not_that_of_the_lease() -> None:
    def load() -> gw.Model:
        raise TimeoutError("the disk does not answer")

    with gw.Pool(None, {"a": load}) as pool, pytest.raises(TimeoutError, match="the disk does not answer") as caught:
        pool.lease("a", timeout=10).acquire()
    assert not isinstance(caught.value, LeaseTimeoutError)


def test_wrong_arguments_are_named(loaders: dict[str, Loader]) -> None:
    spec = loaders["a"].spec()
    with pytest.raises(ModelTooLargeError, match="'a' needs 6 bytes"):
        gw.Pool(5, {"a": spec})
    with pytest.raises(ValueError, match='budget must be a number of bytes such as "24GB"'):
        gw.Pool("much", {})
    with pytest.raises(ValueError, match="keep must be a number of seconds"):
        gw.Pool(None, {}, keep=-1)
    with pytest.raises(TypeError, match=r"the model 'a' must be a name for guideway\.load"):
        gw.Pool(None, {"a": 3})  # type: ignore[dict-item]  # a wrong type
    with gw.Pool(None, {"a": spec}) as pool:
        with pytest.raises(ModelNotFoundError, match="no model 'x' in the pool; it has a"):
            pool.lease("x")
        with pytest.raises(ValueError, match="has a model 'a' already"):
            pool.add("a", spec)
        lease = pool.lease("a")
        with pytest.raises(EngineError, match="not held"):
            lease.model  # noqa: B018  # the property raises
        lease.acquire()
        with pytest.raises(EngineError, match="held already"):
            lease.acquire()
        lease.release()
        lease.release()


def test_a_function_must_return_a_model() -> None:
    with (
        gw.Pool(None, {"a": lambda: 3}) as pool,  # type: ignore[dict-item,return-value]  # wrong
        pytest.raises(EngineError, match=r"must return a guideway\.Model, got 3"),
    ):
        pool.lease("a").acquire()


def test_unload_and_keep(loaders: dict[str, Loader]) -> None:
    with gw.Pool(None, {"a": loaders["a"].spec(keep=0.05), "b": loaders["b"].spec(pinned=True)}) as pool:
        pool.preload()
        assert states(pool)["b"] == "ready"
        until(lambda: states(pool)["a"] == "cold")
        with pool.lease("b"):
            assert pool.unload("b").state == "draining"
            assert states(pool)["b"] == "draining"
        until(lambda: states(pool)["b"] == "cold")
        with pool.lease("b"):
            assert pool.status()[1].loads == 2


def test_close_waits_for_loads() -> None:
    gate = threading.Event()

    def load() -> gw.Model:
        gate.wait(20)
        return Loader()()

    pool = gw.Pool(None, {"a": load})
    with pytest.raises(LeaseTimeoutError):
        pool.lease("a", timeout=0.0).acquire()
    assert states(pool) == {"a": "loading"}
    with pytest.raises(LeaseTimeoutError, match=r"the models were not unloaded within 0\.02 seconds"):
        pool.close(timeout=0.02)
    gate.set()
    pool.close()
    assert states(pool) == {"a": "cold"}


def test_a_cancelled_task_does_not_wait_for_leases(loaders: dict[str, Loader]) -> None:
    pool = gw.Pool(None, {"a": loaders["a"].spec()})
    held = pool.lease("a")
    held.acquire()

    async def run() -> None:
        closing = asyncio.ensure_future(pool.aclose())
        while states(pool)["a"] != "draining":
            await asyncio.sleep(0.01)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    thread.join(5)  # the event loop waits for its threads
    is_waiting = thread.is_alive()
    held.release()
    assert not is_waiting
    until(lambda: states(pool)["a"] == "cold")


def test_close_waits_for_leases(loaders: dict[str, Loader]) -> None:
    pool = gw.Pool(None, {"a": loaders["a"].spec()})
    lease = pool.lease("a")
    lease.acquire()
    with pytest.raises(LeaseTimeoutError, match=r"leases of a have not ended within 0\.02 seconds"):
        pool.close(timeout=0.02)
    with pytest.raises(EngineError, match="the pool is closed"):
        pool.lease("a").acquire()
    lease.release()
    pool.close()
    assert states(pool) == {"a": "cold"}


def test_sessions_are_parked_and_return(loaders: dict[str, Loader]) -> None:
    specs = {name: one.spec() for name, one in loaders.items()}
    with gw.Pool(10, specs, linger=0.0) as pool:
        parked = pool.session("a", seed=5, sampler=Sampler(temperature=1.0))
        with parked as session:
            session.feed("text: ")
            session.constrain(gw.Regex("[ab]{3}x[cd]{3}"))
            expected = session.fork()
            for _ in range(7):
                expected.infer()
            for _ in range(3):
                session.infer()
            with pytest.raises(EngineError, match="in use by another block"):
                parked.__enter__()
        assert not parked.is_parked
        with pool.lease("b"):
            assert parked.is_parked
        with parked as session:
            assert session.counts.run == 0, "the KV cache was restored"
            for _ in range(4):
                session.infer()
            assert session.text == expected.text
            session.constrain(None)
            session.rewind(2)
        pool.unload("a")

        async def again() -> str:
            async with parked as session:
                return session.text

        assert asyncio.run(again()) == expected.text[:-2]
        parked.close()
        with pytest.raises(EngineError, match="the session is closed"):
            parked.__enter__()


class Restoring:
    """Delays the restoration of sessions of pools until `may_end` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.made: list[gw.types.Session] = []
        restored = PooledSession._restored

        def slow(session: PooledSession, model: Any) -> Any:
            self.begun.set()
            assert self.may_end.wait(30)
            self.made.append(restored(session, model))
            return self.made[-1]

        monkeypatch.setattr(PooledSession, "_restored", slow)


async def cancelled_entry(parked: PooledSession, restoring: Restoring) -> None:
    task = asyncio.ensure_future(parked.__aenter__())
    assert await asyncio.to_thread(restoring.begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancelled_task_that_restores_a_session_gives_its_lease_back(
    loaders: dict[str, Loader], monkeypatch: pytest.MonkeyPatch
) -> None:
    restoring = Restoring(monkeypatch)

    async def run() -> None:
        await cancelled_entry(parked, restoring)
        restoring.may_end.set()
        await asyncio.to_thread(until, lambda: not pool.status()[0].leases)

    with gw.Pool(10, {name: one.spec() for name, one in loaders.items()}, linger=0.0) as pool:
        parked = pool.session("a")
        try:
            asyncio.run(run())
        finally:
            parked.__exit__(None, None, None)  # otherwise the pool waits for a lease that was not given back
        with parked as session:
            session.feed("text")


@pytest.mark.parametrize("is_async", [True, False])
def test_a_session_is_restored_once_if_it_is_entered_again_after_a_cancellation(
    is_async: bool, loaders: dict[str, Loader], monkeypatch: pytest.MonkeyPatch
) -> None:
    restoring = Restoring(monkeypatch)

    def entered() -> gw.types.Session:
        with parked as session:
            return session

    async def entered_async() -> gw.types.Session:
        async with parked as session:
            return session

    async def run() -> gw.types.Session:
        await cancelled_entry(parked, restoring)
        again = asyncio.ensure_future(entered_async() if is_async else asyncio.to_thread(entered))
        while pool.status()[0].leases < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        restoring.may_end.set()
        return await again

    pool = gw.Pool(10, {name: one.spec() for name, one in loaders.items()}, linger=0.0)
    parked = pool.session("a")
    assert [asyncio.run(run())] == restoring.made
    pool.close(10)


def test_an_event_loop_that_ends_while_a_session_is_restored_keeps_no_lease(
    loaders: dict[str, Loader], monkeypatch: pytest.MonkeyPatch
) -> None:
    restoring = Restoring(monkeypatch)

    async def run() -> None:
        asyncio.ensure_future(parked.__aenter__())  # noqa: RUF006 - `asyncio.run` cancels it
        assert await asyncio.to_thread(restoring.begun.wait, 30)
        threading.Timer(0.1, restoring.may_end.set).start()

    pool = gw.Pool(10, {name: one.spec() for name, one in loaders.items()}, linger=0.0)
    parked = pool.session("a")
    asyncio.run(run())
    pool.close(10)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_an_executor_that_drops_the_restoration_keeps_no_lease(is_cancelled: bool, loaders: dict[str, Loader]) -> None:
    async def run() -> None:
        executor, may_end = ThreadPoolExecutor(1), threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(executor)
        occupied = loop.run_in_executor(None, may_end.wait, 30)
        task = asyncio.ensure_future(parked.__aenter__())
        while not executor._work_queue.qsize():
            await asyncio.sleep(0.01)
        if is_cancelled:
            task.cancel()
            await asyncio.wait([task])
        executor.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()
        await occupied
        with pytest.raises(RuntimeError, match="shutdown"):
            await parked.__aenter__()

    pool = gw.Pool(10, {name: one.spec() for name, one in loaders.items()}, linger=0.0)
    parked = pool.session("a")
    asyncio.run(run())
    pool.close(10)


def test_a_second_block_is_refused_while_the_first_waits_for_its_model(pool: gw.Pool) -> None:
    parked = pool.session("a")

    async def run() -> None:
        entered = await asyncio.gather(parked.__aenter__(), parked.__aenter__(), return_exceptions=True)
        assert [isinstance(one, EngineError) for one in entered] == [False, True]
        parked.__exit__(None, None, None)
        assert pool.status()[0].leases == 0

    asyncio.run(run())


@pytest.mark.parametrize("cancels", [True, False])
def test_a_session_that_is_closed_while_it_is_restored(
    cancels: bool, loaders: dict[str, Loader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restoring = Restoring(monkeypatch)
    closed: list[gw.types.Session] = []

    async def run() -> None:
        if cancels:
            await cancelled_entry(parked, restoring)
        else:
            task = asyncio.ensure_future(parked.__aenter__())
            assert await asyncio.to_thread(restoring.begun.wait, 30)
        parked.close()
        restoring.may_end.set()
        if not cancels:
            with pytest.raises(EngineError, match="the session is closed"):
                await task
        await asyncio.to_thread(until, lambda: not pool.status()[0].leases)

    models = {name: one.spec() for name, one in loaders.items()}
    with gw.Pool(10, models, linger=0.0, directory=tmp_path) as pool:
        parked = pool.session("a")
        monkeypatch.setattr(gw.types.Session, "close", lambda self: closed.append(self))
        try:
            asyncio.run(run())
        finally:
            parked.__exit__(None, None, None)  # otherwise the pool waits for a lease that was not given back
        assert parked._session is None
        assert restoring.made[0] in closed
        with pool.lease("b"):  # unloads "a"
            assert list(tmp_path.iterdir()) == []
        with pytest.raises(EngineError, match="the session is closed"):
            parked.__enter__()


@pytest.mark.parametrize(
    "error", [OSError(28, "no space left on device"), RuntimeError("the device is out of memory"), MemoryError()]
)
def test_a_session_that_cannot_be_saved_returns_without_its_kv_cache(
    error: Exception, loaders: dict[str, Loader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: gw.types.Session, path: Path) -> None:
        raise error

    with gw.Pool(10, {name: one.spec() for name, one in loaders.items()}, linger=0.0, directory=tmp_path) as pool:
        parked: PooledSession = pool.session("a", seed=5, sampler=Sampler(temperature=1.0))
        with parked as session:
            session.feed("text: ")
            session.constrain(gw.Regex("[ab]{9}"))
            monkeypatch.setattr(type(session), "save", failing)
            expected = session.fork()
            for _ in range(6):
                expected.infer()
            for _ in range(3):
                session.infer()
        with pool.lease("b"):
            assert parked.is_parked
        with parked as session:
            for _ in range(3):
                session.infer()
            assert session.text == expected.text
        assert list(tmp_path.iterdir()) == []


def test_a_session_that_cannot_be_parked_keeps_no_model(
    loaders: dict[str, Loader], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[gw.types.Session] = []

    def failing(self: gw.types.Session) -> None:
        closed.append(self)
        raise EngineError("the cache cannot be released")

    with gw.Pool(None, {"a": loaders["a"].spec()}) as pool:
        parked = [pool.session("a") for _ in range(3)]
        for one in parked:
            with one as session:
                session.feed("text")
        with monkeypatch.context() as patch:
            patch.setattr(gw.types.Session, "close", failing)
            pool.unload("a")
            until(lambda: states(pool)["a"] == "cold")
        assert len(closed) == 3
        assert loaders["a"].made[0].is_closed
        assert all(one.is_parked for one in parked)
        assert "cannot be released" in pool.status()[0].error


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_that_is_closed_while_it_is_saved_leaves_no_file(
    fails: bool, loaders: dict[str, Loader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = gw.types.Session.save

    def closing(self: gw.types.Session, path: Path) -> None:
        parked.close()
        save(self, path)
        if fails:
            raise OSError(28, "no space left on device")

    with gw.Pool(None, {"a": loaders["a"].spec()}, directory=tmp_path) as pool:
        parked: PooledSession = pool.session("a")
        with parked as session:
            session.feed("some text")
        monkeypatch.setattr(gw.types.Session, "save", closing)
        pool.unload("a")
        until(lambda: states(pool)["a"] == "cold")
        assert list(tmp_path.iterdir()) == []
        assert not parked.is_parked


def test_the_first_session_creates_the_folder(loaders: dict[str, Loader], tmp_path: Path) -> None:
    folder = tmp_path / "new" / "sessions"
    with gw.Pool(None, {"a": loaders["a"].spec()}, directory=folder) as pool, pool.session("a") as session:
        session.feed("some text")
        assert folder.is_dir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", "a\0b"):
        pool = gw.Pool(None, {"a": loaders["a"].spec()}, directory=path)
        with pytest.raises(InvalidFileError, match="cannot create"):
            pool.session("a")
        pool.close()


def test_a_pool_that_was_closed_does_not_create_its_temporary_folder_again(
    loaders: dict[str, Loader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new folder would also be readable for other users, unlike the first one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with gw.Pool(None, {"a": loaders["a"].spec()}) as pool:
        pool.session("a")
        assert len(list(tmp_path.iterdir())) == 1
    pool.session("a")
    assert list(tmp_path.iterdir()) == []


def test_files_of_sessions_are_deleted(loaders: dict[str, Loader], tmp_path: Path) -> None:
    with gw.Pool(None, {"a": loaders["a"].spec()}, directory=tmp_path) as pool:
        parked = pool.session("a")
        with parked as session:
            session.feed("some text")
            session.logits()
        pool.unload("a")
        until(lambda: len(list(tmp_path.glob("*.session"))) == 1)
        del parked, session
        until(lambda: not list(tmp_path.iterdir()))


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GB", 24_000_000_000), ("16GiB", 16 << 30), ("1.5 kb", 1500), ("7", 7), (9, 9), ("2T", 2 * 10**12)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1XB", "0", 0, -4, True, 1.5, None, "1" * 99])
def test_wrong_sizes(text: object) -> None:
    with pytest.raises(ValueError, match="budget must be a number of bytes"):
        parse_bytes(text)  # type: ignore[arg-type]  # a wrong type


def test_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (
        ("model-00001-of-00002.gguf", 10),
        ("model-00002-of-00002.gguf", 20),
        ("other-00001-of-00002.gguf", 99),
        ("single[1].gguf", 7),
    ):
        (tmp_path / name).write_bytes(b"x" * size)
    assert weight_bytes(f"gguf:{tmp_path}/model-00001-of-00002.gguf") == 30
    assert weight_bytes(f"gguf:{tmp_path}/single[1].gguf") == 7
    assert weight_bytes("openai:gpt-5") == 0 == estimated_bytes("openai:gpt-5")
    assert weight_bytes(f"gguf:{tmp_path}/missing.gguf") is None is estimated_bytes("hf:")
    hub = tmp_path / "models--org--name" / "snapshots" / "1"
    hub.mkdir(parents=True)
    (hub / "model.safetensors").write_bytes(b"x" * 40)
    (hub / "pytorch_model.bin").write_bytes(b"x" * 50)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert weight_bytes("hf:org/name") == 40
    onnx = tmp_path / "export" / "onnx"
    onnx.mkdir(parents=True)
    (onnx / "model.onnx").write_bytes(b"model.onnx_data")
    (onnx / "model_q4.onnx").write_bytes(b"x" * 99)
    (onnx / "model.onnx_data").write_bytes(b"x" * 60)
    assert weight_bytes(f"onnx:{tmp_path}/export") == 75
    assert (weight_bytes("tiny") or 0) > 1_000_000


def test_two_real_models_switch_under_load(tmp_path: Path) -> None:
    """Threads and tasks use two models of which one fits; each text is valid."""
    other = f"onnx:{write_model(tmp_path / 'other')}"
    size = max(estimated_bytes("tiny") or 0, estimated_bytes(other) or 0)
    measured = resident_bytes()
    assert measured is None or measured > 10_000_000
    pattern = gw.Regex("[a-f]{4}-[0-9]{3}")
    texts: list[str] = []
    with gw.Pool(int(size * 1.5), {"tiny": "tiny", "other": other}, turn_requests=4, turn_seconds=5) as pool:

        def client(number: int) -> None:
            for turn in range(6):
                with pool.lease("tiny" if (number + turn) % 2 else "other") as model:
                    texts.append(model.generate(f"{number}", pattern, temperature=1.0, seed=number))

        async def task(number: int) -> None:
            for turn in range(6):
                async with pool.lease("tiny" if (number + turn) % 2 else "other") as model:
                    texts.append(await model.agenerate(f"{number}", pattern, temperature=1.0, seed=number))

        async def tasks() -> None:
            await asyncio.gather(*(task(number) for number in range(6)))

        threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        asyncio.run(tasks())
        for thread in threads:
            thread.join()
        loads = {one.name: one.loads for one in pool.status()}
    assert len(texts) == 72
    assert all(pattern.parse(text) is not None for text in texts)
    assert min(loads.values()) >= 2, "the models were switched"
    assert max(loads.values()) <= 13, f"a model was loaded more often than its turns allow: {loads}"


@pytest.mark.parametrize("refused", ["load a", "unload a", "pool"])
def test_threads_that_the_system_refuses(
    monkeypatch: pytest.MonkeyPatch, loaders: dict[str, Loader], pool: gw.Pool, refused: str
) -> None:
    start = threading.Thread.start
    left = [refused]

    def refusing(thread: threading.Thread) -> None:
        if left and thread.name == left[0]:
            left.clear()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)
    if refused == "load a":
        with pytest.raises(EngineError, match="cannot load 'a': can't start new thread"), pool.lease("a"):
            pass
    for name in ("a", "b", "a"):
        with pool.lease(name, timeout=20) as model:
            assert model is loaders[name].made[-1]
    assert not left
