"""The error for a text that does not fit: where it stops, and what could follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guideway.arguments import shortened
from guideway.errors import InvalidTextError, LimitExceededError
from guideway.grammar.mismatch import mismatch
from guideway.grammar.nodes import Grammar

if TYPE_CHECKING:
    from guideway._kernel import Automaton

__all__ = ["does_not_fit"]

MAX_SHOWN = 200
"""The maximum number of characters of the text in the message."""


def does_not_fit(grammar: Grammar | Automaton, text: str, problem: str) -> InvalidTextError:
    """Return the error for a text that does not fit.

    Its message says where the text stops fitting, unless finding this place takes too much work.

    Args:
        grammar: The grammar, or its automaton from `byte_automaton`.
        text: The text.
        problem: The predicate of the message, such as "does not match 'a+'".
    """
    problem = shortened(problem)
    shown = repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…")
    try:
        position, expected = mismatch(grammar, text)
    except LimitExceededError:
        return InvalidTextError(f"{shown} {problem}", text=text)
    if position == len(text):
        where = f"the text ends at character {position}"
    else:
        line, column = text.count("\n", 0, position) + 1, position - (text.rfind("\n", 0, position) + 1)
        at = f"character {position}" + (f" (line {line}, column {column + 1})" if line > 1 else "")
        where = f"it stops fitting at {at}, where {text[position : position + 10]!r} was found"
    return InvalidTextError(f"{shown} {problem}: {where}; expected {expected}", text=text, position=position)
