"""`Provider`: a local HTTP server that answers in the wire formats of API providers, and fails where the test says so.

    with Provider(Answer('{"a": 1}')) as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="-", max_retries=0)

It has the APIs chat completions and Responses of OpenAI (also for Mistral and for servers with the same API), Messages
of Anthropic and generateContent of Gemini, with and without streams. The official SDKs can use it. It runs in one
thread.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from guideway.constraints import Choice, Constraint, Gbnf, JsonSchema, Lark, Regex, from_wire
from guideway.errors import GuidewayError
from guideway.frontends.json_schema.report import draw_examples
from guideway.integrations._common.structural_tags import structural_tag

__all__ = ["Answer", "Provider", "ProviderRequest"]

MAX_BODY = 64 * 1024 * 1024
_REASONS = {
    200: "OK",
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    429: "Too Many Requests",
}


@dataclass(frozen=True)
class Answer:
    """What the provider answers, and how it fails.

    Attributes:
        text: The text. None: a random text that fits the constraint of the request; "ok" without a constraint.
        chunk: The number of characters in each chunk of a stream.
        finish: The finish reason: "stop", "length" or "refusal". "": the stream ends without one.
        reasoning: Reasoning text before the answer, in streams. The API Responses does not send it.
        status: HTTP status. If it is not 200, `message` is sent as an error.
        message: The message of an error.
        retry_after: Value of the header Retry-After; None: there is no such header.
        delay: Seconds before the first byte.
        pause: Seconds between two chunks.
        stall_after: Number of text chunks. Instead of the next one, nothing more is sent, while the connection stays
            open; None: never.
        drop_after: Number of text chunks. Instead of the next one, the connection is closed abruptly; None: never.
        split_bytes: The stream is sent in pieces of this number of bytes, which can divide characters; 0: whole events.
        usage: "end": the numbers of tokens are reported at the end. "never": they are not reported, except in answers
            of Anthropic and Gemini without a stream, which always contain them.
        input_tokens: Reported number of tokens of the prompt.
        output_tokens: Reported number of tokens of the answer; None: the number of chunks.
        seed: Seed of the random text if `text` is None.
        headers: Further headers, for example `{"location": url}` with status 307.
        raw: The body as bytes, instead of a body in the wire format.
        echo: Whether the answer begins with the text that the request continues, as with llama-server.
        endless: Whether the text is repeated until the client closes the stream.
        top_logprobs: The most probable tokens at the first position, each with its natural log-probability (chat
            completions).
        prompt_logprobs: The tokens of the prompt, each with its log-probability (chat completions without a stream).
            That of the first token is not sent.
    """

    text: str | None = None
    chunk: int = 8
    finish: Literal["stop", "length", "refusal", ""] = "stop"
    reasoning: str = ""
    status: int = 200
    message: str = "the request failed"
    retry_after: str | None = None
    delay: float = 0.0
    pause: float = 0.0
    stall_after: int | None = None
    drop_after: int | None = None
    split_bytes: int = 0
    usage: Literal["end", "never"] = "end"
    input_tokens: int = 7
    output_tokens: int | None = None
    seed: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    echo: bool = False
    endless: bool = False
    top_logprobs: Sequence[tuple[str, float]] = ()
    prompt_logprobs: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class ProviderRequest:
    """A request that the provider received.

    Attributes:
        path: The path of the URL.
        headers: The headers, with names in lower case.
        body: The JSON body.
        number: The number of requests before this one.
    """

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    number: int

    @property
    def form(self) -> Literal["chat", "responses", "anthropic", "google"]:
        """The wire format."""
        if self.path.endswith("/responses"):
            return "responses"
        if self.path.endswith("/messages"):
            return "anthropic"
        return "google" if "enerateContent" in self.path else "chat"

    @property
    def streams(self) -> bool:
        """Whether a stream is requested."""
        return "streamGenerateContent" in self.path or bool(self.body.get("stream"))

    def messages(self) -> list[tuple[str, str]]:
        """Return the role and the text of each message."""
        if self.form == "google":
            parts = [(one.get("role", "user"), one.get("parts", [])) for one in self.body.get("contents", [])]
            return [(role, "".join(part.get("text", "") for part in inner)) for role, inner in parts]
        given = self.body.get("messages") or self.body.get("input") or []
        if isinstance(given, str):
            return [("user", given)]
        return [(one.get("role", ""), _content(one.get("content"))) for one in given]

    def constraint(self) -> Constraint[Any] | None:
        """Return the constraint that the body has in one of the fields that are read here; None: it has none there.

        A constraint of a tool takes precedence over a schema of the answer.
        """
        body = self.body
        structured = body.get("structured_outputs") or {}
        grammar = body.get("grammar") or body.get("ebnf") or structured.get("grammar")
        form = body.get("response_format") or {}
        if form.get("type") == "grammar":
            grammar = form["grammar"]
        if grammar:
            return Gbnf(grammar)
        if "constraint" in body:
            return from_wire(body["constraint"])
        if form.get("type") == "structural_tag":
            return structural_tag(form)
        if structured.get("structural_tag"):
            return structural_tag(json.loads(structured["structural_tag"]))
        if structured.get("choice"):
            return Choice(structured["choice"])
        if pattern := (structured.get("regex") or body.get("regex")):
            return Regex(pattern)
        if form.get("type") == "regex":
            return Regex(form["value"])
        for tool in body.get("tools") or ():
            if "input_schema" in tool:
                return JsonSchema(tool["input_schema"], unknown_keywords="ignore")
            if tool.get("type") == "function":
                return JsonSchema(tool.get("function", tool)["parameters"])
            inner = tool.get("custom", tool)
            grammar = (inner.get("format") or {}).get("grammar") or inner.get("format")
            if grammar and grammar.get("syntax") == "lark":
                return Lark(grammar["definition"])
        schema = (form.get("json_schema") or {}).get("schema") or (
            form["value"] if form.get("type") == "json" else None
        )
        schema = schema or (form.get("json_schema") or {}).get("schema_definition")
        schema = schema or ((body.get("text") or {}).get("format") or {}).get("schema")
        schema = schema or ((body.get("output_config") or {}).get("format") or {}).get("schema")
        config = body.get("generationConfig") or {}
        schema = schema or config.get("responseJsonSchema") or config.get("response_json_schema")
        return None if schema is None else JsonSchema(schema, unknown_keywords="ignore")

    def tool(self) -> str:
        """Return `tool_choice["type"]`, such as "function" or "custom"; "" if `tool_choice` is not an object."""
        choice = self.body.get("tool_choice")
        return str(choice.get("type", "")) if isinstance(choice, Mapping) else ""

    def prefill(self) -> str:
        """Return the text that the answer continues: the last message, with `continue_final_message` or `prefix`.

        Returns "" for other requests.
        """
        if not self.body.get("continue_final_message"):
            last = (self.body.get("messages") or [{}])[-1]
            return _content(last.get("content")) if last.get("prefix") else ""
        return self.messages()[-1][1]


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if isinstance(part, Mapping))


Script = Answer | Iterable[Answer] | Callable[[ProviderRequest], Answer]


class Provider:
    """A local HTTP server that imitates the APIs of model providers. It runs while a `with` block runs.

    Args:
        script: One answer for every request; a list of answers, which are given in order and of which the last is
            repeated; or a function that returns the answer to a request.

    Attributes:
        url: The URL without a path.
        requests: The requests so far.
        reported: For each request whose answer reported usage, by `ProviderRequest.number`: the reported numbers of
            tokens of the prompt and of the answer.
        input_tokens: The sum of the reported tokens of all prompts.
        output_tokens: The sum of the reported tokens of all answers.
        aborted: The times (`time.monotonic`) at which a client closed a stream before its end.
    """

    def __init__(self, script: Script = Answer()) -> None:
        self.script = script
        self._left: Iterator[Answer] | None = None
        self._last = Answer()
        self.requests: list[ProviderRequest] = []
        self.input_tokens = self.output_tokens = 0
        self.reported: dict[int, tuple[int, int]] = {}
        self.aborted: list[float] = []
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def __enter__(self) -> Provider:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="provider", daemon=True)
        self._thread.start()
        ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, backlog=2048)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await self._read(reader)) is not None:
                if not await self._answer(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> ProviderRequest | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name
        }
        size = int(headers.get("content-length", "0"))
        if headers.get("transfer-encoding", "").lower() == "chunked":
            data = b""
            while (count := int((await reader.readline()).strip() or b"0", 16)) > 0 and len(data) < MAX_BODY:
                data += await reader.readexactly(count)
                await reader.readline()
            await reader.readline()
        else:
            data = await reader.readexactly(min(size, MAX_BODY))
        body = json.loads(data) if data else {}
        with self._lock:
            request = ProviderRequest(first.split(" ")[1].partition("?")[0], headers, body, len(self.requests))
            self.requests.append(request)
        return request

    def _scripted(self, request: ProviderRequest) -> Answer:
        script = self.script
        if isinstance(script, Answer):
            return script
        if callable(script):
            return script(request)
        if self._left is None:
            self._left = iter(script)
        self._last = next(self._left, self._last)
        return self._last

    async def _answer(
        self, request: ProviderRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request. Returns whether the connection remains open for another one."""
        answer = self._scripted(request)
        if answer.text is None and answer.status == 200:
            answer = replace(answer, text=_fitting_text(request, answer.seed))
        if answer.echo:
            answer = replace(answer, text=request.prefill() + (answer.text or ""))
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.raw is not None:
            kind = {} if "content-type" in answer.headers else {"content-type": "text/event-stream"}
            writer.write(_head(answer, {**kind, "content-length": str(len(answer.raw))}) + answer.raw)
            await writer.drain()
            return True
        if answer.status != 200:
            data = json.dumps(_error(request.form, answer)).encode()
            writer.write(_head(answer, {"content-type": "application/json", "content-length": str(len(data))}) + data)
            await writer.drain()
            return True
        text = answer.text or ""
        pieces = [text[at : at + answer.chunk] for at in range(0, len(text), answer.chunk)] or [""]
        output = len(pieces) if answer.output_tokens is None else answer.output_tokens
        answer = replace(answer, output_tokens=output)
        if not request.streams:
            data = json.dumps(_whole(request.form, answer), ensure_ascii=False).encode()
            self._count(request, answer, output)
            writer.write(_head(answer, {"content-type": "application/json", "content-length": str(len(data))}) + data)
            await writer.drain()
            return True
        writer.write(_head(answer, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        events, final = _events(request.form, answer, pieces, request.tool())
        text_events = [event for event in events if event[0]]
        endless = itertools.chain(events, itertools.cycle(text_events)) if answer.endless else [*events, *final]
        for number, (is_text, data) in enumerate(endless):
            if number == len(events):
                self._count(request, answer, output)  # before the client can receive the end of the stream
            sent = 0 if answer.endless else sum(one for one, _ in events[:number])
            if is_text and answer.drop_after is not None and sent >= answer.drop_after:
                writer.transport.abort()
                return False
            if is_text and answer.stall_after is not None and sent >= answer.stall_after:
                await self._until_closed(reader)
                return False
            if answer.pause:
                await asyncio.sleep(answer.pause)
            if writer.is_closing() or reader.at_eof():
                self.aborted.append(time.monotonic())
                return False
            for piece in _pieces(data, answer.split_bytes):
                if writer.transport.is_closing():
                    break
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                if answer.split_bytes:
                    await asyncio.sleep(0)
            try:
                await writer.drain()
            except ConnectionError:
                self.aborted.append(time.monotonic())
                return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _until_closed(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):  # the connection is reset if the client closes it with unread data
            await reader.read(1)
        self.aborted.append(time.monotonic())

    def _count(self, request: ProviderRequest, answer: Answer, output: int) -> None:
        if answer.usage == "end":
            self.reported[request.number] = (answer.input_tokens, output)
            self.input_tokens += answer.input_tokens
            self.output_tokens += output


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [data]


def _head(answer: Answer, headers: dict[str, str]) -> bytes:
    if answer.retry_after is not None:
        headers["retry-after"] = answer.retry_after
    headers |= answer.headers
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Error')}", "x-request-id: request-1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _fitting_text(request: ProviderRequest, seed: int) -> str:
    """Return a random text that fits the constraint of a request.

    "ok" if the request has no constraint; a description of the error if its constraint cannot be read. The text itself
    fits the constraint, also if the request has a prefill: real endpoints apply a constraint to the new text only, too.
    """
    try:
        constraint = request.constraint()
        if constraint is None:
            return "ok"
        found = draw_examples(constraint.grammar(), 1 + seed % 3, seed)[-1]
    except GuidewayError as problem:
        return f"the provider cannot read the constraint: {problem}"
    return found


def _error(form: str, answer: Answer) -> dict[str, Any]:
    if form == "google":
        return {"error": {"code": answer.status, "message": answer.message, "status": "ERROR"}}
    kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(
        answer.status, "api_error"
    )
    error = {"type": kind, "message": answer.message, "code": None, "param": None}
    return {"type": "error", "error": error} if form == "anthropic" else {"error": error}


_FINISH = {
    "chat": {"stop": "stop", "length": "length", "refusal": "content_filter"},
    "anthropic": {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"},
    "google": {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"},
}


def _usage(form: str, answer: Answer) -> dict[str, Any]:
    sent, made = answer.input_tokens, answer.output_tokens or 0
    if form == "chat":
        return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
    if form == "google":
        return {"promptTokenCount": sent, "candidatesTokenCount": made, "totalTokenCount": sent + made}
    found: dict[str, Any] = {"input_tokens": sent, "output_tokens": made}
    if form == "responses":
        found |= {"total_tokens": sent + made, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
        found |= {"output_tokens_details": {"reasoning_tokens": 0}}
    return found


def _sse(data: object, event: str = "") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _response(answer: Answer, text: str, status: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    made: dict[str, Any] = {"id": "r1", "object": "response", "created_at": 0, "model": "m", "status": status}
    made |= {"output": [message] if status != "in_progress" else [], "parallel_tool_calls": False, "tools": []}
    made |= {"tool_choice": "auto", "error": None, "incomplete_details": None, "instructions": None, "metadata": {}}
    if status != "in_progress" and answer.usage == "end":
        made["usage"] = _usage("responses", answer)
    if status == "incomplete":
        reasons = {"length": "max_output_tokens", "refusal": "content_filter"}
        made["incomplete_details"] = {"reason": reasons[answer.finish]}
    return made


def _whole(form: str, answer: Answer) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    text = answer.text or ""
    if form == "responses":
        return _response(answer, text, "completed" if answer.finish in ("stop", "") else "incomplete")
    finish = _FINISH[form].get(answer.finish)
    if form == "anthropic":
        content = [{"type": "text", "text": text}]
        made: dict[str, Any] = {"id": "a1", "type": "message", "role": "assistant", "model": "m", "content": content}
        return {**made, "stop_reason": finish, "stop_sequence": None, "usage": _usage(form, answer)}
    if form == "google":
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": finish, "index": 0}
        return {"candidates": [candidate], "usageMetadata": _usage(form, answer), "responseId": "g1"}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": _logprobs(answer)}
    made = {"id": "c1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    if answer.prompt_logprobs:
        tokens = [
            {str(number): {"logprob": logprob, "rank": 1, "decoded_token": token}}
            for number, (token, logprob) in enumerate(answer.prompt_logprobs)
        ]
        made["prompt_logprobs"] = [None, *tokens[1:]]
    return made | ({"usage": _usage(form, answer)} if answer.usage == "end" else {})


def _logprobs(answer: Answer) -> dict[str, Any] | None:
    top = [
        {"token": token, "logprob": logprob, "bytes": list(token.encode())} for token, logprob in answer.top_logprobs
    ]
    return {"content": [{**top[0], "top_logprobs": top}]} if top else None


Events = list[tuple[bool, bytes]]


def _events(form: str, answer: Answer, pieces: list[str], tool: str) -> tuple[Events, Events]:
    """Return the events of a stream up to the end of the text, and the events after the text.

    Each event is a pair: whether it contains text, and its bytes. `tool`: if the text is the input of a tool, the type
    of the tool; "": the text is the answer.
    """
    if form in ("chat", "responses"):
        return (_chat if form == "chat" else _responses)(answer, pieces, tool)
    return _anthropic(answer, pieces, tool) if form == "anthropic" else _google(answer, pieces)


_TOOL_MEMBERS = {"function": ("function", "arguments"), "custom": ("custom", "input")}


def _chat(answer: Answer, pieces: list[str], tool: str) -> tuple[Events, Events]:
    def chunk(
        delta: dict[str, Any], finish: str | None = None, logprobs: dict[str, Any] | None = None, **more: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
        base = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        return _sse(base | more)

    events = [(False, chunk({"role": "assistant", "content": ""}))]
    if answer.top_logprobs:
        events.append((False, chunk({}, logprobs=_logprobs(answer))))
    if answer.reasoning:
        events.append((False, chunk({"reasoning_content": answer.reasoning})))
    member = "refusal" if answer.finish == "refusal" else "content"
    if tool in _TOOL_MEMBERS and member == "content":
        name, text = _TOOL_MEMBERS[tool]
        call = {"index": 0, "id": "call_1", "type": tool, name: {"name": "answer", text: ""}}
        events.append((False, chunk({"tool_calls": [call]})))
        events += [(True, chunk({"tool_calls": [{"index": 0, name: {text: piece}}]})) for piece in pieces]
    else:
        events += [(True, chunk({member: piece})) for piece in pieces]
    final: Events = []
    if answer.finish:
        final.append((False, chunk({}, _FINISH["chat"][answer.finish])))
        if answer.usage == "end":
            base = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []}
            final.append((False, _sse(base | {"usage": _usage("chat", answer)})))
        final.append((False, b"data: [DONE]\n\n"))
    return events, final


def _responses(answer: Answer, pieces: list[str], tool: str) -> tuple[Events, Events]:
    number = iter(range(10**9))

    def event(kind: str, **members: Any) -> bytes:
        return _sse({"type": kind, "sequence_number": next(number), **members}, kind)

    where: dict[str, Any] = {"item_id": "m", "output_index": 0, "content_index": 0}
    events = [(False, event("response.created", response=_response(answer, "", "in_progress")))]
    kind = "response.refusal.delta" if answer.finish == "refusal" else "response.output_text.delta"
    more: dict[str, Any] = {} if answer.finish == "refusal" else {"logprobs": []}
    if tool in _TOOL_MEMBERS and answer.finish != "refusal":
        kind = f"response.{'function_call_arguments' if tool == 'function' else 'custom_tool_call_input'}.delta"
        more, where = {}, {"item_id": "m", "output_index": 0}
    events += [(True, event(kind, delta=piece, **more, **where)) for piece in pieces]
    final: Events = []
    if answer.finish:
        kind = "completed" if answer.finish == "stop" else "incomplete"
        final.append((False, event(f"response.{kind}", response=_response(answer, answer.text or "", kind))))
    return events, final


def _anthropic(answer: Answer, pieces: list[str], tool: str) -> tuple[Events, Events]:
    def event(kind: str, **members: Any) -> bytes:
        return _sse({"type": kind, **members}, kind)

    message = {**_whole("anthropic", answer), "content": [], "stop_reason": None}
    message["usage"] = {"input_tokens": answer.input_tokens if answer.usage == "end" else 0, "output_tokens": 0}
    events = [(False, event("message_start", message=message))]
    at = 0
    if answer.reasoning:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        delta = {"type": "thinking_delta", "thinking": answer.reasoning}
        events.append((False, event("content_block_start", index=0, content_block=block)))
        events.append((False, event("content_block_delta", index=0, delta=delta)))
        events.append((False, event("content_block_stop", index=0)))
        at = 1
    as_tool = tool == "tool" and answer.finish != "refusal"
    content: dict[str, Any] = {"type": "text", "text": ""}
    if as_tool:
        content = {"type": "tool_use", "id": "t1", "name": "answer", "input": {}}
    kind, member = ("input_json_delta", "partial_json") if as_tool else ("text_delta", "text")
    events.append((False, event("content_block_start", index=at, content_block=content)))
    for piece in pieces:
        events.append((True, event("content_block_delta", index=at, delta={"type": kind, member: piece})))
    final: Events = []
    if answer.finish:
        final.append((False, event("content_block_stop", index=at)))
        reason = "tool_use" if as_tool and answer.finish == "stop" else _FINISH["anthropic"][answer.finish]
        stop: dict[str, Any] = {"stop_reason": reason, "stop_sequence": None}
        made = answer.output_tokens if answer.usage == "end" else 0
        final.append((False, event("message_delta", delta=stop, usage={"output_tokens": made})))
        final.append((False, event("message_stop")))
    return events, final


def _google(answer: Answer, pieces: list[str]) -> tuple[Events, Events]:
    def chunk(parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "responseId": "g1"}

    events: Events = []
    if answer.reasoning:
        events.append((False, _sse(chunk([{"text": answer.reasoning, "thought": True}]))))
    events += [(True, _sse(chunk([{"text": piece}]))) for piece in pieces]
    if not answer.finish:
        return events, []
    last = chunk([{"text": ""}], _FINISH["google"][answer.finish])
    if answer.usage == "end":
        last["usageMetadata"] = _usage("google", answer)
    return events, [(False, _sse(last))]
