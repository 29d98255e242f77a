"""`TextInput`: the arguments of a tool whose only argument is a text that fits a pattern or a grammar."""

from __future__ import annotations

import json
from typing import Any

from guideway.background import checkpoint
from guideway.constraints.base import Constraint
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import UnsupportedError
from guideway.grammar.nodes import Alternative, Grammar, Leaf, Node, Sequence, renumbered
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import (
    JsonEscaped,
    Literals,
    Regular,
    Special,
    distinct,
)

__all__ = ["TextInput"]

_BEFORE, _AFTER = '{"input": "', '"}'


class TextInput(Constraint[dict[str, str]]):
    """The JSON object `{"input": text}`, in this spelling, whose text fits a constraint. The value is the object.

    Args:
        text: The constraint of the text: a pattern or a grammar.

    Raises:
        UnsupportedError: The grammar of the constraint has nodes for JSON objects, arrays or numbers, texts that are
            already escaped for JSON, or special tokens. They are not translated to the inside of a JSON string.
    """

    def __init__(self, text: Constraint[Any]) -> None:
        self.text = text
        inner = text.grammar()
        self._grammar = made = Grammar(ahead=inner.ahead)
        before, after = (made.add(Leaf(Literals((fixed,)))) for fixed in (_BEFORE, _AFTER))
        numbers = range(len(made.nodes), len(made.nodes) + len(inner.nodes))
        for node, place in zip(inner.nodes, inner.places, strict=True):
            checkpoint()
            made.add(Sequence(()) if node is None else renumbered(_escaped(node), numbers), place)
        made.root = made.add(Sequence((before, numbers[inner.root], after)))

    def grammar(self) -> Grammar:
        """Return the grammar of the JSON object."""
        return self._grammar

    def parse(self, text: str) -> dict[str, str]:
        """Return the JSON object if it fits."""
        if not fits(self._grammar, text):
            raise does_not_fit(self._grammar, text, f"does not match {self!r}")
        found: dict[str, str] = json.loads(text)
        return found

    def _content(self) -> object:
        return self.text

    def __repr__(self) -> str:
        return f"TextInput({self.text!r})"


def _escaped(node: Node) -> Node:
    """Return a node whose texts are those of the given node, escaped as in a JSON string."""
    if isinstance(node, Leaf) and _is_plain(node.text):
        return Leaf(JsonEscaped(node.text, "json"))
    if isinstance(node, (Sequence, Alternative)):
        return node
    raise UnsupportedError("the grammar of a text input cannot contain JSON values, special tokens or formats of JSON")


def _is_plain(text: Regular) -> bool:
    """Return whether an expression contains neither `Special` nor `JsonEscaped`."""
    return not any(isinstance(one, (Special, JsonEscaped)) for one in distinct(text))
