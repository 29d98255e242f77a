"""Explains what a schema enforces, with example instances. Refused schemas are explained too."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from guideway.errors import UnsatisfiableError, UnsupportedError
from guideway.frontends.json_schema.contract import contract
from guideway.frontends.json_schema.dnf import Expander
from guideway.frontends.json_schema.lower import Lowering
from guideway.frontends.json_schema.references import Documents
from guideway.frontends.json_schema.style import Style
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import byte_automaton

__all__ = ["Explanation", "draw_examples", "explain"]

MAX_BYTES = 160
"""The length in bytes at which an example is completed."""

_END = 256
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789{}[]:,-. " + b'"')


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a schema.

    Attributes:
        contract: Rows (JSON Pointer, keyword, status); the status may be "refused".
        refusals: A reason by JSON Pointer.
        examples: Texts of instances; empty if the schema is refused.
        conflict: Why the schema has no instance.
        place: The JSON Pointer of the conflict.
    """

    contract: list[tuple[str, str, str]]
    refusals: dict[str, str] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    conflict: str | None = None
    place: str | None = None


def explain(documents: Documents, style: Style, examples: int = 3) -> Explanation:
    """Explain a schema.

    Raises:
        InvalidConstraintError: As for `JsonSchema`.
        LimitExceededError: As for `JsonSchema`.
    """
    expander = Expander(documents)
    try:
        grammar = Lowering(expander, style).run()
        return Explanation(contract(expander, style), {}, draw_examples(grammar, examples))
    except UnsupportedError as problem:
        return Explanation(contract(expander, style), expander.refusals or {problem.place or "": str(problem)})
    except UnsatisfiableError as problem:
        return Explanation(contract(expander, style), {}, [], str(problem), problem.place)


def draw_examples(grammar: Grammar, count: int, seed: int = 0) -> list[str]:
    """Draw distinct texts of a grammar: a shortest one first, then random ones. Raises the errors of `compile`."""
    automaton = byte_automaton(grammar)
    found = {automaton.matcher().completion().decode("utf-8", "replace"): None}
    rng = random.Random(seed)
    for _ in range(4 * count):
        if len(found) >= count:
            break
        found[_walk(automaton.matcher(), rng)] = None
    return list(found)[:count]


def _walk(matcher: Any, rng: random.Random) -> str:
    """Draw random bytes, with a preference for letters, while the text can still be completed within the limit."""
    import numpy as np

    text = bytearray()
    row = np.zeros(matcher.words, np.uint32)
    limit = max(MAX_BYTES, matcher.min_tokens_to_complete() + 40)
    while len(text) < limit and matcher.fill_mask_within(row, limit - len(text)):
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        legal = [int(one) for one in np.flatnonzero(bits[: _END + 1])]
        plain = [one for one in legal if one in _PLAIN]
        ends = [one for one in legal if one in (_END, ord('"'))]
        token = rng.choice(ends if ends and rng.random() < 0.3 else plain or legal)
        if token == _END:
            break
        matcher.advance(token)
        text.append(token)
    return (bytes(text) + bytes(matcher.completion())).decode("utf-8", "replace")
