"""`POST /v1/responses/compact`: replaces a conversation by its user messages and a summary that the model writes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from guideway.arguments import short_repr
from guideway.batch.answer_parts import identifier, reply_text
from guideway.batch.message_fields import compaction_item
from guideway.batch.requests import BatchRequest, unknown_field
from guideway.batch.response_objects import item_id, response_body
from guideway.constraints.tools import Reply
from guideway.errors import InvalidRequestError
from guideway.generation import Generation, Model
from guideway.generation.plan import Job
from guideway.remote import RemoteModel
from guideway.server.gateway import UpstreamJob, UpstreamRequest
from guideway.server.generating import Outcome, Prepared, prepare
from guideway.server.responses import ResponsesEndpoint, ResponseStore
from guideway.server.running import ServedRequest
from guideway.server.state import ServerState

__all__ = ["CompactionEndpoint"]

SUMMARY_TOKENS = 512
"""The maximum number of tokens of a summary."""

_ASK = (
    "Summarize the conversation so far, so that it can continue from your summary alone: goals, facts, decisions,"
    " results of tools, and what is still to be done."
)
_FIELDS = ("model", "input", "instructions", "previous_response_id")
_NO_EFFECT = ("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier")


def prepare_compaction(
    found: Prepared, model: Model | RemoteModel, name: str, url: str, body: Mapping[str, Any], settings: Any
) -> Job | UpstreamJob:
    """Read a body and make the job that generates the summary. The arguments are those of `prepare`.

    Raises:
        GuidewayError: A field is missing, unknown or malformed, or the conversation is too long for the model's
            context.
    """
    given = {key: value for key, value in body.items() if value is not None and key not in _NO_EFFECT}
    for key in given:
        if key not in _FIELDS:
            raise unknown_field(key, key, _FIELDS)
    for key, others in (("model", ("model",)), ("input", ("input", "previous_response_id"))):
        if not any(other in given for other in others):
            raise InvalidRequestError(f"the body needs {key!r}", key, "missing_required_parameter")
    items = given.get("input", [])
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list):
        raise InvalidRequestError(
            f"'input' must be a text or a list of items, got {short_repr(items)}", "input", "invalid_type"
        )
    given["input"] = [*items, {"role": "user", "content": _ASK}]
    options = {"max_output_tokens": SUMMARY_TOKENS, "temperature": 0, "store": False}
    return prepare(found, model, name, "/v1/responses", {**given, **options}, settings)


class CompactionEndpoint(ResponsesEndpoint):
    """The ASGI application of `POST /v1/responses/compact`."""

    def __init__(self, state: ServerState, store: ResponseStore) -> None:
        super().__init__(state, store, preparing=prepare_compaction)

    def begun(self, request: BatchRequest, key: str, running: ServedRequest | UpstreamRequest) -> None:
        """Do nothing: the generation of a summary cannot be cancelled by an id."""

    def ended(self, request: BatchRequest, key: str, outcome: Outcome) -> None:
        """Do nothing: summaries are not stored."""

    def answer(
        self, model: Model | RemoteModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]
    ) -> dict[str, Any]:
        """Return the compacted conversation: the messages of the user, and an item with the summary."""
        one = found[0][0]
        text = reply_text(one.value) if isinstance(one.value, Reply) else one.text
        messages: list[Any] = list(request.prompts()[0])[:-1]
        users = [message["content"] for message in messages if message["role"] == "user"]
        kept = [
            {
                "type": "message",
                "id": item_id(request, "msg", number),
                "status": "completed",
                "role": "user",
                "content": [{"type": "input_text", "text": content}],
            }
            for number, content in enumerate(users)
        ]
        return {
            "id": identifier("resp", request.custom_id),
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*kept, compaction_item(item_id(request, "cmp"), text)],
            "usage": response_body(model, request, one)["usage"],
        }
