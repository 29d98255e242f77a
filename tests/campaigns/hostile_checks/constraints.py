"""Hostile constraints: each is compiled or refused with a typed error, within a bound of CPU time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import guideway as gw
from tests.campaigns.hostile_checks.scanners import LEAST_INPUTS
from tests.helpers.hostile_constraints import CLASSES, random_ones

__all__ = ["CHECKS", "MOST_SECONDS"]

MOST_SECONDS = 2.0
"""The bound of CPU time, from the constraint to its matcher or its error, on a core as fast as `pace` expects."""

_REFERENCE = 0.035  # seconds of the loop of `pace` on one core of an idle server


def pace() -> float:
    """How many times slower than the reference this core is now; at least 1."""
    start = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return max(1.0, (time.process_time() - start) / _REFERENCE)


def _check(inputs: Iterable[tuple[str, Any]]) -> tuple[bool, str]:
    vocabulary = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
    verdicts: Counter[str] = Counter()
    slowest, slow, listed = (0.0, ""), [], list(inputs)
    for name, make in listed:
        start = time.process_time()
        try:
            gw.compile(make(), vocabulary, cache=False).matcher()
            verdicts["compiled"] += 1
        except gw.GuidewayError as error:
            verdicts[type(error).__name__] += 1
        except Exception as error:
            verdicts[f"UNTYPED {type(error).__name__}"] += 1
            slow.append(name)
        seconds = time.process_time() - start
        slowest = max(slowest, (seconds, name))
        if seconds > MOST_SECONDS and seconds > MOST_SECONDS * pace():
            slow.append(f"{name} ({seconds:.1f} s)")
    if len(listed) < LEAST_INPUTS:
        slow.append(f"{len(listed)} inputs are fewer than {LEAST_INPUTS}")
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    failed = f"; FAILED: {', '.join(slow)}" if slow else ""
    return not slow, f"{len(listed)} inputs, most {slowest[0]:.1f} s ({slowest[1]}); {counted}{failed}"


CHECKS = {
    **{f"constraints, {name}": (lambda seed, name=name: _check(CLASSES[name].items())) for name in CLASSES},
    "constraints, random": lambda seed: _check(random_ones(seed, 100)),
}
