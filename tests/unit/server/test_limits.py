"""Limits and security: keys, sizes, queues, slow and leaving clients, draining."""

import asyncio
import http.client
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx
import pytest

from guideway.batch.bodies import read_body
from guideway.errors import ContextOverflowError
from guideway.generation import GenerationRequest, Model
from guideway.generation.plan import Job
from guideway.server import FixedModels, ServerSettings, create_app, generating, read_keys, serve
from guideway.server.echo import echo_of
from guideway.server.serving import is_loopback
from guideway.server.state import LOG, ServerState
from tests.helpers.serving import LiveServer, live_server

CHAT = "/v1/chat/completions"
SAY: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
LONG: dict[str, Any] = {**SAY, "max_tokens": 900, "min_tokens": 890}


def post(url: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(url + CHAT, json=body, headers=headers, timeout=60)


def test_keys(tiny: Model) -> None:
    with live_server({"tiny": tiny}, api_keys=("first", "second")) as live:
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "first"[:3]}):
            found = post(live.url, SAY, **header)
            assert (found.status_code, found.json()["error"]["code"]) == (401, "invalid_api_key")
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert post(live.url, SAY, Authorization=f"{scheme} second").status_code == 200
        assert httpx.get(f"{live.url}/v1/models").status_code == 401
        assert httpx.get(f"{live.url}/health").status_code == 200
        stored = httpx.post(
            f"{live.url}/v1/responses",
            json={"model": "tiny", "input": "a", "max_output_tokens": 2},
            headers={"Authorization": "Bearer first"},
        ).json()["id"]
        url = f"{live.url}/v1/responses/{stored}"
        assert httpx.get(url, headers={"Authorization": "Bearer second"}).status_code == 404
        assert httpx.get(url, headers={"Authorization": "Bearer first"}).status_code == 200


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(ServerSettings(api_keys=("secret",)))


def test_key_file(tmp_path: Any) -> None:
    path = tmp_path / "keys"
    path.write_text("# comment\n\n one \ntwo\n")
    assert read_keys(path) == ("one", "two")
    path.write_text("# none\n")
    with pytest.raises(ValueError, match="one key per line"):
        read_keys(path)


@pytest.mark.parametrize(("host", "found"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("a.b", False)])
def test_loopback(host: str, found: bool) -> None:
    assert is_loopback(host) is found


def test_other_addresses_need_keys(tiny: Model) -> None:
    with pytest.raises(ValueError, match="API keys"):
        serve(FixedModels({"tiny": tiny}), host="0.0.0.0")


def test_an_address_that_cannot_be_used_is_named(tiny: Model) -> None:
    handlers = list(LOG.handlers)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"the address 127.0.0.1 and the port {port}: Address already in use"):
            serve(FixedModels({"tiny": tiny}), port=port)
    with pytest.raises(OSError, match=r"the address no[.]such[.]host[.]invalid and the port 0"):
        serve(FixedModels({"tiny": tiny}), ServerSettings(api_keys=("a",)), host="no.such.host.invalid", port=0)
    assert handlers == LOG.handlers


def test_a_drain_time_without_limit(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []
    monkeypatch.setattr(
        "uvicorn.Server.run", lambda self, sockets: limits.append(self.config.timeout_graceful_shutdown)
    )
    for seconds in (math.inf, 0.5):
        serve(FixedModels({"tiny": tiny}), ServerSettings(drain_seconds=seconds), port=0, quiet=True)
    assert limits == [None, 1]


def test_other_host_names_are_refused(server: LiveServer) -> None:
    found = httpx.get(f"{server.url}/v1/models", headers={"Host": "evil.example"})
    assert (found.status_code, found.json()["error"]["code"]) == (403, "forbidden_host")


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b"[]", "application/json", 400, "invalid_type"),
        (b'{"a": NaN}', "application/json", 400, "invalid_json"),
        (b'{"a": 1e999}', "application/json", 400, "invalid_json"),
        (b"\xff", "application/json", 400, "invalid_json"),
        (b"[" * 3000, "application/json", 400, "invalid_json"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "application/json", 400, "invalid_json"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b'{"a": "' + b"a" * (5 << 20) + b'"}', "application/json", 413, "body_too_large"),
    ],
)
def test_bodies(server: LiveServer, content: bytes, kind: str, status: int, code: str) -> None:
    found = httpx.post(server.url + CHAT, content=content, headers={"Content-Type": kind}, timeout=60)
    assert (found.status_code, found.json()["error"]["code"]) == (status, code)


def test_body_without_a_length_is_limited(server: LiveServer) -> None:
    parts = (b"a" * 65536 for _ in range(100))
    found = httpx.post(server.url + CHAT, content=parts, headers={"Content-Type": "application/json"}, timeout=60)
    assert found.status_code == 413


def test_unknown_url_and_method(server: LiveServer) -> None:
    assert httpx.get(f"{server.url}/v1/unknown").json()["error"]["code"] == "unknown_url"
    assert httpx.get(server.url + CHAT).json()["error"]["code"] == "method_not_allowed"


def wait_until(condition: Any, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def sequences(live: LiveServer) -> float:
    lines = httpx.get(f"{live.url}/metrics").text.splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith("guideway:num_sequences ")))


def in_flight(live: LiveServer) -> float:
    lines = httpx.get(f"{live.url}/metrics").text.splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith("guideway:num_requests_running ")))


def test_queue_is_limited(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()

    def slow(*args: Any) -> Any:
        assert may_end.wait(60)
        return read_body(*args)

    monkeypatch.setattr(generating, "read_body", slow)
    with live_server({"tiny": tiny}, max_queue=2) as live:
        threads = [threading.Thread(target=post, args=(live.url, SAY)) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: in_flight(live) == 2)
        found = post(live.url, SAY)
        assert (found.status_code, found.headers["retry-after"]) == (429, "1")
        assert found.json()["error"]["type"] == "rate_limit_error"
        may_end.set()
        for thread in threads:
            thread.join()
        assert post(live.url, SAY).status_code == 200


def test_tokens_in_flight_are_limited(tiny: Model) -> None:
    with live_server({"tiny": tiny}, max_tokens_in_flight=100) as live:
        assert post(live.url, LONG).status_code == 429
        assert post(live.url, SAY).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_rows_of_a_client_that_leaves_are_freed(server: LiveServer, stream: bool) -> None:
    body = json.dumps({**LONG, "stream": stream, "n": 4}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head.encode() + body)
        wait_until(lambda: sequences(server) > 0)
    wait_until(lambda: in_flight(server) == 0 and sequences(server) == 0, 10)
    assert post(server.url, SAY).status_code == 200


def test_a_request_is_admitted_until_its_preparation_ends(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, may_end = threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        reads.set()
        assert may_end.wait(60)
        return read_body(*args)

    monkeypatch.setattr(generating, "read_body", slow)
    body = json.dumps({**LONG, "top_p": 0.97}).encode()  # the first body with this option is prepared in another thread
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    host, port = server.url.removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode() + body)
            assert reads.wait(60)
        time.sleep(0.1)  # the server notices that the client left
        assert in_flight(server) == 1
    finally:
        may_end.set()
    wait_until(lambda: in_flight(server) == 0)
    assert sequences(server) == 0


def test_echo_is_read_after_tokens_are_reserved(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[Any] = []

    def recorded(model: Model, job: Any, count: Any) -> Any:
        counts.append(count)
        return echo_of(model, job, count)

    monkeypatch.setattr(generating, "echo_of", recorded)
    with live_server({"tiny": tiny}, max_tokens_in_flight=50) as live:
        body = {"model": "tiny", "prompt": "a b c", "echo": True, "logprobs": 1, "max_tokens": 4}
        url = f"{live.url}/v1/completions"
        assert httpx.post(url, json={**body, "max_tokens": 60}, timeout=60).status_code == 429
        assert counts == []
        assert httpx.post(url, json=body, timeout=60).json()["choices"][0]["text"].startswith("a b c")
        assert counts == [1]


def test_reserved_tokens_are_those_of_the_prompts_that_did_not_fail(tiny: Model) -> None:
    too_long, short = [1] * (tiny.context_size + 1), tiny.tokenizer.encode("hi")
    requests = [GenerationRequest(too_long, max_tokens=5), GenerationRequest(short, max_tokens=7)]
    job = Job(tiny, requests, None, None, {"return_exceptions": True})
    assert isinstance(job.results[0][0], ContextOverflowError)
    assert generating.tokens_of(job) == len(tiny.bos_ids) + len(short) + 7


def test_a_client_that_takes_no_data_is_disconnected(tiny: Model) -> None:
    with live_server({"tiny": tiny}, send_seconds=0.5) as live:
        body = json.dumps({**LONG, "stream": True, "logprobs": True, "top_logprobs": 20, "n": 16}).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        host, port = live.url.removeprefix("http://").split(":")
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with client:
            client.connect((host, int(port)))
            client.sendall(head.encode() + body)
            wait_until(lambda: in_flight(live) == 1)
            wait_until(lambda: in_flight(live) == 0, 60)


def test_sigterm_drains() -> None:
    command = [sys.executable, "-m", "guideway", "serve", "--model", "tiny", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url = json.loads(process.stderr.readline())["url"]
        wait_until(lambda: httpx.get(f"{url}/ready").status_code == 200, 60)
        assert post(url, SAY).status_code == 200
        answers: list[httpx.Response] = []
        thread = threading.Thread(
            target=lambda: answers.append(post(url, {**SAY, "max_tokens": 200, "min_tokens": 190, "n": 2}))
        )
        thread.start()
        wait_until(lambda: "num_requests_running 1" in httpx.get(f"{url}/metrics").text)
        os.kill(process.pid, signal.SIGTERM)
        thread.join(60)
        assert answers[0].status_code == 200
        assert len(answers[0].json()["choices"]) == 2
    finally:
        process.terminate()
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    records = [json.loads(line) for line in log.splitlines()]
    assert {record["message"] for record in records} >= {"request"}
    assert "hi" not in [record.get("prompt") for record in records]


def test_requests_that_do_not_end_in_the_drain_time() -> None:
    command = [sys.executable, "-m", "guideway", "serve", "--model", "tiny", "--port", "0", "--drain-seconds", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url = json.loads(process.stderr.readline())["url"]
        wait_until(lambda: httpx.get(f"{url}/ready").status_code == 200, 60)
        answers: list[httpx.Response] = []
        long = {**SAY, "max_tokens": 900, "min_tokens": 890, "n": 128}
        thread = threading.Thread(target=lambda: answers.append(post(url, long)))
        thread.start()
        wait_until(lambda: "num_requests_running 1" in httpx.get(f"{url}/metrics").text)
        os.kill(process.pid, signal.SIGTERM)
        thread.join(60)
        assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (503, "shutting_down")
    finally:
        process.terminate()
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    messages = [json.loads(line)["message"] for line in log.splitlines()]  # also what uvicorn logs
    assert "request" in messages
    assert not [one for one in messages if "Exception" in one]


STREAMS: dict[str, dict[str, Any]] = {
    CHAT: {**LONG, "stream": True},
    "/v1/completions": {"model": "tiny", "prompt": "a", "max_tokens": 900, "min_tokens": 890, "stream": True},
    "/v1/responses": {"model": "tiny", "input": "a", "max_output_tokens": 900, "min_tokens": 890, "stream": True},
    "/guideway/tokens": {"model": "tiny", "prompt": "a", "max_tokens": 900, "min_tokens": 890},
}


def posted(app: Any, url: str, receive: Any, send: Any) -> asyncio.Future[None]:
    """Call an ASGI application with a POST request."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": url, "query_string": b"", "headers": headers}
    return asyncio.ensure_future(app(scope, receive, send))


async def cancelled(
    app: Any, url: str, body: object, draining: bool, begun: asyncio.Event, begins: Callable[[Any], bool]
) -> list[Any]:
    """Returns what a request sends that is cancelled after `begun`, or after a message for which `begins` is True."""
    state: ServerState = app.state.server
    state.ready = True
    await state.models.start()
    never, sent = asyncio.Event(), list[Any]()
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> Any:
        if not messages:
            await never.wait()
        return messages.pop()

    async def send(message: Any) -> None:
        sent.append(message)
        if begins(message):
            begun.set()

    task = posted(app, url, receive, send)
    await asyncio.wait_for(begun.wait(), 30)
    state.draining = draining
    task.cancel()
    await asyncio.wait([task], timeout=20)
    assert task.cancelled() != draining
    return sent


@pytest.mark.parametrize("draining", [True, False])
@pytest.mark.parametrize("url", STREAMS)
def test_streams_that_are_cancelled(url: str, draining: bool, tiny: Model) -> None:
    app = create_app(FixedModels({"tiny": tiny}))
    sent = asyncio.run(
        cancelled(
            app, url, STREAMS[url], draining, asyncio.Event(), lambda message: message["type"] == "http.response.body"
        )
    )
    assert sent[-1].get("more_body", False) != draining
    last = sent[-1]["body"].decode().split("data: ")
    assert ("the server stopped" in last[-1]) is (draining and url != "/v1/responses")
    if not draining:
        return
    if url == "/v1/responses":
        failed = json.loads(last[1].partition("\n")[0])
        assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
        assert "the server stopped" in failed["response"]["error"]["message"]
    else:
        error = json.loads(last[1])["error"]
        assert (error["type"], error["code"]) == ("server_error", "shutting_down")


def test_a_stream_whose_client_takes_no_data_at_the_end_of_the_drain_time(tiny: Model) -> None:
    async def cancelled() -> None:
        await state.models.start()
        full, never = asyncio.Event(), asyncio.Event()
        messages = [{"type": "http.request", "body": json.dumps(STREAMS[CHAT]).encode(), "more_body": False}]

        async def receive() -> Any:
            if not messages:
                await never.wait()
            return messages.pop()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                full.set()
                await never.wait()

        task = posted(app, CHAT, receive, send)
        await asyncio.wait_for(full.wait(), 30)
        state.draining = True
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=20)
        assert done == {task}
        assert "guideway:num_requests_running 0" in state.metrics.export()

    app = create_app(FixedModels({"tiny": tiny}))
    state: ServerState = app.state.server
    state.ready = True
    asyncio.run(cancelled())


def test_a_stream_that_does_not_end_in_the_drain_time() -> None:
    command = [sys.executable, "-m", "guideway", "serve", "--model", "tiny", "--port", "0", "--drain-seconds", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url = json.loads(process.stderr.readline())["url"]
        wait_until(lambda: httpx.get(f"{url}/ready").status_code == 200, 60)
        body = {**LONG, "stream": True, "n": 128}
        with httpx.stream("POST", url + CHAT, json=body, timeout=60) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            os.kill(process.pid, signal.SIGTERM)
            last = [line for line in lines if line][-1]
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == "shutting_down"
    finally:
        process.terminate()
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Exception" not in log


HEAD = "POST {url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"


def sent_in_parts(live: LiveServer, url: str, kind: str, length: int, parts: Iterable[bytes]) -> bytes:
    """Send a body in parts, until the server answers or all are sent. Returns the answer.

    A byte that arrives after the server has closed the connection would reset it, and the answer could be lost.
    """
    host, port = live.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(HEAD.format(url=url, kind=kind, length=length).encode())
        for part in parts:
            client.sendall(part)
            if select.select([client], [], [], 0.01)[0]:
                break
        answer = b""
        while part := client.recv(65536):
            answer += part
        return answer


def drops(live: LiveServer) -> Iterator[bytes]:
    """Yield single bytes while the server has a request; at most for 60 seconds."""
    yield b"{"
    wait_until(lambda: in_flight(live) == 1)
    until = time.monotonic() + 60
    while in_flight(live) == 1:
        assert time.monotonic() < until
        yield b" "


@pytest.mark.parametrize("url", [CHAT, "/v1/responses", "/guideway/check", "/v1/files"])
def test_a_body_that_does_not_arrive(url: str, tiny: Model) -> None:
    kind = "multipart/form-data; boundary=x" if url == "/v1/files" else "application/json"
    with live_server({"tiny": tiny}, body_seconds=0.2) as live:
        answer = sent_in_parts(live, url, kind, 100, [b'{"model": ' if url != "/v1/files" else b"--x\r\n"])
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in head.lower()
        error = json.loads(body)["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "request_timeout")
        assert in_flight(live) == 0


def test_a_body_that_arrives_slowly(tiny: Model) -> None:
    with live_server({"tiny": tiny}, body_seconds=0.3) as live:
        answer = sent_in_parts(live, CHAT, "application/json", 1 << 20, drops(live))
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_large_body_has_more_time(tiny: Model) -> None:
    """The first 64 KiB extend the time by four seconds."""
    first = b'{"model": "tiny", "prompt": [1], "max_tokens": 1, "user": "' + b"a" * (1 << 16)

    def parts() -> Iterator[bytes]:
        yield first
        wait_until(lambda: in_flight(live) == 1)
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 0.4)
        yield b'"}'

    with live_server({"tiny": tiny}, body_seconds=0.2) as live:
        url = live.url.removeprefix("http://")
        client = http.client.HTTPConnection(url, timeout=60)
        length = str(len(first) + 2)
        client.request(
            "POST", "/v1/completions", parts(), {"Content-Type": "application/json", "Content-Length": length}
        )
        assert client.getresponse().status == 200
        client.close()


SLOW: dict[str, dict[str, Any]] = {
    CHAT: SAY,
    "/v1/responses": {"model": "tiny", "input": "hi"},
    "/v1/responses/input_tokens": {"model": "tiny", "input": "hi"},
    "/guideway/check": {"regex": "a", "text": "a"},
    "/guideway/score": {"prompt": "a", "options": ["a"]},
    "/guideway/plan": {"regex": "a"},
    "/guideway/explain": {"schema": {}},
    "/guideway/sessions": {"prompt": "a"},
    "/guideway/alternatives": {"prompt": "a"},
}


@pytest.mark.parametrize("draining", [True, False])
@pytest.mark.parametrize("url", SLOW)
def test_requests_of_each_route_that_are_cancelled(
    url: str, draining: bool, tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = asyncio.Event()

    async def run(*_: object, **__: object) -> None:
        working.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("guideway.background.run", run)
    app = create_app(FixedModels({"tiny": tiny}))
    state: ServerState = app.state.server
    sent = asyncio.run(cancelled(app, url, SLOW[url], draining, working, lambda message: False))
    if not draining:
        assert not sent
        return
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (sent[0]["status"], json.loads(sent[1]["body"])["error"]["code"]) == (503, "shutting_down")
    counted = f'http_requests_total{{handler="{url}",status="503"}} 1'
    assert (counted in state.metrics.export()) == (url in (CHAT, "/v1/responses"))


def test_create_app_is_an_asgi_application(tiny: Model) -> None:
    assert create_app(FixedModels({"tiny": tiny})).routes


def test_a_model_that_cannot_be_loaded_is_named() -> None:
    from starlette.testclient import TestClient

    from guideway.server import FixedModels, create_app

    def broken() -> Model:
        raise OSError("weights.gguf is damaged")

    with TestClient(create_app(FixedModels({"broken": broken}))) as client:
        wait_until(lambda: "error" in client.get("/ready").json())
        assert client.get("/ready").json()["error"].startswith("a model cannot be loaded (OSError)")
        answer = client.post(CHAT, json=SAY)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "loading_failed")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it collects what other tests left
def test_loaded_objects_are_frozen_before_the_first_request(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full garbage collection of modules and models would stop all rounds for 0.1 s. Others are rarer, too."""
    import gc

    import uvicorn
    from starlette.testclient import TestClient

    from guideway.server import FixedModels, serve
    from guideway.server.serving import FULL_AFTER

    frozen = dict[str, int]()

    def run(self: uvicorn.Server, sockets: object = None) -> None:
        with TestClient(self.config.app) as client:
            wait_until(lambda: client.get("/ready").status_code == 200)
            frozen["ready"] = gc.get_freeze_count()
            frozen["full after"] = gc.get_threshold()[2]

    monkeypatch.setattr(uvicorn.Server, "run", run)
    gc.unfreeze()
    before = gc.get_threshold()
    serve(FixedModels({"tiny": tiny}), port=0, quiet=True)
    assert frozen["ready"] > 10_000
    assert frozen["full after"] == FULL_AFTER
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
    gc.freeze()  # objects that others froze stay frozen
    serve(FixedModels({"tiny": tiny}), port=0, quiet=True)
    assert gc.get_freeze_count() > 10_000


def test_requests_of_other_web_pages_are_refused(server: LiveServer) -> None:
    answer = httpx.post(f"{server.url}{CHAT}", json=SAY, headers={"Origin": "https://page.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden_origin")
    own = httpx.post(f"{server.url}{CHAT}", json=SAY, headers={"Origin": server.url})
    assert own.status_code == 200


def test_prompts_and_samples_have_a_limit(server: LiveServer) -> None:
    body = {"model": "tiny", "prompt": ["a"] * 1025, "n": 2, "max_tokens": 1}
    answer = httpx.post(f"{server.url}/v1/completions", json=body, timeout=60)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prompt")


def test_names_with_lone_surrogates_are_refused(server: LiveServer) -> None:
    body = json.dumps({**SAY, "\ud800": 1}).encode()
    answer = httpx.post(f"{server.url}{CHAT}", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "ud800" in answer.json()["error"]["param"]


def test_malformed_forms_are_refused(server: LiveServer) -> None:
    answer = httpx.post(
        f"{server.url}/v1/files", content=b"x", headers={"Content-Type": "multipart/form-data; boundary"}
    )
    assert answer.status_code == 400
