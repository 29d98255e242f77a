"""A plain Earley recogniser over bytes (Earley, 1970), as the oracle of context-free grammars.

A grammar is a dict from names to alternatives; an alternative is a tuple of names and of single bytes.
"""

from __future__ import annotations

from .machine import Oracle, State as _State

Name = str
Alternative = tuple["Name | bytes", ...]
Rules = dict[Name, list[Alternative]]
Item = tuple[Name, int, int, int]  # name, alternative, how much of it is read, where it began


def productive(rules: Rules) -> Rules:
    """Removes alternatives that never end. Each remaining item then means a text that can be completed."""
    known: set[Name] = set()
    while True:
        found = {
            name
            for name, options in rules.items()
            if any(all(isinstance(part, bytes) or part in known for part in option) for option in options)
        }
        if found == known:
            break
        known = found
    return {
        name: [one for one in options if all(isinstance(part, bytes) or part in known for part in one)]
        for name, options in rules.items()
    }


class State:
    """The item sets of a text so far; compared by identity."""

    def __init__(self, sets: tuple[frozenset[Item], ...], whole: bool) -> None:
        self.sets, self.whole = sets, whole


class EarleyOracle(Oracle):
    """The face of `Oracle`, over rules."""

    def __init__(self, rules: Rules, start: Name) -> None:
        self.rules, self.root = productive(rules), start
        self._earley: dict[tuple[int, int], State | None] = {}
        first = {(start, number, 0, 0) for number in range(len(self.rules[start]))}
        self.start = self._made((), first)  # type: ignore[assignment]  # another kind of state, same face

    def _made(self, before: tuple[frozenset[Item], ...], items: set[Item]) -> State:
        """Predicts and completes items until no new item is found."""
        here, at = set(items), len(before)
        changed = True
        while changed:
            changed = False
            for name, number, done, origin in list(here):
                option = self.rules[name][number]
                new: set[Item] = set()
                if done == len(option):
                    waiting = here if origin == at else before[origin]
                    for other, which, read, began in list(waiting):
                        wanted = self.rules[other][which]
                        if read < len(wanted) and wanted[read] == name:
                            new.add((other, which, read + 1, began))
                elif isinstance(option[done], str):
                    new |= {(str(option[done]), n, 0, at) for n in range(len(self.rules[str(option[done])]))}
                if not new <= here:
                    here |= new
                    changed = True
        whole = any(
            name == self.root and origin == 0 and done == len(self.rules[name][number])
            for name, number, done, origin in here
        )
        return State((*before, frozenset(here)), whole)

    def step(self, state: _State, byte: int) -> _State | None:
        """After one more byte; None where the text can no longer be completed."""
        key = (id(state), byte)
        if key not in self._earley:
            sets: tuple[frozenset[Item], ...] = state.sets  # type: ignore[attr-defined]  # ours
            after = {
                (name, number, done + 1, origin)
                for name, number, done, origin in sets[-1]
                if self.rules[name][number][done : done + 1] == (bytes([byte]),)
            }
            self._earley[key] = self._made(sets, after) if after else None
            self._kept = [*getattr(self, "_kept", []), state]  # its identity is a key
        return self._earley[key]  # type: ignore[return-value]  # as above
