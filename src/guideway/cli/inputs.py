"""The inputs of commands: texts, types and schemas, from arguments and files."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from guideway.constraints import JsonSchema
from guideway.errors import ConstraintError, GuidewayError, InvalidConstraintError, InvalidFileError
from guideway.jsontext.decoder import loads

__all__ = [
    "UsageError",
    "is_lines_file",
    "load_output",
    "load_type",
    "read_file",
    "read_lines",
    "read_requests",
    "read_texts",
]


class UsageError(ValueError):
    """A command was called with invalid arguments."""


CARRIED = ("id", "meta")
"""Keys of a line that are copied to its results."""


def read_file(path: Path) -> str:
    """Return the text of a file without a byte order mark; "-" is standard input. Raises `InvalidFileError`."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
        return text.removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFileError(f"cannot read {path}: {error}") from error


def read_lines(path: Path, key: str = "text", known: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Read the objects of a JSON lines file, each with a string under `key`. `InvalidFileError` names the line.

    `known`: the other keys that are allowed. Unknown keys raise an error, because they would have no effect.
    """
    found = []
    for number, line in enumerate(read_file(path).split("\n"), 1):  # splitlines would cut strings at U+2028
        if not line.strip():
            continue
        try:
            entry = loads(line)
        except (ValueError, GuidewayError) as error:
            raise InvalidFileError(f"{path}, line {number} is not JSON: {error}") from error
        if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
            raise InvalidFileError(f'{path}, line {number}: expected an object with a string under "{key}"')
        if known is not None:
            _check_keys(f"{path}, line {number}", entry, (key, *known, *CARRIED))
        found.append(entry)
    return found


def is_lines_file(given: str) -> bool:
    """Return whether this names JSON lines (a .jsonl file, or "-") and is not a prompt."""
    return given == "-" or (given.endswith(".jsonl") and len(given.split()) == 1)


def read_requests(given: str, known: Sequence[str]) -> list[dict[str, Any]]:
    """Read the lines of such a file, each with a "prompt" and `known` keys. Raises `InvalidFileError`."""
    return read_lines(Path(given), "prompt", known)


def _check_keys(place: str, entry: dict[str, Any], known: Sequence[str]) -> None:
    wrong = next((name for name in entry if name not in known), None)
    if wrong is not None:
        close = difflib.get_close_matches(wrong, known, 1)
        meant = f'; did you mean "{close[0]}"?' if close else ""
        raise InvalidFileError(f'{place}: unknown key "{wrong}"{meant} (known: {", ".join(known)})')


_TEXT_FILES = frozenset({".jsonl", ".json", ".txt", ".md", ".csv", ".tsv", ".log", ".html", ".xml", ".yaml", ".yml"})


def read_texts(given: str) -> list[str]:
    """Return the texts: the argument itself, a file's non-empty lines, or the "text" of each line of a .jsonl file."""
    path = Path(given)
    if given != "-" and not _is_file(path):
        if path.suffix in _TEXT_FILES and len(given.split()) == 1:
            raise UsageError(f"file {given} does not exist; to pass a text that looks like a file name, use stdin (-)")
        return [given]
    if path.suffix == ".jsonl":
        return [entry["text"] for entry in read_lines(path)]
    return [line for line in read_file(path).splitlines() if line.strip()]


def load_output(type_name: str | None, schema: Path | None) -> Any:
    """Load the output type: exactly one of a type and a schema file.

    Raises `UsageError`, `InvalidFileError`, `ConstraintError`.
    """
    if type_name is not None and schema is None:
        return load_type(type_name)
    if schema is not None and type_name is None:
        try:
            return JsonSchema(read_file(schema))  # parsed by the library: numbers stay exact, and nesting uses no stack
        except ConstraintError as error:
            raise type(error)(f"{schema}: {error}", error.place) from error
    raise InvalidConstraintError("give either --type FILE.py:NAME or --schema FILE.json")


def load_type(name: str) -> Any:
    """Load a type by `FILE.py:NAME` or `MODULE:NAME`. The file is executed. Raises `UsageError`, `InvalidFileError`."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"{name!r} is not the name of a type; expected FILE.py:NAME or MODULE:NAME")
    module = _module(place)
    if not hasattr(module, attribute):
        there = ", ".join(n for n, value in vars(module).items() if isinstance(value, type) and n[0] != "_")
        raise UsageError(f"{place} has no {attribute}; it has {there}")
    return getattr(module, attribute)


def _module(place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place)
        read_file(path)  # its errors are clearer than those of the import
        specification = importlib.util.spec_from_file_location(path.stem, path)
        if specification is None or specification.loader is None:
            raise UsageError(f"{place} is not a Python file")
        module = importlib.util.module_from_spec(specification)
        sys.modules.setdefault(path.stem, module)  # types resolve names in their own module
        specification.loader.exec_module(module)
    except (InvalidFileError, UsageError):
        raise
    except Exception as error:  # the file is the user's program, which may raise anything
        raise UsageError(f"cannot load {place}: {type(error).__name__}: {error}") from error
    return module


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long sentence is not a valid file name
        return False
