"""What a logits processor costs inside `generate` of transformers: 131,072 tokens, one thread, batches of 1, 16 and 64.

    python benchmarks/bench_processors.py [--steps 60] [--record]

Each step calls the processor as `generate` does, over the same logits, with one more token in each row; CPU time of
the calling thread, medians. "fill": writing one number over all of these logits. "copy": cloning them. "ours": into
memory that is used again; "in place": over the logits. "mask", "write": our own timings, means of wall time.
Bars: a batch of 1 in 30 us; batches of 16 and 64 at most twice "fill".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from time import thread_time_ns
from typing import Any

import numpy as np

import guideway as gw
from harness.report import Report

SIZE = 131_072
BATCHES = (1, 16, 64)
TEXT = b'{"name": "hello there my friend, how do you do", "tags": ["a", "b"], "age": 36}'
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "age": {"type": "integer"},
    },
    "required": ["name", "tags", "age"],
}


def vocabulary() -> gw.Vocabulary:
    """Every byte, then random pieces of text."""
    chance = np.random.default_rng(0)
    letters = np.frombuffer(b'abcdefghijklmnopqrstuvwxyz  0123456789",:{}[]', np.uint8)
    found = dict.fromkeys([b"", *(bytes([byte]) for byte in range(256))])
    while len(found) < SIZE:
        found[bytes(chance.choice(letters, size=chance.integers(2, 9)))] = None
    return gw.Vocabulary(list(found), eos_ids=[0], special_ids=[0])


def cpu(call: Callable[[], Any]) -> float:
    """Microseconds of this thread."""
    start = thread_time_ns()
    call()
    return (thread_time_ns() - start) / 1000


def measure(automaton: gw.Automaton, table: gw.Vocabulary, rows: int, steps: int) -> dict[str, float]:
    """Medians over the steps of one text."""
    import torch

    from guideway.engines.transformers import logits_processor

    times: dict[str, list[float]] = {"fill": [], "copy": [], "ours": [], "in place": []}
    made = {name: logits_processor(automaton, table, in_place=name == "in place") for name in ("ours", "in place")}
    fresh, logits = torch.randn(rows, SIZE), torch.empty(rows, SIZE)
    ids = torch.zeros(rows, 500, dtype=torch.int64)
    for step in range(min(steps, len(TEXT))):
        for name, processor in made.items():
            logits.copy_(fresh)
            times[name].append(cpu(partial(processor, ids, logits)))
        times["copy"].append(cpu(fresh.clone))
        times["fill"].append(cpu(partial(logits.fill_, 0.0)))
        ids = torch.cat([ids, torch.full((rows, 1), 1 + TEXT[step], dtype=torch.int64)], dim=1)
    timings = made["ours"].timings
    found = {name: median(values) for name, values in times.items()}
    found["mask"], found["write"] = (1e6 * part / timings.calls for part in (timings.mask, timings.copy))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    report = Report("processors", [line for line in __doc__.splitlines()[4:] if line])
    try:
        import torch
        import transformers
    except ImportError as error:
        report.line(f"{error.name} is not installed, so not run: make .venv/.engines")
        report.done(False)
        return
    torch.set_num_threads(1)
    report.line(f"torch {torch.__version__}, transformers {transformers.__version__}")
    table = vocabulary()
    automaton = gw.compile(gw.JsonSchema(SCHEMA), table)
    measure(automaton, table, 1, given.steps)  # memos are warm, as in a server that has run for a while
    found = {rows: measure(automaton, table, rows, given.steps) for rows in BATCHES}
    heads = ["rows", "fill", "copy", "ours", "in place", "mask", "write"]
    cells = [[str(rows), *(f"{one[head]:,.0f}" for head in heads[1:])] for rows, one in found.items()]
    report.table("microseconds a step", heads, cells)
    for name in ("ours", "in place"):
        report.limit(f"a batch of 1, {name}", found[1][name], 30, "us")
        for rows in BATCHES[1:]:
            report.limit(f"a batch of {rows}, {name}", found[rows][name] / found[rows]["fill"], 2, "times fill")
    report.done(given.record)


if __name__ == "__main__":
    main()
