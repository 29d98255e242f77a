"""Files name no machine that they were written on."""

import re

import pytest

from .repository import ROOT, committed_files

# Written so that this file does not match itself.
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:home|Users|root|work|opt|mnt|tmp)/\w")
TEXT = {".py", ".pyi", ".toml", ".txt", ".md", ".cpp", ".hpp", ".h", ".json", ".jsonl", ".yml", ".yaml", ".sh", ""}

FILES = [path.relative_to(ROOT).as_posix() for path in committed_files()]


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
