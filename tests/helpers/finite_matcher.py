"""A matcher for a finite set of texts, in plain Python: what the kernel's does, for tests that need no kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.errors import RejectedToken
from guideway.vocabulary import Vocabulary


class FiniteMatcher:
    def __init__(self, vocabulary: Vocabulary, texts: Sequence[str], tokens: Sequence[int] = ()) -> None:
        self.vocabulary = vocabulary
        self.texts = [text.encode() for text in texts]
        self.tokens = list(tokens)

    @property
    def position(self) -> int:
        return len(self.tokens)

    @property
    def so_far(self) -> bytes:
        return self.vocabulary.bytes_of(self.tokens)

    @property
    def is_finished(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] in self.vocabulary.eos_ids

    @property
    def is_accepting(self) -> bool:
        return self.so_far in self.texts

    def legal(self) -> list[int]:
        eos = list(self.vocabulary.eos_ids)
        if self.is_finished:
            return eos
        unusable, prefix = self.vocabulary.unusable(), self.so_far
        found = [
            i
            for i, token in enumerate(self.vocabulary.token_bytes)
            if i not in unusable and any(text.startswith(prefix + token) for text in self.texts)
        ]
        return found + (eos if self.is_accepting else [])

    def fill_mask(self, row: NDArray[np.uint32]) -> None:
        row[:] = masks.pack(self.legal(), len(self.vocabulary))

    def fill_mask_within(self, row: NDArray[np.uint32], tokens_left: int) -> bool:
        fitting = []
        for token_id in self.legal():
            after = self.fork()
            after.tokens.append(token_id)
            if after.is_finished or after.tokens_to_finish() <= tokens_left - 1:
                fitting.append(token_id)
        row[:] = masks.pack(fitting, len(self.vocabulary))
        return bool(fitting)

    def advance(self, token_id: int) -> None:
        if self.is_finished or token_id not in self.legal():
            raise RejectedToken(f"token {token_id} is not legal")
        self.tokens.append(token_id)

    def rollback(self, count: int) -> None:
        if count > len(self.tokens):
            raise ValueError("more than advanced")
        self.tokens = self.tokens[: len(self.tokens) - count]

    def fork(self) -> FiniteMatcher:
        made = FiniteMatcher(self.vocabulary, [], self.tokens)
        made.texts = self.texts
        return made

    def forced_tokens(self) -> list[int]:
        """Only where all ways on begin with the same token; no look at longer spellings is needed here."""
        legal = self.legal()
        return legal if len(legal) == 1 and not self.is_accepting else []

    def tokens_to_finish(self) -> int:
        """Fewest tokens, EOS included, by breadth."""
        unusable, prefix = self.vocabulary.unusable(), self.so_far
        goals = [text[len(prefix) :] for text in self.texts if text.startswith(prefix)]
        best = 1 << 30
        usable = {t for i, t in enumerate(self.vocabulary.token_bytes) if i not in unusable}
        for goal in goals:
            fewest = [0] + [1 << 30] * len(goal)
            for end in range(1, len(goal) + 1):
                fewest[end] = 1 + min((fewest[s] for s in range(end) if goal[s:end] in usable), default=1 << 30)
            best = min(best, fewest[-1] + 1)
        return best
