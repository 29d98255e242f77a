"""The vLLM integration: a structured-output backend, and a logits processor for both model runners.

Importing this package registers the backend. vLLM's processes register it by the entry point of `plugin`.

plugin.py     registration
backend.py    the structured-output backend
checks.py     validation of requests on arrival
requested.py  the constraint of a request
masking.py    masks on the device
processor.py  the logits processor
runner_v1.py  its implementation for the V1 runner
runner_v2.py  its implementation for the V2 runner
"""

from __future__ import annotations

from guideway.integrations.vllm.plugin import register

__all__ = ["register"]

register()
