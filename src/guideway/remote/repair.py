"""Repairs of answers that can be repaired in exactly one way. Each repair is recorded; the caller checks the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from guideway.errors import InvalidTextError
from guideway.jsontext.decoder import loads
from guideway.jsontext.encoder import identity, write_json
from guideway.jsontext.pointer import MISSING, child, unescape

__all__ = ["repaired", "repaired_values"]

MAX_VALUES = 20
"""Maximum number of values of an answer that are repaired."""

MAX_NAMES = 20_000
"""Maximum number of values in a schema, at every depth, that are searched for enumerations."""

MAX_REPAIRED = 1_000_000
"""Maximum number of characters of a text that is repaired."""

_FENCED = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_KEY_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$")
_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?=\s*:)")
_WORD = re.compile(r"[A-Za-z]+")
_SPACES = re.compile(r"\s*")
_CONTROL = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_WORDS = {"True": "true", "False": "false", "None": "null"}


def repaired(text: str) -> tuple[str, tuple[str, ...]]:
    """Repair the syntax of a JSON text.

    Returns the text, without white space around it, and the names of the repairs. A text of more than `MAX_REPAIRED`
    characters is returned unchanged.

    If there is exactly one code fence, only its content is kept; otherwise, text before and after the value is removed
    as in `_without_prose`. Comments and trailing commas are removed. Keys without quotes get quotes. Control characters
    in strings are escaped, except after a backslash. True, False and None are written as in JSON. A text that ends in
    the middle of a value is not completed.
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
    text = _scanned(text, done).strip()
    return text, tuple(dict.fromkeys(done))


def _without_prose(text: str, done: list[str]) -> str:
    """Return the text from the first opening bracket that begins a line to the last closing bracket.

    Nothing is removed if there is no such bracket, or if the text around it contains brackets. A removal is added to
    `done`.
    """
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
        elif char == "," and text.startswith(("]", "}"), _after_blank(text, at + 1)):
            done.append("trailing comma")
            at += 1
        elif char in _KEY_START and _previous(made) in "{," and (key := _KEY.match(text, at)):
            made.append(f'"{key[0]}"')
            done.append("key without quotes")
            at = key.end()
        elif char.isalpha():
            word = _WORD.match(text, at)
            found = word[0] if word else char
            if found in _WORDS:
                done.append("constant of Python")
            made.append(_WORDS.get(found, found))
            at += len(found)
        else:
            made.append(char)
            at += 1
    return "".join(made)


def _after_blank(text: str, at: int) -> int:
    """Return the offset after white space and comments that begin at offset `at`."""
    while True:
        spaces = _SPACES.match(text, at)
        at = at if spaces is None else spaces.end()
        if text.startswith("//", at):
            at = _end(text, at, "\n")
        elif text.startswith("/*", at):
            at = min(_end(text, at + 2, "*/") + 2, len(text))
        else:
            return at


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


def repaired_values(
    value: Any, problem_of: Callable[[Any], InvalidTextError | None], schema: Any
) -> tuple[Any, tuple[str, ...]]:
    """Repair a JSON value where the schema leaves exactly one possibility. Returns it and descriptions of the repairs.

    Where the value does not fit, a string is replaced by the number, boolean or null that it contains as text, or by a
    text of any `enum` or `const` of the schema that differs only in case or in spaces around it; another scalar is
    replaced by a string. A replacement is made only if exactly one of these fits at this place. The root value is never
    replaced. Repairing ends at the first problem without a repair, and after `MAX_VALUES` repairs.

    Args:
        value: The value. It is changed in place.
        problem_of: Returns the first problem of a value, with its place; None if the value fits.
        schema: The JSON Schema.
    """
    repairs: list[str] = []
    names: dict[str, set[str]] | None = None
    while len(repairs) < MAX_VALUES and (problem := problem_of(value)) is not None:
        if problem.place is None or (found := _at(value, problem.place)) is None:
            break
        container, key = found
        before = container[key]
        if names is None:
            names = _names(schema)
        fitting: dict[Any, Any] = {}
        for candidate in _readings(before, names):
            container[key] = candidate
            after = problem_of(value)
            if after is None or after.place != problem.place:
                fitting[identity(candidate)] = candidate
        if len(fitting) != 1:
            container[key] = before
            break
        container[key] = next(iter(fitting.values()))
        repairs.append(f"{problem.place}: {write_json(container[key])[:40]} for {write_json(before)[:40]}")
    return value, tuple(repairs)


def _at(value: Any, place: str) -> tuple[Any, Any] | None:
    """Return the container and the key of the value at a JSON Pointer; None for the root and for a missing value."""
    parts = [unescape(part) for part in place.split("/")[1:]]
    if not parts:
        return None
    for part in parts[:-1]:
        value = child(value, part)
    if child(value, parts[-1]) is MISSING:
        return None
    return value, int(parts[-1]) if isinstance(value, list) else parts[-1]


def _readings(value: Any, names: Mapping[str, set[str]]) -> Iterator[Any]:
    """Yield the values that may replace a scalar. `names` is the result of `_names`."""
    if isinstance(value, str):
        text = value.strip()
        yield from names.get(text.casefold(), set()) - {value}
        word = _WORDS.get(text, text.lower())
        if word in ("true", "false", "null") or _NUMBER.fullmatch(text):
            yield loads(word)
    elif value is None or isinstance(value, (bool, int, float)):
        yield write_json(value)


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,3})?")


def _names(schema: Any) -> dict[str, set[str]]:
    """Return the strings in `enum` and `const` of a schema.

    The key is the case-folded string without spaces around it.
    """
    found: dict[str, set[str]] = {}
    todo, seen = [schema], 0
    while todo and seen < MAX_NAMES:
        one = todo.pop()
        seen += 1
        if isinstance(one, Mapping):
            values = one.get("enum")
            for name in [*(values if isinstance(values, list) else ()), one.get("const")]:
                if isinstance(name, str):
                    found.setdefault(name.strip().casefold(), set()).add(name)
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return found
