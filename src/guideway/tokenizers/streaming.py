"""Bytes to text as they come, without ever showing half a character."""

from __future__ import annotations

import codecs

__all__ = ["TextStream"]


class TextStream:
    """Turns pieces of UTF-8 into pieces of text; an incomplete character is held back until the rest of it comes.

    Bytes that can never become a character turn into U+FFFD, as in `bytes.decode("utf-8", "replace")`: the pieces
    joined, `finish()` included, are exactly that.
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, data: bytes) -> str:
        """The text that is certain now."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """What was held back, as U+FFFD; the stream is empty after."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
