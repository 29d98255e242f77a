"""How the parts of a pattern combine, anchors included.

`^` and `$` match no character; whether they hold depends on what lies around them. So a part of a pattern (a
`Piece`) is not one language but one per surrounding: what lies before it (nothing, or something) and after it
(nothing, exactly one newline, or something else; the newline is for Python's `$`). A part without anchors has the
same language in all six. Concatenation looks at which surroundings the two halves give each other. Anchors can only
be helped by less text around them, so a language never shrinks from INSIDE over NEWLINE to END, nor from INSIDE to
START; that is why taking the union of the cases below is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from guideway.errors import LimitExceeded
from guideway.grammar.regular import ANY_TEXT, EMPTY, NEVER, Cat, Chars, Either, Literals, Regular, Repeat

from .tables import Ranges, contains

__all__ = ["MAX_COPIES", "MAX_SIZE", "Piece", "Pieces"]

START, BEFORE_INSIDE = 0, 1
END, NEWLINE, AFTER_INSIDE = 0, 1, 2
CONTEXTS = tuple((before, after) for before in (START, BEFORE_INSIDE) for after in (END, NEWLINE, AFTER_INSIDE))

MAX_COPIES = 64
"""How often a repeated part that holds anchors is written out."""

MAX_SIZE = 200_000
"""How many nodes the languages of a part with anchors may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The languages of a part by surrounding, and whether each holds the empty text, and a lone newline."""

    languages: tuple[Regular, ...]
    empty: tuple[bool, ...]
    newline: tuple[bool, ...]

    @property
    def plain(self) -> bool:
        """No anchor is felt: one language, whatever lies around it."""
        return all(language is self.languages[0] for language in self.languages)

    def at(self, before: int, after: int) -> Regular:
        """The language in one surrounding."""
        return self.languages[before * 3 + after]

    def has_empty(self, before: int, after: int) -> bool:
        """Whether the part matches nothing there."""
        return self.empty[before * 3 + after]

    def has_newline(self, before: int, after: int) -> bool:
        """Whether the part matches a lone newline there."""
        return self.newline[before * 3 + after]


def _plain(language: Regular, empty: bool, newline: bool) -> Piece:
    return Piece((language,) * 6, (empty,) * 6, (newline,) * 6)


def _anchor(holds: Callable[[int, int], bool]) -> Piece:
    held = tuple(holds(before, after) for before, after in CONTEXTS)
    return Piece(tuple(EMPTY if h else NEVER for h in held), held, (False,) * 6)


NOTHING = _plain(EMPTY, True, False)
ANYTHING = _plain(ANY_TEXT, True, True)
AT_START = _anchor(lambda before, _: before == START)
AT_END = _anchor(lambda _, after: after == END)
AT_END_OR_LAST_NEWLINE = _anchor(lambda _, after: after != AFTER_INSIDE)


class Pieces:
    """Makes pieces out of pieces, and keeps count of how large their languages get."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[Regular, int]] = {}  # by identity; the object is kept so that its id stays its own

    def char(self, ranges: Ranges) -> Piece:
        """One character."""
        kept = tuple(r for r in ranges if not 0xD800 <= r[0] <= r[1] <= 0xDFFF)
        if not kept:
            return _plain(NEVER, False, False)
        newline = contains(kept, 0x0A)
        if len(kept) == 1 and kept[0][0] == kept[0][1]:
            return _plain(Literals((chr(kept[0][0]),)), False, newline)
        return _plain(Chars(kept), False, newline)

    def sequence(self, parts: Sequence[Piece]) -> Piece:
        """One after the other."""
        folded: list[Piece] = []
        run: list[Piece] = []
        for part in parts:
            if part.plain:
                run.append(part)
            else:
                folded += ([self._plain_sequence(run)] if run else []) + [part]
                run = []
        if run or not folded:
            folded.append(self._plain_sequence(run))
        made = folded[0]
        for part in folded[1:]:
            made = self._pair(made, part)
        return made

    def choice(self, parts: Sequence[Piece]) -> Piece:
        """Any of the parts."""
        if len(parts) == 1:
            return parts[0]
        made = _Shared(self._either)
        return Piece(
            tuple(made(*(part.languages[i] for part in parts)) for i in range(6)),
            tuple(any(part.empty[i] for part in parts) for i in range(6)),
            tuple(any(part.newline[i] for part in parts) for i in range(6)),
        )

    def repeat(self, part: Piece, minimum: int, maximum: int | None) -> Piece | None:
        """The part `minimum` to `maximum` times; None where anchors in it would need too many copies."""
        if maximum == 0:
            return NOTHING
        if (minimum, maximum) == (1, 1):
            return part
        if part.plain:
            once = part.newline[0] and (minimum <= 1 or part.empty[0])
            language = part.languages[0]
            made = NEVER if language is NEVER and minimum else Repeat(language, minimum, maximum)
            return _plain(self._grown(made, [language]), minimum == 0 or part.empty[0], once)
        if max(minimum, maximum or 0) > MAX_COPIES:
            return None
        if maximum is None:
            return self.sequence([*[part] * minimum, self._star(part)])
        tail = NOTHING
        for _ in range(maximum - minimum):
            tail = self.choice([NOTHING, self.sequence([part, tail])])
        return self.sequence([*[part] * minimum, tail])

    def _plain_sequence(self, parts: Sequence[Piece]) -> Piece:
        empties = sum(part.empty[0] for part in parts)
        newline = any(part.newline[0] and empties - part.empty[0] == len(parts) - 1 for part in parts)
        return _plain(self._join([part.languages[0] for part in parts]), empties == len(parts), newline)

    def _pair(self, left: Piece, right: Piece) -> Piece:
        made = _Shared(self._either)
        joined = _Shared(lambda *parts: self._join(parts))
        languages = [made(*_pair_cases(left, right, before, after, joined)) for before, after in CONTEXTS]
        empty = [a and b for a, b in zip(left.empty, right.empty, strict=True)]
        newline = [
            (left.has_newline(before, after) and right.has_empty(BEFORE_INSIDE, after))
            or (left.has_empty(before, _before_newline(after)) and right.has_newline(before, after))
            for before, after in CONTEXTS
        ]
        return Piece(tuple(languages), tuple(empty), tuple(newline))

    def _star(self, part: Piece) -> Piece:
        """Any number of times: iterations that match nothing add nothing, so only the others are strung together."""
        made = _Shared(self._either)
        joined = _Shared(lambda *parts: self._join(parts))
        middle = Repeat(part.at(BEFORE_INSIDE, AFTER_INSIDE), 0, None)
        newline = Literals(("\n",))
        languages = []
        for before, after in CONTEXTS:
            first = joined(part.at(before, AFTER_INSIDE), middle)
            cases = [EMPTY, part.at(before, after), joined(first, part.at(BEFORE_INSIDE, after))]
            if after == END and part.has_newline(BEFORE_INSIDE, END):
                cases.append(joined(part.at(before, NEWLINE), newline))
                cases.append(joined(first, part.at(BEFORE_INSIDE, NEWLINE), newline))
            languages.append(made(*cases))
        return Piece(tuple(languages), (True,) * 6, part.newline)

    def _join(self, parts: Sequence[Regular]) -> Regular:
        flat: list[Regular] = []
        word: list[str] = []
        for part in parts:
            if part is NEVER:
                return NEVER
            for one in part.parts if isinstance(part, Cat) else (part,):
                if isinstance(one, Literals) and len(one.texts) == 1:
                    word.append(one.texts[0])
                    continue
                flat += [Literals(("".join(word),))] if word else []
                word = []
                flat.append(one)
        flat += [Literals(("".join(word),))] if word else []
        if len(flat) == 1:
            return flat[0]
        return self._grown(Cat(tuple(flat)), flat) if flat else EMPTY

    def _either(self, *parts: Regular) -> Regular:
        flat: list[Regular] = []
        for part in parts:
            flat += part.parts if isinstance(part, Either) else (part,)
        kept = list({id(part): part for part in flat}.values())
        texts = [text for part in kept if isinstance(part, Literals) for text in part.texts]
        if len(kept) > 1 and texts:
            others: list[Regular] = [part for part in kept if not isinstance(part, Literals)]
            kept = [Literals(tuple(dict.fromkeys(texts))), *others]
        if len(kept) == 1:
            return kept[0]
        return self._grown(Either(tuple(kept)), kept) if kept else NEVER

    def _grown(self, made: Regular, parts: Sequence[Regular]) -> Regular:
        size = 1 + sum(self._sizes[id(part)][1] if id(part) in self._sizes else 1 for part in parts)
        if size > MAX_SIZE:
            raise LimitExceeded(f"the pattern is too large: more than {MAX_SIZE} parts")
        self._sizes[id(made)] = (made, size)
        return made


class _Shared:
    """A function of languages whose result is one object for the same (identical) arguments."""

    def __init__(self, function: Callable[..., Regular]) -> None:
        self._function = function
        self._made: dict[tuple[int, ...], tuple[tuple[Regular, ...], Regular]] = {}

    def __call__(self, *parts: Regular) -> Regular:
        key = tuple(id(part) for part in parts)
        if key not in self._made:
            self._made[key] = (parts, self._function(*parts))
        return self._made[key][1]


def _before_newline(after: int) -> int:
    """What lies after a part that is followed by a lone newline, given what follows that."""
    return NEWLINE if after == END else AFTER_INSIDE


def _pair_cases(left: Piece, right: Piece, before: int, after: int, joined: Callable[..., Regular]) -> list[Regular]:
    """The texts of `left` + `right` in one surrounding, case by case; cases that another covers are left out."""
    inner = left.at(before, AFTER_INSIDE)
    cases = [joined(inner, right.at(BEFORE_INSIDE, after))]
    if after == END and right.has_newline(BEFORE_INSIDE, END) and left.at(before, NEWLINE) is not inner:
        cases.append(joined(left.at(before, NEWLINE), Literals(("\n",))))
    if right.has_empty(BEFORE_INSIDE, after) and left.at(before, after) is not inner:
        cases.append(left.at(before, after))
    left_empty = left.has_empty(before, AFTER_INSIDE)
    if left_empty and right.at(before, after) is not right.at(BEFORE_INSIDE, after):
        cases.append(right.at(before, after))
    elif not left_empty and left.has_empty(before, _before_newline(after)) and right.has_newline(before, after):
        cases.append(Literals(("\n",)))
    if left.has_empty(before, after) and right.has_empty(before, after):
        cases.append(EMPTY)
    return cases
