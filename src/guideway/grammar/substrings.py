"""The substrings of a text as a regular language.

Options limit the substrings to whole words, allow letters in either case, and normalise white space.

Letters, digits, combining marks, connector punctuation such as `_` and regional indicators (flags) form words. Most
other characters are words by themselves, and so are letters and digits of scripts without spaces between words (Han,
kana, Thai, …). Control characters count as white space. With `word_boundaries`, a substring begins and ends at word
boundaries, but not with white space. There is no boundary between a character other than white space and its combining
marks or joiners (U+200C, U+200D), after a joiner, or inside an emoji of several code points.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from guideway.caching import cached
from guideway.errors import LimitExceededError
from guideway.grammar.regular import Chars, Dfa, Substrings

__all__ = ["Source", "graph_of", "source_of"]

MAX_SOURCE = 8_000_000
"""The maximum number of characters of a source."""

MAX_GRAPH = 2_000
"""The maximum number of characters of a text for `graph_of`."""

_SPACE, _WORD, _ALONE, _MARK, _JOINER, _EXTENDER = range(6)
_OF_CATEGORY = {
    **dict.fromkeys(("Cc", "Zl", "Zp", "Zs"), _SPACE),
    **dict.fromkeys(("Mc", "Me", "Mn"), _MARK),
    **dict.fromkeys(("Ll", "Lm", "Lo", "Lt", "Lu", "Nd", "Nl", "No", "Pc"), _WORD),
    **dict.fromkeys(("Cf", "Cn", "Co", "Cs", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So"), _ALONE),
}


def _ranges(*bounds: tuple[int, int]) -> npt.NDArray[np.uint32]:
    """Return one ascending array of code points: for each range its first code point, and the one after its last."""
    return np.array([(first, last + 1) for first, last in bounds], np.uint32).ravel()


_NO_SPACES = _ranges(
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0x2E80, 0x31FF)),
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x1B000, 0x1B16F)),
    (0x20000, 0x3FFFF),
)
"""Characters of scripts that are written without spaces between words."""

_JOINERS = _ranges((0x200C, 0x200D))
_EXTENDERS = _ranges((0xFE00, 0xFE0F), (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F), (0xE0100, 0xE01EF))
"""Variation selectors, skin tones, and tag characters, with which flags of regions such as Scotland are written."""

_REGIONS = _ranges((0x1F1E6, 0x1F1FF))
"""Regional indicators. Two of them are displayed as a flag."""


@dataclass(frozen=True)
class Source:
    """A text whose substrings a value may repeat.

    Attributes:
        text: The text.
        language: The language of its substrings.
        written: The text of `language`: `text` with white space and case normalised, if that was requested.
        places: How indices in `written` are mapped to indices in `text`, as `_spaced` returns it; None: they are equal.
    """

    text: str
    language: Substrings
    written: str
    places: tuple[int, ...] | None

    def spans(self, value: str, limit: int) -> list[tuple[int, int]]:
        """Return the first ranges of characters (start, end) of `text` at which a value occurs as a text of `language`.

        Args:
            value: The value.
            limit: The maximum number of ranges.
        """
        wanted = "".join(_folded(char) for char in value) if self.language.variants else value
        found: list[tuple[int, int]] = []
        begins, ends = self.language.begins, self.language.ends
        at = self.written.find(wanted) if wanted else -1
        while at >= 0 and len(found) < limit:
            end = at + len(wanted)
            if begins[at] and ends[end]:
                found.append((self._place(at), self._place(end - 1) + 1))
            following = begins.find(1, at + 1)
            at = -1 if following < 0 else self.written.find(wanted, following)
        return found

    def _place(self, at: int) -> int:
        """Return the index in `text` of the character with the index `at` in `written`."""
        if self.places is None:
            return at
        run = bisect_right(self.places, at * 2**32 + (2**32 - 1)) - 1
        return at if run < 0 else at + self.places[run] % 2**32


def source_of(
    text: str,
    *,
    word_boundaries: bool = True,
    ignore_case: bool = False,
    normalize_whitespace: bool = False,
    allow_empty: bool = False,
) -> Source:
    """Return a text as a source of substrings.

    Args:
        text: The text. It must have no lone surrogates.
        word_boundaries: Whether a substring must begin and end at word boundaries.
        ignore_case: Whether letters may be written in either case.
        normalize_whitespace: Whether each run of white space of the text is written as one space.
        allow_empty: Whether the empty text is one of the substrings.

    Raises:
        LimitExceededError: The text has more than `MAX_SOURCE` characters.
    """
    if len(text) > MAX_SOURCE:
        raise LimitExceededError(f"a source text has at most {MAX_SOURCE:,} characters, got {len(text):,}")
    written, places = _spaced(text) if normalize_whitespace else (text, None)
    # of the text before case folding, which makes a letter of the combining mark U+0345
    begins, ends = _boundaries(written) if word_boundaries else (b"\1" * len(written), b"\1" * (len(written) + 1))
    variants: tuple[tuple[int, int], ...] = ()
    if ignore_case:
        known = set(written)
        written = written.translate({ord(char): _folded(char) for char in known})
        variants = tuple(sorted((other, ord(char)) for char in set(written) for other in _variants().get(char, ())))
    return Source(text, Substrings(written, begins, ends, variants, allow_empty), written, places)


def _spaced(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text with each run of white space as one space, and how indices are shifted by this.

    The second result has a number for each run of more than one character: `index * 2**32 + shift`. `index` is that of
    the next character in the result, and `shift` is to be added to indices from there on.
    """
    parts, places = [], []
    last = size = shift = 0
    for run in re.finditer(r"\s+", text):
        parts += [text[last : run.start()], " "]
        size += run.start() - last + 1
        last = run.end()
        if run.end() - run.start() > 1:
            shift += run.end() - run.start() - 1
            places.append(size * 2**32 + shift)
    return "".join([*parts, text[last:]]), tuple(places)


def _folded(char: str) -> str:
    for made in (char.casefold(), char.lower()):
        if len(made) == 1:
            return made
    return char


@cached(1)
def _variants() -> dict[str, tuple[int, ...]]:
    """Return, for each case-folded character, the other characters that are folded to it."""
    found: dict[str, tuple[int, ...]] = {}
    for code in (*range(0xD800), *range(0xE000, 0x1F000)):
        char = chr(code)
        folded = _folded(char)
        if folded != char:
            found[folded] = (*found.get(folded, ()), code)
    return found


def _codes(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")


def _classes(text: str) -> npt.NDArray[np.uint8]:
    """Return the class of each character of a text, such as `_WORD`."""
    every = _codes(text)
    table = np.zeros(int(every.max(initial=0)) + 1, np.uint8)
    table[every] = 1
    codes = np.flatnonzero(table).astype("<u4")
    categories = map(unicodedata.category, codes.tobytes().decode("utf-32-le"))
    kinds = np.fromiter(map(_OF_CATEGORY.__getitem__, categories), np.uint8, len(codes))

    def within(ranges: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.searchsorted(ranges, codes, side="right") % 2 == 1
        return found

    kinds[(kinds == _WORD) & within(_NO_SPACES)] = _ALONE
    for ranges, kind in ((_REGIONS, _WORD), (_EXTENDERS, _EXTENDER), (_JOINERS, _JOINER)):
        kinds[within(ranges)] = kind
    table[codes] = kinds
    return table[every]


def _are_apart(before: int, after: int) -> bool:
    """Return whether there is a word boundary between adjacent characters of these two classes."""
    if after in (_MARK, _JOINER, _EXTENDER) or before == _JOINER:
        return before == _SPACE
    return not (before in (_WORD, _MARK) and after == _WORD)


_APART = np.array([[_are_apart(before, after) for after in range(6)] for before in range(6)])


def _boundaries(text: str) -> tuple[bytes, bytes]:
    """Return the attributes `begins` and `ends` of `Substrings` for word boundaries."""
    kinds = _classes(text)
    apart = np.ones(len(text) + 1, bool)
    if len(text) > 1:
        apart[1:-1] = _APART[kinds[:-1], kinds[1:]]
    begins = apart[:-1] & (kinds != _SPACE)
    ends = apart.copy()
    ends[0] = False
    ends[1:] &= kinds != _SPACE
    return begins.astype(np.uint8).tobytes(), ends.astype(np.uint8).tobytes()


def graph_of(language: Substrings) -> Dfa:
    """Return substrings as a finite automaton, for exports.

    Raises:
        LimitExceededError: The text has more than `MAX_GRAPH` characters.
    """
    text = language.text
    if len(text) > MAX_GRAPH:
        raise LimitExceededError(
            f"substrings are written as an automaton for texts of at most {MAX_GRAPH:,} characters, got {len(text):,}"
        )
    last = max((place for place, flag in enumerate(language.ends) if flag), default=0)
    others: dict[str, list[int]] = {}
    for variant, code in language.variants:
        others.setdefault(chr(code), []).append(variant)
    start = tuple(place for place in range(last) if language.begins[place])
    numbers: dict[tuple[int, ...], int] = {}
    todo = [(start, True)]
    states: list[tuple[bool, tuple[tuple[Chars, int], ...]]] = []
    order: list[tuple[int, ...]] = [start]
    accepting = [language.empty]
    while todo:
        places, is_first = todo.pop(0)
        by_char: dict[str, list[int]] = {}
        for place in places:
            if place < last:
                by_char.setdefault(text[place], []).append(place + 1)
        steps = []
        for char, to in by_char.items():
            key = tuple(to)
            if key not in numbers:
                numbers[key] = len(order)
                order.append(key)
                accepting.append(any(language.ends[place] for place in key))
                todo.append((key, False))
            codes = sorted((ord(char), *others.get(char, ())))
            steps.append((Chars(tuple((code, code) for code in codes)), numbers[key]))
        states.append((accepting[0 if is_first else numbers[places]], tuple(steps)))
    return Dfa(tuple(states))
