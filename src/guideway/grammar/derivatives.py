"""Deterministic automata of regular expressions over characters, by derivatives (Brzozowski 1964).

`spelled_out` replaces `JsonEscaped` and `Substrings` by expressions over the characters of the written text.
`determinized` returns a `Dfa` that is equivalent to an expression, and so has no intersections and complements. The
states of the automaton are expressions in a normal form.
"""

from __future__ import annotations

from collections.abc import Iterable

from guideway.arguments import short_repr
from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsupportedError
from guideway.grammar.regular import (
    MAX_CODE_POINT,
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Special,
    Spelling,
    Substrings,
    Union,
    distinct,
    outer_parts_of,
    parts_of,
)
from guideway.grammar.substrings import graph_of
from guideway.grammar.work import spend

__all__ = ["MAX_STATES", "Derivatives", "Speller", "determinized", "spelled_out"]

MAX_STATES = 5_000
"""The default maximum number of states of `determinized`."""

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SURROGATES = (0xD800, 0xDFFF)
_CHARACTER_STEPS = 60  # counted for the spellings of a character, which take about 30 microseconds
Ranges = tuple[tuple[int, int], ...]


def _without(ranges: Ranges, low: int, high: int) -> Ranges:
    kept = []
    for first, last in ranges:
        if first < low:
            kept.append((first, min(last, low - 1)))
        if last > high:
            kept.append((max(first, high + 1), last))
    return tuple(one for one in kept if one[0] <= one[1])


def _plain(ranges: Ranges) -> Ranges:
    return _without(ranges, *_SURROGATES)


def _outside(pairs: list[tuple[int, int]]) -> Ranges:
    """Return the characters, without surrogates, that are in none of the ranges. The ranges must be disjoint."""
    kept, at = [], 0
    for low, high in sorted([*pairs, _SURROGATES]):
        if at < low:
            kept.append((at, low - 1))
        at = max(at, high + 1)
    if at <= MAX_CODE_POINT:
        kept.append((at, MAX_CODE_POINT))
    return tuple(kept)


# -- spellings


class Speller:
    """Replaces `JsonEscaped` and `Substrings` by other expressions, as `spelled_out` does.

    Each object is translated once, so the results share parts where the expressions do. In JSON strings, equal
    characters share one result, and so do complements of equal lists of texts, such as the keys of
    `additionalProperties`.
    """

    def __init__(self) -> None:
        # by the spelling of the `JsonEscaped` around an expression, and by its identity: the expression, which is kept
        # alive, and the result
        self._known: dict[Spelling | None, dict[int, tuple[Regular, Regular]]] = {None: {}, "json": {}, "json-any": {}}
        self._characters: dict[tuple[str, Spelling], Regular] = {}
        self._outside: dict[tuple[tuple[str, ...], Spelling], Regular] = {}

    def run(self, expression: Regular, spelling: Spelling | None = None) -> Regular:
        """Return the result of `spelled_out` for an expression, with the same errors.

        Args:
            expression: The expression.
            spelling: The spelling of the `JsonEscaped` around it; None: there is none.
        """
        known = self._known[spelling]
        for one in distinct(expression, outer_parts_of, known):
            if isinstance(one, JsonEscaped):  # contains no other one
                made = self.run(one.part, one.spelling)
            else:
                made = self._spelled(one, [known[id(part)][1] for part in parts_of(one)], spelling)
            known[id(one)] = one, made
        return known[id(expression)][1]

    def _spelled(self, one: Regular, parts: list[Regular], spelling: Spelling | None) -> Regular:
        """Return an expression with the results of its parts. `spelling` is that of the `JsonEscaped` around it."""
        match one:
            case Chars(ranges):
                return Chars(_plain(ranges)) if spelling is None else _characters(_plain(ranges), spelling)
            case Literals(texts):
                if spelling is None:
                    return one
                return Union(tuple(Concat(tuple(self._character(char, spelling) for char in text)) for text in texts))
            case Concat() | Union() | Intersection():
                return type(one)(tuple(parts))
            case Repeat(_, least, most):
                return Repeat(parts[0], least, most)
            case Complement(part):
                return Complement(parts[0]) if spelling is None else self._complement(part, parts[0], spelling)
            case Dfa():
                return one if spelling is None else _of_graph(one, spelling)
            case Substrings():
                graph = graph_of(one)
                return graph if spelling is None else _of_graph(graph, spelling)
            case Special(name):
                raise UnsupportedError(f"the special token {short_repr(name)} is not text, so it cannot be exported")
        raise AssertionError(one)

    def _character(self, char: str, spelling: Spelling) -> Regular:
        key = (char, spelling)
        made = self._characters.get(key)
        if made is None:
            spend(_CHARACTER_STEPS)
            made = self._characters[key] = _characters(((ord(char), ord(char)),), spelling)
        return made

    def _complement(self, part: Regular, spelled: Regular, spelling: Spelling) -> Regular:
        """Return the spellings of the texts that are not in `part`. `spelled`: the spellings of those that are."""
        key = (part.texts, spelling) if isinstance(part, Literals) else None
        made = None if key is None else self._outside.get(key)
        if made is None:
            every = Repeat(_characters(((0, MAX_CODE_POINT),), spelling), 0, None)
            made = Intersection((every, Complement(spelled)))
            if key is not None:
                self._outside[key] = made
        return made


def spelled_out(expression: Regular) -> Regular:
    """Return an equivalent expression without `JsonEscaped` and `Substrings`, over the characters of the written text.

    Raises:
        UnsupportedError: The expression has a special token, which is not text.
        LimitExceededError: The text of a `Substrings` is too long.
    """
    return Speller().run(expression)


def _of_graph(graph: Dfa, spelling: Spelling) -> Regular:
    """Return an automaton of the texts of `graph` as written in a JSON string.

    Transitions by escapes get states between their characters.
    """
    states: list[list[tuple[Chars, int]]] = [[] for _ in graph.states]
    for number, (_, steps) in enumerate(graph.states):
        for chars, to in steps:
            for text in _paths(_characters(_plain(chars.ranges), spelling)):
                at = number
                for char in text[:-1]:
                    states.append([])
                    states[at].append((char, len(states) - 1))
                    at = len(states) - 1
                states[at].append((text[-1], to))
    accepting = [accepts for accepts, _ in graph.states] + [False] * (len(states) - len(graph.states))
    return Dfa(tuple((accepts, tuple(steps)) for accepts, steps in zip(accepting, states, strict=True)))


def _paths(one: Regular) -> list[list[Chars]]:
    """Return the alternatives of an expression that `_characters` returned, each as a sequence of classes."""
    match one:
        case Chars():
            return [[one]]
        case Literals(texts):
            return [[Chars(((ord(char), ord(char)),)) for char in text] for text in texts]
        case Concat(parts):
            found: list[list[Chars]] = [[]]
            for part in parts:
                found = [before + after for before in found for after in _paths(part)]
            return found
        case Union(parts):
            return [path for part in parts for path in _paths(part)]
    raise AssertionError(one)


def _characters(ranges: Ranges, spelling: Spelling) -> Regular:
    """Return the language of the spellings of the characters of a class in a JSON string."""
    raw = _without(_without(_without(ranges, 0, 0x1F), 0x22, 0x22), 0x5C, 0x5C)
    parts: list[Regular] = [Chars(raw)] if raw else []
    for char, short in _SHORT.items():
        if any(low <= ord(char) <= high for low, high in ranges):
            parts.append(Literals((short,)))
    if spelling == "json":
        others = [code for code in range(0x20) if chr(code) not in _SHORT]
        found = [code for code in others if any(low <= code <= high for low, high in ranges)]
        parts += [Literals((f"\\u{code:04x}",)) for code in found]
        return Union(tuple(parts))
    if any(low <= 0x2F <= high for low, high in ranges):
        parts.append(Literals(("\\/",)))
    for low, high in ranges:
        if low <= 0xFFFF:
            parts.append(Concat((Literals(("\\u",)), _hex(low, min(high, 0xFFFF), 4))))
        if high > 0xFFFF:
            parts += _pairs(max(low, 0x10000) - 0x10000, high - 0x10000)
    return Union(tuple(parts))


def _pairs(low: int, high: int) -> list[Regular]:
    """Return the escaped surrogate pairs of the code points `0x10000 + low` to `0x10000 + high`."""
    made: list[Regular] = []
    first, last = low >> 10, high >> 10
    blocks = [(first, first, low & 0x3FF, high & 0x3FF if first == last else 0x3FF)]
    if last > first:
        if last > first + 1:
            blocks.append((first + 1, last - 1, 0, 0x3FF))
        blocks.append((last, last, 0, high & 0x3FF))
    for top, end, lower, upper in blocks:
        lead, trail = _hex(0xD800 + top, 0xD800 + end, 4), _hex(0xDC00 + lower, 0xDC00 + upper, 4)
        made.append(Concat((Literals(("\\u",)), lead, Literals(("\\u",)), trail)))
    return made


def _digits(low: int, high: int) -> Chars:
    """Return the class of the hexadecimal digits from `low` to `high`, in upper and lower case."""
    ranges = []
    if low <= 9:
        ranges.append((0x30 + low, 0x30 + min(high, 9)))
    if high >= 10:
        first = max(low, 10) - 10
        ranges += [(0x41 + first, 0x41 + high - 10), (0x61 + first, 0x61 + high - 10)]
    return Chars(tuple(ranges))


def _hex(low: int, high: int, width: int) -> Regular:
    """Return the numbers from `low` to `high` as `width` hexadecimal digits."""
    if width == 1:
        return _digits(low, high)
    unit = 16 ** (width - 1)
    first, last = low // unit, high // unit
    if first == last:
        return Concat((_digits(first, first), _hex(low % unit, high % unit, width - 1)))
    parts: list[Regular] = []
    if low % unit:
        parts.append(Concat((_digits(first, first), _hex(low % unit, unit - 1, width - 1))))
        first += 1
    tail: list[Regular] = []
    if high % unit != unit - 1:
        tail.append(Concat((_digits(last, last), _hex(0, high % unit, width - 1))))
        last -= 1
    if first <= last:
        parts.append(Concat((_digits(first, last), *[_digits(0, 15)] * (width - 1))))
    return Union(tuple(parts + tail))


# -- derivatives


class Derivatives:
    """Expressions in normal form, and their derivatives. An expression is a number, equal for equal expressions.

    Args:
        limit: If there are more than 40 * `limit` expressions, a method raises `LimitExceededError`.

    Attributes:
        never: The empty language.
        empty: The empty text.
        all: All texts.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: list[tuple[object, ...]] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._nullable: list[bool] = []
        self._derived: dict[int, list[tuple[Ranges, int]]] = {}
        self._added: dict[int, tuple[Regular, int]] = {}  # by identity: the expression, which is kept alive, its number
        self.never = self._new(("either", ()), False)
        self.empty = self._new(("empty",), True)
        self.all = self._new(("not", self.never), True)

    def _new(self, key: tuple[object, ...], nullable: bool) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
            self._nullable.append(nullable)
            if number > 40 * self._limit:
                raise LimitExceededError(
                    f"the states of the automaton of a regular expression need more than {40 * self._limit:,} expressions"
                )
        return number

    def nullable(self, number: int) -> bool:
        """Return whether the empty text is in an expression."""
        return self._nullable[number]

    def either(self, parts: Iterable[int]) -> int:
        found: set[int] = set()
        for part in parts:
            key = self._keys[part]
            found.update(key[1] if key[0] == "either" else (part,))  # type: ignore[arg-type]  # numbers
        if self.all in found:
            return self.all
        return (
            found.pop()
            if len(found) == 1
            else self._new(("either", tuple(sorted(found))), any(map(self.nullable, found)))
        )

    def both(self, parts: Iterable[int]) -> int:
        found: set[int] = set()
        for part in parts:
            key = self._keys[part]
            found.update(key[1] if key[0] == "both" else (part,))  # type: ignore[arg-type]  # numbers
        found.discard(self.all)
        if self.never in found:
            return self.never
        if len(found) < 2:
            return found.pop() if found else self.all
        return self._new(("both", tuple(sorted(found))), all(map(self.nullable, found)))

    def invert(self, part: int) -> int:
        key = self._keys[part]
        if key[0] == "not":
            return key[1]  # type: ignore[return-value]  # a number
        return self._new(("not", part), not self.nullable(part))

    def cat(self, first: int, rest: int) -> int:
        """Return the concatenation of two expressions, which in normal form is nested to the right."""
        heads: list[int] = []
        while (key := self._keys[first])[0] == "cat":
            heads.append(key[1])  # type: ignore[arg-type]  # a number
            first = key[2]  # type: ignore[assignment]  # a number
        for one in (first, *reversed(heads)):
            if self.never in (one, rest):
                return self.never
            if rest == self.empty:
                rest = one
            elif one != self.empty:
                rest = self._new(("cat", one, rest), self.nullable(one) and self.nullable(rest))
        return rest

    def repeat(self, part: int, least: int, most: int | None) -> int:
        if part in (self.never, self.empty):
            return self.empty if least == 0 else part
        if most == 0:
            return self.empty
        if (least, most) == (1, 1):
            return part
        return self._new(("repeat", part, 0 if self.nullable(part) else least, most), least == 0 or self.nullable(part))

    def add(self, expression: Regular) -> int:
        """Add an expression that has no `JsonEscaped`. Returns its number."""
        added = self._added
        for one in distinct(expression, known=added):
            added[id(one)] = one, self._number(one, [added[id(part)][1] for part in parts_of(one)])
        return added[id(expression)][1]

    def _number(self, one: Regular, parts: list[int]) -> int:
        """Return the number of an expression. `parts` are the numbers of its parts."""
        match one:
            case Chars(ranges):
                plain = _plain(ranges)
                return self._new(("chars", plain), False) if plain else self.never
            case Literals(texts):
                return self._trie(sorted(set(texts)), 0)
            case Concat():
                made = self.empty
                for part in reversed(parts):
                    made = self.cat(part, made)
                return made
            case Union():
                return self.either(parts)
            case Intersection():
                return self.both(parts)
            case Complement():
                return self.invert(parts[0])
            case Repeat(_, least, most):
                return self.repeat(parts[0], least, most)
            case Substrings():
                return self._number(graph_of(one), [])
            case Dfa(states):
                return self._new(("graph", id(states), 0, states), states[0][0])
        raise UnsupportedError(f"{type(one).__name__} cannot be determinized")

    def _trie(self, texts: list[str], at: int) -> int:
        """Return the number of a language of fixed texts, without the first `at` characters of each.

        The texts are sorted, and the first `at` characters are equal. A single text is added without recursion.
        """
        if len(texts) == 1:
            made = self.empty
            for char in reversed(texts[0][at:]):
                made = self.cat(self._new(("chars", ((ord(char), ord(char)),)), False), made)
            return made
        groups: dict[str, list[str]] = {}
        for text in texts:
            groups.setdefault(text[at : at + 1], []).append(text)
        parts = []
        for char, group in groups.items():
            if not char:
                parts.append(self.empty)
                continue
            parts.append(self.cat(self._new(("chars", ((ord(char), ord(char)),)), False), self._trie(group, at + 1)))
        return self.either(parts)

    def steps(self, number: int) -> list[tuple[Ranges, int]]:
        """Return the derivatives of an expression by disjoint classes of characters.

        No text of the expression begins with a character that is in none of the classes.
        """
        if number not in self._derived:
            self._derived[number] = self._steps(number)
        return self._derived[number]

    def _steps(self, number: int) -> list[tuple[Ranges, int]]:
        match self._keys[number]:
            case ("empty",):
                return []
            case ("chars", ranges):
                return [(ranges, self.empty)]  # type: ignore[list-item]  # ranges
            case ("either", parts):
                return self._merged([self.steps(part) for part in parts], self.either)  # type: ignore[attr-defined]  # numbers
            case ("both", parts):
                return self._merged([self.steps(part) for part in parts], self.both)  # type: ignore[attr-defined]  # numbers
            case ("not", part):
                inner = self.steps(part)  # type: ignore[arg-type]  # a number
                left = _outside([pair for ranges, _ in inner for pair in ranges])
                made = [(ranges, self.invert(to)) for ranges, to in inner]
                return [*made, *([(left, self.all)] if left else [])]
            case ("cat", first, rest):
                ways = [[(ranges, self.cat(to, rest)) for ranges, to in self.steps(first)]]  # type: ignore[arg-type]  # numbers
                if self.nullable(first):  # type: ignore[arg-type]  # a number
                    ways.append(self.steps(rest))  # type: ignore[arg-type]  # a number
                return self._merged(ways, self.either)
            case ("repeat", part, least, most):
                fewer = self.repeat(part, max(least - 1, 0), None if most is None else most - 1)  # type: ignore[arg-type,operator]  # numbers
                return [(ranges, self.cat(to, fewer)) for ranges, to in self.steps(part)]  # type: ignore[arg-type]  # a number
            case ("graph", _, at, states):
                ways = []
                for chars, to in states[at][1]:  # type: ignore[index]  # states of a graph
                    target = self._new(("graph", id(states), to, states), states[to][0])  # type: ignore[index]  # states
                    ways.append([(_plain(chars.ranges), target)])
                return self._merged(ways, self.either)
        raise AssertionError(self._keys[number])

    def _merged(self, ways: list[list[tuple[Ranges, int]]], join: object) -> list[tuple[Ranges, int]]:
        """Combine the derivatives of several expressions to those of their alternation or intersection.

        Args:
            ways: For each expression, its derivatives, as `steps` returns them. For all other characters, the
                derivative is `never`.
            join: `either` or `both`.
        """
        if len(ways) == 1:
            return ways[0]
        cuts = sorted({cut for way in ways for ranges, _ in way for low, high in ranges for cut in (low, high + 1)})
        checkpoint()
        spend(2 * len(cuts) * len(ways))
        index = {cut: place for place, cut in enumerate(cuts)}
        found: list[list[int]] = [[self.never] * len(ways) for _ in cuts]
        for number, way in enumerate(ways):
            for ranges, to in way:
                for low, high in ranges:
                    for place in range(index[low], index[high + 1]):
                        found[place][number] = to
        groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for place in range(len(cuts) - 1):
            targets = tuple(found[place])
            if any(one != self.never for one in targets):
                pieces = groups.setdefault(targets, [])
                low, high = cuts[place], cuts[place + 1] - 1
                if pieces and pieces[-1][1] == low - 1:
                    pieces[-1] = (pieces[-1][0], high)
                else:
                    pieces.append((low, high))
        merged: dict[int, list[tuple[int, int]]] = {}
        for targets, pieces in groups.items():
            to = join(targets)  # type: ignore[operator]  # `either` or `both`
            if to != self.never:
                merged.setdefault(to, []).extend(pieces)
        return [(_joined(pieces), to) for to, pieces in merged.items()]


def _joined(pieces: list[tuple[int, int]]) -> Ranges:
    made: list[tuple[int, int]] = []
    for low, high in sorted(pieces):
        if made and low <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(high, made[-1][1]))
        else:
            made.append((low, high))
    return tuple(made)


def determinized(expression: Regular, limit: int = MAX_STATES) -> Dfa:
    """Return a deterministic automaton of an expression, without states from which no accepting state is reachable.

    The initial state always remains.

    Args:
        expression: An expression without `JsonEscaped` and special tokens, such as a result of `spelled_out`.
        limit: The maximum number of states.

    Raises:
        LimitExceededError: There are more states, they consist of more than 40 * `limit` expressions, or the expression
            is nested too deep.
        UnsupportedError: The expression contains `JsonEscaped` or a special token.
    """
    machine = Derivatives(limit)
    try:
        start = machine.add(expression)
        numbers, queue = {start: 0}, [start]
        edges: list[list[tuple[Ranges, int]]] = []
        for one in queue:
            edges.append([])
            for ranges, to in machine.steps(one):
                if to not in numbers:
                    if len(numbers) >= limit:
                        raise LimitExceededError(
                            f"the automaton of a regular expression needs more than {limit:,} states"
                        )
                    numbers[to] = len(queue)
                    queue.append(to)
                edges[numbers[one]].append((ranges, numbers[to]))
    except RecursionError:
        raise LimitExceededError("a regular expression is nested too deeply") from None
    accepting = [machine.nullable(one) for one in queue]
    before: list[list[int]] = [[] for _ in queue]
    for number, out in enumerate(edges):
        for _, to in out:
            before[to].append(number)
    live, todo = {number for number, one in enumerate(accepting) if one}, [n for n, one in enumerate(accepting) if one]
    while todo:
        checkpoint()
        for number in before[todo.pop()]:
            if number not in live:
                live.add(number)
                todo.append(number)
    if 0 not in live:
        return Dfa(((False, ()),))
    kept = {number: place for place, number in enumerate(sorted(live))}
    return Dfa(
        tuple(
            (accepting[number], tuple((Chars(ranges), kept[to]) for ranges, to in edges[number] if to in live))
            for number in sorted(live)
        )
    )
