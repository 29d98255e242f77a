"""One step of the contextual lexer: a terminal and the ignored text after it.

A *lexer context* describes a position between two terminals: for each terminal that may follow, the ways in which the
lexer can recognise it there. For each terminal, the ways that are found first are called usual. A context stores only
the terminals with other ways, so there are few distinct contexts.

A *forbidden continuation* (`ForbiddenContinuations`) is a match that would make the division into terminals wrong: a
match of a terminal that is tried earlier, or a longer match of the same terminal. It begins in the text of a terminal,
and is tracked through the following text until it can no longer occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsupportedError
from guideway.frontends.cfg.lark.contextual_lexer.forbidden import ForbiddenContinuations
from guideway.frontends.cfg.lark.contextual_lexer.lalr import END
from guideway.frontends.cfg.lark.contextual_lexer.terminals import TerminalScanners
from guideway.grammar.automata.determinize import DEAD, determinize
from guideway.grammar.automata.dfa import machine_of
from guideway.grammar.regular import Concat, Regular, Repeat, Union

__all__ = ["Accepted", "Steps"]

# The names of the terminals that the parser accepts in a state (`END`: the end of the text), and of all ignored
# terminals.
Accepted = frozenset[str]
Pending = frozenset[int]  # numbers of `ForbiddenContinuations` that the next characters can still complete

_MAX_NODES = 100_000  # maximum number of states of a terminal's automaton, without or with ignored text
_NONE: Pending = frozenset()

# A way to recognise a terminal: the name of the scanner; the keywords that its match may equal (the first that is equal
# is the result); the index of the terminal in these keywords (-1: the terminal is that of the scanner); and the
# forbidden continuations that the next characters can still complete.
_Way = tuple[str, tuple[str, ...], int, Pending]
_Ways = tuple[_Way, ...]


class _Run:
    """The automaton of the texts by which a terminal is recognised in one of several ways.

    Attributes:
        starts: The initial states.
        edges: For each state, its transitions: (character class, next state).
        ends: For each accepting state, the forbidden continuations after it; None for other states.
        whole: Whether the automaton is known to accept all texts of the terminal.
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.edges: list[list[tuple[int, int]]] = []
        self.ends: list[Pending | None] = []
        self.whole = True


class Steps:
    """The lexer contexts, which are numbers, and the steps between them.

    Args:
        scanners: The terminals as the lexer tries them.
        ignored: The names of the ignored terminals.
        special: The terminals that are special tokens, with their languages.
    """

    def __init__(self, scanners: TerminalScanners, ignored: tuple[str, ...], special: Mapping[str, Regular]) -> None:
        self._scanners = scanners
        self._ignored = ignored
        self._special = special
        self._forbidden = ForbiddenContinuations(scanners.machines)
        languages = [scanners.languages[name] for name in ignored]
        self._gap: Regular | None = Repeat(Union(tuple(languages)), 0, None) if languages else None
        self._contexts: dict[frozenset[tuple[str, _Ways | None]], int] = {}
        self._differs: list[dict[str, _Ways | None]] = []
        self._at_known: dict[tuple[Accepted, Pending], int] = {}
        self._usual: dict[str, _Ways] = {}
        self._runs: dict[_Ways, _Run] = {}
        self._ends: dict[tuple[Accepted, Pending], frozenset[int]] = {}
        self._touched: dict[tuple[str, int], bool] = {}
        self._pruned: dict[tuple[Accepted, Pending], Pending] = {}
        self._steps: dict[tuple[str, _Ways | None, Accepted], frozenset[int]] = {}
        self._keys: dict[tuple[str | None, _Ways | None, Accepted], int] = {}
        self._numbers: dict[object, int] = {}
        self._texts: dict[object, Regular] = {}
        self._gaps: dict[tuple[Accepted, Pending], bool] = {}

    def ends(self, context: int) -> bool:
        """Return False if `closed` has excluded the end of the text from a lexer context.

        True does not mean that the parser accepts the end there.
        """
        return END not in self._differs[context]

    def closed(self, context: int, names: Iterable[str]) -> int:
        """Return the lexer context with the terminals `names` excluded. `END` excludes the end of the text."""
        return self._context({**self._differs[context], **dict.fromkeys(names)})

    def begin(self, accepted: Accepted) -> frozenset[int]:
        """Return the lexer contexts that are possible after the ignored text at the start of the text.

        `accepted` has the terminals that the lexer tries in the initial parser state.
        """
        return self._contexts_after(accepted, _NONE)

    def step(self, name: str, context: int, accepted: Accepted) -> frozenset[int]:
        """Return the lexer contexts that are possible after a terminal and the ignored text after it.

        There are none if the lexer cannot match the terminal in the lexer context before it.

        Args:
            name: The terminal.
            context: The lexer context before it.
            accepted: The terminals that the lexer tries in the parser state after the terminal.
        """
        ways = self._ways(name, context)
        key = name, ways, accepted
        if key not in self._steps:
            if ways is None:
                found: set[int] = set()
            elif name in self._special:
                found = set(self._contexts_after(accepted, _NONE))
            else:
                ends = {self._prune(accepted, end) for end in self._run(ways).ends if end is not None}
                found = {context for end in ends for context in self._contexts_after(accepted, end)}
            self._steps[key] = frozenset(found)
        return self._steps[key]

    def gap(self, accepted: Accepted, contexts: frozenset[int]) -> Regular:
        """Return the language of the ignored text at the start of the text that leads to one of the lexer contexts.

        `accepted` has the terminals that the lexer tries in the initial parser state.
        """
        return self._text(None, (), accepted, contexts)

    def text(self, name: str, context: int, accepted: Accepted, contexts: frozenset[int]) -> Regular:
        """Return the language of a terminal and the ignored text after it, if they lead to one of `contexts`.

        `name`, `context` and `accepted` are as for `step`.
        """
        return self._text(name, self._ways(name, context) or (), accepted, contexts)

    def key(self, name: str, context: int, accepted: Accepted) -> int:
        """Return a number for a step: steps with equal numbers have equal texts and results.

        The arguments are as for `step`.
        """
        return self._step_key(name, self._ways(name, context), accepted)

    def _step_key(self, name: str | None, ways: _Ways | None, accepted: Accepted) -> int:
        key = name, ways, accepted
        if key not in self._keys:
            self._keys[key] = self._numbers.setdefault(self._content(name, ways, accepted), len(self._numbers))
        return self._keys[key]

    def _content(self, name: str | None, ways: _Ways | None, accepted: Accepted) -> object:
        if ways is None:
            return name
        if name is None or name in self._special:
            ends = {_NONE}
        else:
            ends = {self._prune(accepted, end) for end in self._run(ways).ends if end is not None}
        return name, ways, frozenset((end, self._gap_key(accepted, end)) for end in ends)

    def _gap_key(self, accepted: Accepted, pending: Pending) -> object:
        """Return a key of a position. If two are equal, the same ignored texts lead to the same lexer contexts."""
        return frozenset(
            (
                at,
                self._at(accepted, at),
                tuple(self._ways_from(accepted, at, name, ignored=True) for name in self._ignored),
            )
            for at in self._boundaries(accepted, pending)
        )

    # Lexer contexts.

    def _context(self, differs: dict[str, _Ways | None]) -> int:
        content = frozenset(differs.items())
        if content not in self._contexts:
            self._contexts[content] = len(self._differs)
            self._differs.append(differs)
        return self._contexts[content]

    def _at(self, accepted: Accepted, pending: Pending) -> int:
        """Return the lexer context of a position where `accepted` terminals are tried.

        `pending` has the forbidden continuations that can still become complete there.
        """
        key = accepted, pending
        if key not in self._at_known:
            self._at_known[key] = self._made_at(accepted, pending)
        return self._at_known[key]

    def _made_at(self, accepted: Accepted, pending: Pending) -> int:
        differs: dict[str, _Ways | None] = {}
        for name in sorted(accepted):
            if name == END:
                continue
            ways = () if name in self._special else self._ways_from(accepted, pending, name)
            if self._usual.setdefault(name, ways) != ways:
                differs[name] = ways
        return self._context(differs)

    def _ways(self, name: str, context: int) -> _Ways | None:
        differs = self._differs[context]
        return differs[name] if name in differs else self._usual.get(name, ())

    def _ways_from(self, accepted: Accepted, pending: Pending, name: str, *, ignored: bool = False) -> _Ways:
        made = []
        for scanner in self._scanners.of(accepted)[name]:
            # Lark first decides by the name of the scanner whether a match is ignored, and only then compares it with
            # the keywords. So the match of an ignored terminal never becomes a keyword.
            if ignored != (scanner.name in self._ignored):
                continue
            number = -1 if scanner.name == name else scanner.keywords.index(name)
            if ignored and number >= 0:
                continue
            keywords = () if ignored else scanner.keywords if number < 0 else scanner.keywords[: number + 1]
            for one in scanner.tied:
                if self._touches(scanner.name, self._forbidden.of(one, 0)):
                    raise UnsupportedError(
                        f"lexer='contextual': {one} and {scanner.name} can match the same text, and their order depends"
                        " on names that Lark generates; define one of them as a terminal with a priority"
                    )
            continuations = {*pending, *(self._forbidden.of(one, 0) for one in scanner.before)}
            kept = frozenset(
                forbidden for forbidden in continuations if forbidden and self._touches(scanner.name, forbidden)
            )
            made.append((scanner.name, keywords, number, kept))
        return tuple(made)

    def _touches(self, name: str, forbidden: int) -> bool:
        """Return whether a forbidden continuation can occur within or after a text of the terminal at this position."""
        key = name, forbidden
        if key not in self._touched:
            machine, after = self._scanners.machines[name], self._forbidden.after
            seen, todo = {(0, forbidden)}, [(0, forbidden)]
            found = False
            while todo and not found:
                state, at = todo.pop()
                found = machine.accepting[state]
                for then, next_forbidden in zip(machine.steps[state], after[at], strict=True):
                    if then == DEAD or next_forbidden == 0:
                        continue
                    if next_forbidden == DEAD:
                        found = True
                        break
                    if (then, next_forbidden) not in seen:
                        seen.add((then, next_forbidden))
                        todo.append((then, next_forbidden))
            self._touched[key] = found
        return self._touched[key]

    def _prune(self, accepted: Accepted, pending: Pending) -> Pending:
        """Return the forbidden continuations that can occur in the text of an accepted terminal or after it."""
        key = accepted, pending
        if key not in self._pruned:
            names = [name for name in accepted if name in self._scanners.machines]
            self._pruned[key] = frozenset(
                forbidden for forbidden in pending if any(self._touches(name, forbidden) for name in names)
            )
        return self._pruned[key]

    # Automata of terminals.

    def _run(self, ways: _Ways) -> _Run:
        if ways not in self._runs:
            self._runs[ways] = self._made(ways)
        return self._runs[ways]

    def _made(self, ways: _Ways) -> _Run:
        run = _Run()
        machines = self._scanners.machines
        numbers: dict[object, int] = {}
        order: list[tuple[str, tuple[str, ...], int, int, tuple[tuple[int, int], ...], Pending]] = []

        def number(node: tuple[str, tuple[str, ...], int, int, tuple[tuple[int, int], ...], Pending]) -> int:
            if node not in numbers:
                numbers[node] = len(order)
                order.append(node)
                if len(order) > _MAX_NODES:
                    raise LimitExceededError(
                        f"lexer='contextual': the automaton of a terminal needs more than {_MAX_NODES:,} states"
                    )
            return numbers[node]

        run.whole = len(ways) == 1 and (ways[0][2] < 0 or self._scanners.is_word(ways[0][1][ways[0][2]]))
        for name, keywords, which, pending in ways:
            run.starts.append(number((name, keywords, which, 0, tuple((k, 0) for k in range(len(keywords))), pending)))
        for name, keywords, which, state, words, pending in order:  # the list grows during iteration
            machine = machines[name]
            fits = next((k for k, at in words if machines[keywords[k]].accepting[at]), -1)
            ends = machine.accepting[state] and fits == which
            run.whole &= not (machine.accepting[state] and which < 0 and fits >= 0)
            longer = self._forbidden.of(name, state)
            run.ends.append((pending | {longer} if longer else pending) if ends else None)
            edges = []
            for letter, after in enumerate(machine.steps[state]):
                if after == DEAD:
                    continue
                continuations = frozenset(self._forbidden.after[forbidden][letter] for forbidden in pending)
                if DEAD in continuations:
                    run.whole = False
                    continue
                then = tuple((k, to) for k, at in words if (to := machines[keywords[k]].steps[at][letter]) != DEAD)
                if which < 0 or then:
                    edges.append((letter, number((name, keywords, which, after, then, continuations - {0}))))
            run.edges.append(edges)
        return run

    def _boundaries(self, accepted: Accepted, pending: Pending) -> list[Pending]:
        """Return the sets of forbidden continuations that are possible after any number of ignored terminals.

        The first one is `pending`.

        Args:
            accepted: The terminals that the lexer tries within and after the ignored text.
            pending: The forbidden continuations before the ignored text.
        """
        order = [pending]
        for at in order:  # the list grows during iteration
            for run in self._ignoring(accepted, at):
                for end in run.ends:
                    if end is not None and (then := self._prune(accepted, end)) not in order:
                        order.append(then)
        return order

    def _ignoring(self, accepted: Accepted, pending: Pending) -> Iterator[_Run]:
        for name in self._ignored:
            yield self._run(self._ways_from(accepted, pending, name, ignored=True))

    def _contexts_after(self, accepted: Accepted, pending: Pending) -> frozenset[int]:
        key = accepted, pending
        if key not in self._ends:
            self._ends[key] = frozenset(self._at(accepted, at) for at in self._boundaries(accepted, pending))
        return self._ends[key]

    # Languages.

    def _text(self, name: str | None, ways: _Ways, accepted: Accepted, contexts: frozenset[int]) -> Regular:
        key = self._step_key(name, ways, accepted), contexts
        if key not in self._texts:
            self._texts[key] = self._written(name, ways, accepted, contexts)
        return self._texts[key]

    def _written(self, name: str | None, ways: _Ways, accepted: Accepted, contexts: frozenset[int]) -> Regular:
        if name is None or name in self._special:
            ends = {_NONE}
            run = None
        else:
            run = self._run(ways)
            ends = {self._prune(accepted, end) for end in run.ends if end is not None}
        every = all(self._contexts_after(accepted, end) <= contexts for end in ends)
        if every and (run is None or run.whole) and all(self._is_free(accepted, end) for end in ends):
            gap = self._gap or Concat(())
            if name is None:
                return gap
            one = self._special.get(name) or self._scanners.languages[name]
            return one if self._gap is None else Concat((one, gap))
        if run is None:
            gap = _Assembled(self, accepted, contexts).graph(None)
            return gap if name is None else Concat((self._special[name], gap))
        return _Assembled(self, accepted, contexts).graph(run)

    def _is_free(self, accepted: Accepted, pending: Pending) -> bool:
        """Return whether every sequence of matches of ignored terminals is allowed at a position.

        Args:
            accepted: The terminals that the lexer tries at the position.
            pending: The forbidden continuations that can still become complete there.
        """
        key = accepted, pending
        if key not in self._gaps:
            if self._gap is None:
                self._gaps[key] = True
            else:
                found = _Assembled(self, accepted, self._contexts_after(accepted, pending)).graph(None, pending)
                machine = machine_of(self._gap, self._scanners.alphabet)
                self._gaps[key] = found == self._scanners.alphabet.graph(machine.steps, machine.accepting)
        return self._gaps[key]


class _Assembled:
    """Builds the automaton of a terminal with the ignored text after it.

    Args:
        steps: The lexer contexts.
        accepted: The terminals that the lexer tries after the terminal.
        contexts: The lexer contexts at which the automaton accepts.
    """

    def __init__(self, steps: Steps, accepted: Accepted, contexts: frozenset[int]) -> None:
        self._of, self._accepted, self._contexts = steps, accepted, contexts
        self._free: list[list[int]] = []
        self._edges: list[list[tuple[int, int]]] = []
        self._final: set[int] = set()
        self._boundaries: dict[Pending, int] = {}
        self._todo: list[Pending] = []

    def graph(self, run: _Run | None, pending: Pending = _NONE) -> Regular:
        """Return the deterministic automaton.

        Args:
            run: The automaton of the terminal; None: only the ignored text.
            pending: The forbidden continuations before the ignored text, if `run` is None.
        """
        starts = [self._boundary(pending)] if run is None else self._add(run)
        while self._todo:
            checkpoint()
            at = self._todo.pop()
            for ignored in self._of._ignoring(self._accepted, at):
                self._free[self._boundaries[at]] += self._add(ignored)
        alphabet = self._of._scanners.alphabet
        why = f"lexer='contextual': the automaton of a terminal needs more than {_MAX_NODES:,} states"
        order, rows = determinize(starts, self._free, self._edges.__getitem__, len(alphabet), _MAX_NODES, why)
        return alphabet.graph(rows, [not self._final.isdisjoint(state) for state in order])

    def _node(self) -> int:
        self._free.append([])
        self._edges.append([])
        return len(self._free) - 1

    def _boundary(self, pending: Pending) -> int:
        if pending not in self._boundaries:
            self._boundaries[pending] = node = self._node()
            self._todo.append(pending)
            if self._of._at(self._accepted, pending) in self._contexts:
                self._final.add(node)
        return self._boundaries[pending]

    def _add(self, run: _Run) -> list[int]:
        by = len(self._free)
        for _ in run.edges:
            self._node()
        for number, (edges, end) in enumerate(zip(run.edges, run.ends, strict=True)):
            self._edges[by + number] = [(letter, by + after) for letter, after in edges]
            if end is not None:
                self._free[by + number].append(self._boundary(self._of._prune(self._accepted, end)))
        return [by + start for start in run.starts]
