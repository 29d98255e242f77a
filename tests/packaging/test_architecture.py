"""ARCHITECTURE.md is a map: every package and every kernel file in exactly one row, and every path on it exists."""

import re
from collections import Counter

from .house import PACKAGE, ROOT, kernel_files

TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
# The first cell of a table row: the paths that the row is about.
ROWS = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("|")]
TOP = {path.name for path in ROOT.iterdir()} - {"build"}  # what a build writes may be there or not


def parts_of_the_house() -> list[str]:
    packages = [path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    modules = [path for path in PACKAGE.glob("*.py") if path.name != "__init__.py"]
    names = [f"{path.relative_to(ROOT).as_posix()}/" for path in packages]
    return sorted(names + [path.relative_to(ROOT).as_posix() for path in [*modules, *kernel_files()]])


def test_every_part_is_in_exactly_one_row() -> None:
    counts = Counter(name for row in ROWS for name in re.findall(r"`([^`]+)`", row))
    wrong = {part: counts[part] for part in parts_of_the_house() if counts[part] != 1}
    assert not wrong, f"rows that name each of these: {wrong}"


def test_every_path_exists() -> None:
    named = {name for name in re.findall(r"`([\w./-]+)`", TEXT) if "/" in name and name.split("/")[0] in TOP}
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert named
    assert not missing
