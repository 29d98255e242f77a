"""Prepares a Lark grammar for the contextual lexer: finds its terminals, and refuses what is not supported."""

from __future__ import annotations

from collections.abc import Mapping

from guideway.arguments import short_repr
from guideway.errors import LimitExceededError, UnsatisfiableError, UnsupportedError
from guideway.frontends.cfg.lark.contextual_lexer import Conflict, Split, Terminal, contextual_rules
from guideway.frontends.cfg.lark.definitions import Terminals, names_of, reached
from guideway.frontends.cfg.lark.statements import LarkReader
from guideway.frontends.cfg.scanner import special_of
from guideway.grammar.cfg import Alternation, Concatenation, Ref, Repetition, Term, parts_first

__all__ = ["split_by_context"]


def split_by_context(
    reader: LarkReader,
    terminals: Terminals,
    start: str,
    parts: Mapping[str, object],
    pieces: Mapping[str, object],
) -> Split:
    """Return rules that derive exactly the texts that Lark accepts with its LALR parser and contextual lexer.

    Args:
        reader: The parsed grammar.
        terminals: Its terminals.
        start: The start symbol.
        parts: The constraints for names that the grammar does not define. The rules must not refer to them.
        pieces: By the name of a terminal, the `source` of a `Text` that consists of the terminal and the ignored text
            after it (see `contextual_rules`).

    Raises:
        UnsupportedError: The grammar has a reduce/reduce conflict, refers to a name of `parts`, or has a terminal or an
            order of terminals that is not supported.
        InvalidConstraintError: A terminal is invalid.
        UnsatisfiableError: No text is accepted.
        LimitExceededError: The grammar is too large.
    """
    same = _TerminalNames(reader, terminals)
    needed = reached(reader, start)
    for name in sorted(parts):
        if name in needed:
            at = reader.mentioned.get(name, 0)
            reader.fail(
                f"lexer='contextual' does not support parts, because they are not terminals of Lark: {short_repr(name)}",
                at,
                UnsupportedError,
            )
    rules = {name: same.renamed(one.term) for name, one in reader.rules.items() if name in needed}
    ignored = tuple(dict.fromkeys(same.ignored(number) for number in range(len(reader.ignored))))
    used = {name for term in rules.values() for name in names_of(term)} - rules.keys()
    known = [same.terminal(name) for name in sorted({*used, *ignored} - reader.special.keys())]
    special = {name: special_of(name) for name in sorted(used & reader.special.keys())}
    try:
        return contextual_rules(rules, start, known, ignored, special, pieces)
    except Conflict as error:
        reader.fail(str(error), reader.rules[error.rule or start].at, UnsupportedError)
    except (LimitExceededError, UnsupportedError, UnsatisfiableError) as error:
        reader.fail(str(error), reader.rules[start].at if start in rules else 0, type(error))


class _TerminalNames:
    """Gives a literal the name of the terminal with the same pattern, because Lark makes them one terminal.

    If there is no such terminal, all literals with the same pattern have the name of the first of them.
    """

    def __init__(self, reader: LarkReader, terminals: Terminals) -> None:
        self._reader, self._terminals = reader, terminals
        self._named: dict[object, str] = {}
        for name in [*reader.terminals, *reader.common, *(f"%ignore {n}" for n in range(len(reader.ignored)))]:
            if not name.startswith("%") or self._ignores(int(name.split()[1])) is None:
                self._named[self._key(name)] = name

    def _ignores(self, number: int) -> str | None:
        """Return the name of the terminal of which the `%ignore` statement consists; None: it is not one terminal."""
        term = self._reader.ignored[number].term
        known = isinstance(term, Ref) and (term.name in self._reader.terminals or term.name in self._reader.common)
        return term.name if isinstance(term, Ref) and known else None

    def _key(self, name: str) -> object:
        written = self._terminals.written(name)
        return written.value, written.flags, written.fixed

    def ignored(self, number: int) -> str:
        """Return the name of the terminal of the `%ignore` statement with this number."""
        return self._ignores(number) or f"%ignore {number}"

    def _of(self, name: str) -> str:
        reader = self._reader
        if name in reader.rules or name in reader.terminals or name in reader.common or name in reader.special:
            return name
        if name not in reader.patterns:
            return name
        return self._named.setdefault(self._key(name), name)

    def renamed(self, root: Term) -> Term:
        """Return a term in which all literals have the names that this class gives them."""
        made: dict[int, Term] = {}
        for term in parts_first(root):
            match term:
                case Ref(name):
                    made[id(term)] = Ref(self._of(name))
                case Repetition(part, least, most):
                    made[id(term)] = Repetition(made[id(part)], least, most)
                case Concatenation(parts) | Alternation(parts):
                    made[id(term)] = type(term)(tuple(made[id(part)] for part in parts))
        return made[id(root)]

    def terminal(self, name: str) -> Terminal:
        """Return a terminal with the properties by which Lark orders terminals.

        Raises the errors of `Terminals.language`.
        """
        reader, terminals = self._reader, self._terminals
        written, language = terminals.written(name), terminals.language(name)
        most = written.widths()[1]
        invented = name not in reader.terminals and name not in reader.common
        shown = f"__IGNORE_{name.split()[1]}" if name.startswith("%") else "__ANON" if invented else name
        text = written.value if written.fixed else None
        return Terminal(
            name, language, terminals.priority(name), most, written.length, text, written.flags, shown, invented
        )
