"""The routes of this library: check, score, plan, sessions."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from guideway.errors import ContextOverflowError
from guideway.generation import Model
from guideway.server import FixedModels, ServerSettings, create_app
from guideway.server.session_routes import OPERATIONS, SessionStore
from guideway.sessions import Session
from tests.helpers.serving import LiveServer, live_server


def post(server: LiveServer, path: str, status: int = 200, **body: Any) -> Any:
    found = httpx.post(f"{server.url}/guideway/{path}", json=body, timeout=60)
    assert found.status_code == status, found.text
    return found.json()


def waiting(begun: threading.Event, ends: threading.Event, before: str = "", after: str = "") -> Any:
    """An operation of sessions that feeds a text, sets `begun`, waits for `ends`, and feeds another text."""

    def run(session: Session, body: dict[str, Any]) -> dict[str, Any]:
        session.feed(before)
        begun.set()
        assert ends.wait(30)
        session.feed(after)
        return {}

    return run


def test_check(server: LiveServer) -> None:
    assert post(server, "check", regex="[0-9]{2}", text="12")["fits"]
    found = post(server, "check", regex="[0-9]{2}", text="1a")
    assert not found["fits"]
    assert found["message"]


def test_score(server: LiveServer, tiny: Model) -> None:
    found = post(server, "score", prompt="The sky is ", options=["blue", "green"])["data"]
    wanted = tiny.score("The sky is ", ["blue", "green"])
    assert [one["probability"] for one in found] == pytest.approx([one.probability for one in wanted])


def test_plan(server: LiveServer) -> None:
    found = post(
        server,
        "plan",
        schema={"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False},
    )
    assert found["guarantee"] == "exact"
    assert found["forced"].startswith('{"a"')
    assert found["min_tokens"] > 0


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("check", {"regex": "a"}, "text"),
        ("check", {"regex": "(", "text": "a"}, "regex"),
        ("check", {"regex": "a", "lark": 'start: "a"', "text": "a"}, "lark"),
        ("score", {"prompt": "a"}, "options"),
        ("score", {"options": ["a"]}, "prompt"),
        ("sessions", {"prompt": "a", "temperature": "x"}, "temperature"),
    ],
)
def test_refused(server: LiveServer, path: str, body: dict[str, Any], param: str) -> None:
    assert post(server, path, 400, **body)["error"]["param"] == param


def test_session(server: LiveServer, tiny: Model) -> None:
    opened = post(server, "sessions", prompt="Ada was born in ", regex="[0-9]{4}", seed=1, temperature=1.0)
    path = f"sessions/{opened['id']}"
    first = post(server, f"{path}/infer", top_logprobs=3)
    top = first["inferred"][0]["top"]
    assert [set(one) for one in top] == [{"id", "token", "probability"}] * 3
    assert 1 >= top[0]["probability"] >= top[1]["probability"] >= top[2]["probability"] > 0
    forked = post(server, f"{path}/fork")
    rest = post(server, f"{path}/infer", count=20)
    year = rest["text"].removeprefix("Ada was born in ")
    assert len(year) == 4
    assert year.isdigit()
    assert rest["is_finished"]
    assert post(server, f"sessions/{forked['id']}/infer", count=20)["text"] == rest["text"]
    count = len(rest["inferred"])
    assert len(post(server, f"{path}/rewind", count=count)["removed"]) == count
    assert post(server, f"{path}/set_text", text="Bob", release=True)["text"] == "Bob"
    assert post(server, f"{path}/feed", text=" and")["text"] == "Bob and"
    saved = httpx.post(f"{server.url}/guideway/{path}/save")
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.content
    assert httpx.delete(f"{server.url}/guideway/{path}").json()["deleted"]
    post(server, f"{path}/infer", 404)
    assert post(server, f"sessions/{forked['id']}/dance", 404)["error"]["code"] == "unknown_url"


def test_a_session_that_cannot_be_saved(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = f"sessions/{post(server, 'sessions', model='tiny')['id']}"
    with monkeypatch.context() as patch:
        patch.setattr("guideway.sessions.snapshot.os.replace", full_disk)
        answer = httpx.post(f"{server.url}/guideway/{path}/save")
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (500, "server_error", "invalid_file")
    assert error["message"].endswith("No space left on device")
    assert httpx.post(f"{server.url}/guideway/{path}/save").status_code == 200
    assert httpx.delete(f"{server.url}/guideway/{path}").status_code == 200


def test_an_inference_that_fails_leaves_the_session_unchanged(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    infer, counts = Session.infer, []

    def failing(self: Session, **options: Any) -> int:
        counts.append(len(self))
        if len(counts) == 4:
            raise ContextOverflowError("the context is full")
        return infer(self, **options)

    opened = post(server, "sessions", prompt="Ada was born in ", regex="[0-9]{9}", seed=1)
    path = f"sessions/{opened['id']}"
    monkeypatch.setattr(Session, "infer", failing)
    assert "context" in post(server, f"{path}/infer", 400, count=6)["error"]["message"]
    assert counts[-1] == counts[0] + 3
    monkeypatch.undo()
    assert httpx.get(f"{server.url}/guideway/{path}").json()["tokens"] == opened["tokens"]
    assert len(post(server, f"{path}/infer", count=6)["inferred"]) == 6


def test_idle_sessions_are_closed(tiny: Model) -> None:
    with live_server({"tiny": tiny}, session_idle_seconds=0.2) as server:
        path = f"sessions/{post(server, 'sessions', prompt='a')['id']}"
        until = time.monotonic() + 20
        time.sleep(0.3)  # a request for the session would count as its use
        while (answer := httpx.get(f"{server.url}/guideway/{path}")).status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.5)
        assert answer.status_code == 404


def test_requests_that_wait_for_a_session_that_is_deleted(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{server.url}/guideway/sessions/{post(server, 'sessions', prompt='a')['id']}"
    begun, ends = threading.Event(), threading.Event()
    found: list[str] = []  # the name of the session, once for each look-up; a request then waits for the session's lock
    get = SessionStore.get

    def counted(store: SessionStore, key: str, name: str) -> Any:
        found.append(name)
        return get(store, key, name)

    monkeypatch.setitem(OPERATIONS, "infer", ((), waiting(begun, ends)))
    monkeypatch.setattr(SessionStore, "get", counted)

    async def until(count: int) -> None:
        end = time.monotonic() + 30
        while len(found) < count:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)

    async def run() -> list[int]:
        async with httpx.AsyncClient(timeout=60) as client:
            first = asyncio.ensure_future(client.post(f"{url}/infer", json={}))
            assert await asyncio.to_thread(begun.wait, 30)
            earlier = len(found)
            deleting = asyncio.ensure_future(client.delete(url))
            await until(earlier + 1)
            waiting = [asyncio.ensure_future(client.post(f"{url}/{one}", json={})) for one in ("feed", "fork", "save")]
            waiting += [asyncio.ensure_future(client.delete(url)), asyncio.ensure_future(client.get(url))]
            await until(earlier + 1 + len(waiting))
            ends.set()
            return [one.status_code for one in await asyncio.gather(first, deleting, *waiting)]

    assert asyncio.run(run()) == [200, 200, 404, 404, 404, 404, 404]


def test_a_session_is_shown_after_the_operation_that_runs(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{server.url}/guideway/sessions/{post(server, 'sessions', prompt='a')['id']}"
    begun, ends = threading.Event(), threading.Event()

    monkeypatch.setitem(OPERATIONS, "feed", ((), waiting(begun, ends, "b", "c")))

    async def run() -> tuple[str, bool]:
        async with httpx.AsyncClient(timeout=60) as client:
            feeding = asyncio.ensure_future(client.post(f"{url}/feed", json={}))
            assert await asyncio.to_thread(begun.wait, 30)
            showing = asyncio.ensure_future(client.get(url))
            done, _ = await asyncio.wait([showing], timeout=0.3)
            ends.set()
            await feeding
            return (await showing).json()["text"], not done

    assert asyncio.run(run()) == ("abc", True)


def test_a_session_is_shown_while_an_operation_waits_for_the_model(tiny: Model) -> None:
    class Models(FixedModels):
        @asynccontextmanager
        async def lease(self, name: str | None) -> AsyncIterator[Model]:
            waits.set()
            await asyncio.to_thread(is_free.wait, 30)
            async with super().lease(name) as model:
                yield model

    waits, is_free = threading.Event(), threading.Event()
    is_free.set()

    async def run(url: str) -> str:
        async with httpx.AsyncClient(timeout=5) as client:
            feeding = asyncio.ensure_future(client.post(f"{url}/feed", json={"text": "b"}))
            assert await asyncio.to_thread(waits.wait, 30)
            try:
                return str((await client.get(url)).json()["text"])
            finally:
                is_free.set()
                assert (await feeding).json()["text"] == "ab"

    with live_server(Models({"tiny": tiny})) as server:
        url = f"{server.url}/guideway/sessions/{post(server, 'sessions', prompt='a')['id']}"
        waits.clear()
        is_free.clear()
        assert asyncio.run(run(url)) == "a"


@pytest.mark.parametrize("stops", [False, True])
def test_a_cancelled_operation_keeps_its_session_until_its_thread_ends(
    stops: bool, tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server stops, it does not wait for the thread."""
    begun, ends = threading.Event(), threading.Event()
    leases: list[str] = []

    class Models(FixedModels):
        @asynccontextmanager
        async def lease(self, name: str | None) -> AsyncIterator[Model]:
            async with super().lease(name) as model:
                leases.append("begin")
                try:
                    yield model
                finally:
                    leases.append("end")

    async def cancel(*tasks: asyncio.Future[Any]) -> None:
        for one in tasks:
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one
        await asyncio.sleep(0.1)

    monkeypatch.setitem(OPERATIONS, "feed", ((), waiting(begun, ends, "b", "c")))

    async def run(client: httpx.AsyncClient) -> None:
        url = f"/sessions/{(await client.post('/sessions', json={'prompt': 'a'})).json()['id']}"
        leases.clear()
        feeding = asyncio.ensure_future(client.post(f"{url}/feed", json={}))
        assert await asyncio.to_thread(begun.wait, 30)
        waiting = asyncio.ensure_future(client.post(f"{url}/rewind", json={"count": 1}))
        showing = asyncio.ensure_future(client.get(url))
        await asyncio.sleep(0.1)
        await cancel(feeding, waiting)
        assert leases == ["begin"]
        assert not showing.done()
        if stops:
            await cancel(showing)
            return
        ends.set()
        assert (await showing).json()["text"] == "abc"
        assert leases == ["begin", "end"]

    async def serve() -> None:
        app = create_app(Models({"tiny": tiny}), ServerSettings(constraint_workers=0))
        transport = httpx.ASGITransport(app)  # a cancellation reaches the handler, as with some ASGI servers
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver/guideway", timeout=60) as client:
            async with app.router.lifespan_context(app):
                while not app.state.server.ready:
                    await asyncio.sleep(0.01)
                await run(client)
            await asyncio.sleep(0.1)
        assert leases == ["begin", "end"]
        ends.set()

    asyncio.run(serve())


def test_requests_that_wait_for_a_session_are_counted(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends = threading.Event(), threading.Event()

    monkeypatch.setitem(OPERATIONS, "infer", ((), waiting(begun, ends)))

    async def run(server: LiveServer, url: str) -> list[int]:
        async with httpx.AsyncClient(timeout=60) as client:
            running = [asyncio.ensure_future(client.post(f"{url}/infer", json={}))]
            assert await asyncio.to_thread(begun.wait, 30)
            running.append(asyncio.ensure_future(client.post(f"{url}/infer", json={})))
            end = time.monotonic() + 20
            while server.state._count < 2:
                assert time.monotonic() < end
                await asyncio.sleep(0.01)
            refused = [await client.post(f"{url}/{one}", json={}) for one in ("infer", "save")]
            ends.set()
            return [one.status_code for one in [*refused, *await asyncio.gather(*running)]]

    with live_server({"tiny": tiny}, max_queue=2) as server:
        url = f"{server.url}/guideway/sessions/{post(server, 'sessions', prompt='a')['id']}"
        try:
            assert asyncio.run(run(server, url)) == [429, 429, 200, 200]
        finally:
            ends.set()


def test_a_session_in_use_is_not_idle(tiny: Model) -> None:
    async def run() -> None:
        store = SessionStore(2, idle_seconds=0.0)
        found = store.add("", "tiny", tiny.session(), tiny)
        async with found.lock:
            await asyncio.sleep(0.01)
            store.close_idle()
            assert store.get("", found.id) is found
        await asyncio.sleep(0.01)
        store.close_idle()
        assert not store._sessions

    asyncio.run(run())
