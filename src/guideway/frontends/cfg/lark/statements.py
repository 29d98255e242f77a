"""Parser of a Lark grammar: rules, templates, terminals and directives become `Definition` objects."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from guideway.arguments import short_repr
from guideway.background import checkpoint
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.frontends.cfg.lark.common import COMMON, LENGTHS
from guideway.frontends.cfg.lark.terminals import TerminalError, Written, written
from guideway.frontends.cfg.scanner import Groups, Reader
from guideway.grammar.cfg import Alternation, Ref, Term

__all__ = ["Definition", "LarkReader"]

_TOKENS = re.compile(
    r"""(?P<space>[ \t\f]+|\\[ ]*\n|(?://|\#)[^\n]*)
    |(?P<line>\r?\n\s*)
    |(?P<string>"(?:\\["\\]|\\(?!["\\])|[^"\\\n])*"i?)
    |(?P<regexp>/(?!/)(?:\\[/\\]|\\(?![/\\])|[^/\\])*/[imslux]*)
    |(?P<special><[^<>\s]+>)
    |(?P<directive>%[a-z]+)
    |(?P<sign>->|\.\.|[:|()\[\]{},~.?*+!])
    |(?P<number>[+-]?\d+)
    |(?P<terminal>_?[A-Z][_A-Z0-9]*)
    |(?P<rule>_?[a-z][_a-z0-9]*)""",
    re.VERBOSE,
)
_FLAGS = {'"': re.compile("i?"), "/": re.compile("[imslux]*")}  # flags after each closing delimiter
_MAX_INSTANCES = 10_000  # maximum number of template instances
_MAX_ARGUMENTS = 100  # maximum nesting depth of template arguments


def _end_of_literal(text: str, at: int) -> int:
    """Return the end of a literal that `_TOKENS` does not match, because a backslash precedes its closing delimiter.

    Lark reads a backslash and the next character as an escape. If no closing delimiter follows, its pattern backtracks:
    it reads the last escape as a single backslash, then the one before it, and so on. One pass from the right finds the
    same end in linear time.

    Returns:
        The position after the literal and its flags; `at` if no literal begins there.
    """
    delimiter = text[at]
    if delimiter not in _FLAGS or text.startswith("//", at):
        return at
    limit = text.find("\n", at) if delimiter == '"' else len(text)
    limit = len(text) if limit < 0 else limit
    after_next = here = 0  # the end of the literal if its content continues at i + 2, and at i + 1; 0: it does not end
    for i in range(limit - 1, at, -1):
        escape = text[i] == "\\" and i + 1 < limit and text[i + 1] in (delimiter, "\\")
        end = i + 1 if text[i] == delimiter else (after_next or here) if escape else here
        after_next, here = here, end
    flags = _FLAGS[delimiter].match(text, here) if here else None
    return at if flags is None else flags.end()


@dataclass(slots=True)
class _LarkToken:
    kind: str
    text: str
    at: int


@dataclass(slots=True)
class Definition:
    """The definition of a rule or a terminal.

    Attributes:
        term: The right side.
        at: The position of the name in the grammar text.
        priority: The priority; 0 if none is given. That of a rule is not used.
        has_alternatives: Whether the right side has several alternatives outside of all brackets.
    """

    term: Term
    at: int
    priority: int = 0
    has_alternatives: bool = False


@dataclass(slots=True)
class LarkReader:
    """Parser of a whole grammar. `read` fills all attributes except `text`.

    A literal is a terminal whose name is its notation.

    Attributes:
        text: The grammar text.
        rules: The rules, with one rule for each template and list of arguments with which it is used.
        terminals: The terminals that the grammar defines.
        patterns: Literals, ranges and imported terminals.
        common: The names of the imported terminals, after renaming by `->`. Without those that `%override` or `%extend`
            defines.
        ignored: What the `%ignore` statements contain, in order.
        declared: For each name in a `%declare` statement, its position.
        mentioned: For each name that is referred to, the first position of a reference.
        special: For each special token, such as `<|end|>`, its first position.
    """

    text: str
    rules: dict[str, Definition] = field(default_factory=dict)
    terminals: dict[str, Definition] = field(default_factory=dict)
    patterns: dict[str, Written] = field(default_factory=dict)
    common: set[str] = field(default_factory=set)
    ignored: list[Definition] = field(default_factory=list)
    declared: dict[str, int] = field(default_factory=dict)
    mentioned: dict[str, int] = field(default_factory=dict)
    special: dict[str, int] = field(default_factory=dict)
    _source: Reader = field(init=False)  # for positions in messages
    _position: int = 0  # the index of the current token
    _has_alternatives: bool = False  # whether the last right side had several alternatives outside of all brackets
    _tokens: list[_LarkToken] = field(default_factory=list)
    _templates: dict[str, tuple[list[str], int]] = field(default_factory=dict)  # parameters, index of the first token
    _instances: list[tuple[str, str, list[Term]]] = field(default_factory=list)  # name of the rule, template, arguments
    # the arguments of the current template instance, by parameter
    _bound: dict[str, Term] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._source = Reader(self.text)

    def place(self, at: int) -> str:
        """Return a position for messages, as `Reader.place` does."""
        return self._source.place(at)

    def fail(self, message: str, at: int, kind: type[ConstraintError] = InvalidConstraintError) -> NoReturn:
        """Raise an error of a class, with the position `at` in its message."""
        self._source.fail(message, at, kind)

    def read(self) -> None:
        """Parse all statements, then make a rule of each template with the arguments of its uses.

        Raises:
            InvalidConstraintError: The grammar has an error.
            UnsupportedError: It has a construct that is not supported.
            LimitExceededError: It is too large.
        """
        self._cut()
        for position, token in enumerate(self._tokens):  # a template can be used before its definition
            if token.text == "{" and position and (position < 2 or self._starts(position - 1)):
                self._templates[self._tokens[position - 1].text] = ([], 0)
        self._position = 0
        while self._now.kind != "end":
            if self._now.kind == "line":
                self._position += 1
            else:
                self._statement()
        done = 0
        while done < len(self._instances):
            checkpoint()
            name, template, arguments = self._instances[done]
            parameters, body = self._templates[template]
            here = self._tokens[body].at
            if len(parameters) != len(arguments):
                self._stop(
                    f"template {short_repr(template)} needs {len(parameters)} arguments, got {len(arguments)}", here
                )
            self._bound = dict(zip(parameters, arguments, strict=True))
            self._position = body
            self.rules[name] = Definition(self._expansions(), here)
            done += 1
            if done > _MAX_INSTANCES:
                self._stop(f"at most {_MAX_INSTANCES:,} template instances are supported", here, LimitExceededError)

    # Tokens.

    def _cut(self) -> None:
        at, made = 0, self._tokens
        while at < len(self.text):
            checkpoint()
            found = _TOKENS.match(self.text, at)
            if found is not None:
                kind, end = str(found.lastgroup), found.end()
            elif (end := _end_of_literal(self.text, at)) > at:
                kind = "string" if self.text[at] == '"' else "regexp"
            else:
                self._source.expected("a name, a literal or an operator", at)
            if kind != "space":
                made.append(_LarkToken(kind, self.text[at:end], at))
            at = end
        joined: list[_LarkToken] = []
        for token in made:  # a line that begins with '|' continues the previous one
            if token.text == "|" or token.kind == "line":
                while joined and joined[-1].kind == "line":
                    joined.pop()
            joined.append(token)
        self._tokens = [*joined, _LarkToken("end", "", len(self.text))]

    def _starts(self, position: int) -> bool:
        """Return whether a statement begins at the token with this index. The modifiers `?` and `!` may precede it."""
        before = position - 1
        while before >= 0 and self._tokens[before].text in ("?", "!"):
            before -= 1
        return before < 0 or self._tokens[before].kind == "line"

    @property
    def _now(self) -> _LarkToken:
        return self._tokens[self._position]

    def _take(self, *wanted: str, what: str = "") -> _LarkToken:
        token = self._now
        if token.text not in wanted and token.kind not in wanted:
            self._stop_expecting(what or " or ".join(repr(one) for one in wanted))
        self._position += 1
        return token

    def _skip(self, text: str) -> bool:
        found = self._now.text == text
        self._position += found
        return found

    def _stop(
        self, message: str, at: int | None = None, kind: type[ConstraintError] = InvalidConstraintError
    ) -> NoReturn:
        self.fail(message, self._now.at if at is None else at, kind)

    def _stop_expecting(self, what: str) -> NoReturn:
        self._source.expected(what, self._now.at)

    # Statements.

    def _statement(self) -> None:
        token = self._now
        if token.kind == "directive":
            self._position += 1
            if token.text in ("%override", "%extend"):
                self._definition(token.text[1:])
            else:
                known = {"%ignore": self._ignore, "%import": self._import, "%declare": self._declare}
                if token.text not in known:
                    self._stop(
                        f"unknown directive {short_repr(token.text)}; known: {', '.join(known)}, %override, %extend",
                        token.at,
                    )
                known[token.text]()
        else:
            self._definition("new")
        if self._now.kind != "end":
            self._take("line", what="an item, '|', '->' or the end of the line")

    def _definition(self, how: str) -> None:
        while self._now.text in ("?", "!"):
            self._position += 1
        token = self._take("rule", "terminal", what="a rule, a terminal or a directive")
        where = self.terminals if token.kind == "terminal" else self.rules
        parameters: list[str] = []
        template = self._skip("{")
        if template:
            if token.kind == "terminal":
                self._stop("templates of terminals are not supported", token.at, UnsupportedError)
            parameters.append(self._take("rule", "terminal", what="a parameter").text)
            while self._skip(","):
                parameters.append(self._take("rule", "terminal", what="a parameter").text)
            self._take("}")
        priority = self._priority() if self._skip(".") else 0
        self._take(":")
        known = token.text in where or token.text in self.patterns or self.template(token.text) is not None
        if how == "new" and known:
            self._stop(f"{short_repr(token.text)} is defined twice", token.at)
        if how != "new" and not known:
            self._stop(f"cannot {how} {short_repr(token.text)}, which is not defined", token.at)
        if template:
            self._templates[token.text] = (parameters, self._position)
            while self._now.kind not in ("line", "end"):
                self._position += 1
            return
        made = self._expansions()
        if how == "extend":
            if token.text in self.patterns:
                self.patterns[name := f"{token.text} as it was"] = self.patterns.pop(token.text)
                where[token.text] = Definition(Ref(name), token.at)
            made, priority = _extended(where[token.text], made), where[token.text].priority
        self.patterns.pop(token.text, None)
        self.common.discard(token.text)
        where[token.text] = Definition(made, token.at, priority, self._has_alternatives or how == "extend")

    def _priority(self) -> int:
        token = self._take("number", what="a priority")
        if len(token.text) > 9:
            self._stop("a priority may have at most nine digits", token.at, LimitExceededError)
        return int(token.text)

    def _ignore(self) -> None:
        at = self._now.at
        self.ignored.append(Definition(self._expansions(), at))

    def _declare(self) -> None:
        while self._now.kind in ("terminal", "rule"):
            self.declared[self._now.text] = self._now.at
            self._position += 1

    def _import(self) -> None:
        at = self._now.at
        if self._skip("."):
            self._stop(
                "only the library 'common' can be imported; pass other definitions as `parts`", at, UnsupportedError
            )
        path = [self._take("rule", "terminal", what="a library").text]
        while self._skip("."):
            path.append(self._take("rule", "terminal", what="a name").text)
        if path[0] != "common" or len(path) > 2:
            self._stop(
                "only the library 'common' can be imported; pass other definitions as `parts`", at, UnsupportedError
            )
        names: list[tuple[str, str]]
        if len(path) == 2:
            new = self._take("terminal", what="a new name").text if self._skip("->") else path[1]
            names = [(path[1], new)]
        else:
            self._take("(", what="'.' and a name, or names in parentheses")
            names = [(one, one) for one in [self._take("terminal", what="a terminal").text]]
            while self._skip(","):
                one = self._take("terminal", what="a terminal").text
                names.append((one, one))
            self._take(")")
        for name, new in names:
            if name not in COMMON:
                self._stop(f"'common' has no {short_repr(name)}; it has {', '.join(COMMON)}", at)
            if new in self.patterns or new in self.terminals:
                self._stop(f"{short_repr(new)} is defined twice", at)
            self.patterns[new] = Written(COMMON[name], length=LENGTHS[name])
            self.common.add(new)

    # Expansions.

    def _expansions(self) -> Term:
        groups = Groups(self._source)
        while True:
            checkpoint()
            token = self._now
            if token.kind in ("line", "end"):
                break
            if token.text == "|":
                self._position += 1
                groups.bar()
            elif token.text in ("(", "["):
                self._position += 1
                groups.open(")" if token.text == "(" else "]", token.at)
            elif token.text in (")", "]"):
                self._close(groups, token)
            elif token.text == "->":
                self._position += 1
                self._take("rule", what="the name of an alias")
                if self._now.kind not in ("line", "end") and self._now.text not in ("|", ")", "]"):
                    self._stop_expecting("'|' or the end of the line after an alias")
            elif token.text in ("?", "*", "+", "~"):
                self._count(groups, token)
            else:
                groups.add(self._value(0))
        return self._whole(groups)

    def _close(self, groups: Groups, token: _LarkToken) -> None:
        if groups.inside != token.text:
            self._stop(f"{short_repr(token.text)} has no matching opening bracket", token.at)
        self._position += 1
        groups.add(groups.close())
        if token.text == "]":
            groups.repeat(0, 1, token.at)

    def _whole(self, groups: Groups) -> Term:
        if groups.inside:
            self._stop_expecting(f"{groups.inside!r}")
        self._has_alternatives = groups.alternatives > 1
        return groups.done()

    def _count(self, groups: Groups, token: _LarkToken) -> None:
        self._position += 1
        if not groups.series:
            self._stop("nothing precedes the repetition", token.at)
        if token.text != "~":
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}[token.text]
        else:
            least = most = self._number()
            if self._skip(".."):
                most = self._number()
        if most is not None and most < least:
            self._stop(f"a repetition needs minimum <= maximum, got {least} and {most}", token.at)
        groups.repeat(least, most, token.at)

    def _number(self) -> int:
        token = self._take("number", what="a count")
        if len(token.text) > 7 or int(token.text) > 1_000_000:
            self._stop("repetition counts must be at most 1,000,000", token.at, LimitExceededError)
        if int(token.text) < 0:
            self._stop("repetition counts must not be negative", token.at)
        return int(token.text)

    def _value(self, depth: int) -> Term:
        kinds = ("string", "regexp", "special", "rule", "terminal")
        token = self._take(*kinds, what="an item: a name, a literal, '(' or '['")
        if token.kind == "special":
            self._source.special(token.text, token.at)  # raises for malformed ids
            self.special.setdefault(token.text, token.at)
            return Ref(token.text)
        if token.kind in ("string", "regexp"):
            if self._now.text == "..":
                return self._range(token)
            self.patterns.setdefault(token.text, self._pattern(token))
            return Ref(token.text)
        if token.text in self._bound:
            if self._now.text == "{":
                self._stop(
                    f"a parameter is not supported as a template: {short_repr(token.text)}; write the template itself",
                    token.at,
                    UnsupportedError,
                )
            return self._bound[token.text]
        if self._now.text == "{":
            return self._use(token, depth)
        if token.text in self._templates:
            message = f"{short_repr(token.text)} is a template; pass its arguments in braces"
            if depth:
                self._stop(f"{message} (templates as arguments are not supported)", token.at, UnsupportedError)
            self._stop(message, token.at)
        self.mentioned.setdefault(token.text, token.at)
        return Ref(token.text)

    def template(self, name: str) -> int | None:
        """Return the position of the body of a template; None: the text defines no template with this name."""
        index = self._templates.get(name, ([], 0))[1]
        return self._tokens[index].at if index else None

    def _use(self, token: _LarkToken, depth: int) -> Term:
        if token.text not in self._templates:
            self._stop(f"the template {short_repr(token.text)} is not defined", token.at)
        if depth > _MAX_ARGUMENTS:
            self._stop(f"template arguments may be nested at most {_MAX_ARGUMENTS} deep", token.at, LimitExceededError)
        self._take("{")
        arguments = [self._value(depth + 1)]
        while self._skip(","):
            arguments.append(self._value(depth + 1))
        self._take("}")
        name = f"{token.text}{{{','.join(one.name if isinstance(one, Ref) else '' for one in arguments)}}}"
        if name not in self.rules:
            self.rules[name] = Definition(Ref(name), token.at)  # `read` replaces it at the end
            self._instances.append((name, token.text, arguments))
        return Ref(name)

    def _pattern(self, token: _LarkToken) -> Written:
        try:
            return written(token.text)
        except TerminalError as error:
            self._stop(str(error), token.at, InvalidConstraintError if error.kind is ConstraintError else error.kind)

    def _range(self, first: _LarkToken) -> Term:
        self._position += 1
        last = self._take("string", what="the end of the range")
        ends = [self._pattern(one).value for one in (first, last)]
        if any(len(one) != 1 for one in ends) or ends[0] > ends[1]:
            self._stop("the ends of a range must be single characters in ascending order", first.at)
        name = f"{first.text}..{last.text}"
        self.patterns[name] = Written(f"[{re.escape(ends[0])}-{re.escape(ends[1])}]", length=len(f"[{''.join(ends)}-]"))
        return Ref(name)


def _extended(old: Definition, more: Term) -> Term:
    """Return the right side of a definition after `%extend`: Lark inserts `more` before the alternatives."""
    term = old.term
    return Alternation((more, *(term.parts if old.has_alternatives and isinstance(term, Alternation) else (term,))))
