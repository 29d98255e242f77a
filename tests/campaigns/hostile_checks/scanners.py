"""The steps of scanners are linear in the length of the input.

A step is a call of a Python or C function (`sys.setprofile`), which is the same on every machine. Work inside one call,
such as a regular expression that backtracks, is found by the CPU time: it may grow at most fourfold where the length is
doubled.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import guideway as gw
from guideway.constraints.tools import ToolCalls
from guideway.jsontext.decoder import decode_prefix, loads, read_json
from guideway.tokenizers import Tokenizer
from guideway.tokenizers.chat_template import render_template

__all__ = ["CHECKS", "FRAGMENTS", "REPLIES", "check_scanner"]

SHORT, LONG = 1_500, 6_000  # numbers of repeated fragments
MOST_GROWTH = 1.5  # of the steps per fragment, between short and long inputs
MOST_STEPS = 2_000  # per fragment
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
    "tags": ["<", ">", "</", "x", "a", "<x>", "</x>", "<x", " "],
    "tool replies": [
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
    """Return the number of calls, and the CPU time without the profiler."""
    count = 0

    def tick(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    start = time.process_time()
    with contextlib.suppress(gw.GuidewayError):
        scan(text)
    seconds = time.process_time() - start
    sys.setprofile(tick)
    try:
        with contextlib.suppress(gw.GuidewayError):
            scan(text)
    finally:
        sys.setprofile(None)
    return count, seconds


def check_scanner(
    name: str,
    scan: Callable[[str], object],
    fragments: list[str],
    seed: int,
    starts: Sequence[str] = ("",),
    lengths: tuple[int, int] = (SHORT, LONG),
) -> tuple[bool, str]:
    """Compare the steps for short and long inputs: fragments and random sequences of them, repeated after a start."""
    few_times, many_times = lengths
    rng = random.Random(f"{name} {seed}")
    shapes = [[one] for one in fragments] + [
        [rng.choice(fragments) for _ in range(rng.randrange(2, 5))] for _ in range(12)
    ]
    failed, most = [], 0.0
    for shape in shapes:
        for start in starts:
            part = "".join(shape)
            few, short = steps_of(scan, start + part * few_times)
            many, long = steps_of(scan, start + part * many_times)
            each = many / many_times
            most = max(most, each)
            growth = each / max(few / few_times, 1.0)
            if (
                each > MOST_STEPS
                or growth > MOST_GROWTH
                or (long > 0.5 and long > 3 * (many_times / few_times) * max(short, 0.01))
            ):
                failed.append(f"{start + part!r} ({few} -> {many} steps, {short:.2f} -> {long:.2f} s)")
    verdict = f"; FAILED: {'; '.join(failed[:4])}" if failed else ""
    return not failed, f"{len(starts) * len(shapes)} inputs, at most {most:.1f} steps per fragment{verdict}"


STARTS = {"GBNF": ("", "root ::= "), "EBNF": ("", "a = "), "Lark": ("", "start: "), "JSON text": ("", "[")}


def _files(make: Callable[[int], bytes], name: str) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        counts = []
        for length in (SHORT, LONG):
            file.write_bytes(make(length))
            counts.append(steps_of(lambda _: Tokenizer.of(file), "")[0] / length)
    return counts[1] <= max(MOST_GROWTH * counts[0], 1.0), f"{counts[0]:.2f} -> {counts[1]:.2f} steps per fragment"


def _gguf(length: int) -> bytes:
    import struct

    key = struct.pack("<Q", 1) + b"a"
    return b"GGUF" + struct.pack("<IQQ", 3, 0, length) + (key + struct.pack("<IB", 7, 1)) * length


CHECKS = {
    **{
        f"scanner, {name}": (
            lambda seed, name=name: check_scanner(name, SCANNERS[name], FRAGMENTS[name], seed, STARTS.get(name, ("",)))
        )
        for name in SCANNERS
    },
    "scanner, tokenizer.json": lambda seed: _files(lambda length: b'{"a":[' * length, "tokenizer.json"),
    "scanner, GGUF": lambda seed: _files(_gguf, "a.gguf"),
}
