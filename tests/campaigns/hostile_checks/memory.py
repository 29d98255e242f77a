"""Resident memory while many different constraints are compiled, aborted, refused and cancelled in one process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
from pathlib import Path
from typing import Any

import numpy as np

import guideway as gw
from guideway._kernel import WorkDeferred, bound_work
from guideway.testing import ConstantModel

__all__ = ["CHECKS"]

COUNT = 20_000
TASKS = 16  # that are cancelled together
MOST_BYTES = 350 << 20
"""The growth of resident memory after the first tenth of the constraints: the budgets of stores and caches."""


def resident() -> int:
    """Return the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def constraint(number: int, rng: random.Random) -> Any:
    """Return a constraint that differs from those of all other numbers."""
    kind = number % 4
    if kind == 0:
        return gw.Regex(f"k{number}([a-z]{{1,{rng.randrange(2, 30)}}}|{number})*")
    if kind == 1:
        return gw.Gbnf(f'root ::= "{number}" root? [a-z]{{1,{rng.randrange(2, 9)}}}')
    names = {
        f"p{number}_{n}": {"type": rng.choice(("integer", "string", "boolean"))} for n in range(rng.randrange(1, 6))
    }
    return gw.JsonSchema({"type": "object", "properties": names, "required": list(names)[:2]})


def _served(number: int, rng: random.Random, table: gw.Vocabulary, row: Any) -> None:
    matcher = gw.compile(constraint(number, rng), table, cache=False).matcher()
    matcher.fill_mask(row)
    for token_id in matcher.completion()[:6]:
        matcher.advance(token_id)
        matcher.fill_mask(row)


def _aborted(number: int, rng: random.Random, table: gw.Vocabulary, row: Any) -> None:
    kind = number % 3
    if kind == 0:  # cut off
        bound_work(rng.randrange(1, 30_000))
        try:
            _served(number, rng, table, row)
        finally:
            bound_work(None)
    elif kind == 1:  # refused by the compiler
        gw.compile(gw.Regex(f"{number}a").__and__(gw.Regex(f"{number}b")), table, cache=False)
    else:  # refused by the scanner
        gw.Regex(f"{number}(a|b" * rng.randrange(1, 40))


def _check(use: Any, seed: int, count: int) -> tuple[bool, str]:
    rng = random.Random(seed)
    table = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
    row = np.zeros(9, np.uint32)
    sizes = []
    for number in range(count):
        with contextlib.suppress(gw.GuidewayError, WorkDeferred):
            use(number, rng, table, row)
        if number % (count // 10) == count // 10 - 1:
            gc.collect()
            sizes.append(resident())
    shown = " ".join(f"{size >> 20}" for size in sizes)
    return max(sizes) - sizes[0] <= MOST_BYTES, f"{count:,} constraints, MiB at each tenth: {shown}"


async def _cancelled(seed: int, count: int) -> list[int]:
    """Begin the generation for each constraint, and cancel it. Returns the resident memory at each tenth."""
    rng = random.Random(seed)
    model = ConstantModel(gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[]))
    sizes = []
    for start in range(0, count, TASKS):
        tasks = [
            asyncio.ensure_future(gw.acomplete(model, "x", constraint(number, rng), max_tokens=400))
            for number in range(start, start + TASKS)
        ]
        await asyncio.sleep(rng.choice((0, 0.001, 0.01)))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (start + TASKS) * 10 // count > len(sizes):
            gc.collect()
            sizes.append(resident())
    return sizes


def _check_cancelled(seed: int) -> tuple[bool, str]:
    sizes = asyncio.run(_cancelled(seed, COUNT))
    shown = " ".join(f"{size >> 20}" for size in sizes)
    return max(sizes) - sizes[0] <= MOST_BYTES, f"{COUNT:,} constraints, MiB at each tenth: {shown}"


CHECKS = {
    "memory, cancelled": _check_cancelled,
    "memory, served": lambda seed: _check(_served, seed, COUNT),
    "memory, aborted": lambda seed: _check(_aborted, seed, COUNT),
}
