"""Where the values of a record occur in its source text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from guideway.caching import cached
from guideway.errors import ConstraintError
from guideway.grammar.substrings import Source, source_of
from guideway.jsontext.pointer import pointer
from guideway.jsontext.tokens import located

__all__ = ["MAX_SPANS", "Span", "spans_of"]

MAX_SPANS = 100
"""The maximum number of spans of one value."""


class Span(NamedTuple):
    """A range of characters of the source text: `source_text[start:end]`.

    Attributes:
        start: The index of the first character.
        end: The index after the last character.
    """

    start: int
    end: int


def spans_of(text: str, source_text: str, sources: Iterable[Source] = ()) -> dict[str, tuple[Span, ...]]:
    """Return, for each string and number of a JSON text that occurs in a source, where it occurs.

    Args:
        text: The JSON text. Of a text that is cut, an unfinished string at the end has no spans.
        source_text: The source.
        sources: The sources of a verbatim constraint. Strings that are not found in `source_text` are searched for in
            them.

    Returns:
        By JSON Pointer: at most `MAX_SPANS` ranges from left to right. They begin and end at word boundaries, unless
        the constraint says otherwise. Values that do not occur, and empty strings, have no entry.
    """
    found: dict[str, tuple[Span, ...]] = {}
    known: dict[str, tuple[Span, ...]] = {}
    ways = [_plain(source_text), *sources]
    try:
        for token, path in located(text):
            if token.kind not in ("string", "number"):
                continue
            value = json.loads(token.text) if token.kind == "string" else token.text
            if token.text not in known:
                some = ways if token.kind == "string" else ways[:1]
                places = next(filter(None, (way.spans(value, MAX_SPANS) for way in some)), [])
                known[token.text] = tuple(Span(*place) for place in places)
            if known[token.text]:
                found[pointer("", *path)] = known[token.text]
    except (ValueError, ConstraintError):  # the text ends here, because it was cut
        pass
    return found


@cached(8, characters=1 << 22, size=len)
def _plain(text: str) -> Source:
    return source_of(text)
