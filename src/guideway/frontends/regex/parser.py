"""The text of a pattern -> the regular language of the texts that it matches.

Groups are kept on a stack of our own, so that nothing here recurses on what a stranger wrote; each group becomes one
`Part` when it closes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from guideway.frontends.regex import assertions, character_ranges as tables
from guideway.frontends.regex.classes import parse_class, parse_escape
from guideway.frontends.regex.lowering import lower
from guideway.frontends.regex.scanner import Dialect, Scanner
from guideway.frontends.regex.syntax import (
    AT_END,
    AT_START,
    MAX_COUNT,
    Choice,
    Look,
    Named,
    Part,
    Plain,
    Series,
    Times,
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
"""How deep groups may nest."""

MAX_ASSERTIONS = 50
"""How deep groups may nest that hold assertions (anchors, `\\b`, look-around)."""

_DIGITS = "0123456789"
_VERBOSE_SPACE = " \t\n\r\v\f"
_ORDINARY = re.compile(r"[^\\^$.|?*+()\[\]{}\ud800-\udfff]{2,}")
_LOOKS = {"?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}


def parse_pattern(pattern: str, dialect: Dialect, *, search: bool = False, flags: str = "") -> Regular:
    """The texts that a pattern matches as a whole, or (`search`) that hold a match somewhere.

    `dialect`: Python's `re` on str, or ECMA-262 as JSON Schema uses it (the flag u, and what Annex B adds where it is
    unambiguous). `flags`: letters out of `FLAGS` that hold from the start. Raises `InvalidConstraintError`, `UnsupportedError` or
    `LimitExceededError`, with a caret under the place.
    """
    return _Parser(pattern, dialect, flags).parse(search)


def parse_tree(pattern: str, dialect: Dialect, flags: str = "") -> tuple[Part, frozenset[str], bool]:
    """A pattern that `parse_pattern` takes, as it stands: its tree, the names of its groups, whether it asserts."""
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
"""The letters of the flags that each dialect has."""


@dataclass(slots=True)
class _Group:
    """An open group: the alternatives that are done, and the one being read."""

    at: int
    flags: _Flags  # those around it
    look: tuple[bool, bool] | None = None  # whether it looks ahead, and is negative
    done: list[Part] = field(default_factory=list)
    items: list[Part] = field(default_factory=list)
    repeatable: bool = False  # whether a quantifier may follow what was read last
    repeated: bool = False  # whether what was read last is a repetition already
    deep: int = 0  # how deep groups with assertions nest inside
    name: str | None = None


class _Parser:
    """`keep`: the tree stays as it is written, groups with names too; else parts fold as they are read."""

    def __init__(self, pattern: str, dialect: Dialect, flags: str = "", *, keep: bool = False) -> None:
        self._scanner = Scanner(pattern, dialect)
        self._flags = _Flags(**{_FLAG_NAMES[flag]: True for flag in flags})
        self._stack = [_Group(0, self._flags)]
        self._keep = keep
        self._name: str | None = None  # of the group that opens here
        self.names: set[str] = set()
        self.asserts = False

    def parse(self, search: bool) -> Regular:
        return lower(self.tree(), search=search, too_large=self._scanner.too_large)

    def tree(self) -> Part:
        scanner = self._scanner
        while scanner.next:
            self._step()
        if len(self._stack) > 1:
            scanner.invalid("the group has no closing ')'", self._stack[-1].at)
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
        """Reads ordinary characters at one go, but for one that a quantifier might follow."""
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
        item = parse_escape(scanner, self._flags.ascii_only, in_class=False)
        if item.code is not None:
            self._add(self._char(item.code))
        elif self._flags.ignore_case and scanner.dialect == "ecma":
            self._add(characters(fold(item.ranges)))
        else:
            self._add(characters(item.ranges))

    # -- quantifiers

    def _is_counted(self) -> bool:
        """Whether the `{` just read opens a count; else it stands for itself."""
        return self._counts() is not None

    def _counts(self) -> tuple[int, int | None, int] | None:
        """Minimum, maximum and the end of a `{m,n}` whose `{` was just read."""
        scanner, back = self._scanner, self._scanner.at
        low = scanner.take_while(_DIGITS)
        comma = scanner.skip(",")
        high = scanner.take_while(_DIGITS) if comma else low
        closed, end = scanner.skip("}"), scanner.at
        scanner.at = back
        if not closed or not (low or comma) or (scanner.dialect == "ecma" and not low):
            return None
        if max(len(low), len(high)) > 12:
            scanner.too_large(f"a count may be at most {MAX_COUNT}", back)
        return int(low or 0), int(high) if high else None, end

    def _quantifier(self, char: str, at: int) -> None:
        scanner, group = self._scanner, self._stack[-1]
        minimum, maximum = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, None)}[char]
        if char == "{" and (counts := self._counts()):
            minimum, maximum, scanner.at = counts
        if max(minimum, maximum or 0) > MAX_COUNT:
            scanner.too_large(f"a count may be at most {MAX_COUNT}", at)
        if maximum is not None and minimum > maximum:
            scanner.invalid("the count's minimum is greater than its maximum", at)
        if not group.repeatable:
            scanner.invalid("a repeat of a repeat" if group.repeated else "nothing to repeat", at)
        if scanner.next == "+" and scanner.dialect == "python":
            scanner.unsupported("a possessive quantifier")
        lazy = scanner.skip("?")  # the same language, but not the same captures
        if self._keep and (minimum, maximum) != (1, 1) and maximum != 0:
            group.items[-1] = Times(group.items[-1], minimum, maximum, at, lazy, scanner.dialect == "python")
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
            scanner.invalid("nothing to repeat")
        if len(self._stack) > MAX_NESTING:
            scanner.too_large(f"groups nest deeper than {MAX_NESTING}", at)
        self._stack.append(_Group(at, self._flags, look, name=self._name))
        self._name, self._flags = None, inner

    def _look(self) -> tuple[bool, bool] | None:
        """Whether the group that opens here looks ahead, and is negative; None if it is no look-around."""
        for text, look in _LOOKS.items():
            if self._scanner.skip(text):
                return look
        return None

    def _extension(self, at: int) -> _Flags | None:
        """What follows `(`, from its `?` on: the flags inside the group; None where no group opens."""
        scanner = self._scanner
        scanner.at += 1
        if scanner.skip(":"):
            return self._flags
        if scanner.dialect == "ecma":
            if scanner.skip("<"):
                return self._group_name(at)
            if scanner.next and scanner.next in "ims-":
                return self._flag_group(at)
            scanner.invalid("expected one of (?: (?= (?! (?<= (?<! (?<name> or flags (i, m, s) here", at)
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
            self._scanner.invalid(f"{name!r} is not a name for a group", at)
        if name in self.names and self._scanner.dialect == "python":
            self._scanner.invalid(f"two groups are named {name!r}", at)
        self.names.add(name)
        self._name = name
        return self._flags

    def _flag_group(self, at: int) -> _Flags | None:
        """`(?flags)`, which sets them for the whole pattern, or `(?flags-flags:`, for a group."""
        scanner = self._scanner
        known = "".join(_FLAG_NAMES) + "uL" if scanner.dialect == "python" else "ims"
        switched_on = scanner.take_while(known)
        if "L" in switched_on:
            scanner.invalid("the flag L is for bytes patterns", at)
        if "a" in switched_on and "u" in switched_on:
            scanner.invalid("the flags a and u exclude each other", at)
        changes = {_FLAG_NAMES[flag]: True for flag in switched_on if flag != "u"}
        if "u" in switched_on:
            changes["ascii_only"] = False
        if switched_on and scanner.skip(")"):
            self._set_globally(changes, "u" in switched_on, at)
            return None
        if scanner.skip("-"):
            switched_off = scanner.take_while("imsx")
            if not switched_off or set(switched_off) & set(switched_on):
                scanner.invalid("expected flags to switch off (i, m, s, x) that are not switched on too", at)
            changes |= {_FLAG_NAMES[flag]: False for flag in switched_off}
        if not changes or not scanner.skip(":"):
            scanner.invalid("expected a group after '(?': one of : P<name> # or flags (i, m, s, x, a, u)", at)
        return replace(self._flags, **changes)

    def _set_globally(self, changes: dict[str, bool], unicode: bool, at: int) -> None:
        first = self._stack[0]
        if len(self._stack) > 1 or first.done or first.items:
            self._scanner.invalid("flags for the whole pattern must stand at its start", at)
        if self._flags.ascii_only and unicode:
            self._scanner.invalid("the flags a and u exclude each other", at)
        self._flags = replace(self._flags, **changes)

    def _close(self, at: int) -> None:
        if len(self._stack) == 1:
            self._scanner.invalid("this ')' closes no group", at)
        group = self._stack.pop()
        self._flags = group.flags
        part = self._closed(group)
        if group.look is not None:
            ahead, negative = group.look
            low, high = (0, 0) if ahead else width(part)
            if self._scanner.dialect == "python" and low != high:
                self._scanner.invalid("a lookbehind of Python's re has one length", group.at)
            part = Look(part, ahead, negative, group.at)
            self.asserts = True
        if group.name is not None and self._keep:
            part = Named(part, group.name)
        elif not isinstance(part, Plain) and not self._keep:
            outer = self._stack[-1]
            outer.deep = max(outer.deep, group.deep + 1)
            if outer.deep > MAX_ASSERTIONS:
                self._scanner.too_large(f"groups with assertions nest deeper than {MAX_ASSERTIONS}", group.at)
        self._add(part)
        if group.look == (False, False) or group.look == (False, True):
            self._stack[-1].repeatable = self._scanner.dialect == "python"

    def _closed(self, group: _Group) -> Part:
        options = [*group.done, self._series(group.items)]
        return Choice(tuple(options)) if self._keep and len(options) > 1 else choice(options)

    def _series(self, items: list[Part]) -> Part:
        return Series(tuple(items)) if self._keep and len(items) > 1 else series(items)
