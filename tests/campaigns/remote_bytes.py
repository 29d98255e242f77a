"""Streams are checked byte by byte: the request ends at exactly the first byte after which no completion exists.

    python -m tests.campaigns.remote_bytes --count 10000

Texts of constraints are changed at random and fed in chunks. The slow oracle of tests/oracle, which does not use the kernel,
finds the first impossible byte of each.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time

from guideway import constraints as c
from guideway.remote.check import StreamCheck, automaton_of
from tests.oracle import grammars
from tests.oracle.machine import Oracle

SMALL = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 40}, "b": {"enum": ["x", "é", None]}},
    "required": ["a"],
    "additionalProperties": False,
}
CONSTRAINTS = [
    c.JsonSchema(SMALL, key_order="any", whitespace="any"),
    c.JsonSchema({"type": "array", "items": SMALL, "maxItems": 3}),
    c.JsonSchema({"type": "array", "items": {"type": "boolean"}, "minItems": 1}, whitespace="any"),
    c.JsonSchema({"anyOf": [SMALL, {"type": "string", "pattern": "^[a-cé]{1,4}$"}]}),
    c.JsonSchema(
        {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2}}}
    ),
    c.Regex("(?:ab|é){2,5}[^x]"),
    c.Gbnf('root ::= "(" root ")" | [a-c]+'),
    c.Choice(["alpha", "alps", "日本", "日記"]),
]
PIECES = [
    b"a",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"1",
    b"0",
    b"\xc3",
    b"\xa9",
    b"\xff",
    b"\\",
    b"t",
    b"(",
    b")",
]


def first_impossible(oracle: Oracle, data: bytes) -> int:
    """Return the index of the first impossible byte, or the length."""
    state = oracle.start
    for at in range(len(data)):
        after = oracle.read(state, data[at : at + 1])
        if after is None:
            return at
        state = after
    return len(data)


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    wrong = cut = 0
    for number in range(given.count):
        constraint = CONSTRAINTS[number % len(CONSTRAINTS)]
        automaton = automaton_of(constraint)
        if automaton is None:
            raise AssertionError(constraint)
        data = text_of(automaton, draw)
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(data) + 1)
            data = data[:at] + draw.choice(PIECES) + data[at + draw.randrange(2) :]
        check, taken = StreamCheck(automaton), 0
        while taken < len(data):
            chunk = data[taken : taken + draw.randrange(1, 9)]
            fits = check.feed(chunk)
            taken += fits
            if fits < len(chunk):
                break
        expected = first_impossible(oracle_of(constraint), data)
        cut += expected < len(data)
        if taken != expected or check.failed != (expected < len(data)):
            wrong += 1
            print(f"WRONG {constraint!r:.80}: {data!r}: ended at {taken}, the oracle at {expected}")
    print(f"{given.count} texts, {cut} with an impossible byte, {wrong} wrong")
    microseconds = speed()
    print(f"{microseconds:.1f} us for a chunk of 64 bytes (median of process time)")
    return bool(wrong or not cut or microseconds > 50)


_ORACLES: dict[int, Oracle] = {}


def oracle_of(constraint: c.Constraint[object]) -> Oracle:
    """Return the oracle of a constraint."""
    if id(constraint) not in _ORACLES:
        _ORACLES[id(constraint)] = grammars.GrammarWorld(constraint.grammar()).oracle()
    return _ORACLES[id(constraint)]


def text_of(automaton: object, draw: random.Random) -> bytes:
    """Return a random valid beginning."""
    matcher, data = automaton.matcher(), b""  # type: ignore[attr-defined]  # an automaton
    for _ in range(draw.randrange(5, 60)):
        allowed = [byte for byte in range(256) if matcher.validate([byte])]
        plain = [byte for byte in allowed if byte not in b" \t\r\n"] or allowed
        if not plain:
            break
        byte = draw.choice(plain)
        matcher.advance(byte)
        data += bytes([byte])
    return data


def speed() -> float:
    """Return the median microseconds of a chunk of 64 bytes."""
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "number"}}},
    }
    automaton = automaton_of(c.JsonSchema(schema, profile="exact"))
    data = b"[" + b", ".join(b'{"name": "some text %d", "n": %d.5}' % (one, one) for one in range(2000)) + b"]"
    check, times = StreamCheck(automaton), []
    for at in range(0, len(data), 64):
        started = time.process_time_ns()
        check.feed(data[at : at + 64])
        times.append(time.process_time_ns() - started)
    if check.failed:
        raise AssertionError("the text is valid")
    return statistics.median(times) / 1000


if __name__ == "__main__":
    sys.exit(main())
