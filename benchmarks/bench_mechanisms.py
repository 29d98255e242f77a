"""What each mechanism of the kernel saves: instructions, times and memory with it off and all others on.

    python benchmarks/bench_mechanisms.py [--schemas 40] [--passes 3] [--only NAME...] [--record]

Builds kernel/bench/mechanisms.cpp, writes programs and tokenized instances of MaskBench schemas for it, and runs it once for
each switch of kernel/base/tuning.h. Instructions are counted by callgrind (Debian: valgrind) in one run; times are the least
of several native runs, in microseconds of thread CPU time. All schemas share one store, as in a server, so masks are cold
unless another schema needed the same. "saves" is how many more instructions are executed without the mechanism.

What the figures do not show: other machines, warm masks, schemas that the choice does not contain.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import guideway as gw
from guideway import _kernel
from guideway.constraints import of
from guideway.grammar.program import encode
from harness import data
from harness.report import Report

ROOT = Path(__file__).parents[1]
COLUMNS = ("mean", "p50", "p99", "p99.9", "max")


def build() -> Path:
    """The benchmark program, in build/mechanisms."""
    folder = ROOT / "build" / "mechanisms"
    options = ["-DGUIDEWAY_PYTHON=OFF", "-DGUIDEWAY_BENCH=ON", "-DCMAKE_BUILD_TYPE=Release"]
    cmake = Path(sys.executable).parent / "cmake"
    subprocess.run([cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", folder, "--target", "mechanisms"], check=True, stdout=subprocess.DEVNULL)
    return folder / "mechanisms"


def write(path: Path, schemas: int) -> int:
    """Writes the input; how many schemas are in it."""
    words: list[np.ndarray] = []

    def add(*lists: list[int] | np.ndarray) -> None:
        for each in lists:
            values = np.asarray(each, np.uint32)
            words.extend((np.asarray([len(values)], np.uint32), values))

    block = _kernel.flatten(data.tekken())
    padded = np.frombuffer(block + b"\0" * (-len(block) % 4), np.uint32)
    add(padded)
    words.append(np.asarray([len(block)], np.uint32))
    add([data.EOS])
    tokens, count = data.encoder(), 0
    for case in data.spread(data.cases(), schemas):
        try:
            constraint = gw.JsonSchema(case.schema, profile="generation", unknown_keywords="ignore")
            program = np.frombuffer(encode(of(constraint).grammar()), np.uint32)
        except gw.GuidewayError:
            continue
        add(program)
        words.append(np.asarray([len(case.instances)], np.uint32))
        add(*([*tokens(data.text_of(instance)), data.EOS] for instance, _ in case.instances))
        count += 1
    np.concatenate(words).tofile(path)
    return count


def run(program: Path, given: Path, off: str) -> dict[str, list[float] | str]:
    """What one native run prints."""
    arguments = [str(program), str(given), *([off] if off else [])]
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    found: dict[str, list[float] | str] = {}
    for name, *values in (line.split() for line in lines):
        found[name] = values[0] if name == "digest" else [float(value) for value in values]
    return found


def instructions(program: Path, given: Path, off: str) -> int:
    """Instructions of compiles, masks and steps."""
    if shutil.which("valgrind") is None:
        raise SystemExit("bench_mechanisms.py counts instructions with valgrind, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", "--toggle-collect=measured", f"--callgrind-out-file={folder}/out"]
        arguments = [*tool, str(program), str(given), *([off] if off else [])]
        environment = os.environ | {"GUIDEWAY_NO_DIGEST": "1"}
        done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if counted is None:
        raise SystemExit(done.stderr)
    return int(counted[1])


def least(runs: list[dict[str, list[float] | str]]) -> dict[str, list[float]]:
    """The least of each figure."""
    made: dict[str, list[float]] = {}
    for name in runs[0]:
        if name != "digest":
            made[name] = [min(each) for each in zip(*(one[name] for one in runs), strict=True)]  # type: ignore[misc]  # lists
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]  # it has a docstring
    parser.add_argument("--schemas", type=int, default=40)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=_kernel.KernelVocabulary.mechanisms())
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    program = build()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        count = write(path, given.schemas)
        about = [f"{count} schemas of maskbench-dev with their instances, Tekken's 131,072 tokens; one store"]
        report = Report("mechanisms", about)
        variants = ("", *given.only)
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # counts do not depend on what else runs
            counts = list(pool.map(lambda off: instructions(program, path, off), variants))
        rows, base, digest = [], counts[0], ""
        for off, counted in zip(variants, counts, strict=True):
            runs = [run(program, path, off) for _ in range(given.passes)]
            digest = digest or str(runs[0]["digest"])
            if any(one["digest"] != digest for one in runs):
                raise SystemExit(f"masks differ without {off}")
            times = least(runs)
            saves = f"{100 * (counted / base - 1):+.1f} %" if off else ""
            first, step = times["first"], times["step"]
            figures = [f"{value:.1f}" for value in (*step[1:], first[1], first[5])]
            rows.append([off or "all on", saves, f"{counted / 1e6:.1f}", *figures, f"{times['memory'][0] / 1e6:.1f}"])
            print(*rows[-1], flush=True)
        heads = ["without", "saves", "million instr.", *COLUMNS, "TTFM mean", "TTFM max", "MB"]
        report.table("mask and step in us; time to first mask in us", heads, rows)
        report.done(given.record)


if __name__ == "__main__":
    main()
