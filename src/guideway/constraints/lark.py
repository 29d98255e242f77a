"""`Lark`: grammars in the notation of the parser library Lark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from guideway.arguments import short_list, short_repr
from guideway.constraints.base import Constraint
from guideway.constraints.captures import IGNORED, Rules
from guideway.constraints.embed import term_of
from guideway.constraints.rules import RuleConstraint, already_defined
from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.frontends.cfg.lark.contextual import split_by_context
from guideway.frontends.cfg.lark.contextual_lexer import Split
from guideway.frontends.cfg.lark.definitions import Terminals, names_of, reached
from guideway.frontends.cfg.lark.ignored_text import IgnoredText, LookaheadError
from guideway.frontends.cfg.lark.statements import LarkReader
from guideway.frontends.cfg.scanner import special_of
from guideway.grammar.cfg import Alternation, Concatenation, Except, Ref, Rule, Term, Text, lower
from guideway.grammar.cfg.embedded import without_empty_text
from guideway.grammar.cfg.expressions import Expressions
from guideway.grammar.derivatives import spelled_out
from guideway.grammar.regular import EMPTY, NEVER, Concat, Regular, Repeat, Union

__all__ = ["Lark"]

_ROOT = "%start"

Lexer = Literal["dynamic_complete", "contextual"]


class Lark(RuleConstraint):
    """The texts that a Lark grammar derives. The value is the text.

    In addition to Lark's notation, `<|name|>`, `<[id]>` and `<[id-id,id]>` in a rule are special tokens. Not supported:
    terminals that can match the empty text or depend on the text around them, imports other than `common`, templates of
    terminals, and templates as arguments. With the contextual lexer, these are not supported, either: `parts`,
    reduce/reduce conflicts (Lark resolves them by the priorities of rules), and terminals whose order in Lark depends
    on generated names.

    Args:
        text: The grammar.
        start: The start symbol.
        lexer: "dynamic_complete": as Lark's Earley parser with the lexer of this name. A text matches if it can be
            divided into terminals in any way that the rules allow, with ignored text before, between and after them.
            Priorities have no effect. A pattern matches a text if the first match of Python's `re` in this text is the
            whole text: `/a|ab/` never matches "ab" (but `"a" | "ab"` does: Lark tries longer alternatives first).
            "contextual": as Lark's LALR(1) parser with its contextual lexer. Of the terminals that the parser accepts,
            the first in Lark's order that matches is taken, with the match of its pattern in Python's `re`. A match that
            equals a keyword is this keyword.
        parts: Constraints for names that the text does not define (declared or not).

    Raises:
        InvalidConstraintError: The grammar has an error (the message has line, column and caret), or another argument
            is not valid.
        UnsupportedError: The grammar uses an unsupported construct.
        UnsatisfiableError: The start symbol derives no finite text. The message names the rules.
        LimitExceededError: The grammar is too large.
    """

    def __init__(
        self,
        text: str,
        *,
        start: str = "start",
        lexer: Lexer = "dynamic_complete",
        parts: Mapping[str, object] | None = None,
    ) -> None:
        if lexer not in ("dynamic_complete", "contextual"):
            raise InvalidConstraintError(f"lexer must be 'dynamic_complete' or 'contextual', got {short_repr(lexer)}")
        self.lexer = lexer
        self.first = start
        super().__init__(text, start, parts)

    def _derive(self) -> None:
        self._splits: list[Split] = []  # for the contextual lexer, the result of `split_by_context`; otherwise empty
        self._exact: list[Rule] = []  # the result of `_with_exact_gaps`
        super()._derive()
        for split in self._splits:
            self._take(split.rules, split.start, split.names)
        if self._exact:
            ahead, self._grammar = self._grammar.ahead, lower(self._exact, _ROOT).grammar
            self._grammar.ahead = ahead

    def _read(self, start: str | None) -> tuple[list[Rule], str]:
        reader = LarkReader(self.text)
        reader.read()
        terminals = Terminals(reader)
        self._check_names(reader, start or "start")
        ignored = [terminals.language(f"%ignore {number}") for number in range(len(reader.ignored))]
        gap = Repeat(Union(tuple(ignored)), 0, None) if ignored else None

        def with_gap(term: Term) -> Term:
            if gap is None:
                return term
            both = Concatenation((term, Text(gap, IGNORED)))
            return Text(Concat((term.language, gap)), _Spaced(both)) if isinstance(term, Text) else both

        rules = [Rule(name, one.term, reader.place(one.at)) for name, one in reader.rules.items()]
        used = reached(reader, start or "start")  # as in Lark, other terminals need not be usable
        for name in terminals.names:
            if name in used:
                rules.append(Rule(name, with_gap(Text(terminals.language(name))), terminals.place(name)))
        mentioned = {ref for one in reader.rules.values() for ref in names_of(one.term)}
        # Rules that the start symbol does not reach can refer to other terminals. These match nothing.
        unused = [
            Rule(name, Text(NEVER), terminals.place(name)) for name in terminals.names if name in mentioned - used
        ]
        rules += unused
        rules += [Rule(name, with_gap(Text(special_of(name))), reader.place(at)) for name, at in reader.special.items()]
        rules += [Rule(name, with_gap(term_of(part))) for name, part in self.parts.items()]
        if self.lexer == "contextual":
            pieces = {rule.name: rule.term.source for rule in rules if isinstance(rule.term, Text)}
            self._splits = [split_by_context(reader, terminals, start or "start", self.parts, pieces)]
        elif ignored:
            self._exact = self._with_exact_gaps(reader, terminals, used, start or "start")
            self._exact += unused if self._exact else []
        first: Term = Ref(start or "start")
        return [*rules, Rule(_ROOT, first if gap is None else Concatenation((Text(gap, IGNORED), first)))], _ROOT

    def _with_exact_gaps(self, reader: LarkReader, terminals: Terminals, used: set[str], start: str) -> list[Rule]:
        """Return a complete set of rules in which ignored text is exactly what Lark's dynamic lexer can skip.

        Ignored text is allowed before each terminal and at the end of the text. Within it, each ignored terminal takes
        the longest match of its pattern. The list is empty if this excludes no sequence of ignored terminals: the
        simpler rules of `_read` are then exact. Parts that `_written` cannot write are not compared with ignored text.
        """
        texts = {name: terminals.language(name) for name in terminals.names if name in used}
        # No ignored text comes before an empty part: it belongs to the text after the part.
        optional, some = {name for name, part in self.parts.items() if _can_be_empty(part)}, Expressions().some
        regular = {name: _written(part) for name, part in self.parts.items()}
        texts |= {name: some(language) for name, language in regular.items() if language is not None}
        names = [f"%ignore {number}" for number in range(len(reader.ignored))]
        at = reader.ignored[0].at
        try:
            gaps = IgnoredText([terminals.language(name) for name in names], texts)
            if not gaps.differs():
                return []
            alone, empty = Text(gaps.alone()), Text(EMPTY)

            def rule(name: str, term: Term, place: str | None = None) -> Rule:
                return Rule(name, Alternation((term, empty)) if name in optional else term, place)

            rules = [Rule(name, one.term, reader.place(one.at)) for name, one in reader.rules.items()]
            joined = [name for name in texts if name not in self.parts or gaps.meets(name)]
            for name in joined:
                rules.append(rule(name, Text(gaps.before(name)), terminals.place(name)))
        except LookaheadError:
            reader.fail(
                f"whether text before {short_repr(name)} is ignored depends on the text after it; change the ignored terminals",
                at,
                UnsupportedError,
            )
        except LimitExceededError as error:
            reader.fail(str(error), at, LimitExceededError)
        others: list[tuple[str, Term]] = [(name, Text(special_of(name))) for name in reader.special]
        others += [
            (name, Except(term_of(part), empty) if name in optional else term_of(part))
            for name, part in self.parts.items()
            if name not in joined
        ]
        rules += [rule(name, Concatenation((alone, term))) for name, term in others]
        return [*rules, Rule(_ROOT, Concatenation((Ref(start), alone)))]

    def _content(self) -> object:
        return super()._content(), self.first, self.lexer

    def _check_names(self, reader: LarkReader, start: str) -> None:
        for name in self.parts:
            found = reader.rules.get(name) or reader.terminals.get(name)
            if found is not None:
                raise already_defined(name, reader.place(found.at))
            if name in reader.special:
                raise already_defined(name, reader.place(reader.special[name]))
            if (at := reader.template(name)) is not None:
                raise already_defined(name, reader.place(at))
            if name in reader.patterns:
                line = re.search(rf"%import\b[^\n]*\b{re.escape(name)}\b", self.text)
                raise already_defined(name, reader.place(line.start() if line else 0))
        known = {*reader.rules, *reader.terminals, *reader.patterns, *self.parts}
        for name, at in {**reader.mentioned, **reader.declared}.items():
            if name in reader.declared and name not in known:
                reader.fail(
                    f"{short_repr(name)} is declared but not defined; pass a constraint for it in `parts`",
                    at,
                    UnsupportedError,
                )
            if name not in known:
                named = sorted(one for one in known if one.strip("_").isidentifier())
                reader.fail(f"{short_repr(name)} is not defined; defined names: {short_list(named)}", at)
        if start not in reader.rules and start not in self.parts:
            raise InvalidConstraintError(
                f"start rule {short_repr(start)} is not defined; defined rules: {short_list(sorted(reader.rules))}"
            )


def _can_be_empty(part: Constraint[Any]) -> bool:
    """Return whether a part matches the empty text."""
    language = part.regular()
    if language is not None:
        return Expressions().nullable(language)
    return without_empty_text(part.grammar()) is not None


def _written(part: Constraint[Any]) -> Regular | None:
    """Return the language of a part, without `JsonEscaped` and `Substrings`.

    None: the part is not regular, contains special tokens, or consists of the substrings of a long text.
    """
    language = part.regular()
    try:
        return None if language is None else spelled_out(language)
    except (UnsupportedError, LimitExceededError):
        return None


class _Spaced:
    """The `source` of a `Text` that matches a terminal and the ignored text after it.

    Its `shape` has the two as separate terms, because captures do not contain the ignored text.
    """

    def __init__(self, both: Concatenation) -> None:
        self._shape = Rules((Rule("%spaced", both),), "%spaced")

    def shape(self) -> Rules:
        return self._shape
