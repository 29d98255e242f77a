"""The terminals of a Lark grammar, with references to other terminals resolved."""

from __future__ import annotations

from typing import NoReturn

from guideway.arguments import short_repr, shortened
from guideway.background import checkpoint
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError
from guideway.frontends.cfg.lark.statements import Definition, LarkReader
from guideway.frontends.cfg.lark.terminals import TerminalError, Written, either, joined, language_of, repeated
from guideway.grammar.cfg import Alternation, Concatenation, Ref, Repetition, Term, parts_first, parts_of
from guideway.grammar.cfg.scc import strongly_connected_components
from guideway.grammar.regular import Regular

__all__ = ["Terminals", "names_of", "reached"]

_MAX_PATTERN = 100_000  # maximum length of a resolved pattern, in characters


class Terminals:
    """The terminals of a grammar as patterns and as languages, with references to other terminals resolved.

    The terminal of the `%ignore` statement with the number n has the name "%ignore n".

    Args:
        reader: The parsed grammar.

    Raises:
        InvalidConstraintError: A terminal is recursive, or refers to a name that is not a terminal.
        LimitExceededError: A resolved pattern is too long.

    Also raises the errors of `parse_tree` for the alternatives of a terminal, with the position of the terminal.
    """

    def __init__(self, reader: LarkReader) -> None:
        self._reader = reader
        self._defined: dict[str, Definition] = {
            **reader.terminals,
            **{f"%ignore {number}": one for number, one in enumerate(reader.ignored)},
        }
        self._patterns = dict(reader.patterns)
        self._languages: dict[str, Regular] = {}
        names = list(self._defined)
        numbers = {name: number for number, name in enumerate(names)}

        def callees(number: int) -> list[int]:
            return [numbers[name] for name in names_of(self._defined[names[number]].term) if name in numbers]

        for component in strongly_connected_components(range(len(names)), callees):
            one = self._defined[names[component[0]]]
            if len(component) > 1 or component[0] in callees(component[0]):
                reader.fail(
                    f"the terminal {short_repr(names[component[0]])} is recursive; only rules may be recursive", one.at
                )
            self._patterns[names[component[0]]] = self._pattern(one)

    @property
    def names(self) -> list[str]:
        """The names of all terminals."""
        return list(self._patterns)

    def place(self, name: str) -> str | None:
        """Return the position of the definition of a terminal, as `Reader.place` does.

        None: the grammar text does not define a terminal with this name. These are literals, ranges, rules, and
        imported terminals without `%override` or `%extend`.
        """
        return self._reader.place(self._defined[name].at) if name in self._defined else None

    def at(self, name: str) -> int:
        """Return the index of a definition in the grammar text. For other names: where the name first occurs, or 0."""
        return self._defined[name].at if name in self._defined else max(self._reader.text.find(name), 0)

    def language(self, name: str) -> Regular:
        """Return the language of a terminal, as `language_of` returns it for the pattern.

        Raises an error with the position of the terminal if it is not supported or not valid.
        """
        if name not in self._languages:
            at = self.at(name)
            try:
                self._languages[name] = language_of(self._patterns[name].pattern)
            except TerminalError as error:
                kind = InvalidConstraintError if error.kind is ConstraintError else error.kind
                self._reader.fail(f"terminal {shortened(name)}: {error}", at, kind)
            except ConstraintError as error:
                self._fail(name, error, at)
        return self._languages[name]

    def _fail(self, name: str, error: ConstraintError, at: int) -> NoReturn:
        self._reader.fail(f"terminal {shortened(name)}: {str(error).splitlines()[0].rstrip(':')}", at, type(error))

    def written(self, name: str) -> Written:
        """Return the resolved pattern of a terminal."""
        return self._patterns[name]

    def priority(self, name: str) -> int:
        """Return the priority of a terminal."""
        return self._defined[name].priority if name in self._defined else 0

    def _name_of(self, definition: Definition) -> str:
        return next(name for name, one in self._defined.items() if one is definition)

    def _pattern(self, definition: Definition) -> Written:
        """Return the resolved pattern of a definition."""
        made: dict[int, Written] = {}
        for term in parts_first(definition.term):
            made[id(term)] = self._written(term, [made[id(part)] for part in parts_of(term)], definition)
            if len(made[id(term)].value) > _MAX_PATTERN:
                self._reader.fail(
                    f"the pattern of a terminal may have at most {_MAX_PATTERN:,} characters",
                    definition.at,
                    LimitExceededError,
                )
        return made[id(definition.term)]

    def _written(self, term: Term, parts: list[Written], definition: Definition) -> Written:
        match term:
            case Ref(name):
                if name not in self._patterns:
                    what = "the rule" if name in self._reader.rules else "the undefined name"
                    what = "the special token" if name in self._reader.special else what
                    self._reader.fail(
                        f"a terminal may refer only to terminals, got {what} {short_repr(name)}", definition.at
                    )
                return self._patterns[name]
            case Concatenation():
                return joined(parts)
            case Alternation():
                try:
                    return either(parts)
                except ConstraintError as error:
                    self._fail(self._name_of(definition), error, definition.at)
            case Repetition(_, least, most):
                return repeated(parts[0], least, most)
        raise TypeError(term)


def names_of(root: Term) -> list[str]:
    """Return the names of the rules and terminals that a term refers to."""
    return [term.name for term in parts_first(root) if isinstance(term, Ref)]


def reached(reader: LarkReader, start: str) -> set[str]:
    """Return the names of the rules and terminals that the start symbol refers to, directly or by other rules."""
    seen, todo = {start}, [start]
    while todo:
        checkpoint()
        rule = reader.rules.get(todo.pop())
        fresh = {name for name in names_of(rule.term) if name not in seen} if rule else set()
        seen |= fresh
        todo += fresh
    return seen
