"""Descriptions of functions and of their parameters, from docstrings in Google style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Described", "described"]

_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|Warnings?|See Also"
    r"|References|Todo|Keyword Args|Keyword Arguments|Other Parameters):\s*"
)
_ARGUMENTS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments")
_PARAMETER = re.compile(r"(\w{1,128})[ \t]*(?:\([^)]{0,1000}\))?[ \t]*:[ \t]*(.*)")


class Described(NamedTuple):
    """The parts of a docstring.

    Attributes:
        summary: The text before the first section.
        parameters: The description of each parameter, joined to one line.
    """

    summary: str
    parameters: dict[str, str]


def described(function: Callable[..., Any]) -> Described:
    """Return the parts of the docstring of a function; empty parts if it has none."""
    text = inspect.getdoc(function) or ""
    summary: list[str] = []
    parameters: dict[str, str] = {}
    section, indent, name = "", -1, ""
    for line in text.splitlines():
        stripped = line.strip()
        if _SECTION.fullmatch(line):
            section, indent, name = stripped.rstrip(":").lower(), -1, ""
        elif not section:
            summary.append(line)
        elif section in _ARGUMENTS and stripped:
            width = len(line) - len(line.lstrip())
            indent = width if indent < 0 else indent
            found = _PARAMETER.fullmatch(stripped) if width <= indent else None
            if found is not None:
                name, parameters[found[1]] = found[1], found[2].strip()
            elif name:
                parameters[name] = f"{parameters[name]} {stripped}".strip()
    return Described("\n".join(summary).strip(), parameters)
