"""Wheels of engines that no CPU can run, unpacked in `.wheels/`: their Python can be read, and some of it run."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

WHEELS = Path(__file__).parents[2] / ".wheels"


def need(name: str) -> Path:
    """The folder of an unpacked wheel; skips where it is not there."""
    folder = WHEELS / name
    if not folder.is_dir():
        pytest.skip(f"needs {name} unpacked in .wheels: make test-wheels fetches it")
    return folder


class Anything(ModuleType):
    """Replaces a missing library: every name in it is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *_, **__: None, "__call__": lambda self, *_, **__: self})


class _Finder:
    """Finds stand-ins for the named libraries and all that is in them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if any(name == one or name.startswith(f"{one}.") for one in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # a loader
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


@contextmanager
def importable(folder: Path, package: str, stand_ins: Sequence[str], given: dict[str, ModuleType]) -> Iterator[None]:
    """Makes `package` in the folder importable, with empty `stand_ins` and the modules `given`, until the exit."""
    before = set(sys.modules)
    finder = _Finder(stand_ins)
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]  # has what a finder needs
    sys.path.insert(0, str(folder))
    sys.modules.update(given)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.meta_path.remove(finder)  # type: ignore[arg-type]  # has what a finder needs
        for name in set(sys.modules) - before:
            top = name.split(".")[0]
            if top in {package, *stand_ins} or name.startswith(f"guideway.integrations.{package}"):
                del sys.modules[name]


def toml(beside: str, name: str) -> Any:
    """Returns the content of the TOML file `name` in the folder of the file `beside`."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    return tomllib.loads(Path(beside).with_name(name).read_text("utf-8"))


def signatures(file: Path, owner: str) -> dict[str, list[str]]:
    """The methods of a class (or, with owner "", the functions of a file): their parameters' names in order, defaults
    marked with `=`.
    """
    tree = ast.parse(file.read_text("utf-8"))
    body: Sequence[ast.stmt] = tree.body
    for part in owner.split(".") if owner else ():
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == part]
        if not found:
            return {}
        body = found[0].body
    return {
        node.name: _parameters(node.args) for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def _parameters(arguments: ast.arguments) -> list[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    first = len(plain) - len(arguments.defaults)
    names = [one.arg + ("=" if index >= first else "") for index, one in enumerate(plain)]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    names += [one.arg + ("=" if default is not None else "") + "!" for one, default in named]
    return names + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])
