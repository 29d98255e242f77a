"""The figures of the site: each is that of a record or of a constant of the source.

    python tools/site/cited.py

prints the sentences that a page does not have, and the figures that have no source. A test does the same.

    cited       sentences that are made from the tables of a record
    QUOTED      sentences whose figures a record has in a sentence
    CONSTANTS   limits and defaults, with the constant of the source that they name
    DEFINED     figures that were not measured
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections import Counter
from pathlib import Path

from records import LLGUIDANCE, RECORDS, XGRAMMAR, readme_rows, steps_of

ROOT = RECORDS.parents[1]
COMPILE = "2026-11-21-compile.txt"
SAMPLER = "2026-11-21-sampler.txt"
CHOICES = "2026-11-25-choices.txt"
VLLM = "2026-11-21-vllm.txt"
PROBE = "2026-11-26-probe.txt"
MIXES = "2026-11-26-mixes.txt"
VERBATIM = "2026-11-26-verbatim.txt"
EXPERIMENTS = "2026-11-22-mask-experiments.md"
_FIGURE = re.compile(
    r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:\s?(?:µs|us|ms|ns|seconds?|minutes?|hours?|[KMG]i?B|%)(?!\w)|x(?!\w)| times\b)"
    r"|(?<![\w.])\d[\d.,]* of (?:\d|the (?:time|work))"
    r"|\btook (?:\d[\d.,]* times|twice)|\b(?:a (?:third|quarter|fifth|sixth|eighth|tenth)|two thirds|half) of the time\b"
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": 0.001, "seconds": 1, "minutes": 60, "times": 1}

QUOTED: dict[str, list[tuple[str, str, str]]] = {
    "docs/batching.md": [
        (
            "was at least 95 % with ONNX Runtime and MLX, 100 % with transformers",
            MIXES,
            "rows per call were at least 95 % of the active rows with ONNX Runtime and MLX, and 100 % with transformers",
        ),
        (
            "and 100 % with llama.cpp",
            "2026-11-27-gguf-streams.txt",
            "rows per call were 100 % of the active rows with llama.cpp",
        ),
    ],
    "docs/llama-cpp.md": [
        (
            "a model of 111 MB, whose step takes 4.1 ms, wrote 1.31 to 1.63 times the tokens per second of"
            " `Llama.generate`",
            "2026-11-27-gguf-streams.txt",
            "a model of 111 MB with a step of 4.1 ms, wrote 1.31 to 1.63 times the tokens per second of `Llama.generate`",
        ),
        (
            "The bundled model, 14 MB with a step of 0.4 ms, wrote 0.96 to 1.31 times",
            "2026-11-27-gguf-streams.txt",
            "the bundled model, 14 MB with a step of 0.4 ms, 0.96 to 1.31 times",
        ),
    ],
    "docs/decisions/0002-state-sets.md": [
        (
            "42 of 100 steps of MaskBench when a schema is new, and nearly all steps when it is known",
            EXPERIMENTS,
            "42 of 100 steps of MaskBench's instances are lookups when a schema is new, and nearly all when it is known",
        )
    ],
    "docs/decisions/0005-token-budgets.md": [
        (
            "keeps such masks below 1 ms",
            EXPERIMENTS,
            "treating texts that share no prefix with the shortest completions as one takes less than 1 ms",
        )
    ],
    "docs/decisions/0007-first-computation-of-masks.md": [
        (
            "steps of new schemas take 0.93 of the time, and compilation takes 1.14",
            EXPERIMENTS,
            "steps of new schemas take 0.93 of the time, compilation 1.14",
        ),
        (
            "*Merging every residual into its own trie*: 11 ms after a number instead of 0.1 ms",
            EXPERIMENTS,
            "Merging every residual into its own trie took 11 ms after a number, because half of all tokens begin with a "
            "space; a list takes 0.1 ms",
        ),
        (
            "Precomputation reduces the time of new steps to 0.93; three times as much reduces it to 0.92",
            EXPERIMENTS,
            "steps of new schemas take 0.93 of the time, compilation 1.14. With three times as much precomputation: 0.92",
        ),
    ],
    "docs/decisions/0009-context-free-grammars.md": [
        (
            "Compilation precomputes for at most 20 ms of CPU time",
            EXPERIMENTS,
            "With precomputation of at most 20 ms at compile time",
        ),
        ("14 of 1,196 schemas", EXPERIMENTS, "14 of 1,196 real schemas use forks"),
        (
            "cold p99 for arithmetic: 19 µs instead of 134 µs",
            EXPERIMENTS,
            "cold p99: arithmetic 134 µs before and 19 µs after",
        ),
    ],
    "docs/decisions/0010-immutable-kv-caches.md": [
        (
            "16 rows of the bundled model generated 0.98 to 1.23 times as many tokens per second as transformers' own loop "
            "(`benchmarks/bench_generation.py`, 2026-11-22), and 0.95 to 1.05 times without the reserved space",
            EXPERIMENTS,
            "16 rows of the bundled model generated 0.95 to 1.05 times as many tokens per second as transformers' own loop "
            "(four runs, median 1.01). With reserved space it was 0.98 to 1.23 times (seven runs, median 1.13; "
            "`benchmarks/bench_generation.py`, 2026-11-22, noisy machine)",
        )
    ],
    "docs/decisions/0013-assembly-of-masks.md": [
        (
            "1,000 live automata need 59 MB instead of 122 MB",
            EXPERIMENTS,
            "1,000 live automata went from 122 MB to 59 MB",
        ),
        (
            "thousands of states for intersections (36 ms for one date-time)",
            EXPERIMENTS,
            "created thousands of states for intersections (36 ms for a date-time restricted by a pattern)",
        ),
    ],
    "docs/extraction.md": [
        (
            "142 of 244 invented strings become right",
            VERBATIM,
            "142 of 244 invented strings become right",
        )
    ],
}
"""By page: a sentence, the record, and the sentence of the record with its figures."""

CONSTANTS: dict[str, list[tuple[str, str, str]]] = {
    "docs/batch.md": [("longer than 64 MiB", "batch/reading.py", "MAX_LINE_BYTES")],
    "docs/compiling.md": [
        ("memory, 64 MiB", "compiler/automaton_cache.py", "budget_bytes"),
        ("took 2 ms or more", "constraints/programs.py", "STORE_SECONDS"),
        ("1 GiB", "disk.py", "_DEFAULT_BYTES"),
    ],
    "docs/limits.md": [
        ("automata in memory | 64 MiB", "compiler/automaton_cache.py", "budget_bytes"),
        ("more than 3 seconds of CPU time", "integrations/_common/follower.py", "MASK_SECONDS"),
        ("1 GiB", "disk.py", "_DEFAULT_BYTES"),
        ("evaluated prefixes of a model | 256 MiB", "sessions/prefix_cache.py", "PREFIX_BYTES"),
        ("64 MiB, 100,000 parts", "constraints/wire.py", "MAX_BYTES"),
        ("16 MiB, 100,000 chunks and 50 more", "remote/received.py", "MAX_ANSWER"),
    ],
    "docs/pool.md": [("1.25 times their size", "pool/sizes.py", "_OVERHEAD")],
    "docs/remote-failures.md": [
        ("An answer has at most 16 MiB", "remote/received.py", "MAX_ANSWER"),
        ("its body has at most 64 MiB", "remote/adapters/http.py", "MAX_BODY"),
        ("a compressed body has at most 64 KiB", "remote/adapters/http.py", "MAX_COMPRESSED"),
        ("copy at most 8 GiB", "remote/adapters/http.py", "MAX_WORK"),
    ],
    "docs/serving.md": [
        ("4 MiB or 256 levels", "server/settings.py", "max_body_bytes"),
        ("30 seconds by default", "server/settings.py", "body_seconds"),
        ("each 16 KiB that have arrived", "server/bodies.py", "_LEAST_RATE"),
        ("takes no data for 30 seconds", "server/settings.py", "send_seconds"),
        ("not used for 30 minutes", "server/settings.py", "session_idle_seconds"),
        ("more than 4 KiB in a request", "server/constraint_workers.py", "LEAST_BYTES"),
    ],
    "docs/sessions.md": [("8 MiB by default", "sessions/session.py", "LOGITS_BYTES")],
}
"""By page: a phrase with a figure, the file in src/guideway, and the name of the constant that has this value."""

DEFINED = {"docs/formats.md": ["a multiple of 15 minutes"]}
"""By page: phrases with a figure of a standard."""


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


def probed_rows() -> list[str]:
    """Returns the rows of the servers that were probed: the verdicts of `json_schema`, and other routes that are enforced."""
    rows = []
    for block in (RECORDS / PROBE).read_text("utf-8").split("\n\n")[1:]:
        title, _, *lines = block.strip().splitlines()
        verdicts = [line.split() for line in lines if " requests, " not in line]
        counts = Counter(verdict for route, _, verdict in verdicts if route == "json_schema")
        schema = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda one: -one[1]))
        others = [f"`{route}`" for route, _, verdict in verdicts if route != "json_schema" and verdict == "enforced"]
        rows.append(f"| {title.rpartition(', dialect')[0]} | {schema} | {', '.join(others)} |")
    return rows


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
        "docs/decisions/0012-captures.md": [
            f"{min(spans):.0f} to {max(spans):.0f} µs per character for two patterns and a grammar "
            f"({source(CHOICES, 'bench_choices.py')})"
        ],
        "docs/remote.md": [PROBE, *probed_rows()],
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


def numbers_of(text: str) -> set[str]:
    """Returns the numbers in a text, as they are written."""
    return set(_NUMBER.findall(text))


def value_of(file: str, name: str) -> float:
    """Returns the value of a constant, or of the default of a field or an argument, in a file of the package."""
    text = (ROOT / "src" / "guideway" / file).read_text("utf-8")
    found = re.search(rf"^\W*(?:.*[ (,])?{name}(?:: \w+)? = ([\w. *<]+?)[,)\n]", text, re.MULTILINE)
    if found is None:
        raise LookupError(f"{file} has no {name}")
    return _evaluated(ast.parse(found[1].strip(), mode="eval").body)


_OPERATIONS = {ast.Mult: operator.mul, ast.LShift: operator.lshift}


def _evaluated(node: ast.expr) -> float:
    match node:
        case ast.Constant(int() | float() as value):
            return value
        case ast.Name("MIB"):
            return 1 << 20
        case ast.BinOp(left, operation, right):
            return float(_OPERATIONS[type(operation)](int(_evaluated(left)), int(_evaluated(right))))
    raise ValueError(ast.dump(node))


def stated_value(phrase: str) -> float:
    """Returns the value of the first figure with a unit in a phrase."""
    found = re.search(rf"(\d[\d.,]*) ({'|'.join(_UNITS)})\b", phrase)
    if found is None:
        raise LookupError(f"no unit in {phrase!r}")
    return float(found[1].replace(",", "")) * _UNITS[found[2]]


def missing() -> list[str]:
    """Returns what a page does not have, and what differs from its source."""
    found = []
    pages = {page: folded((ROOT / page).read_text("utf-8")) for page in {*cited(), *QUOTED, *CONSTANTS, *DEFINED}}
    for page, sentences in cited().items():
        found += [f"{page}: {sentence}" for sentence in sentences if sentence not in pages[page]]
    for page, quotations in QUOTED.items():
        for sentence, record, quotation in quotations:
            if sentence not in pages[page]:
                found.append(f"{page}: {sentence}")
            if quotation not in folded((RECORDS / record).read_text("utf-8")):
                found.append(f"{record}: {quotation}")
            if more := numbers_of(sentence) - numbers_of(quotation) - numbers_of(record):
                found.append(f"{page}: {', '.join(sorted(more))} in {sentence!r} are not in {record}")
    for page, constants in CONSTANTS.items():
        for phrase, file, name in constants:
            if phrase not in pages[page]:
                found.append(f"{page}: {phrase}")
            if stated_value(phrase) != value_of(file, name):
                found.append(f"{page}: {phrase}, but {name} in {file} is {value_of(file, name)}")
    return found + [
        f"{page}: {phrase}" for page, phrases in DEFINED.items() for phrase in phrases if phrase not in pages[page]
    ]


def figures_without_source(page: Path) -> list[str]:
    """Returns the figures of a page that are outside of code, of generated tables, and of phrases with a source."""
    text = re.sub(r"<!-- \w+.*?<!-- end -->|^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    name = page.relative_to(ROOT).as_posix()
    text = folded(text)
    known = [*cited().get(name, []), *DEFINED.get(name, []), *(readme_rows() if name == "README.md" else [])]
    known += [phrase for phrase, _, _ in [*QUOTED.get(name, []), *CONSTANTS.get(name, [])]]
    for phrase in map(folded, known):
        text = text.replace(phrase, "")
    text = re.sub(r"`[^`]*`", "", text)
    return [text[max(0, found.start() - 60) : found.end()] for found in _FIGURE.finditer(text)]


def pages() -> list[Path]:
    """Returns the pages of the site that are written by hand."""
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


if __name__ == "__main__":
    lines = missing() + [
        f"{page.relative_to(ROOT)}: {figure}" for page in pages() for figure in figures_without_source(page)
    ]
    print(*lines, sep="\n")
    sys.exit(1 if lines else 0)
