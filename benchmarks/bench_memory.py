"""Memory: vocabulary, automaton, matcher, and 1,000 live automata.

    python benchmarks/bench_memory.py [--automata 1000] [--peers 100] [--record]

Resident memory before and after, of a separate process for each engine; progress goes to stderr. `--peers 0` omits the
peers. Automata: from MaskBench schemas, each compiled without a cache (if fewer schemas compile than requested, some
are repeated). Each "live" automaton has a matcher that has walked an instance with a mask at each token, so that the
memory of masks is included. Peers compile fewer schemas, since xgrammar needs minutes.
Bar: 1,000 live automata, 60 MB above the vocabulary.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import cycle
from typing import Any

from harness import data
from harness.engines import Engine, Guideway, LLGuidance, Refused, XGrammar
from harness.others import guarded
from harness.report import Report
from harness.resident import resident
from harness.runs import WARM_UP, once
from harness.timing import walked

TEXT = '{"a": "b"}'


def told(kind: type[Engine], what: str, since: float) -> None:
    """Progress."""
    print(f"{kind.package}: {what} ({time.monotonic() - since:.0f} s)", file=sys.stderr, flush=True)


def measure(kind: type[Engine], count: int, tokens: dict[str, list[int]]) -> dict[str, float]:
    """MB by what it is for."""
    begun = time.monotonic()
    cases = [case for case in data.cases() if case.name in tokens]
    table = data.tekken()
    start = resident()
    engine = kind(table)
    found = {"vocabulary": resident() - start}
    once(engine, WARM_UP, [data.encoder()(TEXT)], 1)
    held: list[Any] = []
    base = resident()
    told(kind, "vocabulary", begun)
    for case in cycle(cases):
        try:
            held.append((engine.compile(case.schema), case.name))
        except Refused:
            tokens.pop(case.name, None)
        if len(held) % 100 == 99:
            told(kind, f"{len(held) + 1} automata", begun)
        if len(held) == count or not tokens:
            break
    found["schemas"] = len({name for _, name in held})
    found["compiled"] = resident() - base
    matchers = [(engine.matcher(made), name) for made, name in held]
    found["matchers"] = resident() - base - found["compiled"]
    for number, (matcher, name) in enumerate(matchers):
        walked(engine.bound(matcher), tokens[name])
        if number % 100 == 99:
            told(kind, f"{number + 1} texts", begun)
    found["live"] = resident() - base
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--automata", type=int, default=1000)
    parser.add_argument("--peers", type=int, default=40)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    encode, report = data.encoder(), Report("memory", ["Tekken 131k, MB of resident memory"])
    texts = {case.name: [data.text_of(i) for i, valid in case.instances if valid] for case in data.cases()}
    tokens = {name: encode(max(some, key=len)) for name, some in texts.items() if some}
    rows = []
    for kind in (Guideway, LLGuidance, XGrammar):
        count = given.automata if kind is Guideway else given.peers
        if not count:
            continue
        found = guarded(lambda k=kind, c=count: measure(k, c, dict(tokens)), 600)  # type: ignore[misc]  # its defaults
        each = [f"{found[key] * 1000 / count:,.1f}" for key in ("compiled", "matchers", "live")]
        totals = [f"{count} ({found['schemas']:.0f} schemas)", f"{found['live']:,.1f}"]
        rows.append([kind.package, f"{found['vocabulary']:,.1f}", *totals, *each])
        if kind is Guideway:
            live = found["live"] * 1000 / count
    heads = ["engine", "vocabulary", "automata", "live, all", "KB per automaton", "KB per matcher", "KB per live one"]
    report.table("memory (MB, KB)", heads, rows)
    report.line()
    report.limit("1,000 live automata above the vocabulary", live, 60, "MB")
    report.done(given.record)


if __name__ == "__main__":
    main()
