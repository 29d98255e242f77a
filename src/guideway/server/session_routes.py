"""`/guideway/sessions`: sessions that stay open between requests.

Operations: feed, infer, rewind, set_text, constrain, fork, save.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway import background
from guideway.arguments import short_repr
from guideway.batch.fields import boolean_field, integer_field, invalid_field, string_field
from guideway.batch.requests import CONSTRAINTS, unknown_field
from guideway.errors import InvalidRequestError
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.server.bodies import read_json
from guideway.server.errors import HttpError
from guideway.server.generating import model_name
from guideway.server.inspection import constraint_of, local_model, prompt_of
from guideway.server.state import ServerState
from guideway.sessions import Session

__all__ = ["OPERATIONS", "SessionStore", "create", "delete", "operate", "retrieve", "save"]

_CHECK_SECONDS = 30.0
"""The time between two searches for idle sessions."""

_SAMPLING = ("temperature", "top_k", "top_p", "min_p")


@dataclass
class OpenSession:
    """An open session.

    Attributes:
        id: The identifier for clients.
        key: The name of the API key that it belongs to.
        model: The name of its model.
        session: The session.
        owner: The model that made the session.
        lock: Held by the operation that uses the session.
        operation: The task of this operation; None: there is none, or it waits for the model.
        used: The time of the last use (`time.monotonic`).
    """

    id: str
    key: str
    model: str
    session: Session
    owner: Model
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    operation: asyncio.Task[Any] | None = None
    used: float = field(default_factory=time.monotonic)


class SessionStore:
    """The open sessions of a server.

    Args:
        most: The maximum number of open sessions of one API key.
        idle_seconds: A session that was not used for this time is closed.
    """

    def __init__(self, most: int, idle_seconds: float) -> None:
        self._most, self._idle_seconds = most, idle_seconds
        self._sessions: dict[str, OpenSession] = {}

    def add(self, key: str, model: str, session: Session, owner: Model) -> OpenSession:
        """Add a session of a model, after idle sessions were closed.

        Raises:
            HttpError: The API key has too many sessions (429). The new session is closed.
        """
        self.close_idle()
        if sum(one.key == key for one in self._sessions.values()) >= self._most:
            session.close()
            raise HttpError(
                429, f"{self._most} sessions are open; close one", kind="rate_limit_error", code="too_many_sessions"
            )
        found = OpenSession(f"sess_{uuid.uuid4().hex}", key, model, session, owner)
        self._sessions[found.id] = found
        return found

    def get(self, key: str, name: str) -> OpenSession:
        """Return a session by its id, and mark it as used now.

        Raises `HttpError` (404) if the key `key` has no such session.
        """
        found = self._sessions.get(name)
        if found is None or found.key != key:
            raise HttpError(404, f"there is no session {short_repr(name)}; it was closed", code="not_found", param="id")
        found.used = time.monotonic()
        return found

    def remove(self, found: OpenSession) -> None:
        """Close a session."""
        self._sessions.pop(found.id, None)
        found.session.close()

    def close_idle(self) -> None:
        """Close the sessions that were not used for `idle_seconds`, and those whose model was unloaded.

        A session that a request uses now stays open.
        """
        oldest = time.monotonic() - self._idle_seconds
        for one in list(self._sessions.values()):
            if (one.used < oldest or one.owner.is_closed) and not one.lock.locked():
                self.remove(one)

    async def close_idle_regularly(self) -> None:
        """Close idle sessions at regular intervals, until the task is cancelled.

        The interval is the idle time after which a session is closed, but at most `_CHECK_SECONDS`.
        """
        while True:
            await asyncio.sleep(min(_CHECK_SECONDS, self._idle_seconds))
            self.close_idle()

    def close(self) -> None:
        """Close all sessions. Operations that run are cancelled."""
        for one in list(self._sessions.values()):
            if one.operation is not None:
                one.operation.cancel()
            self.remove(one)


def _shown(found: OpenSession, **more: Any) -> dict[str, Any]:
    session = found.session
    return {
        "id": found.id,
        "object": "guideway.session",
        "model": found.model,
        "tokens": len(session),
        "text": session.text,
        "max_rewind": session.max_rewind,
        "context_size": session.context_size,
        "is_finished": session.matcher is not None and session.is_finished,
        **more,
    }


async def create(state: ServerState, store: SessionStore, request: Request, key: str) -> Response:
    """`POST /guideway/sessions`: open a session. Optional: a prompt, and a constraint on the text after it."""
    body = await read_json(request.scope, request.receive, state.settings)
    name = model_name(body)
    with state.admitted(key):
        async with state.models.lease(name) as model:
            own = local_model(model)
            session = await background.run(_opened, own, body)
            return JSONResponse(_shown(store.add(key, name or state.models.cards()[0].name, session, own)))


def _opened(model: Model, body: dict[str, Any]) -> Session:
    source = constraint_of(body, "prompt", "messages", "seed", *_SAMPLING)
    seed = integer_field(-(2**63))(body.get("seed", 0), "seed")
    given = {name: body[name] for name in _SAMPLING if body.get(name) is not None}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise invalid_field(name, "a number", value)
    try:
        sampler = Sampler(**given) if given else None
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(str(error), next(iter(given)), "invalid_value") from None
    session = model.session(seed=seed, sampler=sampler)
    try:
        if body.get("prompt") is not None or body.get("messages") is not None:
            session.feed(prompt_of(model, body))
        if source is not None:
            session.constrain(source)
    except BaseException:
        session.close()
        raise
    return session


@asynccontextmanager
async def _leased(state: ServerState, store: SessionStore, found: OpenSession) -> AsyncIterator[None]:
    """Keep the model of a session loaded in the block.

    If the model was unloaded since the session was opened, the session is closed, and the model is not loaded again.

    Raises:
        HttpError: The session was closed for this reason (404), or the model cannot be loaded now (503; see
            `PooledModels.lease`).
    """
    async with AsyncExitStack() as stack:
        is_unloaded = found.owner.is_closed
        if not is_unloaded:
            model = await stack.enter_async_context(state.models.lease(found.model))
            is_unloaded = local_model(model) is not found.owner
        if is_unloaded:
            store.remove(found)
            raise HttpError(
                404, f"the session {found.id} was closed: its model was unloaded", code="not_found", param="id"
            )
        yield


async def _alone(
    state: ServerState,
    store: SessionStore,
    found: OpenSession,
    key: str,
    work: Callable[[], Coroutine[Any, Any, Response]],
) -> Response:
    """Return the response of an operation. While it runs, no other uses the session, and its model stays loaded.

    If the request is cancelled, an operation that has begun continues, because its thread does.

    Raises:
        HttpError: The session was closed while this request waited (404), the server has too many requests (429), or
            the model cannot be loaded now (503; see `PooledModels.lease`).
    """

    async def run() -> Response:
        async with found.lock, _leased(state, store, found):
            store.get(key, found.id)  # it was perhaps closed while this request waited for the lock
            found.operation = asyncio.current_task()
            try:
                return await work()
            finally:
                found.operation = None

    with state.admitted(key):
        running = asyncio.ensure_future(run())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if found.operation is not running:
                running.cancel()
            running.add_done_callback(_ignore)
            raise


def _ignore(running: asyncio.Task[Response]) -> None:
    if not running.cancelled():
        running.exception()  # an error that is not read is logged


async def retrieve(state: ServerState, store: SessionStore, request: Request, key: str) -> Response:
    """`GET /guideway/sessions/{id}`: the session after the operation that runs now, if any."""
    name = request.path_params["name"]
    # The lock is also held by an operation that waits for its model, so this request does not wait for the lock.
    while (running := store.get(key, name).operation) is not None:
        await asyncio.wait([running])
    return JSONResponse(_shown(store.get(key, name)))


async def delete(state: ServerState, store: SessionStore, request: Request, key: str) -> Response:
    """`DELETE /guideway/sessions/{id}`."""
    name = request.path_params["name"]
    found = store.get(key, name)
    async with found.lock:
        store.remove(store.get(key, name))  # it was perhaps closed while this request waited for the lock
    return JSONResponse({"id": found.id, "object": "guideway.session", "deleted": True})


async def save(state: ServerState, store: SessionStore, request: Request, key: str) -> Response:
    """`POST /guideway/sessions/{id}/save`: answer with the saved session, a file for `Model.load_session`."""
    name = request.path_params["name"]
    found = store.get(key, name)

    async def work() -> Response:
        data = await background.run(_saved, found.session)
        return Response(data, media_type="application/octet-stream")

    return await _alone(state, store, found, key, work)


def _saved(session: Session) -> bytes:
    with tempfile.TemporaryDirectory(prefix="guideway-session-") as folder:
        path = Path(folder) / "session"
        session.save(path)
        return path.read_bytes()


async def operate(state: ServerState, store: SessionStore, request: Request, key: str) -> Response:
    """`POST /guideway/sessions/{id}/{operation}`: one of `OPERATIONS`, or "fork"."""
    name, operation = request.path_params["name"], request.path_params["operation"]
    body = await read_json(request.scope, request.receive, state.settings)
    found = store.get(key, name)
    fields, run = OPERATIONS.get(operation, ((), None))
    if run is None and operation != "fork":
        known = ", ".join((*OPERATIONS, "fork", "save"))
        raise HttpError(
            404, f"there is no operation {short_repr(operation, 40)}; operations are {known}", code="unknown_url"
        )
    for one in body:
        if one not in fields:
            raise unknown_field(one, one, fields or ("no field",))

    async def work() -> Response:
        if run is None:
            forked = await background.run(found.session.fork)
            return JSONResponse(_shown(store.add(key, found.model, forked, found.owner)))
        result = await background.run(run, found.session, body)
        found.used = time.monotonic()
        return JSONResponse(_shown(found, **result))

    return await _alone(state, store, found, key, work)


def _feed(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    given = [name for name in ("text", "tokens") if body.get(name) is not None]
    if len(given) != 1:
        raise InvalidRequestError("the body needs 'text' or 'tokens'", given[1] if given else "text")
    value = body[given[0]]
    if given[0] == "text":
        return {"fed": session.feed(string_field(value, "text"))}
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise invalid_field("tokens", "a list of token ids", value)
    return {"fed": session.feed(value)}


def _infer(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    count = integer_field(1, 4096)(body.get("count", 1), "count")
    top = integer_field(0, 20)(body.get("top_logprobs", 0), "top_logprobs")
    left = body.get("tokens_left")
    if left is not None:
        integer_field(1)(left, "tokens_left")
    before = len(session)
    try:
        return {"inferred": _inferred(session, count, top, left)}
    except BaseException:
        session.rewind(len(session) - before)  # the answer with the tokens is not sent
        raise


def _inferred(session: Session, count: int, top: int, left: int | None) -> list[dict[str, Any]]:
    """Infer up to `count` tokens, until an end token. Returns each as an object, with the `top` most probable ones."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        if session.matcher is not None and session.is_finished:
            break
        shown = None
        if top:
            table = session.tokenizer.vocabulary
            shown = [
                {
                    "id": token_id,
                    "token": table.bytes_of([token_id], special=True).decode("utf-8", "replace"),
                    "probability": probability,
                }
                for token_id, probability in session.top_k(top)
            ]
        token_id = session.infer(tokens_left=None if left is None else left - number)
        text = session.tokenizer.vocabulary.bytes_of([token_id]).decode("utf-8", "replace")
        made.append({"id": token_id, "token": text, **({} if shown is None else {"top": shown})})
        if token_id in session.tokenizer.eos_ids:
            break
    return made


def _rewind(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    release = boolean_field(body.get("release", False), "release")
    return {"removed": session.rewind(integer_field(0)(body.get("count"), "count"), release=release)}


def _set_text(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    release = boolean_field(body.get("release", False), "release")
    changed = session.set_text(string_field(body.get("text"), "text"), release=release)
    return {"kept": changed.kept, "removed": changed.removed, "fed": changed.fed}


def _constrain(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    session.constrain(constraint_of(body))
    return {}


OPERATIONS: dict[str, tuple[tuple[str, ...], Callable[[Session, dict[str, Any]], dict[str, Any]]]] = {
    "feed": (("text", "tokens"), _feed),
    "infer": (("count", "tokens_left", "top_logprobs"), _infer),
    "rewind": (("count", "release"), _rewind),
    "set_text": (("text", "release"), _set_text),
    "constrain": (CONSTRAINTS, _constrain),
}
"""By name of an operation: the fields that its body may have, and a function that performs it.

The function returns additional members of the answer.
"""
