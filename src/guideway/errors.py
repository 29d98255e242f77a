"""What can go wrong, as types.

Every error descends from `GuidewayError`; each also inherits the built-in that a Python programmer would catch.

    GuidewayError
    ├── ConstraintError            a constraint that cannot be used; `.place` says where
    │   ├── InvalidConstraintError      malformed: not a schema, not a pattern           (ValueError)
    │   ├── UnsupportedError            well formed, but not enforced exactly, so refused (NotImplementedError)
    │   ├── UnsatisfiableError          no text can fit it                               (ValueError)
    │   └── LimitExceededError          it asks for more states, time or memory than allowed (RuntimeError)
    ├── InvalidTextError                a text that does not fit the constraint it is read by (ValueError)
    ├── RejectedTokenError              a token that is not legal here; the state is unchanged (ValueError)
    ├── InvalidTokenError               a token id that the vocabulary does not have      (LookupError)
    ├── BudgetTooSmallError             no complete output fits in max_tokens             (ValueError)
    ├── EmptySequenceError                   logits of nothing were asked for                  (LookupError)
    ├── NotAvailable               an unknown or not installed model, engine or name (LookupError)
    ├── CacheError                 the compile cache cannot be used                  (OSError)
    ├── EngineError                an engine failed or was misused                   (RuntimeError)
    │   ├── ContextOverflowError        more tokens than the model's context holds        (ValueError)
    │   └── KVCacheFullError              no memory is left for one more cache              (MemoryError)
    └── SnapshotError              a saved session that cannot be restored           (ValueError)
"""

from __future__ import annotations

__all__ = [
    "BudgetTooSmallError",
    "CacheError",
    "ConstraintError",
    "ContextOverflowError",
    "EmptySequenceError",
    "EngineError",
    "GuidewayError",
    "InvalidConstraintError",
    "InvalidTextError",
    "InvalidTokenError",
    "KVCacheFullError",
    "LimitExceededError",
    "NotAvailable",
    "RejectedTokenError",
    "SnapshotError",
    "UnsatisfiableError",
    "UnsupportedError",
]


class GuidewayError(Exception):
    """The root of all errors that this library raises on purpose."""


class ConstraintError(GuidewayError):
    """A constraint that cannot be used.

    `place` is a JSON Pointer for schemas ("" is the whole schema), the pattern with a caret for patterns, line, column
    and caret for grammars, or None where the whole constraint is meant. The message draws the caret. `node` is the
    number of the grammar's node, where the kernel raised it.
    """

    node: int | None = None

    def __init__(self, message: str, place: str | None = None) -> None:
        super().__init__(message)
        self.place = place

    def __str__(self) -> str:
        message = super().__str__()
        if self.place is None or "\n" not in self.place or self.place in message:
            return message
        return f"{message}, at {self.place}"


class InvalidConstraintError(ConstraintError, ValueError):
    """The schema, pattern or type is malformed."""


class UnsupportedError(ConstraintError, NotImplementedError):
    """Well formed, but this version cannot enforce it exactly; it is refused instead of being loosened."""


class UnsatisfiableError(ConstraintError, ValueError):
    """No text can fit the constraint."""


class LimitExceededError(ConstraintError, RuntimeError):
    """The constraint needs more states, memory, nesting, or work in one call, than the limits allow."""


class InvalidTextError(GuidewayError, ValueError):
    """A text that does not fit the constraint by which it is read.

    `text`: the text. `place`: in JSON the JSON Pointer of what does not fit. Both None where that is not told.
    """

    def __init__(self, message: str, *, place: str | None = None, text: str | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.text = text


class RejectedTokenError(GuidewayError, ValueError):
    """A token that the constraint does not allow here. The matcher's state is unchanged."""


class InvalidTokenError(GuidewayError, LookupError):
    """A token id outside the vocabulary. The state is unchanged."""


class BudgetTooSmallError(GuidewayError, ValueError):
    """No complete output fits in the tokens that were allowed."""


class EmptySequenceError(GuidewayError, LookupError):
    """There are not the tokens that this needs: logits of nothing, or more to give back than were taken."""


class NotAvailable(GuidewayError, LookupError):
    """A model, engine or option that is unknown, not built yet, or not installed."""


class CacheError(GuidewayError, OSError):
    """The compile cache cannot be read or written."""


class EngineError(GuidewayError, RuntimeError):
    """An engine failed, or was given what it cannot take."""


class ContextOverflowError(EngineError, ValueError):
    """More tokens than the model's context holds."""


class KVCacheFullError(EngineError, MemoryError):
    """The engine has no memory left for what another row needs; it has when others are let go."""


class SnapshotError(GuidewayError, ValueError):
    """A saved session that cannot be restored: damaged, or of another model, tokenizer or format."""
