"""Repairs of answers that have exactly one reading. Every repair is recorded, and the result is checked afterwards."""

from __future__ import annotations

import re

__all__ = ["repaired"]

MAX_REPAIRED = 1_000_000
"""Maximum number of characters of a text that is repaired."""

_FENCED = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?=\s*:)")
_CONTROL = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_WORDS = {"True": "true", "False": "false", "None": "null"}


def repaired(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text of JSON after unambiguous repairs of its syntax, and the names of the repairs.

    One code fence is removed with the text around it; comments and trailing commas are removed; keys without quotes get
    quotes; control characters in strings are escaped; True, False and None are written as in JSON. A text that ends in the
    middle of a value is not completed.
    """
    if len(text) > MAX_REPAIRED:
        return text, ()
    done: list[str] = []
    fences = _FENCED.findall(text)
    if len(fences) == 1:
        text = fences[0]
        done.append("code fence")
    else:
        text = _without_prose(text, done)
    return _scanned(text.strip(), done), tuple(dict.fromkeys(done))


def _without_prose(text: str, done: list[str]) -> str:
    """Remove text before the first and after the last bracket, if the first begins a line and the last ends one."""
    found = re.search(r"(?m)^[ \t]*[\[{]", text)
    if found is None:
        return text
    start = found.end() - 1
    end = max(text.rfind("}"), text.rfind("]")) + 1
    outside = text[:start] + text[end:]
    if end > start and outside.strip() and not any(char in outside for char in "{}[]"):
        done.append("text around the value")
        return text[start:end]
    return text


def _scanned(text: str, done: list[str]) -> str:
    made: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            at = _string(text, at, made, done)
        elif text.startswith("//", at):
            at = _end(text, at, "\n")
            done.append("comment")
        elif text.startswith("/*", at):
            at = min(_end(text, at + 2, "*/") + 2, len(text))
            done.append("comment")
        elif char == "," and (after := re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*[\]}]", re.DOTALL).match(text, at + 1)):
            done.append("trailing comma")
            at += 1
            del after
        elif (key := _KEY.match(text, at)) and _previous(made) in "{,":
            made.append(f'"{key[0]}"')
            done.append("key without quotes")
            at = key.end()
        elif char.isalpha():
            word = re.compile(r"[A-Za-z]+").match(text, at)
            found = word[0] if word else char
            if found in _WORDS:
                done.append("constant of Python")
            made.append(_WORDS.get(found, found))
            at += len(found)
        else:
            made.append(char)
            at += 1
    return "".join(made)


def _previous(made: list[str]) -> str:
    for piece in reversed(made):
        if piece.strip():
            return piece.strip()[-1]
    return "-"


def _end(text: str, at: int, mark: str) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found


def _string(text: str, at: int, made: list[str], done: list[str]) -> int:
    made.append('"')
    at += 1
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            made.append(text[at : at + 2])
            at += 2
            continue
        at += 1
        if char == '"':
            made.append(char)
            return at
        if char < " ":
            made.append(_CONTROL.get(char, f"\\u{ord(char):04x}"))
            done.append("control character in a string")
        else:
            made.append(char)
    return at
