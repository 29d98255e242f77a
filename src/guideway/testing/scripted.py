"""A model that writes given texts, one after each prompt, for tests of conversations and of tools."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guideway.engines.base import Arrays, Cache, Logits, check_rows, check_truncation
from guideway.engines.kv_cache import closed_model
from guideway.errors import EngineError
from guideway.generation import Model
from guideway.tokenizers import Tokenizer, Vocabulary

__all__ = ["ScriptedEngine", "ScriptedModel"]


@dataclass(frozen=True)
class _Progress:
    """A cache. For each token: the index of the text that began last (-1: none), and its number of bytes so far."""

    texts: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()

    nbytes = 0

    @property
    def length(self) -> int:
        return len(self.texts)

    def truncated(self, length: int) -> _Progress:
        check_truncation(self, length)
        return _Progress(self.texts[:length], self.offsets[:length])


class ScriptedEngine:
    """An engine that gives the largest logits to the tokens that continue the current text of a row.

    After the whole text, the end token has the largest logit. New tokens that do not continue the text are a prompt;
    the next text begins after them.

    Args:
        vocabulary: The vocabulary.
        texts: The texts, without end tokens. After the last one, the text is empty.
        context_size: The maximum number of tokens of a session.
    """

    supports_rollback = True

    def __init__(self, vocabulary: Vocabulary, texts: Sequence[str], *, context_size: int = 4096) -> None:
        self._vocabulary = vocabulary
        self._texts = [text.encode() for text in texts]
        self._pieces = [vocabulary.piece(i, special=True) for i in range(len(vocabulary))]
        self.context_size = context_size
        self._closed = False

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(b"\0".join([*self._texts, *self._pieces]), digest_size=16).hexdigest()

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`."""
        if self._closed:
            raise closed_model()
        check_rows(self, rows, caches)
        made: list[Cache] = []
        logits = np.zeros((len(rows), self.vocab_size), dtype=np.float32)
        for number, (row, cache) in enumerate(zip(rows, caches, strict=True)):
            place = self._after(cache if isinstance(cache, _Progress) else _Progress(), row)
            made.append(place)
            self._fill(logits[number], place.texts[-1], place.offsets[-1])
        return logits, made

    def _after(self, place: _Progress, row: Sequence[int]) -> _Progress:
        """Return the cache after the new tokens of a row."""
        text, offset = (place.texts[-1], place.offsets[-1]) if place.texts else (-1, 0)
        for number, start in ((text, offset), (text + 1, 0)):
            offsets = self._continued(number, start, row)
            if offsets is not None and (number == text or offset == len(self._text(text))):
                return _Progress((*place.texts, *[number] * len(row)), (*place.offsets, *offsets))
        # The row is a prompt. Forced tokens of the reply may follow it.
        for start in range(1, len(row) + 1):
            offsets = self._continued(text + 1, 0, row[start:])
            if offsets is not None:
                before = (*place.texts, *[text] * (start - 1)), (*place.offsets, *[offset] * (start - 1))
                return _Progress((*before[0], *[text + 1] * (1 + len(offsets))), (*before[1], 0, *offsets))
        raise EngineError("a row has no tokens")

    def _continued(self, number: int, offset: int, row: Sequence[int]) -> list[int] | None:
        """Return the offset in a text after each token; None: the tokens do not continue the text at this offset."""
        text, offsets = self._text(number), []
        for token_id in row:
            piece = self._pieces[token_id]
            if not piece or not text.startswith(piece, offset) or token_id in self._vocabulary.eos_ids:
                return None
            offset += len(piece)
            offsets.append(offset)
        return offsets

    def _text(self, number: int) -> bytes:
        return self._texts[number] if 0 <= number < len(self._texts) else b""

    def _fill(self, logits: Logits, number: int, offset: int) -> None:
        rest = self._text(number)[offset:]
        if not rest:
            logits[list(self._vocabulary.eos_ids)] = 1000.0
            rest = self._text(number + 1)
        longest = rest[:256]
        for token_id, piece in enumerate(self._pieces):
            if piece and longest.startswith(piece) and token_id not in self._vocabulary.eos_ids:
                logits[token_id] = 10.0 + len(piece)

    def export(self, cache: Cache) -> Arrays:
        if not isinstance(cache, _Progress):
            raise EngineError(f"the cache of a scripted engine is needed, got {type(cache).__name__}")
        return {"texts": np.array(cache.texts, np.int64), "offsets": np.array(cache.offsets, np.int64)}

    def restore(self, arrays: Arrays) -> Cache:
        if set(arrays) != {"texts", "offsets"} or arrays["texts"].shape != arrays["offsets"].shape:
            raise EngineError(f"a cache here is two arrays, got {', '.join(arrays)}")
        return _Progress(tuple(map(int, arrays["texts"])), tuple(map(int, arrays["offsets"])))

    def close(self) -> None:
        self._closed = True


class ScriptedModel(Model):
    """A model that writes these texts, one after each prompt, as far as the constraint allows it.

    Args:
        tokenizer: The tokenizer, or a value that `Tokenizer.of` accepts.
        texts: The texts.
        context_size: The maximum number of tokens of a session.
    """

    def __init__(self, tokenizer: object, texts: Sequence[str], *, context_size: int = 4096) -> None:
        found = Tokenizer.of(tokenizer)
        super().__init__(ScriptedEngine(found.vocabulary, texts, context_size=context_size), found, name="scripted")
