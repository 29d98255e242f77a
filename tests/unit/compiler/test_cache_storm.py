"""A short run of the stress test of `make storm`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
def test_a_short_storm() -> None:
    # In a separate process: the storm forks, and the test process may have threads.
    words = ["--processes", "4", "--compiles", "25", "--kills", "3"]
    command = [sys.executable, "-m", "tests.campaigns.cache_storm", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "'compiled': 100" in done.stdout
