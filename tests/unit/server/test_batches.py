"""Files and batches with OpenAI's client."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import openai
import pytest
from starlette.requests import Request

from guideway.errors import InvalidRequestError
from guideway.server import ServerSettings, batches
from guideway.server.errors import HttpError
from guideway.server.files import FileStore, StoredFile, create, page
from guideway.server.models import FixedModels
from guideway.server.state import ServerState

CHAT = "/v1/chat/completions"


def line(name: str, url: str = CHAT, **body: Any) -> str:
    given = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, **body}
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": given})


def upload(client: openai.OpenAI, *lines: str) -> Any:
    return client.files.create(file=("in.jsonl", "\n".join(lines).encode()), purpose="batch")


def ended(client: openai.OpenAI, name: str) -> Any:
    until = time.monotonic() + 60
    while (found := client.batches.retrieve(name)).status not in ("completed", "failed", "cancelled"):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def test_batch(client: openai.OpenAI) -> None:
    lines = [line(f"r{number}") for number in range(5)]
    given = upload(client, *lines, line("bad", temprature=1), line("r0"), "{", line("other", "/v1/completions"))
    batch = client.batches.create(input_file_id=given.id, endpoint=CHAT, completion_window="24h", metadata={"a": "b"})
    done = ended(client, batch.id)
    assert (done.status, done.metadata) == ("completed", {"a": "b"})
    assert done.request_counts is not None
    assert (done.request_counts.total, done.request_counts.completed, done.request_counts.failed) == (9, 5, 4)
    assert done.output_file_id is not None
    assert done.error_file_id is not None
    found = [json.loads(one) for one in client.files.content(done.output_file_id).text.splitlines()]
    assert {one["custom_id"] for one in found} == {f"r{number}" for number in range(5)}
    assert all(one["response"]["body"]["object"] == "chat.completion" for one in found)
    errors = [json.loads(one) for one in client.files.content(done.error_file_id).text.splitlines()]
    params = {one["response"]["body"]["error"]["param"] for one in errors}
    assert params >= {"temprature", "custom_id", "url"}
    assert batch.id in [one.id for one in client.batches.list().data]


def test_an_output_file_without_room_leaves_room_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def requests(state: Any, batch: Any, source: Any, output: Any, errors: Any) -> None:
        output.write(b"x" * 200)
        errors.write(b"y" * 50)

    async def run() -> None:
        source = tmp_path / "in.jsonl"
        source.write_text("{}\n")
        batch = batches.RunningBatch("b", "", CHAT, StoredFile("f", "", source, "in", "batch", 3), None)
        files = FileStore(100)
        any_path = files.new_path()
        await batches._run(state, batches.BatchStore(files), batch)
        assert (batch.status, batch.output) == ("completed", None)
        assert batch.errors is not None
        assert list(any_path.parent.iterdir()) == [batch.errors.path]
        files.close()

    state = ServerState(FixedModels({"tiny": lambda: pytest.fail("not loaded")}), ServerSettings())
    monkeypatch.setattr(batches, "_requests", requests)
    asyncio.run(run())


def test_an_upload_that_fails_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(source: Any, path: Path) -> None:
        path.write_bytes(b"a")
        raise OSError(28, "No space left on device")

    body = (
        b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nb\r\n--x--\r\n'
    )
    headers = [(b"content-type", b"multipart/form-data; boundary=x"), (b"content-length", str(len(body)).encode())]

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def run() -> None:
        store = FileStore(1000)
        any_path = store.new_path()
        request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
        with pytest.raises(OSError, match="No space"):
            await create(
                ServerState(FixedModels({"tiny": lambda: pytest.fail("not loaded")}), ServerSettings()),
                store,
                request,
                "",
            )
        assert list(any_path.parent.iterdir()) == []
        store.close()

    monkeypatch.setattr("guideway.server.files._copied", full_disk)
    asyncio.run(run())


def test_cancelled_batch(client: openai.OpenAI) -> None:
    given = upload(client, *(line(f"r{number}", max_tokens=900, min_tokens=890) for number in range(200)))
    batch = client.batches.create(input_file_id=given.id, endpoint=CHAT, completion_window="24h")
    client.batches.cancel(batch.id)
    assert ended(client, batch.id).status == "cancelled"


def test_files(client: openai.OpenAI) -> None:
    given = upload(client, "a", "b")
    assert (given.bytes, given.filename, given.purpose) == (3, "in.jsonl", "batch")
    assert client.files.content(given.id).content == b"a\nb"
    assert given.id in [one.id for one in client.files.list().data]
    assert client.files.delete(given.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(given.id)


@pytest.mark.parametrize(("limit", "count"), [("1", 1), ("0000001", 1), ("00000120", 30), ("10000", 30)])
def test_limit_of_a_list(limit: str, count: int) -> None:
    found = page({"limit": limit}, [{"id": str(number)} for number in range(30)])
    assert (len(found["data"]), found["has_more"]) == (count, count < 30)


@pytest.mark.parametrize("limit", ["", "0", "0000", "10001", "00000120000", "9" * 5000, "-1", "1.5", "²", "x"])
def test_refused_limit_of_a_list(limit: str) -> None:
    with pytest.raises(InvalidRequestError) as found:
        page({"limit": limit}, [{"id": "a"}])
    assert found.value.param == "limit"


@pytest.mark.parametrize("length", ["", "-1", "9" * 5000])
def test_refused_length_of_a_file(length: str) -> None:
    request = Request({"type": "http", "headers": [(b"content-length", length.encode())]})
    state = ServerState(FixedModels({"tiny": lambda: pytest.fail("not loaded")}), ServerSettings())
    with pytest.raises(HttpError) as found:
        asyncio.run(create(state, FileStore(1), request, ""))
    assert found.value.status == 413


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"endpoint": [CHAT]}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"extra": 1}, "extra"),
    ],
)
def test_refused_batches(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    given: dict[str, Any] = {"input_file_id": upload(client, "a").id, "endpoint": CHAT, "completion_window": "24h"}
    with pytest.raises(openai.BadRequestError) as found:
        client.batches.create(**given, extra_body=fields)
    assert found.value.param == param
