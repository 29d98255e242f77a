"""Constraints inside vLLM: a structured-output backend, and a logits processor for both of its runners.

Importing this package registers the backend, as vLLM's processes do through the entry point of `plugin`.

plugin.py     registration
backend.py    the structured-output backend
checks.py     validation of requests when they arrive
requested.py  the constraint of a request
masking.py    masks on the device
processor.py  the logits processor
runner_v1.py  its parts for the V1 runner
runner_v2.py  its parts for the V2 runner
"""

from __future__ import annotations

from guideway.integrations.vllm.plugin import register

__all__ = ["register"]

register()
