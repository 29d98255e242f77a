"""The front door: load a model, and let it write text or typed values.

    generate, extract                    values
    complete                             the same as `Generation`: value, text, tokens, probabilities, timings
    stream, stream_values                pieces of text, and values that grow, as they come
    resume                               a text that was cut or edited, gone on with

A prompt that is a str goes to the model verbatim, and so does a list of token ids; a list of messages goes through its
chat template; a `GenerationRequest` has an output and options of its own. One prompt gives one result, a list of prompts a list;
`n=` makes each of them a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from guideway import constraints
from guideway.errors import InvalidConstraintError
from guideway.generation.options import Messages, Options, Prompt, Prompts, check_model
from guideway.generation.plan import GenerationRequest, Job
from guideway.generation.prompts import extraction_prompt
from guideway.generation.results import Generation
from guideway.generation.streams import PartialValue, Stream, TextChunk, moving, only_values, pieces_of, run, values_of
from guideway.sessions import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from guideway.constraints import Constraint

__all__ = ["complete", "extract", "extraction", "generate", "stream", "stream_values"]

T = TypeVar("T")


# fmt: off
@overload
def generate(model: Model, prompt: Prompt, output: None = None, *, n: None = None,
             **options: Unpack[Options]) -> str: ...
@overload
def generate(model: Model, prompt: Prompt, output: type[T] | Constraint[T], *, n: None = None,
             **options: Unpack[Options]) -> T: ...
@overload
def generate(model: Model, prompt: Prompt, output: object, *, n: None = None,
             **options: Unpack[Options]) -> Any: ...
@overload
def generate(model: Model, prompt: Prompts, output: None = None, *, n: None = None,
             **options: Unpack[Options]) -> list[str]: ...
@overload
def generate(model: Model, prompt: Prompts, output: type[T] | Constraint[T], *, n: None = None,
             **options: Unpack[Options]) -> list[T]: ...
@overload
def generate(model: Model, prompt: Prompts, output: object, *, n: None = None,
             **options: Unpack[Options]) -> list[Any]: ...
@overload
def generate(model: Model, prompt: Prompt, output: None = None, *, n: int,
             **options: Unpack[Options]) -> list[str]: ...
@overload
def generate(model: Model, prompt: Prompt, output: type[T] | Constraint[T], *, n: int,
             **options: Unpack[Options]) -> list[T]: ...
@overload
def generate(model: Model, prompt: Prompt, output: object, *, n: int,
             **options: Unpack[Options]) -> list[Any]: ...
@overload
def generate(model: Model, prompt: Prompts, output: None = None, *, n: int,
             **options: Unpack[Options]) -> list[list[str]]: ...
@overload
def generate(model: Model, prompt: Prompts, output: type[T] | Constraint[T], *, n: int,
             **options: Unpack[Options]) -> list[list[T]]: ...
@overload
def generate(model: Model, prompt: Prompts, output: object, *, n: int,
             **options: Unpack[Options]) -> list[list[Any]]: ...
@overload
def generate(model: Model, prompt: GenerationRequest | Sequence[Prompt | GenerationRequest], output: object = None, *,
             n: int | None = None, **options: Unpack[Options]) -> Any: ...
# fmt: on
def generate(
    model: Model, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """Let the model write, and give the value.

    `output`: a type or a source; the text then fits it, and the value is of that type. None: free text, a str.
    `n`: how many values for each prompt, as a list. Options:

    `max_tokens` (512): at most so many, EOS counted. Under a constraint only tokens are taken after which the text can
    still be completed within them, so that it always parses; `allow_truncation=True` lets it be cut, with the value None.
    `min_tokens`: no EOS before so many, as far as the constraint goes on.
    `temperature`: 0 is greedy; by default 0, and 1 where `n` is given. `top_k`, `top_p`, `min_p`, or a `sampler`
    with everything: see `Sampler`. `seed`: the same seed and model give the same values.
    `stop`: strings in front of which free text ends; `stop_token_ids`: token ids that end it; `stopping_criteria`: a function that is
    asked with the text after every token. `bad_words`: strings that the text never holds: where one has come, the model goes
    back to the token in which it began, and takes another.
    `token_healing`: take the prompt's last token back and let the model write it again as it likes, so that a prompt that ends
    within a word goes on well. `logprobs`: keep a `TokenLogprobs` of each token, with so many alternatives (0: none); the model
    then runs over forced tokens too. `return_kv_cache`: keep keys and values in `Generation.state`.
    `batch_size` (16): how many rows go on at once. `progress`: show a bar on standard error. `return_exceptions`: what goes
    wrong with one prompt or row stands in its place in the list, and the others go on.

    Raises `BudgetTooSmallError` where nothing that fits `output` is so short, `ContextOverflowError` where the prompt leaves no
    room, `ConstraintError` for an `output` that cannot be enforced, `UnsatisfiableError` where every way on holds a banned
    string (`LimitExceededError` where 512 of them did), `NotAvailable` for messages without a template.
    """
    return only_values(run(Job(model, prompt, output, n, options)))


# fmt: off
@overload
def complete(model: Model, prompt: Prompt, output: None = None, *, n: None = None,
                     **options: Unpack[Options]) -> Generation[str]: ...
@overload
def complete(model: Model, prompt: Prompt, output: type[T] | Constraint[T], *, n: None = None,
                     **options: Unpack[Options]) -> Generation[T]: ...
@overload
def complete(model: Model, prompt: Prompt, output: object, *, n: None = None,
                     **options: Unpack[Options]) -> Generation[Any]: ...
@overload
def complete(model: Model, prompt: Prompts, output: object = None, *, n: None = None,
                     **options: Unpack[Options]) -> list[Generation[Any]]: ...
@overload
def complete(model: Model, prompt: Prompt, output: object = None, *, n: int,
                     **options: Unpack[Options]) -> list[Generation[Any]]: ...
@overload
def complete(model: Model, prompt: Prompts, output: object = None, *, n: int,
                     **options: Unpack[Options]) -> list[list[Generation[Any]]]: ...
@overload
def complete(model: Model, prompt: GenerationRequest | Sequence[Prompt | GenerationRequest], output: object = None, *,
                     n: int | None = None, **options: Unpack[Options]) -> Any: ...
# fmt: on
def complete(
    model: Model, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """As `generate`, but gives `Generation`: value, text, tokens, finish reason, probabilities, counts and timings."""
    return run(Job(model, prompt, output, n, options))


# fmt: off
@overload
def extract(model: Model, text: str, output: type[T] | Constraint[T], **options: Unpack[Options]) -> T: ...
@overload
def extract(model: Model, text: str, output: object, **options: Unpack[Options]) -> Any: ...
@overload
def extract(model: Model, text: list[str], output: type[T] | Constraint[T], **options: Unpack[Options]) -> list[T]: ...
@overload
def extract(model: Model, text: list[str], output: object, **options: Unpack[Options]) -> list[Any]: ...
# fmt: on
def extract(model: Model, text: str | list[str], output: object, **options: Unpack[Options]) -> Any:
    """Read a text into a typed record: builds the prompt from the type, and lets the model write what fits it.

    `output`: a Pydantic model, dataclass, TypedDict or another type, or a `JsonSchema`. Options and errors are those
    of `generate`; a list of texts gives a list of records.
    """
    return only_values(_extract(model, text, output, options))


# fmt: off
@overload
def stream(model: Model, prompt: Prompt | GenerationRequest, output: object = None, *, n: None = None,
           **options: Unpack[Options]) -> Stream[str]: ...
@overload
def stream(model: Model, prompt: Prompts | list[GenerationRequest], output: object = None, *,
           n: int | None = None, **options: Unpack[Options]) -> Stream[TextChunk]: ...
@overload
def stream(model: Model, prompt: Prompt | GenerationRequest, output: object = None, *, n: int,
           **options: Unpack[Options]) -> Stream[TextChunk]: ...
# fmt: on
def stream(
    model: Model, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """Pieces of the text as they come; joined, they are the text that `generate` would give.

    For a list of prompts, or with `n=`, a piece is a `TextChunk`: prompt, sample, text. No piece is empty, ends
    within a character, or holds what may become part of a stop string or of a banned one. Options and errors are those
    of `generate`; what is wrong with the arguments is raised by the call itself, before the first piece.
    """
    job = Job(model, prompt, output, n, options)
    pieces = (piece for moved in moving(job) for piece in pieces_of(job, moved))
    if job.many or n is not None:
        return Stream(job, pieces)
    return Stream(job, (piece.text for piece in pieces))


# fmt: off
@overload
def stream_values(model: Model, prompt: Prompt | GenerationRequest, output: type[T] | Constraint[T],
                  **options: Unpack[Options]) -> Stream[PartialValue[T]]: ...
@overload
def stream_values(model: Model, prompt: Prompt | GenerationRequest, output: object,
                  **options: Unpack[Options]) -> Stream[PartialValue[Any]]: ...
# fmt: on
def stream_values(model: Model, prompt: Any, output: object, **options: Unpack[Options]) -> Any:
    """The value as it grows: a `PartialValue` each time that something of it has become whole, and at last the whole.

    `output`: a type or a `JsonSchema`; options and errors are those of `generate`, for one prompt.
    """
    job = Job(model, prompt, output, None, options)
    if job.many:
        raise TypeError("stream_values takes one prompt")
    growth = values_of(job)

    def values() -> Iterator[PartialValue[Any]]:
        for moved in moving(job):
            yield from growth.push(pieces_of(job, moved))
        yield growth.whole()

    return Stream(job, values())


def _extract(model: Model, text: str | list[str], output: object, options: Options) -> Any:
    source = constraints.of(output)
    if isinstance(text, str):
        return run(Job(model, extraction(model, text, source), source, None, options))
    given: object = text
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"extract reads a str or a list of them, not {text!r}")
    return run(Job(model, [extraction(model, one, source) for one in text], source, None, options))


def extraction(model: Model, text: str, output: object) -> str | Messages:
    """The prompt that `extract` makes of a text: as messages where the model has a chat template, else a str."""
    check_model(model)
    prompt = extraction_prompt(text, _schema_of(output))
    return [{"role": "user", "content": prompt}] if model.tokenizer.has_chat_template else prompt


def _schema_of(output: object) -> Mapping[str, object]:
    """The JSON Schema of what `extract` shall give. Raises `InvalidConstraintError` for a pattern or a choice."""
    source = constraints.of(output)
    schema = getattr(source, "schema", None)
    if isinstance(schema, Mapping):
        return schema
    raise InvalidConstraintError(f"extract takes a type or a JsonSchema that is an object, not {source!r}")
