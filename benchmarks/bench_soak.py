"""New schemas and grammars for a configurable duration: resident memory must stay constant.

    python benchmarks/bench_soak.py [--requests 8000] [--minutes 60] [--budget-mb 8] [--record]

Each request compiles a new constraint through the cache, as a server does. It walks the constraint with random tokens
and computes a mask at each token. Constraints are schemas (random keys, enums and patterns; open objects that count and
store their keys; arrays of different items). Every fifth is a recursive grammar; half of these are ambiguous. Three
budgets are low, so that a short run reaches them often: masks (`memo_bytes`), expressions (`store_bytes`) and the cache
of automata. Memory is read at 40 moments. The run ends at the limit of requests or of minutes, whichever is first. The
first quarter fills the budgets. Bar: in the rest, the maximum of the second half exceeds the maximum of the first half
by at most one budget. (The curve is a sawtooth: a store that is no longer used is freed with the last automaton that
uses it.) `make soak` runs a million requests.
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
    """Returns a random name, which is almost always unique."""
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
    """Returns a grammar of calls with arguments, or of nested sums, with random words."""
    name = f"NAME: /{word(rng)}[{word(rng)}]{{1,{rng.randint(1, 9)}}}/"
    if rng.random() < 0.5:
        return f'start: item ("," item)*\nitem: NAME "(" start? ")" | NAME | "{word(rng)}" start\n{name}\n'
    return f'start: start "+" start | start "{word(rng)}" start | "(" start ")" | NAME\n{name}\n'


def request(seed: int, vocabulary: gw.Vocabulary, row: Any, steps: int = 24) -> int:
    """Compiles and walks; returns the number of tokens."""
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
    object.__setattr__(vocabulary, "_kernel", kernel)  # no public API sets the budgets of a vocabulary
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
