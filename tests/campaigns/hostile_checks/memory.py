"""Resident memory while many different constraints are compiled, aborted, refused and cancelled in one process.

The vocabulary has small budgets, which the first constraints fill. Afterwards memory may grow only by fragmentation: the
slope of a line through the sizes of the second half is bounded, and so is the growth in total.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import guideway as gw
from guideway._kernel import KernelVocabulary, WorkDeferred, bound_work
from guideway.compiler import automaton_cache, cache_keys
from guideway.constraints import known
from guideway.testing import ConstantModel

__all__ = ["CHECKS"]

COUNT = 40_000  # the first half fills the caches
TASKS = 16  # that are cancelled together
SAMPLES = 40
BUDGET = 16 << 20  # of cached masks, and of expressions
MOST_BYTES = 200 << 20
"""The growth of resident memory in total: the budgets of the vocabulary and of all caches, and fragmentation."""
MOST_SLOPE = 400.0
"""The growth in the second half, in bytes per constraint. A constraint that is kept takes at least 2,000."""


def table() -> gw.Vocabulary:
    """Return a vocabulary of bytes with small budgets."""
    tokens = [*(bytes([n]) for n in range(256)), b"</s>"]
    made = gw.Vocabulary(tokens, eos_ids=[256], special_ids=[])
    kernel = KernelVocabulary(tokens, [256], [], memo_bytes=BUDGET, store_bytes=BUDGET)
    object.__setattr__(made, "_kernel", kernel)
    return made


def judged(sizes: list[int], count: int) -> tuple[bool, str]:
    """Fit a line to the sizes of the second half, which are at equal distances.

    Args:
        sizes: The resident memory after each part of the constraints.
        count: The number of all constraints.
    """
    half = sizes[len(sizes) // 2 :]
    slope = float(np.polyfit(np.arange(len(half)) * (count / len(sizes)), half, 1)[0])
    growth = max(sizes) - sizes[0]
    shown = " ".join(f"{size >> 20}" for size in sizes[:: len(sizes) // 10])
    good = slope <= MOST_SLOPE and growth <= MOST_BYTES
    return good, (
        f"{count:,} constraints, {slope:.0f} bytes per constraint in the second half (at most {MOST_SLOPE:.0f}),"
        f" growth {growth >> 20} MiB (at most {MOST_BYTES >> 20}), MiB at each tenth: {shown}"
    )


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
    kind = number % 4
    if kind == 0:  # cut off
        bound_work(rng.randrange(1, 30_000))
        try:
            _served(number, rng, table, row)
        finally:
            bound_work(None)
    elif kind == 1:  # refused by the compiler
        gw.compile(gw.Regex(f"{number}a") & gw.Regex(f"{number}b"), table, cache=False)
    elif kind == 2:  # a token that the constraint does not allow
        matcher = gw.compile(constraint(number, rng), table, cache=False).matcher()
        matcher.fill_mask(row)
        matcher.advance(0)
    else:  # refused by the scanner
        gw.Regex(f"{number}(a|b" * rng.randrange(1, 40))


def _check(use: Any, seed: int, count: int) -> tuple[bool, str]:
    rng = random.Random(seed)
    vocabulary = table()
    row = np.zeros(9, np.uint32)
    sizes = []
    for number in range(count):
        with contextlib.suppress(gw.GuidewayError, WorkDeferred):
            use(number, rng, vocabulary, row)
        if number % (count // SAMPLES) == count // SAMPLES - 1:
            gc.collect()
            sizes.append(resident())
    return judged(sizes, count)


async def _cancelled(seed: int, count: int) -> list[int]:
    """Begin the generation for each constraint, and cancel it. Returns the resident memory of each sample.

    Few constraints are compiled before they are cancelled, so the caches have small budgets, too.
    """
    rng = random.Random(seed)
    model = ConstantModel(table())
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
        if (start + TASKS) * SAMPLES // count > len(sizes):
            gc.collect()
            sizes.append(resident())
    return sizes


def _check_cancelled(seed: int) -> tuple[bool, str]:
    with (
        patch.object(automaton_cache.cache, "budget_bytes", BUDGET // 8),
        patch.object(known, "MAX_BYTES", BUDGET // 8),
        patch.object(cache_keys, "_MAX_CONTENTS", 1_000),
    ):
        return judged(asyncio.run(_cancelled(seed, COUNT)), COUNT)


CHECKS = {
    "memory, cancelled": _check_cancelled,
    "memory, served": lambda seed: _check(_served, seed, COUNT),
    "memory, aborted": lambda seed: _check(_aborted, seed, COUNT),
}
