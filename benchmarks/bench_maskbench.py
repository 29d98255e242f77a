"""TTFM and mask + advance over MaskBench schemas: guideway, llguidance and xgrammar, in one run.

    python benchmarks/bench_maskbench.py [--schemas 60] [--passes 3] [--worst 20] [--record]

Vocabulary: Tekken (131,072 tokens). Each engine in turn compiles each schema. Then its instances are walked token by
token (Tekken's tokens of the instance on one line). TTFM: compile, matcher, first mask. A step: advance over a token
and compute the next mask. "again": a second walk with the same automata and memos, as when a server receives a known
schema (reported, without a bar). Best of three passes, per schema and per step. Each pass starts with a new vocabulary,
so that no step finds its mask in a memo of an earlier pass. (xgrammar compiles for seconds, so it compiles in the first
pass only; its instances are walked three times there.) p50, mean and p90 are wall time; p99, p99.9 and the maximum are
CPU time: of the calling thread for steps, of the whole process for TTFM, since xgrammar compiles in threads. Pairs of
engines are compared on the valid instances that both accept, TTFM on the schemas of those instances.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness import data
from harness.engines import Engine, Guideway, LLGuidance, XGrammar
from harness.report import Report
from harness.runs import compared, run, verdicts, worst
from harness.timing import overhead

BARS = [
    ("step p50", {"llguidance": 10.0, "xgrammar": 3.0}),
    ("step mean", {"llguidance": 10.0, "xgrammar": 10.0}),
    ("step p99", {"llguidance": 8.0, "xgrammar": 8.0}),
    ("step p99.9", {"llguidance": 5.0, "xgrammar": 5.0}),
    ("step max", {"llguidance": 4.0, "xgrammar": 4.0}),
    ("TTFM p50", {"llguidance": 3.0, "xgrammar": 30.0}),
    ("TTFM p99", {"llguidance": 2.0}),
]
NOT_SHOWN = """
what the figures do not show: schemas and instances beyond this set (instances follow the schema's order of keys, one
line each); other vocabularies and machines; engines inside a server, with GPUs and batches; wall-clock tails. The peers
do not all enforce the same: xgrammar leaves keywords out with a warning and closes objects (strict_mode), llguidance
refuses what it cannot do; "invalid accepted" above counts what follows from that. Caches are filled as in a running
server: a schema that shares leaves with an earlier one uses the cached results.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=60, help="a fixed spread of so many; 0: all")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--xgrammar", type=int, default=0, help="a spread of so many of them for xgrammar; 0: all")
    parser.add_argument("--only", default="guideway,llguidance,xgrammar")
    parser.add_argument("--worst", type=int, default=0, help="list so many of our dearest steps and first masks")
    parser.add_argument("--record", action="store_true", help="write the report and a plot to benchmarks/record/")
    given = parser.parse_args()
    cases = data.cases()
    cases = data.spread(cases, given.schemas or len(cases))
    kinds = [kind for kind in (Guideway, LLGuidance, XGrammar) if kind.package in given.only.split(",")]
    engines: list[Engine] = [kind(data.tekken()) for kind in kinds]
    few = data.spread(cases, given.xgrammar or len(cases))
    results = run(engines, cases, given.passes, {"xgrammar": few})

    report = Report("maskbench", [f"{len(cases)} schemas of maskbench-dev, Tekken 131k, best of {given.passes}"])
    for engine in engines:
        report.line(f"{engine.title()}: {engine.setting}")
    report.line(f"the clocks add {overhead():.2f} us to each wall time; nothing is taken off")
    rows = [verdicts(results, cases, engine.package) for engine in engines]
    report.table("what compiles", ["engine", "schemas", "valid accepted", "invalid accepted"], rows)
    for name in ("llguidance", "xgrammar"):
        if {"guideway", name} <= set(results.met):
            compared(results, cases, "guideway", name, report)
    report.judge(BARS)
    if given.worst:
        report.line("\n".join(["", *worst(results, cases, given.worst)]))
        Path(".bench").mkdir(exist_ok=True)
        reasons = [f"{name}\t{why}" for name, why in results.refused.get("guideway", {}).items()]
        Path(".bench/refused.txt").write_text("\n".join(reasons), encoding="utf-8")
    report.line(NOT_SHOWN)
    report.done(given.record)
    if given.record:
        from harness.plot import distributions

        distributions(results, cases, report.path.with_suffix(".png"))


if __name__ == "__main__":
    main()
