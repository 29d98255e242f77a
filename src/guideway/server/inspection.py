"""`/guideway/{check,score,plan}`: whether a text fits a constraint, scores of options, and facts about a constraint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from guideway import background
from guideway.batch.fields import boolean_field, invalid_field, list_field, string_field
from guideway.batch.message_fields import messages_of
from guideway.batch.requests import CONSTRAINTS, constraint_at, constraint_of_line, unknown_field
from guideway.compiler import compile
from guideway.constraints import Constraint, of
from guideway.errors import InvalidRequestError, InvalidTextError
from guideway.generation import Model, score as score_options
from guideway.server.bodies import read_json
from guideway.server.generating import model_name
from guideway.server.state import ServerState

__all__ = ["check", "constraint_of", "local_model", "plan", "prompt_of", "score"]


def constraint_of(body: Mapping[str, Any], *others: str) -> Constraint[Any] | None:
    """Return the constraint of a body, which is in one of the fields `CONSTRAINTS`; None if the body has none.

    Args:
        body: The body.
        *others: The names of further fields that the body may have, besides `CONSTRAINTS` and "model".

    Raises:
        InvalidRequestError: The constraint is invalid, there are several, or the body has an unknown field.
    """
    known = ("model", *CONSTRAINTS, *others)
    for name in body:
        if name not in known:
            raise unknown_field(name, name, known)
    named = [name for name in CONSTRAINTS if body.get(name) is not None]
    if len(named) > 1:
        raise InvalidRequestError(f"a request may have one constraint, got {' and '.join(named)}", named[1])
    if not named:
        return None
    given = {named[0]: body[named[0]]}
    made = constraint_at(named[0], lambda: constraint_of_line(given))
    return None if made is None else of(made)


def _needed(found: Constraint[Any] | None) -> Constraint[Any]:
    if found is None:
        raise InvalidRequestError(
            f"the body needs a constraint, one of {', '.join(CONSTRAINTS)}", "schema", "missing_parameter"
        )
    return found


def prompt_of(model: Model, body: Mapping[str, Any]) -> str | list[int]:
    """Return the prompt of a body: the field "prompt" (a text or token ids), or the token ids of "messages".

    Raises:
        InvalidRequestError: The body has none or both of the fields, or the field is malformed.
        ChatTemplateError: The model has no chat template, or it rejects the messages.
    """
    given = [name for name in ("prompt", "messages") if body.get(name) is not None]
    if len(given) != 1:
        raise InvalidRequestError("the body needs 'prompt' or 'messages'", given[1] if given else "prompt")
    value = body[given[0]]
    if given[0] == "messages":
        text = model.tokenizer.render_chat(messages_of(list_field(value, "messages"), "messages"))
        return model.tokenizer.encode(text)
    if not isinstance(value, str) and not (isinstance(value, list) and value and all(type(n) is int for n in value)):
        raise invalid_field("prompt", "a string or a list of token ids", value)
    return value


def local_model(model: object) -> Model:
    """Return `model` if it is a local model. Raises `InvalidRequestError` for a model served by an API."""
    if not isinstance(model, Model):
        raise InvalidRequestError("this route needs a local model, not one served by an API", "model")
    return model


async def check(state: ServerState, request: Request, key: str) -> Response:
    """`POST /guideway/check`: whether a text fits a constraint, and the position of the first error if it is known."""
    body = await read_json(request.scope, request.receive, state.settings)
    with state.admitted(key):
        return JSONResponse(await background.run(_checked, body))


def _checked(body: dict[str, Any]) -> dict[str, Any]:
    text = string_field(body.get("text"), "text")
    source = _needed(constraint_of(body, "text"))
    try:
        source.parse(text)
    except InvalidTextError as error:
        return {
            "object": "guideway.check",
            "fits": False,
            "message": str(error),
            "position": getattr(error, "position", None),
        }
    return {"object": "guideway.check", "fits": True, "message": None, "position": None}


async def score(state: ServerState, request: Request, key: str) -> Response:
    """`POST /guideway/score`: the log-probability of each text after a prompt, and its probability among the texts.

    Both are computed from the logits, not estimated from samples; see `guideway.generation.score`.
    """
    body = await read_json(request.scope, request.receive, state.settings)
    with state.admitted(key):
        async with state.models.lease(model_name(body)) as model:
            return JSONResponse(await background.run(_scored, local_model(model), body))


def _scored(model: Model, body: dict[str, Any]) -> dict[str, Any]:
    known = ("model", "prompt", "messages", "options", "end")
    for name in body:
        if name not in known:
            raise unknown_field(name, name, known)
    options = list_field(body.get("options"), "options")
    if not options or len(options) > 10_000:
        raise invalid_field("options", "a list of 1 to 10000 strings", options)
    for number, one in enumerate(options):
        string_field(one, f"options[{number}]")
    end = boolean_field(body.get("end", False), "end")
    found = score_options(model, prompt_of(model, body), options, end=end)
    data = [
        {"option": one.option, "logprob": one.logprob, "probability": one.probability, "tokens": list(one.tokens)}
        for one in found
    ]
    return {"object": "guideway.scores", "data": data}


async def plan(state: ServerState, request: Request, key: str) -> Response:
    """`POST /guideway/plan`: facts about a constraint for a model, without generation.

    Among them are the minimum number of tokens, and the text with which every output begins.
    """
    body = await read_json(request.scope, request.receive, state.settings)
    with state.admitted(key):
        async with state.models.lease(model_name(body)) as model:
            return JSONResponse(await background.run(_planned, local_model(model), body))


def _planned(model: Model, body: dict[str, Any]) -> dict[str, Any]:
    source = _needed(constraint_of(body))
    matcher = compile(source, model.vocabulary).matcher()
    return {
        "object": "guideway.plan",
        "guarantee": "exact",
        "engine": type(model.engine).__name__,
        "min_tokens": matcher.min_tokens_to_complete(),
        "context_size": model.context_size,
        "forced": bytes(model.vocabulary.bytes_of(matcher.forced_tokens())).decode("utf-8", "replace"),
    }
