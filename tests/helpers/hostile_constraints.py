"""Hostile constraints by class: each is refused with a typed error, or compiled, within bounded work.

Each class has fixed inputs, and `random_ones` draws others from the same shapes. No input is larger than 100 KB.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

from pydantic import Field, create_model

import guideway as gw
from guideway.constraints.tools import ToolCalls

__all__ = ["CLASSES", "random_ones"]

Make = Callable[[], Any]

LETTERS = "abcdefghijklmnop"


def deep(before: str, inner: str, after: str, count: int) -> str:
    return before * count + inner + after * count


def nested(schema: Any, wrap: Callable[[Any], Any], count: int) -> Any:
    for _ in range(count):
        schema = wrap(schema)
    return schema


def doubled(keyword: str, depth: int, leaf: Any) -> dict[str, Any]:
    """A chain of definitions, each of which names the next one twice."""
    defs: dict[str, Any] = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": leaf}}


SCHEMAS: dict[str, Any] = {
    "400 patterns, a key of another type": {
        "type": "object",
        "patternProperties": {f"^k{n}": {"type": "string"} for n in range(400)},
        "properties": {"k1": {"type": "integer"}},
        "required": ["k1"],
    },
    "400 patterns, more keys than allowed": {
        "type": "object",
        "patternProperties": {f"^k{n}$": {"const": n} for n in range(400)},
        "minProperties": 5,
        "maxProperties": 3,
    },
    "400 patterns that forbid": {
        "type": "object",
        "patternProperties": {f"k{n}": False for n in range(400)},
        "required": ["k7"],
        "additionalProperties": False,
    },
    "400 patterns and one length": {
        "type": "object",
        "patternProperties": {f"^.{{{n},}}$": {"type": ["integer", "string"][n % 2]} for n in range(400)},
        "required": ["a" * 300],
    },
    "400 patterns in allOf": {
        "type": "object",
        "allOf": [{"patternProperties": {f"a.{{0,{n}}}b": {"minimum": n}}} for n in range(400)],
        "required": ["ab"],
        "properties": {"ab": {"type": "integer", "maximum": 3}},
    },
    "patterns of names that meet": {
        "type": "object",
        "patternProperties": {f"(a|b)*a(a|b){{{n}}}": {"type": "string"} for n in range(30)},
    },
    "propertyNames of many patterns": {
        "type": "object",
        "propertyNames": {"allOf": [{"pattern": f"a.{{{n}}}b"} for n in range(40)]},
        "minProperties": 1,
    },
    "patterns in allOf": {"type": "string", "allOf": [{"pattern": f"a.{{{n}}}b"} for n in range(60)]},
    "patterns that exclude one another": {
        "type": "string",
        "allOf": [{"pattern": f"^(a{{{n}}})*$"} for n in (2, 3, 5, 7, 11, 13)],
        "minLength": 30_000,
        "maxLength": 30_020,
    },
    "not patterns": {"type": "string", "allOf": [{"not": {"pattern": f"a.{{{n}}}b"}} for n in range(14)]},
    "a long pattern": {"type": "string", "pattern": "(a|b)*" + "a?" * 5_000 + "a" * 5_000},
    "oneOf of patterns": {"oneOf": [{"type": "string", "pattern": f"^(a|b)*a(a|b){{{n}}}$"} for n in range(20)]},
    "oneOf of ranges": {"oneOf": [{"minimum": n, "maximum": n * 7} for n in range(800)]},
    "oneOf of divisors": {"oneOf": [{"type": "integer", "multipleOf": n} for n in range(2, 60)]},
    "divisors in allOf": {"type": "integer", "allOf": [{"multipleOf": n} for n in (7, 11, 13, 17, 19, 23, 29, 31)]},
    "divisors that exclude a range": {"type": "integer", "multipleOf": 999_983, "minimum": 1, "maximum": 999_000},
    "oneOf in oneOf": nested({"type": "string"}, lambda one: {"oneOf": [one, {"items": one}]}, 11),
    "anyOf in anyOf": nested({"type": "string"}, lambda one: {"anyOf": [one, {"items": one}]}, 11),
    "not in not": nested({"type": "string"}, lambda one: {"not": {"items": one}}, 2_000),
    "if in if": nested({"type": "string"}, lambda one: {"if": one, "then": {"minLength": 1}, "else": one}, 10),
    "definitions that double, allOf": doubled("allOf", 100, {"type": "string"}),
    "definitions that double, anyOf": doubled("anyOf", 100, {"type": "string"}),
    "definitions that double, oneOf": doubled("oneOf", 40, {"type": "string"}),
    "products of anyOf": {
        "allOf": [
            {"anyOf": [{"required": [f"a{n}"]}, {"required": [f"b{n}"]}, {"maxProperties": n}]} for n in range(40)
        ]
    },
    "products of oneOf": {
        "allOf": [
            {"oneOf": [{"properties": {f"k{n}": {"const": m}}, "required": [f"k{n}"]} for m in range(6)]}
            for n in range(20)
        ]
    },
    "anyOf of types": {
        "allOf": [
            {"anyOf": [{"type": "integer", "minimum": n}, {"type": "string", "minLength": n}]} for n in range(300)
        ]
    },
    "dependent keys": {
        "type": "object",
        "dependentRequired": {f"a{n}": [f"a{(n * 7 + m) % 300}" for m in range(12)] for n in range(300)},
    },
    "dependent schemas": {
        "type": "object",
        "dependentSchemas": {f"a{n}": {"properties": {f"a{(n + 1) % 60}": {"minimum": n}}} for n in range(60)},
    },
    "dependent schemas in a chain": {
        "type": "object",
        "required": ["a0"],
        "dependentSchemas": {f"a{n}": {"required": [f"a{n + 1}"], "maxProperties": 90} for n in range(100)},
    },
    "unevaluated keys": {
        "anyOf": [{"properties": {f"a{n}": {"minimum": n}}} for n in range(10)],
        "unevaluatedProperties": False,
    },
    "unevaluated items": {
        "allOf": [{"anyOf": [{"prefixItems": [{"const": n}] * n}, {"contains": {"const": n}}]} for n in range(12)],
        "unevaluatedItems": False,
    },
    "contains": {"type": "array", "allOf": [{"contains": {"const": n}, "minContains": n} for n in range(12)]},
    "contains of ranges": {
        "type": "array",
        "allOf": [{"contains": {"minimum": n}, "maxContains": 3} for n in range(16)],
    },
    "unique enum items": {"type": "array", "uniqueItems": True, "items": {"enum": list(range(3_000))}, "minItems": 50},
    "unique items too many": {
        "type": "array",
        "uniqueItems": True,
        "items": {"enum": list(range(99))},
        "minItems": 100,
    },
    "many optional keys": {
        "type": "object",
        "properties": {f"p{n}": {"type": "integer"} for n in range(1_500)},
        "minProperties": 700,
        "maxProperties": 900,
    },
    "many required keys": {
        "type": "object",
        "required": [f"k{n}" for n in range(5_000)],
        "additionalProperties": False,
    },
    "an enum of objects": {"enum": [{"a": n, "b": {"c": [n, n + 1]}} for n in range(2_500)]},
    "enums that meet": {"allOf": [{"enum": list(range(n, n + 600))} for n in range(0, 30, 2)]},
    "enum under not": {"not": {"enum": [[n, {"a": n}] for n in range(3_000)]}},
    "consts of depth": {"not": {"const": nested(1, lambda one: [one], 3_000)}},
    "arrays of positions": {"type": "array", "prefixItems": [{"enum": [n, str(n)]} for n in range(3_000)]},
    "arrays of oneOf": {
        "type": "array",
        "prefixItems": [{"oneOf": [{"minimum": n}, {"maximum": 9}]} for n in range(900)],
    },
    "large counts": nested(
        {"type": "null"}, lambda one: {"type": "array", "items": one, "minItems": 5, "maxItems": 90_000}, 12
    ),
    "large counts of keys": {"type": "object", "minProperties": 90_000, "maxProperties": 99_000},
    "keys with counts and patterns": {
        "type": "object",
        "minProperties": 40,
        "maxProperties": 60,
        "patternProperties": {f"^{letter}": {"type": "integer"} for letter in LETTERS},
    },
    "a chain of references": {
        "$ref": "#/$defs/d0",
        "$defs": {**{f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1_500)}, "d1500": False},
    },
    "references in a ring": {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"$ref": f"#/$defs/d{(n + 1) % 900}"} for n in range(900)},
    },
    "recursive allOf": {
        "type": "object",
        "properties": {"a": {"$ref": "#"}, "b": {"allOf": [{"$ref": "#"}, {"required": ["a"]}, {"minProperties": 2}]}},
        "required": ["b"],
    },
    "recursive without an end": {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    "dynamic references": {
        "$id": "https://x.test/a",
        "$dynamicAnchor": "n",
        "anyOf": [{"$dynamicRef": "#n", "$comment": str(n)} for n in range(200)],
        "properties": {f"p{n}": {"$dynamicRef": "#n"} for n in range(200)},
    },
    "13 keys": {
        "type": "object",
        "properties": {f"key{n}": {"type": "string"} for n in range(13)},
        "required": [f"key{n}" for n in range(13)],
        "additionalProperties": False,
    },
    "keys of one prefix": {"type": "object", "properties": {"a" * n: {"type": "integer"} for n in range(1, 440)}},
    "escaped keys": {
        "type": "object",
        "properties": {"\\" * n: {"type": "null"} for n in range(1, 300)},
        "additionalProperties": False,
    },
    "a long key": {"type": "object", "required": ["k" * 90_000]},
    "a pattern with look-arounds": {
        "type": "string",
        "pattern": "".join(f"(?=.*{one}.{{{n}}}x)" for n, one in enumerate(LETTERS)),
    },
    "formats at once": {
        "allOf": [{"type": "string", "format": one} for one in ("email", "uri", "date-time", "ipv6", "hostname")]
    },
    "formats under not": {
        "type": "string",
        "allOf": [{"not": {"type": "string", "format": one}} for one in ("uri", "date-time", "ipv6", "hostname")],
    },
    "lengths and formats": {"type": "string", "format": "idn-email", "minLength": 9_000, "maxLength": 9_001},
    "lengths of many strings": {
        "oneOf": [{"type": "string", "minLength": n, "maxLength": 2 * n} for n in range(1, 700)]
    },
    "digits": {"type": "number", "minimum": int("1" * 900), "maximum": int("2" * 900)},
    "digits and a divisor": {
        "type": "integer",
        "minimum": int("1" * 300),
        "maximum": int("2" * 300),
        "multipleOf": 997,
    },
    "fractions": {"type": "number", "multipleOf": 1e-200, "minimum": 0.1, "maximum": 0.2},
    "depth": nested({"type": "string"}, lambda one: {"properties": {"a": one}, "required": ["a"]}, 1_500),
    "depth of allOf": nested({"type": "string"}, lambda one: {"allOf": [one]}, 3_000),
}

PATTERNS: dict[str, str] = {
    "repeated groups": deep("(", "a", "){2,9}", 40),
    "starred groups": deep("(?:", "a", "|b)*", 3_000),
    "optional groups": deep("(?:", "a", ")?", 15_000),
    "open groups": "(" * 90_000,
    "open look-aheads": "(?=" * 20_000,
    "look-aheads": "".join(f"(?=.*{one}.{{{n}}}x)" for n, one in enumerate(LETTERS)) + ".*",
    "long look-aheads": "(?=.*a.{1000})(?=.*b.{1000}).*",
    "look-aheads in a repetition": "(?:(?=.*a.{20}b)(?!.*c.{20}d)[abcd]){1,400}",
    "nested look-aheads": deep("(?=a", "b", ".*)", 50) + "a*",
    "nested negations": deep("(?!a", "b", ".*)", 50) + "a*",
    "look-behinds": "".join(f"(?<=a.{{{n}}})b" for n in range(60)),
    "nested look-behinds": deep("(?<=a", "b", ")", 50) + "a*",
    "boundaries": r"(?:\b\w+\b\W+){1,2000}",
    "boundaries and classes": r"(?:\b[ab]{900}\B[cd]{900}\b|e)*",
    "anchors": "^" * 40_000 + "a" + "$" * 40_000,
    "alternatives": "|".join("a" * (n % 90) + "b" for n in range(2_000)),
    "alternatives that share": "|".join(f"{n:05d}" for n in range(16_000)),
    "optional letters": "a?" * 20_000 + "a" * 20_000,
    "classes": "".join(f"[^{one}]*" for one in LETTERS * 300),
    "unicode classes": "".join((r"\w*\d?", r"\s*[^\W\d]?")[n % 2] for n in range(4_000)),
    "a class of many ranges": "[" + "".join(chr(0x100 + 3 * n) for n in range(15_000)) + "]{1,500}",
    "negated class of many ranges": "[^" + "".join(chr(0x100 + 3 * n) for n in range(15_000)) + "]*",
    "counts": "(?:" + "".join(f"a{{{n},{n * 3}}}" for n in range(1, 90)) + ")*",
    "counts of counts": "(?:(?:(?:a{1,99}b{1,99}){1,99}c{1,99}){1,99}d{1,99}){1,99}",
    "ambiguous counts": "(?:a{1,300}){1,300}(?:a{1,300}){1,300}b",
    "huge counts": "(?:(?:a{99999}){99999}){99999}",
    "suffix": "(a|b)*a(a|b){3000}",
    "suffixes": "|".join(f"(a|b)*{one}(a|b){{200}}" for one in LETTERS),
    "escapes": "\\\\" * 45_000,
    "hexadecimal escapes": "\\x41" * 20_000,
    "an open class": "[" * 90_000,
    "case": "(?i)" + "ſKǅ" * 10_000,
    "a comment": "(?x)" + "#a\n" * 20_000 + "a",
    "named groups": "".join(f"(?P<n{n}>a)" for n in range(5_000)),
    "lazy": "(?:a*?b*?)*?" * 5_000,
    "conditions of counts": "a{" * 40_000,
}

GBNF: dict[str, str] = {
    "parentheses": "root ::= " + deep("(", '"a"', ")", 20_000),
    "open parentheses": "root ::= " + "(" * 90_000,
    "optional": "root ::= " + deep("(", '"a"', ")?", 20_000),
    "repeated": "root ::= " + deep("(", '"a"', "){2,9}", 60),
    "left recursion": "root ::= "
    + " | ".join(f'r{n} "x"' for n in range(100))
    + "\n"
    + "".join(f"r{n} ::= " + " | ".join(f"r{m} [a-c]" for m in range(100)) + ' | "y"\n' for n in range(100)),
    "a chain of rules": "root ::= r0\n" + "".join(f"r{n} ::= r{n + 1}\n" for n in range(6_000)) + 'r6000 ::= "a"',
    "rules that double": "root ::= r0\n"
    + "".join(f"r{n} ::= r{n + 1} r{n + 1}\n" for n in range(3_000))
    + 'r3000 ::= "a"',
    "optional rules": "root ::= "
    + "".join(f"r{n}? " for n in range(2_000))
    + "\n"
    + "".join(f'r{n} ::= "a" root?\n' for n in range(2_000)),
    "empty rules": "root ::= "
    + "".join(f"r{n} " for n in range(2_000))
    + "\n"
    + "".join(f'r{n} ::= r{(n + 1) % 2000} | ""\n' for n in range(2_000)),
    "a ring": "".join(f"{'root' if n == 0 else f'r{n}'} ::= r{(n + 1) % 3000 or 1}\n" for n in range(3_000)),
    "alternatives": "root ::= " + " | ".join(f'"{n}"' for n in range(9_000)),
    "ambiguous": 'root ::= root root | root root root | "a" | ""',
    "comments": "#\n" * 45_000,
    "quotes": 'root ::= "' + '\\"' * 40_000,
    "classes": "root ::= " + "[^a-z]" * 12_000,
    "open class": "root ::= [" + "\\]" * 40_000,
    "counts": 'root ::= ("a"{1,9999} "b"{1,9999}){1,9999}',
}

EBNF: dict[str, str] = {
    "groups": "a = " + deep("(", "'x'", ")", 20_000) + ";",
    "options": "a = " + deep("[", "'x'", "]", 20_000) + ";",
    "repetitions": "a = " + deep("{", "'x'", "}", 20_000) + ";",
    "open options": "a = " + "[" * 90_000,
    "exceptions": "a = {" + deep("(", "'x' | 'y'", " - 'x')", 90) + "};",
    "exceptions in a row": "a = " + ", ".join("(b - 'x')" for _ in range(2_000)) + "; b = 'x' | 'y' | 'z';",
    "exceptions of repetitions": "a = {b} - ({b}, 'x', {b}), {b} - ({b}, 'y', {b}); b = 'x' | 'y' | 'z';",
    "exceptions that multiply": "a = "
    + " | ".join(f"({{b}} - ({n} * b, {{{n + 2} * b}}))" for n in range(2, 30))
    + "; b = 'x' | 'y';",
    "counts": "a = " + deep("9 * (", "'x'", ")", 40) + ";",
    "large counts": "a = 999999999 * 'x';",
    "comments": "(*" * 40_000 + "*)" * 40_000,
    "a chain": "".join(f"a{n} = a{n + 1};\n" for n in range(5_000)) + "a5000 = 'x';",
    "rules that double": "".join(f"a{n} = a{n + 1}, a{n + 1};\n" for n in range(3_000)) + "a3000 = 'x';",
    "left recursion": "".join(
        f"a{n} = " + " | ".join(f"a{m}, 'x'" for m in range(80)) + " | 'y';\n" for n in range(80)
    ),
    "W3C differences": "a ::= " + " - ".join("[a-z]*" for _ in range(300)),
    "W3C alternatives": "a ::= " + " | ".join(f'"{n}"' for n in range(9_000)),
    "W3C characters": "a ::= " + "#x41 " * 15_000,
    "special sequences": "a = " + "? " * 40_000,
}

LARK: dict[str, str] = {
    "groups": "start: " + deep("(", '"x"', ")", 20_000),
    "options": "start: " + deep("[", '"x"', "]", 20_000),
    "open groups": "start: " + "(" * 90_000,
    "repetitions": "start: " + deep("(", '"x"', ")~2..9", 60),
    "counts": 'start: ("x"~1..9999 "y"~1..9999)~1..9999',
    "terminals that double": "start: T0\n" + "".join(f"T{n}: T{n + 1} T{n + 1}\n" for n in range(60)) + 'T60: "x"',
    "a chain of terminals": "start: T0\n" + "".join(f"T{n}: T{n + 1}\n" for n in range(4_000)) + 'T4000: "x"',
    "a chain of rules": "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(4_000)) + 'r4000: "x"',
    "terminals that meet": "start: ("
    + " | ".join(f"T{n}" for n in range(300))
    + ")+\n"
    + "".join(f"T{n}: /[a-z]{{1,{n + 1}}}/\n" for n in range(300)),
    "priorities": "start: ("
    + " | ".join(f"T{n}" for n in range(60))
    + ")+\n"
    + "".join(f"T{n}.{n}: /(a|b)*a(a|b){{{n % 12}}}/\n" for n in range(60)),
    "templates": 'start: t{t{t{t{t{A}}}}}\nt{x}: x x | x x x\nA: "a"',
    "templates that double": "start: t0{A}\n"
    + "".join(f"t{n}{{x}}: t{n + 1}{{x}} t{n + 1}{{y{n}}}\ny{n}: A\n" for n in range(30))
    + 't30{x}: x\nA: "a"',
    "templates without an end": 'start: t{A}\nt{x}: x | t{u{x}}\nu{x}: x x\nA: "a"',
    "left recursion": "".join(
        f"{'start' if n == 0 else f'r{n}'}: " + " | ".join(f'r{m} "x"' for m in range(1, 80)) + ' | "y"\n'
        for n in range(80)
    ),
    "ignored": "start: A+\nA: /a+/\n" + "".join(f"I{n}: /(a|b)*{n}/\n%ignore I{n}\n" for n in range(200)),
    "imports": "%import common.WORD\n" * 3_000 + "start: WORD",
    "alternatives": "start: " + " | ".join(f'"{n}"' for n in range(9_000)),
    "slashes": "start: /" + "\\/" * 40_000,
    "quotes": 'start: "' + '\\"' * 40_000,
    "lines": "start:" + "\n |" * 30_000,
}


def tool(name: str, schema: Any) -> gw.Tool:
    return gw.Tool(name, schema)


def structure(schema: Any) -> gw.Tool:
    return tool("f", {"type": "object", "properties": {"a": schema}, "required": ["a"]})


def tags(begins: list[str], triggers: list[str]) -> Any:
    return gw.Tags([gw.Tag(begin, gw.Regex("[a-z]*"), "</x>") for begin in begins], triggers=triggers)


TAGS: dict[str, Make] = {
    "many tools": lambda: ToolCalls([tool(f"f{n}", {"type": "object"}) for n in range(900)], family="hermes"),
    "many tools, pairs": lambda: ToolCalls(
        [tool(f"f{n}", {"type": "object"}) for n in range(400)], family="qwen-coder"
    ),
    "a tool of many keys": lambda: ToolCalls(
        [tool("f", {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(900)}})],
        family="hermes",
    ),
    "a costly tool": lambda: ToolCalls([structure(SCHEMAS["oneOf of patterns"])], family="hermes"),
    "a costly tool, Llama": lambda: ToolCalls([structure(SCHEMAS["patterns in allOf"])], family="llama"),
    "a deep tool": lambda: ToolCalls([structure(SCHEMAS["depth"])], family="hermes"),
    "a tool of a long name": lambda: ToolCalls([tool("f" * 60_000, {"type": "object"})], family="hermes"),
    "tags": lambda: tags([f"<t{n}>" for n in range(900)], ["<t"]),
    "tags of one prefix": lambda: tags(["<" * n + "x" for n in range(1, 300)], ["<"]),
    "a long trigger": lambda: tags(["a" * 40_000 + "b"], ["a" * 40_000]),
    "many triggers": lambda: tags([f"<t{n}>" for n in range(600)], [f"<t{n}>" for n in range(600)]),
    "triggers in one another": lambda: tags(["a" * n + "b" for n in range(1, 200)], ["a" * n for n in range(1, 200)]),
}


def chain_of_models(count: int) -> Any:
    made: Any = str
    for number in range(count):
        made = create_model(f"M{number}", a=(made, ...), b=(made | None, None))
    return made


def union_of_models(count: int) -> Any:
    return Union[tuple(create_model(f"U{n}", kind=(Literal[f"{n}"], ...), v=(int, n)) for n in range(count))]  # noqa: UP007  # made of a tuple


TYPES: dict[str, Make] = {
    "a list of lists": lambda: gw.constraints.of(nested(int, lambda one: list[one], 300)),
    "a deep tuple": lambda: gw.constraints.of(nested(int, lambda one: tuple[one, one], 60)),
    "a deep dict": lambda: gw.constraints.of(nested(int, lambda one: dict[str, one], 200)),
    "a union of lists": lambda: gw.constraints.of(nested(int, lambda one: list[one] | dict[str, one], 14)),
    "a long tuple": lambda: gw.constraints.of(tuple[(int,) * 3_000]),
    "a long Literal": lambda: gw.constraints.of(Literal[tuple(range(9_000))]),
    "a union of models": lambda: gw.constraints.of(union_of_models(300)),
    "a chain of models": lambda: gw.constraints.of(chain_of_models(150)),
    "a model of many fields": lambda: gw.constraints.of(
        create_model("F", **{f"f{n}": (int | None, None) for n in range(900)})
    ),
    "a pattern": lambda: gw.constraints.of(Annotated[str, Field(pattern=r"(?:\b\dba[^a]{2000}[ab]+)*")]),
    "a pattern and a length": lambda: gw.constraints.of(
        Annotated[str, Field(pattern=r"^(a|b)*a(a|b){9}$", min_length=9_000)]
    ),
    "bounds": lambda: gw.constraints.of(Annotated[int, Field(ge=10**300, le=10**301, multiple_of=7)]),
}


def schema_of(value: Any, **options: Any) -> Make:
    return lambda: gw.JsonSchema(value, **options)


def regex_of(pattern: str, dialect: str) -> Make:
    return lambda: gw.Regex(pattern, dialect=dialect)  # type: ignore[arg-type]  # a dialect


CLASSES: dict[str, dict[str, Make]] = {
    "JSON Schema": {name: schema_of(schema, profile="exact") for name, schema in SCHEMAS.items()},
    "regex": {name: regex_of(pattern, "python") for name, pattern in PATTERNS.items()},
    "regex, ECMA": {name: regex_of(pattern, "ecma") for name, pattern in PATTERNS.items()},
    "GBNF": {name: (lambda text=text: gw.Gbnf(text)) for name, text in GBNF.items()},
    "EBNF": {name: (lambda text=text: gw.Ebnf(text)) for name, text in EBNF.items()},
    "Lark": {name: (lambda text=text: gw.Lark(text)) for name, text in LARK.items()},
    "tags and tools": TAGS,
    "Python types": TYPES,
}


def random_ones(seed: int, count: int) -> list[tuple[str, Make]]:
    """Return random hostile constraints: schemas, patterns and grammars of the shapes above, nested and combined."""
    rng = random.Random(seed)
    return [(f"random {seed}/{number}", _random_one(rng)) for number in range(count)]


def _random_one(rng: random.Random) -> Make:
    kind = rng.randrange(4)
    if kind == 0:
        pattern = random_pattern(rng, rng.randrange(1, 5))
        return regex_of(pattern, rng.choice(("python", "ecma")))
    if kind == 1:
        return schema_of(random_schema(rng, rng.randrange(1, 4)), profile="exact")
    if kind == 2:
        text = random_grammar(rng)
        return lambda: gw.Gbnf(text)
    schemas = [SCHEMAS[name] for name in rng.sample(sorted(SCHEMAS), 2)]
    return schema_of({rng.choice(("allOf", "anyOf", "oneOf")): schemas}, profile="exact")


def random_pattern(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(("a", "b", "[ab]", ".", r"\w", r"[^a]", "ab", r"\d", "é"))
    parts = [random_pattern(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
    form = rng.choice(
        ("({})*", "(?:{}){{2,{n}}}", "(?={}.*)", "(?!{}c)", "(?:{}|b.{{{n}}})", r"\b{}\B", "(?<={})a", "{}?", "(?:{})+")
    )
    return "".join(
        form.replace("{n}", str(rng.choice((3, 30, 300, 3_000))))
        .replace("{{", "{")
        .replace("}}", "}")
        .replace("{}", one)
        for one in parts
    )


def random_schema(rng: random.Random, depth: int) -> Any:
    if depth == 0:
        many = rng.choice((2, 9, 60, 700))
        return rng.choice(
            (
                {"type": "string", "pattern": random_pattern(rng, 2)},
                {"type": "string", "minLength": many, "maxLength": many * 3},
                {"type": "integer", "multipleOf": many, "minimum": -many},
                {"enum": [rng.randrange(many) for _ in range(many)]},
                {"type": "object", "minProperties": many, "maxProperties": 2 * many},
                {"type": "object", "patternProperties": {f"^{one}": {"minLength": many} for one in "abcdef"}},
                {"type": "array", "minItems": many, "uniqueItems": True, "items": {"enum": list(range(many + 2))}},
                {
                    "type": "object",
                    "properties": {f"p{n}": {"type": "integer"} for n in range(many)},
                    "minProperties": many // 2,
                },
            )
        )
    parts = [random_schema(rng, depth - 1) for _ in range(rng.randrange(1, 5))]
    return rng.choice(
        (
            lambda: {"allOf": parts},
            lambda: {"anyOf": parts},
            lambda: {"oneOf": parts},
            lambda: {"not": parts[0]},
            lambda: {"if": parts[0], "then": parts[-1]},
            lambda: {"type": "array", "items": parts[0], "contains": parts[-1], "maxContains": 9},
            lambda: {
                "type": "object",
                "properties": dict(zip(LETTERS, parts, strict=False)),
                "unevaluatedProperties": False,
            },
            lambda: {"type": "object", "patternProperties": {random_pattern(rng, 1): one for one in parts}},
        )
    )()


def random_grammar(rng: random.Random) -> str:
    count = rng.choice((3, 12, 50))
    lines = []
    for number in range(count):
        options = []
        for _ in range(rng.randrange(1, 6)):
            items = [
                rng.choice((f"r{rng.randrange(count)}", '"a"', "[a-c]", '""', "[^a]"))
                + rng.choice(("", "", "*", "?", "{2,40}"))
                for _ in range(rng.randrange(1, 6))
            ]
            options.append(" ".join(items))
        lines.append(f"r{number} ::= " + " | ".join(options) + ' | "x"')
    return "root ::= r0\n" + "\n".join(lines)
