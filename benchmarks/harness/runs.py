"""Schemas through engines, interleaved: what compiles, what each step takes, and pairs of engines compared."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .data import Case, encoder, tekken, text_of
from .engines import Engine, Refused
from .report import Report
from .timing import Times, summary, timed, walked

TITLES = ("TTFM", "step", "again")
WARM_UP = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@dataclass
class Met:
    """What an engine made of a schema: TTFM, and for each instance the times of its steps (None: not accepted)."""

    ttfm: tuple[float, float]
    steps: list[Times | None]
    again: list[Times | None]  # a second walk with filled caches


@dataclass
class Results:
    """By engine, by schema; and why schemas were refused."""

    met: dict[str, dict[str, Met]] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)  # schemas
    refused: dict[str, dict[str, str]] = field(default_factory=dict)

    def put(self, engine: str, schema: str, new: Met) -> None:
        """Stores the minimum of this pass and earlier passes, step by step."""
        old = self.met.setdefault(engine, {}).get(schema)
        if old is not None:
            new.ttfm = (min(old.ttfm[0], new.ttfm[0]), min(old.ttfm[1], new.ttfm[1]))
            new.steps, new.again = least(old.steps, new.steps), least(old.again, new.again)
        self.met[engine][schema] = new


def least(old: list[Times | None], new: list[Times | None]) -> list[Times | None]:
    """Of each step the better time."""
    return [b if a is None or b is None else np.minimum(a, b) for a, b in zip(old, new, strict=True)]


def once(engine: Engine, schema: object, tokens: list[list[int]], walks: int) -> Met:
    """Compile, first mask, and every instance. Raises `Refused`."""

    def first() -> object:
        made = engine.compile(schema)
        engine.start(made).fill()
        return made

    made, ttfm = timed(first)
    turns = [[walk(engine, made, ids) for ids in tokens] for _ in range(walks + 1)]
    steps = turns[0]
    for turn in turns[1:-1]:
        steps = least(steps, turn)
    return Met(ttfm, steps, turns[-1])


def walk(engine: Engine, made: object, ids: list[int]) -> Times | None:
    """A walk over a text; None where it is not accepted."""
    walker = engine.start(made)
    walker.fill()
    times = walked(walker, ids)
    return times if times is not None and engine.may_end() else None


def run(engines: list[Engine], cases: list[Case], passes: int, only: dict[str, list[Case]] | None = None) -> Results:
    """Every schema through every engine, interleaved; an engine in `only` gets those alone."""
    results, encode = Results(), encoder()
    chosen = {engine.package: {case.name for case in (only or {}).get(engine.package, cases)} for engine in engines}
    results.tried = {name: len(names) for name, names in chosen.items()}
    tokens = {case.name: [encode(text_of(i)) for i, _ in case.instances] for case in cases}
    for turn in range(passes):
        for engine in engines:
            engine.fresh()
            once(engine, WARM_UP, [encode('{"a": "b"}')], 1)
        for done, case in enumerate(cases):
            if done % 100 == 0:
                print(f"pass {turn + 1} of {passes}: {done} of {len(cases)} schemas", file=sys.stderr)
            for engine in engines:
                name = engine.package
                given_up = case.name in results.refused.get(name, {}) or (turn and not engine.repeats)
                if given_up or case.name not in chosen[name]:
                    continue
                gc.collect(0)
                gc.disable()
                try:
                    met = once(engine, case.schema, tokens[case.name], 1 if engine.repeats else passes)
                    results.put(name, case.name, met)
                except Refused as why:
                    results.refused.setdefault(name, {})[case.name] = str(why)
                finally:
                    gc.enable()
    return results


def shared(results: Results, cases: list[Case], names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Schema and number of every valid instance that all these engines accept."""
    for case in cases:
        found = [results.met.get(name, {}).get(case.name) for name in names]
        for n, (_, valid) in enumerate(case.instances):
            if valid and all(met is not None and met.steps[n] is not None for met in found):
                yield case.name, n


def verdicts(results: Results, cases: list[Case], name: str) -> list[str]:
    """Tabulates the number of schemas that an engine compiles, and its verdicts on their instances."""
    met = results.met.get(name, {})
    counts = {(valid, taken): 0 for valid in (True, False) for taken in (True, False)}
    for case in cases:
        if case.name in met:
            for (_, valid), steps in zip(case.instances, met[case.name].steps, strict=True):
                counts[valid, steps is not None] += 1
    tried = results.tried.get(name, len(cases))
    valid, invalid = (counts[v, True] + counts[v, False] for v in (True, False))
    return [
        name,
        f"{len(met)} of {tried} ({len(met) / tried:.1%})",
        f"{counts[True, True]} of {valid}",
        f"{counts[False, True]} of {invalid}",
    ]


def compared(results: Results, cases: list[Case], ours: str, other: str, report: Report) -> None:
    """Both engines over what both accept; the ratios are kept for the bars."""
    chosen = list(shared(results, cases, (ours, other)))
    schemas = sorted({schema for schema, _ in chosen})
    if not chosen:
        report.line(f"\n{ours} and {other}: no instance that both accept")
        return
    rows, found = [], {}
    for name in (ours, other):
        met = results.met.get(name, {})
        steps = summary(t for schema, n in chosen if (t := met[schema].steps[n]) is not None)
        first = summary([np.array([met[schema].ttfm for schema in schemas]).reshape(-1, 2).T])
        again = summary(t for schema, n in chosen if (t := met[schema].again[n]) is not None)
        found[name] = (first, steps, again)
        for title, made in zip(TITLES, found[name], strict=True):
            rows.append([title, name, str(made.count), *(f"{value:,.2f}" for value in made.values.values())])
    for title, mine, theirs in zip(TITLES, found[ours], found[other], strict=True):
        ratios = {key: theirs.values[key] / mine.values[key] for key in mine.values}
        report.ratios |= {f"{title} {key} vs {other}": ratio for key, ratio in ratios.items()}
        rows.append([title, "ratio", "", *(f"{ratio:.1f}x" for ratio in ratios.values())])
    rows.sort(key=lambda row: ("step", "TTFM", "again").index(row[0]))
    heads = ["", "engine", "count", "p50", "mean", "p90", "p99", "p99.9", "max"]
    report.table(f"{ours} and {other}: {len(schemas)} schemas, {len(chosen)} instances (us)", heads, rows)


def worst(results: Results, cases: list[Case], count: int) -> list[str]:
    """Returns guideway's slowest steps, with the text before them, and its slowest first masks."""
    texts = {case.name: [text_of(i) for i, _ in case.instances] for case in cases}
    table, encode = tekken(), encoder()
    found = []
    for schema, met in results.met.get("guideway", {}).items():
        for n, times in enumerate(met.steps):
            if times is not None:
                found += [(cpu, schema, n, step) for step, cpu in enumerate(times[1])]
    lines = ["dearest steps (CPU us, schema, instance, text up to where the mask is)"]
    for cpu, schema, n, step in sorted(found, reverse=True)[:count]:
        ids = encode(texts[schema][n])
        before = b"".join(table[i] for i in ids[: step + 1])
        lines.append(f"  {cpu:8.1f}  {schema} #{n} token {step}: …{before[-60:].decode(errors='replace')}")
    firsts = sorted(((met.ttfm[0], schema) for schema, met in results.met.get("guideway", {}).items()), reverse=True)
    lines.append("dearest first masks (wall us, schema)")
    return lines + [f"  {wall:8.0f}  {schema}" for wall, schema in firsts[:count]]
