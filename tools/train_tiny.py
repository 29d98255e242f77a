"""Trains the bundled model ``tiny`` on two CPU cores; a run can be stopped and continued at any time.

Usage: python tools/train_tiny.py WORK_DIR [--minutes 75]

WORK_DIR contains the tokenizer (tools/tiny_tokenizer.py), and receives ``checkpoint.pt`` (weights, optimizer, position
in the data, time used), ``curve.jsonl`` and ``log``.  A second call with the same WORK_DIR continues.  A seed generates
the data shard by shard, and every sample is used once.  The learning rate is a function of the *time used*, so that a
run ends as planned on any machine: warm-up, constant, then linear to zero over the last 45 %.

The matrices are trained by Muon (Jordan et al. 2024: momentum, then Newton-Schulz orthogonalisation; matrices of one
shape are stacked, which makes it cheap), embeddings and norms by AdamW.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from tiny_batches import Batch, batches, shard
from tiny_model import Config, Tiny
from tiny_score import measure

SEED = "2026"
SHARD = 6_000
BATCH_TOKENS = 4096
PEAK_MATRIX, PEAK_REST = 0.02, 3e-3
WARMUP_STEPS = 60
DECAY_SHARE, LATER_DECAY_SHARE = 0.45, 0.9


class Muon:
    """Momentum orthogonalised; matrices of the same shape go through Newton-Schulz as one batch."""

    def __init__(self, weights: list[Tensor], momentum: float = 0.95, decay: float = 0.02) -> None:
        self.groups: dict[tuple[int, ...], list[Tensor]] = {}
        for weight in weights:
            self.groups.setdefault(tuple(weight.shape), []).append(weight)
        self.momentum, self.decay = momentum, decay
        self.state = {shape: torch.zeros(len(group), *shape) for shape, group in self.groups.items()}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for shape, group in self.groups.items():
            gradient = torch.stack([w.grad for w in group if w.grad is not None])
            buffer = self.state[shape].lerp_(gradient, 1 - self.momentum)
            update = self._orthogonal(gradient.lerp(buffer, self.momentum))
            update *= max(1.0, shape[0] / shape[1]) ** 0.5
            for weight, change in zip(group, update, strict=True):
                weight.mul_(1 - rate * self.decay).sub_(change, alpha=rate)

    @staticmethod
    def _orthogonal(matrices: Tensor) -> Tensor:
        a, b, c = 3.4445, -4.7750, 2.0315
        x = matrices.bfloat16()
        flip = x.shape[1] > x.shape[2]
        x = x.mT if flip else x
        x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
        for _ in range(5):
            square = x @ x.mT
            x = a * x + (b * square + c * square @ square) @ x
        return (x.mT if flip else x).float()


def loss_of(model: Tiny, forward: Callable[[Tensor], Tensor], batch: Batch) -> tuple[Tensor, float]:
    """Weighted mean loss of the next token, and the share of answer tokens guessed right."""
    ids, weight = batch
    with torch.autocast("cpu", torch.bfloat16):
        hidden = forward(ids[:, :-1])
        kept = weight[:, 1:] > 0
        logits = model.head(hidden[kept]).float()
    wanted, factor = ids[:, 1:][kept], weight[:, 1:][kept]
    losses = F.cross_entropy(logits, wanted, reduction="none")
    with torch.no_grad():
        answers = factor == 1
        right = (logits.argmax(-1) == wanted)[answers].float().mean().item()
    return (losses * factor).sum() / factor.sum(), right


class Run:
    """One training run and everything that must survive a restart."""

    def __init__(self, folder: Path, minutes: float, start: Path | None = None, peak: float = 1.0) -> None:
        self.folder, self.seconds = folder, minutes * 60
        self.peak, self.decay = peak, DECAY_SHARE if start is None else LATER_DECAY_SHARE
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        torch.manual_seed(0)
        self.model = Tiny(Config(vocab_size=self.tokenizer.get_vocab_size()))
        # A compiled step takes about two thirds of the time; the first step takes a minute.
        self.forward = torch.compile(self.model, dynamic=True)
        matrices = [w for n, w in self.model.named_parameters() if w.dim() == 2 and "embed" not in n]
        rest = [w for n, w in self.model.named_parameters() if w.dim() != 2 or "embed" in n]
        self.muon = Muon(matrices)
        self.adam = torch.optim.AdamW(rest, lr=PEAK_REST, betas=(0.9, 0.98), weight_decay=0.0)
        self.step, self.tokens, self.used, self.shard, self.batch = 0, 0, 0.0, 0, 0
        if (folder / "checkpoint.pt").exists():
            self.load(folder / "checkpoint.pt")
        elif start is not None:
            self.load(start)
            self.used, self.shard, self.batch = 0.0, self.shard + 1, 0

    def load(self, file: Path) -> None:
        saved = torch.load(file, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.adam.load_state_dict(saved["adam"])
        for shape, state in zip(self.muon.state, saved["muon"], strict=True):
            self.muon.state[shape].copy_(state)
        self.step, self.tokens, self.used, self.shard, self.batch = saved["position"]

    def save(self) -> None:
        saved = {
            "model": self.model.state_dict(),
            "adam": self.adam.state_dict(),
            "muon": list(self.muon.state.values()),
            "position": (self.step, self.tokens, self.used, self.shard, self.batch),
        }
        torch.save(saved, self.folder / "checkpoint.new")
        (self.folder / "checkpoint.new").replace(self.folder / "checkpoint.pt")

    def rate(self) -> float:
        left = max(0.0, 1 - self.used / self.seconds)
        return self.peak * min(1.0, (self.step + 1) / WARMUP_STEPS, left / self.decay)

    def update(self, batch: Batch) -> tuple[float, float]:
        loss, right = loss_of(self.model, self.forward, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        rate = self.rate()
        self.muon.step(PEAK_MATRIX * rate)
        for group in self.adam.param_groups:
            group["lr"] = PEAK_REST * rate
        self.adam.step()
        self.model.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += batch[0].numel()
        return loss.item(), right

    def note(self, **figures: object) -> None:
        line = {"minutes": round(self.used / 60, 1), "step": self.step, "million_tokens": round(self.tokens / 1e6, 2)}
        with (self.folder / "curve.jsonl").open("a") as file:
            file.write(json.dumps(line | figures) + "\n")
        print(line | figures, flush=True)

    def go(self, note_every: int = 50, measure_every: int = 600) -> None:
        last = time.monotonic()
        losses: list[tuple[float, float]] = []
        while self.used < self.seconds:
            rows = shard(self.tokenizer, f"{SEED}-{self.shard}", SHARD)
            for index, batch in enumerate(batches(rows, f"{SEED}-{self.shard}", BATCH_TOKENS)):
                if index < self.batch:
                    continue
                losses.append(self.update(batch))
                self.batch = index + 1
                now = time.monotonic()
                self.used, last = self.used + now - last, now
                if self.step % note_every == 0:
                    loss, right = (sum(column) / len(losses) for column in zip(*losses, strict=True))
                    self.note(loss=round(loss, 4), token_right=round(right, 4))
                    losses.clear()
                if self.step % measure_every == 0:
                    self.save()
                    self.note(**measure(self.model, self.tokenizer, 192))
                if self.used >= self.seconds:
                    break
            else:
                self.shard, self.batch = self.shard + 1, 0
        self.save()
        self.note(**measure(self.model, self.tokenizer, 1000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=75)
    parser.add_argument("--measure-every", type=int, default=600)
    parser.add_argument("--start", type=Path, help="checkpoint of an earlier run to go on from, with a new clock")
    parser.add_argument(
        "--peak", type=float, default=1.0, help="the highest learning rate, as a share of the usual one"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    random.seed(0)
    run = Run(arguments.folder, arguments.minutes, arguments.start, arguments.peak)
    count = sum(w.numel() for w in run.model.parameters())
    print(f"{count / 1e6:.2f} million parameters, from step {run.step}", flush=True)
    run.go(measure_every=arguments.measure_every)


if __name__ == "__main__":
    main()
