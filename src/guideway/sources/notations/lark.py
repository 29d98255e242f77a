"""Lark: the grammars of the parser library of that name."""

from __future__ import annotations

from collections.abc import Mapping

from guideway.errors import ConstraintError, InvalidConstraint, LimitExceeded, Unsupported
from guideway.grammar.regular import Cat, Either, Regular, Repeat
from guideway.grammar.rules import Choice, Ref, Rule, Series, Term, Text, Times
from guideway.grammar.rules.knots import knots
from guideway.sources.captures import IGNORED, Rules
from guideway.sources.terms import term_of

from .lark_reader import Definition, LarkReader
from .lark_terminals import TerminalError, language_of
from .source import RuleSource, special_of

__all__ = ["Lark"]

_MAX_PATTERN = 100_000  # characters of a terminal, the terminals in it written out
_ROOT = "%start"


class Lark(RuleSource):
    """What a grammar in Lark's notation derives from `start`.

    The meaning is that of Lark's Earley parser with `lexer="dynamic_complete"`: a text fits if it can be cut into
    terminals in any way that the rules allow, with ignored text before, between and behind them; priorities do not
    change that. Terminals with a lazy repetition stand for their shortest texts. `parts`: sources for names that the
    text does not define (declared or not). Beyond Lark, `<|name|>` and `<[id]>` in a rule are special tokens. Refused:
    terminals that can be empty or look at text around them, imports of anything but `common`, templates of terminals.
    Raises `InvalidConstraint`, `Unsupported` with line, column and caret, `Unsatisfiable` with the names of rules that
    never end, `LimitExceeded`.
    """

    def __init__(self, text: str, *, start: str = "start", parts: Mapping[str, object] | None = None) -> None:
        super().__init__(text, start, parts)

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        reader = LarkReader(self.text)
        reader.read()
        terminals = _Terminals(reader)
        self._check_names(reader, start or "start")
        ignored = [terminals.language(f"%ignore {number}") for number in range(len(reader.ignored))]
        gap = Repeat(Either(tuple(ignored)), 0, None) if ignored else None

        def with_gap(term: Term) -> Term:
            if gap is None:
                return term
            both = Series((term, Text(gap, IGNORED)))
            return Text(Cat((term.language, gap)), _Spaced(both)) if isinstance(term, Text) else both

        rules = [Rule(name, one.term, reader.place(one.at)) for name, one in reader.rules.items()]
        used = {ref for one in reader.rules.values() for ref in _names(one.term)}
        for name in terminals.names:
            if name in used:
                rules.append(Rule(name, with_gap(Text(terminals.language(name))), terminals.place(name)))
        rules += [Rule(name, with_gap(Text(special_of(name))), reader.place(at)) for name, at in reader.special.items()]
        taken = {rule.name for rule in rules}
        rules += [Rule(name, with_gap(term_of(part))) for name, part in self.parts.items() if name not in taken]
        first: Term = Ref(start or "start")
        return [*rules, Rule(_ROOT, first if gap is None else Series((Text(gap, IGNORED), first)))], _ROOT

    def _check_names(self, reader: LarkReader, start: str) -> None:
        known = {*reader.rules, *reader.terminals, *reader.patterns, *self.parts}
        for name, at in {**reader.mentioned, **reader.declared}.items():
            if name in reader.declared and name not in known:
                reader.fail(f"{name!r} is declared and nothing else: pass a source for it in `parts`", at, Unsupported)
            if name not in known:
                named = sorted(one for one in known if one.strip("_").isidentifier())
                reader.fail(f"{name!r} is not defined; there are {', '.join(named)}", at)
        if start not in known:
            raise InvalidConstraint(
                f"there is no rule {start!r} to start with; there are {', '.join(sorted(reader.rules))}"
            )


class _Spaced:
    """A terminal with the ignored text behind it: one language, and for captures two pieces."""

    def __init__(self, both: Series) -> None:
        self._shape = Rules((Rule("%spaced", both),), "%spaced")

    def shape(self) -> Rules:
        return self._shape


class _Terminals:
    """Terminals as patterns, those in them written out, and as languages."""

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
            return [numbers[name] for name in _names(self._defined[names[number]].term) if name in numbers]

        for knot in knots(range(len(names)), callees):
            one = self._defined[names[knot[0]]]
            if len(knot) > 1 or knot[0] in callees(knot[0]):
                reader.fail(f"the terminal {names[knot[0]]!r} refers to itself; only rules may", one.at)
            self._patterns[names[knot[0]]] = self._pattern(one)

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(self._patterns)

    def place(self, name: str) -> str | None:
        """Where it is defined."""
        return self._reader.place(self._defined[name].at) if name in self._defined else None

    def language(self, name: str) -> Regular:
        """Its texts."""
        if name not in self._languages:
            at = self._defined[name].at if name in self._defined else max(self._reader.text.find(name), 0)
            try:
                self._languages[name] = language_of(self._patterns[name])
            except TerminalError as error:
                kind = InvalidConstraint if error.kind is ConstraintError else error.kind
                self._reader.fail(f"the terminal {name}: {error}", at, kind)
            except ConstraintError as error:
                self._reader.fail(f"the terminal {name}: {str(error).splitlines()[0].rstrip(':')}", at, type(error))
        return self._languages[name]

    def _pattern(self, definition: Definition) -> str:
        """The definition as one pattern; a walk with a stack, parts before what holds them."""
        made: dict[int, str] = {}
        todo = [definition.term]
        while todo:
            term = todo[-1]
            parts = (
                term.parts if isinstance(term, (Series, Choice)) else (term.part,) if isinstance(term, Times) else ()
            )
            waiting = [part for part in parts if id(part) not in made]
            if waiting:
                todo += waiting
                continue
            todo.pop()
            made[id(term)] = self._written(term, [made[id(part)] for part in parts], definition)
            if len(made[id(term)]) > _MAX_PATTERN:
                self._reader.fail("a terminal whose pattern is too long", definition.at, LimitExceeded)
        return made[id(definition.term)]

    def _written(self, term: Term, parts: list[str], definition: Definition) -> str:
        match term:
            case Ref(name):
                if name not in self._patterns:
                    what = "the rule" if name in self._reader.rules else "what is not defined:"
                    what = "the special token" if name in self._reader.special else what
                    self._reader.fail(f"a terminal refers to {what} {name!r}", definition.at)
                return self._patterns[name]
            case Series():
                return f"(?:{''.join(parts)})"
            case Choice():
                return f"(?:{'|'.join(parts)})"
            case Times(_, least, most):
                return f"(?:{parts[0]}{{{least},{'' if most is None else most}}})"
        raise TypeError(term)


def _names(root: Term) -> list[str]:
    found, todo = [], [root]
    while todo:
        term = todo.pop()
        if isinstance(term, Ref):
            found.append(term.name)
        elif isinstance(term, (Series, Choice)):
            todo += term.parts
        elif isinstance(term, Times):
            todo.append(term.part)
    return found
