"""`make hostile`: hostile input of every kind, one line per class.

python -m tests.campaigns.hostile [--only CLASS] [--seed 0] [--jobs 2]

Each class runs in a separate process. The batches, whose steps are timed, run alone; the others run concurrently.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.campaigns.hostile_checks import (
    batches,
    completions,
    constraints,
    deep,
    exports,
    faults,
    files,
    memory,
    readers,
    scanners,
    stacks,
)

CHECKS: dict[str, Callable[[int], tuple[bool, str]]] = {
    **stacks.CHECKS,  # the longest ones first
    **memory.CHECKS,
    **faults.CHECKS,
    **constraints.CHECKS,
    **exports.CHECKS,
    **completions.CHECKS,
    **deep.CHECKS,
    **scanners.CHECKS,
    **files.CHECKS,
    **readers.CHECKS,
}
TIMED: dict[str, Callable[[int], tuple[bool, str]]] = {
    "batch, asynchronous": batches.asynchronous,
    "batch, vLLM backend": batches.vllm,
}


def main() -> int:
    """Run the checks that the command line names. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile")
    parser.add_argument("--only", default="", help="run the classes whose name begins with this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="the number of classes at a time")
    parser.add_argument("--one", default="", help="run this class in this process")
    given = parser.parse_args()
    if given.one:
        os._exit(_one(given.one, given.seed))  # threads may still compile constraints of cancelled calls
    start = time.perf_counter()
    failed = sum(map(_run, _wanted(TIMED, given.only, given.seed)))
    with ThreadPoolExecutor(given.jobs) as pool:
        failed += sum(pool.map(_run, _wanted(CHECKS, given.only, given.seed)))
    print(f"{failed} classes failed; {time.perf_counter() - start:.0f} s, CPU {sum(os.times()[:4]):.0f} s")
    return int(failed > 0)


def _wanted(checks: Iterable[str], only: str, seed: int) -> list[tuple[str, int]]:
    return [(name, seed) for name in checks if name.startswith(only)]


def _run(wanted: tuple[str, int]) -> bool:
    """Run a class in a process, and print its line. Returns whether it failed."""
    name, seed = wanted
    command = [sys.executable, "-m", "tests.campaigns.hostile", "--one", name, "--seed", str(seed)]
    environment = os.environ | (memory.ENVIRONMENT if name in memory.CHECKS else {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    line = done.stdout.strip() or f"FAIL {name}: status {done.returncode}: {done.stderr.strip()[-300:]}"
    print(line, flush=True)
    return done.returncode != 0


def _one(name: str, seed: int) -> int:
    """Run a class, and print its line. Returns the exit status."""
    logging.disable(logging.CRITICAL)  # sequences that end early are what is provoked here
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    try:
        good, line = {**CHECKS, **TIMED}[name](seed)
    except Exception as error:
        good, line = False, f"{type(error).__name__}: {error}"
    seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - cpu
    print(f"{'ok  ' if good else 'FAIL'} {name}: {line} [{seconds:.0f} s, CPU {cpu:.0f} s]", flush=True)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
