"""Values that a validator of the type rejects: they are excluded, and the text is generated again from their beginning.

A validator is Python code that a schema cannot express. Its error names a place in the record. The tokens before the
value at this place are kept; the text after them is generated again, under the same constraint without the rejected
values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from guideway.arguments import short_repr
from guideway.compiler import compile
from guideway.constraints import PythonType
from guideway.errors import (
    BudgetTooSmallError,
    ConstraintError,
    InvalidTextError,
    RejectedTokenError,
)
from guideway.generation.fields import tokens_between
from guideway.generation.scheduler import Row, decode
from guideway.jsontext.decoder import loads
from guideway.jsontext.pointer import pointer
from guideway.jsontext.tokens import located
from guideway.sessions import ModelBase

if TYPE_CHECKING:
    from guideway.generation.plan import Plan
    from guideway.generation.results import Generation

__all__ = ["InvalidAttempt", "final_error", "retried", "token_ends"]


class InvalidAttempt(NamedTuple):
    """A value that a validator rejected.

    Attributes:
        place: The JSON Pointer of the value.
        value: The value, as JSON data.
        message: The message of the validator.
    """

    place: str
    value: Any
    message: str


def token_ends(row: Row, tokens: list[int], model: ModelBase) -> tuple[int, ...]:
    """Return, for each token of a row, the number of bytes of the row's text up to the end of the token."""
    special = row.session.matcher is not None
    ends, at = [], 0
    for token_id in tokens:
        at += 0 if token_id in model.vocabulary.eos_ids else len(model.vocabulary.bytes_of([token_id], special=special))
        ends.append(at)
    return tuple(ends)


def retried(
    plan: Plan, row: Row, found: Generation[Any], error: InvalidTextError, rejected: list[InvalidAttempt]
) -> Row | None:
    """Exclude the value that a validator rejected, and generate the text from the beginning of this value on again.

    Args:
        plan: The plan of the row.
        row: The finished row. Its session is used again.
        found: The result of the row, whose value was rejected.
        error: The error of the validator.
        rejected: The values that were excluded before. The newly rejected value is appended if its place is known.

    Returns:
        A finished row with the new text. None: the error names no place in the text, the output is no Python type, or
        no other value is possible within the limits.

    Raises:
        Exception: The error that ended the new row.
    """
    source = plan.source
    place = error.place
    start = None if place is None else _start(found.text, place)
    if not isinstance(source, PythonType) or place is None or start is None:
        return None
    rejected.append(attempt_of(found, error))
    tokens = row.tokens
    healed = len(row.watch.healed.encode())
    low = healed + len(found.text[:start].encode())
    first, _ = tokens_between(token_ends(row, tokens, plan.model), low, low)
    try:
        matcher = compile(
            source.excluding([(one.place, one.value) for one in rejected], loads(found.text)), plan.model.vocabulary
        ).matcher()
        for token_id in tokens[:first]:
            matcher.advance(token_id)
    except (ConstraintError, RejectedTokenError):
        return None
    session = row.session
    session.rewind(len(tokens) - first, release=True)
    session.constrain(matcher)
    try:
        again = Row(session, row.limits, begun=first, steps=row.steps[:first], healed=row.watch.healed)
    except BudgetTooSmallError:
        return None
    again.count_forced(row)
    decode([again])
    return again


def attempt_of(found: Generation[Any], error: InvalidTextError) -> InvalidAttempt:
    """Return the value at the place that an error names, with the message of the validator."""
    value: Any = loads(found.text)
    for name in [] if not error.place else error.place.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return InvalidAttempt(error.place or "", value, _message(error))


def final_error(found: Generation[Any], error: InvalidTextError, rejected: list[InvalidAttempt]) -> InvalidTextError:
    """Return a copy of the error with `generation` set, and if it names a place, with `value` and `attempts`.

    `rejected`: the values that were rejected and excluded before.
    """
    made = InvalidTextError(str(error), place=error.place, text=error.text, position=error.position)
    made.generation = replace(found, value=None)
    if error.place is not None:
        last = attempt_of(found, error)
        made.value = last.value
        made.attempts = (*rejected, last) if last not in rejected else tuple(rejected)
        if len(made.attempts) > 1:
            tried = ", ".join(short_repr(one.value) for one in made.attempts[:8])
            made.args = (f"after {len(made.attempts)} attempts ({tried}): {error}",)
    return made


def _message(error: InvalidTextError) -> str:
    errors = getattr(error.__cause__, "errors", None)
    if callable(errors):
        found = errors(include_url=False)
        return str(found[0]["msg"]) if found else str(error)
    return str(error)


def _start(text: str, place: str) -> int | None:
    """Return the offset of the value at a JSON Pointer; None: there is no such value."""
    for token, path in located(text):
        if token.kind in ("string", "number", "word", "{", "[") and pointer("", *path) == place:
            return token.start
    return None
