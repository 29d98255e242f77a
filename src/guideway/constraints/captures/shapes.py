"""The structure of constraints, from which captures are computed: rules, a pattern, or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from guideway.constraints.captures.spans import Capture
from guideway.frontends.regex.syntax import Part
from guideway.grammar.cfg import Rule

__all__ = ["IGNORED", "Pattern", "Reading", "Rules", "Shape"]

# Ignored text is what `%ignore` of a Lark grammar allows between terminals.
IGNORED = "ignored"
"""The `source` of the `Text` of ignored text. Ignored text at the end of a capture does not belong to it."""


@dataclass(frozen=True)
class Rules:
    """Context-free rules.

    Attributes:
        rules: The rules.
        start: The start symbol.
        names: For the name of each rule whose text is captured, the name of the capture.
    """

    rules: tuple[Rule, ...]
    start: str
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """The syntax tree of a pattern.

    Attributes:
        part: The tree.
        asserts: Whether it has assertions. They apply to the text that the pattern matches, not to the text around it.
    """

    part: Part
    asserts: bool


@dataclass(frozen=True)
class Reading:
    """A function that returns the captures of a text that the constraint allows.

    If the constraint is a part of another constraint, a name that begins with "/" is appended to the name of the
    capture of the other constraint that contains this part.
    """

    read: Callable[[str], Iterable[Capture]]


Shape = Rules | Pattern | Reading
