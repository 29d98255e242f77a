"""The same as bench_maskbench.py for outlines-core, lm-format-enforcer and Formatron. They define no bar.

    python benchmarks/bench_others.py [--schemas 40] [--limit 15] [--record]

Each engine has a separate process per schema, with a time limit. A schema that takes longer counts as not compiled and
is reported. Their machines are built by their own JSON Schema front ends.
"""

from __future__ import annotations

import argparse

from harness import data
from harness.engines import Guideway, Refused
from harness.others import Formatron, LMFormatEnforcer, OutlinesCore, guarded
from harness.report import Report
from harness.runs import WARM_UP, Results, compared, once, verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=6, help="a fixed spread of so many; 0: all")
    parser.add_argument("--limit", type=float, default=10, help="seconds that a peer gets for a schema")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    cases = data.cases()
    cases = data.spread(cases, given.schemas or len(cases))
    encode, results = data.encoder(), Results()
    tokens = {case.name: [encode(data.text_of(i)) for i, _ in case.instances] for case in cases}
    ours = Guideway(data.tekken())
    once(ours, WARM_UP, [encode('{"a": "b"}')], 1)
    engines = [ours, OutlinesCore(data.tekken()), LMFormatEnforcer(data.tekken()), Formatron(data.tekken())]
    for case in cases:
        for engine in engines:
            try:
                if engine is ours:
                    met = once(engine, case.schema, tokens[case.name], 1)
                else:
                    task = lambda e=engine, c=case: once(e, c.schema, tokens[c.name], 3)  # noqa: E731 (bound here)
                    met = guarded(task, given.limit)
                results.put(engine.package, case.name, met)
            except Refused as why:
                results.refused.setdefault(engine.package, {})[case.name] = str(why)

    report = Report("others", [f"{len(cases)} schemas of maskbench-dev, Tekken 131k, {given.limit:g} s for each"])
    for engine in engines:
        late = sum(why.startswith("over ") for why in results.refused.get(engine.package, {}).values())
        report.line(f"{engine.title()}: {engine.setting}; out of time: {late}")
    rows = [verdicts(results, cases, engine.package) for engine in engines]
    report.table("what compiles", ["engine", "schemas", "valid accepted", "invalid accepted"], rows)
    for engine in engines[1:]:
        compared(results, cases, ours.package, engine.package, report)
    report.done(given.record)


if __name__ == "__main__":
    main()
