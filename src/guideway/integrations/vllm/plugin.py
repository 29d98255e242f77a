"""Registers `guideway` as a structured-output backend, by entry points that every process of an engine calls.

vLLM (0.32, 0.33) has no registry of backends: their names are in a type annotation, their classes in one method.
Therefore the annotation is extended and four methods are wrapped. The wrappers affect only requests with constraints
of this library. If another version of vLLM does not allow this, a warning is logged, so that other backends still work.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any, Literal, get_args

from guideway.integrations.vllm.checks import NAME, ahead, runnable, validated

__all__ = ["early", "is_loading", "register"]

_log = logging.getLogger("guideway")


def is_loading() -> bool:
    """Return whether vLLM's configuration is being imported at this moment.

    This import loads the platform plugins, and with them this package. `register` would fail then; vLLM calls it later,
    as a general plugin.
    """
    config = sys.modules.get("vllm.config")
    return config is not None and not hasattr(config, "StructuredOutputsConfig")


def register() -> None:
    """Register the backend. Calling it again has no effect."""
    try:
        from vllm.config import StructuredOutputsConfig
        from vllm.sampling_params import SamplingParams
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.input_processor import InputProcessor
        from vllm.v1.structured_output import StructuredOutputManager

        _accept_name(StructuredOutputsConfig)
        _wrap(SamplingParams, "_validate_structured_outputs", validated)
        _wrap(AsyncLLM, "add_request", ahead)
        _wrap(StructuredOutputManager, "grammar_init", _with_backend)
        _wrap(InputProcessor, "_validate_params", runnable)
    except (ImportError, AttributeError, TypeError) as error:
        _log.warning("cannot register the structured-output backend %r with this version of vLLM: %s", NAME, error)


def early() -> None:
    """Register only the name of the backend.

    vLLM calls this function as an entry point for platform plugins. The result None says that this package has no
    platform. General plugins are loaded too late: after `LLM(structured_outputs_config=...)` has validated the name.
    Platform plugins are loaded when vLLM's configuration is imported.
    """
    try:
        from vllm.config.structured_outputs import StructuredOutputsConfig

        _accept_name(StructuredOutputsConfig)
    except (ImportError, AttributeError, TypeError) as error:
        _log.warning("this version of vLLM does not accept the backend name %r in LLM(...): %s", NAME, error)


def _accept_name(config: Any) -> None:
    """Add the name to the allowed values of the option `backend`."""
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

        wrapped.__guideway__ = True  # type: ignore[attr-defined]  # marks wrapped functions
        setattr(owner, name, wrapped)


def _with_backend(original: Any, manager: Any, request: Any) -> None:
    """The replacement of `grammar_init`: create the backend before the first request that selects it.

    It then calls `original`, the replaced method.
    """
    wanted = request.structured_output_request
    if manager.backend is None and wanted is not None and wanted.params._backend == NAME:
        from guideway.integrations.vllm.backend import GuidewayBackend

        size = manager.vllm_config.model_config.get_vocab_size()
        manager.backend = GuidewayBackend(manager.vllm_config, tokenizer=manager.tokenizer, vocab_size=size)
        manager.backend_name = NAME
    original(request)
