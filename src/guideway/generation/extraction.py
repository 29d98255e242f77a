"""The options of `extract`, and the requests for its texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from guideway import constraints
from guideway.arguments import short_repr
from guideway.constraints import JsonSchema, PythonType, Verbatim
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.generation.options import BaseOptions, Messages, Option, Options, check_model, check_names
from guideway.generation.plan import GenerationRequest, Job
from guideway.generation.prompts import ExtractionPrompt, PromptFunction
from guideway.sessions import ModelBase

if TYPE_CHECKING:
    from guideway.constraints import Constraint

__all__ = [
    "EXTRACTION_OPTIONS",
    "Extraction",
    "ExtractionOptions",
    "extraction",
    "extraction_job",
    "texts_of",
]

Example = tuple[str, Any]
"""A text, and its record: a value of the type, or JSON data."""


class ExtractionOptions(BaseOptions, total=False):
    """The keyword arguments of `extract`. `EXTRACTION_OPTIONS` describes those that other functions do not have."""

    instructions: str | None
    examples: Sequence[Example]
    system: str | None
    prompt: ExtractionPrompt | PromptFunction | None
    verbatim: bool | Verbatim


EXTRACTION_OPTIONS: dict[str, Option] = {
    "instructions": Option(None, "What to extract and how, beyond the schema; a part of the prompt."),
    "examples": Option((), "Pairs of a text and its record, which the prompt shows. Each record must fit the type."),
    "system": Option(None, "The system message; without a chat template the beginning of the prompt."),
    "prompt": Option(
        None,
        "An `ExtractionPrompt`, or a function of the text and the JSON Schema that returns a str or messages. It"
        " replaces the default prompt, and excludes the three options above.",
    ),
    "verbatim": Option(
        False,
        "Every free string (without pattern, const, enum and format) occurs in the text. True, or a `Verbatim` with"
        " options. Single fields are marked with `Annotated[str, gw.Verbatim()]`.",
    ),
}
"""The options of `extract`, in addition to `OPTIONS`."""


class Extraction:
    """Makes the requests of `extract`: the constraint and the prompt of each text.

    Args:
        output: A type, or a `JsonSchema` whose schema is a dict, not a bool.
        options: The options of `extract`: generation options and `EXTRACTION_OPTIONS`.

    Attributes:
        source: The constraint of every text; `bound` adds the text in which its verbatim strings must occur.
        schema: The JSON Schema of a record.
        options: The generation options among the options.

    Raises:
        InvalidConstraintError: `output` is another constraint, such as a pattern, or its schema is a bool.
        InvalidTextError: The record of an example does not fit the type.
        TypeError: An option is unknown or of the wrong type.
        ValueError: Two options exclude each other.
    """

    def __init__(self, output: object, options: Mapping[str, Any]) -> None:
        self.source: Constraint[Any] = _marked(constraints.of(output), options.get("verbatim", False))
        self.schema = _schema_of(self.source)
        self.options = cast(Options, {name: one for name, one in options.items() if name not in EXTRACTION_OPTIONS})
        check_names(self.options, (*EXTRACTION_OPTIONS,))
        self._prompt = self._prompt_of(options)

    def _prompt_of(self, options: Mapping[str, Any]) -> ExtractionPrompt | PromptFunction:
        prompt = options.get("prompt")
        parts = {name: options.get(name) for name in ("instructions", "examples", "system")}
        if prompt is not None:
            if given := [name for name, one in parts.items() if one]:
                raise ValueError(f"prompt= and {given[0]}= exclude each other: set {given[0]} in the ExtractionPrompt")
            if isinstance(prompt, ExtractionPrompt):
                return replace(prompt, examples=self._examples(prompt.examples))
            if not callable(prompt) or isinstance(prompt, type):
                raise TypeError(
                    f"prompt must be an ExtractionPrompt or a function of a text and a schema, got {short_repr(prompt)}"
                )
            return cast(PromptFunction, prompt)
        for name in ("instructions", "system"):
            if parts[name] is not None and not isinstance(parts[name], str):
                raise TypeError(f"{name} must be a str, got {short_repr(parts[name])}")
        examples = self._examples(parts["examples"] or ())
        return ExtractionPrompt(parts["instructions"], examples, parts["system"])

    def _examples(self, given: object) -> tuple[tuple[str, str], ...]:
        """Return the examples with their records as JSON text. Each record must fit the constraint."""
        if not isinstance(given, (list, tuple)):
            raise TypeError(f"examples must be a list of pairs (text, record), got {short_repr(given)}")
        made = []
        for number, one in enumerate(given, 1):
            if not isinstance(one, (list, tuple)) or len(one) != 2 or not isinstance(one[0], str):
                raise TypeError(f"example {number} must be a pair of a text (str) and a record, got {short_repr(one)}")
            made.append((one[0], self._written(number, *one)))
        return tuple(made)

    def _written(self, number: int, shown: str, record: object) -> str:
        text = _as_json(number, record)
        try:
            self.bound(shown).parse(text)
        except InvalidTextError as problem:
            raise InvalidTextError(
                f"the record of example {number} does not fit the type: {problem}", text=text, place=problem.place
            ) from problem
        return text

    def bound(self, text: str) -> Constraint[Any]:
        """Return the constraint for a text: its verbatim strings must occur in the text."""
        if isinstance(self.source, (JsonSchema, PythonType)) and self.source.is_verbatim:
            return self.source.quoting(text)
        return self.source

    def request(self, text: str, *, chat: bool) -> GenerationRequest:
        """Return the request for a text. `chat`: as in `prompt`.

        An error of the text, or of the function `prompt`, is raised when the request runs.
        """
        try:
            return GenerationRequest(self.prompt(text, chat=chat), self.bound(text), source_text=text)
        except Exception as error:
            return GenerationRequest._failed(error)

    def prompt(self, text: str, *, chat: bool) -> str | Messages:
        """Return the prompt of a text: messages if `chat`, else a str.

        If the option `prompt` is a function, its result is the prompt in both cases.
        """
        if not isinstance(self._prompt, ExtractionPrompt):
            return self._prompt(text, self.schema)
        if chat:
            return self._prompt.messages(text, self.schema)
        return self._prompt.plain(text, self.schema)


def extraction_job(model: ModelBase, text: object, output: object, options: Mapping[str, Any]) -> Job:
    """Return the job that generates a record from a text, or from each of a list of texts."""
    check_model(model)
    made = Extraction(output, options)
    texts, single = texts_of(text)
    requests = [made.request(one, chat=model.tokenizer.is_instruct) for one in texts]
    return Job(model, requests[0] if single else requests, made.source, None, made.options)


def texts_of(text: object) -> tuple[Sequence[str], bool]:
    """Return the texts, and whether one str was given. Raises `TypeError` for anything else."""
    if isinstance(text, str):
        return [text], True
    if not isinstance(text, (list, tuple)) or not all(isinstance(one, str) for one in text):
        raise TypeError(f"text must be a str or a list of str, got {short_repr(text)}")
    return text, False


def extraction(model: ModelBase, text: str, output: object, **options: Any) -> GenerationRequest:
    """Return the request that `extract` runs for a text.

    `complete`, `stream` and other functions accept it as a prompt.

    Args:
        model: The model.
        text: The text.
        output: A type or a `JsonSchema`.
        **options: The options of `extract`.
    """
    check_model(model)
    made = Extraction(output, options)
    prompt = made.prompt(text, chat=model.tokenizer.is_instruct)
    return GenerationRequest(prompt, made.bound(text), source_text=text, **made.options)


def _marked(source: Constraint[Any], verbatim: object) -> Constraint[Any]:
    """Return the constraint; if requested, each string without pattern, const, enum and format must be verbatim."""
    if verbatim is False:
        return source
    if verbatim is not True and not isinstance(verbatim, Verbatim):
        raise TypeError(f"verbatim must be a bool or a Verbatim, got {short_repr(verbatim)}")
    if not isinstance(source, (JsonSchema, PythonType)):
        return source  # `_schema_of` raises the error
    return source.verbatim((Verbatim() if verbatim is True else verbatim).format)


def _as_json(number: int, record: object) -> str:
    """Return a record as JSON text in one line. Raises `TypeError` for a record that is not JSON data."""
    from pydantic_core import to_jsonable_python

    try:
        return json.dumps(to_jsonable_python(record, by_alias=True), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"the record of example {number} is no JSON data: {problem}") from None


def _schema_of(source: Constraint[Any]) -> Mapping[str, object]:
    """Return the JSON Schema of a record.

    Raises `InvalidConstraintError` for other constraints, such as a pattern, and for a schema that is a bool.
    """
    schema = getattr(source, "schema", None)
    if isinstance(schema, Mapping):
        return schema
    raise InvalidConstraintError(
        f"extract needs a type or a JsonSchema whose schema is an object, got {short_repr(source)}"
    )
