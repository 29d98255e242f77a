"""The NFA of a pattern with assertions; see lookaround.py.

A transition reads a character, or it is an epsilon transition. An epsilon transition may have a condition: an assertion
holds, or does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from guideway.frontends.regex.syntax import AlternationPart, Anchor, ConcatPart, Lookaround, Part, Plain, RepeatPart
from guideway.grammar.automata.nfa import NfaBuilder, Task
from guideway.grammar.regular import Ranges, Regular

__all__ = ["MAX_NFA_STATES", "Assertion", "AssertionNfa", "TooLargeError"]

MAX_NFA_STATES = 20_000
"""Maximum number of states of the NFA, with counted repetitions unrolled."""


class TooLargeError(Exception):
    """A pattern with assertions exceeded a limit. The message names the limit."""


@dataclass(slots=True)
class Assertion:
    """An assertion.

    Attributes:
        look: The lookaround or the anchor.
        start: For a lookaround, the initial state of the NFA of its inner pattern.
        final: For a lookaround, the final state of the NFA of its inner pattern.
    """

    look: Lookaround | Anchor
    start: int = 0
    final: int = 0


class AssertionNfa(NfaBuilder[Part | Regular]):
    """An NFA with conditional epsilon transitions. State 0 is not used.

    Attributes:
        conditional: For each state, its epsilon transitions with a condition: (target, (number of the assertion,
            whether it is negated)).
        takes: For each state, the characters that its character transition reads, and the target; None: it has none.
        assertions: The assertions by number. An assertion inside another one has a greater number.
    """

    def __init__(self) -> None:
        super().__init__(
            MAX_NFA_STATES, lambda: TooLargeError(f"more than {MAX_NFA_STATES:,} NFA states; use fewer repetitions")
        )
        self.conditional: list[list[tuple[int, tuple[int, bool]]]] = []
        self.takes: list[tuple[Ranges, int] | None] = []
        self.assertions: list[Assertion] = []
        self.place()

    def place(self) -> int:
        self.conditional.append([])
        self.takes.append(None)
        return super().place()

    def read(self, start: int, ranges: Ranges, end: int) -> None:
        between = self.place()  # a state has at most one character transition
        self.link(start, between)
        self.takes[between] = (ranges, end)

    def add_part(self, part: Part) -> tuple[int, int]:
        """Add a part between two new states. Returns its initial and its final state."""
        start, final = self.place(), self.place()
        self.add(part, start, final)
        return start, final

    def other(self, part: Part | Regular, start: int, end: int) -> list[Task[Part | Regular]]:
        match part:
            case Plain(language):
                return [(language, start, end)]
            case ConcatPart(parts):
                return self.sequence(parts, start, end)
            case AlternationPart(parts):
                return [(inner, start, end) for inner in parts]
            case RepeatPart(inner, least, most):
                return self.repetition(inner, least, most, start, end)
            case Lookaround() | Anchor():
                return self._assertion(part, start, end)
            case _:
                raise TypeError(part)

    def _assertion(self, one: Lookaround | Anchor, start: int, end: int) -> list[Task[Part | Regular]]:
        assertion = Assertion(one)
        tasks: list[Task[Part | Regular]] = []
        if isinstance(one, Lookaround):
            assertion.start, assertion.final = self.place(), self.place()
            tasks.append((one.part, assertion.start, assertion.final))
        self.assertions.append(assertion)
        self.conditional[start].append((end, (len(self.assertions) - 1, isinstance(one, Lookaround) and one.negative)))
        return tasks
