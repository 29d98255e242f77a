"""Reads the figures that the documentation shows from the records of the benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks" / "record"
LLGUIDANCE = "2026-11-25-maskbench.txt"
XGRAMMAR = "2026-11-23-xgrammar-noon.txt"
VLLM = "2026-11-21-vllm.txt"
LATENCY_NOTE = f"Sources: {LLGUIDANCE}; for xgrammar {XGRAMMAR}."
COVERAGE_NOTE = LATENCY_NOTE
_ROW = re.compile(r"^\s+(step|TTFM|again)\s+(\w+)\s+\d+\s+([\d., ]+)$", re.MULTILINE)
_COLUMNS = ["p50", "mean", "p90", "p99", "p99.9", "max"]
_COMPILES = re.compile(r"^\s+(\w+)\s+(\d+) of (\d+) \([\d.]+%\)\s+(\d+) of (\d+)\s+(\d+) of (\d+)$", re.MULTILINE)


def steps_of(record: str, measured: str = "step") -> dict[str, dict[str, float]]:
    """Returns quantiles in microseconds for each library of a record.

    Args:
        record: The file name.
        measured: "step" (mask and advance), "TTFM" (time to the first mask), or "again" (the same steps once more).
    """
    text = (RECORDS / record).read_text("utf-8")
    return {
        engine: dict(zip(_COLUMNS, (float(value.replace(",", "")) for value in values.split()), strict=True))
        for kind, engine, values in _ROW.findall(text)
        if kind == measured
    }


def latencies() -> dict[str, dict[str, float]]:
    """Returns the quantiles of Guideway and llguidance from one run, and of xgrammar from another one."""
    found = steps_of(LLGUIDANCE)
    found["xgrammar"] = steps_of(XGRAMMAR)["xgrammar"]
    return {engine: {name: row[name] for name in _COLUMNS if name != "mean"} for engine, row in found.items()}


def verdicts_of(record: str) -> dict[str, tuple[int, ...]]:
    """Returns accepted schemas, accepted valid instances and accepted invalid instances, each with its total."""
    text = (RECORDS / record).read_text("utf-8")
    return {engine: tuple(map(int, counts)) for engine, *counts in _COMPILES.findall(text)}


def coverage() -> list[tuple[str, str, int, int]]:
    """Returns rows of label, library, part and whole, in groups of three libraries."""
    found = verdicts_of(LLGUIDANCE)
    found["xgrammar"] = verdicts_of(XGRAMMAR)["xgrammar"]
    rows = [("schemas accepted", engine, counts[0], counts[1]) for engine, counts in found.items()]
    rows += [("valid instances accepted", engine, counts[2], counts[3]) for engine, counts in found.items()]
    rows += [
        ("invalid instances refused", engine, counts[5] - counts[4], counts[5]) for engine, counts in found.items()
    ]
    return rows


def comparison() -> list[str]:
    """Returns the rows of the table of docs/which-library.md, with the record of each line."""
    found, times = coverage(), latencies()
    engines = list(times)
    lines = ["| | " + " | ".join(engines) + " |", "|---|" + "---|" * len(engines)]
    for label in dict.fromkeys(row[0] for row in found):
        cells = {engine: f"{part:,} of {whole:,}" for name, engine, part, whole in found if name == label}
        lines.append(f"| {label} | " + " | ".join(cells[engine] for engine in engines) + " |")
    for quantile in ("p50", "p99", "max"):
        cells = {engine: f"{times[engine][quantile]:,.1f} µs" for engine in engines}
        lines.append(f"| mask and advance, {quantile} | " + " | ".join(cells[engine] for engine in engines) + " |")
    note = f"Records in `benchmarks/record/`: `{LLGUIDANCE}` (Guideway, llguidance), `{XGRAMMAR}` (xgrammar)."
    return [*lines, "", note]


def whole_outputs() -> list[str]:
    """Returns how many outputs of vLLM's backends were complete: ours, guidance (llguidance), xgrammar."""
    text = (RECORDS / VLLM).read_text("utf-8")
    found = dict(re.findall(r"^  (\w+) .* us +(\d+ of \d+) ", text, re.MULTILINE))
    return [found[backend] for backend in ("guideway", "guidance", "xgrammar")]


def readme_rows() -> list[str]:
    """Returns the rows of README.md whose figures are measured by bench_maskbench.py and bench_vllm.py."""
    ours, theirs = verdicts_of(LLGUIDANCE), verdicts_of(XGRAMMAR)["xgrammar"]
    counts = [ours["guideway"], ours["llguidance"], theirs]
    steps, first = latencies(), steps_of(LLGUIDANCE, "TTFM")
    first["xgrammar"] = steps_of(XGRAMMAR, "TTFM")["xgrammar"]
    rows = [
        ("schemas accepted, of 1,196 from MaskBench ¹", [f"{one[0]:,}" for one in counts]),
        (
            "valid instances accepted, of the accepted schemas ¹",
            [f"{one[2]:,} of {one[3]:,}" for one in counts],
        ),
        ("invalid instances accepted ¹", [f"{one[4]:,} of {one[5]:,}" for one in counts]),
        ("outputs not cut by `max_tokens`, vLLM backend ²", whole_outputs()),
        (
            "mask and advance per token, median / p99 ¹ ³",
            [f"{steps[engine]['p50']:.1f} / {steps[engine]['p99']:.0f} µs" for engine in steps],
        ),
        ("time to first mask, median ¹ ³", [f"{first[engine]['p50'] / 1000:.1f} ms" for engine in steps]),
    ]
    return [f"| {label} | **{cells[0]}** | {cells[1]} | {cells[2]} |" for label, cells in rows]


def filled_readme(text: str) -> str:
    """Returns README.md with the measured rows."""
    for row in readme_rows():
        label = row.split(" | ")[0]
        text = re.sub(rf"^{re.escape(label)} \|.*$", lambda _, row=row: row, text, flags=re.MULTILINE)
    return text


def filled(text: str) -> str:
    """Returns a page with the table of figures in its place."""
    block = "\n".join(["", *comparison(), ""])
    place = re.compile(r"(<!-- figures: comparison -->).*?(<!-- end -->)", re.DOTALL)
    return place.sub(lambda found: found[1] + "\n" + block + "\n" + found[2], text)


if __name__ == "__main__":
    page = RECORDS.parents[1] / "docs" / "which-library.md"
    page.write_text(filled(page.read_text("utf-8")), "utf-8")
    readme = RECORDS.parents[1] / "README.md"
    readme.write_text(filled_readme(readme.read_text("utf-8")), "utf-8")
