"""What each mechanism of the kernel saves: instructions, times and memory with it off and all others on.

    python benchmarks/bench_mechanisms.py [--corpora dev hard ...] [--schemas 40] [--seed 0] [--passes 3] [--only NAME...]
                                          [--no-counts] [--jobs 2] [--record]

Builds kernel/bench/mechanisms.cpp (or takes `--program`), writes programs and tokenized texts for it, and runs it once for
each switch of kernel/base/tuning.h and each corpus. Callgrind (Debian: valgrind) counts instructions in one run; times are
the least of several passes, in microseconds of thread CPU time. All constraints of a corpus share one store, as in a
server, so a mask is cold unless another constraint needed the same. Percentages are how many more instructions are
executed without the mechanism: in compiles, in the first mask of each constraint, in the other masks of the first walk
along the texts, in the steps between them, and in the masks of the second walk.

What the figures do not show: other machines, and constraints that the corpora do not contain.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tomllib

import guideway as gw
from guideway import _kernel
from guideway.constraints import of
from guideway.grammar.program import encode
from harness import data
from harness.report import Report
from harness.slow import slow_cases

ROOT = Path(__file__).parents[1]
COUNTS = ("compile", "first", "cold", "step", "warm")
TIMES = ("mean", "p50", "p99", "p99.9", "max")
MOST_TOKENS = 400
Case = tuple[Any, list[str]]  # a constraint and texts


def build() -> Path:
    """The benchmark program, in build/mechanisms."""
    folder = ROOT / "build" / "mechanisms"
    options = ["-DGUIDEWAY_PYTHON=OFF", "-DGUIDEWAY_BENCH=ON", "-DCMAKE_BUILD_TYPE=Release"]
    cmake = Path(sys.executable).parent / "cmake"
    subprocess.run([cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", folder, "--target", "mechanisms"], check=True, stdout=subprocess.DEVNULL)
    return folder / "mechanisms"


def sample(seed: str, schemas: int, profile: Any) -> Iterator[Case]:
    """Random schemas of maskbench-dev with their instances."""
    for case in random.Random(seed).sample(data.cases(), schemas):
        texts = [data.text_of(instance) for instance, _ in case.instances]
        yield gw.JsonSchema(case.schema, profile=profile, unknown_keywords="ignore"), texts


def hard() -> Iterator[Case]:
    """Each second file of maskbench-hard, if it has instances, in the exact profile, with two instances each."""
    for path in sorted((data.folder() / "maskbench-hard").glob("*.json"))[::2]:
        given = json.loads(path.read_text("utf-8"))
        texts = [data.text_of(test["data"]) for test in given["tests"][:2]]
        try:
            if texts:
                yield gw.JsonSchema(given["schema"], profile="exact", unknown_keywords="ignore"), texts
        except gw.GuidewayError:  # refused: only what compiles is measured
            continue


def conformance(name: str) -> list[dict[str, Any]]:
    """The cases of a file of tests/conformance."""
    text = (ROOT / "tests" / "conformance" / f"{name}.toml").read_text("utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["case"]
    return found


def grammars() -> Iterator[Case]:
    """Grammars and patterns of tests/conformance, with texts that fit and texts that do not."""
    makers: dict[str, Callable[[str], Any]] = {"gbnf": gw.Gbnf, "ebnf": gw.Ebnf, "lark": gw.Lark, "regex": gw.Regex}
    for name, make in makers.items():
        for case in conformance(name):
            try:
                yield make(case["pattern" if name == "regex" else "grammar"]), case["pass"] + case["miss"]
            except gw.GuidewayError:  # refused: only what compiles is measured
                continue


def formats() -> Iterator[Case]:
    """The formats: alone, with a bound on their length, and as unique items; each third one with a pattern, too."""
    for number, case in enumerate(conformance("formats")):
        string = {"type": "string", "format": case["format"]}
        texts = [json.dumps(text) for text in case["pass"][:3] + case["miss"][:1]]
        bounds: list[dict[str, Any]] = [{}, {"maxLength": 24}]
        bounds += [{"minLength": 5, "pattern": "[0-9a-f].*[^x]"}] if number % 3 == 0 else []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                made = [gw.JsonSchema(string | bound) for bound in bounds]
            except gw.errors.SchemaWarning:  # a format of Python's types only
                continue
        for one in made:
            yield one, texts
        items = [json.dumps(case["pass"][:2] + case["pass"][:1])]
        yield gw.JsonSchema({"type": "array", "items": string, "uniqueItems": True}, profile="exact"), items


def slow() -> Iterator[Case]:
    """The cases of bench_slow.py, but for the two that are large."""
    for case in slow_cases():
        if len(str(case.schema)) < 100_000:
            yield (gw.Regex if case.pattern else gw.JsonSchema)(case.schema), [case.text]


def corpora(seed: str, schemas: int) -> dict[str, Callable[[], Iterator[Case]]]:
    """Name -> its cases."""
    return {
        "dev": lambda: sample(f"{seed} dev", schemas, "generation"),
        "exact": lambda: sample(f"{seed} exact", schemas, "exact"),
        "hard": hard,
        "formats": formats,
        "slow": slow,
        "grammars": grammars,
    }


def write(path: Path, cases: Iterator[Case]) -> int:
    """Writes the input; how many constraints are in it."""
    words: list[np.ndarray] = []

    def add(*lists: list[int] | np.ndarray) -> None:
        for each in lists:
            values = np.asarray(each, np.uint32)
            words.extend((np.asarray([len(values)], np.uint32), values))

    block = _kernel.flatten(data.tekken())
    padded = np.frombuffer(block + b"\0" * (-len(block) % 4), np.uint32)
    add(padded)
    words.append(np.asarray([len(block)], np.uint32))
    add(np.frombuffer(_kernel.KernelVocabulary.of_block(block, [data.EOS], []).save(), np.uint32), [data.EOS])
    tokens, count = data.encoder(), 0
    for constraint, texts in cases:
        try:
            program = np.frombuffer(encode(of(constraint).grammar()), np.uint32)
        except gw.GuidewayError:  # refused: only what compiles is measured
            continue
        add(program)
        words.append(np.asarray([len(texts)], np.uint32))
        add(*([*tokens(text), data.EOS][:MOST_TOKENS] for text in texts))
        count += 1
    np.concatenate(words).tofile(path)
    return count


def run(program: Path, given: Path, passes: int, off: str) -> dict[str, list[float] | str]:
    """What one native run prints."""
    arguments = [str(program), str(given), str(passes), *([off] if off else [])]
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    found: dict[str, list[float] | str] = {}
    for name, *values in (line.split() for line in lines):
        found[name] = values[0] if name == "digest" else [float(value) for value in values]
    return found


def instructions(program: Path, given: Path, off: str) -> list[int]:
    """Instructions of each of `COUNTS`."""
    if shutil.which("valgrind") is None:
        raise SystemExit("bench_mechanisms.py counts instructions with valgrind, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        tool += [f"--toggle-collect=count_{name}" for name in COUNTS]
        arguments = [*tool, str(program), str(given), "0", *([off] if off else [])]
        subprocess.run(arguments, check=True, capture_output=True)
        show = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", f"{folder}/out"]
        shown = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    found = {
        name: int(count.replace(",", "")) for count, name in re.findall(r"^ *([\d,]+) .*:count_(\w+) ", shown, re.M)
    }
    return [found.get(name, 0) for name in COUNTS]


def more(count: int, base: int) -> str:
    """A difference in percent."""
    return f"{100 * (count / base - 1):+.1f}" if base else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]  # it has a docstring
    parser.add_argument("--corpora", nargs="*", default=["dev", "exact", "hard", "formats", "slow", "grammars"])
    parser.add_argument("--schemas", type=int, default=40)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=_kernel.KernelVocabulary.mechanisms())
    parser.add_argument("--no-counts", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--program", type=Path)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    program = given.program or build()
    report = Report("mechanisms", ["Tekken's 131,072 tokens; one store for each corpus"])
    makers, variants = corpora(given.seed, given.schemas), ("", *given.only)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        for corpus in given.corpora:
            path = Path(folder) / corpus
            count = write(path, makers[corpus]())
            counts = [[0] * len(COUNTS)] * len(variants)
            if not given.no_counts:  # counts do not depend on what else runs
                counts = list(pool.map(lambda off, path=path: instructions(program, path, off), variants))  # type: ignore[misc]  # mypy infers no type for the default
            rows, digest = [], ""
            for off, counted in zip(variants, counts, strict=True):
                found = run(program, path, given.passes, off)
                digest = digest or str(found["digest"])
                if found["digest"] != digest:
                    raise SystemExit(f"masks of {corpus} differ without {off}")
                figures = [f"{count / 1e6:.2f}" for count in (sum(counted), *counted)]
                if off:
                    pairs = zip((sum(counted), *counted), (sum(counts[0]), *counts[0]), strict=True)
                    figures = [more(one, base) for one, base in pairs]
                step, first, warm = (found.get(name, [0] * 6) for name in ("step", "first", "warm"))
                shown = (*step[1:], first[1], first[5], warm[1])
                memory = f"{found['memory'][0] / 1e6:.2f}"  # type: ignore[operator]  # a list
                rows.append(
                    [off or "all on", "" if off else "millions", *figures, *(f"{time:.1f}" for time in shown), memory]
                )
                print(corpus, *rows[-1], flush=True)
            heads = ["without", "", "all", *COUNTS, *TIMES, "TTFM", "max", "warm", "MB"]
            report.table(f"{corpus}: {count} constraints; instructions in %, mask and step in us", heads, rows)
    report.done(given.record)


if __name__ == "__main__":
    main()
