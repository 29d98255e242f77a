"""ExLlamaV2's Python code on a CPU, with our filters: tokenizer, sampler, and normal, streaming and dynamic generator.

Two parts are replaced: PyTorch functions replace seven functions of the extension, and random logits replace the model.
The tests show that ExLlamaV2 calls the filters correctly and that constraints are enforced; they do not measure speed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.errors import NoAllowedTokenError, RejectedTokenError, UnsupportedError
from guideway.testing import processor_contract, tiny_model

from ..packaging.repository import PACKAGE
from .opened import Anything, importable, need

pytestmark = [pytest.mark.engine("torch"), pytest.mark.filterwarnings("default")]
EOS, WIDTH = 1, 320
PATTERN = r"[a-c]{3}( and [a-c]{2,4}){0,2}"


def extension() -> ModuleType:
    """The functions of the extension that sampling and the dynamic generator's tables of pages call."""
    import torch

    def count_match(one: Any, other: Any, most: int) -> int:
        length = min(most, one.shape[1], other.shape[1])
        same = (one[0, :length] == other[0, :length]).int()
        return int(same.cumprod(0).sum())

    def partial_strings_match(text: Any, offsets: Any, strings: Any) -> int:
        assert len(offsets) == 0, "stop strings are not written here, only stop tokens"
        return -1

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
        count_match=count_match,
        partial_strings_match=partial_strings_match,
        cache_rotate=lambda *_: None,
    )
    return made


class Model:
    """Logits that depend on the last token; `cache.current_seq_len` moves as a model moves it."""

    arch = SimpleNamespace(lm=SimpleNamespace(mrope=False))
    config = SimpleNamespace(vocab_size=WIDTH, max_seq_len=512, max_input_len=512, max_batch_size=4, arch=arch)
    config.no_flash_attn = False

    def forward(self, ids: Any, cache: Any, *, preprocess_only: bool = False, **_: Any) -> Any:
        cache.current_seq_len += ids.shape[1]
        return None if preprocess_only else self._logits(ids[:, -1:])

    def forward_chunk(self, *, input_ids: Any, preprocess_only: bool = False, **_: Any) -> Any:
        return None if preprocess_only else {"logits": self._logits(input_ids)}

    def _logits(self, ids: Any) -> Any:
        """[rows, tokens, vocabulary]."""
        import torch

        rows = [
            [torch.randn(WIDTH, generator=torch.Generator().manual_seed(int(token))) for token in row] for row in ids
        ]
        return torch.stack([torch.stack(row) for row in rows])


@pytest.fixture(scope="module")
def v2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    wheel = need("exllamav2")
    folder: Path = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    with importable(wheel, "exllamav2", ["exllamav2_ext"], {"exllamav2.ext": extension()}):
        import exllamav2
        import exllamav2.generator

        import guideway.integrations.exllamav2 as ours

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
    """A filter of ExLlamaV2 cannot mask, so guideway's filter gives lists if both are used."""
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
    """The model writes the last token of the prompt again, and the constraint begins after it."""
    for seed in range(10):
        text = simple(v2, seed, prompt="the crab a", filters=[filter_of(v2, "[a-c]{3}")], token_healing=True)
        assert re.fullmatch("[a-c]{3}", text[-3:])
    automaton = gw.compile(gw.Regex("a"), gw.Tokenizer.of(v2.tokenizer))
    one = v2.ours.ConstraintFilter(v2.model, v2.tokenizer, automaton)
    with pytest.raises(UnsupportedError, match="healing"):
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


class Pages:
    """A cache whose pages the dynamic generator counts, and whose prefixes it copies."""

    def __init__(self) -> None:
        import torch

        self.max_seq_len, self.batch_size, self.current_seq_len = 16 * 256, 1, 0
        self.tensors = [torch.zeros((1, 16 * 256, 1, 1))]

    def all_tensors(self) -> list[Any]:
        return self.tensors

    def copy_states(self, *_: Any) -> None:
        """There is nothing in it."""


def dynamic(v2: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    monkeypatch.setattr("exllamav2.generator.dynamic.assert_paged_attn", lambda: None)
    return v2.generator.ExLlamaV2DynamicGenerator(v2.model, Pages(), v2.tokenizer, max_batch_size=8, **options)


def generated(v2: Any, made: Any, prompts: Any, filters: Any, **options: Any) -> Any:
    options = {"gen_settings": v2.generator.ExLlamaV2Sampler.Settings(**v2.greedy), **options}
    ends = {"stop_conditions": [EOS], "completion_only": True}
    return made.generate(prompts, 60, filters=filters, **ends, **options)


@pytest.mark.parametrize("as_mask", [True, False])
@pytest.mark.parametrize("how", [{}, {"filter_background_eval": False}, {"max_sampling_threads": 1}])
def test_the_dynamic_generator(v2: Any, monkeypatch: pytest.MonkeyPatch, how: Any, as_mask: bool) -> None:
    """Six concurrent jobs, two of them unconstrained, with the threads that sample and that compute masks ahead."""
    made = dynamic(v2, monkeypatch, **how)
    for seed in range(4):
        filters: list[Any] = [None if i % 3 == 2 else [filter_of(v2, as_mask=as_mask)] for i in range(6)]
        texts = generated(v2, made, [f"the crab {i}" for i in range(6)], filters, seed=seed)
        for text, given in zip(texts, filters, strict=True):
            if given is not None:
                given[0].check()
                assert re.fullmatch(PATTERN, text)


def test_jobs_come_and_go(v2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that are enqueued while others run; one is cancelled, and the filter of another one fails."""
    made, job = dynamic(v2, monkeypatch), v2.generator.ExLlamaV2DynamicJob
    settings = v2.generator.ExLlamaV2Sampler.Settings(**v2.greedy)

    def enqueue(index: int, one: Any) -> Any:
        given = {"gen_settings": settings, "stop_conditions": [EOS], "seed": index, "identifier": index}
        found = job(v2.tokenizer.encode(f"the crab {index}"), 60, filters=[one], **given)
        made.enqueue(found)
        return found

    filters = {index: filter_of(v2, "[a-c]{60}" if index in (1, 2) else PATTERN) for index in range(9)}
    jobs = [enqueue(index, filters[index]) for index in range(3)]
    texts: dict[int, str] = {}
    steps = 0
    while made.num_remaining_jobs():
        for found in made.iterate():
            if found["eos"]:
                texts[found["identifier"]] = found["full_completion"]
        steps += 1
        if steps == 4:
            made.cancel(jobs[1])
            filters[2].feed(200)  # what is not legal
            jobs += [enqueue(index, filters[index]) for index in range(3, 9)]
    assert sorted(texts) == [0, *range(2, 9)]
    assert re.fullmatch("[a-c]{1,59}", texts.pop(2))
    assert isinstance(filters[2].error, RejectedTokenError)
    for index, text in texts.items():
        filters[index].check()
        assert re.fullmatch(PATTERN, text)


@pytest.mark.parametrize("as_mask", [True, False])
def test_drafts_of_the_dynamic_generator(v2: Any, monkeypatch: pytest.MonkeyPatch, as_mask: bool) -> None:
    """Speculation by n-grams: tokens of drafts are fed when they are drawn, and more than one in a step."""
    made = dynamic(v2, monkeypatch, use_ngram_draft=True, num_draft_tokens=3)
    one = filter_of(v2, "(abc){12}", as_mask=as_mask)
    settings = v2.generator.ExLlamaV2Sampler.Settings(**v2.greedy)
    given = {"gen_settings": settings, "stop_conditions": [EOS], "filters": [one]}
    made.enqueue(v2.generator.ExLlamaV2DynamicJob(v2.tokenizer.encode("abcabcabcabcabcabc"), 60, **given))
    last: Any = None
    while made.num_remaining_jobs():
        last = made.iterate()[-1]
    one.check()
    assert last["full_completion"] == "abc" * 12
    assert last["accepted_draft_tokens"] > 3


def test_jobs_with_several_filters_healing_and_early_ends(v2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = dynamic(v2, monkeypatch)
    for seed in range(4):
        both = [[filter_of(v2, "[a-c ]{4,9}"), filter_of(v2, "(b|ca| )+")] for _ in range(4)]
        for text in generated(v2, made, ["the crab"] * 4, both, seed=seed):
            assert re.fullmatch("[a-c ]{4,9}", text)
            assert re.fullmatch("(b|ca| )+", text)
        ends = {"seed": seed, "filter_prefer_eos": True}
        lists = [[filter_of(v2, "[a-c]{3,60}", as_mask=False)] for _ in range(4)]
        assert all(len(text) in (3, 4, 5) for text in generated(v2, made, ["the crab"] * 4, lists, **ends))
        healed = generated(v2, made, ["the crab a"], [[filter_of(v2, "[a-c]{3}")]], seed=seed, token_healing=True)
        assert re.fullmatch("[a-c]{3}", healed[0][-3:])


def test_the_processor_in_jobs(v2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job has separate settings, and these contain a processor or none."""
    made = dynamic(v2, monkeypatch)
    for seed in range(4):
        held = [v2.ours.logits_processor(gw.Regex(PATTERN), v2.tokenizer) if i % 2 else None for i in range(6)]
        settings = [v2.ours.Settings(**v2.greedy, logits_processor=one) for one in held]
        texts = generated(v2, made, [f"once {i}" for i in range(6)], None, gen_settings=settings, seed=seed)
        assert all(re.fullmatch(PATTERN, text) for text in texts[1::2])


@pytest.mark.parametrize("route", ["filter", "processor"])
def test_two_prompts_guide_one_text(v2: Any, monkeypatch: pytest.MonkeyPatch, route: str) -> None:
    """Classifier-free guidance: two rows give one, from which one token is sampled. The sampler's state is kept."""
    made = dynamic(v2, monkeypatch)
    for seed in range(4):
        filters = [[filter_of(v2)]] if route == "filter" else None
        held = v2.ours.logits_processor(gw.Regex(PATTERN), v2.tokenizer) if route == "processor" else None
        settings = v2.ours.Settings(**v2.greedy, logits_processor=held, cfg_scale=1.5, dry_multiplier=0.5)
        (text,) = generated(v2, made, [("the crab", "once")], filters, gen_settings=settings, seed=seed)
        assert re.fullmatch(PATTERN, text)
        assert settings.cfg_scale == 1.5
        assert settings.ngram_trie is not None


@pytest.mark.parametrize("route", ["filter", "processor"])
def test_a_cache_for_each_sequence(v2: Any, route: str) -> None:
    """A custom loop over a list of caches: each sequence has a separate constraint, and one is free."""
    import torch

    chance = torch.Generator().manual_seed(4)
    patterns: list[str | None] = ["[a-c]{3,6}", None, "(ab){2,5}!", "[0-9]{4}"]
    caches = [SimpleNamespace(current_seq_len=0, max_seq_len=512) for _ in patterns]
    filters = [[filter_of(v2, one)] if one and route == "filter" else [] for one in patterns]
    settings = [
        v2.ours.Settings(
            **v2.greedy,
            logits_processor=v2.ours.logits_processor(gw.Regex(one), v2.tokenizer)
            if one and route == "processor"
            else None,
        )
        for one in patterns
    ]
    texts = [v2.tokenizer.encode("the crab") for _ in patterns]
    starts = [text.shape[1] for text in texts]
    for text, cache in zip(texts, caches, strict=True):
        v2.model.forward(text[:, :-1], cache, preprocess_only=True)
    for _ in range(20):
        for index, cache in enumerate(caches):
            if int(texts[index][0, -1]) == EOS and texts[index].shape[1] > starts[index]:
                continue
            logits = v2.model.forward(texts[index][:, -1:], cache)
            random = float(torch.rand(1, generator=chance))
            given = settings[index], texts[index], random, v2.tokenizer
            token, *_ = v2.generator.ExLlamaV2Sampler.sample(logits, *given, filters=filters[index])
            for one in filters[index]:
                one.feed(token)
            texts[index] = torch.cat([texts[index], token], dim=1)
    table = gw.Tokenizer.of(v2.tokenizer)
    for text, start, pattern in zip(texts, starts, patterns, strict=True):
        if pattern:
            assert re.fullmatch(pattern, table.decode(text[0, start:-1].tolist()))


def test_clones_go_their_own_way(v2: Any) -> None:
    one = filter_of(v2, "a[bc]")
    one.feed(66)
    other = one.clone()
    other.feed(67)
    assert one.next()[0] == [67, 68]
    assert other.next()[0] == [EOS]
    assert other.background_result is None


def test_error_ends_the_text_and_is_reported(v2: Any, caplog: pytest.LogCaptureFixture) -> None:
    one = filter_of(v2)
    one.feed(200)
    assert one.next() == ([EOS], {EOS})
    with pytest.raises(RejectedTokenError):
        one.check()
    import torch

    sampler, lost = v2.generator.ExLlamaV2Sampler, filter_of(v2)
    nothing = torch.full((1, 1, WIDTH), float("-inf"))
    given = (sampler.Settings(**v2.greedy), torch.tensor([[3]]), 0.5, v2.tokenizer)
    token, *_ = sampler.sample(nothing, *given, filters=[lost])
    assert int(token) == EOS
    with pytest.raises(NoAllowedTokenError, match="no token is left"):
        lost.check()
    assert "ends early" in caplog.text


def test_the_processor_in_a_batch(v2: Any) -> None:
    """Three concurrent prompts, one of them unconstrained, which filters of ExLlamaV2 do not support."""
    for seed in range(6):
        constraints = [gw.Regex("[a-c]{3}"), None, gw.Choice(["abba", "cab"])]
        processor = v2.ours.logits_processor(constraints, v2.tokenizer)
        settings = v2.ours.Settings(**v2.greedy, logits_processor=processor)
        texts = simple(v2, seed, ["the crab", "def main(", "once"], settings=settings, stop_token=EOS)
        assert re.fullmatch("[a-c]{3}", texts[0])
        assert texts[2] in ("abba", "cab")
        assert len(texts[1]) > 3
        assert processor.timings.calls > 3


def test_disabled_processor_changes_nothing(v2: Any) -> None:
    """Settings of ours without a processor draw what ExLlamaV2's own do."""
    for seed in range(4):
        assert simple(v2, seed, settings=v2.ours.Settings(**v2.greedy)) == simple(v2, seed)


def test_the_processor_holds_to_its_contract(v2: Any) -> None:
    import torch

    def call(processor: Any, ids: list[list[int]], logits: Any) -> Any:
        return processor(torch.tensor(ids), torch.from_numpy(logits.copy())).numpy()

    processor_contract(v2.ours.logits_processor, call)


def test_the_benchmark_runs(v2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs every way of the GPU benchmark for a few tokens, to check that ExLlamaV2 accepts its calls."""
    monkeypatch.syspath_prepend(str(PACKAGE.parents[1] / "benchmarks"))
    monkeypatch.setattr("exllamav2.generator.dynamic.assert_paged_attn", lambda: None)
    script = importlib.import_module("bench_exllamav2")
    bench = script.Bench.__new__(script.Bench)
    bench.tokens, bench.library, bench.model, bench.tokenizer = 4, v2.generator, v2.model, v2.tokenizer
    bench.cache, bench.wide, bench.narrow = Pages(), Pages(), [Pages() for _ in script.PROMPTS]
    bench.set_ways()
    assert len(bench.ways) == 5
    for way in bench.ways:
        for kind in ["without", "off", "processor"] + ([] if "batch" in way else ["filter"]):
            assert bench.speed(way, kind) > 0, (way, kind)


def test_a_budget_completes_the_text(v2: Any) -> None:
    one = filter_of(v2, "[a-c]{2,60}", max_tokens=4)
    one.feed(66)
    one.feed(67)
    assert EOS in one.next()[0]
    other = one.clone()
    other.feed(68)
    assert other.next()[0] == [EOS]
    with pytest.raises(gw.errors.BudgetTooSmallError, match="max_tokens is 2"):
        filter_of(v2, "[a-c]{40}", max_tokens=2)
