"""The sentences of README and docs whose figures were measured, made from the records of the benchmarks.

    python tools/site/cited.py

prints the sentences that a page does not have. A test compares them, and finds times that no sentence contains.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from records import LLGUIDANCE, RECORDS, XGRAMMAR, steps_of

ROOT = RECORDS.parents[1]
COMPILE = "2026-11-21-compile.txt"
SAMPLER = "2026-11-21-sampler.txt"
CHOICES = "2026-11-25-choices.txt"
VLLM = "2026-11-21-vllm.txt"
_TIME = re.compile(r"\d[\d.,]* (?:µs|ms)\b")


def cells(record: str, row: str) -> list[float]:
    """Returns the numbers of a row of a record; `row` is the beginning of its line, without spaces before it."""
    for line in (RECORDS / record).read_text("utf-8").splitlines():
        if line.strip().startswith(row):
            values = line.strip().removeprefix(row).replace(",", "").split()
            return [float(value.rstrip("x")) for value in values if re.fullmatch(r"\d+(?:\.\d+)?x?", value)]
    raise LookupError(f"{record} has no row {row!r}")


def source(record: str, program: str) -> str:
    """Returns the words that name a record and the program that writes it."""
    return f"`benchmarks/record/{record}`, from `benchmarks/{program}`"


def sampler_rows() -> list[list[float]]:
    """Returns the milliseconds of the kernel, NumPy, torch and transformers of each sampler."""
    text = (RECORDS / SAMPLER).read_text("utf-8")
    rows = re.findall(r"^  \S.*?  +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +\d+x$", text, re.MULTILINE)
    return [[float(value) for value in row] for row in rows]


def cited() -> dict[str, list[str]]:
    """Returns the sentences with measured figures, by page."""
    draws = sampler_rows()
    ratios = [torch / ours for ours, _, torch, _ in draws]
    first, again = steps_of(LLGUIDANCE), steps_of(LLGUIDANCE, "again")
    pickled, listed = cells(COMPILE, "guideway, warm, pickle"), cells(COMPILE, "guideway, warm, list")
    cold, loaded = cells(COMPILE, "guideway, cold"), cells(COMPILE, "guideway, disk (all stored)")
    compiled = cells(COMPILE, "guideway, first")
    spans = [cells(CHOICES, row)[-1] for row in ("pattern, one way", "pattern, three `.*`", "JSON as a grammar")]
    quoted = cells(CHOICES, "quotations of 100,000 characters  guideway")
    xgrammar, start = steps_of(XGRAMMAR)["guideway"], steps_of(XGRAMMAR, "TTFM")["guideway"]
    return {
        "docs/sampling.md": [
            f"takes {min(row[0] for row in draws):.2f} to {max(row[0] for row in draws):.1f} ms for 131,072 tokens, "
            f"{min(ratios):.0f} to {max(ratios):.0f} times faster than torch on one core "
            f"({source(SAMPLER, 'bench_sampler.py')})"
        ],
        "docs/masks.md": [
            f"half of all steps (a mask and an advance) take at most {first['guideway']['p50']:.1f} µs, and 99% at most "
            f"{first['guideway']['p99']:.0f} µs; repeated steps {again['guideway']['p50']:.1f} and "
            f"{again['guideway']['p99']:.1f} µs ({source(LLGUIDANCE, 'bench_maskbench.py')})"
        ],
        "docs/compiling.md": [
            f"takes {loaded[1]:.0f} µs of CPU time in the median",
            f"from its table on disk takes {pickled[0]:.1f} ms of CPU time if its digest is known",
            f"From a list of `bytes` it takes {listed[0]:.1f} ms",
            source(COMPILE, "bench_compile.py"),
        ],
        "docs/troubleshooting.md": [
            f"{cold[0]:.0f} ms of CPU time for 131,072 tokens",
            f"Half of {compiled[0]:.0f} new schemas compiled within {compiled[1] / 1000:.1f} ms, the slowest in "
            f"{compiled[4] / 1000:.0f} ms ({source(COMPILE, 'bench_compile.py')})",
        ],
        "docs/captures.md": [
            f"{min(spans):.0f} to {max(spans):.0f} µs per character for two patterns and a grammar, and "
            f"{cells(CHOICES, 'JSON by pointer')[-1]:.0f} µs for JSON ({source(CHOICES, 'bench_choices.py')})"
        ],
        "docs/extraction.md": [
            f"For a text of 100,000 characters this takes {quoted[1]:.0f} ms of CPU time, and half of the following steps "
            f"at most {quoted[3]:.0f} µs ({source(CHOICES, 'bench_choices.py')})"
        ],
        "README.md": [
            f"there Guideway takes {xgrammar['p50']:.1f} / {xgrammar['p99']:.0f} µs and {start['p50'] / 1000:.1f} ms",
            f"Record: `{VLLM}`",
        ],
    }


def folded(text: str) -> str:
    """Returns a text with single spaces."""
    return " ".join(text.split())


def missing() -> list[str]:
    """Returns the sentences that their page does not have."""
    return [
        f"{page}: {sentence}"
        for page, sentences in cited().items()
        for sentence in sentences
        if sentence not in folded((ROOT / page).read_text("utf-8"))
    ]


def times_without_record(page: Path) -> list[str]:
    """Returns the times of a page, in µs and ms, that are outside of cited sentences, tables of records and code."""
    text = re.sub(
        r"<!-- figures.*?<!-- end -->|^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    text = folded(re.sub(r"^\|.*$", "", text, flags=re.MULTILINE))
    for sentence in cited().get(page.relative_to(ROOT).as_posix(), []):
        text = text.replace(sentence, "")
    return [text[max(0, found.start() - 60) : found.end()] for found in _TIME.finditer(text)]


if __name__ == "__main__":
    print(*missing(), sep="\n")
    sys.exit(1 if missing() else 0)
