"""For tests of engines, and of what is built on them: checks of the contracts, and models without weights."""

from __future__ import annotations

from guideway.testing.constant import ConstantEngine, ConstantModel
from guideway.testing.engines import check_step_engine

__all__ = ["ConstantEngine", "ConstantModel", "check_step_engine"]
