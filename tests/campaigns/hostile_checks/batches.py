"""Hostile and ordinary rows in one batch: the texts of the ordinary rows, and the duration of their steps."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

import guideway as gw
from guideway.engines.base import Cache
from guideway.generation import Model
from guideway.generation.async_loop import Loop
from guideway.jsontext.encoder import write_json
from guideway.testing.constant import ConstantEngine
from guideway.tokenizers import Tokenizer
from tests.helpers.hostile_constraints import CLASSES, PATTERNS, SCHEMAS, random_ones
from tests.helpers.vllm_stub import Kind, backend_module

__all__ = ["asynchronous", "vllm"]

MOST_GROWTH = 0.020  # seconds: wall time of the asynchronous interface, CPU time in the backend of vLLM
ROWS = 8
HOSTILE = 200
PREPARING_SECONDS = 40.0  # of CPU time, for which hostile constraints are made before the asynchronous measurement
ALONE_SECONDS, BESIDE_SECONDS = 4.0, 40.0  # for which ordinary rows are generated
STEPS = 120
MODEL_SECONDS = 0.004


class Engine(ConstantEngine):
    """An engine whose pass takes some milliseconds, as a small model on a GPU."""

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> Any:
        time.sleep(MODEL_SECONDS)
        return super().forward(rows, caches)


def table(extra: int = 0) -> gw.Vocabulary:
    """A vocabulary of bytes. `extra`: distinguishes its store from those of other vocabularies."""
    more = [b"x" * (extra + 2)] if extra else []
    return gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>", *more], eos_ids=[256], special_ids=[])


def ordinary(number: int) -> Any:
    """The constraint of ordinary row `number`."""
    if number % 2:
        return gw.Regex(rf"([a-z]{{3,9}} ){{12}}[0-9]{{{STEPS}}}")
    item = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
    }
    return gw.JsonSchema({"type": "array", "items": item, "minItems": 20, "maxItems": 20})


def hostile(seed: int) -> list[Any]:
    """Functions that make hostile constraints."""
    makes = [make for group in ("JSON Schema", "regex", "GBNF", "EBNF", "Lark") for make in CLASSES[group].values()]
    makes += [make for _, make in random_ones(seed, HOSTILE)]
    random.Random(seed).shuffle(makes)
    return makes[:HOSTILE]


def asynchronous(seed: int) -> tuple[bool, str]:
    """Measure the asynchronous interface, in wall time: the times between two pieces of a row."""
    makes = hostile(seed)
    before, alone, texts, _ = _measured(seed, [])
    after, beside, others, ended = _measured(seed, makes)
    growth = float(np.percentile(beside, 99) - np.percentile(alone, 99))
    same = set(texts) == set(others)
    return same and growth <= MOST_GROWTH, (
        f"p99 between two pieces {np.percentile(alone, 99) * 1e3:.1f} -> {np.percentile(beside, 99) * 1e3:.1f} ms,"
        f" most {max(alone) * 1e3:.0f} -> {max(beside) * 1e3:.0f} ms,"
        f" p99 of a round's CPU time {np.percentile(before, 99) * 1e3:.1f} -> {np.percentile(after, 99) * 1e3:.1f} ms,"
        f" {len(after)} rounds, {len(others)} ordinary rows beside {ended}, texts {'unchanged' if same else 'CHANGED'}"
    )


def _measured(seed: int, makes: list[Any]) -> tuple[list[float], list[float], list[str], str]:
    """Return the CPU times of the loop's rounds, the times between two pieces of a row, the texts, and the hostile rows."""
    times: list[float] = []
    run = Loop._round

    def timed(loop: Loop, calls: Any) -> None:
        start = time.thread_time()
        run(loop, calls)
        times.append(time.thread_time() - start)

    with patch.object(Loop, "_round", timed):
        gaps, texts, ended = asyncio.run(_beside(seed, makes))
    return times, gaps, texts, ended


async def _beside(seed: int, makes: list[Any]) -> tuple[list[float], list[str], str]:
    """Generate ordinary rows, again and again, while hostile ones are prepared and run."""
    model = Model(Engine(np.zeros(258, np.float32)), Tokenizer.of(table(seed + 1 + bool(makes))))
    gaps: list[float] = []

    async def slow(constraint: Any) -> None:
        with contextlib.suppress(Exception):
            await gw.acomplete(model, "x", constraint, max_tokens=4_000, batch_size=256)

    async def row(number: int) -> str:
        pieces, last = [], 0.0
        async for piece in gw.astream(model, "x", ordinary(number), max_tokens=2_000, seed=number, batch_size=256):
            now = time.perf_counter()
            if last:
                gaps.append(now - last)
            last = now
            pieces.append(piece)
        return f"{number} {''.join(pieces)}"

    made: list[Any] = []
    begun = time.process_time()
    for make in makes:  # compiled by the calls below
        with contextlib.suppress(Exception):
            if time.process_time() - begun < PREPARING_SECONDS:
                made.append(make())
    rows = [asyncio.ensure_future(row(number)) for number in range(ROWS)]
    tasks = [asyncio.ensure_future(slow(one)) for one in made]
    texts, end = list(await asyncio.gather(*rows)), time.perf_counter() + (BESIDE_SECONDS if made else ALONE_SECONDS)
    while time.perf_counter() < end:
        texts += await asyncio.gather(*(row(number) for number in range(ROWS)))
    ended = f"{sum(task.done() for task in tasks)} of {len(tasks)} hostile rows that ended"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return gaps, texts, ended


def vllm(seed: int) -> tuple[bool, str]:
    """Measure the backend of vLLM, driven as vLLM drives it."""
    before, texts = _driven(seed, [])
    rng = random.Random(seed)
    patterns = [("REGEX", rng.choice(sorted(PATTERNS.values()))) for _ in range(HOSTILE // 2)]
    schemas = [("JSON", SCHEMAS[rng.choice(sorted(SCHEMAS))]) for _ in range(HOSTILE - len(patterns))]
    after, others = _driven(seed, [*patterns, *schemas])
    growth = float(np.percentile(after, 99) - np.percentile(before, 99))
    same = texts == others
    return same and growth <= MOST_GROWTH, (
        f"p99 of a step {np.percentile(before, 99) * 1e3:.1f} -> {np.percentile(after, 99) * 1e3:.1f} ms,"
        f" most {max(after) * 1e3:.0f} ms, {len(after)} steps, texts {'unchanged' if same else 'CHANGED'}"
    )


def _driven(seed: int, specs: list[tuple[str, Any]]) -> tuple[list[float], list[list[int]]]:
    module = backend_module()
    backend = module.GuidewayBackend(None, Tokenizer.of(table(seed + 50 + bool(specs))), 258)
    wanted = [(Kind.REGEX, rf"([a-z]{{3,9}} ){{12}}[0-9]{{{STEPS}}}") for _ in range(ROWS)]
    grammars = [backend.compile_grammar(kind, spec) for kind, spec in wanted]
    refused: set[str] = set()
    for kind, spec in specs:
        text = spec if isinstance(spec, str) else write_json(spec)
        try:
            if text not in refused:
                grammars.append(backend.compile_grammar(Kind[kind], text))
        except gw.GuidewayError:
            refused.add(text)
    draws = [random.Random(1000 * seed + number) for number in range(len(grammars))]
    bitmask = backend.allocate_token_bitmask(len(grammars))
    ids: list[list[int]] = [[] for _ in range(ROWS)]
    steps: list[float] = []
    for _ in range(400):
        start = time.thread_time()
        live = [number for number, grammar in enumerate(grammars) if not grammar.is_terminated()]
        if not live or live[0] >= ROWS:  # the ordinary rows have ended
            break
        for number in live:
            grammars[number].fill_bitmask(bitmask, number)
        rows = bitmask.numpy().view(np.uint32)
        chosen = {}
        for number in live:
            legal = np.flatnonzero(np.unpackbits(rows[number].view(np.uint8), bitorder="little"))
            chosen[number] = int(legal[draws[number].randrange(len(legal))])
        for number, token_id in chosen.items():
            grammars[number].accept_tokens(str(number), [token_id])
            if number < ROWS:
                ids[number].append(token_id)
        steps.append(time.thread_time() - start)
    return steps, ids
