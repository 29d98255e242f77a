"""The kernel without memory: an allocation that fails is a MemoryError, and changes nothing."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.campaigns.hostile_checks import allocations


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("c++") is None, reason="needs LD_PRELOAD and a compiler")
def test_failing_allocations_raise_and_change_nothing() -> None:
    good, line = allocations.run(seed=1, step=199)
    assert good, line
