"""Processes that translate large constraints: programs, errors, restarts."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from guideway.constraints import JsonSchema, programs
from guideway.generation import Model
from guideway.server.constraint_workers import LEAST_BYTES, ConstraintWorkers, _Worker
from guideway.server.errors import HttpError
from tests.helpers.serving import LiveServer, live_server

CHAT = "/v1/chat/completions"
PLACE = "response_format.json_schema.schema"


def body(name: str, **more: Any) -> dict[str, Any]:
    """Return a request whose schema is large, and differs with the name."""
    values = {f"{name}{number}": {"type": "integer", "minimum": number} for number in range(200)}
    schema = {"type": "object", "properties": values, "required": [f"{name}7"], "additionalProperties": False, **more}
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": "a"}],
        "max_tokens": 100,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
    }


@pytest.fixture(scope="module")
def live(tiny: Model) -> Iterator[LiveServer]:
    """A server without patient processes and without a second try: a busy machine may answer after `PATIENT_SECONDS`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Worker, "start", partial(_Worker.start, is_patient=False))
        patch.setattr("guideway.server.constraint_workers.PATIENT_SECONDS", 60.0)
        with live_server({"tiny": tiny}, constraint_workers=1) as made:
            yield made


def post(live: LiveServer, given: dict[str, Any]) -> httpx.Response:
    return httpx.post(live.url + CHAT, json=given, timeout=60)


def test_the_server_reads_the_program(live: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def load(*args: Any) -> bytes | None:
        program = load_program(*args)
        found.append(program is not None)
        return program

    load_program = programs.load

    def lower(self: JsonSchema) -> None:
        raise AssertionError("the server lowers the constraint again")

    monkeypatch.setattr(programs, "load", load)
    monkeypatch.setattr(JsonSchema, "grammar", lower)
    answer = post(live, body("a"))
    assert answer.status_code == 200
    assert '"a7"' in answer.json()["choices"][0]["message"]["content"]
    assert found[0]


def test_errors_have_their_place(live: LiveServer) -> None:
    for _ in range(2):
        answer = post(live, body("b", properties={"c" * 5000: {"type": "other"}}))
        error = answer.json()["error"]
        assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
        assert error["param"].startswith(PLACE)


def test_a_process_that_ended_is_replaced(live: LiveServer) -> None:
    assert post(live, body("d")).status_code == 200
    (worker,) = live.state.workers._free
    os.kill(worker._process.pid, signal.SIGKILL)
    assert post(live, body("e")).json()["error"]["code"] == "worker_ended"
    assert post(live, body("e")).status_code == 200


def test_a_constraint_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guideway.server.constraint_workers.MOST_SECONDS", 0.0)

    async def run() -> None:
        workers = ConstraintWorkers(1)
        try:
            with pytest.raises(HttpError, match="seconds"):
                await workers.translate(CHAT, body("f"))
        finally:
            await workers.close()

    asyncio.run(run())


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="the operating system has no idle scheduling")
def test_a_patient_process_has_a_low_priority() -> None:
    async def run() -> None:
        worker = await _Worker.start(is_patient=True)  # `live` changes the default
        try:
            until, pid = time.monotonic() + 60, worker._process.pid
            # Where idle scheduling is not permitted, the process gets another low priority.
            while os.sched_getscheduler(pid) != os.SCHED_IDLE and os.getpriority(os.PRIO_PROCESS, pid) < 10:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
        finally:
            await worker.close()

    asyncio.run(run())


def test_a_translation_begins_again_with_a_higher_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guideway.server.constraint_workers.PATIENT_SECONDS", 0.0)
    started: list[bool] = []
    start = _Worker.start

    async def counted(*, is_patient: bool = True) -> _Worker:
        started.append(is_patient)
        return await start(is_patient=is_patient)

    monkeypatch.setattr(_Worker, "start", counted)

    async def run() -> None:
        workers = ConstraintWorkers(1)
        await workers.translate(CHAT, body("h"))
        assert started == [True, False]
        assert workers._free == []  # the next translation begins patiently
        await workers.translate(CHAT, body("h"))
        assert started == [True, False]

    asyncio.run(run())


def test_small_constraints_stay_in_the_server() -> None:
    async def run() -> None:
        workers = ConstraintWorkers(1)
        await workers.translate(CHAT, {"regex": "a" * 100})
        await workers.translate(CHAT, {"messages": "a" * 100_000})
        await workers.translate(CHAT, body("i"), size=LEAST_BYTES - 1)
        assert workers._free == []

    asyncio.run(run())
