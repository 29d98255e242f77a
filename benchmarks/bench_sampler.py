"""One sample over 131,072 tokens on one core: the fused sampler, NumPy's chain of arrays, torch's, transformers'.

    python benchmarks/bench_sampler.py [--record]

Logits are similar to those of a model (most are near the mean, some are far above it), float32 in main memory, with a
mask that allows a random half of the vocabulary, and with a mask that allows all. torch: masked_fill, then each stage
as transformers implements it, softmax and multinomial, on one thread; transformers, if it is installed: its warpers.
Thread CPU time, the minimum of many.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import thread_time
from typing import Any

import numpy as np
import torch

from guideway import masks
from guideway.sampling import Sampler, chain, draw
from harness.report import Report

TOKENS = 131_072
CHAINS: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.8},
    "temperature, top-k 50": {"temperature": 0.8, "top_k": 50},
    "temperature, top-p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "temperature, min-p 0.05": {"temperature": 0.8, "min_p": 0.05},
    "temperature, top-k 50, top-p 0.95": {"temperature": 0.8, "top_k": 50, "top_p": 0.95},
    "the same and repetition penalty": {"temperature": 0.8, "top_k": 50, "top_p": 0.95, "repetition_penalty": 1.1},
    "temperature, typical 0.9": {"temperature": 0.8, "typical_p": 0.9},
}
USUAL = "temperature, top-k 50, top-p 0.95"
NEVER = -float("inf")


def lowest(call: Callable[[], object], times: int = 25) -> float:
    """Milliseconds."""
    found = []
    for _ in range(times):
        start = thread_time()
        call()
        found.append(thread_time() - start)
    return min(found) * 1e3


def by_torch(logits: torch.Tensor, allowed: torch.Tensor, before: torch.Tensor, how: dict[str, Any]) -> torch.Tensor:
    """The chain as transformers writes it."""
    left = logits.masked_fill(~allowed, NEVER)
    if penalty := how.get("repetition_penalty"):
        there = left.gather(1, before)
        left = left.scatter(1, before, torch.where(there < 0, there * penalty, there / penalty))
    left = left / how["temperature"]
    if count := how.get("top_k"):
        left = left.masked_fill(left < torch.topk(left, count)[0][..., -1, None], NEVER)
    if mass := how.get("typical_p"):
        surprise = -torch.log_softmax(left, dim=-1)
        entropy = torch.nansum(surprise * torch.exp(-surprise), dim=-1, keepdim=True)
        _, order = torch.sort(torch.abs(surprise - entropy))
        reached = left.gather(-1, order).softmax(dim=-1).cumsum(dim=-1)
        last = (reached < mass).sum(dim=1).clamp(max=left.shape[-1] - 1)
        gone = torch.arange(left.shape[-1]) > last[:, None]
        left = left.masked_fill(gone.scatter(1, order, gone), NEVER)
    if mass := how.get("top_p"):
        values, order = torch.sort(left, descending=False)
        gone = values.softmax(dim=-1).cumsum(dim=-1) <= (1 - mass)
        gone[..., -1:] = False
        left = left.masked_fill(gone.scatter(1, order, gone), NEVER)
    if share := how.get("min_p"):
        weights = torch.softmax(left, dim=-1)
        left = left.masked_fill(weights < share * weights.max(dim=-1, keepdim=True)[0], NEVER)
    return torch.multinomial(torch.softmax(left, dim=-1), num_samples=1)


def by_transformers(logits: torch.Tensor, allowed: torch.Tensor, before: torch.Tensor, how: dict[str, Any]) -> Any:
    """transformers' own warpers; None where it is not installed."""
    try:
        from transformers.generation import logits_process as known
    except ImportError:
        return None
    makers = {
        "repetition_penalty": known.RepetitionPenaltyLogitsProcessor, "temperature": known.TemperatureLogitsWarper,
        "top_k": known.TopKLogitsWarper, "typical_p": known.TypicalLogitsWarper, "top_p": known.TopPLogitsWarper,
        "min_p": known.MinPLogitsWarper,
    }  # fmt: skip
    stages = [make(how[name]) for name, make in makers.items() if name in how]

    def call() -> torch.Tensor:
        left = logits.masked_fill(~allowed, NEVER)
        for stage in stages:
            left = stage(before, left)
        return torch.multinomial(torch.softmax(left, dim=-1), num_samples=1)

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    report = Report("sampler", [f"torch {torch.__version__}, one thread"])
    random = np.random.default_rng(0)
    logits = (random.normal(size=TOKENS) * 2.5).astype(np.float32)
    logits[random.integers(0, TOKENS, 30)] += 9
    before = [int(token) for token in random.integers(0, TOKENS, 500)]
    row, seen = torch.from_numpy(logits)[None], torch.tensor([before])
    fused = chain.draw_native
    for share in (1.0, 0.5):
        bits = random.random(TOKENS) < share
        mask, allowed = masks.pack(np.flatnonzero(bits).tolist(), TOKENS), torch.from_numpy(bits)
        cells = []
        for name, how in CHAINS.items():
            sampler = Sampler(**how)
            call = partial(draw, sampler, logits, mask, tokens=before)
            ours = lowest(call)
            chain.draw_native = lambda *_: None  # type: ignore[assignment]  # the arrays alone
            arrays = lowest(call, 5)
            chain.draw_native = fused
            peer = lowest(partial(by_torch, row, allowed, seen, how))
            own = by_transformers(row, allowed, seen, how)
            other = lowest(own) if own else float("nan")
            best = min(peer, other) if own else peer
            if name == USUAL:
                report.ratios[f"{name}, {share:.0%} allowed vs torch"] = best / ours
            cells.append(
                [name, "", f"{ours:.3f}", f"{arrays:.2f}", f"{peer:.2f}", f"{other:.2f}", f"{best / ours:.0f}x"]
            )
        heads = ["", "", "fused ms", "NumPy", "torch", "transformers", "best of theirs / fused"]
        report.table(f"a draw, {share:.0%} of {TOKENS:,} tokens allowed", heads, cells)
    if by_transformers(row, torch.ones(TOKENS, dtype=torch.bool), seen, {}) is None:
        report.line("transformers is not installed: only torch's chain was measured")
    report.judge([(f"{USUAL}, {share:.0%} allowed", {"torch": 10.0}) for share in (1.0, 0.5)])
    report.done(options.record)


if __name__ == "__main__":
    main()
