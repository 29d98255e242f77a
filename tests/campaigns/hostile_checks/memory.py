"""Memory while many different constraints are compiled, aborted, refused and cancelled in one process.

The constraints are divided into parts. Each part has a new vocabulary with small budgets.
Two quantities are bounded:

- The resident memory at any time: the budgets, and fragmentation.
- What is allocated after each part, when the vocabulary is deleted and all caches are empty: the blocks of Python and the
  bytes of malloc. They must not grow by even one small object per constraint. Fragmentation has no effect on them. For
  cancelled calls, the bound of bytes is larger (`MOST_BYTES_OF_THREADS`), so there only kept Python objects are found.

The threads keep no free blocks, and malloc has one arena (`ENVIRONMENT`), so that its bytes are exact.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import itertools
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import guideway as gw
from guideway import background, caching
from guideway._kernel import KernelVocabulary, WorkDeferred, bound_work
from guideway.compiler import automaton_cache, cache_keys
from guideway.constraints import known
from guideway.testing import ConstantModel

__all__ = ["CHECKS", "ENVIRONMENT", "Allocated", "judged"]

ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"}
"""Environment variables for the process of these checks."""

COUNT = 20_000
PARTS = 5
TASKS = 16  # that are cancelled together
SAMPLES = 8  # of the resident memory in each part
BUDGET = 4 << 20  # of cached masks, and of expressions
MOST_GROWTH = 64 << 20
"""The growth of resident memory after the first sample: the budgets of a vocabulary and of all caches, and fragmentation."""
MOST_BYTES, MOST_BLOCKS = 24.0, 0.1
"""The growth of what is allocated when the caches are empty, in bytes of malloc and blocks of Python per constraint.

The smallest block of malloc takes 32 bytes.
"""
MOST_BYTES_OF_THREADS = 400.0
"""The bound of bytes for calls in many threads. Their number changes, and they allocate chunks of 2 MiB.

One chunk is 524 bytes per constraint of a part, so only the median of the parts stays below the bound.
"""


class Allocated(NamedTuple):
    """What is allocated: bytes of malloc, and blocks of Python's allocator for small objects."""

    bytes: int
    blocks: int


class _Mallinfo(ctypes.Structure):
    """The result of glibc's `mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def allocated() -> Allocated:
    """Empty all caches, and return what is allocated then."""
    caching.clear_all()
    for _ in range(3):  # the finalizers of one pass can leave garbage for the next one
        gc.collect()
    info = ctypes.CDLL(None).mallinfo2
    info.restype = _Mallinfo
    found = info()
    return Allocated(found.uordblks + found.hblkhd, sys.getallocatedblocks())


def table() -> gw.Vocabulary:
    """Return a vocabulary of bytes with small budgets."""
    tokens = [*(bytes([n]) for n in range(256)), b"</s>"]
    made = gw.Vocabulary(tokens, eos_ids=[256], special_ids=[])
    kernel = KernelVocabulary(tokens, [256], [], memo_bytes=BUDGET, store_bytes=BUDGET)
    object.__setattr__(made, "_kernel", kernel)
    return made


def judged(sizes: list[int], after: list[Allocated], count: int, most_bytes: float = MOST_BYTES) -> tuple[bool, str]:
    """Compare the memory with the bounds.

    The growth per constraint is the median of the growths from one part to the next. The first part fills what exists
    once in a process. Growth in only one part is not reported, unless the resident memory exceeds its bound.

    Args:
        sizes: The resident memory at each sample.
        after: What was allocated after each part.
        count: The number of constraints in a part.
        most_bytes: The bound of bytes per constraint.
    """
    growth = max(sizes) - sizes[0]
    steps = list(itertools.pairwise(after[1:]))
    size = statistics.median((later.bytes - one.bytes) / count for one, later in steps)
    blocks = statistics.median((later.blocks - one.blocks) / count for one, later in steps)
    shown = " ".join(f"{size >> 20}" for size in sizes[:: max(1, len(sizes) // 10)])
    good = growth <= MOST_GROWTH and size <= most_bytes and blocks <= MOST_BLOCKS
    return good, (
        f"{count * len(after):,} constraints, growth {growth >> 20} MiB (at most {MOST_GROWTH >> 20}); with empty caches"
        f" {size:.1f} bytes and {blocks:.3f} blocks per constraint (at most {most_bytes:.0f} and {MOST_BLOCKS}),"
        f" resident MiB: {shown}"
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


def _check(use: Any, seed: int) -> tuple[bool, str]:
    rng = random.Random(seed)
    row = np.zeros(9, np.uint32)
    sizes, after, part = list[int](), list[Allocated](), COUNT // PARTS
    for start in range(0, COUNT, part):
        vocabulary = table()
        for number in range(start, start + part):
            with contextlib.suppress(gw.GuidewayError, WorkDeferred):
                use(number, rng, vocabulary, row)
            if number % (part // SAMPLES) == part // SAMPLES - 1:
                sizes.append(resident())
        del vocabulary
        after.append(allocated())
    return judged(sizes, after, part)


async def _settled() -> Allocated:
    """Return what is allocated when background threads have ended the work of cancelled calls.

    Raises `TimeoutError` after 60 s.
    """
    end = time.monotonic() + 60
    while _works() and time.monotonic() < end:
        await asyncio.sleep(0.05)
    if _works():
        raise TimeoutError("background threads did not end the work of cancelled calls within 60 s")
    return allocated()


def _works() -> bool:
    """Return whether a background thread works, or waits for a slot."""
    pool = background._POOL
    return bool(pool.threads._active or pool.finishers._active or pool.slots._waiting or any(pool.slots._holders))


async def _cancelled(seed: int) -> tuple[bool, str]:
    """Begin the generation for each constraint, and cancel it.

    Few constraints are compiled before they are cancelled, so the caches have small budgets, too.
    """
    rng = random.Random(seed)
    sizes, after, part = list[int](), list[Allocated](), COUNT // PARTS
    for begin in range(0, COUNT, part):
        model = ConstantModel(table())
        for start in range(begin, begin + part, TASKS):
            tasks = [
                asyncio.ensure_future(gw.acomplete(model, "x", constraint(number, rng), max_tokens=400))
                for number in range(start, min(start + TASKS, begin + part))
            ]
            await asyncio.sleep(rng.choice((0, 0.001, 0.01)))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if (start - begin + TASKS) * SAMPLES // part > len(sizes) - SAMPLES * len(after):
                sizes.append(resident())
        del model, tasks, task
        after.append(await _settled())
    return judged(sizes, after, part, MOST_BYTES_OF_THREADS)


def _check_cancelled(seed: int) -> tuple[bool, str]:
    with (
        patch.object(automaton_cache.cache, "budget_bytes", BUDGET // 8),
        patch.object(known, "MAX_BYTES", BUDGET // 8),
        patch.object(cache_keys, "_MAX_CONTENTS", 1_000),
    ):
        return asyncio.run(_cancelled(seed))


CHECKS = {
    "memory, cancelled": _check_cancelled,
    "memory, served": lambda seed: _check(_served, seed),
    "memory, aborted": lambda seed: _check(_aborted, seed),
}
