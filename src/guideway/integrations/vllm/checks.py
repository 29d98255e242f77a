"""Checks the constraint of a request when the request arrives, so that an error is the response to this request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from guideway import background

if TYPE_CHECKING:
    from guideway.integrations.vllm.requested import Requested

__all__ = ["NAME", "ahead", "runnable", "validated"]

NAME = "guideway"


def validated(original: Any, params: Any, model: Any, config: Any, tokenizer: Any) -> None:
    """Check the constraints of a request: the replacement of `SamplingParams._validate_structured_outputs`.

    `original` is the replaced method. It is called if the request has no structured outputs, or if the engine is not
    configured for the backend `NAME`.

    Raises:
        VLLMValidationError: The request is invalid.
    """
    from vllm.exceptions import VLLMValidationError

    from guideway.integrations.vllm.requested import budget_of, requested_in_extra_args, structured

    if tokenizer is not None and params.extra_args:
        _check("vllm_xargs", lambda: requested_in_extra_args(params), tokenizer, lambda: budget_of(params))
    options = params.structured_outputs
    if config is None or options is None or config.backend != NAME:
        original(model, config, tokenizer)
        return
    if options._backend not in (None, NAME):
        raise VLLMValidationError(f"a request cannot select a backend; this engine uses {NAME!r}")
    if tokenizer is None or model.is_diffusion:
        raise VLLMValidationError(f"the backend {NAME!r} needs a tokenizer and an autoregressive model")
    options._backend = NAME
    _check("structured_outputs", lambda: structured(options), tokenizer)


def runnable(original: Any, processor: Any, params: Any, *rest: Any, **named: Any) -> Any:
    """Refuse a request that no logits processor would constrain: the replacement of `InputProcessor._validate_params`.

    With speculative decoding, the V1 runner loads no logits processors of entry points, and does not report it.
    Without this check, the constraint of such a request would have no effect.

    `original` is the replaced method, which is called first.

    Raises:
        VLLMValidationError: The request has a constraint that would have no effect.
        InvalidConstraintError: As for `requested_in_extra_args`, if the engine has no tokenizer. Otherwise `validated`,
            which `original` calls, has already raised an error.
    """
    found = original(params, *rest, **named)
    config = processor.vllm_config
    if config.speculative_config is None or config.use_v2_model_runner:
        return found
    from guideway.integrations.vllm.requested import requested_in_extra_args

    if getattr(params, "extra_args", None) and requested_in_extra_args(params) is not None:
        from vllm.exceptions import VLLMValidationError

        raise VLLMValidationError(
            "vLLM's V1 model runner has no logits processors with speculative decoding; use structured_outputs, with "
            f"the backend {NAME!r}",
            parameter="vllm_xargs",
        )
    return found


async def ahead(original: Any, engine: Any, request_id: Any, prompt: Any, params: Any, *rest: Any, **named: Any) -> Any:
    """Compile the constraint of a request in a thread, then add the request: the replacement of `AsyncLLM.add_request`.

    The original method calls `validated` in the event loop of the server, where compiling would block all requests.
    This function calls it in a thread first, so that the second call finds the automaton in the cache.
    """
    config = engine.vllm_config
    outputs = config.structured_outputs_config
    options, extra = getattr(params, "structured_outputs", None), getattr(params, "extra_args", None)
    if extra or (options is not None and outputs.backend == NAME):
        given = config.model_config, outputs, engine.input_processor.tokenizer
        await background.run(params._validate_structured_outputs, *given)
    return await original(request_id, prompt, params, *rest, **named)


def _check(
    field: str,
    ask: Callable[[], Requested | None],
    tokenizer: Any,
    budget: Callable[[], int | None] = lambda: None,
) -> None:
    from vllm.exceptions import VLLMValidationError

    from guideway.errors import BudgetTooSmallError, GuidewayError
    from guideway.integrations.vllm.requested import automaton_of, tokenizer_of

    try:
        if (given := ask()) is not None:
            automaton = automaton_of(given, tokenizer_of(tokenizer))
            most = budget()
            if most is not None and (needed := automaton.matcher().min_tokens_to_complete()) > most:
                raise BudgetTooSmallError(f"the shortest output needs {needed} tokens; max_tokens is {most}")
    except GuidewayError as error:
        raise VLLMValidationError(f"{type(error).__name__}: {error}", parameter=field) from error
