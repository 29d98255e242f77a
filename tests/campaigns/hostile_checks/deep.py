"""Deep inputs in threads with a stack of 128 KB: a result or a typed error, and no overflow."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import guideway as gw
from guideway.constraints.tools import ToolCalls
from guideway.constraints.wire import from_wire, to_wire
from guideway.jsontext.decoder import decode_prefix, read_json
from guideway.jsontext.encoder import write_json
from guideway.jsontext.partial import PartialReader
from guideway.tokenizers.chat_template import render_template
from tests.campaigns.hostile_checks.scanners import LEAST_INPUTS
from tests.helpers.hostile_constraints import deep, nested

__all__ = ["CHECKS", "in_small_stack"]

STACK = 128 << 10
MOST_SECONDS = 2.0  # of CPU time
TABLE = gw.Vocabulary([*(bytes([n]) for n in range(256)), b"</s>"], eos_ids=[256], special_ids=[])
LIST: dict[str, Any] = {"$ref": "#/$defs/d", "$defs": {"d": {"type": "array", "items": {"$ref": "#/$defs/d"}}}}


def in_small_stack(call: Callable[[], None]) -> None:
    """Run a call in a thread with a stack of 128 KB."""
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=call)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()


def compiled(constraint: Any) -> gw.Matcher:
    """Compile a constraint, and find a shortest text."""
    matcher = gw.compile(constraint, TABLE, cache=False).matcher()
    matcher.completion()
    return matcher


def chain(count: int) -> Any:
    """A chain of objects, each with a reference to the next one."""
    names: dict[str, Any] = {
        f"d{n}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}}, "required": ["a"]}
        for n in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**names, f"d{count}": {"type": "null"}}}


def growing(text: str) -> None:
    """Read growing JSON text."""
    reader = PartialReader(lambda key, value: None)
    for at in range(0, len(text), 9):
        reader.push(text[at : at + 9])
    reader.snapshot()


def joined(count: int) -> Any:
    """Constraints that contain one another."""
    made: Any = gw.Regex("a")
    for number in range(count):
        made = made + "b" if number % 2 else made | "c"
    return made


INPUTS: dict[str, Callable[[], object]] = {
    "references in parse": lambda: gw.JsonSchema(chain(1_000)).parse(deep('{"a":', "null", "}", 1_000)),
    "ECMA look-behinds": lambda: compiled(gw.Regex(deep("(?<=a", "b", ")", 100) + "a*", dialect="ecma")),
    "EBNF exceptions": lambda: compiled(gw.Ebnf("a = {" + deep("(", "'x' | 'y'", " - 'x')", 100) + "};")),
    "Python look-behinds": lambda: compiled(gw.Regex(deep("(?<=a", "b", ")", 1_000) + "a*")),
    "look-aheads": lambda: compiled(gw.Regex(deep("(?=a", "b", ")", 1_000) + "a*")),
    "negative look-aheads": lambda: compiled(gw.Regex(deep("(?!a", "b", ")", 1_000) + "a*", dialect="ecma")),
    "groups": lambda: compiled(gw.Regex(deep("(", "a", "|b)*", 3_000))),
    "counted groups": lambda: compiled(gw.Regex(deep("(?:", "a", "){1,2}", 900))),
    "GBNF groups": lambda: compiled(gw.Gbnf("root ::= " + deep("(", '"a"', " | root)", 3_000))),
    "Lark groups": lambda: compiled(gw.Lark("start: " + deep("(", '"a"', ' | "b")', 3_000))),
    "W3C differences": lambda: compiled(gw.Ebnf("a ::= " + deep("(", "[a-z]*", " - 'x')", 100))),
    "arrays in parse": lambda: gw.JsonSchema(LIST).parse("[" * 50_000 + "]" * 50_000),
    "arrays without an end": lambda: gw.JsonSchema(LIST).parse("[" * 90_000),
    "exact arrays": lambda: gw.JsonSchema(LIST, profile="exact").parse(deep("[ ", "", "]\n", 20_000)),
    "schemas": lambda: compiled(gw.JsonSchema(nested({}, lambda one: {"items": one, "minItems": 1}, 3_000))),
    "schemas under not": lambda: compiled(gw.JsonSchema(nested({}, lambda one: {"not": {"items": one}}, 900))),
    "schemas in allOf": lambda: compiled(gw.JsonSchema(nested({}, lambda one: {"allOf": [one, {}]}, 900))),
    "a deep const": lambda: compiled(gw.JsonSchema({"const": nested(1, lambda one: [one], 3_000)})),
    "a cyclic schema": lambda: gw.JsonSchema((made := {"items": {}}, made["items"].update(made))[0]),
    "joined constraints": lambda: compiled(joined(2_000)),
    "a constraint as a document": lambda: from_wire(to_wire(joined(900))),
    "arguments of a tool": lambda: ToolCalls([gw.Tool("f", {"type": "object"})], family="hermes").parse(
        '<tool_call>\n{"name": "f", "arguments": {"a": ' + "[" * 40_000 + "]" * 40_000 + "}}\n</tool_call>"
    ),
    "growing JSON": lambda: growing("[" * 40_000 + "]" * 40_000),
    "decoded JSON": lambda: decode_prefix("[" * 40_000 + "]" * 40_000, 0),
    "read JSON": lambda: read_json('{"a":' * 40_000 + "1" + "}" * 40_000),
    "written JSON": lambda: write_json(nested(1, lambda one: {"a": one}, 3_000)),
    "a template of conditions": lambda: render_template("{% if a %}" * 5_000, [], special_tokens={}),
    "a template of parentheses": lambda: render_template("{{ " + "(" * 5_000, [], special_tokens={}),
    "a template of lists": lambda: render_template("{{ " + deep("[", "1", "]", 5_000) + " }}", [], special_tokens={}),
    "a template of signs": lambda: render_template("{{ " + "-" * 5_000 + "1 }}", [], special_tokens={}),
    "a message": lambda: render_template(
        "{{ messages | tojson }}",
        [{"role": "user", "content": nested("", lambda one: [one], 3_000)}],
        special_tokens={},
    ),
    "a list of lists": lambda: compiled(nested(int, lambda one: list[one], 900)),
}


def _check(seed: int) -> tuple[bool, str]:
    verdicts: Counter[str] = Counter()
    failed: list[str] = []
    slowest = (0.0, "")

    def run(name: str) -> None:
        nonlocal slowest
        start = time.thread_time()
        try:
            INPUTS[name]()
            verdicts["served"] += 1
        except gw.GuidewayError as error:
            verdicts[type(error).__name__] += 1
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:80]}")
        slowest = max(slowest, (time.thread_time() - start, name))

    for name in INPUTS:
        in_small_stack(lambda name=name: run(name))
    if slowest[0] > MOST_SECONDS or len(INPUTS) < LEAST_INPUTS:
        failed.append("too slow" if slowest[0] > MOST_SECONDS else "too few inputs")
    verdict = f"; FAILED: {'; '.join(failed[:6])}" if failed else ""
    counted = ", ".join(f"{count} {kind}" for kind, count in verdicts.most_common())
    return not failed, f"{len(INPUTS)} inputs, most {slowest[0]:.1f} s ({slowest[1]}); {counted}{verdict}"


CHECKS = {"stacks, deep inputs": _check}
