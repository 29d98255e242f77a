"""One class for both of vLLM's model runners: entry point `vllm.logits_processors`.

Each runner loads every class of the entry point. It rejects, or fails on, a class for the other runner.
"""

from __future__ import annotations

from typing import Any

from guideway.integrations.vllm.runner_v1 import RunnerV1
from guideway.integrations.vllm.runner_v2 import RunnerV2

__all__ = ["LogitsProcessor"]


class LogitsProcessor(RunnerV1, RunnerV2):
    """Applies the constraints in the `extra_args` of requests: `guideway_json`, `guideway_regex` and so on.

    Prefer structured outputs of vLLM (`plugin`) for constraints that they can express. They are compiled while the
    model runs, support drafts and reasoning, and report an error during generation as the response. Here an error ends
    the text and is logged.
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
