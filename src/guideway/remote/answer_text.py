"""The text of an answer: without a repetition of what it continues, and what of it a stream may show."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Literal

__all__ = ["SPACE", "Echo", "VisibleText"]

SPACE = " \t\r\n"
"""White space of JSON."""


class Echo:
    """Leaves out the beginning of an answer that repeats the text which it continues, as llama-server does.

    Args:
        text: The text that is continued.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._seen = 0  # bytes of the answer, all equal to the beginning of the text

    def without(self, data: bytes, allows: Callable[[bytes], bool]) -> bytes:
        """Take bytes. Returns those that are no repetition. `allows`: tells whether bytes may come next."""
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
        """Return the bytes that are held at the end of the answer."""
        data, self._text = self._text[: self._seen], b""
        return data


class VisibleText:
    """The valid text of an answer that a stream may show, piece by piece.

    Args:
        shell: Whether white space or a code fence around the text is left out.
    """

    def __init__(self, shell: bool) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._part: Literal["head", "text", "end"] = "head" if shell else "text"
        self._shell = shell
        self._fenced = False
        self._held: list[str] = []
        self._new: list[str] = []

    def feed(self, data: bytes, skipped: int = 0) -> None:
        """Take valid bytes. `skipped`: the number of their characters that were shown already."""
        text = self._decoder.decode(data)
        if self._part == "head":
            text = self._after_head(text)
        if self._part == "text" and text:
            shown = self._before_end(text)
            if shown[skipped:]:
                self._new.append(shown[skipped:])

    def taken(self) -> str:
        """Return the new text."""
        text = "".join(self._new)
        self._new.clear()
        return text

    def _after_head(self, text: str) -> str:
        """Return the text after white space and the first line of a code fence."""
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
        """Return the text before characters that may belong to the code fence around the value, or white space after it."""
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
