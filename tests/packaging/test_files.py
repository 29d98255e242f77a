"""Files stay small enough to read, and name no machine that they were written on."""

import re

import pytest

from .house import ROOT, committed_files

# A longer file says why in a comment that starts with these words.
EXCUSE = "Longer than the limit:"
LIMITS = [
    (re.compile(r"(src|tests|tools|benchmarks)/.*\.py"), 700),
    (re.compile(r"kernel/.*\.(hpp|h|cpp)"), 800),
    (re.compile(r"bindings/.*\.(hpp|h|cpp)"), 200),
    (re.compile(r"CMakeLists\.txt"), 80),
    (re.compile(r"examples/.*\.py"), 60),
]
# Written so that this file does not match itself.
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:home|Users|root|work|opt|mnt|tmp)/\w")
TEXT = {".py", ".pyi", ".toml", ".txt", ".md", ".cpp", ".hpp", ".h", ".json", ".jsonl", ".yml", ".yaml", ".sh", ""}

FILES = [path.relative_to(ROOT).as_posix() for path in committed_files()]


@pytest.mark.skipif(not FILES, reason="not a git checkout")
def test_files_are_short_enough_to_read() -> None:
    long = []
    for name in FILES:
        for pattern, limit in LIMITS:
            if pattern.fullmatch(name):
                text = (ROOT / name).read_text("utf-8")
                lines = text.count("\n")
                if lines > limit and EXCUSE not in text:
                    long.append(f"{name}: {lines} lines, the limit is {limit}")
    assert not long


@pytest.mark.skipif(not FILES, reason="not a git checkout")
def test_no_file_names_a_machine() -> None:
    found = []
    for name in FILES:
        path = ROOT / name
        if path.suffix not in TEXT or path.stat().st_size > 2_000_000:
            continue
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if MACHINE_PATHS.search(line):
                found.append(f"{name}:{number}: {line.strip()[:120]}")
    assert not found
