"""The ExLlamaV2 integration.

filter.py     a filter for all of its generators
processor.py  a logits processor for its sampler
"""

from __future__ import annotations

from guideway.integrations.exllamav2.filter import ConstraintFilter
from guideway.integrations.exllamav2.processor import Settings, logits_processor

__all__ = ["ConstraintFilter", "Settings", "logits_processor"]
