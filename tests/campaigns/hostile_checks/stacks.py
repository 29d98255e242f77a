"""The tests of constraints, compiler and matchers in threads with a stack of 128 KB, as on musl and in some servers."""

from __future__ import annotations

import re
import subprocess
import sys

__all__ = ["CHECKS", "OTHER_STACKS", "TESTS"]

TESTS = [
    "tests/unit/compiler",
    "tests/unit/constraints",
    "tests/unit/frontends",
    "tests/unit/grammar",
    "tests/unit/jsontext",
    "tests/unit/masks",
    "tests/unit/test_dsl.py",
    "tests/unit/test_matcher.py",
]

OTHER_STACKS = ["allocation_faults", "cache_storm", "concurrency", "replicas"]
"""Files of `tests/unit/compiler` whose tests run nearly all of their code in processes and threads that they start."""


def _check(seed: int) -> tuple[bool, str]:
    parts = [["-n", "2", "--dist", "worksteal"], ["-m", "not engine and not slow"], ["-q", "--stack-kb", "128"]]
    left_out = [f"--ignore=tests/unit/compiler/test_{name}.py" for name in OTHER_STACKS]
    arguments = [*(one for part in parts for one in part), *left_out]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, *TESTS], capture_output=True, text=True, check=False
    )
    found = re.findall(r"^.*\b(?:passed|failed|error)\b.*$", done.stdout, re.MULTILINE)
    crashed = re.findall(r"worker '\w+' crashed while running '([^']+)'", done.stdout)
    failed = f"; CRASHED: {', '.join(crashed[:4])}" if crashed else ""
    return done.returncode == 0, f"{found[-1] if found else f'status {done.returncode}'}{failed}"


CHECKS = {"stacks of 128 KB": _check}
