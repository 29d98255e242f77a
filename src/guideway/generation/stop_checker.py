"""The text of a row: detects stop strings and banned strings, and determines which text may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice
from typing import Any, overload

from guideway.tokenizers import TextStream, Vocabulary

__all__ = ["Watch", "begun"]


class Watch:
    """The bytes of the taken tokens, and the strings to find in them.

    Args:
        vocabulary: The vocabulary of the tokens.
        stop: The stop strings, as UTF-8.
        banned: The banned strings, as UTF-8.
        healed: The text at the start that repeats the end of the prompt (token healing). It is not output.
        min_tokens: A stop string does not end the text if one of this number of tokens at the start completes it.

    Attributes:
        healed: As the argument.
        skipped: The number of bytes of `healed`.
        cut: The offset in the bytes at which the stop string that was found begins; None: none was found.
        stopped_by: The stop string that was found; None: none was found.
        is_idle: Whether there are no strings to find.
        hidden_from: The index of a token whose text must not be shown yet, nor any later text. None: there is none.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        stop: Sequence[bytes] = (),
        banned: Sequence[bytes] = (),
        healed: str = "",
        min_tokens: int = 0,
    ) -> None:
        self._vocabulary = vocabulary
        self._stop, self._banned = tuple(stop), tuple(banned)
        self._min_tokens = min_tokens
        self.is_idle = not (self._banned or self._stop)
        self.healed = healed
        self.skipped = len(healed.encode())
        self._ends: list[int] = []  # for each token, the offset after its bytes in `_data`
        self._data = bytearray()
        self._shown = self.skipped
        self._stream = TextStream()
        self.cut: int | None = None
        self.hidden_from: int | None = None
        self.stopped_by: str | None = None

    @property
    def data(self) -> bytes:
        """The bytes of the output so far, without the stop string that was found and the bytes after it."""
        return bytes(self._data[self.skipped : self.cut])

    @property
    def size(self) -> int:
        """The number of bytes, the bytes of `healed` included."""
        return len(self._data)

    @property
    def shown_tokens(self) -> int:
        """The number of tokens that begin before the end of the shown text; 0 if no text was shown.

        They must not be removed (`Row` checks it).
        """
        return sum(1 for start in (0, *self._ends[:-1]) if start < self._shown) if self._shown > self.skipped else 0

    @property
    def settled(self) -> int:
        """The number of tokens at the start that no banned string can still remove."""
        safe = self._safe_tokens()
        return sum(1 for end in self._ends if end <= safe)

    def push(self, token_id: int, *, named: bool = False) -> int | None:
        """Add a token.

        `named`: the text of a special token is its name, because the constraint requires the token; otherwise it is
        empty.

        Returns:
            If a banned string is now complete: the index of the token in which it begins; else None.
        """
        data = self._data
        before = len(data)
        data += self._vocabulary.piece(token_id, special=named)
        self._ends.append(len(data))
        if self.is_idle:
            return None
        first = _first(self._data, self._banned, before, self.skipped)
        if first is not None:
            return next(n for n, end in enumerate(self._ends) if end > first[0])
        may_stop = self.cut is None and len(self._ends) > self._min_tokens
        stop = _first(self._data, self._stop, before, self.skipped) if may_stop else None
        if stop is not None:
            self.cut = stop[0]
            self.stopped_by = stop[1].decode()
        return None

    def extend(self, ids: Sequence[int]) -> None:
        """Add tokens. Only allowed if there are no strings to find (`is_idle`)."""
        pieces = self._vocabulary.pieces(ids)
        ends = accumulate(map(len, pieces), initial=len(self._data))
        self._ends += islice(ends, 1, None)
        self._data += b"".join(pieces)

    def pop(self, count: int) -> None:
        """Remove the last `count` tokens. A stop string that was found no longer ends the text."""
        del self._ends[len(self._ends) - count :]
        del self._data[self._ends[-1] if self._ends else 0 :]
        self.cut = self.stopped_by = None

    def show(self, finished: bool) -> str:
        """Return the new text that may be shown.

        It contains nothing that may become part of a stop string or a banned string, and never an incomplete character.

        `finished`: whether no more text follows, so that all text before a stop string may be shown.
        """
        end = len(self._data) if self.cut is None else self.cut
        if not finished:
            if not self.is_idle:
                end = min(_safe(self._data, self._stop), self._safe_tokens())
            if self.hidden_from is not None:
                end = min(end, (0, *self._ends)[self.hidden_from])
        piece = bytes(self._data[self._shown : max(end, self._shown)])
        self._shown = max(end, self._shown)
        return self._stream.push(piece)

    def _safe_tokens(self) -> int:
        """Return the offset at which the token begins in which an unfinished banned string begins.

        This token and later ones may still be removed. If there is no such string, the number of bytes is returned.
        """
        safe = _safe(self._data, self._banned)
        if safe == len(self._data):
            return safe
        return max((start for start in (0, *self._ends) if start <= safe), default=0)


def _first(data: bytearray, strings: Sequence[bytes], before: int, start: int) -> tuple[int, bytes] | None:
    """Return the first occurrence of one of these strings in the data, as offset and string; None: there is none.

    An occurrence counts if it begins at `start` or later and ends after the first `before` bytes.
    """
    found = [(at, text) for text in strings if (at := data.find(text, max(start, before - len(text) + 1))) >= 0]
    return min(found, default=None)


def _safe(data: bytearray, strings: Sequence[bytes]) -> int:
    """Return the number of bytes at the start that cannot become part of one of these strings."""
    safe = len(data)
    for text in strings:
        safe = min(safe, len(data) - begun(data, text))
    return safe


@overload
def begun(text: str, marker: str) -> int: ...
@overload
def begun(text: bytes | bytearray, marker: bytes) -> int: ...
def begun(text: Any, marker: Any) -> int:
    """Return the length of the longest proper prefix of `marker` with which `text` ends.

    Args:
        text: The text.
        marker: A string that the text may contain when it continues.
    """
    longest = min(len(marker) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(marker[:size])), 0)
