"""Calls of `llama_decode`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llama_cpp as llama
import numpy as np

from guideway.engines.base import Draw, Logits
from guideway.engines.batching import CallCounts
from guideway.engines.llama_cpp.batch import Begun, DecodeBatch, laid_out
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
        ordered: Whether sequences are run in the order of their numbers. llama.cpp runs streams together that follow
            each other in the context and in the call.
    """

    def __init__(self, handle: Any, size: int, width: int, counts: CallCounts, *, ordered: bool = False) -> None:
        self._handle, self._size, self._ordered = handle, size, ordered
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
        if self._ordered and len(rows) > 1:
            numbers = [sequence.number for sequence in sequences]
            order = sorted(range(len(rows)), key=numbers.__getitem__)
            if order != list(range(len(rows))):
                logits = self._run([sequences[i] for i in order], [rows[i] for i in order], every, active)
                return logits[_places([len(row) if every else 1 for row in rows], order)]
        return self._run(sequences, rows, every, active)

    def _run(
        self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]], every: bool, active: int | None
    ) -> Logits:
        active = active or len(rows)
        total = len(rows[0]) if len(rows) == 1 else sum(map(len, rows))
        if total == len(rows) <= self._size:  # one token per row: the common case
            self._batch.put(sequences, rows)
            self._decode(total)
            self._counts.add(total, active, total)
            for sequence in sequences:
                sequence.tip += 1
            return self._outputs.lent(self._handle, total)
        columns, blocks = laid_out(sequences, rows, every=every), []
        for begin in range(0, total, self._size):
            wanted = self._batch.fill(columns, begin)
            self._decode(total)
            numbers = columns[2][begin : begin + self._size]
            self._counts.add(len(set(numbers)), active, len(numbers))
            if wanted:
                lent = self._outputs.lent(self._handle, wanted)
                blocks.append(lent if total <= self._size else lent.copy())
        for sequence, row in zip(sequences, rows, strict=True):
            sequence.tip += len(row)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

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


def _places(counts: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return where the logits of each row are, row after row.

    Args:
        counts: The number of rows of logits for each row.
        order: The indexes of the rows in the order in which they ran.
    """
    starts, begin = [0] * len(counts), 0
    for index in order:
        starts[index] = begin
        begin += counts[index]
    return [start + at for start, count in zip(starts, counts, strict=True) for at in range(count)]
