"""The generating functions: `generate`, `complete`, `extract`, `stream` and their variants.

    generate, extract              values
    complete, complete_extract     `Generation`: value, text, tokens, probabilities, timings
    stream                         chunks of text
    stream_values, stream_extract  values that grow

A prompt that is a str or a list of token ids is used without a chat template. The chat template of the model renders a
list of messages. A `GenerationRequest` can have its own output and options. One prompt gives one result, a list of
prompts a list. With `n=`, each prompt gives a list of results. The same functions are methods of `Model`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from guideway.generation.extraction import EXTRACTION_OPTIONS, ExtractionOptions, extraction_job
from guideway.generation.options import BaseOptions, Options, Prompt, Prompts, with_options
from guideway.generation.plan import GenerationRequest, Job
from guideway.generation.protocol import AnyModel, as_model_base, dispatched
from guideway.generation.results import Generation
from guideway.generation.streams import PartialValue, Stream, TextChunk, moving, only_values, pieces_of, run, values_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from guideway.constraints import Constraint

    T = TypeVar("T", default=str)
    """The value type of the output; str without a constraint."""

__all__ = ["complete", "complete_extract", "extract", "generate", "stream", "stream_extract", "stream_values"]


# The overloads of a function: no flag, allow_truncation=True, return_exceptions=True; then everything else as Any.
# fmt: off
@overload
def generate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> T: ...
@overload
def generate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[T]: ...
@overload
def generate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[T]: ...
@overload
def generate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[list[T]]: ...
@overload
def generate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> T | None: ...
@overload
def generate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[T | None]: ...
@overload
def generate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[T | None]: ...
@overload
def generate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[list[T | None]]: ...
@overload
def generate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> T | Exception | None: ...
@overload
def generate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> list[T | Exception | None]: ...
@overload
def generate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> list[T | Exception | None]: ...
@overload
def generate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> list[list[T | Exception | None]]: ...
@overload
def generate(model: AnyModel, prompt: Prompt | Prompts | GenerationRequest | Sequence[Prompt | GenerationRequest],
             output: object = None, *, n: int | None = None, **options: Unpack[Options]) -> Any: ...
# fmt: on
@dispatched
@with_options()
def generate(
    model: AnyModel, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """Generate text with a model, and return it as a value.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A str, a list of messages, a list of token ids or a `GenerationRequest`; or a list of those.
        output: A type or a constraint that the text must fit. None: free text.
        n: The number of values for each prompt; the result is then a list for each prompt. None: one value.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        The value: a str for free text, else what the constraint reads from the text. A list for a list of prompts,
        and a list of samples for each prompt if `n` is given.

    Raises:
        BudgetTooSmallError: Every text that fits `output` needs more tokens than `max_tokens` or the context allows,
            and `allow_truncation` is not set.
        EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
        InvalidTokenError: The prompt or an option has an id outside the vocabulary, or the prompt cannot be encoded.
        ContextOverflowError: The prompt leaves no room in the model's context, or less than `min_tokens`.
        EngineError: The engine failed, or the model is closed. For a model served by an API: a `RemoteError`.
        ConstraintError: `output` is malformed or cannot be enforced exactly.
        UnsatisfiableError: No text fits `output`, or every continuation contains a banned string.
        LimitExceededError: `output` exceeds a limit, or the generation went back more than 512 times without progress:
            each continuation contained a banned string, or could not be completed within `max_tokens`.
        TruncatedError: With `on_truncation="raise"`, `max_tokens` or the context changed the text.
        InvalidTextError: A validator rejected the value. Not raised if `output` is a Python type and
            `on_invalid="return"` is given.
        ChatTemplateError: The prompt is a list of messages, and there is no chat template, or it cannot render them.
        TypeError: An option is unknown, or an argument or option has a wrong type.
        ValueError: An option is out of range, or two options exclude each other.
    """
    return only_values(run(Job(as_model_base(model), prompt, output, n, options)))


# fmt: off
@overload
def complete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> Generation[T]: ...
@overload
def complete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[Generation[T]]: ...
@overload
def complete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[Generation[T]]: ...
@overload
def complete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[list[Generation[T]]]: ...
@overload
def complete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> Generation[T | None]: ...
@overload
def complete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[Generation[T | None]]: ...
@overload
def complete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[Generation[T | None]]: ...
@overload
def complete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
             **options: Unpack[BaseOptions]) -> list[list[Generation[T | None]]]: ...
@overload
def complete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> Generation[T | None] | Exception: ...
@overload
def complete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> list[Generation[T | None] | Exception]: ...
@overload
def complete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> list[Generation[T | None] | Exception]: ...
@overload
def complete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
             allow_truncation: bool = False, return_exceptions: Literal[True],
             **options: Unpack[BaseOptions]) -> list[list[Generation[T | None] | Exception]]: ...
@overload
def complete(model: AnyModel, prompt: Prompt | Prompts | GenerationRequest | Sequence[Prompt | GenerationRequest],
             output: object = None, *, n: int | None = None, **options: Unpack[Options]) -> Any: ...
# fmt: on
@dispatched
@with_options()
def complete(
    model: AnyModel, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """Generate text with a model, and return the value with its text, tokens, finish reason and timings.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A str, a list of messages, a list of token ids or a `GenerationRequest`; or a list of those.
        output: A type or a constraint that the text must fit. None: free text.
        n: The number of generations for each prompt; the result is then a list for each prompt. None: one generation.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        A `Generation`, in the same shape as the values of `generate`.

    Raises:
        BudgetTooSmallError: Every text that fits `output` needs more tokens than `max_tokens` or the context allows,
            and `allow_truncation` is not set.
        EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
        InvalidTokenError: The prompt or an option has an id outside the vocabulary, or the prompt cannot be encoded.
        ContextOverflowError: The prompt leaves no room in the model's context, or less than `min_tokens`.
        EngineError: The engine failed, or the model is closed. For a model served by an API: a `RemoteError`.
        ConstraintError: `output` is malformed or cannot be enforced exactly.
        UnsatisfiableError: No text fits `output`, or every continuation contains a banned string.
        LimitExceededError: `output` exceeds a limit, or the generation went back more than 512 times without progress:
            each continuation contained a banned string, or could not be completed within `max_tokens`.
        TruncatedError: With `on_truncation="raise"`, `max_tokens` or the context changed the text.
        InvalidTextError: A validator rejected the value. Not raised if `output` is a Python type and
            `on_invalid="return"` is given.
        ChatTemplateError: The prompt is a list of messages, and there is no chat template, or it cannot render them.
        TypeError: An option is unknown, or an argument or option has a wrong type.
        ValueError: An option is out of range, or two options exclude each other.
    """
    return run(Job(as_model_base(model), prompt, output, n, options))


# fmt: off
@overload
def extract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
            allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
            **options: Unpack[ExtractionOptions]) -> T: ...
@overload
def extract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
            allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
            **options: Unpack[ExtractionOptions]) -> list[T]: ...
@overload
def extract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
            allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
            **options: Unpack[ExtractionOptions]) -> T | None: ...
@overload
def extract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
            allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
            **options: Unpack[ExtractionOptions]) -> list[T | None]: ...
@overload
def extract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
            allow_truncation: bool = False, return_exceptions: Literal[True],
            **options: Unpack[ExtractionOptions]) -> T | Exception | None: ...
@overload
def extract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
            allow_truncation: bool = False, return_exceptions: Literal[True],
            **options: Unpack[ExtractionOptions]) -> list[T | Exception | None]: ...
@overload
def extract(model: AnyModel, text: str | list[str], output: object, *,
            allow_truncation: bool = False, return_exceptions: bool = False,
            **options: Unpack[ExtractionOptions]) -> Any: ...
# fmt: on
@dispatched
@with_options(more=EXTRACTION_OPTIONS, typed=ExtractionOptions)
def extract(model: AnyModel, text: str | list[str], output: object, **options: Any) -> Any:
    """Read a text into a typed record. The prompt is built from the text and the type.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        text: The text, or a list of texts.
        output: A Pydantic model, dataclass, TypedDict or another type, or a `JsonSchema`.
        **options: Generation options, see `guideway.generation.OPTIONS` and `EXTRACTION_OPTIONS`.

    Returns:
        The record; for a list of texts a list of records. With `allow_truncation`, None for a text that was cut. With
        `on_invalid="return"` and a Python type, the JSON data of a rejected record. With `return_exceptions`, the
        exception in place of a record that failed.

    Raises:
        BudgetTooSmallError: Every text that fits `output` needs more tokens than `max_tokens` or the context allows,
            and `allow_truncation` is not set.
        EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
        InvalidTokenError: The prompt or an option has an id outside the vocabulary, or the prompt cannot be encoded.
        ContextOverflowError: The prompt leaves no room in the model's context, or less than `min_tokens`.
        EngineError: The engine failed, or the model is closed. For a model served by an API: a `RemoteError`.
        ConstraintError: `output` is malformed, neither a type nor a `JsonSchema`, or cannot be enforced exactly.
        UnsatisfiableError: No text fits `output`, or every continuation contains a banned string.
        LimitExceededError: `output` exceeds a limit, or the generation went back more than 512 times without progress:
            each continuation contained a banned string, or could not be completed within `max_tokens`.
        TruncatedError: With `on_truncation="raise"`, `max_tokens` or the context changed the text.
        InvalidTextError: A validator rejected the value. Not raised if `output` is a Python type and
            `on_invalid="return"` is given. Or the record of an example does not fit `output`.
        ChatTemplateError: The chat template cannot render the prompt, or the function `prompt` returned messages and
            there is no chat template.
        TypeError: An option is unknown, or an argument or option has a wrong type.
        ValueError: An option is out of range, or two options exclude each other.
    """
    return only_values(run(extraction_job(as_model_base(model), text, output, options)))


# fmt: off
@overload
def complete_extract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
                     allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                     **options: Unpack[ExtractionOptions]) -> Generation[T]: ...
@overload
def complete_extract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
                     allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                     **options: Unpack[ExtractionOptions]) -> list[Generation[T]]: ...
@overload
def complete_extract(model: AnyModel, text: str | list[str], output: object, *, allow_truncation: bool = False,
                     return_exceptions: bool = False, **options: Unpack[ExtractionOptions]) -> Any: ...
# fmt: on
@dispatched
@with_options(more=EXTRACTION_OPTIONS, typed=ExtractionOptions)
def complete_extract(model: AnyModel, text: str | list[str], output: object, **options: Any) -> Any:
    """Read a text into a typed record as `extract` does, and return it with its tokens and its spans in the text.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        text: The text, or a list of texts.
        output: A Pydantic model, dataclass, TypedDict or another type, or a `JsonSchema`.
        **options: Generation options, see `guideway.generation.OPTIONS` and `EXTRACTION_OPTIONS`.

    Returns:
        The `Generation`, whose value is the record; for a list of texts a list of generations.

    Raises:
        GuidewayError: As in `extract`.
        TypeError: As in `extract`.
        ValueError: As in `extract`.
    """
    return run(extraction_job(as_model_base(model), text, output, options))


# fmt: off
@overload
def stream(model: AnyModel, prompt: Prompt | GenerationRequest, output: object = None, *, n: None = None,
           **options: Unpack[Options]) -> Stream[str]: ...
@overload
def stream(model: AnyModel, prompt: Prompts | list[GenerationRequest], output: object = None, *,
           n: int | None = None, **options: Unpack[Options]) -> Stream[TextChunk]: ...
@overload
def stream(model: AnyModel, prompt: Prompt | GenerationRequest, output: object = None, *, n: int,
           **options: Unpack[Options]) -> Stream[TextChunk]: ...
# fmt: on
@dispatched
@with_options()
def stream(
    model: AnyModel, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """Generate text with a model, and yield it in chunks.

    Without `retries`, the joined chunks are the text that `complete` returns.

    A chunk is never empty, never ends inside a character, and never contains what may become part of a stop string or
    of a banned string. With `retries`, the chunks are those of the first text, even if its value is rejected;
    `Stream.results` has the last text.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A str, a list of messages, a list of token ids or a `GenerationRequest`; or a list of those.
        output: A type or a constraint that the text must fit. None: free text.
        n: The number of texts for each prompt. None: one.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        A `Stream` of str; for a list of prompts, or with `n`, a `Stream` of `TextChunk`. This call checks the arguments
        and the prompts; errors of the generation are raised by the iterator.

    Raises:
        BudgetTooSmallError: Every text that fits `output` needs more tokens than `max_tokens` or the context allows,
            and `allow_truncation` is not set.
        EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
        InvalidTokenError: The prompt or an option has an id outside the vocabulary, or the prompt cannot be encoded.
        ContextOverflowError: The prompt leaves no room in the model's context, or less than `min_tokens`.
        EngineError: The engine failed, or the model is closed. For a model served by an API: a `RemoteError`.
        ConstraintError: `output` is malformed or cannot be enforced exactly.
        UnsatisfiableError: No text fits `output`, or no continuation of the yielded text fits without a banned string.
        LimitExceededError: `output` exceeds a limit, or the generation went back more than 512 times without progress:
            each continuation contained a banned string, or could not be completed within `max_tokens`.
        TruncatedError: With `on_truncation="raise"`, `max_tokens` or the context changed the text.
        InvalidTextError: A validator rejected the value. Not raised if `output` is a Python type and
            `on_invalid="return"` is given.
        ChatTemplateError: The prompt is a list of messages, and there is no chat template, or it cannot render them.
        TypeError: An option is unknown, or an argument or option has a wrong type.
        ValueError: An option is out of range, or two options exclude each other.
    """
    job = Job(as_model_base(model), prompt, output, n, options)
    pieces = (piece for moved in moving(job) for piece in pieces_of(job, moved))
    if job.many or n is not None:
        return Stream(job, pieces)
    return Stream(job, (piece.text for piece in pieces))


# fmt: off
@overload
def stream_values(model: AnyModel, prompt: Prompt | GenerationRequest, output: type[T] | Constraint[T],
                  **options: Unpack[Options]) -> Stream[PartialValue[T]]: ...
@overload
def stream_values(model: AnyModel, prompt: Prompt | GenerationRequest, output: object,
                  **options: Unpack[Options]) -> Stream[PartialValue[Any]]: ...
# fmt: on
@dispatched
@with_options()
def stream_values(model: AnyModel, prompt: Any, output: object, **options: Unpack[Options]) -> Any:
    """Generate a value, and yield it while it grows. Unfinished strings are included.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: One prompt.
        output: A type, a `JsonSchema`, a `Reasoning` or `ToolCalls`.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        A `Stream` of `PartialValue`; the last one has the whole value.

    Raises:
        BudgetTooSmallError: Every text that fits `output` needs more tokens than `max_tokens` or the context allows,
            and `allow_truncation` is not set.
        EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
        InvalidTokenError: The prompt or an option has an id outside the vocabulary, or the prompt cannot be encoded.
        ContextOverflowError: The prompt leaves no room in the model's context, or less than `min_tokens`.
        EngineError: The engine failed, or the model is closed. For a model served by an API: a `RemoteError`.
        ConstraintError: `output` is malformed, none of these kinds, or cannot be enforced exactly.
        UnsatisfiableError: No text fits `output`, or every continuation contains a banned string.
        LimitExceededError: `output` exceeds a limit, or the generation went back more than 512 times without progress:
            each continuation contained a banned string, or could not be completed within `max_tokens`.
        TruncatedError: With `on_truncation="raise"`, `max_tokens` or the context changed the text.
        InvalidTextError: A validator rejected the value. Not raised if `output` is a Python type and
            `on_invalid="return"` is given.
        ChatTemplateError: The prompt is a list of messages, and there is no chat template, or it cannot render them.
        TypeError: An option is unknown, or an argument or option has a wrong type.
        ValueError: An option is out of range, or two options exclude each other.
    """
    return _values(Job(as_model_base(model), prompt, output, None, options))


# fmt: off
@overload
def stream_extract(model: AnyModel, text: str, output: type[T] | Constraint[T],
                   **options: Unpack[ExtractionOptions]) -> Stream[PartialValue[T]]: ...
@overload
def stream_extract(model: AnyModel, text: str, output: object,
                   **options: Unpack[ExtractionOptions]) -> Stream[PartialValue[Any]]: ...
# fmt: on
@dispatched
@with_options(more=EXTRACTION_OPTIONS, typed=ExtractionOptions)
def stream_extract(model: AnyModel, text: str, output: object, **options: Any) -> Any:
    """Read a text into a typed record as `extract` does, and yield the record while it grows.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        text: The text.
        output: A Pydantic model, dataclass, TypedDict or another type, or a `JsonSchema`.
        **options: Generation options, see `guideway.generation.OPTIONS` and `EXTRACTION_OPTIONS`.

    Returns:
        A `Stream` of `PartialValue`; the last one has the whole record.

    Raises:
        BudgetTooSmallError: Every text that fits `output` needs more tokens than `max_tokens` or the context allows,
            and `allow_truncation` is not set.
        EmptySequenceError: The prompt is empty, and the tokenizer has no BOS token.
        InvalidTokenError: The prompt or an option has an id outside the vocabulary, or the prompt cannot be encoded.
        ContextOverflowError: The prompt leaves no room in the model's context, or less than `min_tokens`.
        EngineError: The engine failed, or the model is closed. For a model served by an API: a `RemoteError`.
        ConstraintError: `output` is malformed, neither a type nor a `JsonSchema`, or cannot be enforced exactly.
        UnsatisfiableError: No text fits `output`, or every continuation contains a banned string.
        LimitExceededError: `output` exceeds a limit, or the generation went back more than 512 times without progress:
            each continuation contained a banned string, or could not be completed within `max_tokens`.
        TruncatedError: With `on_truncation="raise"`, `max_tokens` or the context changed the text.
        InvalidTextError: A validator rejected the value. Not raised if `output` is a Python type and
            `on_invalid="return"` is given. Or the record of an example does not fit `output`.
        ChatTemplateError: The prompt is a list of messages, and there is no chat template, or it cannot render them.
        TypeError: An option is unknown, or an argument or option has a wrong type.
        ValueError: An option is out of range, or two options exclude each other.
    """
    return _values(extraction_job(as_model_base(model), text, output, options))


def _values(job: Job) -> Stream[PartialValue[Any]]:
    if job.many:
        raise TypeError("a stream of values takes one prompt, not a list")
    growth = values_of(job)

    def values() -> Iterator[PartialValue[Any]]:
        for moved in moving(job):
            yield from growth.push(pieces_of(job, moved))
        yield growth.whole()

    return Stream(job, values())
