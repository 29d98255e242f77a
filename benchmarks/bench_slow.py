"""Constraints that break engines: compile time, and the slowest mask along a text, cold.

    python benchmarks/bench_slow.py [--limit 60] [--only enum] [--record]

Each engine runs each case in a separate process with a time limit. guideway's vocabulary is new in each process, so
that memos are empty. Compile: wall time in ms without the first mask, best of 3 (one run if it takes over a second).
Steps: advance and mask, CPU us of the calling thread, a single walk. Bars: a mask in 1 ms; compile in 50 ms (the 20,000
`$defs`: 2 s).
"""

from __future__ import annotations

import argparse
import gc
from typing import Any

from harness import data
from harness.engines import Engine, Guideway, LLGuidance, Refused, XGrammar
from harness.others import guarded
from harness.report import Report
from harness.runs import WARM_UP, once
from harness.slow import Slow, slow_cases
from harness.timing import timed, walked


def measure(engine: Engine, case: Slow, tokens: list[int]) -> tuple[float, float, list[float]]:
    """Compile (ms), the first mask (us), and each step (us)."""
    compiled, best = None, float("inf")
    gc.disable()
    for _ in range(3):
        engine.fresh()
        compiled = None
        compiled, (wall, _) = timed(lambda: engine.regex(case.schema) if case.pattern else engine.compile(case.schema))
        best = min(best, wall / 1000)
        if wall > 1e6:
            break
    walker = engine.start(compiled)
    _, (_, first) = timed(walker.fill)
    times = walked(walker, tokens)
    if times is None or not engine.may_end():
        raise Refused("a valid text is refused")
    return best, first, times[1].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20, help="seconds that an engine gets for a case")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--engines", default="guideway,llguidance,xgrammar")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    encode, report = data.encoder(), Report("slow", [f"Tekken 131k, {given.limit:g} s for each case and engine"])
    kinds = [kind for kind in (Guideway, LLGuidance, XGrammar) if kind.package in given.engines.split(",")]
    engines = [kind(data.tekken()) for kind in kinds]
    for engine in engines[:1]:
        once(engine, WARM_UP, [encode('{"a": "b"}')], 1)
    rows: list[list[str]] = []
    missed: list[str] = []
    for case in slow_cases():
        if given.only not in case.name:
            continue
        tokens = encode(case.text)
        for engine in engines:
            task: Any = lambda e=engine, c=case, t=tokens: measure(e, c, t)  # noqa: E731 (bound to this turn)
            try:
                compile_ms, first, steps = guarded(task, given.limit)
            except Refused as why:
                rows.append([case.name, engine.package, "", "", "", "", str(why).replace("\n", " ")[:60]])
                if engine.package == "guideway":
                    missed.append(f"{case.name}: {why}"[:120])
                continue
            numbers = [f"{compile_ms:,.2f}", f"{first:,.0f}", f"{sum(steps) / len(steps):,.1f}", f"{max(steps):,.0f}"]
            dearest = case.text and f"at token {steps.index(max(steps))} of {len(steps)}"
            rows.append([case.name, engine.package, *numbers, dearest])
            if engine.package == "guideway":
                if compile_ms > case.compile_ms:
                    missed.append(f"{case.name}: {compile_ms:.0f} ms to compile, at most {case.compile_ms:g}")
                if max([first, *steps]) > 1000:
                    missed.append(f"{case.name}: {max([first, *steps]):.0f} us for a mask, at most 1,000")
    heads = ["case", "engine", "compile ms", "first mask us", "mean step", "max step", "dearest, or why not"]
    report.table("slow cases", heads, rows)
    report.line()
    report.lines += [f"bar MISSED: {line}" for line in missed] or ["bars: all met"]
    report.done(given.record)


if __name__ == "__main__":
    main()
