"""Makes the `Job` of a request for a local model: encodes its prompts, compiles its constraint, merges its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from guideway.batch.bodies import DEFAULTS
from guideway.batch.replies import chat_prompt, family_of_prompt, reply_of
from guideway.batch.requests import BatchRequest
from guideway.constraints import ToolCalls
from guideway.constraints.tools import Family
from guideway.constraints.tools.structured_reply import StructuredReply
from guideway.errors import InvalidRequestError
from guideway.generation import GenerationRequest
from guideway.generation.options import SAMPLING
from guideway.generation.plan import Job
from guideway.generation.protocol import AnyModel, GeneratingModel
from guideway.sampling import Sampler
from guideway.sessions import ModelBase

__all__ = ["PreparedJob", "job_of", "merged_options"]

_IN_SAMPLER = ("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias")
"""Options of requests that are fields of `Sampler`, and not generation options."""


class PreparedJob(NamedTuple):
    """The job of a request, and what was determined for it.

    Attributes:
        job: The prompts and the rows.
        output: The constraint of its texts; None: free text.
        options: Its generation options.
        family: The notation by which its replies are divided into reasoning, text and calls; None: they are not.
    """

    job: Job
    output: object
    options: dict[str, Any]
    family: Family | None = None


def job_of(
    model: ModelBase, request: BatchRequest, call: Mapping[str, Any], *, return_exceptions: bool = True
) -> PreparedJob:
    """Compile the constraint of a request, encode its prompts, and return its `PreparedJob`.

    Args:
        model: The model.
        request: The request.
        call: Generation options of the call, for requests that do not set them.
        return_exceptions: Whether the error of a prompt becomes its result, also that of its constraint. False: it is
            raised.

    Raises:
        GuidewayError: The chat template fails, or tools and the answer cannot be combined. Without `return_exceptions`
            also: the constraint cannot be compiled, or a prompt is too long.
        ValueError: An option is out of range. With `return_exceptions`, this can also become the result.
    """
    output = request.output
    prompts = request.prompts()
    family = None
    if request.endpoint in ("/v1/chat/completions", "/v1/responses"):
        text = chat_prompt(model, request)
        family = family_of_prompt(model, request, text)
        output = reply_of(request, family)
        family = family if isinstance(output, (ToolCalls, StructuredReply)) else None
        prompts = [model.tokenizer.encode(text)]
    given = [GenerationRequest(one, output, seed=request.seed(part)) for part, one in enumerate(prompts)]
    options = merged_options(model, request, call)
    job_options: Any = {**options, "return_exceptions": return_exceptions}
    return PreparedJob(Job(model, given, None, request.n, job_options), output, options, family)


def merged_options(model: AnyModel, request: BatchRequest, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the generation options of a request, without the seed.

    An option of the request replaces that of the call, which replaces the default of the endpoint. If the request sets
    a sampling option, no sampling option of the call is used. If one of the call is used, the default temperature of
    the endpoint is not.

    Raises:
        InvalidRequestError: An option has no effect on a model served by an API.
    """
    names = {*SAMPLING, *_IN_SAMPLER}
    own = {name: value for name, value in request.options.items() if name != "seed"}
    shared = {name: value for name, value in call.items() if not (name in names and own.keys() & names)}
    shared.pop("seed", None)
    defaults = dict(DEFAULTS[request.endpoint])
    if shared.keys() & names:
        defaults.pop("temperature", None)
    if request.endpoint and isinstance(model, ModelBase):
        defaults.setdefault("max_tokens", model.context_size)
    merged = {**defaults, **shared, **own}
    given = [name for name in _IN_SAMPLER if name in merged]
    if isinstance(model, GeneratingModel):
        if given:
            raise InvalidRequestError(
                f"{given[0]!r} has no effect on a model served by an API; omit it", given[0], "unsupported_parameter"
            )
    elif given:
        if request.n is not None:
            merged.setdefault("temperature", 1.0)
        known = {one.name for one in fields(Sampler)}
        merged["sampler"] = Sampler(**{name: merged.pop(name) for name in [*merged] if name in known})
    return merged
