"""What a mask and an advance cost, cold and warm, in microseconds of thread CPU time.

    python benchmarks/bench_masks.py [--record]

Over the bundled vocabulary (4,096 tokens), and over Tekken (131,072) where mistral-common is installed. `--record`
also writes the table to benchmarks/record/, with the date and the machine. Cold: the first time in a fresh vocabulary,
its memo empty. Warm: the median of many. Calls go through Python, as a user's do.

What the figures do not show: other machines, wall-clock tails, schemas with many alternatives, several threads.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from statistics import median
from time import thread_time_ns

import numpy as np

import guideway as gw
from harness import data
from harness.report import Report

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mail": {"anyOf": [{"type": "string", "maxLength": 60}, {"type": "null"}]},
        "friends": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name", "age", "mail", "friends"],
}
SITES = {
    "inside a string": (gw.JsonSchema(PERSON), b'{"name": "Ada'),
    "in a bounded number": (gw.JsonSchema(PERSON), b'{"name": "Ada", "age": 1'),
    "in a string of at most 60": (gw.JsonSchema(PERSON), b'{"name": "Ada", "age": 1, "mail": "a'),
    "between items": (gw.JsonSchema(PERSON), b'{"name": "Ada", "age": 1, "mail": null, "friends": ['),
    "in [a-z ]*": (gw.Regex(r"[a-z ]*"), b"ab"),
    r"in \w+": (gw.Regex(r"\w+"), b"ab"),
    r"in (\S+\s+){0,99}\S+": (gw.Regex(r"(\S+\s+){0,99}\S+"), b"ab"),
}


def vocabularies() -> dict[str, list[bytes]]:
    """Token bytes by name. Ids of specials have none."""
    found = {"tiny": list(gw.load("tiny").vocabulary.token_bytes)}
    if importlib.util.find_spec("mistral_common") is not None:
        found["tekken"] = list(data.tekken())
    return found


def microseconds(call: Callable[[], object], calls: int = 1, rounds: int = 1) -> float:
    """Returns the thread CPU time of a call: the median over `rounds` of `calls` calls each."""
    taken = []
    for _ in range(rounds):
        start = thread_time_ns()
        for _ in range(calls):
            call()
        taken.append((thread_time_ns() - start) / 1000 / calls)
    return median(taken)


def fresh(token_bytes: list[bytes]) -> gw.Vocabulary:
    """Returns a vocabulary with empty memos and complete tables."""
    empty = [i for i, token in enumerate(token_bytes) if not token]
    made = gw.Vocabulary(token_bytes, eos_ids=empty[:1], special_ids=empty)
    _ = made.kernel
    return made


def measure_site(token_bytes: list[bytes], source: object, text: bytes) -> tuple[float, float, float, float]:
    """Times compile, cold mask, warm mask, advance, rollback: the mask after `text`, the advance over its last byte."""
    vocabulary, row = fresh(token_bytes), np.zeros((len(token_bytes) + 31) // 32, np.uint32)
    byte_ids = {token: i for i, token in enumerate(token_bytes) if len(token) == 1}
    start = thread_time_ns()
    matcher = gw.compile(source, vocabulary, cache=False).matcher()
    compiling = (thread_time_ns() - start) / 1000
    for byte in text:
        matcher.advance(byte_ids[bytes([byte])])
    cold = microseconds(lambda: matcher.fill_mask(row))
    warm = microseconds(lambda: matcher.fill_mask(row), 200, 25)
    last = byte_ids[text[-1:]]

    def back_and_forth() -> None:
        matcher.rollback(1)
        matcher.advance(last)

    return compiling, cold, warm, microseconds(back_and_forth, 200, 25)


def measure(name: str, token_bytes: list[bytes]) -> list[str]:
    setup = microseconds(lambda: fresh(token_bytes))
    lines = [f"{name}: {len(token_bytes)} tokens, set up in {setup / 1000:.1f} ms"]
    lines.append(f"  {'':28}{'compile':>10}{'cold mask':>12}{'warm mask':>12}{'back + advance':>17}")
    for site, (source, text) in SITES.items():
        compiling, cold, warm, step = measure_site(token_bytes, source, text)
        lines.append(f"  {site:28}{compiling:10.0f}{cold:12.1f}{warm:12.2f}{step:17.2f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the table to benchmarks/record/")
    arguments = parser.parse_args()
    report = Report("masks", ["microseconds of thread CPU time, calls through Python"])
    for name, token_bytes in vocabularies().items():
        report.lines += ["", *measure(name, token_bytes)]
    report.done(arguments.record)


if __name__ == "__main__":
    main()
