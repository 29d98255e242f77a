"""What the adapters of engines that serve requests share: what is asked for, and where each sequence stands in it."""

from __future__ import annotations

from .follower import Follower, fill
from .requests import KINDS, requested

__all__ = ["KINDS", "Follower", "fill", "requested"]
