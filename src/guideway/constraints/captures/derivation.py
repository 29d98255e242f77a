"""Computes the derivation of a text with the highest priority.

1. A table maps (position, state, count) to the set of positions at which the rule of the state can end. Count is the
   number of repetitions so far, in a `LoopState`. A set is stored as the bits of an int: bit n is set if the position
   plus n is in the set. For states of the outermost rule, only bit 0 is used: the end of the text can be reached. The
   table is filled on demand to a fixpoint, later positions first. The time is cubic in the length of the text in the
   worst case, and linear for deterministic constraints.
2. A walk takes, at each state, the first option from which the rest of the text can still be derived. When it calls a
   rule, it passes the set of ends after which the caller can continue.

A rule can call itself at the same position with the same set of ends (left recursion, or a cycle of empty matches). The
walk would then not end. From such a call on, it follows only ends that were added to the table earlier than the current
one, so that the time of their addition decreases with each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from guideway.constraints.captures.program import (
    AnchorState,
    CallState,
    CloseState,
    ExitState,
    ForkState,
    LookState,
    LoopState,
    OpenState,
    Program,
    ReadState,
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
"""Maximum number of steps for the captures of one text."""

MAX_WITHIN = 60
"""The maximum nesting depth of assertions and `Except` terms."""


def captures_of(source: Constraint[Any], text: str) -> Captures:
    """Return the captures of a text that is known to match the constraint.

    Raises:
        LimitExceededError: The text has too many derivations, or the constraint is too large.
    """
    shape = source.shape()
    if isinstance(shape, Reading):
        return Captures(text, shape.read(text))
    program = program_of(source)
    return Captures(text, [] if program is None else _derived(program, text))


def _derived(program: Program, text: str) -> list[Capture]:
    """Return the captures. Raises `InvalidTextError` if there is no derivation."""
    return _DerivationWalk(_Table(program, text)).run()


@dataclass(slots=True, eq=False)
class _TableEntry:
    """An entry of the table.

    Attributes:
        at: The position.
        state: The state.
        count: The number of repetitions so far, in a `LoopState`; otherwise 0.
        ends: The ends of the rule, as bits.
        fresh: The ends that were not passed to the users yet; -1: the entry was not explored yet.
        found: For each addition of ends, in order, the time and the ends. The time is the number of steps until then.
        users: The entries that depend on this one, each with the state and the count after it. State -1: the user is in
            the same rule, and its ends include those of this entry.
    """

    at: int
    state: int
    count: int
    ends: int = 0
    fresh: int = 0
    found: list[tuple[int, int]] = field(default_factory=list)
    users: list[tuple[_TableEntry, int, int]] = field(default_factory=list)


class _Table:
    """The table of the module's docstring.

    Args:
        program: The state machine (program.py).
        text: The text.
        begun: A list with the number of steps so far, which several tables share; None: a new one.
        within: The number of assertions and `Except` terms around the rules of this table.
    """

    def __init__(self, program: Program, text: str, begun: list[int] | None = None, within: int = 0) -> None:
        self.program, self.text = program, text
        self.begun = [0] if begun is None else begun
        self._within = within
        self._nodes: dict[tuple[int, int, int], _TableEntry] = {}
        self._queue: dict[int, list[_TableEntry]] = {}  # by position
        self._places: list[int] = []  # a heap of the negated positions in `_queue`
        self._inner: _Table | None = None
        self._lookbehind_ends: dict[int, int] = {}
        if within > MAX_WITHIN:
            raise LimitExceededError(
                f"assertions and exceptions may be nested at most {MAX_WITHIN} deep for captures; nest fewer of them"
            )

    def spend(self, steps: int) -> None:
        """Count steps. Raises `LimitExceededError` beyond `MAX_STEPS`."""
        self.begun[0] += steps
        if self.begun[0] > MAX_STEPS:
            raise LimitExceededError(
                f"the captures of this text take more than {MAX_STEPS:,} steps: the text has too many derivations"
            )

    def node(self, at: int, state: int, count: int = 0) -> _TableEntry:
        """Return the entry of a key. A new entry is only put into the queue; `settled` computes its ends."""
        key = (at, state, count)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = _TableEntry(at, state, count)
            found.fresh = -1  # not explored
            self._put(found)
        return found

    def settled(self, at: int, state: int, count: int = 0) -> _TableEntry:
        """Return the entry of a key with all its ends computed."""
        found = self.node(at, state, count)
        self._settle()
        return found

    def ends_within(self, at: int, entry: int) -> int:
        """Return the ends, as bits, of a rule that begins at a position.

        `entry`: the first state of the rule, which is the pattern of an assertion, or what an `Except` term excludes.
        """
        return self.inner.settled(at, entry).ends

    @property
    def inner(self) -> _Table:
        """The table for the patterns of assertions, and for what `Except` terms exclude."""
        if self._inner is None:
            self._inner = _Table(self.program, self.text, self.begun, self._within + 1)
        return self._inner

    def holds(self, look: LookState, at: int) -> bool:
        """Return whether a lookaround holds at a position."""
        if look.ahead:
            seen = self.ends_within(at, look.entry) != 0
        elif look.width is not None:
            start = at - look.width
            seen = start >= 0 and bool(self.ends_within(start, look.entry) >> look.width & 1)
        else:
            if look.entry not in self._lookbehind_ends:
                every = 0
                for start in range(len(self.text), -1, -1):
                    every |= self.ends_within(start, look.entry) << start
                self._lookbehind_ends[look.entry] = every
            seen = bool(self._lookbehind_ends[look.entry] >> at & 1)
        return seen != look.negative

    def _put(self, node: _TableEntry) -> None:
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

    def _explore(self, node: _TableEntry) -> None:
        state, at = self.program.states[node.state], node.at
        match state:
            case ExitState(whole):
                if not whole or at == len(self.text):
                    self._add(node, 1)
            case ReadState(piece, after):
                for end in piece.ends(self.text, at, self.spend):
                    self._link(node, self.node(end, after))
            case ForkState(options):
                for option in options:
                    self._link(node, self.node(at, option))
            case CallState(entry, after):
                self._use(node, self.node(at, entry), after, 0)
            case LoopState(entry, least, next=after):
                again = self.again(state, node.count)
                if again is not None:
                    self._use(node, self.node(at, entry), node.state, again)
                if node.count >= least:
                    self._link(node, self.node(at, after))
            case LookState(next=after):
                if self.holds(state, at):
                    self._link(node, self.node(at, after))
            case AnchorState(start, after):
                if at == (0 if start else len(self.text)):
                    self._link(node, self.node(at, after))
            case OpenState(_, after) | CloseState(after):
                self._link(node, self.node(at, after))

    def _link(self, node: _TableEntry, to: _TableEntry) -> None:
        """Make the ends of `to` ends of `node`: those that are known, and those that are found later."""
        self._use(node, to, -1, 0)

    def _use(self, node: _TableEntry, callee: _TableEntry, after: int, count: int) -> None:
        callee.users.append((node, after, count))
        known = callee.ends if callee.fresh == -1 else callee.ends & ~callee.fresh
        self.spend(1)
        if known:
            self._tell(node, callee, known, after, count)

    def _add(self, node: _TableEntry, ends: int) -> None:
        new = ends & ~node.ends
        if not new:
            return
        self.spend(1 + (new.bit_length() >> 9))
        node.ends |= new
        node.found.append((self.begun[0], new))
        if node.fresh == 0:
            self._put(node)
        node.fresh |= new

    def _pass_on(self, node: _TableEntry) -> None:
        new, node.fresh = node.fresh, 0
        for user, after, count in list(node.users):
            self._tell(user, node, new, after, count)

    def _tell(self, user: _TableEntry, callee: _TableEntry, ends: int, after: int, count: int) -> None:
        if after < 0:
            self._add(user, ends if self.program.outermost[user.state] else ends << (callee.at - user.at))
            return
        for end in self.possible(user, ends):
            self._link(user, self.following(user, end, after, count))

    def again(self, loop: LoopState, count: int) -> int | None:
        """Return the count after one more repetition; None: the maximum is reached.

        If the text is too short to reach the maximum, all counts from `least` on are treated as `least`.
        """
        if loop.most is not None and loop.most - loop.least <= len(self.text):
            return count + 1 if count < loop.most else None
        return min(count + 1, loop.least)

    def possible(self, user: _TableEntry, ends: int) -> Iterator[int]:
        """Yield the positions at which the called rule may end: those of `ends` that the state of the caller allows.

        `user`: the entry of the caller. `ends`: bits, relative to the position of the caller. A `LoopState` may exclude
        an empty repetition, and a `CallState` excludes the matches of its rule `without`.
        """
        state = self.program.states[user.state]
        if isinstance(state, LoopState) and user.count >= state.least and not state.empty:
            ends &= ~1
        if isinstance(state, CallState) and state.without is not None:
            ends &= ~self.ends_within(user.at, state.without)
        return (user.at + distance for distance in bits(ends))

    def following(self, user: _TableEntry, end: int, after: int, count: int) -> _TableEntry:
        """Return the entry at which the caller `user` continues after the called rule has ended at `end`."""
        state = self.program.states[user.state]
        if isinstance(state, LoopState) and user.count >= state.least and end == user.at:
            return self.node(end, state.next)  # an empty repetition after the minimum is the last one
        return self.node(end, after, count)


def bits(ends: int) -> Iterator[int]:
    """Yield the indices of the bits that are set, lowest first."""
    while ends:
        lowest = ends & -ends
        yield lowest.bit_length() - 1
        ends ^= lowest


@dataclass(slots=True)
class _Frame:
    """A call on the stack of the walk.

    Attributes:
        node: The entry of the caller.
        wanted: The ends that the rule of the caller may have.
        after: The state at which the caller continues.
        count: The count with which the caller continues.
        key: The member of `_active` to remove when the call returns; None: there is none.
        bound: The value of `_bound` before the call.
    """

    node: _TableEntry
    wanted: int
    after: int
    count: int
    key: tuple[int, int] | None
    bound: int | None


class _DerivationWalk:
    """Walks along the derivation with the highest priority, and collects the captures.

    `wanted` is the set of ends that the current rule may have, as bits relative to the position. In the outermost rule,
    it is 1.
    """

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._program, self._text = table.program, table.text
        self._frames: list[_Frame] = []
        # (first state of the rule, wanted) of the open calls at this position
        self._active: set[tuple[int, int]] = set()
        self._bound: int | None = None  # only ends that were added before this time may be used; None: all
        self._spans: list[Capture | None] = []
        self._open: list[tuple[int, str, int]] = []
        self._last = 0  # the end of the last match that is not ignored text

    def run(self, at: int = 0, state: int = 0, wanted: int = 1) -> list[Capture]:
        """Return the captures from a state at a position. Raises `InvalidTextError` if no wanted end is reachable."""
        node = self._table.settled(at, state)
        if not node.ends & wanted:
            raise InvalidTextError("the text does not match the constraint")
        while True:
            self._table.spend(1)
            one = self._program.states[node.state]
            if isinstance(one, ExitState):
                if not self._frames:
                    return [span for span in self._spans if span is not None]
                node, wanted = self._leave(node.at)
            elif isinstance(one, (CallState, LoopState)):
                node, wanted = self._call(node, one, wanted)
            else:
                after = self._step(node, one, wanted)
                if after.at > node.at:
                    self._active.clear()
                    self._bound = None
                node, wanted = after, self._moved(node, after.at, wanted)

    def _step(self, node: _TableEntry, state: Any, wanted: int) -> _TableEntry:
        match state:
            case ReadState(piece, after, lazy):
                ends = list(piece.ends(self._text, node.at, self._table.spend))
                chosen = self._first(node, [(end, after) for end in (ends if lazy else reversed(ends))], wanted)
                self._read(state, node.at, chosen.at)
                return chosen
            case ForkState(options):
                return self._first(node, [(node.at, option) for option in options], wanted)
            case OpenState(name):
                self._open.append((len(self._spans), name, node.at))
                self._spans.append(None)
            case CloseState():
                number, name, start = self._open.pop()
                end = max(start, min(node.at, self._last))
                self._spans[number] = Capture(name, start, end, self._text)
            case LookState():
                self._look(state, node.at)
        return self._first(node, [(node.at, state.next)], wanted)

    def _call(self, node: _TableEntry, state: CallState | LoopState, wanted: int) -> tuple[_TableEntry, int]:
        """Enter a rule, or leave a repetition. Returns the next entry and the wanted ends there."""
        after, count = state.next, 0
        if isinstance(state, LoopState):
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

    def _ends(self, node: _TableEntry, state: CallState | LoopState, wanted: int, after: int, count: int) -> int:
        """Return the ends of the called rule, as bits, after which the caller can reach a wanted end."""
        callee, found = self._table.node(node.at, state.entry), 0
        for end in self._table.possible(node, callee.ends):
            self._table.spend(1)
            bit = 1 << (end - node.at)
            then = self._table.following(node, end, after, count)
            if self._can(callee, bit) and self._can(then, self._moved(node, end, wanted)):
                found |= bit
        return found

    def _leave(self, at: int) -> tuple[_TableEntry, int]:
        frame = self._frames.pop()
        if frame.key is not None:
            self._active.discard(frame.key)
        self._bound = frame.bound if at == frame.node.at else None
        then = self._table.following(frame.node, at, frame.after, frame.count)
        return then, self._moved(frame.node, at, frame.wanted)

    def _moved(self, node: _TableEntry, to: int, wanted: int) -> int:
        return wanted if self._program.outermost[node.state] else wanted >> (to - node.at)

    def _can(self, node: _TableEntry, wanted: int) -> bool:
        return bool(node.ends & wanted) and (self._bound is None or _when(node, wanted) < self._bound)

    def _first(self, node: _TableEntry, options: list[tuple[int, int]], wanted: int) -> _TableEntry:
        """Return the entry of the first option, a (position, state), from which a wanted end is reachable."""
        for at, state in options:
            self._table.spend(1)
            one, still = self._table.node(at, state), self._moved(node, at, wanted)
            if self._can(one, still):
                if self._bound is not None:
                    self._bound = _when(one, still)
                return one
        raise AssertionError("the table has an end that no option reaches")

    def _look(self, look: LookState, at: int) -> None:
        """Add the captures inside a lookaround that holds. Negative ones and lookbehinds of varying width have none."""
        if look.negative or (look.width is None and not look.ahead):
            return
        start = at if look.ahead else at - (look.width or 0)
        inner = self._table.inner
        seen = inner.settled(start, look.entry).ends
        self._spans += _DerivationWalk(inner).run(start, look.entry, seen if look.ahead else 1 << (at - start))

    def _read(self, state: ReadState, start: int, end: int) -> None:
        if end > start and not state.ignored:
            self._last = end
        if state.inside is None:
            return
        text = self._text[start:end]
        if isinstance(state.inside, Reading):
            around = self._open[-1][1] if self._open else ""
            # The name "" is left out: the whole JSON value is captured only if a capture around it has a name.
            found = [one for one in state.inside.read(text) if one.name]
        else:
            around, known = "", self._program.patterns
            if id(state.inside) not in known:
                known[id(state.inside)] = built(state.inside)
            found = _DerivationWalk(_Table(known[id(state.inside)], text, self._table.begun)).run()
        for one in found:
            name = around + one.name if one.name[0] == "/" else one.name
            self._spans.append(Capture(name, start + one.start, start + one.end, self._text))


def _when(node: _TableEntry, wanted: int) -> int:
    """Return the time at which the first of the wanted ends was added."""
    return next(time for time, ends in node.found if ends & wanted)
