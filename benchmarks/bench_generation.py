"""Tokens per second of whole generations; peers are the loops of transformers and llama-cpp-python on equal weights.

    python benchmarks/bench_generation.py [--tokens 96] [--seconds 6] [--rounds 5] [--record]

The bundled `tiny` (V = 4,096) and a random llama of 131,072 tokens (2 layers, width 128), float32, greedy, one thread.
Peers and guideway run in pairs in one process. The order in a pair alternates. Each line runs for `--seconds` seconds
and at least `--rounds` rounds, after two pairs of warm-up. Times are process CPU time, because the machine is shared.
The garbage collector runs before each run and ignores objects that were created during loading. A ratio is the median
of the ratios of the pairs, with quartiles; tokens per second are medians.
"unconstrained": transformers.generate and `complete` over the same weights, batch 1 and 16; `Llama.generate` of
llama-cpp-python and guideway over llama.cpp, batch 1, and 16 prompts (llama-cpp-python in sequence). Prompts are token
ids for all. No cache is kept between runs. All write the same number of tokens. "overhead": the cost of a constraint
that allows any text, in a step of an engine without delay, CPU time of the calling thread. A percentage refers to the
fastest step of batch 1 with that vocabulary, in the same run.
"different prompts": 16 and 64 prompts of 10 to 400 tokens, batch 16, so that rows join and leave. Peers: for
transformers and ONNX Runtime `transformers.generate` in batches of 16 with left padding and mixed limits of length,
each batch until its longest text is complete, and tokens beyond a text's limit are not counted ("tiny-genai": the
generator of onnxruntime-genai does the same); for MLX mlx-lm's
`BatchGenerator`, whose rows join and leave; for llama.cpp `Llama.generate`, one prompt after the other. "gguf-unified" is
llama.cpp with KV cells that all rows share; "gguf" may give them separate cells. "gguf-large" is llama.cpp with a random
llama of 8 layers and width 512 (111 MB) instead of `tiny`. "forced": the part of the tokens that have no alternative.
"filled": rows per call of the model, as a part of the active rows; calls that run prompts (more than 8 tokens per row)
are not counted. "step": the median CPU time of a call of the model with one row and one token. The engines take turns in each
kind of cell.
"records": tokens per second of JSON records, most of them forced, against free text of the same length.
Bars: unconstrained and different prompts at least 1.0x, at least 1.3x where a third of the tokens is forced; overhead at
most 1 % of a step or 10 us; records above 1.5x. Cells of different prompts on ONNX Runtime have a bar only
if the step takes at least 2 ms. With smaller models most of the time goes to prompts and attention, which rows do not share.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time, thread_time
from typing import NamedTuple

import numpy as np

import guideway as gw
from guideway.generation import complete
from guideway.testing import ConstantModel
from guideway.tokenizers import Tokenizer, Vocabulary
from harness.report import Report
from harness.slow import closed

sys.path[:0] = [str(Path(__file__).parents[1])]  # the writer of GGUF files, of the tests
TINY = Path(gw.__file__).parent / "tiny"
PROMPT = "Ada Lovelace, 36, mathematician from London, met"
WIDE = 131_072
SHORTEST_STEP = 2.0
"""The least time of a step, in ms, of a model of ONNX Runtime for which different prompts have a bar."""
Way = Callable[[], int]
"""Generates texts, and returns the number of tokens."""


class Given(argparse.Namespace):
    tokens: int
    seconds: float
    rounds: int
    record: bool
    engines: str
    prompts: str
    texts: str
    ways: str
    only_different: bool


def wide_model(folder: Path) -> Path:
    """A random llama over 131,072 tokens, with a tokenizer of single bytes and one pair."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WIDE,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        bos_token_id=WIDE - 2,
        eos_token_id=WIDE - 1,
        initializer_range=0.5,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text("utf-8"))
    written |= {"rope_theta": 10_000.0, "head_dim": 64}  # the writer of GGUF files reads these keys
    (folder / "config.json").write_text(json.dumps(written), "utf-8")
    read = json.loads((TINY / "tokenizer.json").read_text("utf-8"))
    old = sorted(read["model"]["vocab"], key=read["model"]["vocab"].get)
    alphabet = [token for token in old if len(token) == 1]
    first, second = alphabet[:2]
    tokens = [*alphabet, first + second]
    tokens += [f"{n:06d}" for n in range(WIDE - 2 - len(tokens))]
    read["model"] |= {"vocab": {token: n for n, token in enumerate(tokens)}, "merges": [[first, second]]}
    names = [("<s>", WIDE - 2), ("</s>", WIDE - 1)]
    shape = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    read["added_tokens"] = [{"id": number, "content": name, **shape} for name, number in names]
    read["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(read), "utf-8")
    return folder


def large_model(folder: Path) -> Path:
    """A random llama with the tokenizer of `tiny`, whose matrices take most of the time of a step."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shutil.copytree(TINY, folder, ignore=shutil.ignore_patterns("model.*", "curve.json"))
    written = json.loads((TINY / "config.json").read_text("utf-8"))
    written |= {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8, "dtype": "float32"}
    written |= {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64}
    LlamaForCausalLM(LlamaConfig(**written, initializer_range=0.1)).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(written), "utf-8")
    return folder


class Pairs(NamedTuple):
    """Tokens per second of two implementations, and their ratio: quartiles of the pairs."""

    first: float
    second: float
    low: float
    ratio: float
    high: float

    def row(self) -> list[str]:
        return [
            f"{self.first:,.0f}",
            f"{self.second:,.0f}",
            f"{self.ratio:.2f}x",
            f"{self.low:.2f}-{self.high:.2f}",
        ]


def in_pairs(first: Way, second: Way, seconds: float, rounds: int) -> Pairs:
    """Runs both implementations in pairs; the order alternates."""
    gc.collect()
    gc.freeze()  # a collection before each run then inspects only objects of that run
    found: list[tuple[float, float]] = []
    begun = perf_counter()
    while len(found) < rounds + 2 or perf_counter() - begun < seconds:
        pair = {}
        for way in (first, second) if len(found) % 2 else (second, first):
            gc.collect()
            start = process_time()
            tokens = way()
            pair[way] = tokens / (process_time() - start), tokens
        if pair[first][1] != pair[second][1]:
            raise SystemExit(f"they wrote different numbers of tokens: {pair[first][1]} and {pair[second][1]}")
        found.append((pair[first][0], pair[second][0]))
    gc.unfreeze()
    del found[:2]
    low, ratio, high = quantiles([b / a for a, b in found], n=4)
    return Pairs(median([a for a, _ in found]), median([b for _, b in found]), low, ratio, high)


def ours(model: gw.Model, prompts: list[list[int]], tokens: int) -> Way:
    def way() -> int:
        model.prefixes.clear()
        made = complete(model, prompts, max_tokens=tokens, batch_size=len(prompts))
        return sum(len(one.tokens) for one in made)

    return way


def against_transformers(folder: Path, place: str, tokens: int, batch: int, given: Given) -> Pairs:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    endless = Tokenizer.of(folder, eos_ids=[])
    model = gw.load(f"hf:{folder}", tokenizer=endless, dtype="float32")  # the file has half precision
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    theirs.generation_config.eos_token_id = None
    theirs.generation_config.pad_token_id = 0
    prompt = [*model.bos_ids, *endless.encode(PROMPT)]
    ids = torch.tensor([prompt] * batch)
    mask = torch.ones_like(ids)

    def way() -> int:
        with torch.inference_mode():
            made = theirs.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=tokens)
        return int(made.numel() - ids.numel())

    with model:
        return in_pairs(way, ours(model, [prompt] * batch, tokens), given.seconds, given.rounds)


def by_transformers(prompts: list[list[int]], limits: list[int], sampled: bool, spec: str) -> Way:
    """`transformers.generate` in batches of 16 with left padding."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    theirs = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()
    theirs.generation_config.eos_token_id, theirs.generation_config.pad_token_id = None, 0

    def way() -> int:
        for start in range(0, len(prompts), 16):
            some, width = prompts[start : start + 16], max(map(len, prompts[start : start + 16]))
            ids = torch.tensor([[0] * (width - len(one)) + one for one in some])
            mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in some])
            with torch.inference_mode():
                most = max(limits[start : start + 16])
                theirs.generate(ids, attention_mask=mask, do_sample=sampled, max_new_tokens=most)
        return sum(limits)

    return way


def by_mlx(prompts: list[list[int]], limits: list[int], sampled: bool, spec: str) -> Way:
    """mlx-lm's `BatchGenerator`, with 16 rows at a time."""
    import mlx.core as mx
    from mlx_lm.generate import BatchGenerator
    from mlx_lm.utils import load_model

    theirs = load_model(Path(spec.partition(":")[2]))[0]
    theirs.set_dtype(mx.float32)

    def way() -> int:
        sampler = (lambda logprobs: mx.random.categorical(logprobs)) if sampled else None
        running = BatchGenerator(theirs, stop_tokens=[], completion_batch_size=16, sampler=sampler)
        running.insert(prompts, limits)
        made = 0
        while found := running.next_generated():
            made += len(found)
        running.close()
        return made

    return way


def by_llama_cpp(prompts: list[list[int]], limits: list[int], sampled: bool, spec: str) -> Way:
    """`Llama.generate`, one prompt after the other."""
    import llama_cpp

    theirs = llama_cpp.Llama(
        spec.partition(":")[2],
        n_ctx=1024,
        n_threads=1,
        n_threads_batch=1,
        type_k=0,
        type_v=0,
        flash_attn=False,
        verbose=False,
    )

    def way() -> int:
        made = 0
        for prompt, most in zip(prompts, limits, strict=True):
            theirs.reset()
            made += sum(1 for _ in islice(theirs.generate(prompt, temp=float(sampled)), most))
        return made

    return way


def by_genai(prompts: list[list[int]], limits: list[int], sampled: bool, spec: str) -> Way:
    """The generator of onnxruntime-genai, in batches of 16 with left padding."""
    import onnxruntime_genai as og

    from tests.helpers.genai_models import genai_folder

    with tempfile.TemporaryDirectory() as place:
        theirs = og.Model(str(genai_folder(TINY, Path(place) / "tiny")))
    pad = json.loads((TINY / "config.json").read_text("utf-8"))
    filler = pad.get("pad_token_id", pad["eos_token_id"])

    def way() -> int:
        for start in range(0, len(prompts), 16):
            some, most = prompts[start : start + 16], max(limits[start : start + 16])
            width = max(map(len, some))
            params, length = og.GeneratorParams(theirs), width + most
            params.set_search_options(min_length=length, max_length=length, batch_size=len(some), do_sample=sampled)
            running = og.Generator(theirs, params)
            running.append_tokens(np.array([[filler] * (width - len(one)) + one for one in some], np.int32))
            while not running.is_done():
                running.generate_next_token()
            if len(running.get_sequence(0)) != length:
                raise SystemExit("onnxruntime-genai wrote another number of tokens")
        return sum(limits)

    return way


PEERS = {
    "hf": by_transformers,
    "tiny": by_transformers,
    "tiny-genai": by_genai,
    "mlx": by_mlx,
    "gguf": by_llama_cpp,
    "gguf-unified": by_llama_cpp,
    "gguf-large": by_llama_cpp,
}


def loaded(spec: str, tokenizer: Tokenizer | None, options: dict[str, str]) -> gw.Model:
    kind, _, file = spec.partition(":")
    if kind != "gguf-unified":
        spec = {"tiny-genai": "tiny", "gguf-large": f"gguf:{file}"}.get(kind, spec)
        return gw.load(spec, tokenizer=tokenizer, **options)
    from guideway.engines.llama_cpp import LlamaCppEngine

    return gw.Model(LlamaCppEngine(file, kv_unified=True), tokenizer or Tokenizer.of(file))


def _shape(properties: dict[str, object]) -> gw.JsonSchema:
    return gw.JsonSchema(closed(properties, required=list(properties)))


_KNOWN = {"enum": ["yes", "no", None]}
_FIELD = {"type": "string", "minLength": 14, "maxLength": 22}
TEXTS: dict[str, gw.JsonSchema | None] = {
    "free": None,
    "records": _shape({"identifier": _KNOWN, "profession": _KNOWN}),
    "fields": _shape(dict.fromkeys(["family_name", "place_of_residence", "profession"], _FIELD)),
    "strings": _shape({"name": {"type": "string", "minLength": 50, "maxLength": 80}, "known": _KNOWN}),
}
"""The constraints of the cells of different prompts. About two thirds of the tokens of "records" are forced, about a third
of those of "fields", and about a fifth to a quarter of those of "strings"."""


class Cell(NamedTuple):
    """A cell of different prompts. `step`: the time of a step of the model in ms."""

    engine: str
    text: str
    prompts: int
    found: Pairs
    forced: float
    filled: float
    step: float

    @property
    def bar(self) -> float:
        """The least ratio, if the cell has a bar."""
        return 1.3 if round(self.forced, 2) >= 0.33 else 1.0

    @property
    def has_bar(self) -> bool:
        """Whether the ratio must reach a bar: on ONNX Runtime only if a step is long enough."""
        return not self.engine.startswith("tiny") or self.step >= SHORTEST_STEP

    @property
    def is_below(self) -> bool:
        return round(self.found.ratio, 2) < self.bar

    def row(self) -> list[str]:
        shares = f"{self.forced:.0%}", f"{self.filled:.0%}"
        return [self.engine, self.text, str(self.prompts), *self.found.row(), *shares, f"{self.step:.2f}"]

    def __str__(self) -> str:
        return f"{self.text}, {self.prompts} prompts: {self.found.ratio:.2f}x"


def time_of_step(model: gw.Model) -> float:
    """The median CPU time of a call of the model with one row and one token after 200 others, in ms."""
    model.prefixes.clear()
    session, times = model.session(), []
    session.feed([*range(300, 500)])
    session.logits()
    for token_id in range(500, 540):
        session.feed([token_id])
        start = process_time()
        session.logits()
        times.append((process_time() - start) * 1e3)
    return median(times[8:])


def different_prompts(count: int, *, text: str, sampled: bool, spec: str, given: Given) -> Cell:
    """A cell of different prompts, against free text of the same length in the engine's own loop."""
    rng = np.random.default_rng(count)
    lengths = np.linspace(10, 400, count).astype(int)
    rng.shuffle(lengths)
    prompts = [rng.integers(300, 4000, length).tolist() for length in lengths]
    limits = [int(n) for n in rng.integers(12, 49, count)]
    options = {"temperature": 1.0} if sampled else {}
    output = TEXTS[text]
    endless = Tokenizer.of(TINY, eos_ids=[])
    exact = {"dtype": "float32"} if spec.startswith(("hf", "mlx")) else {}
    with loaded(spec, None if output is not None else endless, exact) as model:
        requests = [
            gw.GenerationRequest(prompt, output, max_tokens=most if output is None else 200, seed=i, **options)
            for i, (prompt, most) in enumerate(zip(prompts, limits, strict=True))
        ]
        made = complete(model, requests, batch_size=16)
        limits = [len(one.tokens) for one in made]  # their free texts have the same lengths
        forced = sum(one.forced for one in made) / sum(limits)

        def ours() -> int:
            model.prefixes.clear()
            return sum(len(one.tokens) for one in complete(model, requests, batch_size=16))

        peer = PEERS[spec.partition(":")[0]](prompts, limits, sampled, spec)
        found = in_pairs(peer, ours, given.seconds, given.rounds)
        filled, step = model.engine.counts.filled, time_of_step(model)
    kind = f"{text}, {'sampled' if sampled else 'greedy'}"
    return Cell(spec.partition(":")[0], kind, count, found, forced, filled, step)


def against_llama_cpp(folder: Path, place: str, tokens: int, batch: int, given: Given) -> Pairs:
    import llama_cpp

    from tests.helpers.gguf_models import write_gguf

    endless = Tokenizer.of(folder, eos_ids=[])
    file = Path(place) / f"{folder.name}.gguf"
    if not file.exists():
        write_gguf(folder, file)
    model = gw.load(f"gguf:{file}", tokenizer=endless)
    theirs = llama_cpp.Llama(
        str(file), n_ctx=1024, n_threads=1, n_threads_batch=1, type_k=0, type_v=0, flash_attn=False, verbose=False
    )
    prompt = [*model.bos_ids, *endless.encode(PROMPT)]

    def way() -> int:
        made = 0
        for _ in range(batch):
            theirs.reset()
            made += sum(1 for _ in islice(theirs.generate(prompt, temp=0.0), tokens))
        return made

    with model:
        return in_pairs(way, ours(model, [prompt] * batch, tokens), given.seconds, given.rounds)


def overhead(size: int, tokens: int, rounds: int) -> tuple[float, float]:
    """A step without and with a constraint, over an engine without delay; microseconds of the calling thread."""
    pieces = [bytes([n]) for n in range(32, 127)] + [b"%06d" % n for n in range(size - 96)] + [b""]
    vocabulary = Vocabulary(pieces, eos_ids=[size - 1], special_ids=[size - 1])
    logits = np.random.default_rng(0).normal(0, 1, size)
    logits[-1] = -9.0  # no early end
    model, any_text = ConstantModel(vocabulary, logits), gw.Regex(r"[\s\S]*")
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for constrained in (False, True):
            start = thread_time()
            made = complete(model, "a", any_text if constrained else None, max_tokens=tokens)
            times[constrained].append((thread_time() - start) / len(made.tokens) * 1e6)
    return min(times[False]), min(times[True])


def records(given: Given) -> tuple[Pairs, float]:
    """Tokens per second of records and of free text of the same length; the part of tokens that is forced."""
    fields = ["identifier", "family_name", "date_of_birth", "place_of_residence", "profession", "nationality"]
    kinds = {name: {"enum": ["yes", "no", None]} for name in fields}
    source = gw.JsonSchema({"type": "object", "properties": kinds, "required": fields})
    with gw.load("tiny") as model, gw.load("tiny", tokenizer=Tokenizer.of(TINY, eos_ids=[])) as endless:
        made = complete(model, PROMPT, source)

        def held() -> int:
            model.prefixes.clear()
            return len(complete(model, PROMPT, source).tokens)

        free = ours(endless, [endless.tokenizer.encode(PROMPT)], len(made.tokens))
        return in_pairs(free, held, given.seconds, given.rounds), made.forced / len(made.tokens)


def cells_of_different_prompts(given: Given) -> list[Cell]:
    """Run the cells of each engine whose library is installed."""
    libraries = {"hf": "transformers", "tiny": "transformers", "mlx": "mlx_lm", "gguf": "llama_cpp"}
    libraries |= {"tiny-genai": "onnxruntime_genai", "gguf-unified": "llama_cpp", "gguf-large": "llama_cpp"}
    cells = []
    with tempfile.TemporaryDirectory() as place:
        specs = []
        for kind in given.engines.split(","):
            if importlib.util.find_spec(libraries[kind]) is None:
                continue
            spec = kind if kind.startswith("tiny") else f"{kind}:{TINY}"
            if kind.startswith("gguf"):
                from tests.helpers.gguf_models import write_gguf

                folder = large_model(Path(place) / kind) if kind == "gguf-large" else TINY
                spec = f"{kind}:{write_gguf(folder, Path(place) / f'{kind}.gguf')}"
            specs.append(spec)
        for count in (int(number) for number in given.prompts.split(",")):
            for text in given.texts.split(","):
                for way in given.ways.split(","):
                    for spec in specs:
                        cells.append(
                            different_prompts(count, text=text, sampled=way == "sampled", spec=spec, given=given)
                        )
                        print(*cells[-1].row(), file=sys.stderr, flush=True)
    return cells


def table_of_different_prompts(report: Report, given: Given) -> None:
    """Report the cells of different prompts, those below their bar, and those without a bar."""
    cells = cells_of_different_prompts(given)
    heads = "engine", "text", "prompts", "peer", "ours", "ratio", "quartiles", "forced", "filled", "step, ms"
    report.table("different prompts, tokens per second", heads, [cell.row() for cell in cells])
    for cell in cells:
        if cell.has_bar and cell.is_below:
            report.line(f"bar: {cell.engine}, {cell}, at least {cell.bar:g}x: MISSED")
    free = [cell for cell in cells if not cell.has_bar]
    for engine in dict.fromkeys(cell.engine for cell in free):
        some = [cell for cell in free if cell.engine == engine]
        low = [f"{cell} ({cell.bar:g}x)" for cell in some if cell.is_below]
        message = f"lower than the bar would be: {'; '.join(low)}" if low else "none is lower than the bar would be"
        step = median(cell.step for cell in some)
        report.line(
            f"recorded without a bar: {engine} (cells: {len(some)}): a step of the model takes {step:.1f} ms; {message}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--engines", default="hf,tiny,tiny-genai,mlx,gguf,gguf-large", help="those of the different prompts"
    )
    parser.add_argument("--prompts", default="16,64", help="numbers of different prompts")
    parser.add_argument("--texts", default=",".join(TEXTS), help="their texts")
    parser.add_argument("--ways", default="greedy,sampled", help="how their tokens are drawn")
    parser.add_argument("--only-different", action="store_true", help="run the cells of different prompts only")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(namespace=Given())
    if not set(given.ways.split(",")) <= {"greedy", "sampled"}:
        parser.error('--ways must be "greedy", "sampled", or both with a comma between')
    report = Report("generation", [line for line in __doc__.splitlines()[4:] if line])
    if given.only_different:
        table_of_different_prompts(report, given)
        report.done(False)
        return
    rows, slow = [], []
    quickest = {"tiny": 0.0, "131k": 0.0}  # tokens per second, batch 1
    with tempfile.TemporaryDirectory() as place:
        folders = {"tiny": TINY}
        if importlib.util.find_spec("transformers") is not None:
            folders["131k"] = wide_model(Path(place) / "wide")
        for peer, library, run in (
            ("transformers", "transformers", against_transformers),
            ("llama-cpp-python", "llama_cpp", against_llama_cpp),
        ):
            if importlib.util.find_spec(library) is None:
                report.line(f"{peer} is not installed, so not run")
                continue
            for name, folder in folders.items():
                for batch in (1, 16):
                    tokens = given.tokens if batch == 1 else given.tokens // 2
                    found = run(folder, place, tokens, batch, given)
                    rows.append([peer, name, str(batch), *found.row()])
                    slow.append((f"{peer}, {name}, batch {batch}", found.ratio, 1.0))
                    if batch == 1:
                        quickest[name] = max(quickest[name], found.second)
                    print(*rows[-1], file=sys.stderr, flush=True)  # it takes minutes
    heads = ["peer", "model", "batch", "theirs", "ours", "ratio", "quartiles"]
    report.table("unconstrained, tokens per second", heads, rows)
    table_of_different_prompts(report, given)
    for name, size in (("tiny", 4_096), ("131k", WIDE)):
        free, held = overhead(size, 300, given.rounds)
        percent = 1e4 / quickest[name] if quickest[name] else 0
        message = f" (a percent of {name}'s quickest: {percent:.1f})" if percent else ""
        said = f"overhead of a constraint, V = {size:,}: {free:.1f} -> {held:.1f} us a step{message}"
        report.limit(said, held - free, max(10, percent), "us")
    found, forced = records(given)
    report.line(
        f"tokens per second of tiny: free {found.first:,.0f}, records {found.second:,.0f};"
        f" {forced:.0%} of the records' tokens are forced"
    )
    slow.append(("records against free text", found.ratio, 1.5))
    for what, ratio, least in slow:
        report.line(f"bar: {what}: {ratio:.2f}x, at least {least:g}x: {'met' if ratio >= least else 'MISSED'}")
    report.done(given.record)


if __name__ == "__main__":
    main()
