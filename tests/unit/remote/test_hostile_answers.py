"""Answers of a wrong form, endless and slow ones: each ends in a value or in an error of this package."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import guideway as gw
from guideway.errors import (
    AuthenticationError,
    ConnectionLostError,
    GuidewayError,
    InvalidTextError,
    LimitExceededError,
    OverloadedError,
    RateLimitError,
    RemoteError,
)
from guideway.remote import Prices, Usage
from guideway.remote.adapters import Event as Event_, Request
from guideway.remote.adapters.http import shortened
from guideway.remote.adapters.openai import chat_usage
from guideway.remote.dialogue import Dialogue, FailureSettings
from guideway.remote.repair import repaired
from guideway.testing import Answer, ProviderRequest
from tests.helpers.counts import seeds
from tests.helpers.remote_clients import SECRET, TEXT, Event, model_of, served, sse

WRONG: list[Any] = [None, True, -1, 1e400, "x", [], {}, [[]], [{}], {"a": 1}, "é" * 100, 10**30, -(10**400)]


def mutated(value: Any, draw: random.Random) -> Any:
    """Return a JSON value with one part of another type."""
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        one = todo.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ():
            places.append((one, key))
            todo.append(one[key])
    holder, key = draw.choice(places)
    holder[key] = draw.choice(WRONG)
    return value


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_wrong_types_in_every_field(kind: str, seed: int) -> None:
    """Every answer of a wrong form ends in a value or in an error of this package."""
    from guideway.testing.provider import _events

    draw = random.Random(seed)
    forms: dict[str, Any] = {"chat": "chat", "responses": "responses", "anthropic": "anthropic", "google": "google"}

    def script(request: ProviderRequest) -> Answer:
        answer = Answer(TEXT, output_tokens=5, top_logprobs=[("a", -1.0), ("b", -2)])
        events, final = _events(forms.get(kind, "chat"), answer, [TEXT[:20], TEXT[20:]], "")
        made = []
        for _, data in [*events, *final]:
            head, _, body = data.decode().partition("data: ")
            changed = body.strip()
            if changed.startswith("{") and draw.random() < 0.4:
                changed = json.dumps(mutated(json.loads(changed), draw))
            made.append(f"{head}data: {changed}\n\n")
        return Answer(raw="".join(made).encode())

    with served(script) as provider:
        model = model_of(kind, provider.url, attempts=1)
        given = gw.remote.capabilities("unknown").override(routes=("scored_choice",))
        scored = model_of(kind, provider.url, attempts=1, dialect=given)
        for number in range(60):
            try:
                if number >= 40 and kind == "chat":
                    result = scored.complete("an event", gw.Choice(["a", "b"]))
                else:
                    result = model.complete("an event", Event)
            except GuidewayError as problem:
                shown = str(problem)
            else:
                shown = repr(result)
                assert isinstance(result.value, Event) or result.value in ("a", "b")
                assert all(type(number) is int and number >= 0 for number in vars(result.usage).values())
            assert SECRET not in shown


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(raw=sse('{"a": ' * 5000)), RemoteError),
        (Answer(raw=b"data: \xff\xfe{\n\n"), RemoteError),
        (Answer(raw=b"\x00" * 1000), RemoteError),
        (Answer(raw=sse({"error": {"message": "busy", "type": "overloaded_error"}})), RemoteError),
        (
            Answer(raw=b'{"error": {"message": "no", "code": 429}}', headers={"content-type": "application/json"}),
            RemoteError,
        ),
        (Answer(raw=b"<html>login</html>", headers={"content-type": "text/html"}), RemoteError),
        (Answer(raw=b"not gzip", headers={"content-encoding": "gzip"}), RemoteError),
        (Answer(raw=b"anything", headers={"content-encoding": "zstd"}), LimitExceededError),
        (Answer(raw=gzip.compress(b"data: " + b"0" * 5_000_000)), RemoteError),
        (
            Answer(raw=gzip.compress(b"data: " + b"0" * 5_000_000), headers={"content-encoding": "gzip"}),
            GuidewayError,
        ),
        (Answer(raw=b"data: " + b"x" * 300_000), LimitExceededError),
        (Answer(status=500, message="x" * 100_000), RemoteError),
        (Answer(status=204, raw=b""), RemoteError),
    ],
)
def test_answers_of_a_wrong_form(
    kind: str, answer: Answer, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guideway.remote.adapters.http.MAX_BODY", 200_000)
    monkeypatch.setattr("guideway.remote.adapters.http.MAX_COMPRESSED", 2_000)
    with served(answer) as provider:
        with pytest.raises(expected) as found:
            model_of(kind, provider.url, attempts=1).generate("an event", Event)
        assert len(str(found.value)) < 5000


def test_errors_inside_a_stream_have_their_class() -> None:
    with served() as provider:
        model = model_of("chat", provider.url, attempts=1)
        for error, code in ((OverloadedError, "overloaded_error"), (RateLimitError, 429), (AuthenticationError, 401)):
            provider.script = Answer(raw=sse({"error": {"message": f"no {SECRET}", "code": code}}))
            with pytest.raises(error) as found:
                model.generate("an event", Event)
            assert SECRET not in str(found.value)


@pytest.mark.parametrize("member", ["text", "reasoning", "nothing"])
def test_endless_streams_end(kind: str, member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guideway.remote.received.MAX_EVENTS", 300)
    monkeypatch.setattr("guideway.remote.received.MAX_ANSWER", 100_000)
    text = {"text": "x" * 1000, "reasoning": "", "nothing": ""}[member]
    answer = Answer(text, chunk=1000, endless=True, reasoning="r" * 200_000 if member == "reasoning" else "")
    with served(answer) as provider:
        model = model_of(kind, provider.url)
        with pytest.raises(LimitExceededError, match="more than"):
            model.generate("a text", max_tokens=1)
        assert model.usage.aborted == 1


def assert_linear(seconds: Callable[[int], float], size: int) -> None:
    """Check that work that takes `seconds(size)` takes less than about 30 times as long for a size 8 times as large.

    Quadratic work would take 64 times as long.
    """
    small, large = seconds(size), seconds(8 * size)
    assert large < 30 * small + 0.2, (small, large)


def test_streams_take_linear_time() -> None:
    """The work for each chunk does not depend on what came before."""

    def seconds(before: str, piece: str, after: str, size: int) -> float:
        text = before + piece * size + after
        constraint = gw.JsonSchema({"type": "array", "items": {"type": "string"}})
        request = Request(({"role": "user", "content": "x"},), max_tokens=10_000)
        dialogue = Dialogue(request, constraint, gw.plan("unknown", constraint), FailureSettings(), streaming=True)
        shown = []
        started = time.process_time()
        for at in range(0, len(text), 4):
            assert not dialogue.take([Event_("text", text[at : at + 4])])
            shown.append(dialogue.shown())
        used = time.process_time() - started
        dialogue.take([Event_("finish", "stop")])
        dialogue.ended()
        assert "".join([*shown, dialogue.shown()]) == text.removeprefix("```json\n").removesuffix("\n```").strip()
        return used

    for before, piece, after in (
        ('["', "a", '"]'),
        ("[", " ", '"a"]'),
        ('```json\n["', "`", '"]\n```'),
        (" ", "\n", "[]"),
    ):
        assert_linear(partial(seconds, before, piece, after), 25_000)


@pytest.mark.parametrize(
    "value", ["1000000000", "-5", "nan", "inf", "-inf", "Fri, 31 Dec 99999 23:59:59 GMT", "", "soon"]
)
def test_hostile_retry_after(value: str) -> None:
    with served([Answer(status=429, retry_after=value), Answer(TEXT)]) as provider:
        model = model_of("chat", provider.url)
        started = time.monotonic()
        with pytest.raises(RateLimitError):
            model.generate("an event", Event)
        if value == "1000000000":
            with pytest.raises(RateLimitError, match="max_wait") as found:
                model.generate("an event", Event)
            assert found.value.retry_after is not None
            assert len(provider.requests) == 1
        else:
            assert model.generate("an event", Event).seats == 3
        assert time.monotonic() - started < 5


# -- time


HOSTILE_TEXTS = {
    "comments after a comma": ('{"a": 1,', "/**/", "x"),
    "a word of letters and digits": ("{x ", "a1", ""),
    "commas": ("[", ", ", "x"),
    "names": ("{", "a :", ""),
    "fences": ("", "```a\n", ""),
    "slashes": ("{", "/", ""),
    "quotes": ("", '"', ""),
    "spaces in a fence": ("```json\n", " ", ""),
    "fences in a fence": ("```json\n", "``` ", "x"),
    "brackets": ("", "[", ""),
    "objects": ("", '{"a":', ""),
    "numbers": ("[", "1", "]"),
}


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_texts_are_read_in_linear_time(name: str) -> None:
    before, piece, after = HOSTILE_TEXTS[name]
    reader = gw.plan("unknown", gw.JsonSchema({"type": "array"}))._reader

    def seconds(count: int) -> float:
        text = before + piece * count + after
        started = time.process_time()
        repaired(text)
        with contextlib.suppress(InvalidTextError):
            reader.value(text)
        return time.process_time() - started

    assert_linear(seconds, 10_000)


@pytest.mark.parametrize("name", ["short lines", "one-byte pieces"])
def test_unfinished_events_end(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parser that copies an unfinished event for each line or piece takes no quadratic time."""
    pieces = [b"data\n" * 200_000] if name == "short lines" else [b"data: "] + [b"x"] * 3000
    monkeypatch.setattr("guideway.remote.adapters.http.MAX_WORK", 1 << (33 if name == "short lines" else 20))
    with sending(pieces) as url:
        started = time.process_time()
        with pytest.raises(GuidewayError):
            model_of(kind, url, attempts=1).generate("an event", Event)
        assert time.process_time() - started < 8


def test_events_in_pieces_are_no_hostile_work() -> None:
    text = "x" * 30_000
    answer = Answer(json.dumps([text]), chunk=50, split_bytes=7)
    with served(answer) as provider:
        model = model_of("chat", provider.url, dialect="unknown")
        assert model.generate("x", gw.JsonSchema({"type": "array"}), max_tokens=10_000) == [text]


@contextlib.contextmanager
def sending(pieces: Iterable[bytes], pause: float = 0.0) -> Iterator[str]:
    """Serve one answer whose body is sent in pieces, each with a pause before it. Yields the URL."""
    stopped = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                for piece in pieces:
                    if stopped.wait(pause):
                        return
                    connection.sendall(piece)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.close()
        thread.join(5)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_timeout_ends_slow_answers(kind: str, asynchronous: bool) -> None:
    """Comments keep a connection open: no event arrives, and no pause is as long as the timeout of the client."""
    piece = b"\n" if kind == "google" else b": wait\n\n"  # google-genai reads no comments
    with sending(itertools.repeat(piece), pause=0.02) as url:
        model = model_of(kind, url, asynchronous=asynchronous, timeout=0.3)
        started = time.monotonic()
        with pytest.raises(ConnectionLostError, match="took longer than `timeout`") as found:
            asyncio.run(gw.agenerate(model, "an event", Event)) if asynchronous else model.generate("an event", Event)
        assert time.monotonic() - started < 2
        assert found.value.usage.requests == 1
        assert model.usage.requests == 1


@pytest.mark.parametrize(
    "answer",
    [Answer(TEXT, stall_after=1), Answer(delay=3), Answer("[", chunk=1, endless=True, pause=0.02), Answer("no json")],
)
def test_a_timeout_ends_every_attempt(kind: str, answer: Answer) -> None:
    def script(request: ProviderRequest) -> Answer:
        time.sleep(0.1)
        return answer

    with served(script) as provider:
        model = model_of(kind, provider.url, timeout=0.3, attempts=30, dialect="unknown")
        started = time.monotonic()
        with pytest.raises((ConnectionLostError, InvalidTextError)):
            model.generate("an event", gw.JsonSchema({"type": "array"}))
        assert time.monotonic() - started < 2.5


def test_the_timeout_of_the_client_is_never_longer() -> None:
    openai = pytest.importorskip("openai", reason="the official SDK is tested")
    given = openai.Timeout(5.0, read=0.25)
    made = shortened(given, 1.0)
    assert (made.connect, made.read, made.write, made.pool) == (1.0, 0.25, 1.0, 1.0)
    assert (shortened(None, 2.0), shortened(1.0, 2.0), shortened(3, 2.0)) == (2.0, 1.0, 2.0)
    assert shortened(object(), 2.0) == 2.0
    with pytest.raises(ValueError, match="positive number of seconds"):
        model_of("chat", "http://127.0.0.1:1", timeout=0)


# -- the parts of an answer


def chat_chunk(delta: Any, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice], **more}


def tool_delta(text: str, index: int = 0, identity: str | None = None) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": identity, "function": {"name": "answer", "arguments": text}}]}


def test_only_the_first_call_of_a_tool_is_read() -> None:
    """Models write text before a call, and call a tool twice, although one call was requested."""
    chat = [
        chat_chunk({"role": "assistant", "content": "I will answer now."}),
        chat_chunk(tool_delta(TEXT[:9], identity="a")),
        chat_chunk(tool_delta("{}", 1, "b")),
        chat_chunk(tool_delta(TEXT[9:])),
        chat_chunk(tool_delta('{"title": 1}', 0, "c")),
        chat_chunk({"content": "Done."}, index=1),
        chat_chunk({}, "tool_calls"),
    ]
    events: list[dict[str, Any]] = [{"type": "response.output_text.delta", "delta": "I will answer now."}]
    name = "response.function_call_arguments.delta"
    events += [{"type": name, "output_index": at, "delta": text} for at, text in ((1, TEXT), (2, "{}"))]
    responses = [*events, {"type": "response.completed", "response": {"id": "r"}}]
    anthropic: list[dict[str, Any]] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I will answer now."}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": TEXT}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    ]
    named = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in anthropic)
    for kind, raw in (("chat", sse(*chat)), ("responses", sse(*responses)), ("anthropic", named)):
        given = gw.remote.capabilities("anthropic" if kind == "anthropic" else "openai")
        with served(Answer(raw=raw)) as provider:
            model = model_of(kind, provider.url, attempts=1, dialect=given.override(routes=("strict_tool",)))
            result = model.complete("an event", Event)
            assert result.value == Event(title="Talk", seats=3)
            assert "".join(model.stream("an event", Event)) == result.text


def test_text_is_read_if_the_model_calls_no_tool() -> None:
    given = gw.remote.capabilities("openai").override(routes=("strict_tool",))
    raw = sse(chat_chunk({"content": TEXT[:9]}), chat_chunk({"content": TEXT[9:]}), chat_chunk({}, "stop"))
    with served(Answer(raw=raw)) as provider:
        model = model_of("chat", provider.url, attempts=1, dialect=given)
        assert model.generate("an event", Event).seats == 3
        assert "".join(model.stream("an event", Event))


@pytest.mark.parametrize(
    ("kind_", "events", "error"),
    [
        ("responses", [{"type": "error", "code": "rate_limit_exceeded", "message": f"no {SECRET}"}], RateLimitError),
        (
            "responses",
            [
                {
                    "type": "response.failed",
                    "response": {
                        "id": "r",
                        "error": {"code": "server_error", "message": "broken"},
                        "usage": {"input_tokens": 5, "output_tokens": 2},
                    },
                }
            ],
            RemoteError,
        ),
        ("responses", [{"type": "response.failed", "response": {"id": "r"}}], RemoteError),
        ("chat", [chat_chunk({"content": "{"}), chat_chunk({}, "error")], RemoteError),
        ("chat", [{"error": {"message": "x", "code": 10**4000}}], RemoteError),
        ("chat", [{"error": {"message": "x", "code": -1, "type": {"a": [[]]}}}], RemoteError),
        ("chat", [{"error": {"message": {"a": "b"}, "code": True}}], RemoteError),
        ("chat", [{"error": "busy"}], RemoteError),
    ],
)
def test_errors_in_answers_with_status_200(kind_: str, events: list[Any], error: type[Exception]) -> None:
    with served(Answer(raw=sse(*events))) as provider:
        model = model_of(kind_, provider.url, attempts=3)
        with pytest.raises(error) as found:
            model.generate("an event", Event)
        assert type(found.value) in (error, ConnectionLostError)
        assert len(str(found.value)) < 2500
        assert SECRET not in str(found.value)
        if "usage" in json.dumps(events):
            assert (model.usage.input, model.usage.output) == (5, 2)


# -- tokens


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 32, "completion_tokens": 9}, (32, 0, 9, 0)),
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            (32, 0, 103, 94),  # xAI counts reasoning besides the tokens of the completion
        ),
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 103,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            (32, 0, 103, 94),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 10**11},
                "completion_tokens_details": {"reasoning_tokens": 10**11},
            },
            (5, 5, 7, 7),
        ),
        ({"prompt_tokens": -5, "completion_tokens": 10**13}, (0, 0, 0, 0)),
        ({"prompt_tokens": True, "completion_tokens": "7"}, (0, 0, 0, 0)),
    ],
)
def test_usage_of_chat_completions(usage: Any, expected: tuple[int, ...]) -> None:
    found = chat_usage(usage)
    assert (found.input, found.cached, found.output, found.reasoning) == expected
    assert Prices(1.0, 2.0, 0.1).cost(found) >= 0


def test_usage_of_calls_that_end_early(kind: str) -> None:
    answer = Answer('["' + "x" * 4000, chunk=4, pause=0.002)
    with served(answer) as provider:
        model = model_of(kind, provider.url, dialect="unknown")
        stream = model.stream("a text", gw.JsonSchema({"type": "array"}))
        next(stream)
        stream.close()
        assert (model.usage.requests, model.usage.aborted) == (1, 1)


def test_usage_of_many_threads() -> None:
    model = model_of("chat", "http://127.0.0.1:1")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: [model._count(Usage(1)) for _ in range(500)], range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert model.usage.input == 4000
