"""One class for both of vLLM's model runners: entry point `vllm.logits_processors`.

Each runner loads what stands there and refuses, or breaks on, a class made for the other one.
"""

from __future__ import annotations

from typing import Any

from guideway.integrations.vllm.runner_v1 import RunnerV1
from guideway.integrations.vllm.runner_v2 import RunnerV2

__all__ = ["LogitsProcessor"]


class LogitsProcessor(RunnerV1, RunnerV2):
    """Holds requests to the constraints in their `extra_args`: `guideway_json`, `guideway_regex` and so on.

    What structured outputs of vLLM can say is better said there (`plugin`): they are compiled beside the model's steps,
    know drafts and reasoning, and an error in the middle is the request's answer. Here it ends the text, and is logged.
    """

    def __init__(self, vllm_config: Any, where: Any, is_pin_memory: bool | None = None) -> None:
        """V1: (config, device, whether memory is pinned). V2: (config, states of the requests)."""
        if is_pin_memory is None:
            RunnerV2.__init__(self, vllm_config, where)
        else:
            RunnerV1.__init__(self, vllm_config, where, is_pin_memory)

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """Mask the logits, float32 [rows, vocabulary], in place."""
        return RunnerV1.apply(self, logits) if ctx is None else RunnerV2.apply(self, logits, ctx)
