"""An automaton of expectations: the rest of a text is a stack of terms, and there may be several such stacks.

A term is either read byte by byte (it has `step` and `done`) or is expanded to other terms by a `World`. Only
satisfiable terms are pushed, so a text is a viable prefix if and only if a stack remains.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from .reader import Reader

Term = Hashable
Stack = tuple[Term, ...]  # the next term is first


class World(Protocol):
    """Expands the terms that are not read byte by byte."""

    def expand(self, term: Term) -> Iterable[Stack]:
        """The term's alternatives, each of which can be completed."""


@dataclass(frozen=True, slots=True)
class Fixed(Reader):
    """Exactly these bytes."""

    rest: bytes

    @property
    def done(self) -> bool:
        """Whether all are read."""
        return not self.rest

    def step(self, byte: int) -> Fixed | None:
        """After the next byte."""
        return Fixed(self.rest[1:]) if self.rest and self.rest[0] == byte else None


@dataclass(frozen=True, slots=True)
class OneOf(Reader):
    """Reads one of several texts."""

    texts: frozenset[bytes]

    @property
    def done(self) -> bool:
        """Whether one text is complete."""
        return b"" in self.texts

    def step(self, byte: int) -> OneOf | None:
        """After one more byte."""
        left = frozenset(text[1:] for text in self.texts if text[:1] == bytes([byte]))
        return OneOf(left) if left else None


@dataclass(frozen=True, slots=True)
class Spaces(Reader):
    """JSON whitespace, any amount."""

    @property
    def done(self) -> bool:
        """Always: none is enough."""
        return True

    def step(self, byte: int) -> Spaces | None:
        """After one more byte."""
        return self if byte in b" \t\n\r" else None


@dataclass(frozen=True, slots=True)
class Plain(World):
    """A world without any names: every term is read byte by byte."""

    def expand(self, term: Term) -> Iterable[Stack]:
        """Fails: this world has no terms to expand."""
        raise TypeError(term)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The possible rests of a text; an oracle has one object for each. `whole`: the text may end here."""

    stacks: frozenset[Stack]

    @property
    def whole(self) -> bool:
        """Whether the text so far is complete."""
        return () in self.stacks


class Oracle:
    """A world and its start; `step` and `read` cache their results."""

    def __init__(self, world: World, *start: Term) -> None:
        self.world = world
        self._steps: dict[tuple[State, int], State | None] = {}
        self._states: dict[frozenset[Stack], State] = {}
        self.start = self._state([start])

    def _state(self, stacks: Iterable[Stack]) -> State:
        return self.state(frozenset(self._closure(stacks)))

    def state(self, closed: frozenset[Stack]) -> State:
        """The one state of some stacks that have all their alternatives among them."""
        return self._states.setdefault(closed, State(closed))

    def _closure(self, stacks: Iterable[Stack]) -> Iterator[Stack]:
        """Yields the expansions of the stacks whose first term is a reader, and the empty stack."""
        left, seen = list(stacks), set()
        while left:
            stack = left.pop()
            if stack in seen:
                continue
            seen.add(stack)
            if not stack:
                yield stack
            elif isinstance(stack[0], Reader):
                yield stack
                if stack[0].done:
                    left.append(stack[0].leave(stack[1:]))
            else:
                left += [tuple(made) + stack[1:] for made in self.world.expand(stack[0])]

    def step(self, state: State, byte: int) -> State | None:
        """After one more byte; None where the text can no longer be completed."""
        key = (state, byte)
        if key not in self._steps:
            after = set()
            for stack in state.stacks:
                reader = stack[0].step(byte) if stack and isinstance(stack[0], Reader) else None
                if reader is not None:
                    after.add((reader, *stack[1:]))
            self._steps[key] = self._state(after) if after else None
        return self._steps[key]

    def read(self, state: State | None, text: bytes) -> State | None:
        """After several bytes."""
        for byte in text:
            if state is None:
                return None
            state = self.step(state, byte)
        return state

    def matches(self, text: str | bytes) -> bool:
        """Whether the text is a member."""
        state = self.read(self.start, text.encode() if isinstance(text, str) else text)
        return state is not None and state.whole

    def viable(self, text: str | bytes) -> bool:
        """Whether the text can be completed to a member."""
        return self.read(self.start, text.encode() if isinstance(text, str) else text) is not None
