"""Times of vocabulary set-up and compilation: first, from memory, from disk; with llguidance and xgrammar in one run.

    python benchmarks/bench_compile.py [--schemas 200] [--record]

Set-up: from the bytes of 131,072 tokens (Tekken) to the first mask of a small schema, without any existing object.
Cold: no cache. Warm: the vocabulary's tables are in the cache on disk, and the file is in the page cache; once from a
Python list of bytes, as for the peers, and once from a pickled `Vocabulary`, as for a new worker process. Held: the
process has a `Vocabulary`, or a forked process inherited it; only the schema remains to be compiled. Peers have no
cache of vocabularies. The floor: the time to join that list in Python.

Compile: MaskBench schemas given as dicts. "anew": the schema is parsed from text before each call, outside the measured
time. "disk": the program is in the cache on disk, and the cache in memory is empty. The last table determines which
programs are stored: it compares the times to write and to load them.

Times are processor time of the process (set-up: peers use threads) or of the thread; the lowest of several for set-up,
the median over schemas for the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Any

import numpy as np
from pydantic import create_model

import guideway as gw
from guideway import disk
from guideway.compiler import compilation as automata
from guideway.constraints import PythonType, programs
from guideway.constraints.known import content_key, states
from harness import data
from harness.engines import LLGuidance, Refused, XGrammar
from harness.report import Report

SMALL = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
LIST, PICKLE, HELD = "guideway, warm, list", "guideway, warm, pickle", "guideway, held"
BARS: list[tuple[str, dict[str, float]]] = [
    (name, {"llguidance": 50.0, "xgrammar": 50.0}) for name in (LIST, PICKLE, HELD)
]


def ours(vocabulary: Callable[[], gw.Vocabulary]) -> None:
    """From token bytes to the first mask, known to no cache in memory."""
    made = vocabulary()
    matcher = gw.compile(gw.JsonSchema(SMALL), made, cache=False).matcher()
    matcher.fill_mask(np.zeros((len(made) + 31) // 32, dtype=np.uint32))


def theirs(kind: type[LLGuidance] | type[XGrammar], tokens: list[bytes]) -> None:
    engine = kind(tokens)
    fill = engine.start(engine.compile(SMALL)).fill
    fill()


def lowest(call: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Milliseconds of processor and of the clock."""
    found = []
    for _ in range(times):
        cpu, wall = process_time(), perf_counter()
        call()
        found.append(((process_time() - cpu) * 1e3, (perf_counter() - wall) * 1e3))
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def set_up(report: Report, tokens: list[bytes]) -> None:
    special = [i for i, token in enumerate(tokens) if not token]
    listed = partial(gw.Vocabulary, tokens, [data.EOS], special)
    pickled = partial(pickle.loads, pickle.dumps(listed()))
    with disk.disabled():
        rows = {"guideway, cold": lowest(partial(ours, listed))}
    ours(listed)  # writes the file
    rows[LIST] = lowest(partial(ours, listed), 20)
    rows[PICKLE] = lowest(partial(ours, pickled), 20)
    held = listed()
    rows[HELD] = lowest(partial(ours, lambda: held), 20)
    rows["floor: b''.join(list)"] = lowest(partial(b"".join, tokens), 20)
    rows["floor: the list, digested"] = lowest(lambda: listed().fingerprint, 20)
    for kind in (LLGuidance, XGrammar):
        try:
            rows[kind.package] = lowest(partial(theirs, kind, tokens), 5)
        except ImportError:
            report.line(f"{kind.package}: not installed")
    for ours_name in (LIST, PICKLE, HELD):
        for name, (cpu, _) in rows.items():
            report.ratios[f"{ours_name} vs {name}"] = cpu / rows[ours_name][0]
    cells = []
    for name, (cpu, wall) in rows.items():
        ratios = [f"{cpu / rows[kind][0]:.1f}x, {wall / rows[kind][1]:.1f}x" for kind in (LIST, PICKLE, HELD)]
        cells.append([name, "", f"{cpu:.2f}", f"{wall:.2f}", *ratios])
    heads = ["", "", "cpu ms", "wall ms", "to list (cpu, wall)", "to pickle", "to held"]
    report.table("set-up, 131,072 tokens: bytes to first mask", heads, cells)


def timed(call: Callable[[], Any]) -> float:
    start = thread_time()
    call()
    return (thread_time() - start) * 1e6


def compiling(report: Report, tokens: tuple[bytes, ...], count: int) -> None:
    vocabulary = gw.Vocabulary(tokens, eos_ids=[data.EOS])
    others = [LLGuidance(tokens), XGrammar(tokens)]
    found: dict[str, list[float]] = {}
    for case in data.spread(data.cases(), count):
        if type(case.schema) is not dict:
            continue
        text = json.dumps(case.schema)
        try:
            with disk.disabled():
                first = timed(partial(gw.compile, json.loads(text), vocabulary))
            source = gw.JsonSchema(case.schema, unknown_keywords="ignore")
            gw.compile(source, vocabulary)
        except gw.GuidewayError:
            continue
        gw.compile(json.loads(text), vocabulary)
        found.setdefault("guideway, first", []).append(first)
        anew = [json.loads(text) for _ in range(20)]
        hits = [timed(partial(gw.compile, one, vocabulary)) for one in anew]
        found.setdefault("guideway, memory, dict anew", []).append(min(hits))
        hits = [timed(partial(gw.compile, source, vocabulary)) for _ in range(20)]
        found.setdefault("guideway, memory, same source", []).append(min(hits))
        gw.cache.clear(functions=False)
        gw.compile(json.loads(text), vocabulary)
        times = []
        for _ in range(3):
            gw.cache.clear(functions=False)
            one = json.loads(text)
            times.append(timed(partial(gw.compile, one, vocabulary)))
        found.setdefault("guideway, disk (all stored)", []).append(min(times))
        for engine in others:
            try:
                found.setdefault(engine.package + ", first", []).append(timed(partial(engine.compile, case.schema)))
            except Refused:
                continue
    rows = []
    for name, times in found.items():
        times.sort()
        rows.append([name, str(len(times)), *(f"{times[int(q * (len(times) - 1))]:,.1f}" for q in (0.5, 0.9, 0.99, 1))])
    report.table("compile, thread CPU us", ["", "schemas", "p50", "p90", "p99", "max"], rows)
    for name in ("guideway, memory, same source", "guideway, memory, dict anew"):
        report.limit(f"{name}, median", median(found[name]), 20, "us")


def equal(report: Report, tokens: tuple[bytes, ...]) -> None:
    """Constraints that are equal to earlier ones: constructed and compiled again, and in a process that has the disk."""
    vocabulary = gw.Vocabulary(tokens, eos_ids=[data.EOS])
    schema = {"type": "object", "properties": {f"name {i}": {"type": "string", "maxLength": i + 1} for i in range(200)}}
    text = json.dumps(schema)
    rules = 'start: item+\nitem: "a" NUMBER ";"\nNUMBER: /[0-9]+/\n' + "".join(f'x{i}: "b{i}"\n' for i in range(300))
    fields: Any = {f"field_{i}": (int, ...) for i in range(100)}
    person = create_model("Person", **fields)
    kinds: dict[str, Callable[[], object]] = {
        f"JsonSchema(dict), {len(text):,} bytes": lambda: gw.JsonSchema(schema),
        "JsonSchema(text), the same": lambda: gw.JsonSchema(text),
        "a Pydantic type of 100 fields": lambda: person,
        "an equal Pydantic type": lambda: PythonType(create_model("Person", **fields)),
        f"Lark, {len(rules):,} bytes": lambda: gw.Lark(rules),
        "Tags of that schema": lambda: gw.Tags([gw.Tag("<a>", gw.JsonSchema(text), "</a>")]),
        "Reasoning, then that schema": lambda: gw.Reasoning(gw.JsonSchema(text)),
        "ToolCalls, one tool with that schema": lambda: gw.ToolCalls(
            [{"name": "f", "parameters": schema}], family="hermes"
        ),
        "Regex": lambda: gw.Regex("[a-z]+@[a-z]+"),
    }
    rows = []
    for name, make in kinds.items():
        gw.cache.clear(disk_too=True)

        def call(make: Callable[[], object] = make) -> None:
            gw.compile(make(), vocabulary)

        first = timed(call)
        again = min(timed(call) for _ in range(50))
        times = []
        for _ in range(3):
            gw.cache.clear(functions=False)
            states.clear()  # clears the cached states of constraints, but not what a process computes once
            times.append(timed(call))
        rows.append([name, f"{first:,.0f}", f"{again:,.1f}", f"{min(times):,.0f}"])
    heads = ["constructed and compiled, thread CPU us", "first", "again", "from disk"]
    report.table(
        "equal constraints (an equal Pydantic type: its class and its schema are made by Pydantic)", heads, rows
    )


def loaded(schema: dict[str, Any]) -> None:
    automata._program(schema, content_key(schema), 1 << 30)


def worth(report: Report, count: int) -> None:
    """How long a program takes to write, and to load instead."""
    files = disk.cache()
    if files is None:
        return
    rows: list[tuple[int, float, float]] = []
    for case in data.spread(data.cases(), count):
        if type(case.schema) is not dict:
            continue
        try:
            with disk.disabled():
                write = min(timed(partial(automata._program, case.schema, None, 0)) for _ in range(3))
                program, _, _ = automata._program(case.schema, None, 0)
        except gw.GuidewayError:
            continue
        key = content_key(case.schema)
        if key is None:
            continue
        programs.store(key, program, 1.0)
        load = min(timed(partial(loaded, case.schema)) for _ in range(5))
        rows.append((len(json.dumps(case.schema)), write, load))
    cells = []
    for low, high in ((0, 512), (512, 1024), (1024, 4096), (4096, 1 << 30)):
        part = [(write, load) for size, write, load in rows if low <= size < high]
        if part:
            write, load = median(w for w, _ in part), median(x for _, x in part)
            over = sum(w >= programs.STORE_SECONDS * 1e6 for w, _ in part)
            cells.append([f"{low} bytes and more", str(len(part)), f"{write:,.0f}", f"{load:,.0f}", f"{over}"])
    report.table(
        f"a program written or loaded, median thread CPU us; stored from {programs.STORE_SECONDS * 1e3:g} ms on",
        ["schema's text", "schemas", "write", "load", "stored"],
        cells,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    report = Report("compile", [LLGuidance.title(), XGrammar.title()])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GUIDEWAY_CACHE_DIR"] = folder
        tokens = data.tekken()
        set_up(report, list(tokens))
        worth(report, options.schemas)
        stored, looked = programs.STORE_SECONDS, programs.LOOK_BYTES
        programs.STORE_SECONDS, programs.LOOK_BYTES = 0.0, 0
        compiling(report, tokens, options.schemas)
        programs.STORE_SECONDS, programs.LOOK_BYTES = stored, looked
        equal(report, tokens)
    report.judge(BARS)
    report.done(options.record)


if __name__ == "__main__":
    main()
