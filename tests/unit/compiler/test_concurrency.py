"""No call delays the steps of other sequences: concurrent hostile compiles, counted holds, forks, few threads."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import guideway as gw
from guideway import constraints
from guideway._kernel import Automaton, KernelVocabulary, fill_masks
from guideway.compiler.compilation import encode
from tests.helpers.byte_tokens import legal
from tests.helpers.counts import counts

WORKERS = 2
STEPS = 2_000
DELAY = 10e-3  # seconds that a step may take longer under concurrent load
PIECE = 10_000  # units of work, some 10 ns each; see kernel/base/store_lock.h
TURN = 300_000
numbers = itertools.count()


def vocabulary() -> KernelVocabulary:
    """Every byte, and 20,000 tokens of up to eight letters, quotes and digits."""
    rng = random.Random(3)
    some = {bytes(rng.choices(b'abcdefghinorstu ",:{}[]0123', k=rng.randrange(2, 9))) for _ in range(20_000)}
    tokens = [bytes([b]) for b in range(256)] + sorted(some) + [b"<end>"]
    return KernelVocabulary(tokens, [len(tokens) - 1], [])


def program(constraint: object) -> bytes:
    return encode(constraints.of(constraint).grammar())


def hostile(count: int = 120) -> bytes:
    """Returns a new schema in each call; its compilation takes most of a second."""

    def pattern(i: int) -> str:
        n = 8 + i % 3
        claims = (
            f"(?=[abc]*a[abc]{{{n}}}b[abc]*$)(?=[abc]*b[abc]{{{n - 1}}}a[abc]*$)(?=[abc]*c[abc]{{{n - 2}}}c[abc]*$)"
        )
        return f"^{claims}[abc]*(x{next(numbers)})?$"

    names = {f"k{i}": {"type": "string", "pattern": pattern(i)} for i in range(count)}
    return program(gw.JsonSchema({"type": "object", "properties": names}))


FRIENDLY = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 8},
    },
    "required": ["name", "age", "tags"],
}


def walked(automaton: Automaton, seed: int, steps: int, took: list[float] | None = None) -> list[tuple[int, bytes]]:
    """Walks at random; returns the tokens, the mask before each, and the duration of each step."""
    rng, matcher, made = random.Random(seed), automaton.matcher(), []
    row = np.zeros(matcher.words, np.uint32)
    while len(made) < steps and not matcher.is_finished:
        start = time.perf_counter()
        matcher.fill_mask(row)
        middle = time.perf_counter()
        token = int(rng.choice(legal(row)))
        before = time.perf_counter()
        matcher.advance(token)
        if took is not None:
            took.append(middle - start + time.perf_counter() - before)
            time.sleep(1e-4)
        made.append((token, row.tobytes()))
    return made


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    ends, errors = threading.Event(), []

    def repeat() -> None:
        while not ends.is_set():
            try:
                work()
            except gw.GuidewayError as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=repeat) for _ in range(WORKERS)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        ends.set()
        for one in threads:
            one.join()
    assert not errors


def times(table: KernelVocabulary, steps: int) -> np.ndarray:
    took: list[float] = []
    compiled = Automaton.compile(table, program(gw.JsonSchema(FRIENDLY)))
    for seed in itertools.count():
        walked(compiled, seed, 60, took)
        if len(took) >= steps:
            return np.array(took)
    raise AssertionError


@pytest.mark.slow
def test_times_of_steps_during_hostile_compiles() -> None:
    """The 99th percentile is at most 10 ms longer than with threads that only compute.

    The machine may be busy, and steps then wait for a core. So the run to compare with has as many threads, which hold
    no lock of ours, and the better of three runs counts. `make test` counts the work for which a step waits instead
    (`test_holds_are_counted`), because times depend on the other processes of the machine.
    """
    big = bytes(1 << 22)
    alone = times(vocabulary(), STEPS)
    with beside(lambda: hashlib.sha256(big)):
        computing = times(vocabulary(), STEPS)
    allowed = max(np.percentile(alone, 99), np.percentile(computing, 99)) + DELAY
    programs = [hostile() for _ in range(12)]
    found = []
    for _ in range(3):
        table, some = vocabulary(), iter(programs)
        with beside(lambda some=some, table=table: Automaton.compile(table, next(some, programs[0]))):
            took = times(table, STEPS)
        found.append(np.percentile(took, 99))
        if found[-1] <= allowed:
            break
    assert min(found) <= allowed, (found, allowed)


def test_other_threads_run_while_one_waits() -> None:
    """A step that waits for a compile, and a compile, leave the interpreter to others."""
    table = vocabulary()
    compiled = Automaton.compile(table, program(gw.JsonSchema(FRIENDLY)))
    compiling = threading.Thread(target=Automaton.compile, args=(table, hostile()))

    def step() -> None:
        seed = itertools.count()
        while compiling.is_alive():
            walked(compiled, next(seed), 40)

    compiling.start()
    stepping = threading.Thread(target=step)
    stepping.start()
    turns = 0
    while compiling.is_alive():
        turns += 1
        time.sleep(1e-4)
    stepping.join()
    assert turns > 30  # some hundreds; one or two if a compile, or a step that waits for it, held the interpreter


@counts(12, 40)
def test_holds_are_counted(count: int) -> None:
    """While a step waits, no more than a turn of work is done; no call works longer than a piece with the GIL."""
    table = vocabulary()
    compiled = Automaton.compile(table, program(gw.JsonSchema(FRIENDLY)))
    expected = [
        walked(Automaton.compile(vocabulary(), program(gw.JsonSchema(FRIENDLY))), seed, 60) for seed in range(6)
    ]
    sizes = iter([120])  # the first compilation takes most of a second
    with beside(lambda: Automaton.compile(table, hostile(next(sizes, 40)))):
        for round_ in range(count):
            assert walked(compiled, round_ % 6, 60) == expected[round_ % 6]
            fresh = Automaton.compile(table, program(gw.JsonSchema({**FRIENDLY, "minProperties": round_ % 3})))
            matcher = fresh.matcher()
            matcher.forced_bytes(), matcher.min_tokens_to_complete(), matcher.completion(), matcher.mask_digest()
            assert matcher.validate([token for token, _ in expected[0]]) >= 1
            matcher.fill_mask_within(np.zeros(matcher.words, np.uint32), 40)
    found = table._locking()
    assert found["most_delayed"] <= TURN + 30 * PIECE, found
    assert found["most_with_gil"] <= 30 * PIECE, found
    assert found["preempted"] + found["windows"] > 0, found


def test_a_matcher_in_two_threads_is_used_by_one_at_a_time() -> None:
    table = vocabulary()
    compiled = Automaton.compile(table, program(gw.JsonSchema(FRIENDLY)))
    expected = walked(compiled, 1, 60)
    matcher = compiled.matcher()
    for token, _ in expected:
        matcher.advance(token)
    row, rows = np.zeros(matcher.words, np.uint32), np.zeros((20, matcher.words), np.uint32)
    matcher.fill_mask(row)
    wrong = []

    def fill() -> None:
        mine = np.zeros(matcher.words, np.uint32)
        for _ in range(200):
            matcher.fill_mask(mine)
            if not np.array_equal(mine, row):
                wrong.append(mine)

    with beside(lambda: Automaton.compile(table, hostile(10))):
        threads = [threading.Thread(target=fill) for _ in range(2)]
        for one in threads:
            one.start()
        for _ in range(50):
            fill_masks([matcher] * 20, rows, 4)
            assert (rows == row).all()
        for one in threads:
            one.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork_during_a_compile_can_use_the_vocabulary() -> None:
    table = vocabulary()
    compiled = Automaton.compile(table, program(gw.JsonSchema(FRIENDLY)))
    expected = walked(compiled, 1, 40)
    with beside(lambda: Automaton.compile(table, hostile(60))):
        for _ in range(3):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                good = 1
                try:
                    again = Automaton.compile(table, program(gw.JsonSchema({**FRIENDLY, "minProperties": 2})))
                    good = int(walked(compiled, 1, 40) != expected or not again.stats()["nodes"])
                finally:
                    os._exit(good)
            for _ in range(600):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    break
                time.sleep(0.1)
            else:
                os.kill(child, 9)
                os.waitpid(child, 0)
                raise AssertionError("the child waits for a lock that nobody holds")
            assert status == 0
            assert walked(compiled, 1, 40) == expected


def limited(setup: str) -> subprocess.CompletedProcess[str]:
    """Runs in a separate process: 400 threads are requested, and the system provides few."""
    code = f"""
        import resource, sys
        import numpy as np
        import guideway as gw
        from guideway import constraints
        from guideway._kernel import Automaton, KernelVocabulary, fill_masks
        from guideway.compiler.compilation import encode
        table = KernelVocabulary([bytes([b]) for b in range(256)] + [b"<end>"], [256], [])
        matcher = Automaton.compile(table, encode(constraints.of(gw.JsonSchema({{"type": "object"}})).grammar())).matcher()
        rows, row = np.zeros((4000, matcher.words), np.uint32), np.zeros(matcher.words, np.uint32)
        matchers = [matcher.fork() for _ in range(4000)]
        {setup}
        fill_masks(matchers, rows, threads=400)
        matcher.fill_mask(row)
        sys.exit(0 if (rows == row).all() else 3)
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and limits as Linux has them")
@pytest.mark.parametrize(
    "setup",
    [
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
        "resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), resource.RLIM_INFINITY))",
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))",
    ],
    ids=["address space", "processes"],
)
def test_masks_are_filled_where_the_system_gives_few_threads(setup: str) -> None:
    done = limited(setup)
    assert done.returncode == 0, done.stderr
