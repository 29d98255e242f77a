"""`create_app`: the ASGI application of a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import guideway
from guideway.arguments import short_repr
from guideway.server import batches, files, inspection, responses, session_routes
from guideway.server.bodies import TimelyBodies
from guideway.server.compaction import CompactionEndpoint
from guideway.server.errors import HttpError, error_response, stopped
from guideway.server.explaining import explain
from guideway.server.generating import GenerationEndpoint
from guideway.server.models import ModelCard, ServedModels, known_name
from guideway.server.playground import playground
from guideway.server.pooled import pool_models, unload_model
from guideway.server.settings import ServerSettings
from guideway.server.state import LOG, ServerState
from guideway.server.stepping import TokenEvents, alternatives, prepare_tokens

__all__ = ["create_app"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "testserver")  # "testserver": the host of Starlette's test client


def create_app(models: ServedModels, settings: ServerSettings | None = None) -> Starlette:
    """Return the ASGI application of a server. Any ASGI server can run it; `serve` uses uvicorn.

    Args:
        models: The models that the server offers.
        settings: The settings; None: `ServerSettings()`.

    Returns:
        The application. `app.state.server` is its `ServerState`.
    """
    state = ServerState(models, settings or ServerSettings())
    sessions = session_routes.SessionStore(state.settings.max_sessions, state.settings.session_idle_seconds)
    stores: list[Any] = [sessions]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loading = asyncio.ensure_future(_load(state))
        starting = asyncio.ensure_future(state.workers.start())
        closing_idle = asyncio.ensure_future(sessions.close_idle_regularly())
        try:
            yield
        finally:
            loading.cancel()
            closing_idle.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await state.workers.close()
            state.draining = True
            for store in stores:
                closing = store.close()
                if closing is not None:
                    await closing
            await models.stop()

    routes = [  # in the order in which a request is compared with them
        *(
            Route(url, GenerationEndpoint(state, url), methods=["POST"])
            for url in ("/v1/chat/completions", "/v1/completions")
        ),
        Route("/health", _endpoint(state, _health), methods=["GET"]),
        Route("/ready", _endpoint(state, _ready), methods=["GET"]),
        Route("/version", _endpoint(state, _version), methods=["GET"]),
        Route("/metrics", _endpoint(state, _metrics), methods=["GET"]),
        Route("/v1/models", _endpoint(state, _models, needs_key=True), methods=["GET"]),
        Route("/v1/models/{name:path}", _endpoint(state, _model, needs_key=True), methods=["GET"]),
        Route("/", _endpoint(state, playground), methods=["GET"]),
        Route("/guideway/alternatives", _endpoint(state, alternatives), methods=["POST"]),
        Route("/guideway/explain", _endpoint(state, explain, needs_key=True), methods=["POST"]),
        Route(
            "/guideway/tokens",
            GenerationEndpoint(state, "/guideway/tokens", preparing=prepare_tokens, chunks=TokenEvents),
            methods=["POST"],
        ),
        Route("/guideway/models", _endpoint(state, pool_models, needs_key=True), methods=["GET"]),
        Route("/guideway/models/{name:path}/unload", _endpoint(state, unload_model, needs_key=True), methods=["POST"]),
        *_response_routes(state),
        *_batch_routes(state, stores),
        *_own_routes(state, sessions),
    ]
    middleware = []
    if not state.settings.api_keys:
        middleware.append(Middleware(_LoopbackOnly, origins=state.settings.cors_origins))
    if state.settings.cors_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(state.settings.cors_origins),
                allow_methods=["*"],
                allow_headers=["*"],
            )
        )
    # The innermost: CORS adds headers to its answer.
    middleware.append(Middleware(_AnsweredAtShutdown, state=state))
    middleware.append(Middleware(TimelyBodies, seconds=state.settings.body_seconds))
    handlers: Any = {HTTPException: _http_exception}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)
    app.state.server = state
    return app


def _stored(state: ServerState, store: Any) -> Callable[[str, Any, str], Route]:
    """Return a function that makes a route from a path, a handler and an HTTP method.

    The API key is checked before the handler is called. The handler gets the name of the key and, unless it is None,
    `store`.
    """

    def route(path: str, handler: Any, method: str) -> Route:
        async def run(state: ServerState, request: Request) -> Response:
            key = state.key_of(request.headers.get("authorization"))
            found: Response = (
                await handler(state, request, key) if store is None else await handler(state, store, request, key)
            )
            return found

        return Route(path, _endpoint(state, run), methods=[method])

    return route


def _response_routes(state: ServerState) -> list[Route]:
    store = responses.ResponseStore(state.settings.max_stored_bytes)
    route, one = _stored(state, store), "/v1/responses/{name}"
    return [
        Route("/v1/responses", responses.ResponsesEndpoint(state, store), methods=["POST"]),
        Route("/v1/responses/compact", CompactionEndpoint(state, store), methods=["POST"]),
        route("/v1/responses/input_tokens", responses.count_input, "POST"),
        route(one, responses.retrieve, "GET"),
        route(one, responses.delete, "DELETE"),
        route(f"{one}/cancel", responses.cancel, "POST"),
        route(f"{one}/input_items", responses.input_items, "GET"),
    ]


def _batch_routes(state: ServerState, stores: list[Any]) -> list[Route]:
    file_store = files.FileStore(state.settings.max_stored_bytes * 8)
    batch_store = batches.BatchStore(file_store)
    stores += [batch_store, file_store]
    file, batch = _stored(state, file_store), _stored(state, batch_store)
    return [
        file("/v1/files", files.create, "POST"),
        file("/v1/files", files.list_files, "GET"),
        file("/v1/files/{name}", files.retrieve, "GET"),
        file("/v1/files/{name}", files.delete, "DELETE"),
        file("/v1/files/{name}/content", files.content, "GET"),
        batch("/v1/batches", batches.create, "POST"),
        batch("/v1/batches", batches.list_batches, "GET"),
        batch("/v1/batches/{name}", batches.retrieve, "GET"),
        batch("/v1/batches/{name}/cancel", batches.cancel, "POST"),
    ]


def _own_routes(state: ServerState, sessions: session_routes.SessionStore) -> list[Route]:
    plain, session, one = _stored(state, None), _stored(state, sessions), "/guideway/sessions/{name}"
    return [
        plain("/guideway/check", inspection.check, "POST"),
        plain("/guideway/score", inspection.score, "POST"),
        plain("/guideway/plan", inspection.plan, "POST"),
        session("/guideway/sessions", session_routes.create, "POST"),
        session(one, session_routes.retrieve, "GET"),
        session(one, session_routes.delete, "DELETE"),
        session(f"{one}/save", session_routes.save, "POST"),
        session(one + "/{operation}", session_routes.operate, "POST"),
    ]


async def _load(state: ServerState) -> None:
    try:
        await state.models.start()
    except Exception as error:
        LOG.exception("a model cannot be loaded")
        state.failure = f"a model cannot be loaded ({type(error).__name__}); the log of the server has the reason"
    else:
        state.on_ready()
        state.ready = True


_Handler = Callable[[ServerState, Request], Any]


def _endpoint(state: ServerState, handler: _Handler, *, needs_key: bool = False) -> Callable[[Request], Any]:
    """Return an endpoint that calls `handler`, with exceptions as error responses.

    `needs_key`: check the API key first.
    """

    async def endpoint(request: Request) -> Response:
        try:
            if needs_key:
                state.key_of(request.headers.get("authorization"))
            response: Response = await handler(state, request)
        except Exception as error:
            return error_response(error)
        return response

    return endpoint


async def _health(state: ServerState, request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(state: ServerState, request: Request) -> Response:
    ready = state.ready and not state.draining
    names = {card.name: card.state for card in state.models.cards()}
    shown = {"status": "ready" if ready else "not ready", "models": names}
    if state.failure is not None:
        shown["error"] = state.failure
    return JSONResponse(shown, 200 if ready else 503)


async def _version(state: ServerState, request: Request) -> Response:
    return JSONResponse({"version": guideway.__version__})


async def _metrics(state: ServerState, request: Request) -> Response:
    return PlainTextResponse(state.metrics.export(), media_type="text/plain; version=0.0.4")


async def _models(state: ServerState, request: Request) -> Response:
    return JSONResponse({"object": "list", "data": [_shown(card) for card in state.models.cards()]})


async def _model(state: ServerState, request: Request) -> Response:
    cards = {card.name: card for card in state.models.cards()}
    return JSONResponse(_shown(cards[known_name(request.path_params["name"], list(cards))]))


def _shown(card: ModelCard) -> dict[str, Any]:
    details = {"state": card.state, "source": card.source, "max_model_len": card.context_size, **card.details}
    return {"id": card.name, "object": "model", "created": card.created, "owned_by": "guideway", **details}


async def _http_exception(request: Request, error: HTTPException) -> Response:
    """Return the error response for a URL or an HTTP method that does not exist."""
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code)
    message = f"{request.method} {request.url.path} does not exist; {error.detail}"
    return error_response(HttpError(error.status_code, message, code=code, headers=dict(error.headers or {})))


class _AnsweredAtShutdown:
    """Middleware that answers requests with status 503 if they are cancelled because the drain time is over.

    Without it, the ASGI server would answer them with status 500. A stream of events that has begun ends with an event
    of the error (`GenerationEndpoint`); another response that has begun is cut off.

    Args:
        app: The application.
        state: The state of the server.
    """

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = complete = False

        async def sending(message: Message) -> None:
            nonlocal sent, complete
            sent = True
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except asyncio.CancelledError:
            if scope["type"] != "http" or not self._state.draining or (sent and not complete):
                raise
            if not sent:
                await error_response(stopped())(scope, receive, send)


class _LoopbackOnly:
    """Middleware of a server without API keys: refuses requests from foreign web pages with status 403.

    A request is refused if its Host header is not in `_LOOPBACK`: the owner of a page can let a foreign name resolve to
    the loopback address (DNS rebinding). It is also refused if it has an Origin header whose host is not in `_LOOPBACK`
    and which is not in `origins`: any page can send a form to this server.

    Args:
        app: The application.
        origins: Origins of web pages that may send requests; "*": all.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...] = ()) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = Request(scope).headers.get("host", "")
            name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
            if name.strip("[]").lower() not in _LOOPBACK:
                message = (
                    f"the host name {short_repr(name)} is not that of this machine; set API keys to serve other hosts"
                )
                await error_response(HttpError(403, message, code="forbidden_host"))(scope, receive, send)
                return
            origin = Request(scope).headers.get("origin")
            if origin is not None and not self._is_allowed(origin):
                message = f"pages of {short_repr(origin)} may not use this server; --cors-origin permits them"
                await error_response(HttpError(403, message, code="forbidden_origin"))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_allowed(self, origin: str) -> bool:
        if origin in self._origins or "*" in self._origins:
            return True
        try:
            host = urlsplit(origin).hostname
        except ValueError:
            return False
        return host in _LOOPBACK
