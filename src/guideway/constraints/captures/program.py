"""The structure of a constraint as a state machine. Alternatives are in order of priority.

A rule is a set of states that ends in an `ExitState`: the states of a rule of a grammar, of what a repetition repeats,
of an operand of `Except`, or of the pattern in a lookaround. A `CallState`, `LoopState` or `LookState` calls it. The
states outside of these rules, in which the machine begins, are the outermost rule. In all classes, `next` is the number
of the state that follows, and `entry` is that of the first state of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from guideway.caching import cached
from guideway.constraints.captures.leaf_matchers import Characters, Fixed, Piece, Walked, piece_of
from guideway.constraints.captures.shapes import IGNORED, Pattern, Reading, Rules, Shape
from guideway.errors import LimitExceededError
from guideway.frontends.regex import syntax
from guideway.grammar.cfg import terms

if TYPE_CHECKING:
    from guideway.constraints.base import Constraint

__all__ = [
    "AnchorState",
    "CallState",
    "CloseState",
    "ExitState",
    "ForkState",
    "LookState",
    "LoopState",
    "OpenState",
    "Program",
    "ReadState",
    "State",
    "built",
    "program_of",
]

MAX_STATES = 500_000
"""Maximum number of states of a constraint."""


@dataclass(frozen=True, slots=True)
class ExitState:
    """The end of a rule. If `whole`, it must be at the end of the text."""

    whole: bool


@dataclass(frozen=True, slots=True)
class ReadState:
    """A match of a regular part or a grammar.

    Attributes:
        piece: The matcher.
        next: The next state.
        lazy: True: shorter matches have priority. False: longer ones.
        ignored: Whether the match is ignored text (see `IGNORED`).
        inside: The structure from which the captures inside the match are computed; None: there are none.
    """

    piece: Piece
    next: int
    lazy: bool = False
    ignored: bool = False
    inside: Reading | Pattern | None = None


@dataclass(frozen=True, slots=True)
class ForkState:
    """Alternatives: the numbers of their first states, in order of priority."""

    options: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallState:
    """A call of a rule. `without`: the entry of a rule whose matches are excluded; None: no matches are excluded."""

    entry: int
    next: int
    without: int | None = None


@dataclass(frozen=True, slots=True)
class LoopState:
    """A rule that is repeated `least` to `most` times (None: unbounded).

    Attributes:
        entry: The entry of the rule.
        least: The minimum number of repetitions.
        most: The maximum number of repetitions; None: unbounded.
        lazy: Whether fewer repetitions have priority.
        empty: Whether a repetition after the first `least` may match the empty text. It is then the last one.
        next: The next state.
    """

    entry: int
    least: int
    most: int | None
    lazy: bool
    empty: bool
    next: int


@dataclass(frozen=True, slots=True)
class LookState:
    """A lookaround.

    Attributes:
        entry: The entry of the rule of its inner pattern.
        ahead: Whether a match must follow the position. If not, it must precede the position.
        negative: Whether there must be no such match.
        width: The length of all matches of a lookbehind, in characters; None: it varies, or this is a lookahead.
        next: The next state.
    """

    entry: int
    ahead: bool
    negative: bool
    width: int | None
    next: int


@dataclass(frozen=True, slots=True)
class AnchorState:
    """An anchor: it matches at the start of the text if `start` is true, otherwise at its end."""

    start: bool
    next: int


@dataclass(frozen=True, slots=True)
class OpenState:
    """The start of a capture with a name."""

    name: str
    next: int


@dataclass(frozen=True, slots=True)
class CloseState:
    """The end of the innermost open capture."""

    next: int


State = ExitState | ReadState | ForkState | CallState | LoopState | LookState | AnchorState | OpenState | CloseState
_Part = terms.Term | syntax.Part | Shape


class _Repeat(NamedTuple):
    """A repetition in rules or in a pattern."""

    part: _Part
    least: int
    most: int | None
    lazy: bool
    empty: bool


@dataclass(slots=True)
class Program:
    """A state machine.

    Attributes:
        states: The states by number. State 0 is the entry. None: the state is not translated yet.
        outermost: For each state, whether it belongs to the outermost rule, which ends at the end of the text.
        patterns: The programs of patterns with assertions inside `ReadState`, by the identity of the `Pattern`. They
            are added when they are needed.
    """

    states: list[State | None] = field(default_factory=list)
    outermost: list[bool] = field(default_factory=list)
    patterns: dict[int, Program] = field(default_factory=dict)


@cached(32)
def program_of(source: Constraint[Any]) -> Program | None:
    """Return the program of a constraint; None: its shape is None or a function (`Reading`)."""
    shape = source.shape()
    return None if shape is None or isinstance(shape, Reading) else built(shape)


def built(shape: Rules | Pattern) -> Program:
    """Return the program of rules or of a pattern. Raises `LimitExceededError` if it needs too many states."""
    return _Builder().built(shape)


class _Builder:
    """Translates a shape to states. Parts that are not translated yet are in a worklist, so no recursion is needed."""

    def __init__(self) -> None:
        self._program = Program()
        self._waiting: list[tuple[int, _Part, int, dict[str, int], bool]] = []
        # by the identity of an expression or grammar: this object, so that its identity stays unique, and its matcher
        self._pieces: dict[int, tuple[object, Piece]] = {}

    def built(self, shape: Rules | Pattern) -> Program:
        """Translate a shape."""
        entry, end = self._state(True), self._state(True, ExitState(True))
        self._waiting.append((entry, shape, end, {}, True))
        while self._waiting:
            at, part, after, names, outermost = self._waiting.pop()
            self._fill(at, part, after, names, outermost)
        return self._program

    def _state(self, outermost: bool, state: State | None = None) -> int:
        if len(self._program.states) >= MAX_STATES:
            raise LimitExceededError(
                f"the captures of this constraint need more than {MAX_STATES:,} states; use a smaller constraint"
            )
        self._program.states.append(state)
        self._program.outermost.append(outermost)
        return len(self._program.states) - 1

    def _rule(self, part: _Part, names: dict[str, int]) -> int:
        """Return the entry of a new rule for a part, which is translated later."""
        entry, end = self._state(False), self._state(False, ExitState(False))
        self._waiting.append((entry, part, end, names, False))
        return entry

    def _fill(self, at: int, part: _Part, after: int, names: dict[str, int], outermost: bool) -> None:
        """Translate a part.

        Args:
            at: The first state of the part, which is defined here.
            part: The part.
            after: The state after the part.
            names: The entries of rules by name.
            outermost: Whether the part belongs to the outermost rule.
        """
        match part:
            case terms.Text(_, source) | terms.Embedded(_, source):
                self._text(at, part, source, after, outermost)
            case syntax.Plain(language):
                self._set(at, ReadState(self._piece(language), after))
            case terms.Ref(name):
                self._set(at, CallState(names[name], after))
            case terms.Concatenation(parts) | syntax.ConcatPart(parts):
                self._series(at, parts, after, names, outermost)
            case terms.Alternation(parts) | syntax.AlternationPart(parts):
                options = [self._state(outermost) for _ in parts]
                self._set(at, ForkState(tuple(options)))
                self._waiting += [
                    (one, inner, after, names, outermost) for one, inner in zip(options, parts, strict=True)
                ]
            case terms.Repetition(inner, least, most):
                self._times(at, _Repeat(inner, least, most, False, False), after, names, outermost)
            case syntax.RepeatPart(inner, least, most, _, lazy, empty):
                self._times(at, _Repeat(inner, least, most, lazy, empty), after, names, outermost)
            case terms.Except(inner, without):
                self._set(at, CallState(self._rule(inner, names), after, self._rule(without, names)))
            case syntax.NamedGroup(inner, name):
                self._named(at, inner, name, after, names, outermost)
            case syntax.Anchor(start):
                self._set(at, AnchorState(start, after))
            case syntax.Lookaround(inner, ahead, negative):
                least, most = (0, None) if ahead else syntax.width(inner)
                self._set(
                    at, LookState(self._rule(inner, names), ahead, negative, least if least == most else None, after)
                )
            case Rules():
                self._rules(at, part, after, outermost)
            case Pattern(tree):
                self._waiting.append((at, tree, after, names, outermost))
            case _:
                raise TypeError(part)

    def _set(self, at: int, state: State) -> None:
        self._program.states[at] = state

    def _series(self, at: int, parts: tuple[_Part, ...], after: int, names: dict[str, int], outermost: bool) -> None:
        if not parts:
            self._set(at, ForkState((after,)))
        for number, inner in enumerate(parts):
            then = after if number == len(parts) - 1 else self._state(outermost)
            self._waiting.append((at, inner, then, names, outermost))
            at = then

    def _named(self, at: int, part: _Part, name: str, after: int, names: dict[str, int], outermost: bool) -> None:
        inner, close = self._state(outermost), self._state(outermost, CloseState(after))
        self._set(at, OpenState(name, inner))
        self._waiting.append((inner, part, close, names, outermost))

    def _text(self, at: int, part: terms.Text | terms.Embedded, source: object, after: int, outermost: bool) -> None:
        """Translate a `Text` or `Embedded` term. If `shape` of its source returns rules or a pattern, translate these.

        A pattern with assertions is not translated here, but in `_DerivationWalk._read`, when its captures are needed.
        """
        shape = None if source is None or source is IGNORED else source.shape()  # type: ignore[attr-defined]  # a source
        if isinstance(shape, Rules) or (isinstance(shape, Pattern) and not shape.asserts):
            self._waiting.append((at, shape, after, {}, outermost))
            return
        piece = self._piece(part.language) if isinstance(part, terms.Text) else self._whole(part)
        self._set(at, ReadState(piece, after, ignored=source is IGNORED, inside=shape))

    def _piece(self, language: Any) -> Piece:
        if id(language) not in self._pieces:
            self._pieces[id(language)] = language, piece_of(language)
        return self._pieces[id(language)][1]

    def _whole(self, part: terms.Embedded) -> Piece:
        if id(part.grammar) not in self._pieces:
            self._pieces[id(part.grammar)] = part.grammar, Walked(part.grammar)
        return self._pieces[id(part.grammar)][1]

    def _times(self, at: int, times: _Repeat, after: int, names: dict[str, int], outermost: bool) -> None:
        part, least, most, lazy, empty = times
        one = self._character(part)
        if one is not None and most is not None:
            self._set(at, ReadState(Characters(one.points, least, most), after, lazy))
        elif one is not None:
            loop, again = self._state(outermost), self._state(outermost)
            self._set(at, ReadState(Characters(one.points, least, least), loop))
            self._set(loop, ForkState((after, again) if lazy else (again, after)))
            self._set(again, ReadState(one, loop))
        elif (least, most) == (1, 1):
            self._waiting.append((at, part, after, names, outermost))
        elif (least, most) == (0, 1) and empty:
            inner = self._state(outermost)
            self._set(at, ForkState((after, inner) if lazy else (inner, after)))
            self._waiting.append((inner, part, after, names, outermost))
        else:
            self._set(at, LoopState(self._rule(part, names), least, most, lazy, empty, after))

    def _character(self, part: _Part) -> Characters | None:
        """Return the matcher of a part that is one character of a class, without captures; None for other parts."""
        if not (isinstance(part, syntax.Plain) or (isinstance(part, terms.Text) and part.source is None)):
            return None
        piece = self._piece(part.language)
        if isinstance(piece, Fixed) and len(piece.text) == 1:
            return Characters([ord(piece.text), ord(piece.text) + 1], 1, 1)
        return piece if isinstance(piece, Characters) and (piece.least, piece.most) == (1, 1) else None

    def _rules(self, at: int, shape: Rules, after: int, outermost: bool) -> None:
        if len(shape.rules) == 1 and not _calls_itself(shape.rules[0]):  # inlined
            rule = shape.rules[0]
            if rule.name in shape.names:
                self._named(at, rule.term, shape.names[rule.name], after, {}, outermost)
            else:
                self._waiting.append((at, rule.term, after, {}, outermost))
            return
        names: dict[str, int] = {}
        for rule in shape.rules:
            names[rule.name], end = self._state(False), self._state(False, ExitState(False))
            if rule.name in shape.names:
                self._named(names[rule.name], rule.term, shape.names[rule.name], end, names, False)
            else:
                self._waiting.append((names[rule.name], rule.term, end, names, False))
        self._set(at, CallState(names[shape.start], after))


def _calls_itself(rule: terms.Rule) -> bool:
    return any(isinstance(term, terms.Ref) for term in _within(rule.term))


def _within(term: terms.Term) -> Iterator[terms.Term]:
    todo = [term]
    while todo:
        one = todo.pop()
        yield one
        if isinstance(one, (terms.Concatenation, terms.Alternation)):
            todo += one.parts
        elif isinstance(one, terms.Repetition):
            todo.append(one.part)
        elif isinstance(one, terms.Except):
            todo += (one.part, one.without)
