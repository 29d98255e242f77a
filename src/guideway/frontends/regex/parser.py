"""Parses a pattern to the regular language of the texts that it matches.

Open groups are on an explicit stack, so there is no recursion on the input. Each group becomes one `Part` when it is
closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from guideway.arguments import short_repr
from guideway.background import checkpoint
from guideway.frontends.regex import assertions, character_ranges as tables
from guideway.frontends.regex.classes import parse_class, parse_escape
from guideway.frontends.regex.lowering import lower
from guideway.frontends.regex.scanner import Dialect, Scanner
from guideway.frontends.regex.syntax import (
    AT_END,
    AT_START,
    MAX_COUNT,
    AlternationPart,
    ConcatPart,
    Lookaround,
    NamedGroup,
    Part,
    Plain,
    RepeatPart,
    characters,
    choice,
    series,
    times,
    width,
)
from guideway.frontends.regex.unicode_properties import fold
from guideway.grammar.regular import MAX_CODE_POINT, Literals, Regular

__all__ = ["FLAGS", "MAX_ASSERTIONS", "MAX_NESTING", "Dialect", "parse_pattern", "parse_tree"]

MAX_NESTING = 200
"""Maximum nesting depth of groups."""

MAX_ASSERTIONS = 50
"""Maximum nesting depth of groups with assertions (anchors, `\\b`, lookaround)."""

_DIGITS = "0123456789"
_VERBOSE_SPACE = " \t\n\r\v\f"
_ORDINARY = re.compile(r"[^\\^$.|?*+()\[\]{}\ud800-\udfff]{2,}")
_LOOKS = {"?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}


def parse_pattern(pattern: str, dialect: Dialect, *, search: bool = False, flags: str = "") -> Regular:
    """Parse a pattern and return its language.

    Args:
        pattern: The pattern.
        dialect: "python": Python's `re` on str. "ecma": ECMA-262 as in JSON Schema, with the flag u, and with the
            syntax of Annex B where it is unambiguous.
        search: Whether to return the texts that contain a match, instead of the texts that match completely.
        flags: Flags that are set, letters of `FLAGS[dialect]`.

    Raises:
        InvalidConstraintError: The pattern has an error. All messages have a caret under the position.
        UnsupportedError: The pattern uses an unsupported construct.
        LimitExceededError: The pattern is too large.
    """
    return _Parser(pattern, dialect, flags).parse(search)


def parse_tree(pattern: str, dialect: Dialect, flags: str = "") -> tuple[Part, frozenset[str], bool]:
    """Return the syntax tree of a pattern, the names of its groups, and whether it has assertions.

    The names are those of named groups. The tree has the named groups, and the alternatives and repetitions in the
    order in which they are written. Only `{0}` and `{1}` are simplified. Raises the errors of `parse_pattern`.
    """
    parser = _Parser(pattern, dialect, flags, keep=True)
    return parser.tree(), frozenset(parser.names), parser.asserts


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    verbose: bool = False
    ascii_only: bool = False
    multi_line: bool = False


_FLAG_NAMES = {"i": "ignore_case", "s": "dot_all", "x": "verbose", "a": "ascii_only", "m": "multi_line"}

FLAGS = {"python": "".join(_FLAG_NAMES), "ecma": "ims"}
"""The letters of the flags of each dialect."""


@dataclass(slots=True)
class _OpenGroup:
    """A group that is not closed yet."""

    at: int  # position in the pattern
    flags: _Flags  # the flags outside the group
    look: tuple[bool, bool] | None = None  # for a lookaround: whether it is a lookahead, and whether it is negative
    done: list[Part] = field(default_factory=list)  # the complete alternatives
    items: list[Part] = field(default_factory=list)  # the parts of the current alternative
    repeatable: bool = False  # whether a quantifier may follow the last item
    repeated: bool = False  # whether the last item has a quantifier
    deep: int = 0  # the nesting depth of groups with assertions inside this group
    name: str | None = None
    names: set[str] = field(default_factory=set)  # of named groups in the current alternative, closed or open
    other_names: set[str] = field(default_factory=set)  # of named groups in the complete alternatives


class _Parser:
    """Parses one pattern.

    `keep`: build the tree as written, with named groups. Otherwise parts without assertions are merged while parsing.
    """

    def __init__(self, pattern: str, dialect: Dialect, flags: str = "", *, keep: bool = False) -> None:
        self._scanner = Scanner(pattern, dialect)
        self._flags = _Flags(**{_FLAG_NAMES[flag]: True for flag in flags})
        self._stack = [_OpenGroup(0, self._flags)]
        self._keep = keep
        self._name: str | None = None  # the name of the group that is being opened; None: it has no name
        self.names: set[str] = set()
        self.asserts = False

    def parse(self, search: bool) -> Regular:
        return lower(self.tree(), search=search, too_large=self._scanner.too_large)

    def tree(self) -> Part:
        scanner = self._scanner
        while scanner.next:
            checkpoint()
            self._step()
        if len(self._stack) > 1:
            scanner.invalid("expected ')' at the end of the group", self._stack[-1].at)
        return self._closed(self._stack[0])

    def _step(self) -> None:
        scanner, group = self._scanner, self._stack[-1]
        if not (self._flags.verbose or self._flags.ignore_case) and self._word():
            return
        at, char = scanner.at, scanner.take()
        if self._flags.verbose and char in _VERBOSE_SPACE:
            return
        if self._flags.verbose and char == "#":
            end = scanner.pattern.find("\n", scanner.at)
            scanner.at = end + 1 if end >= 0 else len(scanner.pattern)
        elif char == "(":
            self._open(at)
        elif char == ")":
            self._close(at)
        elif char == "|":
            group.done.append(self._series(group.items))
            group.items, group.repeatable, group.repeated = [], False, False
            group.other_names |= group.names
            group.names = set()
        elif char in "*+?" or (char == "{" and self._is_counted()):
            self._quantifier(char, at)
        elif char in "^$":
            make = assertions.line_start if char == "^" else assertions.line_end
            self._anchor(make(scanner.dialect, self._flags.multi_line, at))
        elif char == "\\":
            self._escape(at)
        else:
            self._add(self._atom(char))

    def _word(self) -> bool:
        """Read ordinary characters as one literal. Returns False, and reads nothing, if there are fewer than two.

        If a quantifier follows, the last character is not read, because the quantifier applies to it alone.
        """
        scanner = self._scanner
        found = _ORDINARY.match(scanner.pattern, scanner.at)
        if found is None:
            return False
        text = found.group()
        if scanner.pattern[found.end() : found.end() + 1] in ("*", "+", "?", "{"):
            text = text[:-1]
        self._add(Plain(Literals((text,)), len(text), len(text)))
        scanner.at += len(text)
        return True

    def _atom(self, char: str) -> Part:
        flags = self._flags
        if char == "[":
            return characters(parse_class(self._scanner, flags.ascii_only, flags.ignore_case))
        if char == ".":
            newline = ((0x0A, 0x0A),) if self._scanner.dialect == "python" else tables.ECMA_NEWLINE
            return characters(((0, MAX_CODE_POINT),) if flags.dot_all else tables.invert(newline))
        return self._char(ord(char))

    def _char(self, code: int) -> Part:
        if not self._flags.ignore_case:
            return characters(((code, code),))
        if self._scanner.dialect == "ecma":
            return characters(fold(((code, code),)))
        return characters(tables.fold_literal(chr(code), self._flags.ascii_only))

    def _add(self, part: Part) -> None:
        group = self._stack[-1]
        group.items.append(part)
        group.repeatable, group.repeated = True, False

    def _anchor(self, part: Part) -> None:
        self.asserts = True
        self._add(part)
        self._stack[-1].repeatable = False

    def _escape(self, at: int) -> None:
        scanner = self._scanner
        if scanner.next and scanner.next in "bB":
            make = assertions.boundary if scanner.take() == "b" else assertions.no_boundary
            self._anchor(make(scanner.dialect, self._flags.ascii_only, self._flags.ignore_case, at))
            return
        if scanner.dialect == "python" and (scanner.skip("A") or scanner.skip("Z")):
            self._anchor(AT_START if scanner.pattern[scanner.at - 1] == "A" else AT_END)
            return
        item = parse_escape(scanner, self._flags.ascii_only, self._flags.ignore_case, in_class=False)
        if item.code is not None:
            self._add(self._char(item.code))
        elif self._flags.ignore_case and scanner.dialect == "ecma":
            self._add(characters(fold(item.ranges)))
        else:
            self._add(characters(item.ranges))

    # -- quantifiers

    def _is_counted(self) -> bool:
        """Return whether the `{` that was read begins a count. If not, it is an ordinary character."""
        return self._counts() is not None

    def _counts(self) -> tuple[int, int | None, int] | None:
        """Return the minimum, the maximum (None: unbounded) and the end of a count `{m,n}` whose `{` was read.

        None: no count follows. The position is not changed.
        """
        scanner, back = self._scanner, self._scanner.at
        low = scanner.take_while(_DIGITS)
        comma = scanner.skip(",")
        high = scanner.take_while(_DIGITS) if comma else low
        closed, end = scanner.skip("}"), scanner.at
        scanner.at = back
        if not closed or not (low or comma) or (scanner.dialect == "ecma" and not low):
            return None
        if max(len(low), len(high)) > 12:
            scanner.too_large(f"repetition counts must be at most {MAX_COUNT}", back)
        return int(low or 0), int(high) if high else None, end

    def _quantifier(self, char: str, at: int) -> None:
        scanner, group = self._scanner, self._stack[-1]
        minimum, maximum = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, None)}[char]
        if char == "{" and (counts := self._counts()):
            minimum, maximum, scanner.at = counts
        if max(minimum, maximum or 0) > MAX_COUNT:
            scanner.too_large(f"repetition counts must be at most {MAX_COUNT}", at)
        if maximum is not None and minimum > maximum:
            scanner.invalid("the minimum of the repetition is greater than its maximum", at)
        if not group.repeatable:
            scanner.invalid(
                "a quantifier cannot follow a quantifier" if group.repeated else "nothing precedes the quantifier", at
            )
        if scanner.next == "+" and scanner.dialect == "python":
            scanner.unsupported("a possessive quantifier")
        lazy = scanner.skip("?")  # it changes only which match is found, not the language
        if self._keep and (minimum, maximum) != (1, 1) and maximum != 0:
            group.items[-1] = RepeatPart(group.items[-1], minimum, maximum, at, lazy, scanner.dialect == "python")
        else:
            group.items[-1] = times(group.items[-1], minimum, maximum, at)
        group.repeatable, group.repeated = False, True

    # -- groups

    def _open(self, at: int) -> None:
        scanner, inner = self._scanner, self._flags
        look = self._look()
        if look is None and scanner.next == "?":
            flags = self._extension(at)
            if flags is None:
                return
            inner = flags
        elif scanner.next == "*" and scanner.dialect == "python":
            scanner.invalid("nothing precedes the quantifier")
        if len(self._stack) > MAX_NESTING:
            scanner.too_large(f"groups may be nested at most {MAX_NESTING} deep", at)
        self._stack.append(_OpenGroup(at, self._flags, look, name=self._name))
        self._name, self._flags = None, inner

    def _look(self) -> tuple[bool, bool] | None:
        """Read the beginning of a lookaround, and return (ahead, negative); None: the group is not a lookaround."""
        for text, look in _LOOKS.items():
            if self._scanner.skip(text):
                return look
        return None

    def _extension(self, at: int) -> _Flags | None:
        """Parse the `?` after a `(`, and what belongs to it.

        Returns the flags inside the group. None: it is a comment or sets flags for the whole pattern, so no group is
        open.
        """
        scanner = self._scanner
        scanner.at += 1
        if scanner.skip(":"):
            return self._flags
        if scanner.dialect == "ecma":
            if scanner.skip("<"):
                return self._group_name(at)
            if scanner.next and scanner.next in "ims-":
                return self._flag_group(at)
            scanner.invalid("expected (?: (?= (?! (?<= (?<! (?<name> or flags (i, m, s)", at)
        if scanner.skip("P<"):
            return self._group_name(at)
        if scanner.next == "P":
            scanner.unsupported("a back-reference", at)
        if scanner.skip("#"):
            scanner.take_until(")", "the comment (?#")
            return None
        if scanner.next == ">":
            scanner.unsupported("an atomic group", at)
        if scanner.next == "(":
            scanner.unsupported("a conditional group", at)
        return self._flag_group(at)

    def _group_name(self, at: int) -> _Flags:
        name = self._scanner.take_until(">", "the group's name")
        if not (name.replace("$", "_") if self._scanner.dialect == "ecma" else name).isidentifier():
            self._scanner.invalid(f"a group name must be an identifier, got {short_repr(name)}", at)
        used = [self.names] if self._scanner.dialect == "python" else [group.names for group in self._stack]
        if any(name in names for names in used):  # in ECMA-262, alternatives may have groups of the same name
            self._scanner.invalid(f"the group name {short_repr(name)} is used twice", at)
        self.names.add(name)
        self._stack[-1].names.add(name)
        self._name = name
        return self._flags

    def _flag_group(self, at: int) -> _Flags | None:
        """Parse the flags of a group. Returns the flags inside the group.

        `(?flags)` sets flags for the whole pattern, and None is returned. `(?flags-flags:` opens a group.
        """
        scanner = self._scanner
        known = "".join(_FLAG_NAMES) + "uL" if scanner.dialect == "python" else "ims"
        switched_on = scanner.take_while(known)
        if "L" in switched_on:
            scanner.invalid("the flag L applies to bytes patterns only", at)
        if "a" in switched_on and "u" in switched_on:
            scanner.invalid("the flags a and u cannot be combined", at)
        changes = {_FLAG_NAMES[flag]: True for flag in switched_on if flag != "u"}
        if "u" in switched_on:
            changes["ascii_only"] = False
        if switched_on and scanner.skip(")"):
            self._set_globally(changes, "u" in switched_on, at)
            return None
        if scanner.skip("-"):
            switched_off = scanner.take_while("imsx")
            if not switched_off or set(switched_off) & set(switched_on):
                scanner.invalid("expected flags to switch off (i, m, s, x) that are not also switched on", at)
            changes |= {_FLAG_NAMES[flag]: False for flag in switched_off}
        if not changes or not scanner.skip(":"):
            scanner.invalid("expected : P<name> # or flags (i, m, s, x, a, u) after '(?'", at)
        return replace(self._flags, **changes)

    def _set_globally(self, changes: dict[str, bool], unicode: bool, at: int) -> None:
        first = self._stack[0]
        if len(self._stack) > 1 or first.done or first.items:
            self._scanner.invalid("flags for the whole pattern must be at its start", at)
        if self._flags.ascii_only and unicode:
            self._scanner.invalid("the flags a and u cannot be combined", at)
        self._flags = replace(self._flags, **changes)

    def _close(self, at: int) -> None:
        if len(self._stack) == 1:
            self._scanner.invalid("this ')' has no matching '('", at)
        group = self._stack.pop()
        self._flags = group.flags
        self._stack[-1].names |= group.names | group.other_names
        part = self._closed(group)
        if group.look is not None:
            ahead, negative = group.look
            low, high = (0, 0) if ahead else width(part)
            if self._scanner.dialect == "python" and low != high:
                self._scanner.invalid("a lookbehind must have a fixed width in Python's re", group.at)
            part = Lookaround(part, ahead, negative, group.at)
            self.asserts = True
        if group.name is not None and self._keep:
            part = NamedGroup(part, group.name)
        elif not isinstance(part, Plain) and not self._keep:
            outer = self._stack[-1]
            outer.deep = max(outer.deep, group.deep + 1)
            if outer.deep > MAX_ASSERTIONS:
                self._scanner.too_large(f"groups with assertions may be nested at most {MAX_ASSERTIONS} deep", group.at)
        self._add(part)
        if group.look == (False, False) or group.look == (False, True):
            self._stack[-1].repeatable = self._scanner.dialect == "python"

    def _closed(self, group: _OpenGroup) -> Part:
        options = [*group.done, self._series(group.items)]
        return AlternationPart(tuple(options)) if self._keep and len(options) > 1 else choice(options)

    def _series(self, items: list[Part]) -> Part:
        return ConcatPart(tuple(items)) if self._keep and len(items) > 1 else series(items)
