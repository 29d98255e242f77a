"""`Follower`, the base of backends and filters: it does not raise during a step, and supports rollback."""

from __future__ import annotations

import logging
import random

import numpy as np
import pytest

import guideway as gw
from guideway.compiler import CompileLimits
from guideway.errors import BudgetTooSmallError, InvalidConstraintError, LimitExceededError
from guideway.integrations._common import follower as following
from guideway.integrations._common.follower import Follower, fill
from guideway.integrations._common.requests import token_budget
from guideway.masks import ids, new_rows

A, B, STOP, EOS = 0, 1, 2, 3
TABLE = gw.Vocabulary([b"a", b"b", b"!", b""], eos_ids=[EOS], special_ids=[EOS])


class Broken:
    """A matcher whose next mask fails, as if it had reached a limit."""

    words, position, is_finished, is_accepting = 1, 0, False, False

    def fill_mask(self, row: object) -> None:
        raise LimitExceededError("too much to remember")


def follower(pattern: str = "(ab)+", **options: object) -> Follower:
    return Follower(gw.compile(gw.Regex(pattern), TABLE), TABLE.eos_ids, **options)  # type: ignore[arg-type]  # test


def legal(one: Follower, width: int = 32) -> list[int]:
    row = new_rows(1, width)[0]
    one.fill(row)
    return ids(row, 32 * len(row)).tolist()


def test_tokens_are_taken_up_to_the_end() -> None:
    one = follower()
    assert one.advance([A, B, EOS, A, A])
    assert (one.is_finished, one.position, one.error) == (True, 3, None)
    assert legal(one) == [EOS]


def test_an_illegal_token_is_an_error_that_stays(caplog: pytest.LogCaptureFixture) -> None:
    one = follower(name="request 7")
    with caplog.at_level(logging.ERROR, "guideway"):
        assert not one.advance([A, A, B])
    assert one.position == 1
    assert "request 7" in caplog.text
    assert "token 0 is not legal" in caplog.text
    assert legal(one) == [EOS]
    assert not one.advance([B])
    assert one.validate([B]) == []


def test_rollback_gives_back_what_went_wrong_there() -> None:
    one = follower()
    one.advance([A, B, A])
    assert not one.advance([A])
    one.rollback(1)
    assert one.error is None
    assert legal(one) == [A, EOS]
    one.rollback(2)
    assert legal(one) == [A]
    with pytest.raises(ValueError, match="0"):
        one.rollback(1)


def test_tokens_that_stop_are_legal_where_the_text_may_end() -> None:
    one = follower(stop_token_ids=[STOP, EOS])
    assert one.stop_token_ids == (STOP,)
    assert legal(one) == [A]
    one.advance([A, B])
    assert legal(one) == [A, STOP, EOS]
    assert one.validate([A, B, STOP, A]) == [A, B, STOP]
    assert one.validate([A, STOP]) == [A]
    assert one.advance([STOP])
    assert one.is_finished
    assert one.position == 3
    one.rollback(1)
    assert not one.is_finished
    assert one.advance([A, B, EOS])


def test_a_limit_of_the_constraint_ends_the_text() -> None:
    """Compiling visits few states; the text visits more of the 2**14 than the limit allows."""
    automaton = gw.compile(gw.Regex("(a|b)*a(a|b){14}"), TABLE, cache=False, limits=CompileLimits(max_states=40))
    one, rng = Follower(automaton, TABLE.eos_ids), random.Random(0)
    for _ in range(300):
        if not one.advance([rng.choice([A, B])]):
            break
    assert isinstance(one.error, LimitExceededError)
    assert one.position < 100
    assert legal(one) == [EOS]


def test_an_error_while_filling_ends_the_text() -> None:
    one = follower()
    one.matcher = Broken()  # type: ignore[assignment]  # replaces a matcher at its limits
    assert legal(one) == [EOS]
    assert isinstance(one.error, LimitExceededError)


def test_batch_equals_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    lost, broken, stopped = follower(), follower(), follower(stop_token_ids=[STOP])
    lost.advance([B])
    broken.matcher = Broken()  # type: ignore[assignment]  # replaces a matcher at its limits
    stopped.advance([A, B])

    def whole(matchers: list[object], rows: object) -> None:
        if broken.matcher in matchers:
            raise LimitExceededError("too much to remember")
        gw.matcher.fill_masks(matchers, rows)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr("guideway.integrations._common.follower.fill_masks", whole)
    for batch in ([follower(), stopped], [follower(), lost, stopped], [follower(), broken, stopped]):
        rows = new_rows(len(batch), 32)
        rows[:] = 7
        fill(batch, rows)
        for row, one in zip(rows, batch, strict=True):
            assert ids(row, 32 * len(row)).tolist() == legal(one)


@pytest.mark.parametrize("width", [1, 32, 64, 100])
def test_logits_may_be_wider_or_narrower_than_the_vocabulary(width: int) -> None:
    size = 70
    table = gw.Vocabulary([bytes([33 + i]) for i in range(size - 1)] + [b""], eos_ids=[size - 1])
    one = Follower(gw.compile(gw.Regex("[ -~]+"), table), table.eos_ids)
    row = new_rows(1, width)[0]
    row[:] = 0xFFFFFFFF
    one.fill(row)
    assert ids(row, 32 * len(row)).tolist() == [i for i in range(size - 1) if i < 32 * len(row)]
    rows = new_rows(2, width)
    fill([one, one], rows)
    assert rows.tolist() == [row.tolist()] * 2


def test_copies_and_resets() -> None:
    one = follower()
    one.advance([A])
    other = one.copy()
    other.advance([B, EOS])
    assert (one.position, other.position) == (1, 3)
    one.advance([A])
    assert other.error is None
    other.reset()
    one.reset()
    assert legal(one) == legal(other) == [A]


def test_advance_and_rollback_equal_a_fresh_follower() -> None:
    draw = random.Random(3)
    for _ in range(300):
        one = follower("(a|b{2,3})*", stop_token_ids=[STOP])
        taken: list[int] = []
        for _ in range(draw.randrange(12)):
            if draw.random() < 0.3 and taken:
                count = draw.randrange(len(taken) + 1)
                one.rollback(count)
                taken = taken[: len(taken) - count]
            else:
                token = draw.choice([A, B, STOP, EOS])
                if one.validate([token]):
                    assert one.advance([token])
                    taken.append(token)
        fresh = follower("(a|b{2,3})*", stop_token_ids=[STOP])
        assert fresh.advance(taken)
        assert (legal(one), one.is_finished, one.position) == (legal(fresh), fresh.is_finished, len(taken))


def test_masks_are_what_may_be_taken() -> None:
    draw = random.Random(4)
    one = follower("(a|b{2,3})*a", stop_token_ids=[STOP])
    for _ in range(200):
        if one.is_finished:
            one.reset()
        found = legal(one)
        assert found == [token for token in (A, B, STOP, EOS) if one.validate([token])]
        assert one.advance([draw.choice(found)])
    assert np.all([one.error is None])


def test_a_mask_that_takes_too_long_ends_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow batch does not identify the slow mask, so the next masks are computed one by one."""
    one = follower()
    monkeypatch.setattr(following, "MASK_SECONDS", -1.0)
    assert legal(one) == [EOS]
    assert isinstance(one.error, LimitExceededError)
    both, rows = [follower(), follower("b")], new_rows(2, 32)
    fill(both, rows)
    assert [(two.error, two.is_watched) for two in both] == [(None, True)] * 2
    monkeypatch.setattr(following, "MASK_SECONDS", 60.0)
    fill(both, rows)
    assert [(two.error, two.is_watched) for two in both] == [(None, False)] * 2
    for two in both:
        two.is_watched = True
    monkeypatch.setattr(following, "MASK_SECONDS", -1.0)
    fill(both, rows)
    assert all(isinstance(two.error, LimitExceededError) for two in both)


def test_a_budget_completes_the_text() -> None:
    with pytest.raises(BudgetTooSmallError, match="needs 3 tokens; max_tokens is 2"):
        follower("[ab]{2,9}", max_tokens=2)
    held, free = follower("[ab]{2,9}", max_tokens=4), follower("[ab]{2,9}")
    rows = new_rows(2, 32)
    for expected in ([A, B], [A, B], [A, B, EOS], [EOS]):
        fill([held, free], rows)
        assert ids(rows[0], 32).tolist() == expected == legal(held.copy())
        held.advance([expected[0]])
    assert held.is_finished
    assert legal(free) == [A, B]
    held.reset()
    held.advance([A, A, A])
    assert legal(held) == [EOS]


def test_budgets_of_requests() -> None:
    assert [token_budget("max_tokens", given) for given in (None, 3, "12")] == [None, 3, 12]
    for wrong in (0, -1, True, 1.5, "1.5", "", "9" * 5000, [3]):
        with pytest.raises(InvalidConstraintError, match="max_tokens must be a positive integer"):
            token_budget("max_tokens", wrong)
