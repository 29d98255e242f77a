"""Dates, times, date-times and durations of RFC 3339, as regular languages."""

from __future__ import annotations

from guideway.frontends.formats.rules import spelled
from guideway.grammar.regular import Regular, cat, chars, either, literal, optional, repeat

__all__ = ["date", "date_time", "duration", "time"]

_MONTHS_OF_31 = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_MONTHS_OF_30 = "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"

_HOUR = "([01][0-9]|2[0-3])"
_FRACTION = r"(\.[0-9]+)?"
_OFFSET = f"([Zz]|[+-]{_HOUR}:[0-5][0-9])"


def date() -> Regular:
    """Return full-date: a day of the Gregorian calendar, years 0001 to 9999 (RFC 3339, section 5.6)."""
    february = "02-(0[1-9]|1[0-9]|2[0-8])"
    return spelled(f"{_YEAR}-({_MONTHS_OF_31}|{_MONTHS_OF_30}|{february})|{_LEAP_YEAR}-02-29")


def time() -> Regular:
    """Return full-time (RFC 3339, section 5.6).

    Second 60 is allowed only at 23:59 UTC. A numeric offset must then be a multiple of 15 minutes.
    """
    usual = spelled(f"{_HOUR}:[0-5][0-9]:[0-5][0-9]{_FRACTION}{_OFFSET}")
    return either([usual, spelled(f"23:59:60{_FRACTION}[Zz]"), _leap_second()])


def date_time() -> Regular:
    """Return date-time (RFC 3339, section 5.6)."""
    return cat(date(), chars("TT", "tt"), time())


def duration() -> Regular:
    """Return duration (RFC 3339, appendix A).

    Numbers have no fractions. Within the date (years, months, days) and within the time (hours, minutes, seconds), no
    unit between two units may be left out. Weeks are not combined with other units.
    """
    number = "[0-9]+"
    seconds = f"{number}S"
    minutes = f"{number}M({seconds})?"
    hours = f"{number}H({minutes})?"
    clock = f"T({hours}|{minutes}|{seconds})"
    days = f"{number}D"
    months = f"{number}M({days})?"
    years = f"{number}Y({months})?"
    return spelled(f"P(({days}|{months}|{years})({clock})?|{clock}|{number}W)")


def _leap_second() -> Regular:
    """Return the local times of a leap second (23:59:60 UTC), with a numeric offset that is a multiple of 15 minutes."""
    cases: list[Regular] = []
    seconds = cat(":60", optional(cat(".", repeat(chars("09"), 1))))
    for hour in range(24):
        minutes = []
        for minute in (14, 29, 44, 59):
            local = hour * 60 + minute
            offsets = ((local - 1439) % 1440, (1439 - local) % 1440)
            ends = [f"{sign}{by // 60:02}:{by % 60:02}" for sign, by in zip("+-", offsets, strict=True)]
            minutes.append(cat(f"{minute}", seconds, literal(*ends)))
        cases.append(cat(f"{hour:02}:", either(minutes)))
    return either(cases)
