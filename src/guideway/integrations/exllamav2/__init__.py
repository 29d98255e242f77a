"""The ExLlamaV2 integration.

filter.py     `ConstraintFilter`: a filter for all generators of ExLlamaV2
processor.py  `logits_processor`: a logits processor for the sampler of ExLlamaV2
"""

from __future__ import annotations

from guideway.integrations.exllamav2.filter import ConstraintFilter
from guideway.integrations.exllamav2.processor import Settings, logits_processor

__all__ = ["ConstraintFilter", "Settings", "logits_processor"]
