"""Parser of GBNF, the grammar notation of llama.cpp."""

from __future__ import annotations

import re

from guideway.errors import UnsupportedError
from guideway.frontends.cfg.scanner import Groups, Reader, special_of
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
    literal,
)

__all__ = ["GbnfReader"]

_NAME = re.compile(r"[A-Za-z0-9-]+")
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_AND_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_TOKEN = re.compile(r"<[^<>\s]+>")
_HEX = {"x": 2, "u": 4, "U": 8}


class GbnfReader(Reader):
    """Parser of a GBNF grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.mentioned: dict[str, int] = {}

    def rules(self) -> list[Rule]:
        """Parse all rules, in order."""
        made: dict[str, Rule] = {}
        self.match(_SPACE_AND_LINES)
        while self.next:
            at = self.at
            name = self.match(_NAME) or self.expected("a rule name")
            if name in made:
                self.fail(f"the rule {name!r} is defined twice", at)
            self.match(_SPACE)
            self.need("::=", f" after the name {name!r}")
            self.match(_SPACE_AND_LINES)
            groups = Groups(self)
            while self._element(groups):
                self.match(_SPACE_AND_LINES if groups.inside else _SPACE)
            term = groups.done()
            if self.next and self.next not in "\r\n":
                self.expected("'|', an element, or the end of the line")
            made[name] = Rule(name, term, self.place(at))
            self.match(_SPACE_AND_LINES)
        return list(made.values())

    def _element(self, groups: Groups) -> bool:
        """Parse one element. Returns False if there is none."""
        at = self.at
        if self.skip("|"):
            groups.bar()
            self.match(_SPACE_AND_LINES)
        elif self.skip("("):
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
            name = self.match(_NAME)
            if name is None:
                return False
            self.mentioned.setdefault(name, at)
            groups.add(Ref(name))
        return True

    def _token(self, at: int) -> Regular:
        """Parse a token by name or id, or a repetition of other text (`!<name>*`)."""
        others = self.skip("!")
        written = self.match(_TOKEN) or self.expected("a token: '<name>' or '<[id]>'")
        token = special_of(written)
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
        found = Literals((token.name,)) if isinstance(token.name, str) else NEVER
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
                most = self.number() if self.next and self.next in "0123456789" else None
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
            low = high = ord(self._char())
            if self.next == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = ord(self._char())
            if high < low:
                self.fail("the start of this range is greater than its end", here)
            ranges.append((low, high))
        return self.set_of(ranges, negated, at)

    def _char(self) -> str:
        at, char = self.at, self.next
        self.at += 1
        if char != "\\":
            return char
        letter = self.next
        self.at += 1
        if letter in _HEX:
            return chr(self.hex(_HEX[letter]))
        if letter not in _ESCAPES or not letter:
            self.fail(f"unknown escape; known escapes: {', '.join(chr(92) + one for one in [*_ESCAPES, *_HEX])}", at)
        return _ESCAPES[letter]
