"""What a source says of its inside, for captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from guideway.constraints.captures.spans import Capture
from guideway.frontends.regex.syntax import Part
from guideway.grammar.cfg import Rule

__all__ = ["IGNORED", "Pattern", "Reading", "Rules", "Shape"]

IGNORED = "ignored"
"""The `source` of a text that belongs to nothing: names that end behind it end before it."""


@dataclass(frozen=True)
class Rules:
    """Rules, the one to start with, and by rule the name under which what it derives is captured."""

    rules: tuple[Rule, ...]
    start: str
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """The tree of a pattern as it stands. `asserts`: whether it holds assertions, which look at its own text only."""

    part: Part
    asserts: bool


@dataclass(frozen=True)
class Reading:
    """What reads a text that is known to fit: names that begin with "/" stand below the name around them."""

    read: Callable[[str], Iterable[Capture]]


Shape = Rules | Pattern | Reading
