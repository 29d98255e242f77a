"""Parser of calls in Python notation: `[f(a=1, b="x"), g()]`.

It reads token by token and stores open brackets in a list, so that nested input needs no recursion. The parser of
Python is recursive: 100 nested brackets overflow a stack of 128 KB.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import Any, NoReturn

from guideway.jsontext.numbers import read_int, written_float

__all__ = ["read_calls"]

_TOKEN = re.compile(
    r"""(?:[ \t\f\n]|\\\n|\#[^\n]*)*(?:
      (?P<string>[rRuU]?(?:'''|\"\"\"|'|"))
    | (?P<number>(?:
        0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+
      | (?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)(?:[eE][-+]?[0-9](?:_?[0-9])*)?
      )(?!\w))
    | (?P<name>[A-Za-z_\u0080-\U0010FFFF][A-Za-z_0-9\u0080-\U0010FFFF]*)
    | (?P<sign>[\[\](){},:=.-]|)
    )""",
    re.VERBOSE,
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_CONTENT = {  # by the quotes of a string, the pattern of its content
    "'": re.compile(r"[^'\\\n]*(?:\\[\s\S][^'\\\n]*)*"),
    '"': re.compile(r'[^"\\\n]*(?:\\[\s\S][^"\\\n]*)*'),
    "'''": re.compile(r"[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*"),
    '"""': re.compile(r'[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*'),
}
_ESCAPE = re.compile(
    r"\\(?:([\n\\'\"abfnrtv])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
    r"|N\{([^}\n]{1,100})\}|([xuUN]))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_CONSTANTS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_CLOSING = {"": "", "[": "]", "(": ")", "{": "}", "call": ")"}


class _Call:
    """A call: name and arguments."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.name, self.arguments = name, arguments


class _Bracket:
    """An open bracket and the values in it so far. `kind` is "[", "(", "{", "call", or "" for the whole text."""

    __slots__ = ("comma", "items", "key", "kind", "named")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: list[Any] = []
        self.named: dict[str, Any] = {}
        self.key = ""  # the key or keyword of the next value
        self.comma = False  # whether a comma follows the last value

    def add(self, value: Any) -> None:
        if self.kind in ("{", "call"):
            self.named[self.key] = value
        else:
            self.items.append(value)
        self.comma = False

    def closed(self) -> Any:
        if self.kind in ("{", "call"):
            return self.named
        grouped = self.kind in ("(", "") and len(self.items) == 1 and not self.comma
        return self.items[0] if grouped else self.items

    @property
    def may_close(self) -> bool:
        return self.comma or not (self.items or self.named or self.kind == "")


def read_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a text: one call, calls with commas between them, or a list or tuple of calls.

    All arguments must have keywords. Values are constants, lists, tuples (returned as lists) and dicts with str keys.
    `true`, `false` and `null` are read as in JSON. The time is linear in the length of the text.

    Returns:
        For each call, the name and the arguments by keyword.

    Raises:
        ValueError: The text is not such a list of calls.
    """
    value = _Reader(text.replace("\r\n", "\n").replace("\r", "\n")).read()
    calls = value if isinstance(value, list) else [value]
    if not all(isinstance(one, _Call) for one in calls):
        raise ValueError("expected calls with keyword arguments")
    return [(one.name, one.arguments) for one in calls]


class _Reader:
    """Reads values; `_token` is the current token and `_kind` the name of its group in `_TOKEN`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0  # end of the current token
        self._token = self._kind = ""
        self._open = [_Bracket("")]
        self._call = ""  # name of the open call; "": no call is open

    def read(self) -> Any:
        self._next()
        while True:
            bracket = self._open[-1]
            if bracket.may_close and self._is(_CLOSING[bracket.kind]):
                value = self._close()
            else:
                if bracket.kind in ("{", "call"):
                    self._key(bracket)
                if self._opens():
                    continue
                value = self._constant()
            while self._open:
                bracket = self._open[-1]
                bracket.add(value)
                if self._is(","):
                    bracket.comma = True
                    self._next()
                    break
                if not self._is(_CLOSING[bracket.kind]):
                    self._fail("',' or a closing bracket")
                value = self._close()
            else:
                return value

    def _next(self) -> None:
        """Read the next token. At the end of the text, it is "" with the kind "sign".

        Raises `ValueError` if no token begins here.
        """
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:  # only for type checkers: `_TOKEN` matches the empty text, too
            self._fail("a token")
        self._kind, self._token, self._at = found.lastgroup, found[found.lastgroup], found.end()
        if not self._token and self._at < len(self._text):
            self._fail("a value, a name or a bracket")

    def _is(self, sign: str) -> bool:
        return self._kind == "sign" and self._token == sign

    def _take(self, sign: str) -> None:
        if not self._is(sign):
            self._fail(repr(sign))
        self._next()

    def _fail(self, expected: str) -> NoReturn:
        raise ValueError(f"expected {expected} before character {self._at}")

    def _close(self) -> Any:
        """Close the innermost bracket, and return its value."""
        bracket = self._open.pop()
        value = bracket.closed()
        if bracket.kind == "call":
            value, self._call = _Call(self._call, value), ""
        if self._open:
            self._next()
        return value

    def _key(self, bracket: _Bracket) -> None:
        """Read the key of the next value and the sign after it."""
        if bracket.kind == "call":
            bracket.key = self._identifier()
            self._take("=")
            return
        if self._kind != "string":
            self._fail("a str as key")
        bracket.key = self._strings()
        self._take(":")

    def _identifier(self) -> str:
        name = self._token
        if self._kind != "name" or not name.isidentifier():
            self._fail("a name")
        self._next()
        return name

    def _opens(self) -> bool:
        """Open the bracket or the call that begins here. Returns False if neither begins here."""
        if self._kind == "sign" and self._token in ("[", "(", "{"):
            self._open.append(_Bracket(self._token))
            self._next()
            return True
        if self._kind != "name" or self._token in _CONSTANTS:
            return False
        names = [self._identifier()]
        while self._is("."):
            self._next()
            names.append(self._identifier())
        self._take("(")
        if self._call:
            self._fail("a constant, not a call")
        self._open.append(_Bracket("call"))
        self._call = ".".join(names)
        return True

    def _constant(self) -> Any:
        if self._kind == "string":
            return self._strings()
        value: Any
        if self._kind == "name":
            value = _CONSTANTS[self._token]
        else:
            negative = self._is("-")
            if negative:
                self._next()
            if self._kind != "number":
                self._fail("a constant")
            value = _number(self._token, "-" if negative else "")
        self._next()
        return value

    def _strings(self) -> str:
        """Read a string and all strings directly after it, and return them joined."""
        parts = []
        while self._kind == "string":
            quote = self._token.lstrip("rRuU")
            found = _CONTENT[quote].match(self._text, self._at)
            if found is None or not self._text.startswith(quote, found.end()):
                self._fail("a string with an end")
            parts.append(found[0] if self._token[0] in "rR" else _ESCAPE.sub(_unescaped, found[0]))
            self._at = found.end() + len(quote)
            self._next()
        return "".join(parts)


def _number(token: str, sign: str) -> int | float | Decimal:
    """Return a number: `sign` is "-" or "". A number that is JSON is read as in `reply_parser.NUMBERS`."""
    text = sign + token
    if _JSON_NUMBER.fullmatch(text):
        return read_int(text) if token.isdigit() else written_float(text)
    is_int = token[:2].lower() in ("0x", "0o", "0b") or token.replace("_", "").isdigit()
    value = int(token, 0) if is_int else float(token)
    return -value if sign else value


def _unescaped(found: re.Match[str]) -> str:
    """Return the character of an escape sequence. A backslash before any other character is kept, as in Python."""
    simple, octal, *codes, name, _ = found.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if octal is not None:
        return chr(int(octal, 8))
    code = next(filter(None, codes), None)
    if code is not None:
        return chr(int(code, 16))
    if name is None:
        raise ValueError(f"expected an escape sequence, found {found[0]}")
    try:
        return unicodedata.lookup(name)
    except KeyError:
        raise ValueError(f"no character has the name {name}") from None
