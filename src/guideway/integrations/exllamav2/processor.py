"""A logits processor for ExLlamaV2's sampler. It works in every generator, with one sequence or a batch."""

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
class Settings(ExLlamaV2Sampler.Settings):  # type: ignore[misc]  # ExLlamaV2 gives no types
    """The sampler's settings, with a function of (ids [rows, tokens], logits [rows, vocabulary]) -> logits.

    It runs before the sampler's own stages, in every generator that gets these settings. None has no effect.
    """

    logits_processor: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None


class ConstrainedLogits(Chained):
    """See `logits_processor`. `timings`: where the time of its calls was spent."""

    def __init__(self, processor: Processor, before: Sequence[Function]) -> None:
        super().__init__(processor, before)
        self._apply = TorchMasks(in_place=True)

    def __call__(self, input_ids: Any, logits: Any) -> Any:
        """`input_ids`: int64 [rows, tokens]; `logits`: float32 [rows, vocabulary], masked in place."""
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
    """Constrain one generation of ExLlamaV2: `Settings(logits_processor=...)` of this module.

    Args:
        constraints: One for all prompts, or a list with one per prompt (None: free).
        tokenizer: The tokenizer of the model.
        max_tokens: The maximum number of tokens of the generation. Each text is complete within it.
        before: Functions of (ids, logits) that run first.

    Raises:
        ConstraintError: As `guideway.compile` does.
        BudgetTooSmallError: The shortest complete output needs more than `max_tokens`.
        ProcessorReuseError: In use: a second generation without `reset()`.
        NoAllowedTokenError: In use: another processor excluded all allowed tokens.
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before)


def _install() -> None:
    """Wrap the one sampling function of ExLlamaV2 (0.3.2), which has no hook, so that it calls the processor first."""
    original = ExLlamaV2Sampler.sample

    @functools.wraps(original)
    def sample(logits: Any, settings: Any, sequence_ids: Any, *arguments: Any, **named: Any) -> Any:
        processor = getattr(settings, "logits_processor", None)
        healing = named.get("prefix_token", arguments[2] if len(arguments) > 2 else None)
        if processor is None or healing is not None:  # a healed token still belongs to the prompt
            return original(logits, settings, sequence_ids, *arguments, **named)
        if settings.cfg_scale is None:
            logits = processor(sequence_ids, logits[:, -1])[:, None]
            return original(logits, settings, sequence_ids, *arguments, **named)
        scale, held = settings.cfg_scale, copy.copy(settings)
        held.cfg_scale = None  # the sampler merges two prompts into one row; tokens masked in both would become NaN
        both = torch.log_softmax(logits[:, -1], dim=-1)
        mixed = processor(sequence_ids[:1], (scale * both[0] + (1 - scale) * both[1])[None])
        try:
            return original(mixed[:, None], held, sequence_ids, *arguments, **named)
        finally:
            vars(settings).update(vars(held) | {"cfg_scale": scale})  # state that the sampler stores in its settings

    ExLlamaV2Sampler.sample = staticmethod(sample)


_install()
