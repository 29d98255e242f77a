"""The calls of `llama_decode`: new tokens of many sequences, and on from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llama_cpp as llama
import numpy as np

from guideway.engines.base import Draw, Logits
from guideway.engines.llama_cpp.batch import Batch, Begun, laid_out
from guideway.engines.llama_cpp.log import reason
from guideway.engines.llama_cpp.logits import Outputs
from guideway.errors import EngineError, KVCacheFullError

__all__ = ["Running"]


class Running:
    """What runs in a context of llama.cpp, at most `size` tokens at once; logits are `width` wide.

    Logits are lent: they stand in the library's memory until the next call.
    """

    def __init__(self, handle: Any, size: int, width: int) -> None:
        self._handle, self._size = handle, size
        self._batch = Batch(size)
        self._outputs = Outputs(width)

    def run(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]]) -> Logits:
        """Run the new tokens of these sequences; the logits behind each. Tips move along. Raises `EngineError`."""
        total = len(rows[0]) if len(rows) == 1 else sum(map(len, rows))
        if total == len(rows) <= self._size:  # one for each: the usual step
            self._batch.put(sequences, rows)
            self._decode(total)
            for sequence in sequences:
                sequence.tip += 1
            return self._outputs.lent(self._handle, total)
        columns, blocks = laid_out(sequences, rows), []
        for begin in range(0, total, self._size):
            wanted = self._batch.fill(columns, begin)
            self._decode(total)
            if wanted:
                lent = self._outputs.lent(self._handle, wanted)
                blocks.append(lent if total <= self._size else lent.copy())
        for sequence, row in zip(sequences, rows, strict=True):
            sequence.tip += len(row)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def go_on(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]], draw: Draw) -> bool:
        """As `run`, and on with what `draw` gives, until that is None; False where a later pass failed before."""
        more = draw(self.run(sequences, rows))
        while more is not None:
            try:
                logits = self.run(sequences, more)
            except EngineError:  # it comes again where these tokens run next, and is told of there
                return False
            more = draw(logits)
        return True

    def _decode(self, total: int) -> None:
        if code := llama.llama_decode(self._handle, self._batch.struct):
            if code == 1:
                raise KVCacheFullError(f"no cells are left for {total} tokens: give the model more kv_cache_tokens=")
            raise EngineError(f"llama.cpp failed on {total} tokens ({code}): {reason()}")
