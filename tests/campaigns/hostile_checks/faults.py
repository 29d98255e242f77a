"""Faults by injection: file operations, thread creation and memory fail at every call of a scripted run.

Each fault gives the result of a run without it, or a typed error; the next run without a fault gives the same result, and
no file descriptor, thread or temporary file is left.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import gc
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from starlette.testclient import TestClient

import guideway as gw
from guideway import caching, matcher as matchers
from guideway.batch import run
from guideway.pool import ModelSpec
from guideway.server import FixedModels, ServerSettings, create_app
from guideway.testing import ConstantModel
from tests.campaigns.hostile_checks import allocations
from tests.helpers.toy_models import toy_model

__all__ = ["CHECKS"]

TYPED = (gw.GuidewayError, OSError, MemoryError, RuntimeError)
TABLE = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])


LARGE = {"type": "object", "properties": {f"p{n}": {"enum": [n, str(n)]} for n in range(900)}, "required": ["p0"]}


_PROCESS_FILES = {subprocess.__file__, asyncio.base_subprocess.__file__, asyncio.unix_events.__file__}


class Fault:
    """Fails call number `at` of the functions that it replaces.

    `is_in_subprocess`: whether this call was made by Python's own modules that start a process.
    """

    def __init__(self, at: int, error: BaseException) -> None:
        self.at, self.error, self.calls = at, error, 0
        self.is_in_subprocess = False

    def over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the fault."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                self.is_in_subprocess = sys._getframe(1).f_code.co_filename in _PROCESS_FILES
                raise self.error
            return function(*args, **kwargs)

        return called


MOST_OF_SUBPROCESS = 2
"""The descriptors that a fault inside Python's own `subprocess` may leave: the ends of the pipe or socket pair that it
connects to the process at that moment. It closes the others, and no other code has the numbers of these two."""

MOST_IN_TOTAL = 3
"""The descriptors that all faults of a check together may leave: two calls of `subprocess` leave two pipe ends and one."""


def descriptors() -> dict[str, str]:
    """Return the open file descriptors of this process, and what they refer to."""
    gc.collect()
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the folder itself
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def left_open(before: dict[str, str], fault: Fault) -> list[str]:
    """Return what a run left open, without the descriptors that `MOST_OF_SUBPROCESS` allows."""
    added = [target for number, target in descriptors().items() if before.get(number) != target]
    ours = [one for one in added if not one.startswith(("pipe:", "socket:"))]
    pipes = [one for one in added if one not in ours]
    return ours + (pipes[MOST_OF_SUBPROCESS:] if fault.is_in_subprocess else pipes)


def script(folder: Path) -> list[Any]:
    """Compile with the disk cache, fill masks with threads, save and load a session."""
    found: list[Any] = []
    caching.clear_all()  # programs are found on disk
    automaton = gw.compile(gw.JsonSchema(LARGE), TABLE)
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


LINES = "".join(
    json.dumps({"custom_id": f"r{number}", "prompt": "x", "regex": "[ab]{4}", "seed": number}) + "\n"
    for number in range(4)
)
BODY = {"model": "m", "prompt": "x", "max_tokens": 6, "seed": 1, "regex": "[ab]{4}"}


def services(folder: Path) -> list[Any]:
    """Run a batch from file to file, a pool with a lease, and a server with a request; construct known constraints."""
    found: list[Any] = []
    requests, results = folder / "requests.jsonl", folder / "results.jsonl"
    requests.write_text(LINES, "utf-8")
    model = toy_model(TABLE, 1)
    if errors := run(model, requests, results).errors:
        raise gw.errors.EngineError(f"{errors} requests have an error as result")
    found.append(sorted(results.read_text("utf-8").splitlines()))
    with gw.Pool(10, {"a": ModelSpec(lambda: toy_model(TABLE, 1), bytes=6)}) as pool, pool.lease("a") as leased:
        found.append(gw.generate(leased, "x", gw.Regex("[ab]{3}"), seed=1))
    with TestClient(create_app(FixedModels({"m": model}), ServerSettings()), raise_server_exceptions=False) as client:
        answer = client.post("/v1/completions", json=BODY)
        if answer.status_code != 200:
            raise gw.errors.EngineError(answer.json()["error"]["message"])
        found.append(answer.json()["choices"])
    caching.clear_all()  # the next constraint is found on disk
    found.append(gw.compile(gw.JsonSchema(LARGE), TABLE).matcher().completion())
    return found


def _too_long(signum: int, frame: object) -> None:
    raise TimeoutError("the run does not end")


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


def _injected(
    script: Callable[[Path], list[Any]],
    places: list[tuple[Any, str]],
    error: Callable[[], BaseException],
    runs: int,
    files: Sequence[str] = (),
) -> tuple[bool, str]:
    """Runs the script once per call, and this call fails; if this has an effect, the script runs again without a fault.

    `files`: the files that remain in its folder.
    """
    failed: list[str] = []
    refused = survived = 0
    signal.signal(signal.SIGALRM, _too_long)
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, {"GUIDEWAY_CACHE_DIR": cache}):
        with tempfile.TemporaryDirectory() as folder:
            expected = script(Path(folder))
        at_first = len(descriptors())
        for at in range(1, runs + 1):
            fault, before = Fault(at, error()), descriptors()
            signal.alarm(60)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    with _replaced(fault, places):
                        found: Any = script(Path(folder))
                    survived += 1
                    if found != expected:
                        failed.append(f"call {at}: another result")
                except TimeoutError as other:
                    failed.append(f"call {at}: {other}")
                    found = None
                except TYPED:
                    refused += 1
                    found = None
                except Exception as other:
                    failed.append(f"call {at}: {type(other).__name__}: {other}")
                    found = None
                left = [name for name in os.listdir(folder) if name not in files]
                if left:
                    failed.append(f"call {at}: left {left}")
                # If the fault had no effect, the run for the next call, or the last run, shows a changed state.
                if found != expected and script(Path(folder)) != expected:
                    failed.append(f"call {at}: the next run differs")
            signal.alarm(0)
            if kept := left_open(before, fault):
                failed.append(f"call {at}: left open {kept}")
            if fault.calls < at:
                break
        with tempfile.TemporaryDirectory() as folder:
            if script(Path(folder)) != expected:
                failed.append("the last run differs")
        if (kept_open := len(descriptors()) - at_first) > MOST_IN_TOTAL:
            failed.append(f"{kept_open} descriptors are left open in total")
    verdict = f"; FAILED: {'; '.join(failed[:4])}" if failed else ""
    return not failed and refused > 0, f"{refused} runs refused, {survived} unaffected{verdict}"


_LIMITED = """
import resource, sys
import numpy as np
import guideway as gw
from guideway import matcher
table = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
# Imports all modules: after a failed import of a package of the standard library, Python cannot import it any more.
gw.compile(gw.Regex("a"), table, cache=False).matcher()
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


def _full() -> OSError:
    return OSError(28, "No space left on device")


def _no_thread() -> RuntimeError:
    return RuntimeError("can't start new thread")


def _no_memory() -> MemoryError:
    return MemoryError()


THREADS = [(threading.Thread, "start")]
ARRAYS = [(np, "zeros"), (np, "empty"), (np, "full"), (np, "asarray")]
SESSION, RESULTS = ("session.bin",), ("requests.jsonl", "results.jsonl")

CHECKS = {
    "faults, files": lambda seed: _injected(script, FILE_CALLS, _full, 300, SESSION),
    "faults, threads": lambda seed: _injected(script, THREADS, _no_thread, 10, SESSION),
    "faults, arrays": lambda seed: _injected(script, ARRAYS, _no_memory, 60, SESSION),
    "faults, files of services": lambda seed: _injected(services, FILE_CALLS, _full, 300, RESULTS),
    "faults, threads of services": lambda seed: _injected(services, THREADS, _no_thread, 20, RESULTS),
    "faults, arrays of services": lambda seed: _injected(services, ARRAYS, _no_memory, 60, RESULTS),
    "faults, memory": _limited,
    "faults, allocations in the kernel": lambda seed: allocations.run(seed),
}
