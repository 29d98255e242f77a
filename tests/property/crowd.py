"""Matchers of one constraint with different settings, advanced together: they must give equal results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import guideway as gw

from .checks import Mismatch


class Crowd:
    """Answers like its first matcher; calls that write a mask or advance run on all matchers and must agree."""

    def __init__(self, matchers: Sequence[Any]) -> None:
        self.first, *self.others = matchers

    @classmethod
    def compiled(cls, source: Any, vocabularies: Sequence[gw.Vocabulary]) -> Crowd:
        """The constraint compiled for each vocabulary."""
        return cls([gw.compile(source, vocabulary, cache=False).matcher() for vocabulary in vocabularies])

    def fill_mask(self, row: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        self._all("fill_mask", row, lambda matcher, words: matcher.fill_mask(words))

    def fill_mask_within(self, row: np.ndarray[Any, np.dtype[np.uint32]], tokens_left: int) -> bool:
        return bool(self._all("fill_mask_within", row, lambda m, words: m.fill_mask_within(words, tokens_left)))

    def _all(self, name: str, row: np.ndarray[Any, np.dtype[np.uint32]], call: Callable[[Any, Any], Any]) -> Any:
        before = row.copy()
        answer = call(self.first, row)
        for number, other in enumerate(self.others, 1):
            words = before.copy()
            if call(other, words) != answer or not np.array_equal(words, row):
                raise Mismatch(f"{name}: setting {number} of the crowd gives another mask")
        return answer

    def _same(self, name: str, *given: Any) -> Any:
        """A call that either all take or all refuse, with one answer."""
        answers = []
        for matcher in (self.first, *self.others):
            try:
                answers.append((getattr(matcher, name)(*given), None))
            except (gw.GuidewayError, ValueError) as error:
                answers.append((None, error))
        answer, error = answers[0]
        if any(one != answer or type(why) is not type(error) for one, why in answers):
            raise Mismatch(f"{name}{given}: the crowd does not answer alike: {answers}")
        if error is not None:
            raise error
        return answer

    def advance(self, token: int) -> None:
        self._same("advance", token)

    def rollback(self, count: int) -> None:
        self._same("rollback", count)

    def validate(self, tokens: Sequence[int]) -> int:
        return int(self._same("validate", tokens))

    def forced_bytes(self) -> bytes:
        return bytes(self._same("forced_bytes"))

    def forced_tokens(self) -> list[int]:
        return list(self._same("forced_tokens"))

    def min_tokens_to_complete(self) -> int:
        return int(self._same("min_tokens_to_complete"))

    def completion(self) -> bytes:
        return bytes(self._same("completion"))

    def fork(self) -> Crowd:
        return Crowd([matcher.fork() for matcher in (self.first, *self.others)])

    @property
    def is_accepting(self) -> bool:
        return bool(self.first.is_accepting)

    @property
    def is_finished(self) -> bool:
        return bool(self.first.is_finished)

    @property
    def position(self) -> int:
        return int(self.first.position)
