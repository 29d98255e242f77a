"""`make hostile`: hostile input of every kind, one line per class.

python -m tests.campaigns.hostile [--only CLASS] [--seed 0]
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time

from tests.campaigns.hostile_checks import batches, constraints, faults, memory, readers, scanners, stacks

CHECKS = {
    **constraints.CHECKS,
    **scanners.CHECKS,
    **readers.CHECKS,
    "batch, asynchronous": batches.asynchronous,
    "batch, vLLM backend": batches.vllm,
    **faults.CHECKS,
    **memory.CHECKS,
    **stacks.CHECKS,
}


def main() -> int:
    """Run the checks that the command line names. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.hostile")
    parser.add_argument("--only", default="", help="run the classes whose name begins with this")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # sequences that end early are what is provoked here
    failed, total = 0, 0.0
    for name, check in CHECKS.items():
        if not name.startswith(given.only):
            continue
        start, cpu = time.perf_counter(), _cpu_seconds()
        try:
            good, line = check(given.seed)
        except Exception as error:
            good, line = False, f"{type(error).__name__}: {error}"
        failed += not good
        seconds, cpu = time.perf_counter() - start, _cpu_seconds() - cpu
        print(f"{'ok  ' if good else 'FAIL'} {name}: {line} [{seconds:.0f} s, CPU {cpu:.0f} s]", flush=True)
        total += cpu
    print(f"CPU {total:.0f} s")
    return int(failed > 0)


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    sys.exit(main())
