"""The formats of strings."""

from __future__ import annotations

from collections.abc import Callable

from guideway.grammar.regular import Regular
from guideway.sources.patterns import parse_pattern

__all__ = ["FORMATS", "HARMLESS_FORMATS", "KNOWN_FORMATS"]

_MONTHS_OF_31 = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_MONTHS_OF_30 = "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DATE = f"{_YEAR}-({_MONTHS_OF_31}|{_MONTHS_OF_30}|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29"

FORMATS: dict[str, Callable[[], Regular]] = {"date": lambda: parse_pattern(_DATE, "ecma")}
"""The formats that are enforced. `date`: a day of the Gregorian calendar, years 0001 to 9999."""

KNOWN_FORMATS = frozenset(
    name
    for line in (
        "date-time time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference uri-template iri",
        "iri-reference uuid json-pointer relative-json-pointer regex",
    )
    for name in line.split()
)
"""The other formats of the specification: refused, as they would have to be enforced. Any other name says nothing."""

HARMLESS_FORMATS = frozenset({"password", "path"})
"""Names that Pydantic gives to any string."""
