"""Exports, plans and examples of hostile constraints: each ends with a result or a typed error, within a bound of CPU time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import guideway as gw
from guideway.remote.capabilities import capabilities
from guideway.remote.planning import make_plan
from tests.campaigns.hostile_checks.constraints import MOST_SECONDS, pace
from tests.campaigns.hostile_checks.scanners import LEAST_INPUTS
from tests.helpers.hostile_constraints import CLASSES

__all__ = ["CHECKS"]

GROUPS = ("JSON Schema", "regex", "GBNF", "EBNF", "Lark")

USES: dict[str, Callable[[Any], object]] = {
    "to_gbnf": lambda one: one.to_gbnf(),
    "to_lark": lambda one: one.to_lark(dialect="llguidance"),
    "to_regex": lambda one: one.to_regex(dialect="ecma"),
    "examples": lambda one: one.examples(3) if isinstance(one, gw.JsonSchema) else [],
    "plan": lambda one: make_plan(capabilities("vllm"), one, require="any"),
}


def _check(group: str) -> tuple[bool, str]:
    verdicts: Counter[str] = Counter()
    slowest, failed = (0.0, ""), []
    for name, make in CLASSES[group].items():
        try:
            constraint = make()
        except gw.GuidewayError:  # the classes of constraints check these
            continue
        for use, call in USES.items():
            start = time.process_time()
            try:
                call(constraint)
                verdicts["results"] += 1
            except gw.GuidewayError as error:
                verdicts[type(error).__name__] += 1
            except Exception as error:
                failed.append(f"{name}, {use}: untyped {type(error).__name__}")
            seconds = time.process_time() - start
            slowest = max(slowest, (seconds, f"{name}, {use}"))
            if seconds > MOST_SECONDS and seconds > MOST_SECONDS * pace():
                failed.append(f"{name}, {use} ({seconds:.1f} s)")
    if verdicts["results"] < LEAST_INPUTS:
        failed.append("too few results")
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    shown = f"; FAILED: {'; '.join(failed)}" if failed else ""
    return not failed, f"most {slowest[0]:.1f} s ({slowest[1]}); {counted}{shown}"


CHECKS = {f"exports, {group}": (lambda seed, group=group: _check(group)) for group in GROUPS}
