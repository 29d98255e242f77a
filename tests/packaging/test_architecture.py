"""ARCHITECTURE.md names every package, package docstrings and kernel/README.md every file; all paths exist."""

import re
from collections import Counter
from pathlib import Path

import pytest

from .repository import PACKAGE, ROOT, kernel_files, python_files

TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
KERNEL = (ROOT / "kernel" / "README.md").read_text("utf-8")
TOP = {path.name for path in ROOT.iterdir()} - {"build"}  # build folders may be absent
DESCRIBED = sorted(path for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


def first_cells(text: str, column: int) -> Counter[str]:
    """The code spans in one column of all table rows."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return Counter(name for row in rows if len(row) > column for name in re.findall(r"`([^`]+)`", row[column]))


def test_every_package_is_in_one_row() -> None:
    packages = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    counts = first_cells(TEXT, 2)
    wrong = {name: counts[name] for name in packages | modules if counts[name] != 1}
    assert not wrong, f"number of rows that name each of these: {wrong}"


def test_every_kernel_file_is_in_one_row() -> None:
    counts = first_cells(KERNEL, 1)
    names = [path.relative_to(ROOT / "kernel").as_posix() for path in kernel_files()]
    wrong = {name: counts[name] for name in names if counts[name] != 1}
    assert not wrong, f"number of rows of kernel/README.md that name each of these: {wrong}"
    assert set(counts) <= set(names)


def files_and_folders(package: Path) -> set[str]:
    files = {path.name for path in package.glob("*.py")} - {"__init__.py", "__main__.py"}
    return files | {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}


@pytest.mark.parametrize("path", DESCRIBED, ids=lambda path: str(path.parent.relative_to(PACKAGE)))
def test_package_docstring_lists_its_files(path: Path) -> None:
    docstring = path.read_text("utf-8").split('"""')[1]
    present = files_and_folders(path.parent)
    if len(present) < 2:
        return  # a single module needs no list
    named = set(re.findall(r"(?<![\w/`])(\w+\.py|\w+/)(?![\w.])", docstring))
    assert not present - named, "not in the docstring"
    folders = {child.name + "/" for child in path.parent.iterdir() if child.is_dir()}
    assert not named - present - folders, "in the docstring, but not in the folder"


def test_every_path_exists() -> None:
    named = {name for name in re.findall(r"`([\w./-]+)`", TEXT) if "/" in name and name.split("/")[0] in TOP}
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert named
    assert not missing
    assert python_files()
