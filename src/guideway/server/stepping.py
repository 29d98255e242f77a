"""Two endpoints for stepping through a generation.

`/guideway/tokens` generates, and reports each token. A request can give the first tokens of the output.
`/guideway/alternatives` generates nothing. It returns the most probable next tokens after the prompt and these tokens,
and whether the constraint allows each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway import background, masks
from guideway.arguments import short_repr
from guideway.batch.bodies import read_body
from guideway.batch.jobs import job_of
from guideway.batch.requests import BatchRequest
from guideway.errors import InvalidRequestError
from guideway.generation import Generation, GenerationState, Model
from guideway.generation.fields import scalars, tokens_between
from guideway.generation.plan import Job
from guideway.generation.resumption import ResumedJob
from guideway.generation.spans import spans_of
from guideway.remote import RemoteModel
from guideway.sampling import TokenLogprobs, probabilities
from guideway.server.bodies import read_json
from guideway.server.chunks import DONE, event
from guideway.server.generating import Prepared, model_name
from guideway.server.ids import new_id
from guideway.server.running import Part
from guideway.server.settings import ServerSettings
from guideway.server.state import ServerState

__all__ = ["TokenEvents", "alternatives", "prepare_tokens"]

MOST_ALTERNATIVES = 20
MOST_FIELDS = 1000


def prepare_tokens(
    found: Prepared, model: Model | RemoteModel, name: str, url: str, body: Mapping[str, Any], settings: ServerSettings
) -> Job:
    """Read the body of a request to `/guideway/tokens`, and make its job.

    The body is that of a chat completion or of a completion, with one more field: `tokens`, the ids with which the
    output begins. In both kinds of bodies, `top_logprobs` is the number of most probable tokens that are reported at
    each position. The parameters are those of `guideway.server.generating.prepare`, but `url` is not used, and of
    `found` only `request` is set.

    Raises:
        GuidewayError: The body is not valid, the model is served by an API, or the tokens do not fit the constraint.
    """
    fields = dict(body)
    tokens = fields.pop("tokens", [])
    if not isinstance(tokens, list) or not all(type(one) is int and 0 <= one < 1 << 31 for one in tokens):
        raise InvalidRequestError("'tokens' must be a list of token ids", "tokens", "invalid_type")
    top = fields.pop("top_logprobs", 5)
    if type(top) is not int or not 0 <= top <= MOST_ALTERNATIVES:
        raise InvalidRequestError(
            f"'top_logprobs' must be an integer from 0 to {MOST_ALTERNATIVES}, got {short_repr(top)}", "top_logprobs"
        )
    for name_, wanted in (("stream", True), ("n", 1), ("logprobs", True), ("token_healing", False)):
        if fields.pop(name_, wanted) != wanted:
            raise InvalidRequestError(f"{name_!r} must be {json.dumps(wanted)} here", name_, "unsupported_parameter")
    endpoint = "/v1/chat/completions" if "messages" in fields else "/v1/completions"
    if isinstance(model, RemoteModel):
        raise InvalidRequestError(
            "a model served by an API has no reports of its tokens", "model", "unsupported_parameter"
        )
    request = read_body(endpoint, new_id(), {**fields, "stream": True})
    details = {**request.details, "model": name}
    found.request = request = replace(request, details=details, options={**request.options, "logprobs": top}, n=None)
    prompts = request.prompts()
    if len(prompts) != 1:
        raise InvalidRequestError("'prompt' must be one prompt", "prompt", "unsupported_parameter")
    options: dict[str, Any] = {**settings.options, "batch_size": settings.max_num_seqs}
    prepared = job_of(model, request, options, return_exceptions=False)
    job: Any = prepared.job
    output = None if prepared.output is None else job.plans[0].source
    state = GenerationState(tuple(job.sessions[0].tokens), tuple(tokens), output, seed=request.seed())
    job_options: Any = {**prepared.options, "return_exceptions": False}
    return ResumedJob(model, state, job_options)


async def alternatives(state: ServerState, request: Request) -> Response:
    """`POST /guideway/alternatives`: the most probable next tokens that the constraint allows, and those it excludes.

    The body is that of `/guideway/tokens`.
    """
    with state.admitted(state.key_of(request.headers.get("authorization"))):
        body = await read_json(request.scope, request.receive, state.settings)
        name = model_name(body)
        async with state.models.lease(name) as model:
            found = await background.run(_alternatives, model, body, state.settings)
    return JSONResponse(found)


def _alternatives(model: Model, body: Mapping[str, Any], settings: ServerSettings) -> dict[str, Any]:
    (session,) = prepare_tokens(Prepared(), model, "", "", body, settings).sessions
    shares = np.asarray(probabilities(session.logits().astype(np.float64)))
    legal = np.ones(len(shares), bool)
    if session.matcher is not None:
        row = masks.new_rows(1, len(model.vocabulary))[0]
        session.matcher.fill_mask(row)
        legal = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(shares)].astype(bool)
    made = []
    for ids in (np.flatnonzero(legal), np.flatnonzero(~legal)):
        for one in ids[np.argsort(-shares[ids], kind="stable")][:MOST_ALTERNATIVES]:
            made.append(_token(model, int(one), float(shares[one]), allowed=bool(legal[one])))
    made.sort(key=lambda one: (not one["allowed"], -one["probability"]))
    return {"alternatives": made, "removed": float(shares[~legal].sum()), "allowed": int(legal.sum())}


def _token(model: Model, token_id: int, probability: float, *, allowed: bool) -> dict[str, Any]:
    return {"id": token_id, "text": _text(model, token_id), "probability": probability, "allowed": allowed}


def _text(model: Model, token_id: int) -> str:
    """Return the text of a token for display.

    It is "⟨end⟩" for an end token, the id for other tokens without bytes, and hexadecimal bytes for incomplete UTF-8.
    """
    table = model.vocabulary
    data = table.bytes_of([token_id])
    if not data:
        return "⟨end⟩" if token_id in table.eos_ids else f"⟨{token_id}⟩"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"⟨{data.hex(' ')}⟩"


def _source(request: BatchRequest) -> tuple[str, str]:
    """Return the path in the body, and the text, that values of the output may repeat; ("", "") if there is none.

    It is the prompt of a completion, or the last message of the user whose content is a text.
    """
    prompt = request.prompts()[0]
    if isinstance(prompt, str):
        return "prompt", prompt
    for number, message in reversed(list(enumerate(prompt))):
        if isinstance(message, Mapping) and message.get("role") == "user" and isinstance(message["content"], str):
            return f"messages[{number}].content", message["content"]
    return "", ""


def _fields(one: Generation[Any], source: str) -> list[dict[str, Any]]:
    """Return at most `MOST_FIELDS` scalar values of a JSON text; [] if the text does not begin with an array or object.

    Each has the JSON Pointer, the value, the range of its tokens, and the ranges of characters of `source` that it
    repeats. [] is returned, too, if the positions of the tokens in the text are not known.
    """
    text, ends = one.text, one.token_ends
    if len(ends) < len(one.tokens) or not text.lstrip().startswith(("{", "[")):
        return []
    spans = spans_of(text, source)
    found = []
    for place, start, end in islice(scalars(text), MOST_FIELDS):
        low, high = (len(text[:at].encode()) for at in (start, end))
        found.append(
            {
                "place": place,
                "value": json.loads(text[start:end]),
                "tokens": tokens_between(ends, low, high),
                "spans": spans.get(place, ()),
            }
        )
    return found


class TokenEvents:
    """The events of `/guideway/tokens`: one for the new tokens of each round, and a last one with the whole text.

    Args:
        model: The model.
        request: The request.
        family: Not used: the reply is not divided into reasoning, text and calls.
    """

    def __init__(self, model: Model, request: BatchRequest, family: object = None) -> None:
        self._model, self._request = model, request

    def events(self, parts: Iterable[Part]) -> bytes:
        """Return the events for parts of the text."""
        made = b""
        for part in parts:
            if part.steps:
                made += event({"tokens": [self._token(step) for step in part.steps]})
        return made

    def cancelled(self) -> bytes:
        """Return the last events of a request that was cancelled."""
        return b"data: [DONE]\n\n"

    def failed(self, error: dict[str, Any]) -> bytes:
        """Return the last events of a request that failed."""
        return event({"error": error})

    def closing(self, found: Sequence[Sequence[Generation[Any]]]) -> bytes:
        """Return the last events of a request that succeeded. `found` has the results of each prompt."""
        one = found[0][0]
        end = {"finish_reason": one.finish_reason, "text": one.text, "forced": one.forced}
        if one.truncation is not None:
            end["truncation"] = one.truncation._asdict()
        param, source = _source(self._request)
        end["source"], end["fields"] = param, _fields(one, source)
        return event(end) + DONE

    def _token(self, step: TokenLogprobs) -> dict[str, Any]:
        others = [_token(self._model, one.token_id, one.probability, allowed=one.allowed) for one in step.alternatives]
        return {
            "id": step.token_id,
            "text": _text(self._model, step.token_id),
            "probability": math.exp(step.logprob),
            "mask_probability": math.exp(step.mask_logprob),
            "removed": step.masked_mass,
            "forced": step.forced,
            "alternatives": others,
        }
