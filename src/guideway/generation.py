"""The front door: load a model, and let it write text or typed values.

    generate, extract                    values
    generate_details, extract_details    the same as `Generation`: value, text, tokens, counts, timings
    stream                               pieces of text as they come

A prompt that is a str goes to the model verbatim; a list of messages goes through its chat template. One prompt gives
one result, a list of prompts a list; `samples=` makes each of them a list.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, overload

from guideway import sources
from guideway.compiler import compile
from guideway.engines.base import StepEngine
from guideway.errors import BudgetTooSmall, ContextOverflow, EngineError, InvalidConstraint, NotAvailable
from guideway.prompts import extraction_prompt
from guideway.sampling import Sampler
from guideway.sessions import FinishReason, Model, Row, Session, Timings, decode, feed_all
from guideway.vocabulary import TextStream, Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from guideway.compiler import Automaton
    from guideway.sources import Source

__all__ = ["Generation", "extract", "extract_details", "extraction", "generate", "generate_details", "load", "stream"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Messages = list[dict[str, Any]]

MAX_TOKENS = 512
"""How many tokens a generation takes at most, unless told; never more than the context holds."""


BATCH = 16
"""How many rows go on at once: each holds its KV cache, so a list of any length needs no more memory than these."""


class Options(TypedDict, total=False):
    """What every generating function takes by name; `generate` says what each means."""

    max_tokens: int
    temperature: float | None
    top_k: int
    top_p: float
    min_p: float
    seed: int


@dataclass(frozen=True)
class Generation(Generic[T_co]):
    """One result, and how it came about.

    `tokens`: the ids generated, EOS included. `forced`: how many of them had no alternative and were not drawn.
    `finish_reason`: "stop" at EOS; "length" where `max_tokens` or the context cut free text; a constraint is never cut.
    """

    value: T_co
    text: str
    tokens: tuple[int, ...]
    prompt_tokens: int
    forced: int
    finish_reason: FinishReason
    timings: Timings

    @property
    def sampled(self) -> int:
        """How many tokens were drawn."""
        return len(self.tokens) - self.forced

    @property
    def tokens_per_second(self) -> float:
        """Tokens over the seconds they took, the prompt's left out; 0 where it took no time."""
        seconds = self.timings.model + self.timings.mask + self.timings.sample
        return len(self.tokens) / seconds if seconds > 0 else 0.0


def load(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    context_size: int | None = None,
    tokenizer: object = None,
) -> Model:
    """The model of this name.

    "tiny": bundled. "onnx:FOLDER": an ONNX export with its tokenizer.json. "hf:NAME": transformers, a name or folder.
    "gguf:FILE": llama.cpp. "mlx:FOLDER": MLX, a folder or name.

    `device`: as the engine calls its devices; the CPU unless asked. `dtype`: what the weights become, where the engine
    converts them; for llama.cpp, of the KV cache. `context_size`: tokens per session; by default what the model was
    made for. `tokenizer`: whatever `Tokenizer.of` takes, where the model's own files do not have the right one.
    Raises `NotAvailable` for what is unknown, not there or not installed, `EngineError` for files that are damaged or
    do not fit, and for a device or type that there is not.
    """
    kind, _, rest = name.partition(":")
    if name == "tiny":
        folder = Path(__file__).parent / "tiny"
        if not any(folder.rglob("*.onnx")):
            raise NotAvailable("the bundled model tiny is not in this installation")
        kind, rest = "onnx", str(folder)
    if kind in _ENGINES and rest:
        options: dict[str, Any] = {"device": device, "dtype": dtype, "context_size": context_size}
        given = {key: value for key, value in options.items() if value is not None}
        engine, found = _ENGINES[kind](rest, given)
        return Model(engine, Tokenizer.of(found() if tokenizer is None else tokenizer), name=name)
    raise NotAvailable(
        f'there is no model {name!r}; known are "tiny" (bundled), "onnx:FOLDER", "hf:NAME", "gguf:FILE", "mlx:FOLDER"'
    )


_Loaded = tuple[StepEngine, Callable[[], object]]  # an engine, and where its tokenizer comes from


def _load_onnx(rest: str, options: dict[str, Any]) -> _Loaded:
    from guideway.engines.onnx import OnnxEngine

    if "dtype" in options:
        raise EngineError("an ONNX export has the types it was exported with: leave out dtype=")
    path = Path(rest)
    folders = [path] if path.is_dir() else [path.parent, path.parent.parent]
    found = next((folder for folder in folders if (folder / "tokenizer.json").is_file()), folders[0])
    return OnnxEngine(path, **options), lambda: found


def _load_transformers(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("transformers", "transformers", "torch and transformers")
    return package.TransformersEngine(rest, **options), lambda: package.tokenizer(rest)


def _load_llama_cpp(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("llama_cpp", "llama-cpp", "llama-cpp-python")
    return package.LlamaCppEngine(rest, **options), lambda: Path(rest)


def _load_mlx(rest: str, options: dict[str, Any]) -> _Loaded:
    package = _engine("mlx", "mlx", "mlx and mlx-lm")
    folder = package.folder_of(rest)
    return package.MlxEngine(folder, **options), lambda: folder


def _engine(folder: str, extra: str, libraries: str) -> Any:
    """The package of an engine. Raises `NotAvailable` where its library is not installed."""
    try:
        return importlib.import_module(f"guideway.engines.{folder}")
    except ModuleNotFoundError as error:
        raise NotAvailable(f"this engine needs {libraries}: pip install 'guideway[{extra}]' ({error})") from error


_ENGINES = {"onnx": _load_onnx, "hf": _load_transformers, "gguf": _load_llama_cpp, "mlx": _load_mlx}


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
    return _values(_run(model, prompt, output, samples, options))


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
    return _run(model, prompt, output, samples, options)


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
    plan = _Plan(model, output, options)
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
        return _run(model, extraction(model, text, source), source, None, options)
    return _run(model, [extraction(model, one, source) for one in text], source, None, options)


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


class _Plan:
    """One call: the constraint compiled, the sampler made, the limits known."""

    def __init__(self, model: Model, output: object, options: Options, *, samples: int | None = None) -> None:
        self.model = model
        self.source: Source[object] | None = None if output is None else sources.of(output)
        if unknown := sorted(options.keys() - Options.__annotations__.keys()):
            raise TypeError(f"unknown options: {', '.join(unknown)}; known are {', '.join(Options.__annotations__)}")
        self.max_tokens = operator.index(options.get("max_tokens", MAX_TOKENS))
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if samples is not None and samples < 1:
            raise ValueError(f"samples must be at least 1, got {samples}")
        temperature = options.get("temperature")
        if temperature is None:
            temperature = 0.0 if samples is None else 1.0
        self.seed = operator.index(options.get("seed", 0))
        self.sampler = Sampler(
            temperature, options.get("top_k", 0), options.get("top_p", 1.0), options.get("min_p", 0.0)
        )
        self.automaton: Automaton | None = None
        if self.source is not None:
            if not model.vocabulary.eos_ids:
                raise EngineError(f"the tokenizer of {model.name} names no token that ends a text; give it eos_ids")
            self.automaton = compile(self.source, model.vocabulary)

    def prompted(self, prompt: str | Messages) -> Session:
        """A session that was fed the prompt, and has room for an answer."""
        session = self.model.session(seed=self.seed, sampler=self.sampler)
        if isinstance(prompt, str):
            session.feed(prompt)
        else:
            session.feed(self.model.tokenizer.encode(self.model.tokenizer.render_chat(prompt)))
        room = session.context_size - len(session)
        if not room:
            raise ContextOverflow(f"the prompt fills the context of {session.context_size} tokens: no room to answer")
        if self.automaton is not None:
            needed = self.automaton.matcher().tokens_to_finish()
            if needed > min(self.max_tokens, room):
                raise BudgetTooSmall(
                    f"the shortest output needs {needed} tokens; max_tokens is {self.max_tokens}, and the context"
                    f" has room for {room} behind the prompt"
                )
        return session

    def row(self, session: Session, index: int) -> Row:
        session.row = index
        if self.automaton is not None:
            session.constrain(self.automaton.matcher())
        return Row(session, min(self.max_tokens, session.context_size - len(session)))

    def result(self, row: Row) -> Generation[Any]:
        tokens = row.tokens
        text = self.model.vocabulary.bytes_of(tokens).decode("utf-8", "replace")
        value = text if self.source is None else self.source.parse(text)
        prompt_tokens = len(row.session) - len(tokens)
        reason = row.finish_reason or "length"
        return Generation(value, text, tuple(tokens), prompt_tokens, row.forced, reason, row.timings)


def _run(model: Model, prompt: Any, output: object, samples: int | None, options: Options) -> Any:
    plan = _Plan(model, output, options, samples=samples)
    many = _is_many(prompt)
    sessions = [plan.prompted(one) for one in (prompt if many else [prompt])]
    results: list[list[Generation[Any]]] = [[] for _ in sessions]
    waiting = _rows(plan, sessions, samples)
    while batch := list(islice(waiting, BATCH)):
        decode([row for _, row in batch])
        for index, row in batch:
            results[index].append(plan.result(row))
    shaped: list[Any] = [group if samples is not None else group[0] for group in results]
    return shaped if many else shaped[0]


def _rows(plan: _Plan, sessions: list[Session], samples: int | None) -> Iterator[tuple[int, Row]]:
    """The rows to generate, each with the number of its prompt; a session is let go after its last row."""
    for index in range(len(sessions)):
        session = sessions.pop(0)
        if samples is None:
            yield index, plan.row(session, index)
            continue
        feed_all([session])  # once for all samples: they share the prompt's cache
        for sample in range(samples):
            yield index, plan.row(session.fork(), index * samples + sample)


def _is_many(prompt: object) -> bool:
    """Whether it is a list of prompts. Raises `TypeError` for what is neither a prompt nor a list of them."""
    if isinstance(prompt, str):
        return False
    if isinstance(prompt, (list, tuple)):
        if all(isinstance(one, (str, list, tuple)) for one in prompt):
            return True
        if all(isinstance(one, dict) for one in prompt):
            return False
    raise TypeError(f"a prompt is a str or a list of messages (dicts), or a list of those; got {type(prompt).__name__}")


def _values(found: Any) -> Any:
    return [_values(one) for one in found] if isinstance(found, list) else found.value
