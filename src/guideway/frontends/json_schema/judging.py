"""Whether a schema allows a text, however it is written, and where it does not: in time linear in the text.

That items must all be different is not asked of the automaton, which would have to carry along what every item was.
Arrays in which items repeat are found in the text; the automaton then reads it once more, with another bracket where
such an array begins: one that arrays of different items do not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from guideway.errors import InvalidTextError, UnsatisfiableError
from guideway.grammar.nodes import Alternative, Array, Grammar
from guideway.grammar.recognizer import END, byte_automaton
from guideway.jsontext.pointer import pointer

if TYPE_CHECKING:
    from guideway._kernel import Automaton

__all__ = ["Judge"]

_TOKEN = re.compile(r'[ \t\r\n]*([{}\[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+)')
_REPEATING = "\x01"  # which stands in no JSON text
_SHOWN = 60


class Judge:
    """Of the JSON texts that a grammar derives.

    `exact`: whether that is every text of every value. Raises what `compile` does, but for `UnsatisfiableError`: such a
    grammar allows nothing.
    """

    def __init__(self, grammar: Grammar, exact: bool) -> None:
        self._apart = exact and any(isinstance(node, Array) and node.unique for node in grammar.nodes)
        self._automaton: Automaton | None = None
        with suppress(UnsatisfiableError):
            self._automaton = byte_automaton(_told_apart(grammar) if self._apart else grammar)

    def check(self, text: str) -> None:
        """Of a text that is JSON: `InvalidTextError` says where its value is not allowed."""
        at = self._refused_at(text)
        if at is not None:
            raise self._problem(text, at)
        repeating = dict(_repeating(text)) if self._apart else {}
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
        """The first character that cannot be taken, or the length of a text that cannot end there; None: it fits."""
        if self._automaton is None:
            return 0
        data = text.encode("utf-8", "surrogatepass")
        taken = int(self._automaton.matcher().validate([*data, END]))
        return None if taken > len(data) else len(data[:taken].decode("utf-8", "ignore"))

    def _problem(self, text: str, at: int) -> InvalidTextError:
        """What is wrong with a text whose character there cannot be taken."""
        here = before = None
        for here in _tokens(text):
            if here.end > at:
                break
            before = here
        scalar = before is not None and before.end == at and before.text[0] in "-0123456789"
        if before is not None and (here is before or (scalar and self._refused_at(text[:at] + " ") == at)):
            here = before  # a number that could have gone on
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
        """A shortest end of the text from there on, in words."""
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


def _told_apart(grammar: Grammar) -> Grammar:
    """The same without `unique`; arrays that are not may also begin with the bracket of those in which items repeat."""
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


class _Token(NamedTuple):
    """A piece of a JSON text. `key`: whether it is one."""

    start: int
    end: int
    text: str
    key: bool


def _tokens(text: str) -> Iterator[_Token]:
    """The pieces of a text that is JSON."""
    opened: list[bool] = []  # whether it is an object
    last = ""
    for found in _TOKEN.finditer(text):
        piece, (start, end) = found[1], found.span(1)
        yield _Token(start, end, piece, bool(opened) and opened[-1] and last in ("{", ",") and piece not in "}]")
        if piece in "{[":
            opened.append(piece == "{")
        elif piece in "}]":
            opened.pop()
        last = piece


def _pointer_at(text: str, at: int) -> str:
    """The JSON Pointer of the value that begins or ends with the piece there; of a comma, that of what it stands in."""
    path: list[str | int] = []  # in each of the open arrays and objects
    for token in _tokens(text):
        if token.key:
            path[-1] = json.loads(token.text)
        elif token.text in "}]":
            path.pop()
        if token.end > at:
            return pointer("", *(path[:-1] if token.text == "," else path))
        if token.text in "{[":
            path.append(0)
        elif token.text == "," and isinstance(path[-1], int):
            path[-1] += 1
    return ""


def _repeating(text: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Where arrays begin in which an item comes again, and the numbers of two equal ones.

    Every value gets a number that only its equals share: scalars by what they are, others by the numbers inside.
    """
    numbers: dict[Any, int] = {}
    opened: list[tuple[int, list[Any]]] = []  # where it begins, and what is in it
    key: str | None = None
    keys: list[str | None] = []  # of what is open
    for token in _tokens(text):
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
                yield start, _twins(inside)
            identity: object = (piece, tuple(inside if piece == "]" else sorted(inside)))
        else:
            identity = _scalar(piece)
        number = numbers.setdefault(identity, len(numbers))
        if opened:
            opened[-1][1].append(number if key is None else (key, number))
        key = None


def _twins(items: list[int]) -> tuple[int, int]:
    """The places of the first item that comes again."""
    seen: dict[int, int] = {}
    for at, one in enumerate(items):
        if seen.setdefault(one, at) < at:
            return seen[one], at
    return 0, 0


def _scalar(piece: str) -> object:
    """What equal scalars share: of numbers the sign, the digits without zeros around them, and where they stand."""
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
