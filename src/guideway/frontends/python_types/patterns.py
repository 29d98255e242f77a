"""Translates patterns of Rust's regex crate and of Python's `re`, which Pydantic uses, to ECMA-262.

The translation has the same matches, or fewer. A class such as `\\d` is translated to a subset of its characters, for
example the ASCII ones. Inside a negated class or a negative look-around, it is translated to a superset.
"""

from __future__ import annotations

import re

from guideway.arguments import short_repr
from guideway.errors import UnsupportedError

__all__ = ["ecma_pattern"]

_PIECES = re.compile(
    r"\\.|\[\^?\]?|\(\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]*)(?P<end>[:)])|\(\?P?<\w+>|\(\?<?[=!]|\{,\d*\}|.", re.DOTALL
)
_GLOBAL = re.compile(r"\(\?([a-zA-Z]+)\)")

# The elements of character classes for each dialect. Inside "[…]" and outside "[^…]" they are written alike.
_SPACE = r"\t\n\v\f\r "  # in every dialect
_WORDS = {"rust": r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}", "python": r"\p{L}\p{N}_"}
_SPACES = {"rust": r"\p{White_Space}", "python": r"\p{White_Space}\x1c-\x1f"}
_NO_SPACES = {  # the complements of `_SPACES`
    "rust": r"\P{White_Space}",
    "python": (
        r"\x00-\x08\x0e-\x1b!-\x84\x86-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
        r"\u2060-\u2fff\u3001-\u{10ffff}"
    ),
}


class _Classes:
    """How the classes of one dialect are written inside brackets; `few`: subsets of them, `many`: supersets."""

    def __init__(self, dialect: str) -> None:
        self.word, self.space = _WORDS[dialect], _SPACES[dialect]
        self.few = {"d": r"\d", "w": r"\w", "s": _SPACE, "D": r"\P{Nd}", "S": _NO_SPACES[dialect]}
        self.many = {
            "d": r"\p{Nd}",
            "w": self.word,
            "s": _SPACES[dialect],
            "D": r"\D",
            "S": r"\S\ufeff",
            "W": r"\W",
        }


def ecma_pattern(pattern: str, *, python: bool = False) -> str:
    """Translate a pattern to ECMA-262.

    Args:
        pattern: The pattern.
        python: Whether it is a pattern of Python's `re`, not of Rust's regex crate.

    Raises:
        UnsupportedError: A class has set operations, begins with a bracket, or contains `\\W`. The pattern has flags
            other than "i", "m" and "s", "m" or "s" for a part of it, or "i" and a negative look-around.
    """
    return _Translation(pattern, python).run()


class _Translation:
    """The state of the translation of a pattern.

    Attributes:
        negative: For each open group, whether it is inside an odd number of negative look-arounds.
    """

    def __init__(self, pattern: str, python: bool) -> None:
        self.pattern, self.python = pattern, python
        self.classes = _Classes("python" if python else "rust")
        self.negative = [False]
        found = _GLOBAL.match(pattern)
        flags = set(found[1]) - ({"u"} if python else set()) if found else set()
        self.body = pattern[found.end() :] if found else pattern
        if flags - set("ims"):
            self.refuse(f"the flag {min(flags - set('ims'))!r}")
        if python and re.search(r"\\u[dD][89a-fA-F]", pattern):
            self.refuse("a surrogate")
        self.lines, self.dot_all = "m" in flags, "s" in flags
        self.parts_with_s = re.search(r"\(\?[a-zA-Z]*s[a-zA-Z]*:|\(\?[a-zA-Z]*-[a-zA-Z]*s", self.body) is not None
        self.folds = "i" in flags or re.search(r"\(\?[a-zA-Z]*i", self.body) is not None
        kept = "".join(flag for flag in "is" if flag in flags)
        self.made = [f"(?{kept})"] if kept else []

    def refuse(self, what: str) -> None:
        raise UnsupportedError(f"{what} is not supported in the pattern {short_repr(self.pattern)}")

    def run(self) -> str:
        """Return the translated pattern."""
        pieces = list(_PIECES.finditer(self.body))
        inside = negated = False
        for place, found in enumerate(pieces):
            piece = found[0]
            after = pieces[place + 1][0] if place + 1 < len(pieces) else ""
            if piece == "\\P" and self.folds:
                self.refuse("'\\P' with the flag 'i'")
            if inside:
                self.in_class(piece, after, negated)
                inside = piece != "]"
            elif piece[0] == "[":
                if piece[-1] == "]":
                    self.refuse("a character class that begins with a bracket")
                inside, negated = True, piece == "[^"
                # Python ignores the case of these letters as that of "i", ECMA-262 does not.
                self.made.append(piece + r"\u0130\u0131" if negated and self.folds and self.python else piece)
            elif piece[0] == "(":
                self.opened(piece, found)
            elif not self.python and (piece in ("\\<", "\\>") or (piece == "\\b" and after == "{")):
                self.refuse(f"the word boundary {piece!r}")
            else:
                self.outside(piece)
        return "".join(self.made)

    def in_class(self, piece: str, after: str, negated: bool) -> None:
        if piece[0] == "[" or (piece in ("&", "-", "~") and piece == after):
            raise UnsupportedError(
                f"set operations in character classes are not supported in the pattern {short_repr(self.pattern)}"
            )
        if piece[0] == "\\" and piece[1:] in ("d", "D", "s", "S", "w", "W"):
            table = self.classes.many if negated != self.negative[-1] else self.classes.few
            if piece[1] not in table:
                self.refuse("\\W in a character class")
            piece = table[piece[1]]
        self.made.append(piece)

    def opened(self, piece: str, found: re.Match[str]) -> None:
        """Translate the beginning of a group, or flags."""
        flags = found["flags"]
        if flags:
            on, _, off = flags.partition("-")
            if "m" in flags or (self.python and found["end"] == ")") or set(on + off) - set("is"):
                self.refuse(f"{piece!r}")
        if found["end"] == ")":
            self.made.append(piece)
            return
        negative = piece in ("(?!", "(?<!")
        if negative and (self.folds or self.parts_with_s):
            self.refuse("a negative look-around with the flag 'i', or with 's' for a part,")
        self.negative.append(self.negative[-1] != negative)
        self.made.append("(?:" if piece.endswith(">") else piece)

    def outside(self, piece: str) -> None:
        """Translate a piece outside of character classes and beginnings of groups."""
        negative = self.negative[-1]
        if piece == ")" and len(self.negative) > 1:
            self.negative.pop()
        elif piece == "." and negative and not self.dot_all:
            piece = r"[^\n]"
        elif piece == "^" and self.lines:
            piece = r"(?:^|(?<=\n))"
        elif piece == "$" and (self.lines or (self.python and negative)):
            piece = r"(?:$|(?=\n))" if self.lines else r"(?:$|(?=\n$))"
        elif piece.startswith("{,") and self.python:
            piece = "{0" + piece[1:]
        elif piece[0] == "\\":
            piece = self.escape(piece, negative)
        self.made.append(piece)

    def escape(self, piece: str, negative: bool) -> str:
        word = self.classes.word
        if piece in ("\\A", "\\Z" if self.python else "\\z"):
            return "^" if piece == "\\A" else "$"
        if piece == "\\b":
            return f"(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"
        if piece == "\\B":
            found = f"(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))"
            return f"(?:{found}(?:(?<=[^])|(?=[^])))" if self.python else found  # before 3.14 not in an empty text
        if piece[1:] not in ("d", "D", "s", "S", "w", "W"):
            return piece
        if not negative and piece in ("\\S", "\\W"):
            return f"[^{word}]" if piece == "\\W" else f"[^{self.classes.space}]"
        made = (self.classes.many if negative else self.classes.few)[piece[1]]
        return made if re.fullmatch(r"\\(\w|[pP]\{\w+\})", made) else f"[{made}]"
