"""ExLlamaV2's own Python on a CPU: its tokenizer, sampler, normal and streaming generator, with what is ours.

What is not there: its extension, of which four functions are written here in PyTorch, and its model, which is drawn
from a seed. So this shows that the filters are called as we think and hold, not how fast anything is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.errors import EngineError, RejectedToken, Unsupported
from guideway.testing import processor_contract, tiny_model

from .opened import Anything, importable, need

pytestmark = [pytest.mark.engine("torch"), pytest.mark.filterwarnings("default")]
EOS, WIDTH = 1, 320
PATTERN = r"[a-c]{3}( and [a-c]{2,4}){0,2}"


def extension() -> ModuleType:
    """The four functions of the extension that sampling calls."""
    import torch

    def fast_fill_cpu_ones_bool(tensor: Any) -> None:
        tensor.fill_(True)

    def logit_filter_exclusive(tensor: Any, allowed: list[list[int]]) -> None:
        for row, ids in zip(tensor, allowed, strict=True):
            keep = torch.zeros_like(row)
            keep[list(ids)] = True
            row &= keep

    def sample_basic(logits: Any, *given: Any) -> list[float]:
        """Draws from the whole distribution; `given` as the sampler hands it in."""
        random, tokens, probabilities, chosen = given[7], given[8], given[9], given[12]
        flat = logits.reshape(len(tokens), -1).clone()
        if not chosen.is_meta:
            flat[~chosen] = float("-inf")
        shares = torch.softmax(flat.double(), -1).cumsum(-1)
        tokens[:, 0] = (shares < random).sum(-1).clamp(max=flat.shape[1] - 1)
        probabilities[:] = 1.0
        return []

    made = Anything("exllamav2.ext")
    made.none_tensor = torch.empty((1, 1), device="meta")
    made.exllamav2_ext = SimpleNamespace(
        fast_fill_cpu_ones_bool=fast_fill_cpu_ones_bool,
        logit_filter_exclusive=logit_filter_exclusive,
        sample_basic=sample_basic,
        apply_rep_penalty=lambda *_: None,
    )
    return made


class Model:
    """Logits that depend on the last token; `cache.current_seq_len` moves as a model moves it."""

    config = SimpleNamespace(vocab_size=WIDTH, max_seq_len=512)

    def forward(self, ids: Any, cache: Any, *, preprocess_only: bool = False, **_: Any) -> Any:
        import torch

        cache.current_seq_len += ids.shape[1]
        if preprocess_only:
            return None
        rows = [torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(int(row[-1]))) for row in ids]
        return torch.stack(rows)


@pytest.fixture(scope="module")
def v2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    wheel = need("exllamav2")
    folder: Path = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    with importable(wheel, "exllamav2", ["exllamav2_ext"], {"exllamav2.ext": extension()}):
        import exllamav2
        import exllamav2.generator

        import guideway.engines.exllamav2 as ours

        tokenizer = exllamav2.ExLlamaV2Tokenizer(exllamav2.ExLlamaV2Config(str(folder)))
        made = SimpleNamespace(generator=exllamav2.generator, ours=ours, tokenizer=tokenizer, model=Model())
        made.greedy = {"temperature": 1.0, "token_repetition_penalty": 1.0, "top_k": 0, "top_p": 0.0}
        yield made


def filter_of(v2: Any, pattern: str = PATTERN, **options: Any) -> Any:
    return v2.ours.ConstraintFilter(v2.model, v2.tokenizer, gw.Regex(pattern), **options)


def simple(v2: Any, seed: int, prompt: Any = "the crab", **options: Any) -> Any:
    """The normal generator; what it adds to the prompt."""
    cache = SimpleNamespace(current_seq_len=0, max_seq_len=512)
    made = v2.generator.ExLlamaV2BaseGenerator(v2.model, cache, v2.tokenizer)
    settings = options.pop("settings", None) or v2.generator.ExLlamaV2Sampler.Settings(**v2.greedy)
    return made.generate_simple(prompt, settings, 60, seed=seed, completion_only=True, **options)


@pytest.mark.parametrize("as_mask", [True, False])
def test_the_normal_generator(v2: Any, as_mask: bool) -> None:
    for seed in range(20):
        one = filter_of(v2, as_mask=as_mask)
        assert re.fullmatch(PATTERN, simple(v2, seed, filters=[one]))
        one.check()


@pytest.mark.parametrize("as_mask", [True, False])
def test_several_filters_meet(v2: Any, as_mask: bool) -> None:
    for seed in range(20):
        filters = [filter_of(v2, "[a-c ]{4,9}", as_mask=as_mask), filter_of(v2, "(b|ca| )+", as_mask=as_mask)]
        text = simple(v2, seed, filters=filters)
        assert re.fullmatch("[a-c ]{4,9}", text)
        assert re.fullmatch("(b|ca| )+", text)


def test_filters_of_both_sorts_meet(v2: Any) -> None:
    """A filter of ExLlamaV2's own cannot mask, so ours gives lists beside it."""
    from exllamav2.generator.filters import ExLlamaV2SelectFilter

    for seed in range(5):
        other = ExLlamaV2SelectFilter(v2.model, v2.tokenizer, ["abc", "cab", "xyz"], case_insensitive=False)
        assert simple(v2, seed, filters=[filter_of(v2, "[a-c]{3,4}"), other])[:3] in ("abc", "cab")


def test_the_end_may_be_preferred(v2: Any) -> None:
    for seed in range(10):
        assert len(simple(v2, seed, filters=[filter_of(v2, "[a-c]{3,60}", prefer_eos=True)])) in (3, 4, 5)
        lists = filter_of(v2, "[a-c]{3,60}", as_mask=False)
        assert len(simple(v2, seed, filters=[lists], filter_prefer_eos=True)) in (3, 4, 5)


def test_token_healing(v2: Any) -> None:
    """The last token of the prompt is written once more, and the constraint begins behind it."""
    for seed in range(10):
        text = simple(v2, seed, prompt="the crab a", filters=[filter_of(v2, "[a-c]{3}")], token_healing=True)
        assert re.fullmatch("[a-c]{3}", text[-3:])
    automaton = gw.compile(gw.Regex("a"), gw.Tokenizer.of(v2.tokenizer))
    one = v2.ours.ConstraintFilter(v2.model, v2.tokenizer, automaton)
    with pytest.raises(Unsupported, match="healing"):
        one.begin("x")


@pytest.mark.parametrize("as_mask", [True, False])
def test_the_streaming_generator(v2: Any, as_mask: bool) -> None:
    for seed in range(8):
        cache = SimpleNamespace(current_seq_len=0, max_seq_len=512)
        made = v2.generator.ExLlamaV2StreamingGenerator(v2.model, cache, v2.tokenizer)
        made.set_stop_conditions([EOS])
        settings = v2.generator.ExLlamaV2Sampler.Settings(**v2.greedy)
        import random

        random.seed(seed)
        made.begin_stream_ex(v2.tokenizer.encode("the crab"), settings, filters=[filter_of(v2, as_mask=as_mask)])
        text = ""
        for _ in range(80):
            found = made.stream_ex()
            text += found["chunk"]
            if found["eos"]:
                break
        assert re.fullmatch(PATTERN, text)


@pytest.mark.parametrize("background", [True, False])
def test_jobs_of_the_dynamic_generator(v2: Any, background: bool) -> None:
    """The order in which its jobs call filters, several at once, with its thread pool: see `receive_logits` there."""
    from concurrent.futures import ThreadPoolExecutor

    import torch

    sampler, settings = v2.generator.ExLlamaV2Sampler, v2.generator.ExLlamaV2Sampler.Settings(**v2.greedy)
    chance = torch.Generator().manual_seed(5)
    one = filter_of(v2)
    jobs = [SimpleNamespace(filter=one.clone(), ids=[7 + index]) for index in range(6)]
    with ThreadPoolExecutor(4) as pool:
        for job in jobs:
            job.filter.background_drop()
            job.filter.begin("")
        for _ in range(60):
            for job in jobs:
                if job.ids[-1] == EOS:
                    continue
                logits = torch.randn(1, 1, WIDTH, generator=chance)
                random = float(torch.rand(1, generator=chance))
                ids = torch.tensor([job.ids])
                token, *_ = sampler.sample(logits, settings, ids, random, v2.tokenizer, filters=[job.filter])
                job.filter.feed(token)
                job.ids.append(int(token))
                if background and job.filter.use_background_worker():
                    job.filter.background_prepare_logit_mask(pool)
    for job in jobs:
        job.filter.background_drop()
        job.filter.check()
        assert re.fullmatch(PATTERN, gw.Tokenizer.of(v2.tokenizer).decode(job.ids[1:-1]))


def test_clones_go_their_own_way(v2: Any) -> None:
    one = filter_of(v2, "a[bc]")
    one.feed(66)
    other = one.clone()
    other.feed(67)
    assert one.next()[0] == [67, 68]
    assert other.next()[0] == [EOS]
    assert other.background_result is None


def test_an_error_ends_the_text_and_is_told(v2: Any, caplog: pytest.LogCaptureFixture) -> None:
    one = filter_of(v2)
    one.feed(200)
    assert one.next() == ([EOS], {EOS})
    with pytest.raises(RejectedToken):
        one.check()
    import torch

    sampler, lost = v2.generator.ExLlamaV2Sampler, filter_of(v2)
    nothing = torch.full((1, 1, WIDTH), float("-inf"))
    given = (sampler.Settings(**v2.greedy), torch.tensor([[3]]), 0.5, v2.tokenizer)
    token, *_ = sampler.sample(nothing, *given, filters=[lost])
    assert int(token) == EOS
    with pytest.raises(EngineError, match="nothing is left"):
        lost.check()
    assert "ends early" in caplog.text


def test_the_processor_in_a_batch(v2: Any) -> None:
    """Three prompts at once, one of them free: what filters of ExLlamaV2 cannot do."""
    for seed in range(6):
        constraints = [gw.Regex("[a-c]{3}"), None, gw.Choice(["abba", "cab"])]
        processor = v2.ours.logits_processor(constraints, v2.tokenizer)
        settings = v2.ours.Settings(**v2.greedy, logits_processor=processor)
        texts = simple(v2, seed, ["the crab", "def main(", "once"], settings=settings, stop_token=EOS)
        assert re.fullmatch("[a-c]{3}", texts[0])
        assert texts[2] in ("abba", "cab")
        assert len(texts[1]) > 3
        assert processor.timings.calls > 3


def test_without_and_with_a_processor_that_is_off(v2: Any) -> None:
    """Settings of ours without a processor draw what ExLlamaV2's own do."""
    for seed in range(4):
        assert simple(v2, seed, settings=v2.ours.Settings(**v2.greedy)) == simple(v2, seed)


def test_the_processor_holds_to_its_contract(v2: Any) -> None:
    import torch

    def call(processor: Any, ids: list[list[int]], logits: Any) -> Any:
        return processor(torch.tensor(ids), torch.from_numpy(logits.copy())).numpy()

    processor_contract(v2.ours.logits_processor, call)
