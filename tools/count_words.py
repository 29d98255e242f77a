"""Counts words to avoid in the prose of documents, Python sources and kernel sources.

    python tools/count_words.py [--list] [docs] [src] [kernel] [tests]

Prose is Markdown text outside code, comments and docstrings in Python, and comments in C++. Text in backticks is not
counted. `--list` prints every occurrence. The exit status is 1 if an area contains more words than its limit.

Why: readers search for the standard term. CONTRIBUTING.md, section "Language", has the rules.
"""

from __future__ import annotations

import argparse
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Each entry: the expression to find, and what to write instead.
AVOID = {
    r"behind": "after",
    r"beside": "next to, compared with, in addition to",
    r"st(?:and|ands|ood|anding)": "is",
    r"(?:go|goes|went|gone|going) on": "continue",
    r"so many": "n",
    r"of (?:its|their|one's|his|her|our|your) own": "own",
    r"asked|told": "requested, reported",
    r"(?:come|comes|came) (?:down )?to": "results in, reaches",
    r"nobody|somebody|whoever": "no caller, a caller",
    r"dear|dearer|dearest": "expensive",
    r"remember(?:s|ed|ing)?": "cached, stored",
    r"roads?|doors?|houses?|kin": "path, interface, project, type",
}
_AVOID = re.compile(rf"(?<![\w-])(?:{'|'.join(AVOID)})(?![\w-])", re.IGNORECASE)

# Occurrences that are justified: a file and the text around the word. Give the reason in a comment.
EXCEPTIONS: dict[str, list[str]] = {}

# The largest number of words in an area; None: not limited yet.
LIMITS: dict[str, int | None] = {"docs": 0, "src": 0, "kernel": 20, "tests": 0}

AREAS = {
    "docs": ["*.md", "docs/**/*.md", "kernel/*.md"],
    "src": ["src/**/*.py"],
    "kernel": ["kernel/**/*.h", "kernel/**/*.hpp", "kernel/**/*.cpp", "bindings/*.*", "bindings/encode/*"],
    "tests": ["tests/**/*.py", "benchmarks/**/*.py", "tools/**/*.py", "examples/**/*.py"],
}

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (?! *[-*] ).*$", re.MULTILINE)
_INLINE = re.compile(r"`[^`]*`|\]\([^)]*\)")
_CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


@dataclass(frozen=True)
class Occurrence:
    """One word to avoid."""

    path: str
    line: int
    word: str
    context: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word}: {self.context}"


def _blank(match: re.Match[str]) -> str:
    """Replaces a match by spaces, so that line numbers and columns stay the same."""
    return re.sub(r"[^\n]", " ", match[0])


def _only(text: str, spans: list[tuple[int, int]]) -> str:
    """Returns the text with everything outside the spans replaced by spaces."""
    kept = list(re.sub(r"[^\n]", " ", text))
    for begin, end in spans:
        kept[begin:end] = text[begin:end]
    return "".join(kept)


def markdown_prose(text: str) -> str:
    """Returns Markdown without code blocks."""
    return _INDENTED.sub(_blank, _FENCED.sub(_blank, text))


def python_prose(text: str) -> str:
    """Returns the comments and docstrings of a Python file. A docstring is a string that is a statement."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = []
    statement_begins = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and statement_begins):
            spans.append((starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1]))
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            statement_begins = True
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            statement_begins = False
    return _only(text, spans)


def cpp_prose(text: str) -> str:
    """Returns the comments of a C++ file."""
    return _only(text, [match.span() for match in _CPP_COMMENT.finditer(text) if match[0].startswith("/")])


def occurrences(path: Path) -> Iterator[Occurrence]:
    """Yields the words to avoid in one file, except the justified ones."""
    text = path.read_text("utf-8")
    if not _AVOID.search(text):
        return  # separating the prose takes much longer than this search
    name = path.relative_to(ROOT).as_posix()
    extract = {".md": markdown_prose, ".py": python_prose}.get(path.suffix, cpp_prose)
    prose = _INLINE.sub(_blank, extract(text))
    for match in _AVOID.finditer(prose):
        context = " ".join(prose[max(0, match.start() - 30) : match.end() + 30].split())
        if not any(justified in context for justified in EXCEPTIONS.get(name, [])):
            yield Occurrence(name, prose.count("\n", 0, match.start()) + 1, match[0].lower(), context)


def area_occurrences(area: str) -> list[Occurrence]:
    """Returns the words to avoid in the files of an area: a key of `AREAS`."""
    paths = {path for pattern in AREAS[area] for path in ROOT.glob(pattern) if path.is_file()}
    return [found for path in sorted(paths) for found in occurrences(path)]


def main() -> None:
    """Prints the number of words in each area."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("areas", nargs="*", choices=[*AREAS, []], help="default: all")
    parser.add_argument("--list", action="store_true", help="print every occurrence")
    given = parser.parse_args()
    failed = False
    for area in given.areas or AREAS:
        found = area_occurrences(area)
        if given.list:
            print(*found, sep="\n")
        limit = LIMITS[area]
        words = ", ".join(f"{word} {count}" for word, count in Counter(one.word for one in found).most_common())
        print(f"{area}: {len(found)}" + (f", at most {limit}" if limit is not None else "") + f" ({words})")
        failed |= limit is not None and len(found) > limit
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
