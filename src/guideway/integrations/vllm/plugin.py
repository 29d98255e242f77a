"""Makes `guideway` one of vLLM's structured-output backends, by entry points that each process of an engine calls.

vLLM has no registry of them (0.32, 0.33): the names stand in a type, the classes in one method. So four places are
added to, each for requests of this backend only. Where vLLM no longer looks as it did, that is said and nothing is
touched: whoever does not ask for this backend must not suffer from it. Every process of an engine runs this.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Literal, get_args

from guideway.integrations.vllm.checks import NAME, ahead, validated

__all__ = ["early", "register"]

_log = logging.getLogger("guideway")


def register() -> None:
    """Add the backend; once in a process, however often it is called."""
    try:
        from vllm.config import StructuredOutputsConfig
        from vllm.sampling_params import SamplingParams
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.structured_output import StructuredOutputManager

        _accept_name(StructuredOutputsConfig)
        _wrap(SamplingParams, "_validate_structured_outputs", validated)
        _wrap(AsyncLLM, "add_request", ahead)
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
        def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
            return wrapper(functools.partial(original, self), self, *arguments, **named)

        wrapped.__guideway__ = True  # type: ignore[attr-defined]  # so that it is not wrapped again
        setattr(owner, name, wrapped)


def _with_backend(original: Any, manager: Any, request: Any) -> None:
    """The manager's backend is ours, if the first request that needs one asks for it."""
    asked = request.structured_output_request
    if manager.backend is None and asked is not None and asked.params._backend == NAME:
        from guideway.integrations.vllm.backend import GuidewayBackend

        size = manager.vllm_config.model_config.get_vocab_size()
        manager.backend = GuidewayBackend(manager.vllm_config, tokenizer=manager.tokenizer, vocab_size=size)
        manager.backend_name = NAME
    original(request)
