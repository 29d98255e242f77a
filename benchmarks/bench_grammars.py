"""Context-free grammars, compared with llguidance (Lark), xgrammar (EBNF) and llama.cpp (GBNF): compile and each step.

    python benchmarks/bench_grammars.py [--texts 40] [--limit 60] [--record]

Languages of tests/real over Tekken's 131,072 tokens: texts of JSON are instances of MaskBench, the others are masked
samples. Each engine walks the texts that it accepts in a separate process with a time limit. The comparison uses the
texts that all engines accepted, among the engines that accept the grammar. llama.cpp walks only the first two texts,
since its steps take tens of milliseconds, and is compared on these. Two walks: the first without caches ("cold"), then
a repeat. Compile: wall time in ms, best of 3. Steps: advance + mask; p50 in wall time, p99 in CPU time of the thread,
both in us.
Bars: p50 at most half, p99 at most a third of the best peer's; JSON as a grammar at most 3 times the native frames.
"""

from __future__ import annotations

import argparse
import gc
from functools import partial
from typing import Any

import numpy as np

from harness import data
from harness.engines import Engine, Guideway, LLGuidance, Refused, XGrammar
from harness.grammars import Task, tasks
from harness.llama_grammar import LlamaCpp
from harness.others import guarded
from harness.report import Report
from harness.timing import Times, summary, timed, walked

_FEW = 2  # texts that llama.cpp walks


def compiled(engine: Engine, notation: str, text: str) -> Any:
    """Compiles the grammar. Raises `Refused`."""
    if isinstance(engine, Guideway):
        import guideway as gw

        source: Any = (
            gw.JsonSchema({}, profile="exact")
            if notation == "native"
            else {"lark": gw.Lark, "gbnf": gw.Gbnf}[notation](text)
        )
        return gw.compile(source, engine.vocabulary, cache=False)
    if isinstance(engine, LLGuidance):
        from llguidance import LLMatcher

        return engine._checked(LLMatcher.grammar_from_lark(text))
    if isinstance(engine, LlamaCpp):
        return engine.grammar(text)
    try:
        return engine.compiler.compile_grammar(text)  # type: ignore[attr-defined]  # xgrammar's, the only one left
    except Exception as error:  # it raises RuntimeError and others, by what went wrong inside
        raise Refused(str(error)) from error


def measure(engine: Engine, notation: str, text: str, rows: list[list[int]]) -> tuple[float, list[list[Any]]]:
    """Compile (ms), and for both walks the times of each text, None where it was refused."""
    best, ready = float("inf"), None
    for _ in range(3):
        engine.fresh()
        ready, (wall, _) = timed(lambda: compiled(engine, notation, text))
        best = min(best, wall / 1000)
        if wall > 1e6:
            break
    gc.disable()
    walks: list[list[Any]] = []
    for _ in range(2):
        found: list[Any] = []
        for tokens in rows:
            times = walked(engine.start(ready), tokens)
            found.append(None if times is None else times.tolist())
        walks.append(found)
    return best, walks


def notations(task: Task) -> list[tuple[type[Engine], str]]:
    """Returns the engines that accept the task with their notations; guideway runs in the notation of each peer."""
    made: list[tuple[type[Engine], str]] = []
    for notation, kinds in (("lark", (LLGuidance,)), ("gbnf", (XGrammar, LlamaCpp))):
        if notation in task.grammars:
            made += [(Guideway, notation), *((kind, notation) for kind in kinds)]
    return [*made, (Guideway, "native")] if task.name == "JSON" else made


def rows_of(task: Task, engines: dict[type[Engine], Engine], limit: float, report: Report) -> list[list[str]]:
    """The table of a language."""
    encode = data.encoder()
    encoded = [encode(text) for text in task.texts]
    done: dict[tuple[type[Engine], str], tuple[float, list[list[Any]]]] = {}
    rows = []
    for kind, notation in notations(task):
        walked = encoded[:_FEW] if kind is LlamaCpp else encoded
        run = partial(measure, engines[kind], notation, task.grammars.get(notation, ""), walked)
        try:
            done[kind, notation] = guarded(run, limit)
        except Refused as why:
            rows.append([task.name, f"{kind.package} ({notation})", *[""] * 6, str(why).replace("\n", " ")[:60]])
    whole = [walks for (kind, _), (_, walks) in done.items() if kind is not LlamaCpp]
    common = [n for n in range(len(encoded)) if all(walks[0][n] is not None for walks in whole)]
    figures: dict[tuple[type[Engine], str], list[dict[str, float]]] = {}
    for (kind, notation), (best, walks) in done.items():
        taken = sum(times is not None for times in walks[0])
        compared = [n for n, times in enumerate(walks[0]) if times is not None] if kind is LlamaCpp else common
        if not compared:
            continue
        figures[kind, notation] = [summary([_times(walk[n]) for n in compared]).values for walk in walks]
        cells = [f"{walk[key]:,.1f}" for walk in figures[kind, notation] for key in ("p50", "p99")]
        cold = figures[kind, notation][0]
        rows.append(
            [
                task.name,
                f"{kind.package} ({notation})",
                f"{best:,.1f}",
                *cells,
                f"{cold['max']:,.0f}",
                f"{taken} of {len(walks[0])} texts",
            ]
        )
    _bars(task, figures, report)
    return rows


def _times(values: Any) -> Times:
    return np.array(values, np.float64)


def _bars(task: Task, figures: dict[tuple[type[Engine], str], list[dict[str, float]]], report: Report) -> None:
    ours = [walks[0] for (kind, notation), walks in figures.items() if kind is Guideway and notation != "native"]
    theirs = [walks[0] for (kind, _), walks in figures.items() if kind is not Guideway]
    for key, factor in (("p50", 2), ("p99", 3)):
        if ours and theirs:
            ratio = min(one[key] for one in theirs) / max(one[key] for one in ours)
            word = "met" if ratio >= factor else "MISSED"
            report.line(f"{task.name}: {key} {ratio:.1f} times lower than the best peer's, cold (bar {factor}): {word}")
    native = figures.get((Guideway, "native"))
    if native and ours:
        ratio = max(one["p50"] for one in ours) / native[0]["p50"]
        report.line(
            f"JSON as a grammar: p50 {ratio:.1f} times the native frames' (bar 3): {'met' if ratio <= 3 else 'MISSED'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--limit", type=float, default=30, help="seconds that an engine gets for a language")
    parser.add_argument("--only", default="", help="languages whose name holds this")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    report = Report("grammars", [f"Tekken 131k, {given.texts} texts, {given.limit:g} s for each language and engine"])
    kinds = (Guideway, LLGuidance, XGrammar, LlamaCpp)
    engines: dict[type[Engine], Engine] = {kind: kind(data.tekken()) for kind in kinds}
    rows: list[list[str]] = []
    for task in tasks(given.texts, given.only):
        rows += rows_of(task, engines, given.limit, report)
        print("\n".join(" | ".join(row) for row in rows if row[0] == task.name), flush=True)
    heads = ["language", "engine", "compile ms", "p50", "p99", "again p50", "p99", "max cold", "texts, or why not"]
    report.table("Steps in us", heads, rows)
    report.done(given.record)


if __name__ == "__main__":
    main()
