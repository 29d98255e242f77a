"""A batch of rows: 1 to 512 matchers over 16 automata at random positions, one call per batch.

    python benchmarks/bench_batch.py [--rounds 40] [--record]

In each round, each row consumes the next token of its instance (a row at the end of its instance starts again). Then
one call fills all masks. Only that call is timed. The result is the median over rounds: CPU time with one thread, wall
time with two threads (which includes the load of a shared machine). "advance too": guideway's fused call, which
advances and fills. Rows start at random positions of valid instances of 16 MaskBench schemas that all engines accept.
Memos are warm, as in a server that has run for a while. Bar: 256 rows in 0.5 ms on one thread.
"""

from __future__ import annotations

import argparse
import random
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import numpy as np

import guideway as gw
from harness import data
from harness.engines import Engine, Guideway, LLGuidance, Refused, XGrammar
from harness.report import Report
from harness.timing import timed, walked

SIZES = (1, 4, 16, 64, 128, 256, 512)
THREADS = (1, 2)


class Row:
    """A matcher that walks the tokens of its instance in a loop."""

    def __init__(self, engine: Engine, compiled: Any, tokens: list[int]) -> None:
        self.engine, self.compiled, self.tokens = engine, compiled, tokens
        self.begin()

    def begin(self) -> None:
        """At the start of the text."""
        self.matcher, self.place = self.engine.matcher(self.compiled), 0
        self.advance = self.engine.bound(self.matcher).advance

    def next(self) -> int:
        """Returns the next token of the instance; the first one again after the end."""
        if self.place == len(self.tokens):
            self.begin()
        self.place += 1
        return self.tokens[self.place - 1]

    def move(self) -> None:
        """One token on."""
        token = self.next()
        self.advance(token)


def chosen(engines: list[Engine], count: int) -> list[tuple[list[Any], list[int]]]:
    """Returns the automata of each engine and the tokens of an instance, for `count` schemas that all accept."""
    encode, found = data.encoder(), list[tuple[list[Any], list[int]]]()
    for case in data.spread(data.cases(), 200):
        texts = [data.text_of(i) for i, valid in case.instances if valid]
        tokens = encode(max(texts, key=len, default=""))
        try:
            made = [engine.compile(case.schema) for engine in engines] if 40 <= len(tokens) <= 400 else []
        except Refused:
            continue
        pairs = zip(engines, made, strict=bool(made))
        if made and all(walked(engine.start(one), tokens) is not None for engine, one in pairs):
            found.append((made, tokens))
            if len(found) == count:
                break
    return found


def measure(rows: list[Row], size: int, threads: int, rounds: int, fused: bool) -> float:
    """Microseconds of a call over the first `size` rows. `fused`: guideway's, in which the rows advance too."""
    engine, taken = rows[0].engine, []
    out = np.zeros((size, len(engine.row)), np.int32)
    for _ in range(rounds):
        some = rows[:size]
        if fused:
            tokens = [row.next() for row in some]
            matchers = [row.matcher for row in some]
            call = partial(gw.matcher.advance_and_fill, matchers, tokens, out.view(np.uint32), threads)
        else:
            for row in some:
                row.move()
            call = engine.batch([row.matcher for row in some], out, threads)
        taken.append(timed(call)[1][threads == 1])
    return median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    engines: list[Engine] = [kind(data.tekken()) for kind in (Guideway, LLGuidance, XGrammar)]
    automata, rng = chosen(engines, 16), random.Random(1)
    report = Report("batch", [f"{len(automata)} automata, Tekken 131k, microseconds per call, one call for all rows"])
    table, single = list[list[str]](), dict[bool, float]()
    for n, engine in enumerate(engines):
        rows = [Row(engine, made[n], ids) for made, ids in (automata[i % len(automata)] for i in range(max(SIZES)))]
        for row in rows:
            for _ in range(rng.randrange(len(row.tokens))):
                row.move()
        for threads, fused in product(THREADS, (False, True)[: 1 + (engine is engines[0])]):
            cells = {size: measure(rows, size, threads, given.rounds, fused) for size in SIZES}
            name = engine.package + (", advance too" if fused else "")
            table.append([name, str(threads), *(f"{cell:,.0f}" for cell in cells.values())])
            if engine is engines[0] and threads == 1:
                single[fused] = cells[256]
    report.table("fill all masks of a batch (us)", ["engine", "threads", *(f"{size} rows" for size in SIZES)], table)
    report.line()
    report.limit("256 rows on one thread", single[False] / 1000, 0.5, "ms")
    report.limit("256 rows on one thread, advance too", single[True] / 1000, 0.5, "ms")
    report.done(given.record)


if __name__ == "__main__":
    main()
