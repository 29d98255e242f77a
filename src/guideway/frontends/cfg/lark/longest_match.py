"""For a pattern, the language whose longest match in any text is the match of Python's `re`.

`re` takes the first match in the order of priority: alternatives in the order in which they are written, and more
repetitions before fewer, or fewer before more if they are lazy. This need not be the longest match. The automaton here
simulates `re`: its states are ordered lists of threads (NFA states), as in Pike's virtual machine. Threads after one
that has matched are removed. So the longest prefix of a text that this automaton accepts is the match of `re`.

Assertions: a thread has conditions on the rest of the text (lookaheads, `$`), each a state of an automaton. A match with
conditions remains in the list until they are met or fail. What precedes (lookbehinds, `^`) is followed by automata that
all threads share. If the length of the match then depends on more than the prefix, the pattern is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from guideway.background import checkpoint
from guideway.errors import LimitExceededError
from guideway.frontends.regex.lowering import lower
from guideway.frontends.regex.syntax import (
    ANYTHING,
    AlternationPart,
    Anchor,
    ConcatPart,
    Lookaround,
    NamedGroup,
    Part,
    Plain,
    RepeatPart,
    merged,
    series,
    width,
)
from guideway.grammar.automata.alphabet import Alphabet
from guideway.grammar.automata.determinize import DEAD, Numbered
from guideway.grammar.automata.dfa import Machine, machine_of
from guideway.grammar.regular import ANY_TEXT, EMPTY, Chars, Complement, Concat, Literals, Regular, Union
from guideway.grammar.work import spend

__all__ = ["ContextError", "first_matches", "takes_longest"]

_MAX_STATES = 5_000
_MAX_NFA_STATES = 50_000
_MAX_LOOKBEHIND_STATES = 200
_MATCH = 0  # the accepting NFA state
_MATCHED = -1
_INSIDE = "an assertion inside a lookbehind, or a lookbehind, ^ or \\b inside a lookahead, is not supported"


_Claims = frozenset[tuple[int, int]]  # conditions on the rest of the text: lookahead, state of its automaton


class ContextError(Exception):
    """Which texts a pattern matches depends on the text around them, or an assertion is not supported."""

    def __init__(self, why: str = "it depends on the text around it (lookaround, anchors or \\b)") -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class _MatchThread:
    """A thread, or a match.

    Attributes:
        at: The NFA state; `_MATCH`: a match that ends here; `_MATCHED`: a match that ended before.
        claims: Its conditions.
        longest: Of `_MATCHED`: whether no longer prefix has been accepted since.
    """

    at: int
    claims: _Claims
    longest: bool = False


@dataclass(frozen=True, slots=True)
class _MatchState:
    """A state of the automaton.

    Attributes:
        threads: The threads in order of priority.
        before: For each lookbehind, the state of its automaton, or `DEAD`.
        matched: Whether a prefix has been accepted. Always False without lookaheads.
    """

    threads: tuple[_MatchThread, ...]
    before: tuple[int, ...]
    matched: bool


class _Threads:
    """The NFA of a pattern. It is built without recursion.

    Attributes:
        takes: For each state, the character classes that it reads, and the next state; None: it reads no character.
        options: For each state, the targets of its epsilon transitions, in order of priority.
        following: For each state that begins with a lookahead, the number of the assertion.
        preceding: The same for lookbehinds.
        loops: For each state in which an optional repetition begins, the number of the `RepeatPart`, and the state
            after all its repetitions.
        entries: For each state before all repetitions of a `RepeatPart`, its number.
        start: The initial state. The accepting state is `_MATCH`.
    """

    def __init__(self, root: Part, assertions: _Assertions, alphabet: Alphabet) -> None:
        self.takes: list[tuple[tuple[int, ...], int] | None] = [None]
        self.options: list[list[int]] = [[]]
        self.following: dict[int, int] = {}
        self.preceding: dict[int, int] = {}
        self.loops: dict[int, tuple[int, int]] = {}
        self.entries: dict[int, int] = {}
        self._alphabet, self._assertions = alphabet, assertions
        self._lookaheads = [machine_of(one, alphabet) for one in assertions.following]
        self._lookbehinds = [machine_of(one, alphabet) for one in assertions.preceding]
        self._certain = [_certain(machine) for machine in self._lookaheads]
        self._repeats = 0
        self.start = self._new_state()
        todo: list[tuple[Part, int, int]] = [(root, self.start, _MATCH)]
        while todo:
            checkpoint()
            part, at, after = todo.pop()
            todo += self._add(part, at, after)

    def _new_state(self) -> int:
        self.takes.append(None)
        self.options.append([])
        if len(self.takes) > _MAX_NFA_STATES:
            raise LimitExceededError(
                f"its pattern needs more than {_MAX_NFA_STATES:,} NFA states; use a smaller pattern"
            )
        return len(self.takes) - 1

    def _add(self, part: Part, at: int, after: int) -> list[tuple[Part, int, int]]:
        match part:
            case Plain(Literals((text,))):
                ends = [self._new_state() for _ in text[1:]]
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
                raise ContextError("the order of its matches is not known")
            case ConcatPart(parts):
                ends = [self._new_state() for _ in parts[1:]]
                return list(zip(parts, [at, *ends], [*ends, after], strict=True))
            case AlternationPart(parts):
                self.options[at] = [self._new_state() for _ in parts]
                return [(one, start, after) for one, start in zip(parts, self.options[at], strict=True)]
            case NamedGroup(inner):
                return [(inner, at, after)]
            case RepeatPart(inner, least, most, _, lazy):
                return self._times(inner, least, most, lazy, at, after)
            case Anchor() | Lookaround():
                ahead, number = self._assertions.numbers[id(part)]
                (self.following if ahead else self.preceding)[at] = number
                self.options[at] = [after]
        return []

    def _times(
        self, part: Part, least: int, most: int | None, lazy: bool, at: int, after: int
    ) -> list[tuple[Part, int, int]]:
        todo: list[tuple[Part, int, int]] = []
        loop = (self._repeats, after)
        self._repeats += 1
        first = self._new_state()
        self.entries[at], self.options[at] = loop[0], [first]
        at = first
        for number in range(least if most is None else most):
            if number >= least:
                self.loops[at] = loop
                inner = self._new_state()
                self.options[at] = [after, inner] if lazy else [inner, after]
                at = inner
            then = self._new_state()
            todo.append((part, at, then))
            at = then
        if most is None:
            self.loops[at] = loop
            inner = self._new_state()
            self.options[at] = [after, inner] if lazy else [inner, after]
            todo.append((part, inner, at))
        else:
            self.options[at] = [after]
        return todo

    def lookbehind_states(self) -> list[tuple[int, ...]]:
        """Return the states of the lookbehinds before a match: first at the start of the text, then anywhere else."""
        found = Numbered(
            (0,) * len(self._lookbehinds),
            _MAX_LOOKBEHIND_STATES,
            f"its lookbehinds need more than {_MAX_LOOKBEHIND_STATES} states; use shorter ones",
        )
        for before in found.order:
            for letter in range(len(self._alphabet)):
                found.number(self._read_before(before, letter))
        return found.order

    def _read_before(self, before: tuple[int, ...], letter: int) -> tuple[int, ...]:
        pairs = zip(self._lookbehinds, before, strict=True)
        return tuple(DEAD if at == DEAD else machine.steps[at][letter] for machine, at in pairs)

    def first(self, before: tuple[int, ...]) -> _MatchState:
        """Return the initial state, with the states of the lookbehinds before the match."""
        return _MatchState(self._ordered([_MatchThread(self.start, frozenset())], before), before, False)

    def moved(self, state: _MatchState, letter: int) -> _MatchState | None:
        """Return the state after a character of the class `letter`. None: no text can be accepted after it."""
        accepted = self.accepts(state)
        before = self._read_before(state.before, letter)
        seeds = []
        for thread in state.threads:
            claims = self._read_claims(thread.claims, letter)
            take = self.takes[thread.at] if thread.at >= 0 else None
            if claims is None:
                continue
            if thread.at in (_MATCH, _MATCHED):
                longest = accepted if thread.at == _MATCH else thread.longest and not accepted
                seeds.append(_MatchThread(_MATCHED, claims, longest))
            elif take is not None and letter in take[0]:
                seeds.append(_MatchThread(take[1], claims))
        threads = self._ordered(seeds, before)
        matched = bool(self._lookaheads) and (state.matched or accepted)
        if (not threads and not matched) or (threads and threads[0] == _MatchThread(_MATCHED, frozenset(), True)):
            return None
        if not self._lookaheads:
            threads = tuple(thread for thread in threads if thread.at != _MATCHED)
        return _MatchState(threads, before, matched)

    def _read_claims(self, claims: _Claims, letter: int) -> _Claims | None:
        """Return the conditions after a character. None: one of them has failed."""
        after = {(number, self._lookaheads[number].steps[at][letter]) for number, at in claims}
        if any(at == DEAD for _, at in after):
            return None
        return frozenset((number, at) for number, at in after if at not in self._certain[number])

    def _ordered(self, seeds: list[_MatchThread], before: tuple[int, ...]) -> tuple[_MatchThread, ...]:
        """Return the threads that are reached from `seeds` without reading, in order of priority.

        Threads after a match without conditions are left out. As in `re`, nothing is repeated again after an optional
        repetition that has read no character. If a part is entered again, its repetitions begin anew.
        """
        found: dict[_MatchThread, None] = {}  # an ordered set
        seen: set[tuple[int, _Claims, frozenset[int]]] = set()
        inside: set[int] = set()  # the loops in an optional repetition of which no character has been read
        todo: list[_MatchThread | int] = list(reversed(seeds))
        while todo:
            checkpoint()
            thread = todo.pop()
            if isinstance(thread, int):  # a loop that was added or removed below; all that follows has been found
                inside ^= {thread}
                continue
            at, claims = thread.at, thread.claims
            loop, after = self.loops.get(at, (-1, at))
            if loop in inside:
                todo.append(_MatchThread(after, claims))
                continue
            key = at, claims, frozenset(inside)
            if key in seen:
                continue
            spend(4)
            seen.add(key)
            if len(seen) > _MAX_NFA_STATES:
                raise LimitExceededError(
                    f"its lookaheads need more than {_MAX_NFA_STATES:,} threads in one state; use fewer of them"
                )
            if loop >= 0:
                inside.add(loop)
                todo.append(loop)
            if (entered := self.entries.get(at, -1)) in inside:
                inside.discard(entered)
                todo.append(entered)
            if at in (_MATCH, _MATCHED) or self.takes[at] is not None:
                found[thread] = None
                if at in (_MATCH, _MATCHED) and not claims:
                    break
                continue
            if at in self.preceding and not self._holds(
                self._lookbehinds, self.preceding[at], before[self.preceding[at]]
            ):
                continue
            if at in self.following and 0 not in self._certain[self.following[at]]:
                claims |= {(self.following[at], 0)}
            todo += [_MatchThread(one, claims) for one in reversed(self.options[at])]
        spend(4)
        return tuple(found)

    @staticmethod
    def _holds(machines: list[Machine], number: int, at: int) -> bool:
        return at != DEAD and machines[number].accepting[at]

    def _match(self, state: _MatchState) -> _MatchThread | None:
        """Return the match of `re` in a text that ends here."""
        for thread in state.threads:
            if thread.at in (_MATCH, _MATCHED) and all(
                self._holds(self._lookaheads, number, at) for number, at in thread.claims
            ):
                return thread
        return None

    def accepts(self, state: _MatchState) -> bool:
        """Return whether the match of `re` in a text that ends here is the whole text."""
        found = self._match(state)
        return found is not None and found.at == _MATCH

    def needs_context(self, state: _MatchState) -> bool:
        """Return whether the match of `re` in a text that ends here is not its longest prefix that is accepted."""
        found = self._match(state)
        return state.matched if found is None else found.at == _MATCHED and not found.longest


def _certain(machine: Machine) -> frozenset[int]:
    """Return the states from which a DFA accepts every text."""
    sources: dict[int, list[int]] = {}
    for at, steps in enumerate(machine.steps):
        checkpoint()
        for to in set(steps):
            sources.setdefault(to, []).append(at)
    todo = [DEAD, *(at for at, accepting in enumerate(machine.accepting) if not accepting)]
    found = set(todo)  # the states from which some text is not accepted
    while todo:
        checkpoint()
        fresh = [at for at in sources.get(todo.pop(), ()) if at not in found]
        found.update(fresh)
        todo += fresh
    return frozenset(range(len(machine.steps))) - found


class _Assertions:
    """The assertions of a pattern that are not inside others.

    Attributes:
        numbers: By the `id` of its part: whether it is about the following text, and its index in one of the lists.
        following: The texts that may follow a position, up to the end.
        preceding: The texts that may precede a position, from the start.

    Raises `ContextError` for assertions inside lookbehinds, and for lookbehinds inside lookaheads.
    """

    def __init__(self, root: Part) -> None:
        self.numbers: dict[int, tuple[bool, int]] = {}
        self.following: list[Regular] = []
        self.preceding: list[Regular] = []
        for part in _parts(root):
            match part:
                case Anchor(start):
                    self._put(part, not start, EMPTY)
                case Lookaround(inner, ahead, negative):
                    language = _following(inner) if ahead else _preceding(inner)
                    self._put(part, ahead, Complement(language) if negative else language)

    def _put(self, part: Part, ahead: bool, language: Regular) -> None:
        if id(part) in self.numbers:
            return
        languages = self.following if ahead else self.preceding
        self.numbers[id(part)] = ahead, len(languages)
        languages.append(language)


def _following(inner: Part) -> Regular:
    def too_large(message: str, _at: int) -> NoReturn:
        raise LimitExceededError(message)

    whole = merged(inner)
    if any(
        (isinstance(one, Anchor) and one.start) or (isinstance(one, Lookaround) and not one.ahead)
        for one in _parts_and_assertions(whole)
    ):
        raise ContextError(_INSIDE)
    return lower(series([whole, ANYTHING]), search=False, too_large=too_large)


def _preceding(inner: Part) -> Regular:
    whole = merged(inner)
    if not isinstance(whole, Plain):
        raise ContextError(_INSIDE)
    return Concat((ANY_TEXT, whole.language))


def first_matches(root: Part, language: Regular) -> Regular:
    """Return a language whose longest match in any text is the match of a pattern in Python's `re`.

    Args:
        root: The syntax tree of the pattern, from `parse_tree`.
        language: The texts that the pattern matches completely.

    Returns:
        `language` or a subset of it.

    Raises:
        ContextError: There is no such language, because a match depends on the text around it. Or this is not known,
            because an assertion is not supported.
        LimitExceededError: The automaton is too large.
    """
    assertions = _Assertions(root)
    plain = [part.language for part in _parts(root) if isinstance(part, Plain)]
    alphabet = Alphabet([language, ANY_TEXT, *plain, *assertions.following, *assertions.preceding])
    threads = _Threads(root, assertions, alphabet)
    found = {_graph(threads, alphabet, before) for before in threads.lookbehind_states()}
    if len(found) > 1:
        raise ContextError
    whole = machine_of(language, alphabet)
    graph = found.pop()
    return language if graph == alphabet.graph(whole.steps, whole.accepting) else graph


def _graph(threads: _Threads, alphabet: Alphabet, before: tuple[int, ...]) -> Regular:
    why = f"the automaton of its first matches needs more than {_MAX_STATES:,} states; use a smaller pattern"
    states = Numbered(threads.first(before), _MAX_STATES, why)
    steps = []
    for state in states.order:
        if threads.needs_context(state):
            raise ContextError
        after = [threads.moved(state, letter) for letter in range(len(alphabet))]
        steps.append([DEAD if one is None else states.number(one) for one in after])
    return alphabet.graph(steps, [threads.accepts(state) for state in states.order])


def takes_longest(part: Part) -> bool:
    """Return whether the first match of a pattern without assertions is always the longest one.

    False: this is not obvious from the syntax tree, which is that of `parse_tree`.
    """
    while not _is_fixed(part):
        match part:
            case ConcatPart(parts) if len(open_parts := [one for one in parts if not _is_fixed(one)]) == 1:
                part = open_parts[0]  # it alone decides the length, and its longest match is tried first
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


def _parts(root: Part) -> Iterator[Part]:
    """Yield all parts, without those inside assertions."""
    todo = [root]
    while todo:
        part = todo.pop()
        yield part
        match part:
            case ConcatPart(parts) | AlternationPart(parts):
                todo += parts
            case NamedGroup(inner) | RepeatPart(inner):
                todo.append(inner)


def _parts_and_assertions(root: Part) -> Iterator[Part]:
    """Yield all parts, with those inside assertions."""
    for part in _parts(root):
        yield part
        if isinstance(part, Lookaround):
            yield from _parts_and_assertions(part.part)
