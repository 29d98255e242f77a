"""For a pattern, a language whose longest match in any text is the match of Python's `re`.

`re` takes the first match in the order of priority: alternatives in the order in which they are written, and more
repetitions before fewer, or fewer before more if they are lazy. This need not be the longest match. The automaton here
simulates `re`: its states are ordered lists of threads (NFA states), as in Pike's virtual machine. Threads after one
that has matched are removed. So the longest prefix of a text that this automaton accepts is the match of `re`.
"""

from __future__ import annotations

from guideway.background import checkpoint
from guideway.errors import LimitExceededError
from guideway.frontends.regex.syntax import (
    AlternationPart,
    Anchor,
    ConcatPart,
    Lookaround,
    NamedGroup,
    Part,
    Plain,
    RepeatPart,
    width,
)
from guideway.grammar.automata.alphabet import Alphabet
from guideway.grammar.automata.determinize import Numbered
from guideway.grammar.automata.dfa import machine_of
from guideway.grammar.regular import Chars, Concat, Literals, Regular, Union
from guideway.grammar.work import spend

__all__ = ["preferred", "takes_longest"]

_MAX_STATES = 5_000
_MAX_PLACES = 50_000
_MATCH = 0  # the accepting NFA state


class _Threads:
    """The NFA of a pattern. It is built without recursion.

    Attributes:
        takes: For each state, the character classes that it reads, and the next state; None: it reads no character.
        options: For each state, the targets of its epsilon transitions, in order of priority.
        asserts: If True, this NFA must not be used, because the order of priority is not known: the pattern has
            assertions, or `Plain` parts of a kind that `_add` does not support.
        loops: For each state in which an optional repetition begins, the number of the `RepeatPart`, and the state
            after all its repetitions.
        start: The initial state. The accepting state is `_MATCH`.
    """

    def __init__(self, root: Part, alphabet: Alphabet) -> None:
        self.takes: list[tuple[tuple[int, ...], int] | None] = [None]
        self.options: list[list[int]] = [[]]
        self._alphabet = alphabet
        self.loops: dict[int, tuple[int, int]] = {}
        self._repeats = 0
        self.asserts = False
        self.start = self._place()
        todo: list[tuple[Part, int, int]] = [(root, self.start, _MATCH)]
        while todo:
            checkpoint()
            part, at, after = todo.pop()
            todo += self._add(part, at, after)

    def _place(self) -> int:
        self.takes.append(None)
        self.options.append([])
        if len(self.takes) > _MAX_PLACES:
            raise LimitExceededError(f"its pattern needs more than {_MAX_PLACES:,} NFA states; use a smaller pattern")
        return len(self.takes) - 1

    def _add(self, part: Part, at: int, after: int) -> list[tuple[Part, int, int]]:
        match part:
            case Plain(Literals((text,))):
                ends = [self._place() for _ in text[1:]]
                for char, start, end in zip(text, [at, *ends], [*ends, after], strict=True):
                    self.takes[start] = (self._alphabet.of(((ord(char), ord(char)),)), end)
            case Plain(Chars(ranges)):
                self.takes[at] = (self._alphabet.of(ranges), after)
            case Plain(Concat(())):
                self.options[at] = [after]
            case Plain(Concat(parts)):
                return self._add(ConcatPart(tuple(Plain(one, 0, None) for one in parts)), at, after)
            case Plain(Union(())):
                pass
            case Plain():
                self.asserts = True  # a language of another kind: its order of priority is not known
            case ConcatPart(parts):
                ends = [self._place() for _ in parts[1:]]
                return list(zip(parts, [at, *ends], [*ends, after], strict=True))
            case AlternationPart(parts):
                self.options[at] = [self._place() for _ in parts]
                return [(one, start, after) for one, start in zip(parts, self.options[at], strict=True)]
            case NamedGroup(inner):
                return [(inner, at, after)]
            case RepeatPart(inner, least, most, _, lazy):
                return self._times(inner, least, most, lazy, at, after)
            case Anchor() | Lookaround():
                self.asserts = True
        return []

    def _times(
        self, part: Part, least: int, most: int | None, lazy: bool, at: int, after: int
    ) -> list[tuple[Part, int, int]]:
        todo: list[tuple[Part, int, int]] = []
        loop = (self._repeats, after)
        self._repeats += 1
        for number in range(least if most is None else most):
            if number >= least:
                self.loops[at] = loop
                inner = self._place()
                self.options[at] = [after, inner] if lazy else [inner, after]
                at = inner
            then = self._place()
            todo.append((part, at, then))
            at = then
        if most is None:
            self.loops[at] = loop
            inner = self._place()
            self.options[at] = [after, inner] if lazy else [inner, after]
            todo.append((part, inner, at))
        else:
            self.options[at] = [after]
        return todo

    def ordered(self, seeds: list[int]) -> tuple[int, ...]:
        """Return the states that are reached from `seeds` without reading, in order of priority.

        States after `_MATCH` are left out. As in `re`, nothing is repeated again after an optional repetition that has
        read no character.
        """
        found: list[int] = []
        seen: set[int] = set()
        inside: set[int] = set()  # the loops in an optional repetition of which no character has been read
        todo = seeds[::-1]
        while todo:
            checkpoint()
            at = todo.pop()
            if at < 0:  # all that follows the beginning of this repetition has been found
                inside.discard(~at)
                continue
            loop, after = self.loops.get(at, (-1, at))
            if loop in inside:
                todo.append(after)
                continue
            if at in seen:
                continue
            seen.add(at)
            if loop >= 0:
                inside.add(loop)
                todo.append(~loop)
            if at == _MATCH or self.takes[at] is not None:
                found.append(at)
                if at == _MATCH:
                    break
            todo += self.options[at][::-1]
        spend(len(seen) + 4)
        return tuple(found)

    def moved(self, state: tuple[int, ...], letter: int) -> tuple[int, ...]:
        """Return the threads after a character of the class `letter`, in order of priority."""
        return self.ordered([take[1] for at in state if (take := self.takes[at]) is not None and letter in take[0]])


def preferred(root: Part, language: Regular) -> Regular | None:
    """Return a language whose longest match in any text is the match of a pattern in Python's `re`.

    Args:
        root: The syntax tree of the pattern, from `parse_tree`.
        language: The texts that the pattern matches completely.

    Returns:
        `language` or a subset of it. None if the order of the matches is not known (`_Threads.asserts`), mostly because
        the pattern has assertions.

    Raises:
        LimitExceededError: The automaton is too large.
    """
    alphabet = Alphabet([language, *_plain(root)])
    threads = _Threads(root, alphabet)
    if threads.asserts:
        return None
    why = f"the automaton of the preferred matches needs more than {_MAX_STATES:,} states; use a smaller pattern"
    states = Numbered(threads.ordered([threads.start]), _MAX_STATES, why)
    steps = [[states.number(threads.moved(state, letter)) for letter in range(len(alphabet))] for state in states.order]
    found = alphabet.graph(steps, [_MATCH in state for state in states.order])
    whole = machine_of(language, alphabet)
    return language if found == alphabet.graph(whole.steps, whole.accepting) else found


def takes_longest(part: Part) -> bool:
    """Return whether the first match of a pattern without assertions is always the longest one.

    False: this is not obvious from the syntax tree, which is that of `parse_tree`.
    """
    while not _is_fixed(part):
        match part:
            case ConcatPart(parts) if all(_is_fixed(one) for one in parts[:-1]):  # the last part decides the length
                part = parts[-1]
            case NamedGroup(inner):
                part = inner
            case AlternationPart(parts):
                lengths = [width(one)[0] for one in parts]
                return all(_is_fixed(one) for one in parts) and lengths == sorted(lengths, reverse=True)
            case RepeatPart(inner, lazy=False):
                return _is_fixed(inner) and width(inner)[0] > 0
            case _:
                return False
    return True


def _is_fixed(part: Part) -> bool:
    """Return whether all matches of a part have the same length."""
    least, most = width(part)
    return least == most


def _plain(root: Part) -> list[Regular]:
    found: list[Regular] = []
    todo = [root]
    while todo:
        match todo.pop():
            case Plain(language):
                found.append(language)
            case ConcatPart(parts) | AlternationPart(parts):
                todo += parts
            case NamedGroup(inner) | RepeatPart(inner):
                todo.append(inner)
            case _:
                pass
    return found
