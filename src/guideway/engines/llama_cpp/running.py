"""Calls of `llama_decode`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import llama_cpp as llama
import numpy as np

from guideway.engines.base import Draw, Logits
from guideway.engines.batching import CallCounts
from guideway.engines.llama_cpp.batch import Begun, DecodeBatch, laid_out
from guideway.engines.llama_cpp.dividing import Divider
from guideway.engines.llama_cpp.log import reason
from guideway.engines.llama_cpp.logits import Outputs
from guideway.errors import EngineError, KVCacheFullError

__all__ = ["Running"]


class Running:
    """Runs tokens in a llama.cpp context, at most `size` per call of `llama_decode`.

    Logits have the shape [rows, width]. They may be in llama.cpp's memory, so they are valid until the next call.
    An array that owns its memory stays valid.

    Args:
        handle: The context.
        size: Maximum number of tokens per call.
        width: Size of the vocabulary.
        counts: Counts the calls of `llama_decode`.
        divider: Divides the tokens of several rows into calls.
    """

    def __init__(self, handle: Any, size: int, width: int, counts: CallCounts, divider: Divider) -> None:
        self._handle, self._size, self._width, self._divider = handle, size, width, divider
        self._batch = DecodeBatch(size)
        self._outputs = Outputs(width)
        self._counts = counts

    def run(
        self,
        sequences: Sequence[Begun],
        rows: Sequence[Sequence[int]],
        *,
        every: bool = False,
        active: int | None = None,
    ) -> Logits:
        """Run new tokens of sequences and increase their `tip`.

        `active`: the number of rows that `forward` was called with, for the counts; None: these rows are all.

        Returns one row of logits after the last token of each sequence or, if `every`, after each token. The rows are
        in the order of the sequences, then of their tokens.

        Raises `EngineError` if llama.cpp fails. No `tip` has changed then.
        """
        count = len(rows)
        total = len(rows[0]) if count == 1 else sum(map(len, rows))
        if total == count <= self._size:  # one token per row: the common case
            logits = self._step(sequences, rows, active or count)
        else:
            logits = self._run(sequences, rows, every, active or count)
        for sequence, row in zip(sequences, rows, strict=True):
            sequence.tip += len(row)
        return logits

    def _step(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]], active: int) -> Logits:
        """Run one token per row."""
        count = len(rows)
        order = self._divider.order(sequences) if count > 1 else None
        if order is None:
            self._batch.put(sequences, rows)
        else:
            self._batch.put([sequences[i] for i in order], [rows[i] for i in order])
        self._decode(count)
        self._counts.add(count, active, count)
        lent = self._outputs.lent(self._handle, count)
        if order is None:
            return lent
        logits = np.empty_like(lent)
        logits[order] = lent
        return logits

    def _run(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]], every: bool, active: int) -> Logits:
        calls = self._divider.calls(sequences, rows, self._size)
        active -= self._divider.separate(rows)
        # The index of the first row of logits of each sequence.
        starts = [0, *accumulate(len(row) if every else 1 for row in rows)]
        total, logits = sum(map(len, rows)), np.empty((0, self._width), np.float32)
        for pieces in calls:
            columns = laid_out(sequences, rows, pieces, every=every)
            self._batch.fill(columns)
            self._decode(total)
            self._counts.add(len(pieces), active, len(columns[0]))
            if every:
                places = [place for i, begin, end in pieces for place in range(starts[i] + begin, starts[i] + end)]
            else:
                places = [i for i, _, end in pieces if end == len(rows[i])]
            if not places:
                continue
            lent = self._outputs.lent(self._handle, len(places))
            if places == list(range(starts[-1])):  # all rows of logits, in order: no copy is needed
                return lent
            if not len(logits):
                logits = np.empty((starts[-1], self._width), np.float32)
            logits[places] = lent
        return logits

    def go_on(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]], draw: Draw) -> bool:
        """Run as `run`, then run the tokens that `draw` returns, until it returns None.

        Returns False if a later pass failed, else True. Raises `EngineError` if the first pass failed.
        """
        more = draw(self.run(sequences, rows))
        while more is not None:
            try:
                logits = self.run(sequences, more)
            except EngineError:  # the caller runs these tokens again in its next call, which raises the error
                return False
            more = draw(logits)
        return True

    def _decode(self, total: int) -> None:
        if code := llama.llama_decode(self._handle, self._batch.struct):
            if code == 1:
                raise KVCacheFullError(f"the KV cache has no free cells for {total} tokens; raise kv_cache_tokens=")
            raise EngineError(f"llama_decode failed on {total} tokens with code {code}: {reason()}")
