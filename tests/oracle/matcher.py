"""The interface of Matcher, implemented slowly: every token is tried, byte by byte, at every step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .machine import Oracle, State
from .spelling import Text, leads


@dataclass
class Trie:
    """Tokens by their bytes: those that end here, and those with more bytes."""

    ends: list[int] = field(default_factory=list)
    below: dict[int, Trie] = field(default_factory=dict)


@dataclass(frozen=True)
class Tokens:
    """A small vocabulary: the bytes of each token, and which of them end the text."""

    texts: tuple[bytes, ...]
    eos: frozenset[int]
    special: frozenset[int] = frozenset()

    @cached_property
    def trie(self) -> Trie:
        """The tokens that have a text, as a trie: a mask reads a common prefix once."""
        root = Trie()
        for token in self.ordinary:
            at = root
            for byte in self.texts[token]:
                at = at.below.setdefault(byte, Trie())
            at.ends.append(token)
        return root

    @cached_property
    def ordinary(self) -> list[int]:
        """The tokens that have a text."""
        return [n for n, text in enumerate(self.texts) if text and n not in self.eos | self.special]


class SlowMatcher:
    """Walks an oracle by tokens."""

    def __init__(self, oracle: Oracle, tokens: Tokens) -> None:
        self.oracle, self.tokens = oracle, tokens
        self.path: list[State | None] = [oracle.start]  # None: finished
        self._masks: dict[State, frozenset[int]] = {}
        self._costs: dict[State, int | None] = {}
        self._forced: dict[State, int | None] = {}

    @property
    def state(self) -> State | None:
        """The current state; None after EOS."""
        return self.path[-1]

    @property
    def position(self) -> int:
        """The number of accepted tokens."""
        return len(self.path) - 1

    def mask(self) -> frozenset[int]:
        """The legal tokens: those after which the text can be completed, and EOS where it is complete."""
        state = self.state
        if state is None:
            return self.tokens.eos
        if state not in self._masks:
            legal = set(self.tokens.eos) if state.whole else set()
            left: list[tuple[State, Trie]] = [(state, self.tokens.trie)]
            while left:
                here, trie = left.pop()
                legal.update(trie.ends)
                for byte, below in trie.below.items():
                    after = self.oracle.step(here, byte)
                    if after is not None:
                        left.append((after, below))
            self._masks[state] = frozenset(legal)
        return self._masks[state]

    def advance(self, token: int) -> bool:
        """Accepts a token; returns False without a change if it is not legal."""
        if self.state is None or token not in self.mask():
            return False
        ends = token in self.tokens.eos
        self.path.append(None if ends else self.oracle.read(self.state, self.tokens.texts[token]))
        return True

    def rollback(self, count: int) -> None:
        """Give tokens back."""
        del self.path[len(self.path) - count :]

    def fork(self) -> SlowMatcher:
        """Another one at the same place."""
        other = SlowMatcher(self.oracle, self.tokens)
        other.path = list(self.path)
        other._masks, other._costs, other._forced = self._masks, self._costs, self._forced
        return other

    def validate(self, tokens: Sequence[int]) -> int:
        """Returns the number of tokens that are accepted in sequence."""
        trial = self.fork()
        for count, token in enumerate(tokens):
            if not trial.advance(token):
                return count
        return len(tokens)

    def cost(self, state: State | None) -> int | None:
        """Returns the smallest number of tokens that complete the text, with EOS; None if no tokens do."""
        if state is None:
            return 0
        if state not in self._costs:
            self._costs[state] = self._search(state)
        return self._costs[state]

    def _search(self, start: State) -> int | None:
        seen, queue = {start}, deque([(start, 1)])
        texts = {self.tokens.texts[n] for n in self.tokens.ordinary}
        while queue:
            state, cost = queue.popleft()
            if state.whole:
                return cost
            for text in texts:
                after = self.oracle.read(state, text)
                if after is not None and after not in seen:
                    seen.add(after)
                    queue.append((after, cost + 1))
        return None

    def forced(self, limit: int = 64) -> bytes:
        """The bytes that every completion begins with (as many as `limit`)."""
        made, state = b"", self.state
        while state is not None and len(made) < limit:
            if state not in self._forced:
                self._forced[state] = self._only_byte(state)
            byte = self._forced[state]
            if byte is None:
                break
            made += bytes([byte])
            state = self.oracle.step(state, byte)
        return made

    def _bytes(self, state: State) -> Iterable[int]:
        """Bytes among which are all that may come next, or at least two of them."""
        readers = [stack[0] for stack in state.stacks if stack] if isinstance(state, State) else [None]
        plain = [r for r in readers if isinstance(r, Text) and r.spelling == "plain" and not r.pending]
        return set().union(*(leads(r.expr) for r in plain)) if len(plain) == len(readers) else range(256)

    def _only_byte(self, state: State) -> int | None:
        """The only byte that may come next, where there is only one and the text cannot end."""
        if state.whole:
            return None
        likely = {self.tokens.texts[n][0]: None for n in self.tokens.ordinary}
        found: int | None = None
        for byte in [*likely, *(byte for byte in self._bytes(state) if byte not in likely)]:
            if self.oracle.step(state, byte) is not None:
                if found is not None:
                    return None
                found = byte
        return found
