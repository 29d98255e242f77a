"""What constraints cost per step on a CUDA device: 131,072 tokens (Tekken), batches of 1, 16, 64 and 256.

    python benchmarks/bench_gpu.py [--batches 1,16,64,256] [--steps 48] [--rounds 5] [--record] [--trace FILE]

A random llama in bfloat16 (0.7 billion parameters) writes JSON records inside `generate` of transformers. A processor
that runs last selects the tokens of a record, so that all ways write the same text. Ways, in turns: "plain", without a
processor of ours; "masks", with Guideway's processor; "ahead", with `stopping_criteria=[processor.ahead]` too, so that
the masks are computed while the model runs. Wall time per step of whole calls, median of the rounds, and the
difference to "plain". "hidden": the part of the time of masks for which the loop did not wait.
"fresh": a schema with new property names in each call, so that no mask is in a cache.

Also: the time on the device of the Triton kernel, of PyTorch's operations that do the same, and of a copy of the
logits; and tokens per second of the own loop (`gw.generate`) and of `generate` with different prompts, greedy and
sampled (temperature 0.8, top_p 0.95; top-a is a stage that is drawn on the CPU).
`--trace` writes a trace of some steps for chrome://tracing: the kernels, and the ranges "masks" and "ahead".
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import guideway as gw
from guideway import masks
from harness.data import EOS, tekken
from harness.report import Report

SIZE = 131_072
NAMES = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Grace Hopper"]
_numbers = itertools.count()


def schema(suffix: str = "") -> dict[str, Any]:
    """A record with strings, an array and an object; `suffix` makes its property names new."""
    home = {
        "type": "object",
        "properties": {f"city{suffix}": {"type": "string"}},
        "required": [f"city{suffix}"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            f"name{suffix}": {"type": "string", "maxLength": 40},
            f"tags{suffix}": {"type": "array", "items": {"type": "string"}},
            f"age{suffix}": {"type": "integer"},
            f"home{suffix}": home,
        },
        "required": [f"name{suffix}", f"tags{suffix}", f"age{suffix}", f"home{suffix}"],
        "additionalProperties": False,
    }


def record(name: str, age: int, suffix: str = "") -> str:
    """A value of `schema(suffix)`."""
    value = {
        f"name{suffix}": name,
        f"tags{suffix}": ["first of them", "second"],
        f"age{suffix}": age,
        f"home{suffix}": {f"city{suffix}": f"{name}ton"},
    }
    return json.dumps(value)


def longest_match() -> Callable[[str], list[int]]:
    """Text -> the longest tokens. Tekken's own encoder needs libraries that a machine without network may lack."""
    ids = {token: index for index, token in enumerate(tekken()) if token}
    longest = max(map(len, ids))

    def encode(text: str) -> list[int]:
        data, found = text.encode(), []
        while data:
            length = next(n for n in range(min(len(data), longest), 0, -1) if data[:n] in ids)
            found.append(ids[data[:length]])
            data = data[length:]
        return found

    return encode


class Script:
    """Makes each row write its text, whatever the model computes."""

    def __init__(self, texts: Any) -> None:
        import torch

        self.texts, self.step = texts, 0
        self.rows = torch.arange(len(texts), device=texts.device)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        scores[self.rows, self.texts[:, self.step]] += 1e9  # -inf stays -inf
        self.step += 1
        return scores


class Ranges:
    """Gives the calls of a function a name in a trace."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        with torch.profiler.record_function(self.name):
            return self.function(input_ids, scores)


@dataclass
class Times:
    """Milliseconds per step of each round, and how the processor spent its time."""

    steps: list[float] = field(default_factory=list)
    mask: list[float] = field(default_factory=list)
    hidden: list[float] = field(default_factory=list)


class Bench:
    """A model on the device, and the texts that it writes."""

    def __init__(self, steps: int, layers: int) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        sizes = {"hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 8}
        config = LlamaConfig(
            vocab_size=SIZE,
            bos_token_id=1,
            eos_token_id=EOS,
            num_hidden_layers=layers,
            tie_word_embeddings=True,
            **sizes,
        )
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            self.model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(before)
        self.weights = sum(one.numel() for one in self.model.parameters())
        self.encode, self.steps = longest_match(), steps
        self.table = gw.Vocabulary(
            tekken(), eos_ids=[EOS], special_ids=[i for i, one in enumerate(tekken()) if not one]
        )
        self.same = gw.compile(gw.JsonSchema(schema()), self.table)

    def texts(self, rows: int, suffix: str) -> Any:
        """The tokens that the rows write, [rows, steps]."""
        import torch

        found = [self.encode(record(name, 36 + index, suffix)) for index, name in enumerate(NAMES)]
        self.steps = min(self.steps, *map(len, found))
        whole = torch.tensor([text[: self.steps] for text in found], device="cuda")
        return whole.repeat((rows + 3) // 4, 1)[:rows]

    def call(self, rows: int, way: str, *, fresh: bool) -> tuple[float, Any]:
        """Milliseconds per step of one call of `generate`, and the processor's timings."""
        import torch

        from guideway.integrations.transformers import logits_processor

        suffix = f"_{next(_numbers)}" if fresh else ""
        ids = torch.full((rows, 64), 1000, device="cuda")
        script, options, processor = Script(self.texts(rows, suffix)), {}, None
        processors: list[Any] = [script]
        if way != "plain":
            automaton = gw.compile(gw.JsonSchema(schema(suffix)), self.table) if fresh else self.same
            processor = logits_processor(automaton, self.table)
            processors = [Ranges("masks", processor), script]
            if way == "ahead":
                options["stopping_criteria"] = [Ranges("ahead", processor.ahead)]
        torch.cuda.synchronize()
        start = perf_counter()
        found = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=self.steps, pad_token_id=EOS,
            logits_processor=processors, **options,
        )  # fmt: skip
        torch.cuda.synchronize()
        seconds = perf_counter() - start
        written = found[:, 64:]
        if written.shape[1] != self.steps or not torch.equal(written, script.texts):
            raise SystemExit(f"{way}, {rows} rows: the text is not that of the script")
        return 1000 * seconds / self.steps, processor.timings if processor else None


def overhead(bench: Bench, batches: list[int], rounds: int, report: Report, *, fresh: bool) -> None:
    """The table of `generate`."""
    cells = []
    for rows in batches:
        times = {way: Times() for way in ("plain", "masks", "ahead")}
        for number in range(rounds + 1):
            for way, kept in times.items():
                step, timings = bench.call(rows, way, fresh=fresh)
                if number == 0:
                    continue
                kept.steps.append(step)
                if timings:
                    kept.mask.append(1000 * timings.mask / timings.calls)
                    kept.hidden.append(timings.overlap / timings.mask)
        plain = median(times["plain"].steps)
        for way, kept in times.items():
            step = median(kept.steps)
            more = [f"{1000 * (step - plain):,.0f}", f"{100 * (step / plain - 1):.1f} %"] if kept.mask else ["", ""]
            mask = [f"{1000 * median(kept.mask):,.0f}", f"{100 * median(kept.hidden):.0f} %"] if kept.mask else ["", ""]
            cells.append([str(rows), way, f"{step:.3f}", *more, *mask])
            report.ratios[f"{way} {rows} {fresh}"] = step / plain
    name = "new schemas" if fresh else "a known schema"
    heads = ["rows", "way", "ms a step", "us more", "share", "us of masks", "hidden"]
    report.table(f"generate of transformers, {name}", heads, cells)


def kernels(batches: list[int], report: Report) -> None:
    """Time on the device: applying packed masks, and a copy of the logits."""
    import torch
    from triton.testing import do_bench

    from guideway.masks.triton import masked

    cells = []
    chance = np.random.default_rng(0)
    for rows, kind in itertools.product(batches, (torch.float32, torch.bfloat16)):
        logits = torch.randn(rows, SIZE, device="cuda").to(kind)
        row = [microseconds(rows, kind, share, logits, chance, masked, do_bench) for share in (0.001, 0.5)]
        bits = torch.ones(rows, SIZE // 32, dtype=torch.int32, device="cuda")
        shifts = torch.arange(32, device="cuda")

        def operations(logits: Any = logits, bits: Any = bits, shifts: Any = shifts) -> Any:
            return logits.masked_fill(((bits[:, :, None] >> shifts) & 1).flatten(1) == 0, float("-inf"))

        copy = 1000 * do_bench(lambda logits=logits: logits.clone(), return_mode="median")
        plain = 1000 * do_bench(operations, return_mode="median")
        cells.append([str(rows), str(kind).removeprefix("torch."), *row, f"{plain:.1f}", f"{copy:.1f}"])
    heads = ["rows", "logits", "Triton, 0.1 % allowed", "Triton, 50 %", "PyTorch", "copy of the logits"]
    report.table("us on the device to apply masks", heads, cells)


def microseconds(rows: int, kind: Any, share: float, logits: Any, chance: Any, masked: Any, do_bench: Any) -> str:
    """The time of the Triton kernel, formatted."""
    import torch

    packed = np.stack(
        [masks.pack(np.flatnonzero(chance.random(SIZE) < share).tolist(), SIZE) for _ in range(min(rows, 16))]
    )
    words = torch.from_numpy(np.resize(packed, (rows, packed.shape[1])).view(np.int32)).to("cuda")
    free = torch.zeros(rows, dtype=torch.bool, device="cuda")
    return f"{1000 * do_bench(lambda: masked(logits, words, free), return_mode='median'):.1f}"


def own_loop(bench: Bench, batches: list[int], rounds: int, report: Report) -> None:
    """Tokens per second with different prompts: our loop, and `generate` with left padding and without a constraint."""
    import torch

    from guideway.generation import Model
    from guideway.tokenizers import Tokenizer

    tokens = 48
    model = Model(gw.load(bench.model, tokenizer=Tokenizer.of(bench.table)).engine, Tokenizer.of(bench.table))
    text = "Records of people and of their towns, with the years in which they were written down. " * 8
    ids = bench.encode(text)
    record_of = gw.JsonSchema(schema())
    ways: list[tuple[str, Any, gw.Sampler]] = [
        ("greedy", None, gw.Sampler()),
        ("sampled", None, gw.Sampler(0.8, top_p=0.95)),
        ("top-a, drawn on the CPU", None, gw.Sampler(0.8, top_a=0.1)),
        ("JSON, greedy", record_of, gw.Sampler()),
        ("JSON, sampled", record_of, gw.Sampler(0.8, top_p=0.95)),
    ]
    cells = []
    for rows in batches:
        prompts = [ids[: 10 + (37 * index) % 90] for index in range(rows)]
        width = max(map(len, prompts))
        padded = torch.tensor([[EOS] * (width - len(one)) + one for one in prompts], device="cuda")
        seen = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts], device="cuda")
        speeds: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            start = perf_counter()
            with torch.inference_mode():
                bench.model.generate(
                    padded,
                    attention_mask=seen,
                    do_sample=False,
                    max_new_tokens=tokens,
                    min_new_tokens=tokens,
                    pad_token_id=EOS,
                )
            torch.cuda.synchronize()
            found = {"generate, greedy": rows * tokens / (perf_counter() - start)}
            for name, constraint, sampler in ways:
                start = perf_counter()
                done = gw.generation.complete(
                    model,
                    prompts,
                    constraint,
                    sampler=sampler,
                    max_tokens=tokens,
                    allow_truncation=constraint is not None,
                    batch_size=rows,
                )
                found[name] = sum(len(one.tokens) for one in done) / (perf_counter() - start)
            if number:
                for name, speed in found.items():
                    speeds.setdefault(name, []).append(speed)
        base = median(speeds["generate, greedy"])
        cells.append([str(rows), *(f"{median(one):,.0f} ({median(one) / base:.2f}x)" for one in speeds.values())])
    report.table("tokens per second of the own loop, prompts of 10 to 99 tokens", ["rows", *speeds], cells)


def trace(bench: Bench, rows: int, path: str) -> None:
    """Write a trace of some steps of "ahead"."""
    import torch

    bench.call(rows, "ahead", fresh=True)
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        bench.call(rows, "ahead", fresh=True)
    profile.export_chrome_trace(path)


def main() -> None:
    """Print, and with --record write, the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", default="1,16,64,256")
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="write the report to benchmarks/record/")
    parser.add_argument("--trace", default="", help="write a trace to this file (.json or .json.gz)")
    given = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("bench_gpu: not run; it needs a CUDA device")
    bench, batches = Bench(given.steps, given.layers), [int(one) for one in given.batches.split(",")]
    import transformers
    import triton

    report = Report("gpu", [
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, transformers"
        f" {transformers.__version__}; a random llama of {bench.weights / 1e9:.2f} billion parameters, bfloat16;"
        f" medians of {given.rounds} rounds"
    ])  # fmt: skip
    for fresh in (False, True):
        overhead(bench, batches, given.rounds, report, fresh=fresh)
    kernels(batches, report)
    own_loop(bench, [one for one in batches if one <= 64], given.rounds, report)
    if given.trace:
        trace(bench, 64, given.trace)
    report.done(given.record)


if __name__ == "__main__":
    main()
