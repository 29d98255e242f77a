"""The hard files of MaskBench in one process: verdicts, and the CPU time of each compile and each step.

    python -m tests.suites.hard [--orders 2] [--set maskbench-hard] [--only NAME] [--draw 100] [--worst 10]

All files use one vocabulary (Llama 3), so later files meet what earlier ones left in its store. A compile is
`JsonSchema()` and `compile` without the cache; a step is `fill_mask` and `advance`. The garbage of earlier files is
collected before each compile, so its collection is not part of the measured time. A time over the
bar is measured once more with a new vocabulary and the smaller time counts, since the CPU time of one run includes noise.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import guideway as gw
from tests.helpers.tokenizer_files import LLAMA3_PATTERN, llama3_ranks

from .verdicts import DATA

HARD = DATA / "maskbench-hard"
DEV = DATA / "maskbench-dev"
STEP_SECONDS = 0.020
COMPILE_SECONDS = 0.200
REFUSED = Path(__file__).with_name("hard_refused.txt")


@dataclass
class Timing:
    """The largest step and the compile of a file, in seconds of CPU, and where the step was."""

    compile: float = 0.0
    step: float = 0.0
    place: str = ""


@dataclass
class Report:
    """What the files showed. `refused`: files without an automaton, with the reason."""

    files: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    slow: list[str] = field(default_factory=list)
    timings: dict[str, Timing] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"{self.files} files, {len(self.refused)} refused, {self.right} right verdicts, {len(self.wrong)} wrong, "
            f"{len(self.slow)} over a bar"
        ]
        lines += [f"  wrong    {line}" for line in self.wrong]
        lines += [f"  slow     {line}" for line in self.slow]
        lines += [f"  refused  {name}: {reason}" for name, reason in self.refused.items()]
        return "\n".join(lines)


@cache
def llama3() -> tuple[tuple[bytes, ...], Callable[[str], list[int]]]:
    """The bytes of Llama 3's tokens with an empty last one that ends the text, and its encoder."""
    import tiktoken

    ranks = llama3_ranks()
    encoding = tiktoken.Encoding("llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens={})
    tokens = [b""] * (len(ranks) + 1)
    for token, rank in ranks.items():
        tokens[rank] = token
    return tuple(tokens), lambda text: encoding.encode(text, disallowed_special=())


def vocabulary() -> gw.Vocabulary:
    """Llama 3's with an empty store."""
    tokens, _ = llama3()
    end = len(tokens) - 1
    made = gw.Vocabulary(tokens, eos_ids=[end], special_ids=[end])
    _ = made.kernel  # its tables belong to loading a model, not to the first schema
    return made


def files(folder: Path = HARD) -> list[Path]:
    """All files of a folder of MaskBench, by name. The hard files include one that is in another folder."""
    found = [*folder.glob("*.json")]
    if folder == HARD:
        found += DEV.glob("JsonSchemaStore---yippee-ki-*.json")
    return sorted(found, key=lambda path: path.name)


def known_refusals() -> set[str]:
    """The files that may be refused, by name: a line each; text after `#` is a comment."""
    lines = (line.partition("#")[0].strip() for line in REFUSED.read_text("utf-8").splitlines())
    return {line for line in lines if line}


def walk(automaton: Any, ids: Sequence[int], row: Any) -> tuple[bool, float, str]:
    """Whether the masks allow all tokens; the CPU seconds of the largest step, and where it was.

    Raises `AssertionError` where a mask allows a token that `advance` refuses.
    """
    matcher = automaton.matcher()
    worst, place, masks, clock = 0.0, "", row.view(np.uint32), time.thread_time
    for at, token in enumerate(ids):
        start = clock()
        matcher.fill_mask(masks)
        if not int(masks[token // 32]) >> (token % 32) & 1:
            return False, max(worst, clock() - start), place
        try:
            matcher.advance(token)
        except gw.errors.RejectedTokenError as problem:
            raise AssertionError(f"the mask of token {at} allows what advance refuses: {problem}") from problem
        spent = clock() - start
        if spent > worst:
            worst, place = spent, f"token {at}"
    return True, worst, place


class Walker:
    """Compiles and walks files with one vocabulary."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.vocabulary = vocabulary()
        self.row = np.zeros((len(llama3()[0]) + 31) // 32, np.uint32)

    def file(self, path: Path) -> None:
        """Add the verdicts and the times of a file."""
        given = json.loads(path.read_text("utf-8"))
        name, report = path.stem, self.report
        report.files += 1
        timing = self._once(name, given, count=True)
        if timing is None:
            return
        if timing.compile > COMPILE_SECONDS or timing.step > STEP_SECONDS:
            kept, self.vocabulary = self.vocabulary, vocabulary()
            again = self._once(name, given, count=False)
            self.vocabulary = kept
            if again is not None:
                timing = Timing(
                    min(timing.compile, again.compile), min(timing.step, again.step), again.place or timing.place
                )
        report.timings[name] = timing
        if timing.compile > COMPILE_SECONDS:
            report.slow.append(f"{name}: JsonSchema and compile took {1000 * timing.compile:.0f} ms")
        if timing.step > STEP_SECONDS:
            report.slow.append(f"{name}: a step took {1000 * timing.step:.1f} ms ({timing.place})")

    def _once(self, name: str, given: dict[str, Any], *, count: bool) -> Timing | None:
        end = len(llama3()[0]) - 1
        timing = Timing()
        gc.collect()
        start = time.process_time()
        try:
            with gw.cache.disabled():  # an equal schema is lowered again
                source = gw.JsonSchema(given["schema"], profile="exact", unknown_keywords="ignore")
                automaton = gw.compile(source, self.vocabulary, cache=False)
        except gw.GuidewayError as problem:
            if count:
                self.report.refused[name] = f"{type(problem).__name__}: {str(problem)[:160]}"
            return None
        timing.compile = time.process_time() - start
        for number, test in enumerate(given["tests"]):
            ids = [*llama3()[1](json.dumps(test["data"], ensure_ascii=False)), end]
            try:
                allowed, worst, place = walk(automaton, ids, self.row)
            except gw.errors.LimitExceededError as problem:
                if count:
                    self.report.wrong.append(f"{name}[{number}]: {problem}")
                continue
            except AssertionError as problem:
                if count:
                    self.report.wrong.append(f"{name}[{number}]: {problem}")
                continue
            if worst > timing.step:
                timing.step, timing.place = worst, f"instance {number}, {place}"
            if not count:
                continue
            if allowed == bool(test["valid"]):
                self.report.right += 1
            else:
                self.report.wrong.append(f"{name}[{number}]: {'accepted' if allowed else 'rejected'}")
        return timing


def judge(paths: Sequence[Path], seed: int | None = None, *, tell: bool = False) -> Report:
    """Compile and walk files with one vocabulary, in the order given or (with a seed) shuffled."""
    report = Report()
    walker = Walker(report)
    paths = list(paths)
    if seed is not None:
        random.Random(seed).shuffle(paths)
    for path in paths:
        before = time.process_time()
        walker.file(path)
        if tell:
            timing = report.timings.get(path.stem, Timing())
            print(
                f"{path.stem}: compile {1000 * timing.compile:.0f} ms, step {1000 * timing.step:.1f} ms "
                f"({timing.place}), all {time.process_time() - before:.1f} s",
                flush=True,
            )
    return report


def main() -> None:
    """All files, in shuffled orders; exits with 1 where anything is wrong, slow or newly refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=2)
    parser.add_argument("--set", default="maskbench-hard", help="the folder of the data")
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--draw", type=int, default=0, help="this many files at random; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tell", action="store_true", help="print a line for each file")
    given = parser.parse_args()
    paths = [path for path in files(DATA / given.set) if given.only in path.name]
    if given.draw:
        paths = random.Random(given.seed).sample(paths, given.draw)
    failed = False
    for order in range(given.orders):
        report = judge(paths, given.seed + order, tell=given.tell)
        print(f"order {order}: {report}", flush=True)
        failed |= bool(report.wrong or report.slow or set(report.refused) - known_refusals())
    sys.exit(failed)


if __name__ == "__main__":
    main()
