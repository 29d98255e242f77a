"""Parser of GBNF, the grammar notation of llama.cpp, and of additions from xgrammar's EBNF.

A grammar that llama.cpp accepts has the meaning that it has there, except `[^]`: it is any character as in xgrammar,
while llama.cpp reads an empty text. The additions are errors in llama.cpp: names with underscores, names with dots if a
rule defines them, rules that continue on the next line, further escapes, and `{2,-1}` for a repetition without a
maximum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from guideway.arguments import short_repr
from guideway.background import checkpoint
from guideway.errors import UnsupportedError
from guideway.frontends.cfg.scanner import Groups, Reader
from guideway.grammar.cfg import Ref, Rule, Text
from guideway.grammar.regular import (
    ANY_CHAR,
    ANY_TEXT,
    NEVER,
    Chars,
    Complement,
    Concat,
    Intersection,
    Literals,
    Regular,
    Repeat,
    Special,
    literal,
)

__all__ = ["GbnfReader"]

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_DOTTED = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
_HEAD = re.compile(r"([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)[ \t]*(?:::=|\[[^\]\r\n]*\][ \t]*::=)")
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_ESCAPES = {
    "t": "\t",
    "r": "\r",
    "n": "\n",
    "f": "\f",
    "v": "\v",
    "b": "\b",
    "a": "\a",
    "e": "\x1b",
    "0": "\0",
    **{char: char for char in "\\\"[]-'?/"},
}
_ESCAPES_IN_CLASSES = {**_ESCAPES, **{char: char for char in "^$.*+(){}|"}}
_TOKEN = re.compile(r"<[^<>\s]+>")
_MACROS = frozenset({"TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "AnyTokens"})  # of xgrammar
_ARGUMENTS = re.compile(r"[ \t]*\(")
_HEX = {"x": 2, "u": 4, "U": 8}


class GbnfReader(Reader):
    """Parser of a GBNF grammar.

    Attributes:
        mentioned: For each name that a rule refers to, the first position of a reference.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.mentioned: dict[str, int] = {}
        # A name with a dot is one name only if a rule defines it. Otherwise the dot is any character, as in llama.cpp.
        self._defined = {name for name in map(self._head, _lines(text)) if name is not None}
        self._dotted = {name for name in self._defined if "." in name}

    def _head(self, at: int) -> str | None:
        """Return the name of the rule whose definition begins at the position `at`; None: none begins there."""
        found = _HEAD.match(self.text, at)
        return None if found is None else found[1]

    def _name(self) -> str | None:
        """Read and return a name; None: no name comes next."""
        dotted = _DOTTED.match(self.text, self.at) if self._dotted else None
        return self.match(_DOTTED if dotted is not None and dotted[0] in self._dotted else _NAME)

    def rules(self) -> list[Rule]:
        """Parse all rules, in order."""
        made: dict[str, Rule] = {}
        self.match(_SPACE_AND_LINES)
        while self.next:
            checkpoint()
            at = self.at
            name = self._name() or self.expected("a rule name")
            if name in made:
                self.fail(f"the rule {short_repr(name)} is defined twice", at)
            self.match(_SPACE)
            if self.next == "[":
                self.fail("options of a rule are not supported", self.at, UnsupportedError)
            self.need("::=", f" after the name {short_repr(name)}")
            self.match(_SPACE_AND_LINES)
            groups = Groups(self)
            while self._element(groups):
                self.match(_SPACE)
                before = self.at
                self.match(_SPACE_AND_LINES)
                if not groups.inside and self.at > before and self._head(self.at) is not None:
                    break  # a definition of a rule follows
            term = groups.done()
            if self.next and self._head(self.at) is None:
                self.expected("'|', an element, or the next rule")
            made[name] = Rule(name, term, self.place(at))
        return list(made.values())

    def _element(self, groups: Groups) -> bool:
        """Parse one element of a rule into `groups`. Returns False if no element comes next."""
        at = self.at
        if self.skip("|"):
            groups.bar()
            self.match(_SPACE_AND_LINES)
        elif self.skip("("):
            if self.next == "=":
                self.fail("a lookahead, '(= …)', is not supported; leave it out", at, UnsupportedError)
            groups.open(")", at)
        elif self.next == ")":
            if not groups.inside:
                self.fail("this ')' has no matching '('")
            self.at += 1
            closed = groups.close()
            groups.add(closed)
        elif self.skip('"'):
            groups.add(Text(literal(self._quoted(at))))
        elif self.skip("["):
            groups.add(Text(self._class(at)))
        elif self.skip("."):
            groups.add(Text(ANY_CHAR))
        elif self.next and self.next in "<!":
            groups.add(Text(self._token(at)))
        elif self.next and self.next in "*+?{":
            self._count(groups)
        else:
            name = self._name()
            if name is None:
                return False
            if name in _MACROS and name not in self._defined and _ARGUMENTS.match(self.text, self.at):
                hint = "" if "Dispatch" in name else "; for a token, write '<[id]>' or '<name>'"
                self.fail(f"the function {short_repr(name)} of xgrammar is not supported{hint}", at, UnsupportedError)
            self.mentioned.setdefault(name, at)
            groups.add(Ref(name))
        return True

    def _token(self, at: int) -> Regular:
        """Parse a special token by its name (`<name>`), or special tokens by their ids (`<[id]>`).

        After `!` and before `*` or `+`, the result is any text that does not contain the name; for ids, any text. With
        `+`, the text is not empty.
        """
        others = self.skip("!")
        written = self.match(_TOKEN) or self.expected("a token: '<name>' or '<[id]>'")
        token = self.special(written, at)
        if not others:
            return token
        if self.next not in ("*", "+"):
            self.fail(
                "a single negated token is not supported; write text without the token, '!<name>*' or '!<name>+'",
                at,
                UnsupportedError,
            )
        least = 0 if self.next == "*" else 1
        self.at += 1
        found = Literals((token.name,)) if isinstance(token, Special) and isinstance(token.name, str) else NEVER
        return Intersection((Repeat(ANY_CHAR, least, None), Complement(Concat((ANY_TEXT, found, ANY_TEXT)))))

    def _count(self, groups: Groups) -> None:
        at = self.at
        if self.skip("{"):
            space = _SPACE_AND_LINES if groups.inside else _SPACE
            self.match(space)
            least = self.number()
            most: int | None = least
            self.match(space)
            if self.skip(","):
                self.match(space)
                most = self.number() if not self.skip("-1") and self.next and self.next in "0123456789" else None
                self.match(space)
            self.need("}", " or ',' in a count")
        else:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.next]
            self.at += 1
        groups.repeat(least, most, at)

    def _quoted(self, at: int) -> str:
        text = ""
        while not self.skip('"'):
            if not self.next:
                self.fail("expected '\"' at the end of this text", at)
            text += self._char()
        return text

    def _class(self, at: int) -> Chars:
        negated = self.skip("^")
        ranges: list[tuple[int, int]] = []
        while not self.skip("]"):
            if not self.next:
                self.fail("expected ']' at the end of this class", at)
            here = self.at
            low = high = ord(self._char(_ESCAPES_IN_CLASSES))
            if self.next == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = ord(self._char(_ESCAPES_IN_CLASSES))
            if high < low:
                self.fail("the start of this range is greater than its end", here)
            ranges.append((low, high))
        return ANY_CHAR if negated and not ranges else self.set_of(ranges, negated, at)

    def _char(self, escapes: Mapping[str, str] = _ESCAPES) -> str:
        at, char = self.at, self.next
        self.at += 1
        if char != "\\":
            return char
        letter = self.next
        self.at += 1
        if letter in _HEX:
            return chr(self.hex(_HEX[letter]))
        if letter not in escapes or not letter:
            self.fail(f"unknown escape; known escapes: {', '.join(chr(92) + one for one in [*escapes, *_HEX])}", at)
        return escapes[letter]


def _lines(text: str) -> Iterator[int]:
    """Yield, for each line, the position of its first character that is not white space."""
    return (found.end() for found in re.finditer(r"(?:^|\n)[ \t\r]*", text))
