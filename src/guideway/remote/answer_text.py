"""The text of an answer: removal of a repeated prefill, and the part of the text that a stream yields."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Literal

__all__ = ["SPACE", "Echo", "VisibleText"]

SPACE = " \t\r\n"
"""White space of JSON."""


class Echo:
    """Removes a repetition of the prefill from the beginning of an answer. llama-server repeats the prefill.

    Args:
        text: The prefill: the text that the answer continues.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._seen = 0  # number of bytes of the answer so far; they equal the beginning of `text`

    def without(self, data: bytes, allows: Callable[[bytes], bool]) -> bytes:
        """Take the next bytes of the answer, and return the bytes that are known to be no repetition of the prefill.

        Bytes at the beginning of the answer that equal the beginning of the prefill are held back. A complete
        repetition is dropped, unless the prefill may come again at this place: `allows(bytes)` returns whether bytes
        may come next.
        """
        if not self._text:
            return data
        text, seen = self._text, self._seen
        left = len(text) - seen
        if text[seen : seen + len(data)] == data[:left]:
            self._seen += len(data)
            if len(data) < left:
                return b""
            self._text = b""
            return text + data[left:] if allows(text) else data[left:]
        self._text = b""
        return text[:seen] + data

    def rest(self) -> bytes:
        """Return the bytes that are still held back when the answer ends.

        They equal only a part of the prefill, so they are no repetition of it.
        """
        data, self._text = self._text[: self._seen], b""
        return data


class VisibleText:
    """The part of the valid text of an answer that a stream yields, piece by piece.

    Args:
        shell: Whether white space and a code fence around the text are removed.
    """

    def __init__(self, shell: bool) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._part: Literal["head", "text", "end"] = "head" if shell else "text"
        self._shell = shell
        self._fenced = False
        self._held: list[str] = []
        self._new: list[str] = []

    def feed(self, data: bytes, skipped: int = 0) -> None:
        """Take valid bytes.

        `skipped`: the number of characters that the stream has already yielded, counted after white space and, if there
        is a code fence, the line that opens it.
        """
        text = self._decoder.decode(data)
        if self._part == "head":
            text = self._after_head(text)
        if self._part == "text" and text:
            shown = self._before_end(text)
            if shown[skipped:]:
                self._new.append(shown[skipped:])

    def taken(self) -> str:
        """Return the text since the last call."""
        text = "".join(self._new)
        self._new.clear()
        return text

    def _after_head(self, text: str) -> str:
        """Return the text after its head: white space and, if there is a code fence, the line that opens it.

        "" until the head is complete.
        """
        if not self._held:
            text = text.lstrip(SPACE)
        if not text:
            return ""
        self._held.append(text)
        if self._held[0][0] == "`":
            if "\n" not in text:
                return ""
            self._fenced = True
        text = "".join(self._held)
        self._held.clear()
        self._part = "text"
        return text.partition("\n")[2] if self._fenced else text

    def _before_end(self, text: str) -> str:
        """Return the text that certainly belongs to the value.

        Characters at the end that may belong to the closing code fence, or to white space after the value, are held
        back.
        """
        if not self._shell:
            return text
        self._held.append(text)
        if not text.strip(SPACE):
            return ""
        text = "".join(self._held)
        self._held.clear()
        if self._fenced and "\n```" in text:
            self._part = "end"
            return text.partition("\n```")[0].rstrip(SPACE)
        bare = text.rstrip("`") if self._fenced else text
        kept = bare.rstrip(SPACE) if bare == text or bare.endswith("\n") else text
        if len(kept) < len(text):
            self._held.append(text[len(kept) :])
        return kept
