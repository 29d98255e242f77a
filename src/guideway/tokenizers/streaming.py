"""Incremental UTF-8 decoding."""

from __future__ import annotations

import codecs

__all__ = ["TextStream"]


class TextStream:
    """Incremental UTF-8 decoder. An incomplete character is buffered until its remaining bytes are pushed.

    Invalid bytes become U+FFFD. The concatenated results, including `finish()`, equal
    `bytes.decode("utf-8", "replace")` of the concatenated input.
    """

    __slots__ = ("_decoder",)

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, data: bytes) -> str:
        """Add bytes, and return the text that they complete."""
        return self._decoder.decode(data)

    @property
    def pending(self) -> bytes:
        """The bytes of the buffered incomplete character; b"" if there is none."""
        return self._decoder.getstate()[0]

    def finish(self) -> str:
        """Return U+FFFD for a buffered incomplete character, "" if there is none, and reset the decoder."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
