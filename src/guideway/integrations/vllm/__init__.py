"""The vLLM integration: a structured-output backend, and a logits processor for both model runners.

Importing this package registers the backend. The processes of vLLM register it by the entry point in `plugin.py`.

plugin.py     registers the backend
backend.py    the structured-output backend
checks.py     checks the constraint of a request when it arrives
requested.py  the constraint of a request
masking.py    applies masks to logits
processor.py  the logits processor
runner_v1.py  its implementation for the V1 runner
runner_v2.py  its implementation for the V2 runner
"""

from __future__ import annotations

from guideway.integrations.vllm.plugin import is_loading, register

__all__ = ["register"]

if not is_loading():
    register()
