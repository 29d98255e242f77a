"""Ever new schemas and grammars, for as long as asked: resident memory must stay on a line.

    python benchmarks/bench_soak.py [--requests 8000] [--minutes 60] [--budget-mb 8] [--record]

Each request compiles a constraint that was never seen before, through the cache as a server would, and walks it by
random tokens, with a mask at each: schemas (made-up keys, enums and patterns, open objects that count and remember
their keys, arrays whose items differ), and, every fifth, a grammar that calls itself, half of them ambiguous. Three
budgets are set low, so that they are met many times in a short run: masks (`memo_bytes`), expressions (`store_bytes`)
and the cache of automata. Memory is read at 40 moments; the run ends after so many requests or minutes, whichever comes
first. The first quarter fills the budgets; the bar: after that, the second half of the run never holds more than one
budget above what the half before held at most (the line is a saw: a store that was left is freed when the last
automaton made from it is). `make soak` runs a million.
"""

from __future__ import annotations

import argparse
import random
from time import perf_counter
from typing import Any

import numpy as np

import guideway as gw
from guideway import _kernel
from guideway.compiler import cache
from harness import data
from harness.report import Report
from harness.resident import resident

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word(rng: random.Random) -> str:
    """A name that hardly comes twice."""
    return "".join(rng.choices(LETTERS, k=rng.randint(3, 10)))


def schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """A schema of many that a user may write."""
    kind = rng.randrange(8 if depth < 3 else 4)
    if kind == 0:
        return {"enum": [word(rng) for _ in range(rng.randint(1, 12))]}
    if kind == 1:
        return {"type": "string", "maxLength": rng.randint(1, 400)}
    if kind == 2:
        return {"type": "string", "pattern": f"^{word(rng)}[{word(rng)}]{{1,{rng.randint(1, 9)}}}$"}
    if kind == 3:
        return {"type": "integer", "minimum": rng.randint(-999, 0), "maximum": rng.randint(1, 10**6)}
    if kind == 4:
        return {"type": "array", "items": schema(rng, depth + 1), "maxItems": rng.randint(1, 4)}
    if kind == 5:
        bounds = {"minProperties": rng.randint(0, 2), "maxProperties": rng.randint(2, 5)}
        return {"type": "object", "additionalProperties": schema(rng, depth + 1), **bounds}
    if kind == 6:
        return {"type": "array", "items": {"type": rng.choice(["string", "integer"])}, "uniqueItems": True}
    properties = {word(rng): schema(rng, depth + 1) for _ in range(rng.randint(1, 6))}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if rng.random() < 0.5],
        "additionalProperties": rng.random() < 0.3,
    }


def grammar(rng: random.Random) -> str:
    """Calls with arguments, or sums of sums, in words of its own."""
    name = f"NAME: /{word(rng)}[{word(rng)}]{{1,{rng.randint(1, 9)}}}/"
    if rng.random() < 0.5:
        return f'start: item ("," item)*\nitem: NAME "(" start? ")" | NAME | "{word(rng)}" start\n{name}\n'
    return f'start: start "+" start | start "{word(rng)}" start | "(" start ")" | NAME\n{name}\n'


def request(seed: int, vocabulary: gw.Vocabulary, row: Any, steps: int = 24) -> int:
    """Compile and walk; the number of tokens taken."""
    rng = random.Random(seed)
    source = gw.JsonSchema(schema(rng)) if seed % 5 else gw.Lark(grammar(rng))
    matcher = gw.compile(source, vocabulary).matcher()
    for taken in range(steps):
        matcher.fill_mask(row)
        legal = np.flatnonzero(row)  # words with a legal token in them
        at = int(legal[rng.randrange(len(legal))])
        bits = int(row[at])
        matcher.advance(at * 32 + rng.choice([b for b in range(32) if bits >> b & 1]))
        if matcher.is_finished:
            return taken + 1
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--budget-mb", type=int, default=8)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    table = data.tekken()
    special = [i for i, token in enumerate(table) if not token]
    vocabulary, budget = gw.Vocabulary(table, eos_ids=[data.EOS], special_ids=special), given.budget_mb << 20
    kernel = _kernel.KernelVocabulary(table, [data.EOS], special, memo_bytes=budget, store_bytes=budget)
    object.__setattr__(vocabulary, "_kernel", kernel)  # no public way yet to give a vocabulary budgets of its own
    cache.budget_bytes = budget // 16
    row = np.zeros((len(table) + 31) // 32, np.uint32)
    points, tokens, start, n = list[tuple[int, float]](), 0, perf_counter(), 0
    while n < given.requests and perf_counter() - start < given.minutes * 60:
        tokens += request(n, vocabulary, row)
        n += 1
        gone = max(n / given.requests, (perf_counter() - start) / (given.minutes * 60))
        if gone * 40 >= len(points) + 1:
            points.append((n, resident()))
            print(*points[-1], flush=True)
    seconds = perf_counter() - start
    report = Report("soak", [f"{n} new schemas and grammars, {tokens} tokens, {seconds:.0f} s, Tekken 131k"])
    report.table("resident memory", ["requests", "MB"], [[f"{at:,}", f"{mb:,.1f}"] for at, mb in points])
    rest = [mb for _, mb in points[len(points) // 4 :]]
    half = len(rest) // 2
    report.line()
    report.limit(
        "highest of the second half above the highest before",
        max(rest[half:]) - max(rest[:half]),
        given.budget_mb,
        "MB",
    )
    report.done(given.record)


if __name__ == "__main__":
    main()
