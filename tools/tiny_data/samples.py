# ruff: noqa: SIM905  # forms and words are written in rows, several to a line
"""Generates a text, a requested schema and the record.

The schema is random for every text (fields, order, names, nesting), so the model must read it.  Every sixth template of
a domain is reserved for evaluation, as is one word in eight (``words.in_split``).
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass

from . import domains_a, domains_b, domains_c, kinds, more, words
from .domain import BOTHER, ENDINGS, Domain
from .kinds import Drawn

DOMAINS: list[Domain] = [*domains_a.DOMAINS, *domains_b.DOMAINS, *domains_c.DOMAINS]
HELD_OUT = 6  # every sixth template is for evaluation only

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)(~?)\}")
_WORD = re.compile(r"(?<![{\w])[a-z]{4,}(?![\w}~])")
_KEPT = frozenset("from with into until against between without sent gave owes paid".split())
_GROUPS = ["details", "info", "about", "data", "meta", "who", "where", "main", "extra", "facts"]


@dataclass(frozen=True)
class Sample:
    text: str
    schema: dict[str, object]
    record: dict[str, object]
    domain: str

    @property
    def answer(self) -> str:
        return json.dumps(self.record, ensure_ascii=False)


@dataclass
class Field:
    name: str
    schema: dict[str, object]
    value: object


def templates(lines: list[str], split: str) -> list[str]:
    if len(lines) < HELD_OUT:
        return lines
    return [line for index, line in enumerate(lines) if (index % HELD_OUT == HELD_OUT - 1) == (split == "eval")]


def expand(rng: random.Random, template: str) -> str:
    """Choose among ``[a|b]`` (innermost first); brackets around a slot stay as they are written."""

    def pick(match: re.Match[str]) -> str:
        options = match.group(1).split("|")
        return rng.choice(options) if len(options) > 1 else f"\x01{match.group(1)}\x02"

    while _CHOICE.search(template):
        template = _CHOICE.sub(pick, template)
    return template.replace("\x01", "[").replace("\x02", "]")


def draw_text(rng: random.Random, split: str, forms: str, domain: Domain) -> tuple[str, dict[str, Drawn]]:
    """A text of ``domain`` and the values it mentions, by slot; words of ``split``, templates of ``forms``."""
    core, facts = templates(domain.core, forms), templates(domain.facts, forms)
    roll = 1.0
    if forms == "train":
        core, facts = core + more.CORE.get(domain.name, []), facts + more.FACTS.get(domain.name, [])
        roll = rng.random()
    count = rng.choice([0, 0, 0, 1, 1, 2, 3])
    if roll < 0.08:
        parts = [labelled(rng, domain)]
    elif roll < 0.12:
        parts = [bare(rng, domain)]
    elif roll < 0.22 and len(facts) > 5:
        parts, count = [expand(rng, rng.choice(facts))], rng.randint(1, 4)
    else:
        parts = [expand(rng, rng.choice(core))]
    said = {slot for slot, later in _SLOT.findall(parts[0]) if not later}
    for fact in rng.sample(facts, min(len(facts), count)):
        fact = expand(rng, fact)
        slots = {slot for slot, later in _SLOT.findall(fact) if not later}
        if not slots & said:
            said |= slots
            parts.append(fact)
    if parts[0][-1].isalnum() or parts[0][-1] == "}":
        parts[0] += "." if len(parts) > 1 or rng.random() < 0.5 else ""
    if rng.random() < 0.1:
        parts.insert(0, rng.choice(BOTHER))
    if rng.random() < 0.1:
        parts.append(rng.choice(ENDINGS))
    glue = "\n" if rng.random() < 0.08 else " "
    template = glue.join(parts)
    if forms == "train" and rng.random() < 0.2:
        template = estranged(rng, split, template)
    return fill(rng, split, domain, template)


def labelled(rng: random.Random, domain: Domain) -> str:
    """Some fields of the domain as a form: a label and the value."""
    slots = rng.sample(list(domain.fields), rng.randint(2, min(6, len(domain.fields))))
    form, glue = (
        rng.choice(["{k}: {v}", "{k}: {v}", "{k} - {v}", "{k} = {v}", "{k} {v}", "the {k} is {v}"]),
        rng.choice(["\n", ", ", "; ", " | ", ". "]),
    )
    case = rng.choice([str, str.capitalize, str.upper])
    labels = [rng.choice(domain.fields[slot][1].split()).replace("_", " ") for slot in slots]
    return glue.join(form.format(k=case(k), v="{" + slot + "}") for k, slot in zip(labels, slots, strict=True))


def bare(rng: random.Random, domain: Domain) -> str:
    """Returns values alone, of kinds that differ in their form."""
    plain = (
        kinds.PERSON,
        kinds.JOB,
        kinds.EMAIL,
        kinds.PHONE,
        kinds.date,
        kinds.price,
        kinds.CODE,
        kinds.STREET,
        kinds.AGE,
        kinds.PLACE,
    )
    slots = {kind: slot for slot, (kind, _) in reversed(domain.fields.items()) if kind in plain}
    if len(slots) < 2:
        return labelled(rng, domain)
    chosen = rng.sample(list(slots.values()), rng.randint(2, min(4, len(slots))))
    return rng.choice([", ", ", ", " - ", " | ", "\n", "; ", " / "]).join("{" + slot + "}" for slot in chosen)


def estranged(rng: random.Random, split: str, template: str) -> str:
    """Replaces some words between the values by random ones, so that the model cannot memorise templates."""

    def strange(match: re.Match[str]) -> str:
        word = match.group(0)
        if word in _KEPT or rng.random() > 0.15:
            return word
        return rng.choice(
            [words.invented(rng, split, 1, 2), words.listed(rng, split, words.TOPICS), rng.choice(words.ADJECTIVES)]
        )

    return _WORD.sub(strange, template)


def fill(rng: random.Random, split: str, domain: Domain, template: str) -> tuple[str, dict[str, Drawn]]:
    drawn: dict[str, Drawn] = {}
    text, end = "", 0
    for match in _SLOT.finditer(template):
        text, end = text + template[end : match.start()], match.end()
        slot, later = match.groups()
        if later:
            text += drawn[slot].text.split()[0] if slot in drawn else "It"
            continue
        if slot not in drawn:
            drawn[slot] = domain.fields[slot][0](rng, split)
        value = drawn[slot]
        starts = not text or text.endswith((". ", "\n", "! "))
        phrase = "enum" in value.schema or value.schema.get("type") == "boolean"
        capital = starts and phrase and rng.random() < 0.7
        text += value.text[:1].upper() + value.text[1:] if capital else value.text
    return (text + template[end:]).replace("..", ".").replace(" .", "."), drawn


def field_name(rng: random.Random, domain: Domain, slot: str, taken: set[str], said: set[str]) -> str | None:
    """A name for ``slot`` that no other mentioned slot could also mean."""
    others = {name for other in said - {slot} for name in domain.fields[other][1].split()}
    names = [name for name in domain.fields[slot][1].split() if name not in others and name not in taken]
    if not names:
        return None
    name = rng.choice(names)
    if "_" in name and rng.random() < 0.2:
        head, *tail = name.split("_")
        name = head + "".join(part.capitalize() for part in tail)
    return name


def rows_field(rng: random.Random, domain: Domain, value: Drawn) -> tuple[dict[str, object], object]:
    """Schema and value of a list of objects, of a map, or of one of its columns."""
    columns = list(value.inner[0])
    first = next((c for c in columns if value.inner[0][c].schema == kinds.STRING), None)
    numeric = [c for c in columns if value.inner[0][c].schema in (kinds.INTEGER, kinds.NUMBER)]
    if first and rng.random() < 0.12:
        return {"type": "array", "items": kinds.STRING}, [row[first].value for row in value.inner]
    if first and len(numeric) == 1 and rng.random() < 0.12:
        schema: dict[str, object] = {"type": "object", "additionalProperties": value.inner[0][numeric[0]].schema}
        return schema, {str(row[first].value): row[numeric[0]].value for row in value.inner}
    if rng.random() < 0.6:
        rng.shuffle(columns)
    kept = columns[: rng.randint(max(1, len(columns) - 1), len(columns))] if rng.random() < 0.25 else columns
    names = {c: rng.choice(domain.columns[c].split()) for c in kept}
    schemas = {c: value.inner[0][c].schema for c in kept}
    for column in kept:  # the enum of a column contains the values of all rows
        if "enum" in schemas[column]:
            schemas[column] = {
                "enum": list(dict.fromkeys([row[column].value for row in value.inner] + list(schemas[column]["enum"])))
            }  # type: ignore[call-overload]  # a list by construction
    item = {"type": "object", "properties": {names[c]: schemas[c] for c in kept}}
    return {"type": "array", "items": item}, [{names[c]: row[c].value for c in kept} for row in value.inner]


def said_field(rng: random.Random, domain: Domain, name: str, value: Drawn) -> Field:
    schema, answer = value.schema, value.value
    if value.inner:
        schema, answer = rows_field(rng, domain, value)
    elif value.verbatim and schema != kinds.STRING and rng.random() < 0.06:
        schema, answer = kinds.STRING, value.text
    elif schema == kinds.INTEGER and rng.random() < 0.08:
        schema = kinds.NUMBER
    elif schema == kinds.NUMBER and isinstance(answer, int) and rng.random() < 0.15:
        schema = kinds.INTEGER
    elif "email" in name and rng.random() < 0.2:
        schema = {"type": "string", "format": "email"}
    if rng.random() < 0.4:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return Field(name, schema, answer)


def unsaid_field(rng: random.Random, name: str, kind: kinds.Kind, domain: Domain) -> Field:
    """A field without a value in the text: null, or an empty list, or false."""
    value = kind(rng, "train")
    schema = value.schema
    if value.inner:
        schema, _ = rows_field(rng, domain, value)
    if schema.get("type") == "array" and rng.random() < 0.7:
        return Field(name, schema, [])
    if schema.get("type") == "boolean" and rng.random() < 0.3:
        return Field(name, schema, False)
    return Field(name, {"anyOf": [schema, {"type": "null"}]}, None)


def wanted(rng: random.Random, domain: Domain, drawn: dict[str, Drawn]) -> list[Field]:
    """Returns the fields that this sample requests, in the requested order."""
    slots, said, taken = list(drawn), set(drawn), set[str]()
    if rng.random() < 0.4:
        slots = rng.sample(slots, rng.randint(1, len(slots)))
    fields = []
    for slot in slots[:7]:
        if name := field_name(rng, domain, slot, taken, said):
            taken.add(name)
            fields.append(said_field(rng, domain, name, drawn[slot]))
    unsaid = [slot for slot in domain.fields if slot not in said]
    for slot in rng.sample(unsaid, min(len(unsaid), rng.choice([0, 0, 1, 1, 2]))):
        if name := field_name(rng, domain, slot, taken, said | {slot}):
            taken.add(name)
            fields.append(unsaid_field(rng, name, domain.fields[slot][0], domain))
    if rng.random() < 0.7:
        rng.shuffle(fields)
    return fields


def nest(rng: random.Random, fields: list[Field]) -> list[Field]:
    """Moves a few adjacent fields into a nested object."""
    if len(fields) < 3 or rng.random() > 0.15:
        return fields
    start = rng.randrange(len(fields) - 1)
    end = rng.randint(start + 2, min(len(fields), start + 4))
    inner = fields[start:end]
    name = rng.choice([group for group in _GROUPS if all(f.name != group for f in fields)])
    schema: dict[str, object] = {"type": "object", "properties": {f.name: f.schema for f in inner}}
    return [*fields[:start], Field(name, schema, {f.name: f.value for f in inner}), *fields[end:]]


_PAIR_STYLES = [
    ("{k}: {v}", ", "), ("{k}={v}", " "), ("{k}: {v}", "\n"), ("the {k} is {v}", ", "), ("{k} {v}", ", "), ("{k} = {v}", "; "),
    ("{k}: {v}", "; "), ("- {k}: {v}", "\n"), ("{k} is {v}", " and "), ("{k} -> {v}", ", "), ("{k}: {v}", " | "), ("a {k} of {v}", ", "),
    ("{v} ({k})", ", "), ("{k}: {v}", ". "), ("its {k} is {v}", "; "), ("{v} as {k}", ", "),
]  # fmt: skip
_PAIR_KINDS = [
    kinds.PERSON, kinds.PLACE, kinds.THING, kinds.integers(0, 5000), kinds.integers(0, 99), kinds.decimals(0, 500), kinds.CODE,
    kinds.date, kinds.price, kinds.flag("yes/true/on", "no/false/off"), kinds.TITLE, kinds.COMPANY, kinds.JOB, kinds.EMAIL, kinds.TOPIC,
]  # fmt: skip


def pairs_sample(rng: random.Random, split: str, forms: str) -> tuple[str, list[Field]]:
    """Random keys with random values: only the names tell what belongs where."""
    pairs: dict[str, Drawn] = {}
    for _ in range(rng.randint(2, 6)):
        key = (
            words.invented(rng, split, 1, 2)
            if rng.random() < 0.5
            else words.listed(rng, split, words.NOUNS + words.TOPICS)
        )
        if rng.random() < 0.2:
            key = f"{rng.choice(words.ADJECTIVES)} {key}"
        pairs[key] = rng.choice(_PAIR_KINDS)(rng, split)
    styles = [s for i, s in enumerate(_PAIR_STYLES) if (i % HELD_OUT == HELD_OUT - 1) == (forms == "eval")]
    form, glue = rng.choice(styles)
    case = rng.choice([str, str, str.capitalize, str.upper])
    text = glue.join(form.format(k=case(key), v=value.text) for key, value in pairs.items())
    if rng.random() < 0.3:
        text = f"{words.title(rng, split)}: {text}"
    keys = rng.sample(list(pairs), rng.randint(1, len(pairs)))
    fields = [said_field(rng, domains_a.PERSONS, key.replace(" ", "_"), pairs[key]) for key in keys]
    if rng.random() < 0.3:
        name = words.invented(rng, split, 1, 2)
        if name not in pairs:
            fields.insert(
                rng.randint(0, len(fields)), unsaid_field(rng, name, rng.choice(_PAIR_KINDS), domains_a.PERSONS)
            )
    return text, fields


def make(rng: random.Random, split: str, forms: str | None = None) -> Sample:
    """Draw one sample with words of ``split`` ("train" or "eval") in templates of ``forms`` (the same if not given)."""
    forms = forms or split
    while True:
        if rng.random() < 0.1:
            name = "pairs"
            text, fields = pairs_sample(rng, split, forms)
        else:
            domain = rng.choice(DOMAINS)
            name = domain.name
            text, drawn = draw_text(rng, split, forms, domain)
            fields = wanted(rng, domain, drawn)
        if fields:
            fields = nest(rng, fields)
            schema: dict[str, object] = {"type": "object", "properties": {f.name: f.schema for f in fields}}
            return Sample(text, schema, {f.name: f.value for f in fields}, name)
