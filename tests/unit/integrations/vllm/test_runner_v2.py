"""The class for vLLM's V2 runner, with vLLM's context and base class and simulated runner state."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.testing import tiny_model
from guideway.tokenizers import Tokenizer
from tests.helpers.vllm import ENVIRONMENT

pytestmark = [pytest.mark.engine("vllm"), pytest.mark.filterwarnings("default")]
EOS, WIDTH, LONGEST, SLOTS = 1, 320, 200, 6
PATTERN = "[a-c]{3}( [a-c]{2,4}){0,4}"


class Runner:
    """The runner's state as `LogitsProcRequestState` shows it, and steps as the V2 runner makes them."""

    def __init__(self, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        from guideway.integrations.vllm.processor import LogitsProcessor

        self.torch = torch
        self.ids = torch.zeros((SLOTS, LONGEST), dtype=torch.int32)
        self.prompts = np.zeros(SLOTS, np.int32)
        gpu, host = SimpleNamespace(gpu=self.ids), SimpleNamespace(np=self.prompts)
        states = SimpleNamespace(all_token_ids=gpu, prompt_len=host)
        monkeypatch.setattr("guideway.integrations.vllm.runner_v2.tokenizer_of_engine", lambda config: tokenizer)
        self.processor = LogitsProcessor(None, states)
        self.matchers: dict[int, Any] = {}
        self.lengths: dict[int, int] = {}
        self.automaton = gw.compile(gw.Regex(PATTERN), tokenizer)

    def add(self, slot: int, prompt: list[int], *, constrained: bool, output: list[int] | None = None) -> None:
        """Adds a new request, or an interrupted one that continues after its output."""
        from vllm import SamplingParams

        tokens = [*prompt, *(output or [])]
        self.ids[slot, : len(tokens)] = self.torch.tensor(tokens, dtype=self.torch.int32)
        self.prompts[slot], self.lengths[slot] = len(prompt), len(tokens)
        extra = {"guideway_regex": PATTERN} if constrained else None
        assert self.processor.add_request(slot, SamplingParams(extra_args=extra)) == constrained
        self.matchers[slot] = self.automaton.matcher() if constrained else None
        for token in output or []:
            self.matchers[slot].advance(token)

    def step(self, slots: list[int], drafts: dict[int, list[int]], draw: np.random.Generator) -> None:
        """Runs one step over the slots, some with drafts: checks the rows, and accepts tokens as a sampler does."""
        from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext

        rows = [(slot, place) for slot in slots for place in range(1 + len(drafts.get(slot, [])))]
        inputs = [int(self.ids[s, self.lengths[s] - 1]) if p == 0 else drafts[s][p - 1] for s, p in rows]
        whole = self.torch.tensor
        context = LogitsContext(
            expanded_idx_mapping=whole([slot for slot, _ in rows]),
            idx_mapping=whole(slots),
            idx_mapping_np=np.array(slots),
            expanded_local_pos=whole([place for _, place in rows]),
            input_ids=whole(inputs),
            pos=whole([self.lengths[slot] - 1 + place for slot, place in rows]),
            seq_lens_upper_bound_np=np.array([self.lengths[slot] for slot in slots]),
        )
        logits = self.torch.from_numpy(draw.standard_normal((len(rows), WIDTH)).astype(np.float32))
        found = self.processor.apply(logits.clone(), context).numpy()
        for slot in slots:
            mine = [index for index, row in enumerate(rows) if row[0] == slot]
            self._take(slot, found[mine], logits.numpy()[mine], drafts.get(slot, []))

    def _take(self, slot: int, masked: Any, free: Any, draft: list[int]) -> None:
        matcher = self.matchers[slot]
        for place, (row, before) in enumerate(zip(masked, free, strict=True)):
            if matcher is None:
                assert np.array_equal(row, before)
            else:
                assert np.flatnonzero(np.isfinite(row)).tolist() == _legal(matcher)
            token = int(row.argmax())
            self.ids[slot, self.lengths[slot]] = token
            self.lengths[slot] += 1
            if matcher is not None and not matcher.is_finished:
                matcher.advance(token)
            if place >= len(draft) or draft[place] != token:
                return


def _legal(matcher: Any) -> list[int]:
    from guideway.masks import ids, new_rows

    row = new_rows(1, WIDTH)[0]
    matcher.fill_mask(row[: matcher.words])
    return [int(one) for one in ids(row, WIDTH)]


@pytest.fixture
def runner(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Runner:
    os.environ.update(ENVIRONMENT)
    folder: Path = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    return Runner(Tokenizer.of(folder), monkeypatch)


def test_rows_join_leave_and_are_permuted(runner: Runner) -> None:
    draw = np.random.default_rng(3)
    for slot in range(SLOTS):
        runner.add(slot, [5] * (1 + slot), constrained=slot % 3 != 2)
    for step in range(60):
        slots = draw.permutation(SLOTS)[: draw.integers(1, SLOTS + 1)].tolist()
        runner.step(slots, {}, draw)
        if step % 7 == 6:
            runner.add(step % SLOTS, [7, 8], constrained=step % 2 == 0)


def test_drafts_that_are_legal_or_not_taken_or_refused(runner: Runner) -> None:
    draw = np.random.default_rng(4)
    for slot in range(SLOTS):
        runner.add(slot, [5, 6], constrained=slot != 2)
    for _ in range(60):
        drafts: dict[int, list[int]] = {}
        for slot in range(SLOTS):
            ahead = None if runner.matchers[slot] is None else runner.matchers[slot].fork()
            drafts[slot] = []
            for _ in range(int(draw.integers(0, 4))):
                legal = list(range(WIDTH)) if ahead is None or ahead.is_finished else _legal(ahead)
                token = int(draw.choice(legal)) if draw.random() < 0.8 else int(draw.integers(2, WIDTH))
                drafts[slot].append(token)
                if token not in legal or token == EOS:
                    break
                if ahead is not None:
                    ahead.advance(token)
        runner.step(list(range(SLOTS)), drafts, draw)
        for slot in range(SLOTS):
            if runner.lengths[slot] > 150 or (runner.matchers[slot] is not None and runner.matchers[slot].is_finished):
                runner.add(slot, [5, 6], constrained=slot != 2)


def test_interrupted_request_continues(runner: Runner) -> None:
    draw = np.random.default_rng(5)
    runner.add(0, [5, 6, 7], constrained=True)
    for _ in range(3):
        runner.step([0], {}, draw)
    output = runner.ids[0, 3 : runner.lengths[0]].tolist()
    runner.add(4, [5, 6, 7], constrained=True, output=output)
    for _ in range(5):
        runner.step([4], {}, draw)


def test_runner_loads_the_class(runner: Runner) -> None:
    from vllm.v1.sample.logits_processor import LogitsProcessor as V1
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as V2
    from vllm.v1.worker.gpu.sample.logits_processor.loader import _load_v2_logitsprocs_plugins

    ours = [one for one in _load_v2_logitsprocs_plugins() if one.__module__.startswith("guideway")]
    assert len(ours) == 1
    assert issubclass(ours[0], V1)
    assert issubclass(ours[0], V2)
