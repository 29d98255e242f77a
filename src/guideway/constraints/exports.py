"""Writes a grammar in the notation of llama.cpp (GBNF) or llguidance (Lark), or as a regular expression."""

from __future__ import annotations

from typing import Literal

from guideway.arguments import short_repr
from guideway.errors import LimitExceededError, UnsatisfiableError, UnsupportedError
from guideway.grammar.derivatives import determinized, spelled_out
from guideway.grammar.nodes import Grammar, Leaf
from guideway.grammar.recognizer import is_empty
from guideway.grammar.regular import Dfa
from guideway.grammar.rules_text import Class, FixedText, Join, RuleRef, Rules, Term, TermChoice, Times, rules_of
from guideway.grammar.work import BoundedWork

__all__ = ["LarkDialect", "RegexDialect", "gbnf_of", "lark_of", "regex_of"]

LarkDialect = Literal["llguidance"]
RegexDialect = Literal["rust", "python", "ecma"]

MAX_CHARACTERS = 4_000_000
"""Maximum length of an export."""

EXPORT_WORK = 150_000_000
"""The maximum work of an export, in the units of `CompileLimits.max_work`."""

MAX_REGEX = 200_000
"""The maximum length of a regular expression. Engines that compile it may have lower limits."""

_MAX_TIMES = 1000
"""The largest repetition count that is written, because llama.cpp refuses counts from 2,000 on."""

MAX_NESTING = 200
"""The maximum number of nested references to rules in a regular expression."""


def gbnf_of(grammar: Grammar, duplicate_keys: bool, single_characters: bool = False) -> str:
    """Return a grammar in GBNF. The arguments and errors are those of `Constraint.to_gbnf`."""
    rules = _checked(grammar, duplicate_keys)
    writer = _RulesWriter(rules, _gbnf_class, _gbnf_characters if single_characters else _gbnf_text)
    return writer.run(lambda name, body: f"{name} ::= {body}\n", "root", "r")


def lark_of(grammar: Grammar, duplicate_keys: bool) -> str:
    """Return a grammar in the Lark notation of llguidance. The errors are those of `Constraint.to_lark`.

    A grammar that is one regular expression is written as one, unless this is too long. Other grammars are written with
    lexemes of one character each: the lexer of llguidance takes the longest lexeme that fits, so all must have the same
    length.
    """
    rules = _checked(grammar, duplicate_keys)
    root = grammar.nodes[grammar.root]
    if isinstance(root, Leaf):
        try:
            return f"start: /{regex_of(grammar, 'rust')}/\n"
        except LimitExceededError:
            pass
    writer = _RulesWriter(rules, _lark_class, _lark_text)
    return writer.run(lambda name, body: f"{name}: {body}\n", "start", "r")


def _checked(grammar: Grammar, duplicate_keys: bool) -> Rules:
    _refuse_empty(grammar)
    with BoundedWork(units=EXPORT_WORK, purpose="exported"):
        return _simplified(rules_of(grammar, duplicate_keys=duplicate_keys))


def _refuse_empty(grammar: Grammar) -> None:
    """Raise an error if no text fits, or if the test of this exceeds its limit. The grammar stores the result."""
    if grammar.emptiness is None:
        try:
            grammar.emptiness = is_empty(grammar)
        except LimitExceededError as error:
            grammar.emptiness = error.args[0], error.place
    if isinstance(grammar.emptiness, tuple):
        raise LimitExceededError(*grammar.emptiness)
    if grammar.emptiness:
        raise UnsatisfiableError("no text fits the constraint, so there is nothing to export")


# -- rules: alternatives that derive no text are removed, and nested concatenations are flattened


def _simplified(rules: Rules) -> Rules:
    """Return the rules without alternatives that derive no text, and with nested concatenations flattened."""
    productive = [False] * len(rules)
    left, count = _ordered(rules), len(rules) + 1
    while len(left) < count:
        count, tested, left = len(left), left, []
        for number in tested:
            productive[number] = _derives(rules[number], productive)
            if not productive[number]:
                left.append(number)
    return [_pruned(rule, productive) for rule in rules]


def _ordered(rules: Rules) -> list[int]:
    """Return the numbers of the rules, each after those that it refers to, except in cycles."""
    order: list[int] = []
    seen = [False] * len(rules)
    for root in range(len(rules)):
        todo = [root]
        while todo:
            number = todo.pop()
            if number < 0:
                order.append(~number)
            elif not seen[number]:
                seen[number] = True
                todo.append(~number)  # after its references
                todo += _references(rules[number])
    return order


def _references(term: Term) -> list[int]:
    found, todo = list[int](), [term]
    while todo:
        match todo.pop():
            case RuleRef(rule):
                found.append(rule)
            case Join(parts) | TermChoice(parts):
                todo += parts
            case Times(part):
                todo.append(part)
    return found


def _derives(term: Term, productive: list[bool]) -> bool:
    if isinstance(term, RuleRef):  # `match` takes twice the time, and this runs for each term
        return productive[term.rule]
    if isinstance(term, (FixedText, Class)):
        return True
    if isinstance(term, Times):
        return term.least == 0 or _derives(term.part, productive)
    if isinstance(term, Join):
        return all(_derives(part, productive) for part in term.parts)
    return any(_derives(part, productive) for part in term.parts)


def _pruned(term: Term, productive: list[bool]) -> Term:
    if isinstance(term, (RuleRef, FixedText, Class)):  # most terms
        return term
    match term:
        case TermChoice(parts):
            kept = tuple(_pruned(part, productive) for part in parts if _derives(part, productive))
            return kept[0] if len(kept) == 1 else TermChoice(kept)
        case Join(parts):
            flat: list[Term] = []
            for part in parts:
                one = _pruned(part, productive)
                flat += one.parts if isinstance(one, Join) else (one,)
            return flat[0] if len(flat) == 1 else Join(tuple(flat))
        case Times(part, least, most):
            inner = _pruned(part, productive)
            if not _derives(part, productive) or most == 0:
                return Join(())
            return inner if (least, most) == (1, 1) else Times(inner, least, most)


class _RulesWriter:
    """Writes the rules that are reachable from rule 0.

    `one_class` returns the notation of the ranges of a character class, and `one_text` that of a fixed text.
    """

    def __init__(self, rules: Rules, one_class: object, one_text: object) -> None:
        self._rules, self._class, self._text = list(rules), one_class, one_text
        self._names: dict[int, str] = {}
        self._order: list[int] = []
        self._classes: dict[tuple[tuple[int, int], ...], str] = {}  # the notation by the ranges: some have hundreds
        self._size = 0

    def run(self, line: object, first: str, prefix: str) -> str:
        self._prefix = prefix
        self._names[0] = first
        self._order.append(0)
        lines: list[str] = []
        for number in self._order:  # `_name` appends to it
            text = line(self._names[number], self._term(self._rules[number], 0))  # type: ignore[operator]  # a function
            self._size += len(text)
            if self._size > MAX_CHARACTERS:
                raise LimitExceededError(f"the exported grammar has more than {MAX_CHARACTERS:,} characters")
            lines.append(text)
        return "".join(lines)

    def _name(self, rule: int) -> str:
        if rule not in self._names:
            self._names[rule] = f"{self._prefix}{len(self._names)}"
            self._order.append(rule)
        return self._names[rule]

    def _term(self, term: Term, level: int) -> str:
        """Return the notation of a term, with parentheses where its context needs them.

        `level` is the context. 0: an alternation may be there, 1: a sequence, 2: only the operand of a repetition.
        """
        match term:
            case RuleRef(rule):  # first: most terms
                return self._name(rule)
            case FixedText(text):
                written: str = self._text(text)  # type: ignore[operator]  # a function
                return f"({written})" if level == 2 and " " in written and len(text) > 1 else written
            case Class(ranges):
                found = self._classes.get(ranges)
                if found is None:
                    found = self._classes[ranges] = self._class(ranges)  # type: ignore[operator]  # a function
                return found
            case Join(parts):
                inner = " ".join(self._term(part, 1) for part in parts) if parts else '""'
                return f"({inner})" if level == 2 else inner
            case TermChoice(parts):
                inner = " | ".join(self._term(part, 1) for part in parts)
                return f"({inner})" if level else inner
            case Times(part, least, most):
                return self._times(part, least, most)

    def _times(self, part: Term, least: int, most: int | None) -> str:
        one = f"({self._term(part, 0)})" if isinstance(part, Times) else self._term(part, 2)
        if max(least, most or 0) <= _MAX_TIMES:
            return one + _counts(least, most)
        # The repetition is written as repeated blocks of _MAX_TIMES and single repetitions.
        self._rules.append(part)
        single = self._name(len(self._rules) - 1)
        self._rules.append(Times(RuleRef(len(self._rules) - 1), _MAX_TIMES, _MAX_TIMES))
        block = self._name(len(self._rules) - 1)
        fixed = [f"{block}{_counts(least // _MAX_TIMES, least // _MAX_TIMES)}"] if least >= _MAX_TIMES else []
        if least % _MAX_TIMES:
            fixed.append(single + _counts(least % _MAX_TIMES, least % _MAX_TIMES))
        if most is None:
            fixed.append(single + "*")
        elif most > least:
            more = most - least
            blocks, rest = divmod(more, _MAX_TIMES)
            if blocks > _MAX_TIMES:
                raise LimitExceededError(f"a repetition of {most:,} is too large to export; the limit is 1,000,000")
            if blocks:  # each count has only one derivation, because llama.cpp follows all derivations in parallel
                fewer = f"{block}{_counts(0, blocks - 1)} " if blocks > 1 else ""
                all_blocks = block + _counts(blocks, blocks) + (f" {single}{_counts(0, rest)}" if rest else "")
                fixed.append(f"({fewer}{single}{_counts(0, _MAX_TIMES - 1)} | {all_blocks})")
            else:
                fixed.append(single + _counts(0, rest))
        return "(" + " ".join(fixed) + ")"


def _counts(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}.get((least, most))
    if short is not None:
        return short
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


# -- GBNF


_GBNF_ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x5C: "\\\\"}


def _gbnf_char(code: int) -> str:
    """Return a character in a notation that llama.cpp, xgrammar and the GBNF converter of llguidance read alike.

    The converter of llguidance removes leading zeros after `\\u`, and xgrammar reads any number of digits after `\\x`.
    """
    if code in _GBNF_ESCAPES:
        return _GBNF_ESCAPES[code]
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if 0x1000 <= code < 0x10000 else chr(code)


def _gbnf_class(ranges: tuple[tuple[int, int], ...]) -> str:
    """Return a character class. Escapes with `\\x` are last, so that no digit follows them."""

    def shown(code: int) -> str:
        return {"]": "\\]", "-": "\\x2D", "^": "\\x5E"}.get(chr(code), _gbnf_char(code))

    items = [shown(low) if low == high else f"{shown(low)}-{shown(high)}" for low, high in ranges]
    return "[" + "".join(sorted(items, key=lambda item: "\\x" in item)) + "]"


def _gbnf_piece(char: str) -> str:
    """Return one character as a literal, or as a class if its escape begins with `\\x`: no digit follows it there."""
    if char == '"':
        return '"\\""'
    shown = _gbnf_char(ord(char))
    return f"[{shown}]" if shown.startswith("\\x") else f'"{shown}"'


def _gbnf_characters(text: str) -> str:
    return _in_parentheses([_gbnf_piece(char) for char in text])


def _gbnf_text(text: str) -> str:
    parts: list[str] = []
    for piece in map(_gbnf_piece, text):
        if parts and parts[-1][0] == piece[0] == '"':
            parts[-1] = parts[-1][:-1] + piece[1:]
        else:
            parts.append(piece)
    return _in_parentheses(parts)


def _in_parentheses(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({' '.join(parts)})" if parts else '""'


# -- Lark of llguidance: lexemes of one character


def _rust_char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in " _") else f"\\x{{{code:X}}}"


def _rust_class(ranges: tuple[tuple[int, int], ...]) -> str:
    return (
        "["
        + "".join(_rust_char(low) if low == high else f"{_rust_char(low)}-{_rust_char(high)}" for low, high in ranges)
        + "]"
    )


def _lark_class(ranges: tuple[tuple[int, int], ...]) -> str:
    return f"/{_rust_class(ranges)}/"


def _lark_text(text: str) -> str:
    return " ".join(f"/{_rust_class(((ord(char), ord(char)),))}/" for char in text) if text else '""'


# -- regular expressions


def regex_of(grammar: Grammar, dialect: RegexDialect) -> str:
    """Return a grammar without recursion as a regular expression for whole texts, without anchors.

    Raises:
        UnsupportedError: The grammar is recursive, its rules refer to each other too deeply, or it has nodes that are
            not regular; or the dialect is unknown.
        LimitExceededError: The expression would be too long.
        UnsatisfiableError: No text fits.
    """
    if dialect not in ("rust", "python", "ecma"):
        raise UnsupportedError(f"dialect must be 'rust', 'python' or 'ecma', got {short_repr(dialect)}")
    root = grammar.nodes[grammar.root]
    _refuse_empty(grammar)
    try:
        with BoundedWork(units=EXPORT_WORK, purpose="exported"):
            rules = _simplified(rules_of(grammar)) if not isinstance(root, Leaf) else None
            writer = _RegexWriter(rules or [], dialect)
            return writer.leaf(root) if isinstance(root, Leaf) else writer.rule(0)
    except _RecursiveError:
        raise UnsupportedError(
            "a regular expression cannot express a recursive constraint; use to_gbnf() or to_lark()"
        ) from None
    except RecursionError:
        raise LimitExceededError("the constraint is nested too deeply for a regular expression") from None


class _RegexWriter:
    def __init__(self, rules: Rules, dialect: RegexDialect) -> None:
        self._rules, self._dialect = rules, dialect
        self._known: dict[int, str] = {}
        self._open: list[int] = []

    def leaf(self, leaf: Leaf) -> str:
        grammar = Grammar()
        grammar.root = grammar.add(leaf)
        rules = _simplified(rules_of(grammar))
        self._rules = rules
        try:
            return self.rule(0)
        except _RecursiveError:
            return self._of_graph(determinized(spelled_out(leaf.text)))

    def rule(self, number: int) -> str:
        if number in self._known:
            return self._known[number]
        if number in self._open or len(self._open) > MAX_NESTING:
            raise _RecursiveError
        self._open.append(number)
        text = self._term(self._rules[number])
        self._open.pop()
        if len(text) > MAX_REGEX:
            raise LimitExceededError(f"the regular expression has more than {MAX_REGEX:,} characters")
        self._known[number] = text
        return text

    def _term(self, term: Term) -> str:
        """Return a regular expression for a term. Concatenated with others, it needs no parentheses."""
        match term:
            case FixedText(text):
                return "".join(map(self._char, map(ord, text)))
            case Class(ranges):
                return self._class(ranges)
            case RuleRef(rule):
                return self.rule(rule)
            case Join(parts):
                return self._joined("", parts)
            case TermChoice(parts):
                return f"(?:{self._joined('|', parts)})"
            case Times(part, least, most):
                one = self._term(part)
                operand = one if isinstance(part, Class) else f"(?:{one})"
                return operand + _counts(least, most)

    def _joined(self, separator: str, parts: tuple[Term, ...]) -> str:
        texts, size = [], 0
        for part in parts:
            texts.append(self._term(part))
            size += len(texts[-1])
            if size > MAX_REGEX:
                raise LimitExceededError(f"the regular expression has more than {MAX_REGEX:,} characters")
        return separator.join(texts)

    def _char(self, code: int) -> str:
        char = chr(code)
        if char.isascii() and (char.isalnum() or char in " _\"',:;<>=!@%&~`"):
            return char
        if char.isascii() and char.isprintable():
            return "\\" + char if self._dialect != "ecma" or char in "\\^$.*+?()[]{}|/" else f"\\x{code:02x}"
        return self._escape(code)

    def _escape(self, code: int) -> str:
        if self._dialect == "ecma":
            return f"\\u{{{code:X}}}"
        return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"  # xgrammar reads any number of digits after \\x

    def _class(self, ranges: tuple[tuple[int, int], ...]) -> str:
        made = []
        for low, high in ranges:
            first, last = (
                chr(code) if chr(code).isascii() and chr(code).isalnum() else self._escape(code) for code in (low, high)
            )
            made.append(first if low == high else f"{first}-{last}")
        return "[" + "".join(made) + "]"

    def _of_graph(self, graph: Dfa) -> str:
        """Return the regular expression of an automaton, by elimination of its states."""
        size = len(graph.states)
        start, end = size, size + 1
        edges: dict[int, dict[int, str]] = {number: {} for number in range(size + 2)}

        def join(one: int, other: int, text: str) -> None:
            before = edges[one].get(other)
            edges[one][other] = text if before is None else f"(?:{before}|{text})"
            if len(edges[one][other]) > MAX_REGEX:
                raise LimitExceededError(f"the regular expression has more than {MAX_REGEX:,} characters")

        join(start, 0, "")
        for number, (accepts, steps) in enumerate(graph.states):
            for chars, to in steps:
                join(number, to, self._class(chars.ranges))
            if accepts:
                join(number, end, "")
        before: dict[int, set[int]] = {number: set() for number in range(size + 2)}
        for one, out in edges.items():
            for other in out:
                before[other].add(one)
        left = set(range(size))
        while left:
            number = min(left, key=lambda one: (len(before[one]) * len(edges[one]), -one))
            left.discard(number)
            loop = edges[number].pop(number, None)
            before[number].discard(number)
            again = "" if loop is None else f"(?:{loop})*"
            for one in before[number]:
                head = edges[one].pop(number)
                for other, tail in edges[number].items():
                    join(one, other, f"{head}{again}{tail}")
                    before[other].add(one)
            for other in edges.pop(number):
                before[other].discard(number)
        return edges[start].get(end, "")


class _RecursiveError(Exception):
    """A rule refers to itself, or a chain of references is longer than `MAX_NESTING`."""
