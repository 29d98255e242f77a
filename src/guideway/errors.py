"""All exceptions of the library.

Every exception inherits from `GuidewayError`, and all except `ConstraintError` also inherit from the built-in exception
that a Python programmer would catch.

    GuidewayError
    ├── ConstraintError             a constraint that cannot be used; `.place` is the location
    │   ├── InvalidConstraintError  malformed: not a schema, not a pattern               (ValueError)
    │   ├── UnsupportedError        well formed, but it cannot be enforced exactly       (NotImplementedError)
    │   ├── UnsatisfiableError      no text fits                                         (ValueError)
    │   └── LimitExceededError      needs more states, work or memory than a limit       (RuntimeError)
    ├── InvalidTextError            a text does not fit the constraint                   (ValueError)
    ├── RejectedTokenError          a token is not legal at this position                (ValueError)
    ├── InvalidTokenError           a token id is outside the vocabulary                 (LookupError)
    ├── BudgetTooSmallError         no complete output fits in max_tokens                (ValueError)
    ├── TruncatedError              max_tokens or the context changed an output          (ValueError)
    ├── EmptySequenceError          logits were requested for an empty sequence          (LookupError)
    ├── ModelNotFoundError          no model, tokenizer or file with this name           (FileNotFoundError)
    ├── MissingDependencyError      an optional library is not installed                 (ImportError)
    ├── UnsupportedTokenizerError   the exact bytes of the tokens are unknown            (NotImplementedError)
    ├── ChatTemplateError           no chat template, or it rejected the messages        (ValueError)
    ├── InvalidFileError            a file is malformed, or cannot be read or written    (ValueError)
    ├── InvalidRequestError         a request in a batch or to a server is malformed     (ValueError)
    ├── CacheError                  a command needs the disk cache, which is disabled    (OSError)
    ├── SnapshotError               a saved session cannot be restored                   (ValueError)
    ├── ProcessorError              a logits processor was used in an unsupported way    (RuntimeError)
    │   └── ProcessorReuseError     a logits processor was used for a second call        (RuntimeError)
    ├── InvalidLogitsError          logits are NaN or infinite                           (ValueError)
    ├── NoAllowedTokenError         no token is left to draw                             (ValueError)
    └── EngineError                 the engine failed, is closed, or refused its input   (RuntimeError)
        ├── ContextOverflowError    more tokens than the model's context holds           (ValueError)
        ├── KVCacheFullError        no memory for another KV cache                       (MemoryError)
        ├── ModelTooLargeError      a model needs more memory than its pool has          (MemoryError)
        ├── LeaseTimeoutError       a model of a pool did not become free in time        (TimeoutError)
        └── RemoteError             an endpoint failed or refused the request            (RuntimeError)
            ├── AuthenticationError the key is missing, wrong or not permitted           (PermissionError)
            ├── RemoteNotFoundError no model with this name, or the URL is wrong         (FileNotFoundError)
            ├── RateLimitError      too many requests or tokens                          (RuntimeError)
            ├── OverloadedError     the endpoint has no capacity                         (RuntimeError)
            ├── ConnectionLostError no connection, or no complete answer in time         (ConnectionError)
            └── RefusalError        the model refused to answer                          (RuntimeError)

`SchemaWarning` is a warning: a schema has keywords that probably do not do what its author expects.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AuthenticationError",
    "BudgetTooSmallError",
    "CacheError",
    "ChatTemplateError",
    "ConnectionLostError",
    "ConstraintError",
    "ContextOverflowError",
    "EmptySequenceError",
    "EngineError",
    "GuidewayError",
    "InvalidConstraintError",
    "InvalidFileError",
    "InvalidLogitsError",
    "InvalidRequestError",
    "InvalidTextError",
    "InvalidTokenError",
    "KVCacheFullError",
    "LeaseTimeoutError",
    "LimitExceededError",
    "MissingDependencyError",
    "ModelNotFoundError",
    "ModelTooLargeError",
    "NoAllowedTokenError",
    "OverloadedError",
    "ProcessorError",
    "ProcessorReuseError",
    "RateLimitError",
    "RefusalError",
    "RejectedTokenError",
    "RemoteError",
    "RemoteNotFoundError",
    "SchemaWarning",
    "SnapshotError",
    "TruncatedError",
    "UnsatisfiableError",
    "UnsupportedError",
    "UnsupportedTokenizerError",
]


class GuidewayError(Exception):
    """The base class of all exceptions of this library."""


class ConstraintError(GuidewayError):
    """A constraint cannot be used.

    Attributes:
        place: The location: a JSON Pointer for schemas ("" is the whole schema), the pattern with a caret for patterns,
            line, column and caret for grammars. None: the whole constraint, or unknown.
        node: The number of the grammar node, if the kernel raised the error; else None.
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


class SchemaWarning(UserWarning):
    """A warning: a schema has misspelt keywords, unknown formats, or keywords that have no effect in its draft."""


class InvalidConstraintError(ConstraintError, ValueError):
    """The schema, pattern, grammar or type is malformed. Also raised for unknown names, such as that of a dialect."""


class UnsupportedError(ConstraintError, NotImplementedError):
    """The constraint is well formed, but this version cannot enforce it exactly.

    Also raised for other things that are not supported, such as an option that has no effect at an endpoint.
    """


class UnsatisfiableError(ConstraintError, ValueError):
    """No text fits the constraint."""


class LimitExceededError(ConstraintError, RuntimeError):
    """The constraint needs more states, memory, nesting, or work in one call, than a limit allows.

    The message names the limit, and the field of `CompileLimits` that raises it, if there is one. Also raised for other
    limits, such as the size of an answer of a remote model, or its `max_cost`.
    """


class InvalidTextError(GuidewayError, ValueError):
    """A text does not fit the constraint, or a validator of the type rejected its value.

    Attributes:
        text: The text, or None.
        place: The JSON Pointer of the value that does not fit, or None.
        attempts: For a remote model, the requests that were sent, with their usage. For other models, the values that a
            validator rejected, as `InvalidAttempt`.
        value: The value that a validator of the type rejected, as JSON data; else None.
        generation: The generation whose value a validator rejected; else None.
        usage: The sum of the usage of all attempts of a remote model; else None.
        position: The number of characters at the beginning of the text that fit; None: unknown.
    """

    def __init__(
        self, message: str, *, place: str | None = None, text: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.place = place
        self.text = text
        self.attempts: tuple[Any, ...] = ()
        self.value: Any = None
        self.generation: Any = None
        self.usage: Any = None
        self.position = position


class RejectedTokenError(GuidewayError, ValueError):
    """The constraint does not allow a token at this position. The matcher's state is unchanged.

    Attributes:
        token_id: The id of the token; None: unknown.
        token_bytes: The bytes of the token; empty for EOS and special tokens without a name.
        position: The number of tokens that the matcher has taken before it; None: unknown.
        legal_tokens: Up to five legal tokens at this position, as (id, bytes); empty if unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        token_id: int | None = None,
        token_bytes: bytes = b"",
        position: int | None = None,
        legal_tokens: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        if position is not None:
            legal = ", ".join(f"{token!r} (id {one})" for one, token in legal_tokens) or "unknown"
            message = f"{message} (bytes {token_bytes!r}, position {position}; legal tokens: {legal})"
        super().__init__(message)
        self.token_id = token_id
        self.token_bytes = token_bytes
        self.position = position
        self.legal_tokens = legal_tokens


class InvalidTokenError(GuidewayError, LookupError):
    """A token id is outside the vocabulary, or a text cannot be encoded. The session or matcher is unchanged."""


class BudgetTooSmallError(GuidewayError, ValueError):
    """No complete output fits in `max_tokens`, or in the context."""


class TruncatedError(GuidewayError, ValueError):
    """`max_tokens` or the context cut or shortened an output, and `on_truncation="raise"` was given.

    Also raised if the answer of a remote model was cut at `max_tokens`, without `allow_truncation`.

    Attributes:
        generation: The `Generation` up to the first token that would be different without the limit. `resume` continues
            from its `state`. None for a remote model.
        text: For a remote model, the text that was received; else empty.
        attempts: For a remote model, the requests that were sent, with their usage; else empty.
        usage: The sum of the usage of all attempts of a remote model; else None.
    """

    def __init__(self, message: str, generation: Any = None) -> None:
        super().__init__(message)
        self.generation = generation
        self.text = ""
        self.attempts: tuple[Any, ...] = ()
        self.usage: Any = None


class EmptySequenceError(GuidewayError, LookupError):
    """Logits were requested for an empty sequence, or a rewind was longer than the tokens after the BOS ids."""


class ModelNotFoundError(GuidewayError, LookupError, FileNotFoundError):
    """There is no model, tokenizer or model file with this name."""


class MissingDependencyError(GuidewayError, ImportError):
    """An optional library is not installed. The message names the pip extra or the package."""


class UnsupportedTokenizerError(GuidewayError, NotImplementedError):
    """The exact bytes of a tokenizer's tokens are unknown, or it lacks a special token that the call needs."""


class ChatTemplateError(GuidewayError, ValueError):
    """The tokenizer has no chat template, the template failed for the messages, or a limit was exceeded.

    With `continue_final_message`: the last message cannot be continued.
    """


class InvalidFileError(GuidewayError, ValueError):
    """A file cannot be read or written, or its content is malformed.

    For example a tokenizer, an input or result file of a batch or of the command line, a saved result of a probe, or the
    path of a saved session.
    """

    @classmethod
    def of(cls, verb: str, path: object, error: OSError | ValueError, more: str = "") -> InvalidFileError:
        """Return the error for a file that cannot be used, without the number and the path that an `OSError` repeats.

        Args:
            verb: What cannot be done, such as "read".
            path: The file.
            error: Why. A ValueError: for example, the path has a NUL character or a lone surrogate.
            more: Text for the end of the message.
        """
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        shown = str(path)
        shown = shown if len(shown) <= 400 else shown[:400] + "…"
        return cls(f"cannot {verb} {shown}: {reason}{more}")


class InvalidRequestError(GuidewayError, ValueError):
    """A request of a batch or to the server is malformed: a field of its body, a line of a file, or a row.

    Attributes:
        param: The path of the field, such as "messages[0].role"; None: the whole request.
        code: A short name of the error, such as "unknown_parameter".
    """

    def __init__(self, message: str, param: str | None = None, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class CacheError(GuidewayError, OSError):
    """A command needs the disk cache, and this cache is disabled."""


class SnapshotError(GuidewayError, ValueError):
    """A saved session cannot be restored: it is damaged, or of another model, tokenizer, constraint or format.

    Also raised if a session cannot be saved because its sampler has stages that are functions.
    """


class ProcessorError(GuidewayError, RuntimeError):
    """A logits processor was used in a way that it does not support, such as with the wrong number of rows."""


class ProcessorReuseError(ProcessorError):
    """A logits processor was used for a second call of the engine without `reset()`, or for two calls at once."""


class InvalidLogitsError(GuidewayError, ValueError):
    """A logit of the model is NaN or +inf, or all are -inf, so that there are no probabilities."""


class NoAllowedTokenError(GuidewayError, ValueError):
    """No token is left to draw: the mask, another logits processor and the sampler together exclude all tokens."""


class EngineError(GuidewayError, RuntimeError):
    """The engine failed, is closed, or refused its input: a device, a dtype, a cache or a damaged model file.

    Also raised by other parts that run models: a pool that is closed, a lease that is not held, or a node of a Ray
    cluster whose versions of Python, guideway or vLLM differ from those of the driver.
    """


class ContextOverflowError(EngineError, ValueError):
    """The model's context has no room for the tokens."""


class KVCacheFullError(EngineError, MemoryError):
    """The engine has no memory for another KV cache until others are released."""


class ModelTooLargeError(EngineError, MemoryError):
    """A model needs more memory than its pool (`guideway.Pool`) has for models that are not pinned.

    Pinned models always stay loaded, so their memory is subtracted from the memory budget of the pool.
    """


class LeaseTimeoutError(EngineError, TimeoutError):
    """A model of a pool (`guideway.Pool`) did not become free within the timeout."""


class RemoteError(EngineError):
    """An endpoint failed, or refused the request. The message never contains a key.

    Attributes:
        provider: The name of the endpoint for messages, such as "OpenAI".
        status: The HTTP status; None: unknown, for example because there was no response.
        request_id: The id that the endpoint gave the request; None: unknown.
        retryable: Whether the same request may succeed later.
        retry_after: The number of seconds to wait before trying again; None: unknown.
        attempts: The requests that were sent, with their usage.
        usage: The sum of the usage of all attempts; None: unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider, self.status, self.request_id = provider, status, request_id
        self.retryable, self.retry_after = retryable, retry_after
        self.attempts: tuple[Any, ...] = ()
        self.usage: Any = None


class AuthenticationError(RemoteError, PermissionError):
    """The key is missing, wrong, or not permitted to use the model."""


class RemoteNotFoundError(RemoteError, ModelNotFoundError):
    """The endpoint has no model with this name, or the URL is wrong (status 404)."""


class RateLimitError(RemoteError):
    """The endpoint counted too many requests or tokens, or a request would wait too long for its rate limit.

    `retry_after`: the seconds to wait, if they are known.
    """


class OverloadedError(RemoteError):
    """The endpoint has no capacity now."""


class ConnectionLostError(RemoteError, ConnectionError):
    """There is no connection, it ended before the end of the answer, or the answer took longer than a timeout."""


class RefusalError(RemoteError):
    """The model refused to answer, or a filter of the endpoint did.

    `text`: the text of the refusal, if there is one.
    """

    text: str = ""
