"""ExLlamaV3's own Python on a CPU: its tokenizer, filters' base with its journal, and how jobs put masks together."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, InvalidTextError, RejectedTokenError
from guideway.masks import ids
from guideway.testing import tiny_model

from .opened import Anything, importable, need

pytestmark = [pytest.mark.engine("torch"), pytest.mark.filterwarnings("default")]
EOS, WIDTH, A, B, C, AB = 1, 320, 66, 67, 68, 271
ABSENT = ["marisa_trie", "formatron", "kbnf", "flash_attn", "xformers", "triton"]


@pytest.fixture(scope="module")
def v3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    wheel = need("exllamav3")
    folder: Path = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    extension = Anything("exllamav3.ext")
    extension.exllamav3_ext = Anything("exllamav3_ext")
    with importable(wheel, "exllamav3", ABSENT, {"exllamav3.ext": extension}):
        import exllamav3

        import guideway.integrations.exllamav3 as ours

        tokenizer = exllamav3.Tokenizer.from_config(exllamav3.Config.from_directory(str(folder)))
        yield SimpleNamespace(ours=ours, tokenizer=tokenizer, job=exllamav3.Job, filter=exllamav3.Filter)


def filter_of(v3: Any, pattern: str, **options: Any) -> Any:
    return v3.ours.ConstraintFilter(v3.tokenizer, gw.Regex(pattern), **options)


def legal(one: Any) -> list[int]:
    row = one.get_next_logit_mask().numpy().view(np.uint32)[0]
    return ids(row, 32 * len(row)).tolist()


class Job:
    """The attributes of a job that ExLlamaV3's `prepare_logit_mask` reads."""

    def __init__(self, v3: Any, filters: list[Any], pool: ThreadPoolExecutor) -> None:
        import torch

        self._prepare = v3.job.prepare_logit_mask
        self.filters, self.pool = filters, pool
        self.prefix_token, self.new_tokens, self.min_new_tokens = None, 0, 0
        self.logits_device, self.device_logit_mask = "cpu", None
        self.checkpoint, self.stop_tokens_list, self.banned_tokens = None, [EOS], []
        self.filter_futures: list[Any] = []
        self.logit_masks: list[Any] = []
        self.bits = torch.zeros((1, WIDTH // 32), dtype=torch.int32)
        self.generator = SimpleNamespace(padded_vocab_size=WIDTH)
        for one in filters:
            one.attach(self)

    def get_pinned_logit_bitmask(self) -> Any:
        return self.bits

    def mask(self) -> list[int]:
        for one in self.filters:
            if one.is_active and one.use_background_worker():
                self.filter_futures.append(self.pool.submit(one.get_next_logit_mask))
        self.device_logit_mask = None
        self._prepare(self)
        if self.device_logit_mask is None:
            return list(range(WIDTH))
        return [int(i) for i in ids(self.device_logit_mask.numpy().view(np.uint32)[0], WIDTH)]

    def run(self, chance: random.Random, most: int = 60) -> tuple[list[int], bool]:
        """Samples legal tokens uniformly; returns them, and whether a filter ended the text."""
        tokens: list[int] = []
        while len(tokens) < most:
            tokens.append(chance.choice(self.mask()))
            ended = [one.feed(tokens[-1]) for one in self.filters]
            if any(ended) or tokens[-1] == EOS:
                return tokens, any(ended)
        return tokens, False


def test_jobs_are_held(v3: Any) -> None:
    table = gw.Tokenizer.of(v3.tokenizer)
    with ThreadPoolExecutor(2) as pool:
        for seed in range(30):
            one = filter_of(v3, "[a-c]{3}( [a-c]{2,4}){0,2}", eos_after_completed=True)
            tokens, _ = Job(v3, [one], pool).run(random.Random(seed))
            assert re.fullmatch("[a-c]{3}( [a-c]{2,4}){0,2}", table.decode([i for i in tokens if i != EOS]))
            one.check()


def test_several_filters_meet(v3: Any) -> None:
    table = gw.Tokenizer.of(v3.tokenizer)
    with ThreadPoolExecutor(2) as pool:
        for seed in range(20):
            filters = [filter_of(v3, "[a-c ]{4,9}!"), filter_of(v3, "(b|ca| )+!")]
            tokens, _ = Job(v3, filters, pool).run(random.Random(seed), most=4)
            assert re.match("(b|ca?| )+", table.decode(tokens))


def test_completed_filters_end_the_job_or_let_it_go_on(v3: Any) -> None:
    ending, going = filter_of(v3, "ab", eos_after_completed=True), filter_of(v3, "ab")
    for one, ends in ((ending, True), (going, False)):
        assert not one.feed(A)
        assert one.feed(B) == ends
        assert one.is_completed()
        assert not one.is_active


def test_a_trigger_begins_the_constraint_each_time(v3: Any) -> None:
    one = filter_of(v3, "ab", trigger_token=C)
    for _ in range(2):
        assert not one.is_active
        one.feed(A)
        one.feed(C)
        assert one.is_active
        assert legal(one) == [A, AB]
        one.feed(A)
        one.feed(B)
    assert not one.is_active


def test_a_prefix_is_what_the_text_begins_with(v3: Any) -> None:
    one = filter_of(v3, "crab[ab]", prefix_str="crab")
    assert legal(one) == [A, B]
    one.accept_token(A)
    one.reset()
    assert legal(one) == [A, B]
    with pytest.raises(InvalidTextError, match="begins with 'x'"):
        filter_of(v3, "ab", prefix_str="x")


def test_rewind_restores_the_filter(v3: Any) -> None:
    """ExLlamaV3's journal over random walks and rewinds, triggers in between, against filters that walked straight."""
    chance = random.Random(7)
    for _ in range(60):
        one = filter_of(v3, "(a|bc)*c", trigger_token=chance.choice([None, 300]))
        walked: list[int] = []
        for _ in range(20):
            if walked and chance.random() < 0.3:
                count = chance.randint(1, len(walked))
                one.rewind(count)
                del walked[len(walked) - count :]
            else:
                walked.append(chance.choice(legal(one)) if one.is_active else chance.choice([A, 300]))
                one.feed(walked[-1])
        straight = filter_of(v3, "(a|bc)*c", trigger_token=one.trigger_token)
        for token in walked:
            straight.feed(token)
        assert (one.is_active, one.is_completed()) == (straight.is_active, straight.is_completed())
        if one.is_active:
            assert legal(one) == legal(straight)


def test_error_ends_the_text_and_is_reported(v3: Any) -> None:
    one = filter_of(v3, "ab", eos_after_completed=True)
    assert not one.feed(B)
    assert legal(one) == [EOS]
    with pytest.raises(RejectedTokenError):
        one.check()
    assert one.feed(EOS)
    one.rewind(2)
    assert legal(one) == [A, AB]
    one.check()


def test_a_budget_completes_the_text(v3: Any) -> None:
    one = filter_of(v3, "[a-c]{2,60}", max_tokens=4)
    for _ in range(3):
        one.accept_token(next(token for token in legal(one) if token != EOS))
    assert legal(one) == [EOS]
    behind = filter_of(v3, "[a-c]{2,60}", prefix_str="abc", max_tokens=2)
    behind.accept_token(A)
    assert legal(behind) == [EOS]
    with pytest.raises(BudgetTooSmallError, match="max_tokens is 2"):
        filter_of(v3, "[a-c]{40}", max_tokens=2)
