"""Search for probable texts: `beam_search` and sequential Monte Carlo (`smc`)."""

from __future__ import annotations

from guideway.generation.beam import beam_search
from guideway.generation.sequential_monte_carlo import Posterior, rejection, smc

__all__ = ["Posterior", "beam_search", "rejection", "smc"]
