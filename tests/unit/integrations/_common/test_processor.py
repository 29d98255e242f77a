"""The common base of all logits processors, without an engine."""

from __future__ import annotations

import random
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway import masks
from guideway.errors import BudgetTooSmallError, ProcessorError, ProcessorReuseError
from guideway.integrations._common import Processor, Rows
from guideway.testing import processor_contract
from guideway.tokenizers import Vocabulary

VOCABULARY = Vocabulary([b"", *(bytes([b]) for b in b"abcde"), b"ab", b""], eos_ids=[0], special_ids=[0, 7])


def run(processor: Processor, ids: list[list[int]], logits: Any) -> Any:
    with processor:
        rows, held = processor.masks(np.array(ids))
        for one, row, is_held in zip(logits, rows, held, strict=True):
            if is_held:
                masks.apply(one, row)
        return logits


def test_contract() -> None:
    processor_contract(Processor, run)
    processor_contract(Processor, run, rows=1)


class Trusting(Processor):
    """Assumes, wrongly, that the newest token of each row follows the previous content of that row."""

    def masks(self, ids: Any) -> Any:
        self.rows._settle()
        for (_, seen), row in zip(self.rows._last, ids, strict=False):
            if seen is not None and self._prompts is not None and len(row) > self._prompts.shape[1]:
                seen.ids = np.array(row[self._prompts.shape[1] : -1])
                seen.taken = min(seen.taken, len(seen.ids))
        return super().masks(ids)


class Forgiving(Processor):
    """Accepts new prompts from any caller."""

    def masks(self, ids: Any) -> Any:
        if self._prompts is not None and not np.array_equal(ids[:, : self._prompts.shape[1]], self._prompts):
            self._prompts = None
        return super().masks(ids)


@pytest.mark.parametrize("kind", [Trusting, Forgiving])
def test_the_contract_sees_what_is_wrong(kind: type[Processor]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        processor_contract(kind, run)


def legal(rows: Any) -> list[list[int]]:
    return [masks.ids(row, 8).tolist() for row in rows]


def test_rows() -> None:
    rows = Rows([gw.compile(gw.Regex("ab?c"), VOCABULARY), None])
    found, held = rows.masks([np.array([1]), np.array([5, 5]), np.array([3]), np.array([6, 3, 0, 7, 7])], [0, 1, 0, 0])
    assert held == [True, False, False, True]  # row 1 is unconstrained, and the text of row 2 is refused
    assert legal(found)[0] == [2, 3]
    assert legal(found)[3] == [0]


def test_a_thousand_steps_of_rows_that_join_and_leave() -> None:
    chance = random.Random(4)
    automata = [gw.compile(gw.Regex(one), VOCABULARY) for one in ("(ab|c|d)*e", "[a-e]{3,12}", "(a|bb)*c?")]
    rows, there = Rows(automata), list[tuple[int, list[int]]]()
    for _ in range(1000):
        chance.shuffle(there)
        del there[chance.randint(3, 12) :]
        if chance.random() < 0.3:
            there.append((chance.randrange(3), []))
        if there and chance.random() < 0.2:
            there.append((there[0][0], there[0][1][: chance.randrange(1 + len(there[0][1]))]))
        found, held = rows.masks([np.array(text, np.int64) for _, text in there], [slot for slot, _ in there])
        for (slot, text), row, is_held in zip(there, found, held, strict=True):
            matcher, expected = automata[slot].matcher(), masks.new_rows(1, 8)[0]
            for token_id in text[: text.index(0) + 1] if 0 in text else text:
                matcher.advance(token_id)
            matcher.fill_mask(expected)
            assert is_held
            assert np.array_equal(row, expected)
            text.append(chance.choice(masks.ids(row, 8).tolist()))


def test_a_refused_call_changes_nothing() -> None:
    processor = Processor([gw.Regex("a+"), gw.Regex("b+")], VOCABULARY)
    processor.masks(np.array([[5, 1], [5, 2]]))
    with pytest.raises(ProcessorReuseError, match="no prompt"):
        processor.masks(np.array([[5, 1, 1], [5, 3, 1]]))
    with pytest.raises(ProcessorReuseError, match="no prompt"):
        processor.masks(np.array([[5, 1, 1, 1], [5, 3, 1, 1]]))
    found, held = processor.masks(np.array([[5, 2, 2], [5, 1, 1]]))
    assert (legal(found), held) == ([[0, 2], [0, 1]], [True, True])


def test_ids_in_other_orders_and_types() -> None:
    for made in (
        np.asfortranarray,
        np.longlong,
        np.int32,
        lambda ids: np.array(ids, ">i8"),
        lambda ids: np.repeat(ids, 2, 1)[:, ::2],
    ):
        processor = Processor(gw.Regex("a+b"), VOCABULARY)
        texts = [[5, 4], [5, 3]]
        for token, expected in ((1, [1, 6]), (1, [1, 2, 6]), (2, [1, 2, 6]), (0, [0])):
            found, held = processor.masks(made(np.array(texts)))
            assert (legal(found), held) == ([expected] * 2, [True] * 2)
            texts = [[*text, token] for text in texts]


def test_prompts_find_their_constraint_when_rows_leave() -> None:
    processor = Processor([gw.Regex("a+"), gw.Regex("b+"), None], VOCABULARY)
    prompts = [[7, 1, 2], [4, 1, 2], [5, 5, 5]]
    found, held = processor.masks(np.array(prompts))
    assert (legal(found[:2]), held) == ([[1], [2]], [True, True, False])
    found, held = processor.masks(np.array([[*prompts[2], 1], [*prompts[1], 2]]))
    assert (legal(found)[1], held) == ([0, 2], [False, True])
    found, held = processor.masks(np.array([[*prompts[1], 2, 2]] * 5))
    assert (legal(found), held) == ([[0, 2]] * 5, [True] * 5)
    same = Processor([gw.Regex("a+"), gw.Regex("b+")], VOCABULARY)
    same.masks(np.array([[1, 1], [1, 1]]))
    with pytest.raises(ProcessorReuseError, match="several prompts begin like"):
        same.masks(np.array([[1, 1, 2]]))
    with pytest.raises(ProcessorError, match="got 2 constraints for 3 rows"):
        Processor([gw.Regex("a+"), gw.Regex("b+")], VOCABULARY).masks(np.array([[1], [1], [1]]))
    with pytest.raises(ValueError, match="empty"):
        Processor([], VOCABULARY)


def test_budgets() -> None:
    with pytest.raises(BudgetTooSmallError, match="needs 4 tokens"):
        Processor(gw.Regex("[ab]c{2,9}"), VOCABULARY, max_tokens=3)
    processor = Processor(gw.Regex("[ab]c{2,9}"), VOCABULARY, max_tokens=5)
    text = [1]
    for expected in ([1, 2], [3], [3], [0, 3], [0], [0], [0]):
        found, _ = processor.masks(np.array([text]))
        assert legal(found) == [expected]
        text.append(max(expected))


def test_two_calls_at_once_are_refused() -> None:
    processor = Processor(gw.Regex("a+"), VOCABULARY)
    inside, leave = Event(), Event()

    def hold() -> None:
        with processor:
            inside.set()
            leave.wait(10)

    thread = Thread(target=hold)
    thread.start()
    inside.wait(10)
    with pytest.raises(ProcessorReuseError, match="in use"):
        run(processor, [[1]], np.zeros((1, 8), np.float32))
    leave.set()
    thread.join()
    run(processor, [[1]], np.zeros((1, 8), np.float32))
    for wrong in ([[2, 1]], [[1, 1, 1, 1]]):
        with pytest.raises(ProcessorReuseError):
            run(processor, wrong, np.zeros((1, 8), np.float32))
    assert processor.timings.calls == 1


def test_apply_reports_remaining_tokens() -> None:
    row = masks.pack([3, 40], 64)
    logits = np.zeros(50, np.float32)
    assert masks.apply(logits, row)
    logits[3] = -np.inf
    assert masks.apply(logits, row)
    logits[40] = -np.inf
    assert not masks.apply(logits, row)
    assert not masks.apply(np.zeros(3, np.float32), row)
    assert not masks.apply(logits, masks.pack([], 64))
    assert not masks.apply(np.full(64, -np.inf, np.float16), row)


def test_forced_tokens() -> None:
    rows = Rows([gw.compile(gw.Regex("abc(d|e)+"), VOCABULARY), None])
    rows.masks([np.array([], np.int64), np.array([5])], [0, 1])
    assert VOCABULARY.bytes_of(rows.forced(0)) == b"abc"
    assert rows.forced(1) == []
    short = Rows([gw.compile(gw.Regex("(abc|c)d"), VOCABULARY)], max_tokens=4)
    short.masks([np.array([6])], [0])
    assert short.forced(0) == [3, 4]
    tight = Rows([gw.compile(gw.Regex("e(abc|c)d"), VOCABULARY)], max_tokens=5)
    tight.masks([np.array([5, 1])], [0])
    assert tight.forced(0) == []  # the forced text would end one token too late


def test_slots_join_and_leave() -> None:
    rows = Rows()
    rows.begin(7, gw.compile(gw.Regex("a+"), VOCABULARY))
    rows.begin(9, gw.compile(gw.Regex("[bc]{3}"), VOCABULARY), max_tokens=4)
    found, held = rows.masks([np.array([1]), np.array([2])], [7, 9])
    assert (legal(found), held) == ([[0, 1, 6][:2], [2, 3]], [True, True])
    rows.end(7)
    rows.begin(7, gw.compile(gw.Regex("d+"), VOCABULARY))
    found, _ = rows.masks([np.array([2, 3]), np.array([], np.int64)], [9, 7])
    assert legal(found) == [[2, 3], [4]]
    with pytest.raises(BudgetTooSmallError, match="needs 4 tokens, got max_tokens=3"):
        rows.begin(8, gw.compile(gw.Regex("[bc]{3}"), VOCABULARY), max_tokens=3)


def test_masks_begun_early_are_those_of_the_rows_asked_for() -> None:
    processor = Processor([gw.Regex("(ab|c|d)*e"), None], VOCABULARY)
    plain = Processor([gw.Regex("(ab|c|d)*e"), None], VOCABULARY)
    texts = [[7, 1], [5, 5]]
    chance = random.Random(1)
    processor.masks(np.array(texts))
    for step in range(60):
        found, _ = plain.masks(np.array(texts))
        drawn = [chance.choice(legal(found)[0]), 3]
        texts = [[*text, token_id] for text, token_id in zip(texts, drawn, strict=True)]
        if step % 3 == 2:  # a draft that is refused
            processor.ahead(np.array([[*text[:-1], 3] for text in texts]))
        elif step % 3:
            processor.ahead(np.array(texts))
        found, held = processor.masks(np.array(texts))
        expected, also = plain.masks(np.array(texts))
        assert held == also
        assert legal(found[:1]) == legal(expected[:1])
    timings = processor.timings
    assert timings.calls == 61
    assert 0 <= timings.overlap <= timings.mask
    with pytest.raises(ProcessorReuseError, match="no prompt"):
        processor.ahead(np.array([[9, 9, 9], [9, 9, 9]]))
    found, _ = processor.masks(np.array(texts))
    assert legal(found[:1]) == legal(expected[:1])


def test_timings_say_where_the_loop_s_time_went() -> None:
    processor = Processor(gw.Regex("a+"), VOCABULARY)
    for text in ([1], [1, 1], [1, 1, 1]):
        with processor:
            processor.masks(np.array([text]))
        sleep(0.01)
        processor.ahead(np.array([[*text, 1]]))
        sleep(0.02)
    timings = processor.timings
    assert timings.calls == 3
    assert timings.sample >= 0.03
    assert timings.model >= 0.04
    assert 0 <= timings.overlap <= timings.mask < 0.02


def test_the_time_of_the_model_is_measured_if_the_kernel_call_finds_other_rows() -> None:
    """Rows that moved, as in beam search, are masked by the slower path."""
    processor = Processor(gw.Regex("[ab]+"), VOCABULARY)
    run(processor, [[1], [1]], np.zeros((2, 8), np.float32))
    logits = np.zeros((2, 8), np.float32)
    sleep(0.02)
    assert processor.masked(np.array([[1, 1], [1, 2]]), logits, logits) == []
    sleep(0.02)
    moved = np.array([[1, 2, 1], [1, 2, 2]])
    assert processor.masked(moved, logits, logits) is None
    run(processor, moved.tolist(), logits)
    timings = processor.timings
    assert timings.calls == 3
    assert timings.model >= 0.04


def test_a_list_of_constraints_needs_one_per_prompt() -> None:
    """Rows of a prompt that `generate` repeats are equal; other rows are other prompts."""
    first, second = gw.Regex("a"), gw.Regex("b")
    with pytest.raises(ProcessorError, match="2 constraints were given for 4 rows, and rows 0 to 1 are different"):
        run(Processor([first, second], VOCABULARY), [[1], [2], [3], [4]], np.zeros((4, 8), np.float32))
    with pytest.raises(ProcessorError, match="rows 2 to 3 are different prompts"):
        run(Processor([first, second], VOCABULARY), [[1], [1], [3], [4]], np.zeros((4, 8), np.float32))
    with pytest.raises(ProcessorError, match="got 2 constraints for 3 rows"):
        run(Processor([first, second], VOCABULARY), [[1], [1], [3]], np.zeros((3, 8), np.float32))
    found = run(Processor([first, second], VOCABULARY), [[1], [1], [3], [3]], np.zeros((4, 8), np.float32))
    assert [np.flatnonzero(np.isfinite(row)).tolist() for row in found] == [[1], [1], [2], [2]]
