"""Reading a tokenizer: the first `logits_processor(constraint, tokenizer)` of an object, and the next ones.

    python benchmarks/bench_tokenizers.py [--record]

The tokenizers are those of the tests, as objects of their libraries or as files, and a byte-level BPE of 131,072 tokens.
"first": the first call for this object, with an empty cache in memory and no cache on disk. "next": the median of 200
further calls, each of which checks that the tokenizer did not change. A list or tuple of bytes is not cached: each call
reads it again. "reused": the median of 200 calls with the `Tokenizer` that was read. Thread CPU time. Bar: "next" is at
most 50 us more than "reused", except for lists and tuples.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

import guideway as gw
from guideway import disk
from guideway.integrations._common import Processor
from guideway.tokenizers import Tokenizer
from harness.report import Report

sys.path[:0] = [str(Path(__file__).parents[1])]  # the tokenizers of the tests
CONSTRAINT = gw.Regex("[a-z]+")
MOST = 50.0


def wide() -> tokenizers.Tokenizer:
    """A byte-level BPE of 131,072 tokens without merges."""
    rng = random.Random(0)
    names = dict.fromkeys(pre_tokenizers.ByteLevel.alphabet())
    while len(names) < 131_072:
        names["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(4, 9)))] = None
    made = tokenizers.Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def microseconds(call: Callable[[], object]) -> float:
    start = thread_time()
    call()
    return (thread_time() - start) * 1e6


def cell(source: Any) -> tuple[float, float, float]:
    """Return the times of the first call, of a further one, and of one with the `Tokenizer`, in microseconds."""
    options: dict[str, Any] = {} if Tokenizer.of(source).eos_ids else {"eos_ids": [0]}
    gw.cache.clear()

    def call() -> object:
        return Processor([CONSTRAINT], Tokenizer.of(source, **options))

    first = microseconds(call)
    known = Tokenizer.of(source, **options)
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(200):
        times[False].append(microseconds(call))
        times[True].append(microseconds(lambda: Processor([CONSTRAINT], known)))
    return first, median(times[False]), median(times[True])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    import pytest

    from tests.helpers.tokenizer_files import FAMILIES

    report = Report("tokenizers", [line for line in __doc__.splitlines()[4:] if line])
    rows, most = [], 0.0
    with disk.disabled():
        sources: list[tuple[str, str, Any]] = [("byte-level BPE, V = 131,072", "tokenizers", wide())]
        for family, make in FAMILIES.items():
            try:
                sources += [(family, library, form.source) for library, form in make().items()]
            except pytest.skip.Exception as error:  # its library is not installed
                report.line(f"{family}: not run: {error}")
        for family, library, source in sources:
            first, again, reused = cell(source)
            if library not in ("list", "tuple"):
                most = max(most, again - reused)
            rows.append([family, library, f"{first:,.0f}", f"{again:.1f}", f"{reused:.1f}", f"{again - reused:.1f}"])
    heads = ["tokenizer", "library", "first", "next", "reused", "difference"]
    report.table("logits processors of one tokenizer object, us", heads, rows)
    report.limit("the largest difference", most, MOST, "us")
    report.done(given.record)


if __name__ == "__main__":
    main()
