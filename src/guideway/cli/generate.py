"""`guideway generate`: streams text after a prompt, or writes JSON lines for many prompts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from guideway.cli.inputs import UsageError, is_lines_file, read_requests
from guideway.cli.options import (
    CONSTRAINTS,
    ChoiceOption,
    FormatOption,
    GrammarOption,
    ModelOption,
    RegexOption,
    SchemaOption,
    TypeOption,
    constraint_of,
    row_constraint,
)
from guideway.cli.records import some_failed
from guideway.errors import GuidewayError
from guideway.generation import MAX_TOKENS, Generation, GenerationRequest, Options, View, complete, stream
from guideway.loading import load
from guideway.sampling import Sampler

__all__ = ["generate"]


def generate(
    prompt: Annotated[
        str, typer.Argument(help='The prompt, verbatim; or a .jsonl file (or -) with "prompt" in each line.')
    ],
    regex: RegexOption = None,
    type_name: TypeOption = None,
    schema: SchemaOption = None,
    choice: ChoiceOption = None,
    format_name: FormatOption = None,
    grammar: GrammarOption = None,
    model: ModelOption = "tiny",
    n: Annotated[int | None, typer.Option(min=1, help="So many texts per prompt, as JSON lines.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="At most so many tokens.")] = MAX_TOKENS,
    min_tokens: Annotated[int, typer.Option(min=0, help="No end before so many tokens.")] = 0,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0: greedy, the default for one text.")] = None,
    top_p: Annotated[float, typer.Option(help="Sample from the most probable tokens of this mass.")] = 1.0,
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: tokens that were there come less.")] = 1.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same text.")] = 0,
    stop: Annotated[list[str] | None, typer.Option(help="End free text in front of this string.")] = None,
    bad_words: Annotated[list[str] | None, typer.Option(help="Never write this string.")] = None,
    token_healing: Annotated[
        bool, typer.Option("--token-healing", help="Let the model write the prompt's last token again.")
    ] = False,
    logprobs: Annotated[int | None, typer.Option(min=0, help="Probabilities, with so many alternatives.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON instead of the text.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with the tokens' probabilities, too.")] = None,
) -> None:
    """Continue a prompt, with or without a constraint."""
    if n is not None and temperature is None:
        temperature = 1.0
    options: Options = {
        "sampler": Sampler(temperature or 0.0, top_p=top_p, repetition_penalty=repetition_penalty),
        "max_tokens": max_tokens,
        "min_tokens": min_tokens,
        "seed": seed,
        "stop": stop or (),
        "bad_words": bad_words or (),
        "token_healing": token_healing,
        "logprobs": 3 if html is not None and logprobs is None else logprobs,
        "progress": is_lines_file(prompt),
        "return_exceptions": is_lines_file(prompt),
    }
    many = is_lines_file(prompt)
    output = constraint_of(
        regex=regex, type_name=type_name, schema=schema, choice=choice, format_name=format_name, grammar=grammar
    )
    lines = read_requests(prompt, (*CONSTRAINTS, *_OWN)) if many else [{"prompt": prompt}]
    if html is not None and not html.parent.is_dir():  # checked before anything runs
        raise UsageError(f"--html {html}: the folder {html.parent} does not exist")
    with load(model) as loaded:
        if not (many or as_json or n or html):
            for piece in stream(loaded, prompt, output, **options):
                typer.echo(piece, nl=False)
            typer.echo()
            return
        requests = [_request(line) for line in lines]
        good = [request for request in requests if isinstance(request, GenerationRequest)]
        made: list[Any] = complete(loaded, good, output, n=n, **options) if good else []
        results = iter(made)
        found = [next(results) if isinstance(one, GenerationRequest) else one for one in requests]
        flat = [(line, one) for line, group in zip(lines, found, strict=True) for one in _listed(group)]
        if html is not None:
            View(loaded, [one for _, one in flat if isinstance(one, Generation)]).save(html)
            typer.echo(f"written: {html}", err=True)
        for line, one in flat:
            plain = not (many or as_json or n) and isinstance(one, Generation)
            typer.echo(one.text if plain else json.dumps(_as_json(line, one, logprobs), ensure_ascii=False))
        failed = sum(isinstance(one, Exception) for _, one in flat)
        if failed:
            some_failed(f'{failed} of {len(flat)} results are errors: see "error" in their lines')


_OWN = (
    "max_tokens",
    "min_tokens",
    "seed",
    "stop",
    "bad_words",
    "token_healing",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
)


def _request(line: dict[str, Any]) -> GenerationRequest | Exception:
    """Return the request of a line of the file ("prompt", and optionally a constraint and options), or its error."""
    own: Any = {name: line[name] for name in _OWN if name in line}
    try:
        constraint = row_constraint(line)
        return (
            GenerationRequest(line["prompt"], **own)
            if constraint is None
            else GenerationRequest(line["prompt"], constraint, **own)
        )
    except (GuidewayError, ValueError, TypeError) as error:
        return error


def _listed(group: Any) -> list[Any]:
    return group if isinstance(group, list) else [group]


def _as_json(line: dict[str, Any], one: Generation[Any] | Exception, logprobs: int | None) -> dict[str, Any]:
    if isinstance(one, Exception):
        message = re.sub(r"^prompt \d+ of \d+: ", "", str(one))  # each message is on its prompt's own line
        return {**line, "error": f"{type(one).__name__}: {message}"}
    made = {
        **line,
        "text": one.text,
        "value": to_jsonable_python(one.value),
        "tokens": len(one.tokens),
        "forced": one.forced,
        "finish_reason": one.finish_reason,
        "tokens_per_second": round(one.tokens_per_second, 1),
    }
    if one.truncation is not None:
        made["truncation"] = one.truncation._asdict()
    if one.stopped_by is not None:
        made["stopped_by"] = one.stopped_by
    if logprobs is not None:  # the log-probabilities may be only for the HTML page
        made["logprob"] = one.logprob
        made["steps"] = [
            step._asdict() | {"alternatives": [a._asdict() for a in step.alternatives]} for step in one.steps
        ]
    return made
