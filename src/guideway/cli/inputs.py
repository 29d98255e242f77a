"""Reads the inputs of commands: texts, requests, types and schemas, from arguments and files."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from guideway.arguments import short_repr
from guideway.batch.reading import strict_loads
from guideway.constraints import JsonSchema
from guideway.errors import ConstraintError, GuidewayError, InvalidConstraintError, InvalidFileError
from guideway.jsontext.decoder import loads, read_json

__all__ = [
    "CARRIED",
    "MESSAGES",
    "InputTexts",
    "UsageError",
    "check_page",
    "is_lines_file",
    "load_output",
    "load_type",
    "prompt_of",
    "read_examples",
    "read_file",
    "read_lines",
    "read_requests",
    "read_resources",
    "read_texts",
    "require",
]


class UsageError(ValueError):
    """A command was called with invalid arguments."""


def check_page(html: Path | None) -> None:
    """Raise `UsageError` if `html` is a folder, or its folder does not exist. None is accepted.

    It is called before other work, so that the error comes at once.
    """
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        problem = f"{html} is a folder" if html.is_dir() else f"the folder {html.parent} does not exist"
        raise UsageError(f"--html {html}: {problem}")


CARRIED = ("id", "meta")
"""Keys of an input line that are copied to its results."""

MESSAGES = "messages"
"""The key of an input line with a list of messages instead of a prompt."""


def read_file(path: Path) -> str:
    """Return the text of a file without a byte order mark; "-" is standard input. Raises `InvalidFileError`."""
    if str(path) == "-" and sys.stdin is None:
        raise InvalidFileError("cannot read -: standard input is closed")
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
        return text.removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidFileError(f"cannot read {path}: line {line} is not UTF-8: {error}") from error
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read", path, error) from error


def read_lines(path: Path, key: str = "text", known: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Read the objects of a JSON lines file.

    Args:
        path: The file; "-": standard input.
        key: The key under which each object must have a string. If it is "prompt", an object may have "messages"
            instead: a list of objects for the chat template of the model.
        known: Keys that are allowed besides `key`, "messages" and `CARRIED`. None: all keys are allowed.

    Raises:
        InvalidFileError: The file cannot be read, or a line is not valid. The message names the line.
    """
    return lines_of(read_file(path), str(path), key, known)


def lines_of(text: str, path: str, key: str, known: Sequence[str] | None) -> list[dict[str, Any]]:
    """Do the same as `read_lines` for the text of a file. `path`: the name of the file, for errors."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):  # `splitlines` would split strings at U+2028
        if not line.strip():
            continue
        try:
            entry = strict_loads(line)
        except (ValueError, GuidewayError) as error:
            raise InvalidFileError(f"{path}, line {number} is not JSON: {error}") from error
        given = [name for name in (key, MESSAGES) if isinstance(entry, dict) and name in entry]
        if key == "prompt" and given == [MESSAGES]:
            if not _are_messages(entry[MESSAGES]):
                raise InvalidFileError(f'{path}, line {number}: "messages" must be a list of objects, not empty')
        elif not isinstance(entry, dict) or not isinstance(entry.get(key), str):
            raise InvalidFileError(f'{path}, line {number}: expected an object with a string under "{key}"')
        elif key == "prompt" and len(given) > 1:
            raise InvalidFileError(f'{path}, line {number}: expected "prompt" or "messages", got both')
        if known is not None:
            _check_keys(f"{path}, line {number}", entry, (key, MESSAGES, *known, *CARRIED))
        found.append(entry)
    return found


def read_examples(path: Path) -> list[tuple[str, Any]]:
    """Return the examples in a JSON lines file, as pairs of a text and a record.

    Each line is an object with "text" and "record". Raises `InvalidFileError`, which names the line, or the number of
    an example without "record".
    """
    found = []
    for number, entry in enumerate(read_lines(path, known=("record",)), 1):
        if "record" not in entry:
            raise InvalidFileError(f'{path}, example {number}: "record" is missing')
        found.append((entry["text"], entry["record"]))
    return found


def _are_messages(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def prompt_of(line: dict[str, Any]) -> Any:
    """Return the "prompt" of a line, or its "messages" if it has no "prompt"."""
    return line["prompt"] if "prompt" in line else line[MESSAGES]


def is_lines_file(given: str) -> bool:
    """Return whether an argument is the name of a JSON lines file ("*.jsonl" or "-"), and not a prompt."""
    return given == "-" or (given.endswith(".jsonl") and len(given.split()) == 1)


def read_requests(given: str, known: Sequence[str]) -> list[dict[str, Any]]:
    """Read a file of JSON lines with requests. Each line has "prompt" or "messages", and may have the keys `known`.

    Raises:
        InvalidFileError: The file cannot be read, or a line is not valid.
    """
    return read_lines(Path(given), "prompt", known)


def _check_keys(place: str, entry: dict[str, Any], known: Sequence[str]) -> None:
    wrong = next((name for name in entry if name not in known), None)
    if wrong is not None:
        close = difflib.get_close_matches(wrong, known, 1)
        meant = f'; did you mean "{close[0]}"?' if close else ""
        raise InvalidFileError(f'{place}: unknown key "{wrong}"{meant} (known: {", ".join(known)})')


_TEXT_FILES = frozenset({".jsonl", ".json", ".txt", ".md", ".csv", ".tsv", ".log", ".html", ".xml", ".yaml", ".yml"})


@dataclass(frozen=True)
class InputTexts:
    """The input texts of a command.

    Attributes:
        lines: An object for each text, with "text", and with "id" and "meta" if the input has them.
        single: Whether there is one text, which is the argument of the command itself.
    """

    lines: list[dict[str, Any]]
    single: bool = False


def read_texts(given: str) -> InputTexts:
    """Return the texts of an argument: the argument itself, the lines of a file, or the objects of JSON lines.

    A file is read as JSON lines if its name ends in .jsonl. Standard input ("-") is read as JSON lines if its first
    line is a JSON object.

    Raises:
        UsageError: The text is empty, or the argument is the name of a folder, or looks like the name of a file that
            does not exist.
        InvalidFileError: The file cannot be read, or a line is not valid.
    """
    if not given.strip():
        raise UsageError("the text is empty")
    path = Path(given)
    if given != "-" and _is(path.is_dir):
        raise UsageError(f"{given} is a folder; to pass a text that looks like its name, use stdin (-)")
    if given != "-" and not _is(path.is_file):
        if path.suffix in _TEXT_FILES and len(given.split()) == 1:
            raise UsageError(f"file {given} does not exist; to pass a text that looks like a file name, use stdin (-)")
        return InputTexts([{"text": given}], single=True)
    whole = read_file(path)
    if path.suffix == ".jsonl" or (given == "-" and _begins_with_object(whole)):
        entries = lines_of(whole, given, "text", None)
        return InputTexts([{name: one[name] for name in ("text", *CARRIED) if name in one} for one in entries])
    return InputTexts([{"text": line} for line in whole.splitlines() if line.strip()])


def _begins_with_object(text: str) -> bool:
    """Return whether the first line that is not blank is a JSON object. False if there is none."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        return isinstance(loads(first), dict)
    except (ValueError, GuidewayError):
        return False


def read_resources(given: Sequence[str] | None) -> dict[str, Any]:
    """Read the documents to which `$ref` may refer. Returns them by URI. Raises `InvalidFileError`.

    Each argument is FILE or URI=FILE. For FILE alone, the URI is the `$id` (or `id`) of the document; if it has none,
    the name of the file.
    """
    found: dict[str, Any] = {}
    for one in given or ():
        uri, equals, name = one.partition("=")
        path = Path(name if equals else one)
        try:
            document = read_json(read_file(path))
        except ConstraintError as error:
            raise InvalidFileError(f"{path}: {error}") from error
        if not equals:
            own = [document.get(name) for name in ("$id", "id")] if isinstance(document, dict) else []
            uri = next((one for one in own if isinstance(one, str)), path.name)
        found[uri] = document
    return found


def require(needed: str, given: Mapping[str, object]) -> None:
    """Raise `UsageError` if an option is given without what it needs.

    Args:
        needed: What is missing: another option, or an argument.
        given: The values of the options by name; None: not given.
    """
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} needs {needed}")


def load_output(type_name: str | None, schema: Path | None, **options: Any) -> Any:
    """Load the output type from a type name or a schema file, of which exactly one must be given.

    Args:
        type_name: The name of a type, see `load_type`; None: not given.
        schema: The file of a JSON Schema; None: not given.
        **options: Arguments of `JsonSchema`, which need `schema`.

    Raises:
        UsageError: The type cannot be loaded, or options are given without a schema.
        InvalidFileError: A file cannot be read.
        ConstraintError: The schema is not valid, or not exactly one of both is given.
    """
    if type_name is not None and schema is None:
        if options:
            raise UsageError(f"--{next(iter(options)).rstrip('s')} needs --schema")
        return load_type(type_name)
    if schema is not None and type_name is None:
        try:
            # `JsonSchema` parses the text itself: numbers stay exact, and deep nesting does not exhaust the stack.
            return JsonSchema(read_file(schema), **options)
        except ConstraintError as error:
            raise type(error)(f"{schema}: {error}", error.place) from error
    raise InvalidConstraintError("give either --type FILE.py:NAME or --schema FILE.json")


def load_type(name: str, *, what: str = "type") -> Any:
    """Return the object with the name `FILE.py:NAME` or `MODULE:NAME`. The file is executed, or the module imported.

    `what` is the kind of object for messages, "type" or "function"; it is not checked. Raises `UsageError` if there is
    no such object or the file raises an error, `InvalidFileError` if the file cannot be read.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"{short_repr(name)} is not the name of a {what}; expected FILE.py:NAME or MODULE:NAME")
    module = _module(place)
    if not hasattr(module, attribute):
        is_kind = (lambda value: isinstance(value, type)) if what == "type" else inspect.isfunction
        there = ", ".join(n for n, value in vars(module).items() if is_kind(value) and n[0] != "_") or f"no {what}"
        raise UsageError(f"{place} has no {attribute}; it has {there}")
    return getattr(module, attribute)


def _module(place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            return _imported(place)
        path = Path(place)
        read_file(path)  # raises clearer errors than the import
        specification = importlib.util.spec_from_file_location(path.stem, path)
        if specification is None or specification.loader is None:
            raise UsageError(f"{place} is not a Python file")
        module = importlib.util.module_from_spec(specification)
        sys.modules.setdefault(path.stem, module)  # annotations are resolved in the module
        specification.loader.exec_module(module)
    except (InvalidFileError, UsageError):
        raise
    except Exception as error:  # the file is the user's program, which may raise anything
        raise UsageError(f"cannot load {place}: {type(error).__name__}: {error}") from error
    return module


def _imported(name: str) -> ModuleType:
    """Import a module. As with `python -m`, it can be in the working directory."""
    here = str(Path.cwd())
    if here in sys.path or "" in sys.path:
        return importlib.import_module(name)
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(here)


def _is(test: Callable[[], bool]) -> bool:
    try:
        return test()
    except (OSError, ValueError):  # a long text is not a valid file name
        return False
