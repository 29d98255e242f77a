"""All combinations of call forms: result shapes and types, and rows that do not depend on the batch."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="one of the models of these tests is written with onnx")

import guideway as gw
from guideway.generation import Generation, Model, TextChunk, acomplete, complete
from guideway.testing import ToyEngine, tiny_model
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.small_model import write_model
from tests.helpers.toy_models import toy_model


@dataclass
class Pair:
    a: int
    b: bool


BYTES = [
    b"",
    *(bytes([n]) for n in range(256)),
    b"the",
    b" the",
    b'": ',
    b'{"a"',
    b"\xe2\x82",
    b"\xf0\x9f",
    b"ne",
    b"END",
]
VOCABULARY = Vocabulary(BYTES, eos_ids=[0], special_ids=[0])


def toy(folder: Path) -> Model:
    return toy_model(VOCABULARY, 5)


def recurrent(folder: Path) -> Model:
    return toy_model(VOCABULARY, 5, supports_rollback=False)


def onnx(folder: Path) -> Model:
    return gw.load(f"onnx:{write_model(folder)}")


def optional(name: str, library: str) -> Callable[[Path], Model]:
    def made(folder: Path) -> Model:
        pytest.importorskip(library, reason=f"the engine {name} is not installed")
        tiny_model("llama", folder, seed=3)
        return gw.load(f"{name}:{folder}")

    return made


def llama_cpp(folder: Path) -> Model:
    for library in ("llama_cpp", "gguf"):
        pytest.importorskip(library, reason="the engine llama.cpp is not installed")
    from tests.helpers.gguf_models import write_gguf

    tiny_model("llama", folder, seed=3)
    return gw.load(f"gguf:{write_gguf(folder, folder / 'model.gguf')}", tokenizer=folder)


ENGINES = [
    *(pytest.param(one, id=one.__name__) for one in (toy, recurrent, onnx)),
    pytest.param(optional("hf", "transformers"), id="transformers", marks=pytest.mark.engine("transformers")),
    pytest.param(llama_cpp, id="llama.cpp", marks=pytest.mark.engine("llama_cpp", "gguf")),
    pytest.param(optional("mlx", "mlx_lm"), id="mlx", marks=pytest.mark.engine("mlx")),
]


@pytest.fixture(scope="module", params=ENGINES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    made: Model = request.param(tmp_path_factory.mktemp("model"))
    return made


STOP = "e"
OUTPUTS: dict[str, Any] = {"free": None, "constraint": gw.Regex(r"[a-zé€😀]{2,9}\."), "type": Pair, "mixed": ...}


def prompts_of(kind: str, many: bool) -> Any:
    """Returns one prompt or several; mixed prompts have a separate output, sampler and limit each."""
    if kind != "mixed":
        return ["the ", "a", "the the"] if many else "the "
    mixed = [
        gw.GenerationRequest("the ", gw.Regex("(yes|no)!")),
        gw.GenerationRequest("a", None, max_tokens=5, stop=STOP),
        gw.GenerationRequest("the the", Pair, sampler=gw.Sampler(0.7, top_k=20), seed=9),
    ]
    return mixed if many else mixed[1]


def check(found: Generation[Any], kind: str, prompt: Any) -> None:
    output = prompt.output if isinstance(prompt, gw.GenerationRequest) else OUTPUTS[kind]
    if output is Pair:
        assert isinstance(found.value, Pair)
        assert type(found.value.a) is int
        assert type(found.value.b) is bool
    elif output is None:
        assert found.value == found.text
        assert STOP not in found.text or kind != "mixed"
    else:
        assert re.fullmatch(output.pattern, found.value)
    assert len(found.tokens) <= 24


@pytest.mark.parametrize(("kind", "many", "n"), list(product(OUTPUTS, [False, True], [None, 3])))
def test_every_way_to_ask(model: Model, kind: str, many: bool, n: int | None) -> None:
    prompt, output = prompts_of(kind, many), None if kind == "mixed" else OUTPUTS[kind]
    options: dict[str, Any] = {"max_tokens": 24, "seed": 6, "batch_size": 4}
    # Requests have separate samplers, which a temperature of the call would contradict.
    options |= {"n": n} if kind == "mixed" else {"n": n, "temperature": 1.5}
    details = complete(model, prompt, output, **options)
    rows = details if many else [details]
    assert len(rows) == (3 if many else 1)
    for one, group in zip(prompt if many else [prompt], rows, strict=True):
        assert isinstance(group, list) == (n is not None)
        for found in group if n else [group]:
            assert isinstance(found, Generation)
            check(found, kind, one)

    values = gw.generate(model, prompt, output, **options)
    assert values == mapped(details, lambda found: found.value)
    pieces = list(gw.stream(model, prompt, output, **options))
    texts = mapped(details, lambda found: found.text)
    assert joined(pieces, many, n) == texts

    async def awaited() -> tuple[Any, list[Any]]:
        again = asyncio.create_task(acomplete(model, prompt, output, **options))
        return await again, [piece async for piece in gw.astream(model, prompt, output, **options)]

    found, pieces = asyncio.run(awaited())
    assert mapped(found, lambda one: (one.value, one.tokens)) == mapped(details, lambda one: (one.value, one.tokens))
    assert joined(pieces, many, n) == texts


def mapped(found: Any, of: Callable[[Generation[Any]], Any]) -> Any:
    return [mapped(one, of) for one in found] if isinstance(found, list) else of(found)


def joined(pieces: list[Any], many: bool, n: int | None) -> Any:
    """The texts that pieces make, in the shape of the call; no piece is empty or half a character."""
    if not many and n is None:
        assert all(isinstance(piece, str) and piece for piece in pieces)
        return "".join(pieces)
    texts: defaultdict[tuple[int, int], str] = defaultdict(str)
    for piece in pieces:
        assert isinstance(piece, TextChunk)
        assert piece.text
        texts[piece.prompt, piece.sample] += piece.text
    groups = [[texts[p, s] for s in range(n or 1)] for p in range(3 if many else 1)]
    shaped: list[Any] = [group if n else group[0] for group in groups]
    return shaped if many else shaped[0]


def test_rows_equal_single_generations(model: Model) -> None:
    """A request with a fixed seed gives the same result in any batch, and its stream gives the same logits."""
    requests = [
        gw.GenerationRequest("the ", gw.Regex("[a-z]{1,12}"), seed=3, temperature=1.3),
        gw.GenerationRequest("a", seed=4, temperature=2.0, max_tokens=9, bad_words="e"),
        gw.GenerationRequest("the the", Pair, seed=5, sampler=gw.Sampler(1.0, mirostat=gw.sampling.Mirostat())),
        gw.GenerationRequest("END", seed=6, sampler=gw.Sampler(1.0, repetition_penalty=1.5), max_tokens=15, logprobs=0),
    ]
    alone = [complete(model, request) for request in requests]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 2, 3, 0]):
        together = complete(model, [requests[n] for n in order], batch_size=2)
        assert [one.tokens for one in together] == [alone[n].tokens for n in order]


def test_calls_that_run_at_once_share_rounds_and_not_rows(model: Model) -> None:
    async def all_at_once() -> list[Any]:
        calls = [
            gw.agenerate(model, f"the {n}", gw.Regex("[a-z]{3,9}"), temperature=1.0, seed=n, max_tokens=12)
            for n in range(12)
        ]
        return await asyncio.gather(*calls)

    alone = [
        gw.generate(model, f"the {n}", gw.Regex("[a-z]{3,9}"), temperature=1.0, seed=n, max_tokens=12)
        for n in range(12)
    ]
    assert asyncio.run(all_at_once()) == alone


def test_cancelled_call_leaves_the_batch() -> None:
    class Counting(ToyEngine):
        passes = 0

        def forward(self, rows: Any, caches: Any) -> Any:
            self.passes += 1
            return super().forward(rows, caches)

    engine = Counting(len(BYTES), seed=5, context_size=100_000)
    model = Model(engine, Tokenizer.of(VOCABULARY))

    def wrong(text: str) -> bool:
        raise KeyError("mine")

    async def some() -> tuple[str, str]:
        endless = asyncio.create_task(gw.agenerate(model, "a", min_tokens=90_000, max_tokens=90_000))
        failing = asyncio.create_task(gw.agenerate(model, "a", stopping_criteria=wrong))
        fine = asyncio.create_task(gw.agenerate(model, "a", gw.Regex("[a-z]{30}")))
        text = await fine
        with pytest.raises(KeyError, match="mine"):
            await failing
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        count = 0
        async for _ in gw.astream(model, "a", min_tokens=90_000, max_tokens=90_000):
            count += 1
            if count == 3:
                break
        return text, await gw.agenerate(model, "a", gw.Regex("[a-z]{30}"))

    first, second = asyncio.run(some())
    assert first == second
    assert engine.passes < 5000

    class Failing(ToyEngine):
        def forward(self, rows: Any, caches: Any) -> Any:
            raise gw.errors.EngineError("out of order")

    async def failing() -> list[Any]:
        broken = Model(Failing(len(BYTES)), Tokenizer.of(VOCABULARY))
        return await asyncio.gather(*[gw.agenerate(broken, "a") for _ in range(3)], return_exceptions=True)

    assert [str(error) for error in asyncio.run(failing())] == ["out of order"] * 3


def test_many_threads_on_one_model(model: Model) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(seed: int) -> str:
        return gw.generate(model, "the ", gw.Regex("[a-z]{3,9}"), temperature=1.0, seed=seed, max_tokens=12)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(12))) == [one(seed) for seed in range(12)]
