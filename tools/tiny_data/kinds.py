# forms of a value are written in rows, several to a line
"""Kinds of values: each samples a value, its form in the text, and its schema in a record."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from . import words


@dataclass
class Drawn:
    """One sampled value: its form in the text, its value in the record, and its schema."""

    text: str
    value: object
    schema: dict[str, object]
    verbatim: bool = True  # the text is a plain span, so a "string" field may request it unchanged
    inner: list[dict[str, Drawn]] = field(default_factory=list)  # a list of objects: its rows, by canonical name


Kind = Callable[[random.Random, str], Drawn]

STRING: dict[str, object] = {"type": "string"}
INTEGER: dict[str, object] = {"type": "integer"}
NUMBER: dict[str, object] = {"type": "number"}
DATE: dict[str, object] = {"type": "string", "format": "date"}

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
]
_UNITS += ["seventeen", "eighteen", "nineteen"]
_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def number_word(value: int) -> str:
    if value < 20:
        return _UNITS[value]
    return _TENS[value // 10] + ("-" + _UNITS[value % 10] if value % 10 else "")


def text_kind(make: Callable[[random.Random, str], str]) -> Kind:
    def draw(rng: random.Random, split: str) -> Drawn:
        text = make(rng, split)
        return Drawn(text, text, STRING)

    return draw


def integers(low: int, high: int, worded: float = 0.12) -> Kind:
    """An integer; large ones sometimes with a thousands comma, small ones sometimes in words."""

    def draw(rng: random.Random, split: str) -> Drawn:
        value = rng.randint(low, high) if rng.random() < 0.7 else int(low + (high - low) * rng.random() ** 3)
        if value == 1 and worded > 0.2 and rng.random() < 0.6:
            return Drawn(rng.choice(["a", "a", "one", "an"]), 1, INTEGER)
        if 0 <= value < 100 and rng.random() < worded * (2 if value <= 12 else 0.5):
            return Drawn(number_word(value), value, INTEGER)
        if value >= 1000 and rng.random() < 0.5 and worded > 0:
            return Drawn(f"{value:,}", value, INTEGER)
        return Drawn(str(value), value, INTEGER)

    return draw


def decimals(low: float, high: float, digits: int = 1) -> Kind:
    def draw(rng: random.Random, split: str) -> Drawn:
        value = round(rng.uniform(low, high), digits)
        if rng.random() < 0.2:
            return Drawn(str(int(value)), int(value), NUMBER)
        return Drawn(f"{value:.{digits}f}", value, NUMBER)

    return draw


def amount(rng: random.Random, high: float = 3.7) -> tuple[str, float | int]:
    value = 10 ** rng.uniform(0.3, high)
    if rng.random() < 0.4:
        whole = int(value)
        return (f"{whole:,}" if whole >= 1000 and rng.random() < 0.6 else str(whole)), whole
    cents = round(value, 2) if rng.random() < 0.6 else int(value) + rng.choice([0.5, 0.99, 0.95, 0.9, 0.25, 0.75])
    return (f"{cents:,.2f}" if rng.random() < 0.5 else f"{cents:.2f}"), cents


def price(rng: random.Random, split: str) -> Drawn:
    text, value = amount(rng)
    sign = rng.choice("$$€€£")
    unit = rng.choice(["EUR", "USD", "euros", "dollars", "GBP", "CHF", "pounds", "kr", "euro"])
    form = rng.choice(
        [
            f"{sign}{text}",
            f"{text} {unit}",
            f"{text} {sign}",
            f"{rng.choice(['EUR', 'USD', 'GBP', 'CHF'])} {text}",
            f"{text} {unit}",
        ]
    )
    return Drawn(form, value, NUMBER, verbatim=False)


def number_pair(currency: bool) -> Kind:
    """A bare amount, for templates that write the currency themselves."""

    def draw(rng: random.Random, split: str) -> Drawn:
        text, value = amount(rng)
        return Drawn(text, value, NUMBER, verbatim=False)

    return draw


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 10 < day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def date(rng: random.Random, split: str) -> Drawn:
    year = rng.randint(2015, 2032) if rng.random() < 0.7 else rng.randint(1900, 2099)
    day = datetime.date(year, 1, 1) + datetime.timedelta(days=rng.randint(0, 364))
    month, short = _MONTHS[day.month - 1], _MONTHS[day.month - 1][:3]
    forms = [
        f"{day.day} {month} {year}", f"{month} {day.day}, {year}", f"the {_ordinal(day.day)} of {month} {year}",
        f"{month} {_ordinal(day.day)}, {year}", f"{day.day} {short} {year}", f"{short} {day.day}, {year}", day.isoformat(),
        f"{day.day:02d} {short} {year}", f"{day.strftime('%A')}, {day.day} {month} {year}", f"{_ordinal(day.day)} {month} {year}",
        f"{day.day}.{day.month}.{year}", f"{day.day:02d}.{day.month:02d}.{year}", f"{year}/{day.month:02d}/{day.day:02d}",
        f"{day.day} {month} {year}", f"{month} {day.day}, {year}", f"{day.strftime('%A')} {day.day} {month} {year}",
    ]  # fmt: skip
    return Drawn(rng.choice(forms), day.isoformat(), DATE)


def clock(rng: random.Random, split: str) -> Drawn:
    hour, minute = rng.randint(0, 23), rng.choice([0, 0, 15, 30, 45, rng.randint(0, 59)])
    half = f"{(hour - 1) % 12 + 1}"
    text = rng.choice(
        [f"{hour}:{minute:02d}", f"{hour:02d}:{minute:02d}", f"{half}:{minute:02d} {'am' if hour < 12 else 'pm'}"]
    )
    if minute == 0 and rng.random() < 0.3:
        text = f"{half} {'am' if hour < 12 else 'pm'}"
    return Drawn(text, text, STRING)


def year(rng: random.Random, split: str) -> Drawn:
    value = rng.randint(1400, 2040) if rng.random() < 0.4 else rng.randint(1940, 2030)
    return Drawn(str(value), value, INTEGER)


def joined(rng: random.Random, parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    head, last = parts[:-1], parts[-1]
    style = rng.random()
    if style < 0.5:
        return ", ".join(head) + " and " + last
    if style < 0.7:
        return ", ".join(parts)
    if style < 0.8:
        return ", ".join(head) + ", and " + last
    if style < 0.88:
        return " & ".join(parts) if len(parts) == 2 else ", ".join(head) + " & " + last
    return rng.choice(["; ", " / "]).join(parts)


def list_of(make: Callable[[random.Random, str], str], low: int = 1, high: int = 4) -> Kind:
    def draw(rng: random.Random, split: str) -> Drawn:
        parts = list(dict.fromkeys(make(rng, split) for _ in range(rng.randint(low, high))))
        return Drawn(joined(rng, parts), list(parts), {"type": "array", "items": STRING}, verbatim=False)

    return draw


def flag(yes: str, no: str) -> Kind:
    """A boolean: phrases that mean yes and phrases that mean no; ``/`` separates the phrases of a list."""

    def draw(rng: random.Random, split: str) -> Drawn:
        value = rng.random() < 0.5
        phrase = rng.choice((yes if value else no).split("/")).strip()
        return Drawn(phrase, value, {"type": "boolean"}, verbatim=False)

    return draw


def choice(**phrases: str) -> Kind:
    """An enum: each value with the phrases that mean it, split by ``/`` (its own name among them if nothing else)."""

    def draw(rng: random.Random, split: str) -> Drawn:
        value = rng.choice(list(phrases))
        others = [name for name in phrases if name != value]
        options = [value, *rng.sample(others, rng.randint(1, len(others)))]
        rng.shuffle(options)
        text = rng.choice(phrases[value].split("/")).strip() if phrases[value] else value.replace("_", " ")
        return Drawn(text, value, {"enum": options}, verbatim=False)

    return draw


def rows(template: str, low: int = 1, high: int = 3, **columns: Kind) -> Kind:
    """A list of objects: ``template`` (alternatives split by ``||``) describes one row; all rows of a text use one."""

    def draw(rng: random.Random, split: str) -> Drawn:
        form = rng.choice(template.split("||"))
        drawn = []
        for _ in range(rng.randint(low, high)):
            drawn.append({name: kind(rng, split) for name, kind in columns.items() if "{" + name + "}" in form})
        texts = [form.format(**{name: cell.text for name, cell in row.items()}) for row in drawn]
        schema: dict[str, object] = {"type": "array"}
        glue = rng.random()
        text = joined(rng, texts) if glue < 0.75 else "\n" + "\n".join(f"- {line}" for line in texts)
        return Drawn(text, None, schema, verbatim=False, inner=drawn)

    return draw


PERSON = text_kind(words.person)
FIRST = text_kind(words.first_name)
PLACE = text_kind(words.place)
JOB = text_kind(words.job)
THING = text_kind(words.thing)
COMPANY = text_kind(words.company)
TITLE = text_kind(words.title)
VENUE = text_kind(words.venue)
STREET = text_kind(words.street)
EMAIL = text_kind(words.email)
PHONE = text_kind(lambda rng, split: words.phone(rng))
CODE = text_kind(lambda rng, split: words.code(rng))
TOPIC = text_kind(lambda rng, split: words.listed(rng, split, words.TOPICS))
PEOPLE = list_of(words.person)
PLACES = list_of(words.place, 1, 4)
FIRSTS = list_of(words.first_name, 2, 4)
TOPICS = list_of(lambda rng, split: words.listed(rng, split, words.TOPICS), 1, 4)
THINGS = list_of(words.thing, 1, 4)
AGE = integers(1, 99)
AMOUNT = number_pair(True)
