"""Many processes on one cache directory; some are killed and restarted, and another one flips bits in the files.

    python -m tests.campaigns.cache_storm [--processes 64] [--compiles 200] [--kills 40] [--seed 0]

Every worker compiles random schemas through the disk cache (its memory cache is cleared before each, and everything is
stored) and compares masks along a text with uncached ones. Wrong masks, an exception, a directory above its budget, or
remaining temporary files after the next write end the run with an error. The results are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import mmap
import os
import random
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import guideway as gw
from guideway import disk
from guideway.constraints import programs

BUDGET = 250_000  # less than all entries together, so that evictions are part of it
SCHEMAS: list[dict[str, object]] = [
    {
        "type": "object",
        "properties": {f"{kind}{i}": {"type": kind} for i in range(number % 7 + 3)},
        "required": [f"{kind}0"],
        "additionalProperties": False,
        "description": "x" * (number * 37 % 900),
    }
    for kind in ("string", "integer", "boolean")
    for number in range(24)
]
WORDS = [f"{a}{b}".encode() for a in "abcdefghijklmnopqrstuvwxyz" for b in range(100)]
TOKENS = [*(bytes([byte]) for byte in range(256)), *WORDS, b'{"', b"string0", b'": ', b"</s>"]
VOCABULARIES = [(TOKENS, [len(TOKENS) - 1]), ([*TOKENS[:256], *WORDS[::-1], *TOKENS[-4:]], [len(TOKENS) - 1])]


def masks(schema: dict[str, object], vocabulary: gw.Vocabulary) -> bytes:
    """A digest of the masks along the beginning of a text."""
    matcher = gw.compile(schema, vocabulary).matcher()
    digest = hashlib.blake2b(digest_size=16)
    row = np.zeros((len(vocabulary) + 31) // 32, dtype=np.uint32)
    for _ in range(12):
        matcher.fill_mask(row)
        digest.update(row.tobytes())
        token = int(np.flatnonzero(row)[0] * 32)
        while not row[token >> 5] >> (token & 31) & 1:
            token += 1
        matcher.advance(token)
        if matcher.is_finished:
            break
    return digest.digest()


def expected() -> dict[tuple[int, int], bytes]:
    """Returns the correct answers, computed without a cache."""
    with gw.cache.disabled():
        made = [gw.Vocabulary(tokens, eos_ids=eos) for tokens, eos in VOCABULARIES]
        return {(v, s): masks(schema, made[v]) for v in range(len(made)) for s, schema in enumerate(SCHEMAS)}


@dataclass
class Storm:
    """Runs the storm once; `report` prints the results."""

    folder: Path
    processes: int = 64
    compiles: int = 200
    kills: int = 40
    seed: int = 0
    report: dict[str, int] = field(default_factory=dict)

    def run(self) -> dict[str, int]:
        """Raises `AssertionError` where anything is wrong."""
        os.environ.update(GUIDEWAY_CACHE_DIR=str(self.folder), GUIDEWAY_CACHE_BYTES=str(BUDGET))
        programs.STORE_SECONDS, programs.LOOK_BYTES = 0.0, 0
        answers = expected()
        # Shared: the number of finished compiles of each worker, and the number of flipped bits.
        self._done = mmap.mmap(-1, 4 * self.processes + 4)
        workers = {self._start(number, answers): number for number in range(self.processes)}
        flipper = self._fork(lambda: self._flip(random.Random(self.seed)))
        chance, killed = random.Random(self.seed + 1), 0
        try:
            while workers:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    time.sleep(0.02)
                    if killed < self.kills:
                        victim = chance.choice(sorted(workers))
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(victim, signal.SIGKILL)
                            killed += 1
                    continue
                number = workers.pop(process, None)
                assert number is not None, "the process that flips bits ended"
                if os.WIFSIGNALED(status):
                    assert os.WTERMSIG(status) == signal.SIGKILL, (
                        f"worker {number} died of signal {os.WTERMSIG(status)}"
                    )
                    workers[self._start(number, answers)] = number
                else:
                    assert os.WEXITSTATUS(status) == 0, f"worker {number} failed"
        finally:
            for process in [*workers, flipper]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, 0)
        self.report["killed"] = killed
        *compiled, self.report["flipped"] = np.frombuffer(self._done, dtype=np.uint32).tolist()
        self.report["compiled"] = sum(compiled)
        self._look_at_the_end()
        return self.report

    def _look_at_the_end(self) -> None:
        cache = disk.DiskCache(self.folder, BUDGET)
        assert cache.put("program-1", "00" * 8, b"one more"), "the cache takes nothing any more"
        files = list(cache.folder.iterdir())
        used = sum(file.stat().st_size for file in files)
        assert used <= BUDGET, f"{used} bytes are over the budget of {BUDGET}"
        assert not [file for file in files if file.suffix == ".tmp"], "temporary files of the dead are left"
        self.report["entries"], self.report["bytes"] = len(files), used
        self.report["damaged at the end"] = len(cache.verify()[1])

    def _start(self, number: int, answers: dict[tuple[int, int], bytes]) -> int:
        return self._fork(lambda: self._work(number, answers))

    def _fork(self, work: object) -> int:
        process = os.fork()
        if process:
            return process
        status = 1
        try:
            work()  # type: ignore[operator]  # a function without arguments
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _work(self, number: int, answers: dict[tuple[int, int], bytes]) -> None:
        done = np.frombuffer(self._done, dtype=np.uint32)
        chance = random.Random(f"{self.seed} {number} {done[number]} {os.getpid()}")
        while done[number] < self.compiles:
            gw.cache.clear()
            which, schema = chance.randrange(len(VOCABULARIES)), chance.randrange(len(SCHEMAS))
            tokens, eos = VOCABULARIES[which]
            found = masks(SCHEMAS[schema], gw.Vocabulary(tokens, eos_ids=eos))
            assert found == answers[which, schema], f"wrong masks of schema {schema} over vocabulary {which}"
            done[number] += 1

    def _flip(self, chance: random.Random) -> None:
        folder, done = disk.DiskCache(self.folder).folder, np.frombuffer(self._done, dtype=np.uint32)
        while True:
            if done[-1] % 8 == 0:  # in bursts: with many workers it seldom has its turn
                time.sleep(0.02)
            with contextlib.suppress(OSError, IndexError, ValueError):
                path = chance.choice(list(folder.iterdir()))
                with open(path, "r+b") as file:
                    at = chance.randrange(os.fstat(file.fileno()).st_size)
                    file.seek(at)
                    byte = file.read(1)[0] ^ (1 << chance.randrange(8))
                    file.seek(at)
                    if chance.random() < 0.1:
                        file.truncate(at)
                    else:
                        file.write(bytes([byte]))
                done[-1] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("processes", 64), ("compiles", 200), ("kills", 40), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        report = Storm(Path(folder), **vars(options)).run()
        print(report, f"{time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
