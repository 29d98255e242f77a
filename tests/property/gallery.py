"""Twenty realistic schemas, some of them recursive, and some patterns, for sampling."""

from __future__ import annotations

from typing import Any

from . import patterns as p
from .patterns import Pattern
from .schemas import Case

DIGIT, UPPER, LOWER = (p.chosen(f"[{a}-{z}]", (ord(a), ord(z))) for a, z in ("09", "AZ", "az"))


def chain(*parts: Pattern) -> Pattern:
    """One after the other."""
    made = parts[0]
    for part in parts[1:]:
        made = p.joined(made, part)
    return made


def several(part: Pattern, low: int, high: int | None) -> Pattern:
    """A count by hand."""
    mark = f"{{{low},{'' if high is None else high}}}"
    return Pattern(f"(?:{part.text}){mark}", ("times", part, low, high))


CODE = chain(several(UPPER, 2, 2), p.char("-"), several(DIGIT, 3, 3))
CLOCK = chain(p.choice(chain(p.chosen("[01]", (48, 49)), DIGIT), chain(p.char("2"), p.chosen("[0-3]", (48, 51)))),
              p.char(":"), p.chosen("[0-5]", (48, 53)), DIGIT)  # fmt: skip
WORDS = chain(several(chain(p.counted(LOWER, "+"), p.char(" ")), 0, 3), p.counted(LOWER, "+"))
TABLE = {made.text: made for made in (CODE, CLOCK, WORDS)}


def full(made: Pattern) -> str:
    """As a schema's pattern, matched in full."""
    return f"^(?:{made.text})$"


def record(*, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """Returns an object schema; all properties are required by default."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }


def array(items: Any, **limits: int) -> dict[str, Any]:
    """An array."""
    return {"type": "array", "items": items, **limits}


def either(*schemas: Any) -> dict[str, Any]:
    """`anyOf`."""
    return {"anyOf": list(schemas)}


STRING, SHORT, INTEGER, NUMBER = (
    {"type": "string"},
    {"type": "string", "maxLength": 12},
    {"type": "integer"},
    {"type": "number"},
)
BOOLEAN, NULL, DATE = {"type": "boolean"}, {"type": "null"}, {"type": "string", "format": "date"}
ME = {"$ref": "#"}

GALLERY: dict[str, Any] = {
    "person": record(name=SHORT, age={"type": "integer", "minimum": 0, "maximum": 130}, job=either(SHORT, NULL)),
    "address": record(
        name=STRING, home=record(street=SHORT, zip={"type": "string", "minLength": 5, "maxLength": 5}, city=SHORT)
    ),
    "fixed": record(kind={"const": "order"}, state={"enum": ["new", "paid", "sent", "néw"]}, paid=BOOLEAN),
    "measures": record(
        values=array({"type": "number", "minimum": -1.5, "exclusiveMaximum": 20.25}, maxItems=5),
        unit={"enum": ["m", "kg", "s", None]},
    ),
    "tree": record(name=SHORT, children=array(ME, maxItems=3)),
    "chain": record(value=INTEGER, next=either(ME, NULL)),
    "expression": {
        "$defs": {
            "sum": record(op={"const": "+"}, left=ME, right=ME),
            "not": record(op={"const": "-"}, of=ME),
        },
        **either(INTEGER, {"$ref": "#/$defs/sum"}, {"$ref": "#/$defs/not"}),
    },
    "matrix": array(array(NUMBER, minItems=2, maxItems=3), minItems=1),
    "event": record(title=SHORT, day=DATE, until=either(DATE, NULL), at={"type": "string", "pattern": full(CLOCK)}),
    "codes": array({"type": "string", "pattern": full(CODE)}, minItems=2, maxItems=4),
    "optional": record(required=["d"], a=INTEGER, b=BOOLEAN, c=NULL, d=SHORT, e=BOOLEAN, f=DATE),
    "map": {"type": "object", "additionalProperties": INTEGER},
    "tuple": {"type": "array", "prefixItems": [INTEGER, SHORT, BOOLEAN], "items": NULL, "minItems": 2},
    "anything": True,
    "words": record(text={"type": "string", "pattern": full(WORDS)}, long={"type": "string", "minLength": 20}),
    "bounds": record(
        a={"type": "integer", "minimum": -12, "maximum": -3},
        b={"type": "integer", "exclusiveMinimum": 99, "exclusiveMaximum": 1001},
        c={"type": "number", "minimum": 0.5, "maximum": 0.75},
        d={"type": "integer", "minimum": 1000000},
    ),
    "mixed": array({"type": ["string", "integer", "null", "boolean"], "maxLength": 3}, maxItems=6),
    "keys": record(**{"a": NULL, "ab": NULL, 'q"uote': NULL, "é": NULL, "back\\slash": NULL, "new\nline": NULL}),
    "company": {
        "$defs": {
            "company": record(name=SHORT, staff=array({"$ref": "#/$defs/human"}, maxItems=2)),
            "human": record(required=["name"], name=SHORT, employer={"$ref": "#/$defs/company"}),
        },
        "$ref": "#/$defs/company",
    },
    "deep": record(a=record(b=record(c=record(d=record(e=array(record(f=BOOLEAN))))))),
}  # fmt: skip


def case(name: str) -> Case:
    """A schema of the gallery."""
    return Case(GALLERY[name], TABLE)


PATTERNS = (
    CODE,
    CLOCK,
    WORDS,
    p.counted(p.chosen(".", (0, 9), (11, 0x10FFFF)), "*"),
    chain(p.counted(p.chosen(r"[^,\n]", (0, 9), (11, 43), (45, 0x10FFFF)), "+"), p.char(","), several(DIGIT, 1, 4)),
    several(p.chosen("[é-日]", (0xE9, 0x65E5)), 2, 5),
    several(chain(p.counted(p.chosen(r"[^ ]", (0, 31), (33, 0x10FFFF)), "+"), p.char(" ")), 0, 6),
)
