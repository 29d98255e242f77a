"""Faults by injection: file operations, thread creation and memory fail at every call of a scripted run.

Each fault gives the result of a run without it, or a typed error; the next run without a fault gives the same result, and
no file descriptor, thread or temporary file is left.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import guideway as gw
from guideway import matcher as matchers
from guideway.testing import ConstantModel
from tests.campaigns.hostile_checks import allocations

__all__ = ["CHECKS"]

TYPED = (gw.GuidewayError, OSError, MemoryError, RuntimeError)
TABLE = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
SCHEMA = {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(60)}, "required": ["p1", "p2"]}


class Fault:
    """Fails call number `at` of the functions that it replaces."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.at, self.error, self.calls = at, error, 0

    def over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the fault."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise self.error
            return function(*args, **kwargs)

        return called


def script(folder: Path) -> list[Any]:
    """Compile with the disk cache, fill masks with threads, save and load a session."""
    found: list[Any] = []
    automaton = gw.compile(gw.JsonSchema(SCHEMA), TABLE)
    rows = np.zeros((8, 9), np.uint32)
    matchers.fill_masks([automaton.matcher() for _ in range(8)], rows, threads=4)
    found.append(rows.tobytes())
    model = ConstantModel(TABLE)
    session = model.session()
    session.feed("x")
    session.save(folder / "session.bin")
    found.append(model.load_session(folder / "session.bin").tokens)
    found.append(asyncio.run(gw.agenerate(model, "x", gw.Regex("[a-c]{4}"), seed=1)))
    return found


FILE_CALLS: list[tuple[Any, str]] = [
    *(
        (os, name)
        for name in ("open", "write", "fsync", "replace", "rename", "unlink", "makedirs", "mkdir", "stat", "scandir")
    ),
    (builtins, "open"),
    (io, "open"),
]


@contextlib.contextmanager
def _replaced(fault: Fault, places: list[tuple[Any, str]]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for module, name in places:
            if hasattr(module, name):
                stack.enter_context(patch.object(module, name, fault.over(getattr(module, name))))
        yield


def _injected(places: list[tuple[Any, str]], error: Callable[[], BaseException], runs: int) -> tuple[bool, str]:
    failed: list[str] = []
    refused = survived = 0
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, {"GUIDEWAY_CACHE_DIR": cache}):
        with tempfile.TemporaryDirectory() as folder:
            expected = script(Path(folder))
        descriptors = len(os.listdir("/proc/self/fd"))
        for at in range(1, runs + 1):
            fault = Fault(at, error())
            with tempfile.TemporaryDirectory() as folder:
                try:
                    with _replaced(fault, places):
                        found: Any = script(Path(folder))
                    survived += 1
                    if found != expected:
                        failed.append(f"call {at}: another result")
                except TYPED:
                    refused += 1
                except Exception as other:
                    failed.append(f"call {at}: {type(other).__name__}: {other}")
                left = [name for name in os.listdir(folder) if name != "session.bin"]
                if left:
                    failed.append(f"call {at}: left {left}")
                if script(Path(folder)) != expected:
                    failed.append(f"call {at}: the next run differs")
            if fault.calls < at:
                break
        if len(os.listdir("/proc/self/fd")) > descriptors + 2:
            failed.append("file descriptors are left open")
    verdict = f"; FAILED: {'; '.join(failed[:4])}" if failed else ""
    return not failed and refused > 0, f"{refused} runs refused, {survived} unaffected{verdict}"


_LIMITED = """
import resource, sys
import numpy as np
import guideway as gw
from guideway import matcher
table = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
base = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
spare = int(sys.argv[1]) << 10
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (base + spare, hard))
done = 0
for number in range(40):
    try:
        found = gw.compile(gw.Regex("(a|b)*a(a|b){%d}" % (number * 40)), table, cache=False).matcher()
        rows = np.zeros((64, 9), np.uint32)
        matcher.fill_masks([found.fork() for _ in range(64)], rows, threads=64)
        for byte in b"ab" * 200:
            found.advance(byte)
            found.fill_mask(rows[0])
        done += 1
    except (gw.GuidewayError, MemoryError, RuntimeError, OSError):
        pass
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
found = gw.compile(gw.Regex("[a-c]{3}x"), table, cache=False).matcher()
assert found.completion() == b"aaax", found.completion()
print(done)
"""


def _limited(seed: int) -> tuple[bool, str]:
    failed, served = [], []
    for spare in (256, 1_024, 4_096, 16_384, 65_536, 262_144):
        run = subprocess.run(
            [sys.executable, "-c", _LIMITED, str(spare)], capture_output=True, text=True, check=False, timeout=120
        )
        if run.returncode:
            failed.append(f"{spare} KiB: status {run.returncode}: {run.stderr.strip().splitlines()[-1:]}")
        else:
            served.append(f"{spare} KiB: {run.stdout.strip()}")
    verdict = f"; FAILED: {'; '.join(failed)}" if failed else ""
    return not failed, f"address space left and constraints served: {', '.join(served)}{verdict}"


CHECKS = {
    "faults, files": lambda seed: _injected(FILE_CALLS, lambda: OSError(28, "No space left on device"), 60),
    "faults, threads": lambda seed: _injected(
        [(threading.Thread, "start")], lambda: RuntimeError("can't start new thread"), 10
    ),
    "faults, memory": _limited,
    "faults, allocations in the kernel": lambda seed: allocations.run(seed, step=3),
}
