"""The front door: load a model, and let it write text or typed values.

    generate, extract                    values
    generate_details, extract_details    the same as `Generation`: value, text, tokens, counts, timings
    stream                               pieces of text as they come

A prompt that is a str goes to the model verbatim; a list of messages goes through its chat template. One prompt gives
one result, a list of prompts a list; `samples=` makes each of them a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from guideway import sources
from guideway.errors import InvalidConstraint
from guideway.generation.plan import MAX_TOKENS, Messages, Options, Plan, run
from guideway.generation.results import Generation
from guideway.prompts import extraction_prompt
from guideway.sessions import Model, Row, feed_all
from guideway.vocabulary import TextStream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from guideway.sources import Source

__all__ = ["extract", "extract_details", "extraction", "generate", "generate_details", "stream"]

T = TypeVar("T")


# fmt: off
@overload
def generate(model: Model, prompt: str | Messages, output: None = None, *, samples: None = None,
             **options: Unpack[Options]) -> str: ...
@overload
def generate(model: Model, prompt: str | Messages, output: type[T] | Source[T], *, samples: None = None,
             **options: Unpack[Options]) -> T: ...
@overload
def generate(model: Model, prompt: str | Messages, output: object, *, samples: None = None,
             **options: Unpack[Options]) -> Any: ...
@overload
def generate(model: Model, prompt: list[str] | list[Messages], output: None = None, *, samples: None = None,
             **options: Unpack[Options]) -> list[str]: ...
@overload
def generate(model: Model, prompt: list[str] | list[Messages], output: type[T] | Source[T], *, samples: None = None,
             **options: Unpack[Options]) -> list[T]: ...
@overload
def generate(model: Model, prompt: list[str] | list[Messages], output: object, *, samples: None = None,
             **options: Unpack[Options]) -> list[Any]: ...
@overload
def generate(model: Model, prompt: str | Messages, output: None = None, *, samples: int,
             **options: Unpack[Options]) -> list[str]: ...
@overload
def generate(model: Model, prompt: str | Messages, output: type[T] | Source[T], *, samples: int,
             **options: Unpack[Options]) -> list[T]: ...
@overload
def generate(model: Model, prompt: str | Messages, output: object, *, samples: int,
             **options: Unpack[Options]) -> list[Any]: ...
@overload
def generate(model: Model, prompt: list[str] | list[Messages], output: None = None, *, samples: int,
             **options: Unpack[Options]) -> list[list[str]]: ...
@overload
def generate(model: Model, prompt: list[str] | list[Messages], output: type[T] | Source[T], *, samples: int,
             **options: Unpack[Options]) -> list[list[T]]: ...
@overload
def generate(model: Model, prompt: list[str] | list[Messages], output: object, *, samples: int,
             **options: Unpack[Options]) -> list[list[Any]]: ...
# fmt: on
def generate(
    model: Model,
    prompt: str | Messages | list[str] | list[Messages],
    output: object = None,
    *,
    samples: int | None = None,
    max_tokens: int = MAX_TOKENS,
    temperature: float | None = None,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    seed: int = 0,
) -> Any:
    """Let the model write, and give the value.

    `output`: a type or a source; the text then fits it, and the value is of that type. None: free text, a str.
    `samples`: how many values for each prompt, as a list.
    `max_tokens`: at most so many, EOS counted. Under a constraint only tokens are taken after which the text can
    still be completed within them, so that it always parses.
    `temperature`: 0 is greedy; by default 0, and 1 where `samples` is given. `top_k`, `top_p`, `min_p`: see `Sampler`.
    `seed`: the same seed and model give the same values.

    Raises `BudgetTooSmall` where nothing that fits `output` is so short, `ContextOverflow` where the prompt leaves no
    room, `ConstraintError` for an `output` that cannot be enforced, `NotAvailable` for messages without a template.
    """
    options = Options(
        max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed
    )  # fmt: skip
    return _values(run(model, prompt, output, samples, options))


# fmt: off
@overload
def generate_details(model: Model, prompt: str | Messages, output: None = None, *, samples: None = None,
                     **options: Unpack[Options]) -> Generation[str]: ...
@overload
def generate_details(model: Model, prompt: str | Messages, output: type[T] | Source[T], *, samples: None = None,
                     **options: Unpack[Options]) -> Generation[T]: ...
@overload
def generate_details(model: Model, prompt: str | Messages, output: object, *, samples: None = None,
                     **options: Unpack[Options]) -> Generation[Any]: ...
@overload
def generate_details(model: Model, prompt: list[str] | list[Messages], output: object = None, *, samples: None = None,
                     **options: Unpack[Options]) -> list[Generation[Any]]: ...
@overload
def generate_details(model: Model, prompt: str | Messages, output: object = None, *, samples: int,
                     **options: Unpack[Options]) -> list[Generation[Any]]: ...
@overload
def generate_details(model: Model, prompt: list[str] | list[Messages], output: object = None, *, samples: int,
                     **options: Unpack[Options]) -> list[list[Generation[Any]]]: ...
# fmt: on
def generate_details(
    model: Model,
    prompt: str | Messages | list[str] | list[Messages],
    output: object = None,
    *,
    samples: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """As `generate`, but gives `Generation`: value, text, tokens, finish reason, counts and timings."""
    return run(model, prompt, output, samples, options)


# fmt: off
@overload
def extract(model: Model, text: str, output: type[T] | Source[T], **options: Unpack[Options]) -> T: ...
@overload
def extract(model: Model, text: str, output: object, **options: Unpack[Options]) -> Any: ...
@overload
def extract(model: Model, text: list[str], output: type[T] | Source[T], **options: Unpack[Options]) -> list[T]: ...
@overload
def extract(model: Model, text: list[str], output: object, **options: Unpack[Options]) -> list[Any]: ...
# fmt: on
def extract(model: Model, text: str | list[str], output: object, **options: Unpack[Options]) -> Any:
    """Read a text into a typed record: builds the prompt from the type, and lets the model write what fits it.

    `output`: a Pydantic model, dataclass, TypedDict or another type, or a `JsonSchema`. Options and errors are those
    of `generate`; a list of texts gives a list of records.
    """
    return _values(_extract(model, text, output, options))


# fmt: off
@overload
def extract_details(model: Model, text: str, output: type[T] | Source[T],
                    **options: Unpack[Options]) -> Generation[T]: ...
@overload
def extract_details(model: Model, text: str, output: object, **options: Unpack[Options]) -> Generation[Any]: ...
@overload
def extract_details(model: Model, text: list[str], output: object,
                    **options: Unpack[Options]) -> list[Generation[Any]]: ...
# fmt: on
def extract_details(model: Model, text: str | list[str], output: object, **options: Unpack[Options]) -> Any:
    """As `extract`, but gives `Generation`."""
    return _extract(model, text, output, options)


def stream(model: Model, prompt: str | Messages, output: object = None, **options: Unpack[Options]) -> Iterator[str]:
    """Pieces of the text as they come; joined, they are the text that `generate` would give.

    No piece is empty or ends within a character. Options and errors are those of `generate`; what is wrong with the
    arguments is raised by the call itself, before the first piece.
    """
    plan = Plan(model, output, options)
    row = plan.row(plan.prompted(prompt), 0)
    return _pieces(row)


def _pieces(row: Row) -> Iterator[str]:
    text, table = TextStream(), row.session.tokenizer.vocabulary
    while row.finish_reason is None:
        piece = text.push(table.bytes_of(row.take_forced()))
        if piece:
            yield piece
        if row.finish_reason is None:
            feed_all([row.session])
            piece = text.push(table.bytes_of([row.draw()]))
            if piece:
                yield piece
    if piece := text.finish():
        yield piece


def _extract(model: Model, text: str | list[str], output: object, options: Options) -> Any:
    source = sources.of(output)
    if isinstance(text, str):
        return run(model, extraction(model, text, source), source, None, options)
    return run(model, [extraction(model, one, source) for one in text], source, None, options)


def extraction(model: Model, text: str, output: object) -> str | Messages:
    """The prompt that `extract` makes of a text: as messages where the model has a chat template, else a str."""
    prompt = extraction_prompt(text, _schema_of(output))
    return [{"role": "user", "content": prompt}] if model.tokenizer.has_chat_template else prompt


def _schema_of(output: object) -> Mapping[str, object]:
    """The JSON Schema of what `extract` shall give. Raises `InvalidConstraint` for a pattern or a choice."""
    source = sources.of(output)
    schema = getattr(source, "schema", None)
    if isinstance(schema, Mapping):
        return schema
    raise InvalidConstraint(f"extract takes a type or a JsonSchema that is an object, not {source!r}")


def _values(found: Any) -> Any:
    return [_values(one) for one in found] if isinstance(found, list) else found.value
