"""What constraints expose of their structure, for captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from guideway.constraints.captures.spans import Capture
from guideway.frontends.regex.syntax import Part
from guideway.grammar.cfg import Rule

__all__ = ["IGNORED", "Pattern", "Reading", "Rules", "Shape"]

IGNORED = "ignored"
"""The `source` of ignored text. A capture that ends with ignored text ends before it."""


@dataclass(frozen=True)
class Rules:
    """Context-free rules. `names` maps a rule to the name under which its text is captured."""

    rules: tuple[Rule, ...]
    start: str
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """The syntax tree of a pattern. `asserts`: it has assertions, which see only the text of the pattern."""

    part: Part
    asserts: bool


@dataclass(frozen=True)
class Reading:
    """A function that returns the captures of a matching text. Names that begin with "/" extend the enclosing name."""

    read: Callable[[str], Iterable[Capture]]


Shape = Rules | Pattern | Reading
