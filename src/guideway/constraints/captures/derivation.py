"""Which derivation of a text comes first.

First a table: from a state at a place of the text, where can its rule end? It is filled on demand, from the places
that lie furthest on, with sets of ends as bits (a bit is the distance from the place), until nothing new is found: a
tabled recogniser, in time cubic in the text at worst, linear where the source is deterministic. Then one walk: at each
state the first choice from which the rest can still succeed. What may come after a rule is handed down to it as a set
of ends.

A rule that could come round to itself at one place, with nothing read and the same ends wanted, would go round for
ever: from there on the walk follows the table in the order in which it was filled, which does not go round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from guideway.constraints.captures.program import (
    Call,
    Close,
    Edge,
    Exit,
    Fork,
    Look,
    Loop,
    Open,
    Program,
    Read,
    built,
    program_of,
)
from guideway.constraints.captures.shapes import Reading
from guideway.constraints.captures.spans import Capture, Captures
from guideway.errors import InvalidTextError, LimitExceededError

if TYPE_CHECKING:
    from guideway.constraints.base import Constraint

__all__ = ["captures_of"]

MAX_STEPS = 1_500_000
"""How much may be looked at for the captures of one text."""

MAX_WITHIN = 60
"""How deep assertions and exceptions may stand in each other."""


def captures_of(source: Constraint[Any], text: str) -> Captures:
    """What the names in a source took of a text that is known to fit. Raises `LimitExceededError`."""
    shape = source.shape()
    if isinstance(shape, Reading):
        return Captures(text, shape.read(text))
    program = program_of(source)
    return Captures(text, [] if program is None else _derived(program, text))


def _derived(program: Program, text: str) -> list[Capture]:
    """Raises `InvalidTextError` where there is no derivation."""
    return _Walk(_Table(program, text)).run()


@dataclass(slots=True, eq=False)
class _Node:
    """A state at a place: where its rule may end from here, as bits, and when each was found."""

    at: int
    state: int
    count: int
    ends: int = 0
    fresh: int = 0  # found and not passed on yet
    found: list[tuple[int, int]] = field(default_factory=list)
    users: list[tuple[_Node, int, int]] = field(default_factory=list)  # who, in which state after it; -1: as it is


class _Table:
    """Nodes by place, state and count. `begun`: how much was looked at, also by the tables for what stands within."""

    def __init__(self, program: Program, text: str, begun: list[int] | None = None, within: int = 0) -> None:
        self.program, self.text = program, text
        self.begun = [0] if begun is None else begun
        self._within = within
        self._nodes: dict[tuple[int, int, int], _Node] = {}
        self._queue: dict[int, list[_Node]] = {}  # by place
        self._places: list[int] = []  # a heap of the places in it, as negative numbers
        self._inner: _Table | None = None
        self._behind: dict[int, int] = {}
        if within > MAX_WITHIN:
            raise LimitExceededError(f"assertions or exceptions that stand in each other more than {MAX_WITHIN} deep")

    def spend(self, steps: int) -> None:
        """Raises `LimitExceededError` where all becomes too much."""
        self.begun[0] += steps
        if self.begun[0] > MAX_STEPS:
            raise LimitExceededError("the captures of this text take too many steps: it can be read in too many ways")

    def node(self, at: int, state: int, count: int = 0) -> _Node:
        """The node, all of whose ends are known if it was asked for before; else `settle` finds them."""
        key = (at, state, count)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = _Node(at, state, count)
            found.fresh = -1  # to be explored
            self._put(found)
        return found

    def settled(self, at: int, state: int, count: int = 0) -> _Node:
        """The same with all its ends known."""
        found = self.node(at, state, count)
        self._settle()
        return found

    def ends_within(self, at: int, entry: int) -> int:
        """Where a rule may end that stands within an assertion or an exception."""
        return self.inner.settled(at, entry).ends

    @property
    def inner(self) -> _Table:
        """The table of the rules that stand within assertions and exceptions."""
        if self._inner is None:
            self._inner = _Table(self.program, self.text, self.begun, self._within + 1)
        return self._inner

    def holds(self, look: Look, at: int) -> bool:
        """Whether an assertion does."""
        if look.ahead:
            seen = self.ends_within(at, look.entry) != 0
        elif look.width is not None:
            start = at - look.width
            seen = start >= 0 and bool(self.ends_within(start, look.entry) >> look.width & 1)
        else:
            if look.entry not in self._behind:
                every = 0
                for start in range(len(self.text), -1, -1):
                    every |= self.ends_within(start, look.entry) << start
                self._behind[look.entry] = every
            seen = bool(self._behind[look.entry] >> at & 1)
        return seen != look.negative

    def _put(self, node: _Node) -> None:
        waiting = self._queue.get(node.at)
        if waiting is None:
            self._queue[node.at] = [node]
            heappush(self._places, -node.at)
        else:
            waiting.append(node)

    def _settle(self) -> None:
        while self._places:
            waiting = self._queue[-self._places[0]]
            if not waiting:
                del self._queue[-heappop(self._places)]
                continue
            node = waiting.pop()
            if node.fresh == -1:
                node.fresh = 0
                self._explore(node)
            else:
                self._pass_on(node)

    def _explore(self, node: _Node) -> None:
        state, at = self.program.states[node.state], node.at
        match state:
            case Exit(whole):
                if not whole or at == len(self.text):
                    self._add(node, 1)
            case Read(piece, after):
                for end in piece.ends(self.text, at, self.spend):
                    self._link(node, self.node(end, after))
            case Fork(options):
                for option in options:
                    self._link(node, self.node(at, option))
            case Call(entry, after):
                self._use(node, self.node(at, entry), after, 0)
            case Loop(entry, least, next=after):
                again = self.again(state, node.count)
                if again is not None:
                    self._use(node, self.node(at, entry), node.state, again)
                if node.count >= least:
                    self._link(node, self.node(at, after))
            case Look(next=after):
                if self.holds(state, at):
                    self._link(node, self.node(at, after))
            case Edge(start, after):
                if at == (0 if start else len(self.text)):
                    self._link(node, self.node(at, after))
            case Open(_, after) | Close(after):
                self._link(node, self.node(at, after))

    def _link(self, node: _Node, to: _Node) -> None:
        """The rule ends from the first wherever it does from the second."""
        self._use(node, to, -1, 0)

    def _use(self, node: _Node, callee: _Node, after: int, count: int) -> None:
        callee.users.append((node, after, count))
        known = callee.ends if callee.fresh == -1 else callee.ends & ~callee.fresh
        self.spend(1)
        if known:
            self._tell(node, callee, known, after, count)

    def _add(self, node: _Node, ends: int) -> None:
        new = ends & ~node.ends
        if not new:
            return
        self.spend(1 + (new.bit_length() >> 9))
        node.ends |= new
        node.found.append((self.begun[0], new))
        if node.fresh == 0:
            self._put(node)
        node.fresh |= new

    def _pass_on(self, node: _Node) -> None:
        new, node.fresh = node.fresh, 0
        for user, after, count in list(node.users):
            self._tell(user, node, new, after, count)

    def _tell(self, user: _Node, callee: _Node, ends: int, after: int, count: int) -> None:
        if after < 0:
            self._add(user, ends if self.program.outermost[user.state] else ends << (callee.at - user.at))
            return
        for end in self.possible(user, ends):
            self._link(user, self.behind(user, end, after, count))

    def again(self, loop: Loop, count: int) -> int | None:
        """The count after one time more; None: there may be none. It stays where no more of it can matter."""
        if loop.most is not None and loop.most - loop.least <= len(self.text):
            return count + 1 if count < loop.most else None
        return min(count + 1, loop.least)

    def possible(self, user: _Node, ends: int) -> Iterator[int]:
        """The ends of what a state calls, that it takes."""
        state = self.program.states[user.state]
        if isinstance(state, Loop) and user.count >= state.least and not state.empty:
            ends &= ~1
        if isinstance(state, Call) and state.without is not None:
            ends &= ~self.ends_within(user.at, state.without)
        return (user.at + distance for distance in bits(ends))

    def behind(self, user: _Node, end: int, after: int, count: int) -> _Node:
        """The node behind what a state called, which ended here."""
        state = self.program.states[user.state]
        if isinstance(state, Loop) and user.count >= state.least and end == user.at:
            return self.node(end, state.next)  # more than asked for, and nothing read: the last time
        return self.node(end, after, count)


def bits(ends: int) -> Iterator[int]:
    """The numbers of the bits, the lowest first."""
    while ends:
        lowest = ends & -ends
        yield lowest.bit_length() - 1
        ends ^= lowest


@dataclass(slots=True)
class _Frame:
    """What called a rule: the node, the ends that it wants, the state and count that follow; the rule entered and what
    was wanted of it, if it was the first to enter it so; and the bound of the time.
    """

    node: _Node
    wanted: int
    after: int
    count: int
    key: tuple[int, int] | None
    bound: int | None


class _Walk:
    """The way through the states. What is wanted are ends as bits, from here on; of the outermost rule: 1."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._program, self._text = table.program, table.text
        self._frames: list[_Frame] = []
        self._active: set[tuple[int, int]] = set()  # rules entered at this place, and what was wanted of them
        self._bound: int | None = None  # what was found no earlier is not gone to
        self._spans: list[Capture | None] = []
        self._open: list[tuple[int, str, int]] = []
        self._last = 0  # where the last text ended that was not ignored

    def run(self, at: int = 0, state: int = 0, wanted: int = 1) -> list[Capture]:
        """What is captured from a state at a place on. Raises `InvalidTextError` where the rule ends nowhere."""
        node = self._table.settled(at, state)
        if not node.ends & wanted:
            raise InvalidTextError("the text does not fit")
        while True:
            self._table.spend(1)
            one = self._program.states[node.state]
            if isinstance(one, Exit):
                if not self._frames:
                    return [span for span in self._spans if span is not None]
                node, wanted = self._leave(node.at)
            elif isinstance(one, (Call, Loop)):
                node, wanted = self._call(node, one, wanted)
            else:
                after = self._step(node, one, wanted)
                if after.at > node.at:
                    self._active.clear()
                    self._bound = None
                node, wanted = after, self._moved(node, after.at, wanted)

    def _step(self, node: _Node, state: Any, wanted: int) -> _Node:
        match state:
            case Read(piece, after, lazy):
                ends = list(piece.ends(self._text, node.at, self._table.spend))
                chosen = self._first(node, [(end, after) for end in (ends if lazy else reversed(ends))], wanted)
                self._read(state, node.at, chosen.at)
                return chosen
            case Fork(options):
                return self._first(node, [(node.at, option) for option in options], wanted)
            case Open(name):
                self._open.append((len(self._spans), name, node.at))
                self._spans.append(None)
            case Close():
                number, name, start = self._open.pop()
                end = max(start, min(node.at, self._last))
                self._spans[number] = Capture(name, start, end, self._text)
            case Look():
                self._look(state, node.at)
        return self._first(node, [(node.at, state.next)], wanted)

    def _call(self, node: _Node, state: Call | Loop, wanted: int) -> tuple[_Node, int]:
        """Into a rule, or past a repetition."""
        after, count = state.next, 0
        if isinstance(state, Loop):
            enough = node.count >= state.least
            if enough and state.lazy and self._can(self._table.node(node.at, after), wanted):
                return self._first(node, [(node.at, after)], wanted), wanted
            once_more = self._table.again(state, node.count)
            if once_more is not None:
                after, count = node.state, once_more
                ends = self._ends(node, state, wanted, after, count)
            if once_more is None or not ends:
                return self._first(node, [(node.at, state.next)], wanted), wanted
        else:
            ends = self._ends(node, state, wanted, after, count)
        callee, key = self._table.node(node.at, state.entry), (state.entry, ends)
        entered = key in self._active
        self._frames.append(_Frame(node, wanted, after, count, None if entered else key, self._bound))
        if self._bound is not None or entered:
            self._bound = _when(callee, ends)
        self._active.add(key)
        return callee, ends

    def _ends(self, node: _Node, state: Call | Loop, wanted: int, after: int, count: int) -> int:
        """The ends of the rule that a state calls, from which what is wanted can be reached."""
        callee, found = self._table.node(node.at, state.entry), 0
        for end in self._table.possible(node, callee.ends):
            self._table.spend(1)
            bit = 1 << (end - node.at)
            then = self._table.behind(node, end, after, count)
            if self._can(callee, bit) and self._can(then, self._moved(node, end, wanted)):
                found |= bit
        return found

    def _leave(self, at: int) -> tuple[_Node, int]:
        frame = self._frames.pop()
        if frame.key is not None:
            self._active.discard(frame.key)
        self._bound = frame.bound if at == frame.node.at else None
        then = self._table.behind(frame.node, at, frame.after, frame.count)
        return then, self._moved(frame.node, at, frame.wanted)

    def _moved(self, node: _Node, to: int, wanted: int) -> int:
        return wanted if self._program.outermost[node.state] else wanted >> (to - node.at)

    def _can(self, node: _Node, wanted: int) -> bool:
        return bool(node.ends & wanted) and (self._bound is None or _when(node, wanted) < self._bound)

    def _first(self, node: _Node, options: list[tuple[int, int]], wanted: int) -> _Node:
        """The first place and state from which an end that is wanted can be reached."""
        for at, state in options:
            self._table.spend(1)
            one, still = self._table.node(at, state), self._moved(node, at, wanted)
            if self._can(one, still):
                if self._bound is not None:
                    self._bound = _when(one, still)
                return one
        raise AssertionError("the table said that there is a way on")

    def _look(self, look: Look, at: int) -> None:
        """What an assertion captures that holds."""
        if look.negative or (look.width is None and not look.ahead):
            return
        start = at if look.ahead else at - (look.width or 0)
        inner = self._table.inner
        seen = inner.settled(start, look.entry).ends
        self._spans += _Walk(inner).run(start, look.entry, seen if look.ahead else 1 << (at - start))

    def _read(self, state: Read, start: int, end: int) -> None:
        if end > start and not state.ignored:
            self._last = end
        if state.inside is None:
            return
        text = self._text[start:end]
        if isinstance(state.inside, Reading):
            around = self._open[-1][1] if self._open else ""
            found = [
                one for one in state.inside.read(text) if one.name
            ]  # the whole of a JSON text has the name around it
        else:
            around, known = "", self._program.patterns
            if id(state.inside) not in known:
                known[id(state.inside)] = built(state.inside)
            found = _Walk(_Table(known[id(state.inside)], text, self._table.begun)).run()
        for one in found:
            name = around + one.name if one.name[0] == "/" else one.name
            self._spans.append(Capture(name, start + one.start, start + one.end, self._text))


def _when(node: _Node, wanted: int) -> int:
    """When the first of the ends that are wanted was found."""
    return next(time for time, ends in node.found if ends & wanted)
