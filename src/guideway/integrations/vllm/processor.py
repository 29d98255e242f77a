"""`LogitsProcessor`: one class for both model runners of vLLM, for the entry point `vllm.logits_processors`.

Each runner loads every class of the entry point, and fails for a class that is made for the other runner only.
"""

from __future__ import annotations

from typing import Any

from guideway.integrations.vllm.runner_v1 import RunnerV1
from guideway.integrations.vllm.runner_v2 import RunnerV2

__all__ = ["LogitsProcessor"]


class LogitsProcessor(RunnerV1, RunnerV2):
    """Applies the constraints in the `extra_args` of requests: `guideway_json`, `guideway_regex` and so on.

    Prefer structured outputs of vLLM (`plugin.py`) for constraints that they can express. They are compiled while the
    model runs, support draft tokens and reasoning, and report an error during generation as the response. With this
    processor, such an error ends the text and is only logged.
    """

    def __init__(self, vllm_config: Any, where: Any, is_pin_memory: bool | None = None) -> None:
        """Initialize the part for the runner that makes the object.

        The arguments of the V1 runner are (config, device, whether memory is pinned), those of the V2 runner (config,
        states of the requests).
        """
        if is_pin_memory is None:
            RunnerV2.__init__(self, vllm_config, where)
        else:
            RunnerV1.__init__(self, vllm_config, where, is_pin_memory)

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """Mask logits, float32 [rows, vocabulary], in place. `ctx`: only the V2 runner passes it."""
        return RunnerV1.apply(self, logits) if ctx is None else RunnerV2.apply(self, logits, ctx)
