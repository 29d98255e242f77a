"""Memory allocation in the kernel fails at every call of a scripted run.

python -m tests.campaigns.hostile_checks.allocations [--step 1] [--seed 0]

Needs LD_PRELOAD with the library of `tests/helpers/failing_allocator.cpp`; `run` builds it and starts this program so.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import guideway as gw
from guideway import matcher as matchers

__all__ = ["run"]

SOURCE = Path(__file__).parents[2] / "helpers" / "failing_allocator.cpp"
TYPED = (gw.GuidewayError, MemoryError)
CONSTRAINTS: list[Any] = [
    gw.Regex("(a|b)*a(a|b){3}[^a-y]{2}"),
    gw.Regex("(?=.*x)[a-z]{2,5}"),
    gw.Gbnf('root ::= "a" root "b" | "(" root? ")" | ""'),
    gw.Choice(["one", "two", "three"]),
    gw.JsonSchema(
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1]}}, "required": ["b"]}
    ),
    gw.JsonSchema({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2}),
    gw.JsonSchema(
        {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}, "uniqueItems": True, "minItems": 3}
    ),
    gw.JsonSchema({"type": "string", "minLength": 3, "maxLength": 9}),
    gw.JsonSchema({"type": "number", "exclusiveMinimum": 1.5, "maximum": 900, "multipleOf": 0.25}),
    gw.JsonSchema(
        {
            "type": "object",
            "properties": {f"key{n}": {"type": ["integer", "null"]} for n in range(40)},
            "patternProperties": {"^k.*[0-4]$": {"maximum": 5}},
            "additionalProperties": {"type": "string"},
            "minProperties": 3,
            "maxProperties": 5,
        }
    ),
    gw.Lark('start: (WORD | "(" start ")")+ "."\nWORD: /[a-c]{2,5}/\n%ignore " "'),
    gw.Tags([gw.Tag("<x>", gw.Regex("[ab]{3}"), "</x>")], triggers=["<x"]),
]


class Allocator:
    """The operators `new` of this process, from the preloaded library."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._arm = library.failing_allocator_arm
        self._arm.argtypes = (ctypes.c_long, ctypes.c_int)
        self._blocks, self._calls = library.failing_allocator_blocks, library.failing_allocator_calls
        self._failures = library.failing_allocator_failures
        for one in (self._blocks, self._calls, self._failures):
            one.restype = ctypes.c_long

    def arm(self, at: int, lasting: bool = False) -> None:
        """Let call number `at` of this thread fail, and with `lasting` all after it. 0: none."""
        self._arm(at, int(lasting))

    @property
    def blocks(self) -> int:
        """The number of blocks in use."""
        return int(self._blocks())

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return int(self._calls())

    @property
    def failures(self) -> int:
        """The number of calls that failed."""
        return int(self._failures())


def table() -> gw.Vocabulary:
    return gw.Vocabulary(
        [*(bytes([n]) for n in range(256)), b"</s>", b"ab", b'{"', b'":'], eos_ids=[256], special_ids=[]
    )


def script(vocabulary: gw.Vocabulary, constraint: Any, at: Callable[[Any], None] = lambda _: None) -> list[Any]:
    """Compile, fill masks, advance, fork, roll back, complete. `at` gets the matcher once it exists."""
    matcher = gw.compile(constraint, vocabulary, cache=False).matcher()
    at(matcher)
    row = np.zeros(matcher.words, np.uint32)
    found: list[Any] = [matcher.min_tokens_to_complete()]
    for token_id in matcher.completion()[:4]:
        matcher.fill_mask(row)
        found.append(row.tobytes())
        matcher.advance(token_id)
    other = matcher.fork()
    other.fill_mask_within(row, 50)
    found.append(row.tobytes())
    rows = np.zeros((2, matcher.words), np.uint32)
    matchers.fill_masks([matcher, other], rows)
    matcher.rollback(matcher.position)
    found += [rows.tobytes(), list(matcher.forced_tokens()), matcher.position]
    return found


def _state(matcher: Any) -> list[Any]:
    """Returns the results of a matcher at its position."""
    row = np.zeros(matcher.words, np.uint32)
    matcher.fill_mask(row)
    return [matcher.position, row.tobytes(), matcher.min_tokens_to_complete()]


def main() -> int:
    """Let each call fail once. Prints one line; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", type=int, default=1, help="test every n-th call")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    allocator = Allocator()
    rng = random.Random(given.seed)
    failed: list[str] = []
    runs = 0
    for number, constraint in enumerate(CONSTRAINTS):
        expected = script(table(), constraint)
        before = allocator.calls
        script(table(), constraint)
        calls = allocator.calls - before
        for at in range(1 + rng.randrange(given.step), calls + 1, given.step):
            vocabulary = table()
            held: list[Any] = []
            allocator.arm(at, lasting=bool(at % 2))
            try:
                script(vocabulary, constraint, held.append)
            except TYPED:
                pass
            except Exception as error:
                failed.append(f"constraint {number}, call {at}: {type(error).__name__}: {error}")
            finally:
                allocator.arm(0)
            runs += 1
            try:
                for matcher in held:  # its position is that of a matcher that took the same tokens
                    twin = gw.compile(constraint, table(), cache=False).matcher()
                    for token_id in twin.completion()[: matcher.position]:
                        twin.advance(token_id)
                    if _state(matcher) != _state(twin):
                        failed.append(f"constraint {number}, call {at}: the state differs")
                if script(vocabulary, constraint) != expected:
                    failed.append(f"constraint {number}, call {at}: the next run differs")
            except Exception as error:
                failed.append(f"constraint {number}, call {at}: afterwards {type(error).__name__}: {error}")
    sizes = []
    for _ in range(6):  # the same faults again and again: no block is lost
        for at in range(1, 400, 7):
            fresh = table()
            allocator.arm(at)
            try:
                script(fresh, CONSTRAINTS[at % len(CONSTRAINTS)])
            except TYPED:
                pass
            finally:
                allocator.arm(0)
            del fresh
        sizes.append(allocator.blocks)
    if sizes[-1] > sizes[1] + 50:
        failed.append(f"blocks in use grow: {sizes}")
    verdict = f"; FAILED ({len(failed)}): {'; '.join(failed[:4])}" if failed else ""
    print(f"{runs} calls failed one after the other, {allocator.failures} failures, blocks in use {sizes}{verdict}")
    return int(bool(failed))


def run(seed: int, step: int = 1) -> tuple[bool, str]:
    """Build the library and run this program with it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing_allocator.so"
        build = [os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
        subprocess.run(build, check=True)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.campaigns.hostile_checks.allocations",
                "--step",
                str(step),
                "--seed",
                str(seed),
            ],
            env={**os.environ, "LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=False,
        )
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return (
        done.returncode == 0,
        f"{lines[-1] if lines else ''}{f' (status {done.returncode})' if done.returncode else ''}",
    )


if __name__ == "__main__":
    sys.exit(main())
