"""The order in which Lark's lexer tries terminals, and keywords that patterns match."""

from __future__ import annotations

from dataclasses import dataclass

from guideway.grammar.automata.alphabet import Alphabet
from guideway.grammar.automata.determinize import DEAD
from guideway.grammar.automata.dfa import Machine, machine_of
from guideway.grammar.regular import Regular

__all__ = ["Terminal", "TerminalScanner", "TerminalScanners"]

_ENDLESS = 1 << 64


@dataclass(frozen=True, slots=True, eq=False)
class Terminal:
    """A terminal with the properties by which Lark orders terminals.

    Attributes:
        name: The name in the grammar.
        language: The texts; the longest one that the rest of a text begins with is the match.
        priority: The priority. Terminals with a higher priority are tried first.
        most: The length of the longest text in characters; None: unbounded.
        length: The length of the pattern as written.
        text: The text of a terminal that is one fixed text; None for patterns.
        flags: The flags of the pattern.
        shown: The name that Lark gives the terminal.
        invented: Whether Lark generates this name, as it does for literals.
    """

    name: str
    language: Regular
    priority: int
    most: int | None
    length: int
    text: str | None
    flags: frozenset[str]
    shown: str
    invented: bool

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """The sort key of Lark's order: higher priority first, then longer text, longer pattern, and the name."""
        return -self.priority, -(_ENDLESS if self.most is None else self.most), -self.length, self.shown


@dataclass(frozen=True, slots=True)
class TerminalScanner:
    """A terminal as the lexer tries it where the parser accepts a certain set of terminals.

    Attributes:
        name: The name of the terminal.
        before: The names of the terminals that are tried before it.
        keywords: Names of terminals of fixed text. If the match equals the text of one of them, the result is the first
            such terminal.
        tied: Those of `before` that precede it only because of a name that Lark generates. If one of them can match the
            same text, the grammar is refused.
    """

    name: str
    before: tuple[str, ...]
    keywords: tuple[str, ...]
    tied: tuple[str, ...]


class TerminalScanners:
    """The scanners for each set of terminals that the parser may accept.

    Attributes:
        alphabet: The character classes that the terminals distinguish.
        machines: The automata of the terminals by name.
        languages: The languages of the terminals by name.
    """

    def __init__(self, terminals: list[Terminal]) -> None:
        self._order = sorted(terminals, key=lambda one: one.rank)
        self.alphabet = Alphabet(one.language for one in terminals)
        self.machines: dict[str, Machine] = {one.name: machine_of(one.language, self.alphabet) for one in terminals}
        self.languages = {one.name: one.language for one in terminals}
        self._words = {one.name for one in terminals if one.text is not None and not one.flags}
        self._known: dict[frozenset[str], dict[str, tuple[TerminalScanner, ...]]] = {}
        letters: dict[str, int] = {}
        for number, ranges in enumerate(self.alphabet.ranges):
            letters |= {chr(low): number for low, high in ranges if low == high}
        self._letters = letters
        self._within: dict[tuple[str, str], bool] = {}

    def of(self, accepted: frozenset[str]) -> dict[str, tuple[TerminalScanner, ...]]:
        """Return, for each terminal of a set, the scanners that can produce it.

        These are the scanner with its name, if there is one, and the scanners that have it as a keyword. A keyword has
        no separate scanner if a scanner that has it as a keyword also has all its flags.
        """
        if accepted not in self._known:
            self._known[accepted] = self._made([one for one in self._order if one.name in accepted])
        return self._known[accepted]

    def is_word(self, name: str) -> bool:
        """Return whether a terminal is one fixed text without flags."""
        return name in self._words

    def _made(self, terminals: list[Terminal]) -> dict[str, tuple[TerminalScanner, ...]]:
        words = [one for one in terminals if one.text is not None]
        keywords: dict[str, tuple[str, ...]] = {}
        inside: set[str] = set()
        for one in terminals:
            if one.text is None:
                found = [word for word in words if word.priority == one.priority and self._takes(one, word)]
                keywords[one.name] = tuple(word.name for word in found)
                inside.update(word.name for word in found if word.flags <= one.flags)
        result: dict[str, tuple[TerminalScanner, ...]] = {one.name: () for one in terminals}
        before: list[str] = []
        for one in terminals:
            if one.name in inside:
                continue
            tied = tuple(other.name for other in terminals if other.name in before and _tied(one, other))
            scanner = TerminalScanner(one.name, tuple(before), keywords.get(one.name, ()), tied)
            for name in (one.name, *scanner.keywords):
                result[name] = (*result[name], scanner)
            before.append(one.name)
        return result

    def _takes(self, pattern: Terminal, word: Terminal) -> bool:
        """Return whether a pattern matches a fixed text completely."""
        key = pattern.name, word.name
        if key not in self._within:
            machine, at = self.machines[pattern.name], 0
            for char in word.text or "":
                letter = self._letters.get(char)
                at = DEAD if letter is None else machine.steps[at][letter]
                if at == DEAD:
                    break
            self._within[key] = at != DEAD and machine.accepting[at]
        return self._within[key]


def _tied(one: Terminal, other: Terminal) -> bool:
    if one.rank[:3] != other.rank[:3]:
        return False
    both = one.invented and other.invented
    return both or any(each.invented and each.text is not None for each in (one, other))
