"""The text of a row as it grows: where a stop string ends it, where a banned string begins, what may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice

from guideway.tokenizers import TextStream, Vocabulary

__all__ = ["Watch"]


class Watch:
    """Bytes of the tokens that were taken, and the strings that are looked for in them.

    `stop`, `banned`: the strings, as UTF-8. `healed`: the text at the start that is not output: the prompt ended with
    it, and it is written once more. `cut`: where the text ends, once a stop string was found.
    """

    def __init__(
        self, vocabulary: Vocabulary, stop: Sequence[bytes] = (), banned: Sequence[bytes] = (), healed: str = ""
    ) -> None:
        self._vocabulary = vocabulary
        self._stop, self._banned = tuple(stop), tuple(banned)
        self.healed = healed
        self.skipped = len(healed.encode())
        self._ends: list[int] = []  # where each token ends in the bytes
        self._data = bytearray()
        self._shown = self.skipped
        self._stream = TextStream()
        self.cut: int | None = None
        self.stopped_by: str | None = None

    @property
    def data(self) -> bytes:
        """The bytes of the text so far, up to a stop string."""
        return bytes(self._data[self.skipped : self.cut])

    @property
    def size(self) -> int:
        """How many bytes were written, those skipped included."""
        return len(self._data)

    @property
    def shown_tokens(self) -> int:
        """How many tokens have bytes that were shown, and so cannot be taken back."""
        return sum(1 for start in (0, *self._ends[:-1]) if start < self._shown) if self._shown > self.skipped else 0

    def push(self, token_id: int, *, named: bool = False) -> int | None:
        """A token was taken. Gives the number of the token in which a banned string begins, where one is whole now.

        `named`: a special token is text by its name, since a constraint asked for it.
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
        stop = _first(self._data, self._stop, before, self.skipped) if self.cut is None else None
        if stop is not None:
            self.cut = stop[0]
            self.stopped_by = stop[1].decode()
        return None

    @property
    def is_idle(self) -> bool:
        """Whether no string is looked for."""
        return not (self._banned or self._stop)

    def extend(self, ids: Sequence[int]) -> None:
        """As `push` of each of these tokens, where no string is looked for."""
        pieces = self._vocabulary.pieces(ids)
        ends = accumulate(map(len, pieces), initial=len(self._data))
        self._ends += islice(ends, 1, None)
        self._data += b"".join(pieces)

    def pop(self, count: int) -> None:
        """The last tokens were given back."""
        del self._ends[len(self._ends) - count :]
        del self._data[self._ends[-1] if self._ends else 0 :]
        self.cut = self.stopped_by = None

    def show(self, finished: bool) -> str:
        """What may be shown now and was not yet: nothing that could become a stop or banned string, no half character.

        `finished`: nothing comes any more, so everything up to a stop string may.
        """
        end = len(self._data) if self.cut is None else self.cut
        if not finished:
            end = min(_safe(self._data, self._stop), self._safe_tokens())
        piece = bytes(self._data[self._shown : max(end, self._shown)])
        self._shown = max(end, self._shown)
        return self._stream.push(piece) + (self._stream.finish() if finished else "")

    def _safe_tokens(self) -> int:
        """Where the token begins in which a banned string may have begun: all of that token could be taken back."""
        safe = _safe(self._data, self._banned)
        if safe == len(self._data):
            return safe
        return max((start for start in (0, *self._ends) if start <= safe), default=0)


def _first(data: bytearray, strings: Sequence[bytes], before: int, start: int) -> tuple[int, bytes] | None:
    """The first of these strings that is whole now and was not when there were `before` bytes."""
    found = [(at, text) for text in strings if (at := data.find(text, max(start, before - len(text) + 1))) >= 0]
    return min(found, default=None)


def _safe(data: bytearray, strings: Sequence[bytes]) -> int:
    """Up to where no byte can belong to one of these strings, whatever comes."""
    safe = len(data)
    for text in strings:
        longest = min(len(text) - 1, len(data))
        begun = next((n for n in range(longest, 0, -1) if data.endswith(text[:n])), 0)
        safe = min(safe, len(data) - begun)
    return safe
