"""Validates a text against a schema, in any spelling, and locates the first violation.

If the grammar allows every spelling, the automaton does not check `uniqueItems`, because it would need to store all
items. Instead, `Validator` finds the arrays with equal items in the text. If there are any, the automaton reads the
text again, with a special character in place of the opening brackets of these arrays. Arrays whose items must be unique
do not accept this character.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from guideway.arguments import short_repr
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

    Args:
        grammar: The grammar of a schema. If it is unsatisfiable, every text is refused.
        exact: Whether the grammar derives every spelling of every allowed value. Only then is `uniqueItems` checked in
            the text; otherwise the automaton checks it. If it is False, other spellings are refused.

    Raises the errors of `compile`, except `UnsatisfiableError`.
    """

    def __init__(self, grammar: Grammar, exact: bool) -> None:
        self._exact = exact
        self._checks_unique = exact and any(isinstance(node, Array) and node.unique for node in grammar.nodes)
        self._automaton: Automaton | None = None
        with suppress(UnsatisfiableError):
            self._automaton = byte_automaton(_marking_duplicates(grammar) if self._checks_unique else grammar)

    def check(self, text: str) -> None:
        """Validate a text that is JSON.

        Raises:
            InvalidTextError: The schema does not allow the value. The error has the location of the violation.
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
        """Return the index of the first character that is rejected; None: the text is valid.

        For a text that is valid so far but incomplete, the index is the length of the text.
        """
        if self._automaton is None:
            return 0
        data = text.encode("utf-8", "surrogatepass")
        taken = int(self._automaton.matcher().validate([*data, END]))
        return None if taken > len(data) else len(data[:taken].decode("utf-8", "ignore"))

    def _problem(self, text: str, at: int) -> InvalidTextError:
        """Return the error for a text whose character at the index `at` is rejected."""
        if not self._exact and self._automaton is not None:
            return self._unexpected(text, at)
        here = before = None
        for here in tokens(text):
            if here.end > at:
                break
            before = here
        scalar = before is not None and before.end == at and before.text[0] in "-0123456789"
        if before is not None and (here is before or (scalar and self._refused_at(text[:at] + " ") == at)):
            here = before  # a number that is not allowed: the schema allows only longer numbers that begin with it
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

    def _unexpected(self, text: str, at: int) -> InvalidTextError:
        """Return the error of a grammar that is not exact: the value or only its spelling can be wrong at the index."""
        what = "it cannot end here" if at == len(text) else f"{text[at]!r} is not allowed here"
        note = "the schema is too large for other spellings (white space, order of keys, escapes, numbers)"
        return _invalid(text, at, f"{what}{self._instead(text, at)}; {note}")

    def _instead(self, text: str, at: int) -> str:
        """Return the end of an error message: a shortest completion of `text[:at]`; "" if no text fits the schema."""
        if self._automaton is None:
            return ""
        matcher = self._automaton.matcher()
        for byte in text[:at].encode("utf-8"):
            matcher.advance(byte)
        rest = bytes(matcher.completion()).decode("utf-8", "replace").replace(_REPEATING, "[")
        if not rest:
            return "; it could end here"
        return f"; it could go on with {rest if len(rest) <= _SHOWN else rest[:_SHOWN] + '…'}"


def _invalid(text: str, at: int, what: str) -> InvalidTextError:
    place = _pointer_at(text, at)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return InvalidTextError(
        f"at {short_repr(place, 400)}, line {line}, column {column}: {what}", place=place, text=text
    )


def _marking_duplicates(grammar: Grammar) -> Grammar:
    """Return a grammar without `unique`, in which `_REPEATING` marks the arrays with equal items.

    Each array of the grammar that is not `unique` also accepts `_REPEATING` as its opening bracket.
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
    """Return the JSON Pointer of the token at the index `at`: of its value, or for a comma of the array or object.

    "" if the index is after the last token.
    """
    for token, path in located(text):
        if token.end > at:
            return pointer("", *(path[:-1] if token.kind == "," else path))
    return ""


def _arrays_with_duplicates(text: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield, for each array with equal items, its offset in the text and the indices of two equal items.

    Every value gets a number that only equal values share. The number of an array or object depends on the numbers of
    its items or entries.
    """
    numbers: dict[Any, int] = {}
    opened: list[tuple[int, list[Any]]] = []  # for each open array or object: its offset, and its items or entries
    key: str | None = None
    keys: list[str | None] = []  # for each open array or object: its key in the object that contains it; None: no key
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
    """Return the indices of the first two items that are equal. There must be equal items."""
    seen: dict[int, int] = {}
    for at, one in enumerate(items):
        if seen.setdefault(one, at) < at:
            return seen[one], at
    return 0, 0


def _scalar(piece: str) -> object:
    """Return a value that is the same for all spellings of equal scalars, and differs for unequal scalars."""
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
