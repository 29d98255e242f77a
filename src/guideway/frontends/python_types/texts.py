"""JSON Schemas of the texts, in JSON, that represent values of Python types.

Pydantic accepts every text that they allow. For some types, they do not allow every text that Pydantic accepts.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from guideway.caching import cached
from guideway.errors import UnsupportedError

__all__ = ["FORMATS", "NOT_PYTHON", "STRIPPED", "dates", "past_or_future", "time_zones", "url"]

_LABEL = "[a-z0-9]{1,20}(-[a-z0-9]{1,20})?"
_HOST = rf"(?!xn--)({_LABEL}\.(?!xn--)){{0,4}}[a-z]{{1,20}}"  # no IP addresses, no A-labels
_USER = "([A-Za-z0-9_]+(:[A-Za-z0-9_]+)?@)?"
_PORT = "(:[1-9][0-9]{0,3})?"
_REST = r"(/[A-Za-z0-9._~!$&'()*+,;=:@\-]*)*(\?[A-Za-z0-9._~!$&'()*+,;=:@/?\-]*)?(#[A-Za-z0-9._~!$&'()*+,;=:@/?\-]*)?"
_KNOWN_TO_BROWSERS = "https?|wss?|ftp|file"
_USED_SPECIALLY = "test|local|localhost|invalid|onion|arpa"  # RFC 6761; refused by email-validator

_DAY = (
    "(?!0000)([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"


def _whole(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^({pattern})$"}


def _base64(letter: str) -> str:
    return f"({letter}{{4}})*({letter}[AQgw]==|{letter}{{2}}[AEIMQUYcgkosw048]=)?"


_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _base64_of_ascii(last: str) -> str:
    """Return a pattern of the base64 texts of ASCII bytes. `last` has the digits for 62 and 63."""
    digits = _DIGITS + last

    def some(chosen: Iterable[int]) -> str:
        return "[" + "".join(digits[n].replace("-", r"\-") for n in chosen) + "]"

    one = some(range(32))
    two, three = some(n for n in range(64) if not n & 8), some(n for n in range(64) if not n & 2)
    rest = f"{one}{some((0, 16, 32, 48))}==|{one}{two}{some(n for n in range(64) if n % 4 == 0 and not n & 2)}="
    return f"({one}{two}{three}{some(range(64))})*({rest})?"


_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}"
_GROUP = "[0-9a-f]{1,4}"


def _groups(least: int, most: int) -> str:
    if most == 0:
        return ""
    some = f"{_GROUP}(:{_GROUP}){{{max(least - 1, 0)},{most - 1}}}"
    return some if least else f"({some})?"


_IPV6 = f"({_GROUP}(:{_GROUP}){{7}}|" + "|".join(f"{_groups(n, n)}::{_groups(0, 7 - n)}" for n in range(8)) + ")"


def _up_to(most: int, least: int = 0) -> str:
    return f"({'|'.join(map(str, range(least, most + 1)))})"


def _ipv4_networks() -> str:
    """Return a pattern of IPv4 addresses, and of IPv4 networks whose bits after the prefix are 0."""
    made = []
    for size in range(33):
        whole, bits = divmod(size, 8)
        parts = [_OCTET] * whole
        if whole < 4:
            parts.append(f"({'|'.join(map(str, range(0, 256, 256 >> bits)))})" if bits else "0")
        made.append(r"\.".join((*parts, *["0"] * (4 - len(parts)))) + f"/{size}")
    return f"({'|'.join((_IPV4, *made))})"


def _ipv6_networks() -> str:
    """Return a pattern of IPv6 networks whose bits after the prefix are 0. The address ends with `::`."""
    return "(" + "|".join(f"{_groups(n, n)}::/{_up_to(128, 16 * n)}" for n in range(8)) + ")"


_IPV4_NETWORK, _IPV6_NETWORK = _ipv4_networks(), _ipv6_networks()
_IPV4_INTERFACE, _IPV6_INTERFACE = f"{_IPV4}(/{_up_to(32)})?", f"{_IPV6}(/{_up_to(128)})?"
_TIME = r"([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,6}(\.[0-9]{1,6})?S)?"


def _number_with(units: str) -> str:
    return rf"[0-9]{{1,12}}(\.[0-9]{{1,3}})? ?({units})?"


FORMATS: dict[str, dict[str, Any]] = {
    **{f"uuid{n}": {"format": "uuid", "pattern": f"^.{{14}}{n}.{{4}}[89abAB]"} for n in range(1, 9)},
    "base64": _whole(_base64("[A-Za-z0-9+/]")),
    "base64url": _whole(_base64(r"[A-Za-z0-9_\-]")),
    "email": _whole(
        rf"(?!.{{65}})[a-z0-9]+([._+\-][a-z0-9]+)*@(?!.*\.({_USED_SPECIALLY})$)(?!xn--)({_LABEL}\.(?!xn--)){{1,4}}[a-z]{{2,20}}"
    ),
    "naive date-time": _whole(f"{_DAY}T{_CLOCK}"),
    "hex": _whole("([0-9a-f]{2})*"),
    "base64 of ASCII": _whole(_base64_of_ascii("+/")),
    "base64url of ASCII": _whole(_base64_of_ascii("-_")),
    "fraction": _whole("-?[0-9]{1,18}(/0{0,2}[1-9][0-9]{0,17})?"),
    "byte size": {
        "anyOf": [{"type": "integer", "minimum": 0}, _whole(_number_with("[kKmMgGtTpPeE]?[bB]|[kKmMgGtTpPeE]i[bB]"))]
    },
    "signed duration": _whole(f"-?P([0-9]{{1,6}}D(T(?=[0-9]){_TIME})?|T(?=[0-9]){_TIME})"),
    "any json": _whole(r'null|true|false|0|-?[1-9][0-9]{0,17}|"[a-zA-Z0-9 ]*"|\[\]|\{\}'),
    "ipv4network": _whole(_IPV4_NETWORK),
    "ipv6network": _whole(_IPV6_NETWORK),
    "ipv4interface": _whole(_IPV4_INTERFACE),
    "ipv6interface": _whole(_IPV6_INTERFACE),
    "ipvanyaddress": _whole(f"{_IPV4}|{_IPV6}"),
    "ipvanynetwork": _whole(f"{_IPV4_NETWORK}|{_IPV6_NETWORK}"),
    "ipvanyinterface": _whole(f"{_IPV4_INTERFACE}|{_IPV6_INTERFACE}"),
}
"""JSON Schemas by the name of a format in Pydantic. Names with a space, and "hex", are not names of Pydantic."""

NOT_PYTHON = r"\[\^?\]|\\[^dDwWsSbBnrtfv.*+?()\[\]{}|^$\\/]|\(\?[^:=!]|[0-9]{5}"
"""A pattern that finds what may be valid in ECMA-262 and not in Python's `re`: empty classes, escapes, large counts."""

STRIPPED = r"^([^\s\x85]([^]*[^\s\x85])?)?$"
"""A pattern of the texts that `str.strip` does not change."""


@cached(1)
def time_zones() -> dict[str, Any]:
    """Return a schema of the names of the time zones of this machine. Raises `UnsupportedError` if there are none."""
    names = sorted(zoneinfo.available_timezones() - {"localtime"})  # "localtime" is not a name of a zone
    if not names:
        raise UnsupportedError("ZoneInfo is not supported without time zones; install the package tzdata")
    return {"enum": names}


def url(schemes: Iterable[str] | None, most: int | None) -> dict[str, Any]:
    """Return a schema of URLs that Pydantic's URL parser (WHATWG) leaves unchanged, except for a final slash.

    Args:
        schemes: The allowed schemes; None: any.
        most: The maximum length of the parsed URL; None: no limit.
    """
    rest = f"://{_USER}{_HOST}{_PORT}{_REST}"
    # Pydantic counts the slash after the host that the parsed URL may have in addition.
    length = {} if most is None else {"maxLength": most - 1}
    if schemes is not None and "file" in schemes:
        others = [scheme for scheme in schemes if scheme != "file"]
        files = {**_whole(f"file://({_HOST})?(?=/){_REST}"), **length}
        return {"anyOf": [files, url(others, most)]} if others else files
    if schemes is not None:
        names = "|".join(scheme.replace("+", r"\+").replace(".", r"\.") for scheme in schemes)
        return {**_whole(f"({names}){rest}"), **length}
    opaque = {"type": "string", "format": "uri", "not": {"pattern": rf"^([^:]*://|({_KNOWN_TO_BROWSERS}):)"}}
    return {"anyOf": [_whole(rf"(?!file:)[a-z][a-z0-9+.\-]{{0,20}}{rest}"), {**opaque, "pattern": "^[a-z]"}], **length}


def dates(low: date | None, high: date | None, end: str = "$") -> list[dict[str, Any]]:
    """Return schemas of the texts that begin with a day from `low` to `high`, followed by the pattern `end`.

    A text must meet all of them. A bound that is None adds no schema.
    """
    made = []
    for bound, upwards in ((low, True), (high, False)):
        if bound is None:
            continue
        text = bound.isoformat()
        parts = [text]
        for i, digit in enumerate(text):
            first, last = (
                (int(digit) + 1, 9) if upwards and digit != "-" else (0, int(digit) - 1) if digit != "-" else (1, 0)
            )
            if first <= last:
                parts.append(f"{text[:i]}[{first}-{last}]" + re.sub("[0-9]", "[0-9]", text[i + 1 :]))
        made.append({"pattern": f"^({'|'.join(parts)}){end}"})
    return made


def past_or_future(op: str | None) -> tuple[date | None, date | None]:
    """Return the first day that is future, and the last day that is past, at every offset from UTC.

    They stay so until the end of the second day from now, because a schema is used after it was made. `op`: "future"
    (the second result is None), "past" (the first is None) or None (both are).
    """
    # This machine's day can differ from that of UTC by 14 hours, and that of a text by 24 hours (RFC 3339, 5.6).
    today = date.today()
    return (today + timedelta(5) if op == "future" else None, today - timedelta(3) if op == "past" else None)
