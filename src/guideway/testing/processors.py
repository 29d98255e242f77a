"""`processor_contract`: checks that a logits processor masks correctly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from guideway import masks
from guideway.compiler import Automaton, compile
from guideway.constraints import Choice, Regex
from guideway.engines.base import Logits
from guideway.errors import GuidewayError, ProcessorReuseError
from guideway.tokenizers import Vocabulary

__all__ = ["processor_contract"]

TOKENS = [b"", *(bytes([b]) for b in b"abcde "), b"ab", b"cab", b"de ", b"\xc3", b"\xa9", b""]
PAD = len(TOKENS) - 1
WIDTH = len(TOKENS) + 3  # wider than the vocabulary, because models pad their logits

Make = Callable[[list[Any], Vocabulary], Any]
Call = Callable[[Any, list[list[int]], Logits], Logits]


def processor_contract(make: Make, call: Call, *, rows: int = 6, rounds: int = 60, drafts: bool = True) -> None:
    """Compare the masks of a logits processor with those of a new matcher for the tokens of each row.

    In random order, tokens are added and removed, rows are exchanged and, with `drafts`, illegal tokens are added.

    Args:
        make: `make(constraints, vocabulary)` returns the processor for one batch of prompts. There is one constraint
            per prompt; None: free text.
        call: `call(processor, ids, logits)` calls the processor as the engine does in each step, and returns the masked
            logits. `ids`: prompts and generated tokens; all rows have the same length. `logits`: float32 [rows, width],
            wider than the vocabulary.
        rows: The maximum number of rows; 1 for engines with one processor per row.
        rounds: The number of random sequences of steps.
        drafts: Whether the engine can pass tokens that the constraint does not allow (speculative decoding).

    Raises:
        AssertionError: A rule is broken. The message names it.
    """
    for seed in range(rounds):
        _Walk(make, call, rows, seed).run(drafts)
    _refusals(make, call)


class _Walk:
    def __init__(self, make: Make, call: Call, rows: int, seed: int) -> None:
        self.chance, self.call = random.Random(seed), call
        self.vocabulary = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0, PAD])
        sources = [Regex("(ab|c|cab)*d?"), None, Choice(["abcde", "cab de ", "é"]), Regex("[a-e ]{2,9}")]
        count = self.chance.randint(1, min(rows, 3))
        self.sources = [self.chance.choice(sources) for _ in range(count)]
        self.copies = self.chance.randint(1, rows // count)
        self.automata = [None if one is None else compile(one, self.vocabulary) for one in self.sources]
        self.prompts = [[PAD, 1 + index, *self.chance.choices(range(1, 9), k=3)] for index in range(count)]
        self.processor = make(self.sources, self.vocabulary)
        self.texts: list[list[int]] = [[] for _ in range(count * self.copies)]

    def run(self, drafts: bool) -> None:
        """Add tokens, remove tokens, exchange rows, add tokens that may be illegal, and continue after the end."""
        self.step("at the start")
        for _ in range(25):
            kind = self.chance.random()
            if kind < 0.15:
                cut = self.chance.randint(0, len(self.texts[0]))
                self.texts = [text[:cut] for text in self.texts]
                self.step("after tokens were removed")
            elif kind < 0.3:
                self.texts = [self.chance.choice(self.texts[self.first(i) : self.first(i) + self.copies])[:]
                              for i in range(len(self.texts))]  # fmt: skip
                self.step("after rows were exchanged, as in beam search")
            else:
                draft = drafts and kind > 0.85
                for index, text in enumerate(self.texts):
                    text.append(self.drawn(index, draft))
                self.step("after a draft that may be illegal" if draft else "after another token")

    def first(self, index: int) -> int:
        return index - index % self.copies

    def drawn(self, index: int, draft: bool) -> int:
        legal = self.expected(index)
        if draft or legal is None:
            return self.chance.randrange(1, PAD)
        return int(self.chance.choice(np.flatnonzero(legal).tolist())) if legal[1:].any() else 0

    def expected(self, index: int) -> Any:
        """Return the mask of a row, bool [WIDTH], from a new matcher that was advanced by the row's tokens.

        None if the row has no constraint, or if one of its tokens is illegal.
        """
        automaton: Automaton | None = self.automata[index // self.copies]
        if automaton is None:
            return None
        matcher = automaton.matcher()
        for token_id in self.texts[index]:
            if matcher.is_finished:
                break
            try:
                matcher.advance(token_id)
            except GuidewayError:
                return None
        row = masks.new_rows(1, len(TOKENS))[0]
        matcher.fill_mask(row)
        return masks.unpack(row, WIDTH)

    def step(self, what: str) -> None:
        ids = [[*self.prompts[i // self.copies], *text] for i, text in enumerate(self.texts)]
        logits = np.random.default_rng(self.chance.randrange(1 << 30)).normal(size=(len(ids), WIDTH))
        found = self.call(self.processor, ids, logits.astype(np.float32))
        for index, row in enumerate(found):
            legal = self.expected(index)
            legal = np.ones(WIDTH, bool) if legal is None else legal
            wanted = np.where(legal, logits[index].astype(np.float32), -np.inf)
            _hold(
                np.array_equal(row, wanted),
                f"row {index} has another mask than its tokens {ids[index]} require, {what}",
            )


def _refusals(make: Make, call: Call) -> None:
    """Check that a processor raises `ProcessorReuseError` if it is used again for other prompts.

    After `reset`, if the processor has it, the masks must be those of the new prompts.
    """
    vocabulary = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0, PAD])
    logits = np.zeros((1, WIDTH), dtype=np.float32)
    others: Sequence[list[int]] = [[2, 1, 4], [1], [1, 2, 3, 1, 1, 1]]
    for other in others:
        processor = make([Regex("a*")], vocabulary)
        call(processor, [[1, 2, 3]], logits.copy())
        try:
            call(processor, [other], logits.copy())
        except ProcessorReuseError:
            reset = getattr(processor, "reset", None)
            if reset is not None:
                reset()
                again = call(processor, [other], logits.copy())
                _hold(np.isfinite(again[0]).sum() == 2, f"after reset(), {other} has another mask than a* allows")
            continue
        raise AssertionError(f"a call with the prompt {other} after one with [1, 2, 3] raised no ProcessorReuseError")


def _hold(true: bool, message: str) -> None:
    if not true:
        raise AssertionError(message)
