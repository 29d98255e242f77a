"""Validates a text against a schema, in any spelling, and locates the first violation.

The time is linear in the text.

The automaton does not check that items are unique, because it would need to store all items. Instead, arrays with
duplicates are found in the text. The automaton then reads the text again, with a special opening bracket for these
arrays. Arrays with unique items do not accept this bracket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from guideway.errors import InvalidTextError, UnsatisfiableError
from guideway.grammar.nodes import Alternative, Array, Grammar
from guideway.grammar.recognizer import END, byte_automaton
from guideway.jsontext.pointer import pointer
from guideway.jsontext.tokens import located, tokens

if TYPE_CHECKING:
    from guideway._kernel import Automaton

__all__ = ["Validator"]

_REPEATING = "\x01"  # a control character, which no JSON text contains
_SHOWN = 60


class Validator:
    """Validates JSON texts against a grammar.

    `exact` says whether the grammar derives every text of every value. The constructor raises the errors of `compile`,
    except `UnsatisfiableError`: such a grammar allows nothing.
    """

    def __init__(self, grammar: Grammar, exact: bool) -> None:
        self._checks_unique = exact and any(isinstance(node, Array) and node.unique for node in grammar.nodes)
        self._automaton: Automaton | None = None
        with suppress(UnsatisfiableError):
            self._automaton = byte_automaton(_marking_duplicates(grammar) if self._checks_unique else grammar)

    def check(self, text: str) -> None:
        """Validate a text that is JSON.

        Raises:
            InvalidTextError: Where the value is not allowed.
        """
        at = self._refused_at(text)
        if at is not None:
            raise self._problem(text, at)
        repeating = dict(_arrays_with_duplicates(text)) if self._checks_unique else {}
        if not repeating:
            return
        marked = list(text)
        for start in repeating:
            marked[start] = _REPEATING
        at = self._refused_at("".join(marked))
        if at is not None:
            start = max(start for start in repeating if start <= at)
            first, second = repeating[start]
            raise _invalid(text, start, f"the items {first} and {second} are equal, where all must differ")

    def _refused_at(self, text: str) -> int | None:
        """The first character that is rejected, or the length of the text if it is incomplete.

        None: the text is valid.
        """
        if self._automaton is None:
            return 0
        data = text.encode("utf-8", "surrogatepass")
        taken = int(self._automaton.matcher().validate([*data, END]))
        return None if taken > len(data) else len(data[:taken].decode("utf-8", "ignore"))

    def _problem(self, text: str, at: int) -> InvalidTextError:
        """Describe the violation at a rejected character."""
        here = before = None
        for here in tokens(text):
            if here.end > at:
                break
            before = here
        scalar = before is not None and before.end == at and before.text[0] in "-0123456789"
        if before is not None and (here is before or (scalar and self._refused_at(text[:at] + " ") == at)):
            here = before  # a number that could continue
        if here is None:
            return _invalid(text, at, "it cannot end here")
        shown = here.text if len(here.text) <= _SHOWN else here.text[:_SHOWN] + "…"
        if here.key:
            what = f"the key {shown} cannot stand here"
        elif here.text in "{[":
            what = f"an {'object' if here.text == '{' else 'array'} is not allowed"
        elif here.text in "}]":
            what = f"the {'object' if here.text == '}' else 'array'} cannot end here" + self._instead(text, here.start)
        elif here.text in ",:":
            what = "nothing more can come" + self._instead(text, here.start)
        else:
            what = f"{shown} is not allowed"
        return _invalid(text, here.start, what)

    def _instead(self, text: str, at: int) -> str:
        """A shortest completion of the text from this offset, as part of an error message."""
        if self._automaton is None:
            return ""
        matcher = self._automaton.matcher()
        for byte in text[:at].encode("utf-8"):
            matcher.advance(byte)
        rest = bytes(matcher.completion()).decode("utf-8", "replace").replace(_REPEATING, "[")
        return f"; it could go on with {rest if len(rest) <= _SHOWN else rest[:_SHOWN] + '…'}"


def _invalid(text: str, at: int, what: str) -> InvalidTextError:
    place = _pointer_at(text, at)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return InvalidTextError(f"at {place!r}, line {line}, column {column}: {what}", place=place, text=text)


def _marking_duplicates(grammar: Grammar) -> Grammar:
    """The grammar without `unique`.

    Arrays without `unique` also accept the special bracket, which marks arrays with duplicates.
    """
    made = Grammar(list(grammar.nodes), list(grammar.places), grammar.root)
    for number, node in enumerate(grammar.nodes):
        if not isinstance(node, Array):
            continue
        plain = replace(node, unique=False)
        if node.unique:
            made.define(number, plain)
            continue
        other = replace(plain, punctuation=replace(node.punctuation, open=_REPEATING))
        place = grammar.places[number]
        made.define(number, Alternative((made.add(plain, place), made.add(other, place))))
    return made


def _pointer_at(text: str, at: int) -> str:
    """The JSON Pointer of the value that begins or ends at the token there. For a comma, that of its container."""
    for token, path in located(text):
        if token.end > at:
            return pointer("", *(path[:-1] if token.kind == "," else path))
    return ""


def _arrays_with_duplicates(text: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """The offsets of arrays with duplicates, and the indices of two equal items.

    Every value gets a number that only equal values share. Scalars are identified by their value, containers by the
    numbers of their parts.
    """
    numbers: dict[Any, int] = {}
    opened: list[tuple[int, list[Any]]] = []  # the offset of each open container, and its parts
    key: str | None = None
    keys: list[str | None] = []  # the key of each open container
    for token in tokens(text):
        piece, start = token.text, token.start
        if piece in ",:":
            continue
        if token.key:
            key = json.loads(piece)
            continue
        if piece in "{[":
            opened.append((start, []))
            keys.append(key)
            key = None
            continue
        if piece in "}]":
            start, inside = opened.pop()
            key = keys.pop()
            if piece == "]" and len(set(inside)) < len(inside):
                yield start, _first_duplicate(inside)
            identity: object = (piece, tuple(inside if piece == "]" else sorted(inside)))
        else:
            identity = _scalar(piece)
        number = numbers.setdefault(identity, len(numbers))
        if opened:
            opened[-1][1].append(number if key is None else (key, number))
        key = None


def _first_duplicate(items: list[int]) -> tuple[int, int]:
    """The index of the first occurrence of a repeated item, and the index of the repetition."""
    seen: dict[int, int] = {}
    for at, one in enumerate(items):
        if seen.setdefault(one, at) < at:
            return seen[one], at
    return 0, 0


def _scalar(piece: str) -> object:
    """A key that equal scalars share. For numbers: the sign, the significant digits, and the exponent."""
    if piece[0] == '"':
        return json.loads(piece)
    if piece[0] not in "-0123456789":
        return (piece,)
    digits, _, exponent = piece.lower().partition("e")
    whole, _, part = digits.lstrip("-").partition(".")
    shown = (whole + part).rstrip("0")
    place = int(Decimal(exponent or "0")) + len(whole) + len(part) - len(shown) - len(part)
    shown = shown.lstrip("0")
    return (piece[0] == "-", shown, place) if shown else ("0",)
