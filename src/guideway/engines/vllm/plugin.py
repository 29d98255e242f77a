"""Makes `guideway` one of vLLM's structured-output backends, by entry points that each process of an engine calls.

vLLM has no registry of them (0.32, 0.33): the names stand in a type, the classes in one method. So three places are
added to, each for requests of this backend only. Where vLLM no longer looks as it did, that is said and nothing is
touched: whoever does not ask for this backend must not suffer from it. Every process of an engine runs this.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from .asked import Asked

__all__ = ["NAME", "early", "register"]

NAME = "guideway"

_log = logging.getLogger("guideway")


def register() -> None:
    """Add the backend; once in a process, however often it is called."""
    try:
        from vllm.config import StructuredOutputsConfig
        from vllm.sampling_params import SamplingParams
        from vllm.v1.structured_output import StructuredOutputManager

        _accept_name(StructuredOutputsConfig)
        _wrap(SamplingParams, "_validate_structured_outputs", _validated)
        _wrap(StructuredOutputManager, "grammar_init", _with_backend)
    except (ImportError, AttributeError, TypeError) as error:
        _log.warning("this vLLM has no place for the structured-output backend %r: %s", NAME, error)


def early() -> None:
    """None: this is no platform. But platforms are asked for while vLLM's configurations are imported, and general
    plugins first when `LLM(structured_outputs_config=...)` has read its own: so the name is made known here.
    """
    try:
        from vllm.config.structured_outputs import StructuredOutputsConfig

        _accept_name(StructuredOutputsConfig)
    except (ImportError, AttributeError, TypeError) as error:
        _log.warning("this vLLM does not take the name %r in time for LLM(...): %s", NAME, error)


def _accept_name(config: Any) -> None:
    """The option `backend` takes our name too, on the command line and in configurations."""
    from pydantic.dataclasses import rebuild_dataclass

    names = get_args(config.__dataclass_fields__["backend"].type)
    if NAME in names:
        return
    wider = Literal.__getitem__((*names, NAME))
    config.__annotations__["backend"] = config.__dataclass_fields__["backend"].type = wider
    rebuild_dataclass(config, force=True)


def _wrap(owner: Any, name: str, wrapper: Any) -> None:
    original = getattr(owner, name)
    if not hasattr(original, "__guideway__"):

        @functools.wraps(original)
        def wrapped(self: Any, *arguments: Any, **named: Any) -> None:
            wrapper(functools.partial(original, self), self, *arguments, **named)

        wrapped.__guideway__ = True  # type: ignore[attr-defined]  # so that it is not wrapped again
        setattr(owner, name, wrapped)


def _validated(original: Any, params: Any, model: Any, config: Any, tokenizer: Any) -> None:
    """A request's constraint is compiled where it comes in, so that what is wrong with it is its own answer."""
    from vllm.exceptions import VLLMValidationError

    from .asked import asked, structured

    if tokenizer is not None and params.extra_args:
        _check("vllm_xargs", lambda: asked(params), tokenizer)
    options = params.structured_outputs
    if config is None or options is None or config.backend != NAME:
        original(model, config, tokenizer)
        return
    if options._backend not in (None, NAME):
        raise VLLMValidationError(f"a request cannot choose a backend of its own; this engine has {NAME!r}")
    if tokenizer is None or model.is_diffusion:
        raise VLLMValidationError(f"the backend {NAME!r} needs a tokenizer, and a model that writes from left to right")
    options._backend = NAME
    _check("structured_outputs", lambda: structured(options), tokenizer)


def _check(field: str, ask: Callable[[], Asked | None], tokenizer: Any) -> None:
    from vllm.exceptions import VLLMValidationError

    from guideway.errors import GuidewayError

    from .asked import automaton_of, tokenizer_of

    try:
        if (given := ask()) is not None:
            automaton_of(given, tokenizer_of(tokenizer))
    except GuidewayError as error:
        raise VLLMValidationError(f"{type(error).__name__}: {error}", parameter=field) from error


def _with_backend(original: Any, manager: Any, request: Any) -> None:
    """The manager's backend is ours, if the first request that needs one asks for it."""
    asked = request.structured_output_request
    if manager.backend is None and asked is not None and asked.params._backend == NAME:
        from .backend import GuidewayBackend

        size = manager.vllm_config.model_config.get_vocab_size()
        manager.backend = GuidewayBackend(manager.vllm_config, tokenizer=manager.tokenizer, vocab_size=size)
        manager.backend_name = NAME
    original(request)
