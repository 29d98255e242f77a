"""From logits to a token. Knows no grammar: an illegal token has the logit -inf, and that is all it needs."""

from __future__ import annotations

from guideway.sampling.sampler import Sampler, uniform
from guideway.sampling.stages import min_p, probabilities, temperature, top_k, top_p

__all__ = ["Sampler", "min_p", "probabilities", "temperature", "top_k", "top_p", "uniform"]
