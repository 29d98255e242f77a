"""The steps of scanners are linear in the length of the input.

A step is a call of a Python or C function (`sys.setprofile`), or 100 units of the kernel's counted work. Both numbers
are the same on every machine. Work inside one call that nothing counts, such as a regular expression that backtracks, is
found by the CPU time.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import guideway as gw
from guideway import caching
from guideway._kernel import bound_work
from guideway.constraints.tools import ToolCalls
from guideway.jsontext.decoder import decode_prefix, loads, read_json
from guideway.tokenizers.chat_template import render_template

__all__ = ["CHECKS", "FRAGMENTS", "LEAST_INPUTS", "REPLIES", "check_inputs", "check_scanner"]

SHORT, LONG = 1_500, 6_000  # numbers of repeated fragments
MOST_GROWTH = 1.5  # of the steps per fragment, between short and long inputs
MOST_STEPS = 250  # per character
MOST_REFUSAL = 0.001  # seconds in which an input is refused at its beginning
LEAST_INPUTS = 10  # of a class
UNITS = 100  # of the kernel's work that count as a step; a call that needs fewer than 10,000 units is not counted
TOOL = gw.Tool("f", {"type": "object", "properties": {"a": {"type": "string"}}})
REPLIES = [ToolCalls([TOOL], family=family) for family in ("hermes", "llama", "llama-pythonic", "qwen-coder")]

FRAGMENTS: dict[str, list[str]] = {
    "GBNF": [
        '"',
        "\\",
        "[",
        "]",
        "(",
        ")",
        "a ",
        "::= ",
        "| ",
        "#",
        "\n",
        "{1,",
        "}",
        "*",
        '"a" ',
        "[a-z] ",
        "\\x",
        "^",
        "-",
    ],
    "EBNF": [
        "'",
        '"',
        "(*",
        "*)",
        "/*",
        "*/",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        "a",
        "= ",
        ";",
        ",",
        "|",
        "-",
        "#x",
        "?",
        "::=",
        "\n",
    ],
    "Lark": [
        '"',
        "/",
        "\\",
        "(",
        ")",
        "[",
        "]",
        "a",
        "A",
        ": ",
        "|",
        "\n",
        "~",
        "..",
        "->",
        "%import ",
        "%ignore ",
        "//",
        "{",
        "}",
    ],
    "regex": [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "\\",
        "?",
        "*",
        "+",
        "|",
        "a",
        "^",
        "$",
        "(?=",
        "(?<=",
        "(?:",
        "\\b",
        "-",
        "1,",
        "\\p{",
    ],
    "tags": ["<", ">", "</", "x", "a", "<x>", "</x>", "<x", " ", "<x>a</x>", "a <x>x<</x>", "\n"],
    "tool replies": [
        *(
            "<tool_call>",
            "</tool_call>",
            "{",
            "}",
            '"',
            "\\",
            "[",
            "]",
            "name",
            ":",
            ",",
            " ",
            "\n",
            "f(",
            "a=",
            "'",
            ")",
        ),
        '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>',
        '{"name": "f", "parameters": {"a": "x"}}; ',
        "f(a='x'), ",
        "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>",
        "<parameter=a>\n",
    ],
    "JSON text": ["{", "}", "[", "]", '"', "\\", ":", ",", "1", "-", ".", "e", "true", " ", "\\u", "\n"],
    "chat template": [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        " if ",
        " for ",
        "a",
        "|",
        ".",
        "(",
        ")",
        "[",
        "]",
        "'",
        "-",
        " end",
    ],
}


def template(text: str) -> None:
    """Render a template."""
    render_template(text, [{"role": "user", "content": "x"}], special_tokens={})


def replies(text: str) -> None:
    """Parse a text as the reply of several families."""
    for one in REPLIES:
        with contextlib.suppress(gw.GuidewayError):
            one.parse(text)


def texts(text: str) -> None:
    """Decode a text by each decoder."""
    for read in (loads, read_json, lambda one: decode_prefix(one, 0)):
        with contextlib.suppress(ValueError, gw.GuidewayError):
            read(text)


TAGGED = gw.Tags([gw.Tag("<x>", gw.Regex("[ax<]*"), "</x>")], triggers=["<x"])


def tagged(text: str) -> None:
    """Make tags of a text, and read the text with other tags."""
    gw.Tags([gw.Tag(text, gw.Regex("a"), text)], triggers=[text[:9]])
    TAGGED.parse(text)


SCANNERS: dict[str, Callable[[str], object]] = {
    "GBNF": gw.Gbnf,
    "EBNF": gw.Ebnf,
    "Lark": gw.Lark,
    "regex": gw.Regex,
    "tags": tagged,
    "tool replies": replies,
    "JSON text": texts,
    "chat template": template,
}


def steps_of(scan: Callable[[str], object], text: str) -> tuple[int, float]:
    """Return the number of steps, and the CPU time without the profiler."""
    count = 0

    def tick(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    caching.clear_all()  # an equal constraint is not scanned again
    start = time.process_time()
    with contextlib.suppress(gw.GuidewayError):
        scan(text)
    seconds = time.process_time() - start
    caching.clear_all()
    most = 1 << 62
    bound_work(most)
    sys.setprofile(tick)
    try:
        with contextlib.suppress(gw.GuidewayError):
            scan(text)
    finally:
        sys.setprofile(None)
        units = most - (bound_work(None) or 0)
    return count + units // UNITS, seconds


def check_scanner(
    name: str,
    scan: Callable[[str], object],
    fragments: list[str],
    seed: int,
    starts: Sequence[str] = ("",),
    lengths: tuple[int, int] = (SHORT, LONG),
) -> tuple[bool, str]:
    """Compare the steps for short and long inputs: fragments and random sequences of them, repeated after a start."""
    rng = random.Random(f"{name} {seed}")
    shapes = [[one] for one in fragments] + [
        [rng.choice(fragments) for _ in range(rng.randrange(2, 5))] for _ in range(12)
    ]
    parts = [(start, "".join(shape)) for shape in shapes for start in starts]
    inputs = [(start + part, lambda times, start=start, part=part: start + part * times) for start, part in parts]
    return check_inputs(scan, inputs, lengths)


def check_inputs(
    scan: Callable[[Any], object], inputs: Iterable[tuple[str, Callable[[int], Any]]], lengths: tuple[int, int]
) -> tuple[bool, str]:
    """Compare the steps for short and long inputs.

    Args:
        scan: The scanner.
        inputs: Names, and functions that make an input of a number of fragments.
        lengths: The two numbers of fragments.
    """
    few_times, many_times = lengths
    failed, most, slowest, inputs, read = [], 0.0, 0.0, list(inputs), 0
    for name, make in inputs:
        few, short = steps_of(scan, make(few_times))
        text = make(many_times)
        many, long = steps_of(scan, text)
        each = many / len(text)
        most, slowest = max(most, each), max(slowest, long / len(text))
        growth = many / many_times / max(few / few_times, 1.0)
        times = many_times / few_times
        read += many > 2 * few or long > MOST_REFUSAL
        if each > MOST_STEPS or growth > MOST_GROWTH or (long > 0.3 and long > 3 * times * max(short, 0.01)):
            failed.append(f"{name!r} ({few} -> {many} steps, {short:.2f} -> {long:.2f} s)")
    if read < LEAST_INPUTS:
        failed.append(f"fewer than {LEAST_INPUTS} inputs are read beyond the beginning")
    verdict = f"; FAILED: {'; '.join(failed[:4])}" if failed else ""
    counted = f"at most {most:.1f} steps and {slowest * 1e6:.1f} us per character"
    return not failed, f"{len(inputs)} inputs, {read} read beyond the beginning, {counted}{verdict}"


REPLY_STARTS = (
    "",
    '<tool_call>\n{"name": "f", "arguments": {"a": "',
    '{"name": "f", "parameters": {"a": "',
    "[",
    "[f(a='",
    "<tool_call>\n<function=f>\n<parameter=a>\n",
)
STARTS: dict[str, tuple[str, ...]] = {
    "tool replies": REPLY_STARTS,
    "GBNF": ("", "root ::= "),
    "EBNF": ("", "a = "),
    "Lark": ("", "start: "),
    "JSON text": ("", "["),
}


LONGER = {"JSON text": (20_000, 80_000), "chat template": (5_000, 20_000)}
"""Lengths for fast scanners. They read shorter inputs in less than `MOST_REFUSAL`, so too few would count as read."""


def _check(name: str, seed: int) -> tuple[bool, str]:
    starts, lengths = STARTS.get(name, ("",)), LONGER.get(name, (SHORT, LONG))
    return check_scanner(name, SCANNERS[name], FRAGMENTS[name], seed, starts, lengths)


CHECKS = {f"scanner, {name}": (lambda seed, name=name: _check(name, seed)) for name in SCANNERS}
