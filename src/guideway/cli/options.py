"""Options that several commands share: a model, and a constraint in one of several forms."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from guideway.cli.inputs import UsageError, load_output, read_file, read_resources
from guideway.constraints import Choice, Ebnf, Format, Gbnf, Lark, Regex
from guideway.errors import ConstraintError, InvalidConstraintError
from guideway.generation import Model
from guideway.generation.protocol import AnyModel, GeneratingModel
from guideway.loading import is_remote, load

__all__ = [
    "MODELS",
    "BatchOption",
    "ChoiceOption",
    "ContextOption",
    "DeviceOption",
    "DtypeOption",
    "FormatOption",
    "FrequencyOption",
    "GrammarOption",
    "MinPOption",
    "ModelOption",
    "PresenceOption",
    "ProfileOption",
    "RegexOption",
    "RepetitionOption",
    "ResourceOption",
    "ResumeOption",
    "SchemaOption",
    "SeedOption",
    "TemperatureOption",
    "TopKOption",
    "TopPOption",
    "TypeOption",
    "constraint_of",
    "load_any_model",
    "load_model",
]

MODELS = '"tiny", "onnx:FOLDER", "hf:NAME", "gguf:FILE", "mlx:FOLDER"'

ModelOption = Annotated[str, typer.Option(help=f"{MODELS}.")]
TypeOption = Annotated[str | None, typer.Option("--type", help="The text fits a type: FILE.py:NAME or MODULE:NAME.")]
SchemaOption = Annotated[Path | None, typer.Option(help="The text fits a JSON Schema in a file; - for stdin.")]
RegexOption = Annotated[str | None, typer.Option(help="The text fits a regular expression.")]
ChoiceOption = Annotated[list[str] | None, typer.Option(help="The text is one of these; give it for each.")]
FormatOption = Annotated[str | None, typer.Option("--format", help='The text fits a format: "date", "email", "uuid" …')]
GrammarOption = Annotated[Path | None, typer.Option(help="The text fits a grammar: FILE.lark, FILE.gbnf or FILE.ebnf.")]

DeviceOption = Annotated[str | None, typer.Option(help='The device of the model: "cpu", "cuda" …')]
DtypeOption = Annotated[str | None, typer.Option(help='The type of the weights: "float32", "bfloat16" …')]
ContextOption = Annotated[int | None, typer.Option(min=1, help="The maximum number of tokens of a sequence.")]
ResourceOption = Annotated[
    list[str] | None,
    typer.Option(help="A document that $ref of the schema refers to: FILE, or URI=FILE; give it for each."),
]
ResumeOption = Annotated[
    Path | None,
    typer.Option(help="Write the JSON lines to this file. Results that it has are kept; their rows do not run again."),
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same text.")]
TemperatureOption = Annotated[float | None, typer.Option(min=0.0, help="0: greedy, the default unless --n is given.")]
TopKOption = Annotated[int, typer.Option(min=0, help="Draw from the k most probable tokens; 0: all.")]
TopPOption = Annotated[
    float, typer.Option(help="Draw from the most probable tokens with this total probability; 1: all.")
]
MinPOption = Annotated[float, typer.Option(help="Exclude tokens below this share of the highest probability; 0: none.")]
RepetitionOption = Annotated[float, typer.Option(help="Above 1: tokens that occurred are less probable.")]
PresenceOption = Annotated[float, typer.Option(help="Subtracted from the logit of each token that occurred.")]
FrequencyOption = Annotated[float, typer.Option(help="Subtracted from a logit per occurrence of its token.")]
BatchOption = Annotated[int, typer.Option(min=1, help="The maximum number of sequences that run together.")]
ProfileOption = Annotated[
    str | None, typer.Option(help='How JSON of a schema is written: "generation" (default) or "exact".')
]

_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY"}
"""By the prefix of a model's name: the environment variable with the API key."""

_NOTATIONS = {".lark": Lark, ".gbnf": Gbnf, ".ebnf": Ebnf}


def constraint_of(
    *,
    regex: str | None,
    type_name: str | None,
    schema: Path | None,
    choice: list[str] | None,
    format_name: str | None,
    grammar: Path | None,
    resources: list[str] | None = None,
    profile: str | None = None,
) -> Any:
    """Return the constraint that the options of a command describe; None: no constraint.

    Raises:
        ConstraintError: The constraint is not valid, or there are several.
        UsageError: `resources` or `profile` is given without `schema`, or the type cannot be loaded.
        InvalidFileError: A file cannot be read.
    """
    of_schema: dict[str, Any] = {}
    if resources:
        of_schema["resources"] = read_resources(resources)
    if profile is not None:
        of_schema["profile"] = profile
    if of_schema and schema is None:
        raise UsageError(f"--{next(iter(of_schema)).removesuffix('s')} needs --schema")
    given = {
        "--regex": regex is not None,
        "--type": type_name is not None,
        "--schema": schema is not None,
        "--choice": bool(choice),
        "--format": format_name is not None,
        "--grammar": grammar is not None,
    }
    if sum(given.values()) > 1:
        both = " and ".join(name for name, there in given.items() if there)
        raise InvalidConstraintError(f"only one of {', '.join(given)} is allowed, got {both}")
    if regex is not None:
        return Regex(regex)
    if choice:
        return Choice(choice)
    if format_name is not None:
        return Format(format_name)
    if grammar is not None:
        return _grammar(grammar)
    return load_output(type_name, schema, **of_schema) if any(given.values()) else None


def load_model(name: str, device: str | None, dtype: str | None, context_size: int | None) -> Model:
    """Load a local model with the options of a command.

    Raises:
        UsageError: The name is that of a model served by an API.
        GuidewayError: As in `guideway.load`.
    """
    if is_remote(name):
        raise UsageError(f"this command needs a local model ({MODELS}), and {name} is served by an API")
    return load(name, device=device, dtype=dtype, context_size=context_size)


@contextmanager
def load_any_model(name: str, base_url: str | None, dialect: str | None, **options: Any) -> Iterator[AnyModel]:
    """Load a local model or a model served by an API. A local model is closed when the block ends.

    Args:
        name: The name of the model.
        base_url: The URL of the endpoint of a model served by an API; None: that of the SDK.
        dialect: The dialect of the endpoint; None: guessed from the URL.
        **options: Options of `guideway.load`; those that are None are left out.

    Raises:
        UsageError: `base_url` or `dialect` is given for a local model.
    """
    given: Any = {key: value for key, value in options.items() if value is not None}
    kind = name.partition(":")[0]
    if base_url is not None and kind in _KEYS and not os.environ.get(_KEYS[kind]):
        os.environ[_KEYS[kind]] = "-"  # the server may need no key, but the SDK requires one
    remote = {key: value for key, value in (("base_url", base_url), ("dialect", dialect)) if value is not None}
    if remote and not is_remote(name):
        raise UsageError(f"--{next(iter(remote)).replace('_', '-')} is for models served by an API, not for {name}")
    model: Any = load(name, **given, **remote)
    if isinstance(model, GeneratingModel):
        yield model
        return
    with model:
        yield model


def _grammar(path: Path) -> Any:
    notation = _NOTATIONS.get(path.suffix)
    if notation is None:
        raise InvalidConstraintError(f"{path}: the name of a grammar file must end in {', '.join(_NOTATIONS)}")
    try:
        return notation(read_file(path))
    except ConstraintError as error:
        raise type(error)(f"{path}: {error.args[0]}", error.place) from error
