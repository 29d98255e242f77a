"""The first `min_tokens_to_complete`, which each request with a budget of tokens needs, within a bound of CPU time."""

from __future__ import annotations

import time
from typing import Any

import guideway as gw
from tests.campaigns.hostile_checks.constraints import pace
from tests.campaigns.hostile_checks.scanners import LEAST_INPUTS

__all__ = ["CHECKS"]

MOST_SECONDS = 0.05
"""The bound of CPU time on a core as fast as `pace` expects. For texts of more than `TOKENS` tokens, it grows in proportion."""

TOKENS = 3_741  # of the first schema


def keys(count: int, least: int, value: Any = None, **more: Any) -> dict[str, Any]:
    """An object with optional properties, and the number of them that it needs."""
    properties = {f"p{n}": value or {"type": "integer"} for n in range(count)}
    return {"type": "object", "properties": properties, "minProperties": least, **more}


SCHEMAS: dict[str, Any] = {
    "350 of 700 integers": keys(700, 350),
    "100 of 200 integers": keys(200, 100),
    "200 of 400 integers": keys(400, 200),
    "699 of 700 integers": keys(700, 699),
    "400 of 900 integers": keys(900, 400),
    "350 of 700 strings": keys(700, 350, {"type": "string", "minLength": 9}),
    "350 of 700 enums": keys(700, 350, {"enum": ["aaa", "b", [1, 2]]}),
    "350 of 700 of any type": keys(700, 350, {"type": ["string", "integer", "null"]}),
    "350 of 700 and required ones": keys(700, 350, required=[f"p{n}" for n in range(0, 300, 3)]),
    "350 to 400 of 700": keys(700, 350, maxProperties=400),
    "350 of 700 and other keys": keys(700, 350, additionalProperties={"type": "integer"}),
    "350 of 700 and patterns": keys(700, 350, patternProperties={"^a": {"type": "integer"}}),
    "350 of 700 objects": keys(
        700, 350, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    ),
    "30 of 60 in 30 of 60": keys(60, 30, keys(60, 30)),
    "350 of 700 that depend": keys(700, 350, dependentRequired={f"p{n}": [f"p{n + 1}"] for n in range(60)}),
    "arrays of 350 of 700": {"type": "array", "items": keys(700, 350), "minItems": 20},
    "40 different items of 60": {
        "type": "array",
        "uniqueItems": True,
        "items": {"enum": [f"a{n}" for n in range(60)]},
        "minItems": 40,
    },
    "long strings": {"type": "array", "items": {"type": "string", "minLength": 90}, "minItems": 90},
}


def _check(seed: int) -> tuple[bool, str]:
    table = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
    slowest, failed, refused = (0.0, ""), [], 0
    for name, schema in SCHEMAS.items():
        for profile in ("generation", "exact"):
            try:
                matcher = gw.compile(gw.JsonSchema(schema, profile=profile), table, cache=False).matcher()
            except gw.errors.LimitExceededError:
                refused += 1
                continue
            start = time.process_time()
            most = MOST_SECONDS * max(1.0, matcher.min_tokens_to_complete() / TOKENS)
            seconds = time.process_time() - start
            slowest = max(slowest, (seconds, f"{name}, {profile}"))
            if seconds > most and seconds > most * pace():
                failed.append(f"{name}, {profile}: {seconds:.3f} s")
    count = 2 * len(SCHEMAS) - refused
    if count < LEAST_INPUTS:
        failed.append("too few inputs")
    verdict = f"; FAILED: {'; '.join(failed[:6])}" if failed else ""
    return not failed, f"{count} inputs, {refused} refused, most {slowest[0] * 1e3:.1f} ms ({slowest[1]}){verdict}"


CHECKS = {"completions": _check}
