"""Tokens per second of ExLlamaV2 with and without constraints, on a CUDA device.

    python benchmarks/bench_exllamav2.py [--model FOLDER] [--tokens 256] [--rounds 3] [--record]

Without `--model`: a random llama in float16 (8 layers, width 1024) with 131,072 tokens.

Ways: the normal generator with one prompt; the same with a batch of eight in one cache; a loop over eight sequences,
each with a separate cache; the streaming generator; the dynamic generator with eight jobs (one after the other where
flash-attn, which its paged attention needs, is not installed). Each way runs without a
constraint, with a disabled logits processor (None), with the processor, and with a filter (except for batches of the
normal generator, where ExLlamaV2 accepts no filter). The constraint allows any text, so that all write the same number
of tokens. Bars: disabled, the same speed as without; with, at most 1 % slower. tests/wheels/test_exllamav2.py runs
every way with substitutes for the extension and the model.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import guideway as gw
from harness.random_models import random_llama
from harness.report import Report

ANY = gw.Regex(r"(?s:.*)")
PROMPTS = [f"Chapter {number}. It was" for number in range(8)]


class Bench:
    """A model, and functions of (settings, filters) that generate with it and return the number of tokens."""

    def __init__(self, folder: str, tokens: int) -> None:
        from exllamav2 import ExLlamaV2, ExLlamaV2Cache, ExLlamaV2Config, ExLlamaV2Tokenizer, generator as library

        self.tokens, self.library = tokens, library
        config = ExLlamaV2Config(folder)
        self.model = ExLlamaV2(config)
        self.cache = ExLlamaV2Cache(self.model, max_seq_len=4096, lazy=True)
        self.model.load_autosplit(self.cache)
        self.tokenizer = ExLlamaV2Tokenizer(config)
        self.wide = ExLlamaV2Cache(self.model, batch_size=len(PROMPTS), max_seq_len=1024)
        self.narrow = [ExLlamaV2Cache(self.model, max_seq_len=1024) for _ in PROMPTS]
        self.set_ways()

    def set_ways(self) -> None:
        """What `ways` holds."""
        self.ways: dict[str, Callable[[Any, list[Any]], int]] = {
            "normal": lambda settings, filters: self._normal(PROMPTS[:1], self.cache, settings, filters),
            "normal, batch of 8": lambda settings, filters: self._normal(PROMPTS, self.wide, settings, []),
            "eight caches": self._caches,
            "streaming": self._streaming,
            "dynamic, 8 jobs": self._dynamic,
        }

    def _normal(self, prompts: list[str], cache: Any, settings: Any, filters: list[Any]) -> int:
        made = self.library.ExLlamaV2BaseGenerator(self.model, cache, self.tokenizer)
        made.generate_simple(prompts, settings, self.tokens, stop_token=None, filters=filters)
        return self.tokens * len(prompts)

    def _caches(self, settings: Any, filters: list[Any]) -> int:
        import torch

        texts = [self.tokenizer.encode(prompt) for prompt in PROMPTS]
        held = [[one.clone() for one in filters] for _ in PROMPTS]
        each = [settings() if callable(settings) else settings for _ in PROMPTS]
        for text, cache in zip(texts, self.narrow, strict=True):
            cache.current_seq_len = 0
            self.model.forward(text[:, :-1], cache, preprocess_only=True)
        for _ in range(self.tokens):
            for index, cache in enumerate(self.narrow):
                logits = self.model.forward(texts[index][:, -1:], cache).float().cpu()
                given = each[index], texts[index], random.random(), self.tokenizer
                token, *_ = self.library.ExLlamaV2Sampler.sample(logits, *given, filters=held[index])
                for one in held[index]:
                    one.feed(token)
                texts[index] = torch.cat([texts[index], token], dim=1)
        return self.tokens * len(PROMPTS)

    def _streaming(self, settings: Any, filters: list[Any]) -> int:
        made = self.library.ExLlamaV2StreamingGenerator(self.model, self.cache, self.tokenizer)
        made.begin_stream_ex(self.tokenizer.encode(PROMPTS[0]), settings, filters=filters)
        for _ in range(self.tokens):
            made.stream_ex()
        return self.tokens

    def _dynamic(self, settings: Any, filters: list[Any]) -> int:
        made = self.library.ExLlamaV2DynamicGenerator(
            model=self.model, cache=self.cache, tokenizer=self.tokenizer, paged=has_paged_attention()
        )
        jobs = [
            self.library.ExLlamaV2DynamicJob(
                input_ids=self.tokenizer.encode(prompt),
                max_new_tokens=self.tokens,
                gen_settings=settings() if callable(settings) else settings,
                filters=[one.clone() for one in filters],
            )
            for prompt in PROMPTS
        ]
        made.enqueue(jobs)
        count = 0
        while made.num_remaining_jobs():
            count += sum(one.get("new_tokens", 0) for one in made.iterate() if one.get("eos"))
        return count

    def settings(self, way: str, kind: str) -> Any:
        """The sampler's settings; where each sequence has its own, a function that makes them."""
        from guideway.integrations.exllamav2 import Settings, logits_processor

        def make() -> Any:
            processor = logits_processor(ANY, self.tokenizer) if kind == "processor" else None
            return Settings(logits_processor=processor, top_k=50, top_p=0.9)

        if kind in ("without", "filter"):
            return self.library.ExLlamaV2Sampler.Settings(top_k=50, top_p=0.9)
        return make if way.startswith(("dynamic", "eight")) else make()

    def speed(self, way: str, kind: str) -> float:
        """Tokens per second of one generation."""
        from guideway.integrations.exllamav2 import ConstraintFilter

        filters = [ConstraintFilter(self.model, self.tokenizer, ANY)] if kind == "filter" else []
        settings = self.settings(way, kind)
        start = perf_counter()
        return self.ways[way](settings, filters) / (perf_counter() - start)


def has_paged_attention() -> bool:
    """Return whether ExLlamaV2 found a flash-attn that supports pages."""
    from exllamav2.attn import has_flash_attn_with_paged

    return bool(has_flash_attn_with_paged)


def main() -> None:
    """Print, and with --record write, the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if importlib.util.find_spec("exllamav2") is None:
        print("bench_exllamav2: not run; it needs exllamav2 and a CUDA device")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as folder:
        run(Bench(options.model or str(random_llama(Path(folder))), options.tokens), options.rounds, options.record)


def run(bench: Bench, rounds: int, record: bool) -> None:
    """Measure all ways in turns."""
    import torch

    about = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, medians of {rounds} rounds"
    report = Report("exllamav2", [about, f"paged attention: {'yes' if has_paged_attention() else 'no'}"])
    for way in bench.ways:
        kinds = ["without", "off", "processor"] + ([] if "batch" in way else ["filter"])
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(rounds + 1):  # the first to warm up
            for kind in kinds:
                found[kind].append(bench.speed(way, kind))
        figures = {kind: median(speeds[1:]) for kind, speeds in found.items()}
        report.line(f"{way}: " + ", ".join(f"{kind} {speed:.1f} tokens/s" for kind, speed in figures.items()))
        report.limit(f"{way}, what a processor costs", figures["without"] / figures["processor"], 1.01, "x")
    report.done(record)


if __name__ == "__main__":
    main()
