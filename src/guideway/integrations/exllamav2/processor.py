"""`logits_processor`: a logits processor for the sampler of ExLlamaV2, in every generator, also for batches."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from exllamav2.generator.sampler import ExLlamaV2Sampler

from guideway.integrations._common import Chained, Function, Processor, no_token_left
from guideway.masks.torch import TorchMasks

__all__ = ["ConstrainedLogits", "Settings", "logits_processor"]


@dataclass
class Settings(ExLlamaV2Sampler.Settings):  # type: ignore[misc]  # ExLlamaV2 has no type annotations
    """The settings of ExLlamaV2's sampler, with a logits processor.

    Attributes:
        logits_processor: A function of (ids [rows, tokens], logits [rows, vocabulary]) that returns the logits. The
            sampler of every generator with these settings calls it first, except for a token of the prompt (token
            healing). None: no function.
    """

    logits_processor: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None


class ConstrainedLogits(Chained):
    """The processor that `logits_processor` returns."""

    def __init__(self, processor: Processor, before: Sequence[Function]) -> None:
        super().__init__(processor, before)
        self._apply = TorchMasks(in_place=True)

    def __call__(self, input_ids: Any, logits: Any) -> Any:
        """Mask logits, and return them. `input_ids`: int64 [rows, tokens]; `logits`: float32 [rows, vocabulary]."""
        with self._processor:
            logits = self._after_others(input_ids, logits)
            rows, held = self._processor.masks(input_ids.numpy(force=True))
            start = perf_counter()
            found, nothing = self._apply(logits, rows, held)
            self.timings.copy += perf_counter() - start
            if nothing:
                raise no_token_left(nothing[0])
            return found


def logits_processor(
    constraints: object, tokenizer: object, *, max_tokens: int | None = None, before: Sequence[Function] = ()
) -> ConstrainedLogits:
    """Return a processor that constrains one generation of ExLlamaV2, for `Settings(logits_processor=...)`.

    Args:
        constraints: One for all prompts, or a list with one for each prompt (None: no constraint).
        tokenizer: The tokenizer of the model.
        max_tokens: The maximum number of tokens of the generation. Each text is complete within it. None: the generator
            may truncate texts.
        before: Functions of (ids, logits) that are called first and return logits.

    Raises:
        ConstraintError: A constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete output needs more than `max_tokens`.
        ProcessorReuseError: Raised during a second generation without `reset()`.
        NoAllowedTokenError: Raised during generation: another processor excluded all allowed tokens.
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before)


def _install() -> None:
    """Wrap the sampling function of ExLlamaV2 (0.3.2), so that it calls the processor first.

    ExLlamaV2 has no hook for this.
    """
    original = ExLlamaV2Sampler.sample

    @functools.wraps(original)
    def sample(logits: Any, settings: Any, sequence_ids: Any, *arguments: Any, **named: Any) -> Any:
        processor = getattr(settings, "logits_processor", None)
        healing = named.get("prefix_token", arguments[2] if len(arguments) > 2 else None)
        if processor is None or healing is not None:  # token healing draws a token of the prompt
            return original(logits, settings, sequence_ids, *arguments, **named)
        if settings.cfg_scale is None:
            logits = processor(sequence_ids, logits[:, -1])[:, None]
            return original(logits, settings, sequence_ids, *arguments, **named)
        scale, held = settings.cfg_scale, copy.copy(settings)
        held.cfg_scale = None  # with it, the sampler would mix two rows, and -inf in both becomes NaN
        both = torch.log_softmax(logits[:, -1], dim=-1)
        mixed = processor(sequence_ids[:1], (scale * both[0] + (1 - scale) * both[1])[None])
        try:
            return original(mixed[:, None], held, sequence_ids, *arguments, **named)
        finally:
            vars(settings).update(vars(held) | {"cfg_scale": scale})  # copy back the state that the sampler stores

    ExLlamaV2Sampler.sample = staticmethod(sample)


_install()
