"""Paths of the repository, shared by the packaging tests."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "guideway"


def python_files(folder: Path = PACKAGE) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def kernel_files() -> list[Path]:
    """The kernel proper: its headers and sources, without tests, fuzzers and benchmarks."""
    folders = [
        path for path in (ROOT / "kernel").iterdir() if path.is_dir() and path.name not in {"tests", "fuzz", "bench"}
    ]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in {".h", ".cpp"})


def committed_files() -> list[Path]:
    """What git tracks, or, in an unpacked source archive, nothing."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def child_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements directly inside a node, and its handlers and cases. Expressions contain no statements."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields all statements of a tree."""
    for child in child_statements(tree):
        yield child
        yield from statements(child)


@functools.cache
def imports(path: Path) -> list[tuple[str, int, bool]]:
    """Returns every import in a file: (absolute module or module.name, line, whether it is inside a function)."""
    package = list(path.relative_to(ROOT / "src").with_suffix("").parts[:-1])

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[str, int, bool]]:
        for child in child_statements(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield alias.name, child.lineno, inside
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else []
                prefix = ".".join([*base, *([child.module] if child.module else [])])
                for alias in child.names:
                    yield f"{prefix}.{alias.name}", child.lineno, inside
            yield from walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    return list(walk(ast.parse(path.read_text("utf-8")), False))
