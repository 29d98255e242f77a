"""The endpoints of the Responses API: generation, stored responses, cancellation, and the number of input tokens."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway import background
from guideway.arguments import short_repr
from guideway.batch.answer_parts import identifier
from guideway.batch.bodies import read_body
from guideway.batch.replies import chat_prompt
from guideway.batch.requests import BatchRequest
from guideway.batch.response_objects import response_object
from guideway.constraints.tools import Reply
from guideway.errors import InvalidRequestError
from guideway.generation import Model
from guideway.server.bodies import read_json
from guideway.server.errors import HttpError, status_and_object
from guideway.server.gateway import UpstreamRequest
from guideway.server.generating import GenerationEndpoint, Outcome, model_name
from guideway.server.inspection import local_model
from guideway.server.running import ServedRequest
from guideway.server.state import ServerState

__all__ = ["ResponseStore", "ResponsesEndpoint", "cancel", "count_input", "delete", "input_items", "retrieve"]

MAX_STORED = 10_000
"""The maximum number of stored responses."""


@dataclass
class _Stored:
    """A stored response.

    Attributes:
        key: The name of the API key that it belongs to.
        response: The response object.
        messages: The messages of the conversation for a later response that continues it: the prompt and, if there is
            an answer, the reply.
        items: The input items of the request.
        size: The number of characters of `response`, `messages` and `items` as JSON.
    """

    key: str
    response: dict[str, Any]
    messages: list[dict[str, Any]]
    items: list[dict[str, Any]]
    size: int


class ResponseStore:
    """Responses in memory.

    If there are more than `MAX_STORED`, or if they are larger than `max_bytes`, the least recently used ones are
    removed. A client sees only the responses of its API key.

    Args:
        max_bytes: The maximum sum of `_Stored.size` of all responses.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._size = max_bytes, 0
        self._stored: OrderedDict[str, _Stored] = OrderedDict()
        self.active: dict[str, tuple[str, ServedRequest | UpstreamRequest]] = {}
        """By id of a response that is being generated: the name of its API key, and the running request."""

    def put(
        self, key: str, response: dict[str, Any], messages: list[dict[str, Any]], items: list[dict[str, Any]]
    ) -> None:
        """Store a response in place of a stored one with the same id. The arguments are the attributes of `_Stored`.

        A response that is larger than `max_bytes` is not stored; a stored one with the same id is still removed.
        """
        size = len(json.dumps([response, messages, items]))
        if (old := self._stored.pop(response["id"], None)) is not None:
            self._size -= old.size
        if size > self._max_bytes:
            return
        self._stored[response["id"]] = _Stored(key, response, messages, items, size)
        self._size += size
        while self._size > self._max_bytes or len(self._stored) > MAX_STORED:
            self._size -= self._stored.popitem(last=False)[1].size

    def find(self, key: str, name: str) -> _Stored | None:
        """Return a stored response by its id, and mark it as recently used.

        None if the key `key` has no such response.
        """
        found = self._stored.get(name)
        if found is None or found.key != key:
            return None
        self._stored.move_to_end(name)
        return found

    def get(self, key: str, name: str) -> _Stored:
        """Return a stored response by its id. Raises `HttpError` (404) if the key `key` has no such response."""
        found = self.find(key, name)
        if found is None:
            raise HttpError(
                404,
                f"there is no response {short_repr(name)}; it was not stored, or dropped",
                code="response_not_found",
            )
        return found

    def drop(self, key: str, name: str) -> None:
        """Remove a stored response.

        Raises:
            HttpError: The key `key` has no such response (404). Or the response is in progress (409); it would be
                stored again when it ends.
        """
        found = self.get(key, name)
        if found.response["status"] == "in_progress":
            raise HttpError(
                409, f"the response {short_repr(name)} is in progress; cancel it first", code="response_not_complete"
            )
        self._size -= found.size
        del self._stored[name]


class ResponsesEndpoint(GenerationEndpoint):
    """The ASGI application of `POST /v1/responses`."""

    def __init__(self, state: ServerState, store: ResponseStore, **options: Any) -> None:
        super().__init__(state, "/v1/responses", **options)
        self._store = store

    def complete_request(self, request: BatchRequest, key: str) -> BatchRequest:
        """Add the stored messages of the response `previous_response_id` to a request, before those of the request.

        A request without `previous_response_id` is returned unchanged.

        Args:
            request: The request.
            key: The name of the API key.

        Returns:
            The request, or a copy with all messages.

        Raises:
            InvalidRequestError: `previous_response_id` is not the id of a stored response of this key, or this
                response is in progress.
        """
        previous = request.details.get("previous")
        if previous is None:
            return request
        found = self._store.find(key, previous)
        if found is None:
            raise InvalidRequestError(
                f"there is no response {short_repr(previous)}; it was not stored, or dropped",
                "previous_response_id",
                "previous_response_not_found",
            )
        if found.response["status"] == "in_progress":
            raise InvalidRequestError(
                f"the response {short_repr(previous)} is not complete", "previous_response_id", "response_not_complete"
            )
        messages: Any = request.prompt
        return replace(request, prompt=[*found.messages, *messages])

    def begun(self, request: BatchRequest, key: str, running: ServedRequest | UpstreamRequest) -> None:
        """Add the running request to `ResponseStore.active`, so that `cancel` finds it.

        If it runs in the background, a response with the status "in_progress" is stored.
        """
        self._store.active[identifier("resp", request.custom_id)] = key, running
        if request.details.get("background"):
            self._put_without_answer(request, key, "in_progress")

    def accepted(self, request: BatchRequest) -> dict[str, Any] | None:
        """Return the response object of a request that runs in the background; None for other requests."""
        return _without_answer(request, "in_progress") if request.details.get("background") else None

    def _put_without_answer(self, request: BatchRequest, key: str, status: str, error: Any = None) -> None:
        messages: Any = request.prompts()[0]
        made = _without_answer(request, status, error)
        self._store.put(key, made, list(messages), request.details.get("items", []))

    def ended(self, request: BatchRequest, key: str, outcome: Outcome) -> None:
        """Remove the request from `ResponseStore.active`, and store the response.

        An answer is stored if the request has `store`. Without an answer, a response with the status "failed" or
        "cancelled" is stored if the request ran in the background.
        """
        answer, one, error = outcome
        self._store.active.pop(identifier("resp", request.custom_id), None)
        if answer is None and request.details.get("background"):
            is_cancelled = not isinstance(error, Exception) or getattr(error, "code", None) == "cancelled"
            shown = None
            if isinstance(error, Exception) and not is_cancelled:
                status, found = status_and_object(error, request)
                shown = {"code": "server_error", "message": found["message"]}
                if status >= 500:
                    self._log_failure(error)
            self._put_without_answer(request, key, "cancelled" if is_cancelled else "failed", shown)
        if answer is None or not request.details.get("store"):
            return
        messages: Any = list(request.prompts()[0])
        if one is not None:
            reply = one.value if isinstance(one.value, Reply) else Reply(one.text)
            messages = [*messages, _numbered(reply.as_message(), answer)]
        self._store.put(key, answer, messages, request.details.get("items", []))


def _without_answer(request: BatchRequest, status: str, error: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a response object without output."""
    name, created = str(request.details["model"]), request.details.get("created")
    return response_object(request, name, status=status, output=[], created=created, error=error)


def _numbered(message: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Set the ids of the calls of a message to those of the response `answer`. Returns the message."""
    ids = [item["call_id"] for item in answer["output"] if "call_id" in item]
    for call, given in zip(message.get("tool_calls", ()), ids, strict=False):
        call["id"] = given
    return message


async def retrieve(state: ServerState, store: ResponseStore, request: Request, key: str) -> Response:
    """`GET /v1/responses/{id}`."""
    return JSONResponse(store.get(key, request.path_params["name"]).response)


async def delete(state: ServerState, store: ResponseStore, request: Request, key: str) -> Response:
    """`DELETE /v1/responses/{id}`."""
    name = request.path_params["name"]
    store.drop(key, name)
    return JSONResponse({"id": name, "object": "response", "deleted": True})


async def input_items(state: ServerState, store: ResponseStore, request: Request, key: str) -> Response:
    """`GET /v1/responses/{id}/input_items`."""
    items = store.get(key, request.path_params["name"]).items
    ends = {"first_id": items[0]["id"] if items else None, "last_id": items[-1]["id"] if items else None}
    return JSONResponse({"object": "list", "data": items, "has_more": False, **ends})


async def cancel(state: ServerState, store: ResponseStore, request: Request, key: str) -> Response:
    """`POST /v1/responses/{id}/cancel`: end the generation of a response.

    If the response has ended, answer with it as it was stored.
    """
    name = request.path_params["name"]
    owner, running = store.active.get(name, ("", None))
    if running is not None and owner == key:
        running.cancel()
        if (stored := store.find(key, name)) is not None:  # it runs in the background
            return JSONResponse({**stored.response, "status": "cancelled"})
        return JSONResponse({"id": name, "object": "response", "status": "cancelled"})
    return JSONResponse(store.get(key, name).response)


async def count_input(state: ServerState, store: ResponseStore, request: Request, key: str) -> Response:
    """`POST /v1/responses/input_tokens`: the number of tokens of the prompt."""
    body = await read_json(request.scope, request.receive, state.settings)
    with state.admitted(key):
        async with state.models.lease(model_name(body)) as model:
            endpoint = ResponsesEndpoint(state, store)
            count = await background.run(_count, local_model(model), body, endpoint, key)
    return JSONResponse({"object": "response.input_tokens", "input_tokens": count})


def _count(model: Model, body: dict[str, Any], endpoint: ResponsesEndpoint, key: str) -> int:
    request = endpoint.complete_request(read_body("/v1/responses", "count", body), key)
    with model.session() as session:
        session.feed(model.tokenizer.encode(chat_prompt(model, request)))
        return len(session)
