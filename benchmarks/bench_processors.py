"""What logits processors cost inside `generate` of transformers: 131,072 tokens (Tekken), batches of 1, 16 and 64.

    python benchmarks/bench_processors.py [--only NAMES] [--batches 1,16,64] [--record]

A llama of one layer with random weights writes the same JSON under each processor, one text per row. A second
processor, which runs after the measured one, selects the tokens. CPU time of the calling thread in each call, medians
over the steps. "fill": `scores.fill_(0)`; "nothing": a processor that does nothing, including the clock. Guideway's
processor is the default, which writes in place here. One thread.
"off", "ahead": wall time of whole calls, the quickest of several in turns.
Bars: a batch of 1 beyond "nothing" in 30 us or 1 % of the step; batches of 16 and 64 at most twice "fill"; cheaper than
every peer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter, thread_time_ns
from typing import Any

import guideway as gw
from harness.data import EOS, encoder
from harness.loops import PEERS, Make, ours, vocabulary
from harness.report import Report

SIZE = 131_072
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "age": {"type": "integer"},
        "home": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    "required": ["name", "tags", "age", "home"],
    "additionalProperties": False,
}
SLOW = 20_000  # microseconds of a step above which one round is sufficient
NAMES = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Grace Hopper"]


class Clock:
    """Reads the clock before and after a processor.

    It wraps the processor: transformers inspects the signature of each processor in a list, which is slow.
    """

    def __init__(self, processor: Any) -> None:
        self.processor, self.times = processor, list[int]()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        start = thread_time_ns()
        found = self.processor(input_ids, scores)
        self.times.append(thread_time_ns() - start)
        return found


class Script:
    """Lets the row write its text, whatever the model thinks."""

    def __init__(self, texts: Any) -> None:
        self.texts, self.step = texts, 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        scores[range(len(scores)), self.texts[:, self.step]] = float("inf")
        self.step += 1
        return scores


class Nothing:
    """Does nothing."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores


class Fill:
    """What a processor cannot do without: to write as many numbers."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores.fill_(0.0)


class Bench:
    """A model of transformers, and what it writes."""

    def __init__(self, steps: int) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        small = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
        self.model = LlamaForCausalLM(LlamaConfig(vocab_size=SIZE, bos_token_id=1, eos_token_id=EOS, **small)).eval()
        encode = encoder()
        records = [
            {"name": name, "tags": ["first of them", "second"], "age": 36 + i, "home": {"city": f"{name}ton"}}
            for i, name in enumerate(NAMES)
        ]
        texts = [encode(json.dumps(record)) for record in records]
        self.steps = min(steps, *map(len, texts))
        self.texts = torch.tensor([text[: self.steps] for text in texts])

    def run(self, rows: int, processors: list[Any], **options: Any) -> float:
        """Seconds of one call of `generate`."""
        import torch

        ids = torch.full((rows, 300), 1000)
        script = Script(self.texts.repeat((rows + 3) // 4, 1)[:rows])
        start = perf_counter()
        self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=self.steps, pad_token_id=EOS,
            logits_processor=[*processors, script], **options,
        )  # fmt: skip
        return perf_counter() - start

    def between(self, make: Callable[[int], Any], rows: int) -> float:
        """Microseconds of a call, median over the steps but the first."""
        clock = Clock(make(rows))
        self.run(rows, [clock])
        return median(clock.times[1:]) / 1000


def costs(bench: Bench, makes: dict[str, Make], batches: list[int], rounds: int, report: Report) -> None:
    """The table of processors, and its bars."""
    all_of_them: dict[str, Make] = {"nothing": lambda rows: Nothing(), "fill": lambda rows: Fill(), **makes}
    net: dict[str, dict[int, float]] = {name: {} for name in all_of_them}
    for name, make in all_of_them.items():
        try:
            bench.between(make, 1)  # what is built at the first call
            for rows in batches:
                once = bench.between(make, rows)
                more = rounds - 1 if once < SLOW else 0
                net[name][rows] = min([once, *(bench.between(make, rows) for _ in range(more))])
        except Exception as error:
            report.line(f"{name}: not run: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
            del net[name]
    cells = [[name, *(f"{one[rows]:,.0f}" for rows in batches)] for name, one in net.items()]
    report.table("microseconds a step, by rows", ["", *map(str, batches)], cells)
    for rows in batches:
        if rows == 1:
            step = 1e4 * min(bench.run(1, []) for _ in range(rounds)) / bench.steps
            beyond = net["guideway"][1] - net["nothing"][1]
            report.limit(
                'a batch of 1 beyond "nothing" (30 us, or 1 % of the step)', beyond, max(30, round(step)), "us"
            )
        else:
            report.limit(f"a batch of {rows}", net["guideway"][rows] / net["fill"][rows], 2, "times fill")
    for name in sorted(net.keys() - {"guideway", "fill", "nothing"}):
        least = min(net[name][rows] / net["guideway"][rows] for rows in batches)
        report.line(f"bar: cheaper than {name}: {least:,.1f}x at the least: {'met' if least > 1 else 'MISSED'}")


def off(bench: Bench, rounds: int, report: Report) -> None:
    """A free row, and no processor at all."""
    from guideway.integrations.transformers import logits_processor

    table = vocabulary()
    ways: dict[str, Callable[[], list[Any]]] = {
        "none": list,
        "none again": list,
        "does nothing": lambda: [Nothing()],
        "guideway, no constraint": lambda: [logits_processor(None, table)],
    }
    best = turns({name: lambda made=made: bench.run(1, made()) for name, made in ways.items()}, rounds)
    rate = {name: bench.steps / seconds for name, seconds in best.items()}
    cells = [[name, f"{one:,.0f}", f"{100 * one / rate['none'] - 100:+.1f} %"] for name, one in rate.items()]
    report.table("off: tokens a second, one row", ["processor", "", "beside none"], cells)


def ahead(bench: Bench, batches: list[int], rounds: int, report: Report) -> None:
    """Measures masks that are computed while the model runs: warm masks, and masks of a new schema."""
    from guideway.integrations.transformers import logits_processor

    table = vocabulary()
    warm = gw.compile(gw.JsonSchema(SCHEMA), table)

    def run(rows: int, early: bool, cold: bool) -> float:
        made = gw.compile(gw.JsonSchema(SCHEMA), vocabulary(), cache=False) if cold else warm
        processor = logits_processor(made, table)
        return bench.run(rows, [processor], **({"stopping_criteria": [processor.ahead]} if early else {}))

    cells = []
    for rows, cold in product(batches, (False, True)):
        best = turns({early: partial(run, rows, bool(early), cold) for early in ("", "ahead")}, rounds)
        steps = [1e6 * seconds / bench.steps for seconds in best.values()]
        saved = f"{steps[0] - steps[1]:+,.0f}"
        cells.append([str(rows), "new" if cold else "warm", *(f"{one:,.0f}" for one in steps), saved])
    report.table("masks ahead: microseconds a step of generate", ["rows", "masks", "without", "with", "saved"], cells)


def turns(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The quickest of each, in turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            found[name].append(run())
    return {name: min(times) for name, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PEERS), help="peers, by name")
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    report = Report("processors", [line for line in __doc__.splitlines()[4:] if line])
    try:
        import torch
        import transformers
    except ImportError as error:
        report.line(f"{error.name} is not installed, so not run: make .venv/.loops")
        report.done(False)
        return
    torch.set_num_threads(1)
    report.line(f"torch {torch.__version__}, transformers {transformers.__version__}")
    batches = [int(one) for one in given.batches.split(",")]
    makes = {"guideway": ours(SCHEMA)}
    for name in filter(None, given.only.split(",")):
        try:
            makes[name] = PEERS[name](SCHEMA)
        except Exception as error:
            report.line(f"{name}: not run: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    bench = Bench(given.steps)
    costs(bench, makes, batches, given.rounds, report)
    off(bench, 2 * given.rounds, report)
    ahead(bench, batches, given.rounds, report)
    report.done(given.record)


if __name__ == "__main__":
    main()
