"""`guideway generate`: streams text after a prompt, or writes JSON lines for many prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_jsonable_python

from guideway.batch.requests import CONSTRAINTS, OPTIONS_OF_LINES, constraint_of_line
from guideway.cli.inputs import CARRIED, MESSAGES, UsageError, check_page, is_lines_file, prompt_of, read_requests
from guideway.cli.lines import ResultLines, described
from guideway.cli.options import (
    BatchOption,
    ChoiceOption,
    ContextOption,
    DeviceOption,
    DtypeOption,
    FormatOption,
    FrequencyOption,
    GrammarOption,
    MinPOption,
    ModelOption,
    PresenceOption,
    ProfileOption,
    RegexOption,
    RepetitionOption,
    ResourceOption,
    ResumeOption,
    SchemaOption,
    SeedOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    TypeOption,
    constraint_of,
    load_model,
)
from guideway.cli.records import some_failed
from guideway.errors import GuidewayError
from guideway.generation import MAX_TOKENS, Generation, GenerationRequest, Options, View, stream
from guideway.generation.options import BATCH
from guideway.generation.plan import Job
from guideway.generation.streams import finished
from guideway.sampling import Sampler
from guideway.sessions import ModelBase

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
    resource: ResourceOption = None,
    profile: ProfileOption = None,
    model: ModelOption = "tiny",
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    n: Annotated[int | None, typer.Option(min=1, help="The number of texts per prompt, as JSON lines.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="The maximum number of tokens.")] = MAX_TOKENS,
    min_tokens: Annotated[
        int, typer.Option(min=0, help="The minimum number of tokens; fewer if a constraint allows no longer text.")
    ] = 0,
    temperature: TemperatureOption = None,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    repetition_penalty: RepetitionOption = 1.0,
    presence_penalty: PresenceOption = 0.0,
    frequency_penalty: FrequencyOption = 0.0,
    seed: SeedOption = 0,
    batch_size: BatchOption = BATCH,
    stop: Annotated[list[str] | None, typer.Option(help="End free text before this string.")] = None,
    bad_words: Annotated[list[str] | None, typer.Option(help="Never write this string.")] = None,
    token_healing: Annotated[
        bool, typer.Option("--token-healing", help="Let the model write the prompt's last token again.")
    ] = False,
    logprobs: Annotated[
        int | None, typer.Option(min=0, help="Return probabilities, with this number of alternatives.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON instead of the text.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the probabilities of tokens.")] = None,
    resume: ResumeOption = None,
) -> None:
    """Continue a prompt, with or without a constraint."""
    many = is_lines_file(prompt)
    as_lines = many or as_json or n is not None or resume is not None
    if logprobs is not None and not as_lines and html is None:
        raise UsageError("--logprobs needs --json (or --html), because plain text has no place for them")
    if n is not None and temperature is None:
        temperature = 1.0
    options: Options = {
        "sampler": Sampler(
            temperature or 0.0,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
        ),
        "max_tokens": max_tokens,
        "min_tokens": min_tokens,
        "seed": seed,
        "stop": stop or (),
        "bad_words": bad_words or (),
        "token_healing": token_healing,
        "logprobs": 3 if html is not None and logprobs is None else logprobs,
        "batch_size": batch_size,
        "progress": many,
        "return_exceptions": many,
    }
    output = constraint_of(
        regex=regex,
        type_name=type_name,
        schema=schema,
        choice=choice,
        format_name=format_name,
        grammar=grammar,
        resources=resource,
        profile=profile,
    )
    lines = read_requests(prompt, (*CONSTRAINTS, *OPTIONS_OF_LINES)) if many else [{"prompt": prompt}]
    check_page(html)
    with load_model(model, device, dtype, context_size) as loaded:
        if not as_lines and html is None:
            for piece in stream(loaded, prompt, output, **options):
                typer.echo(piece, nl=False)
            typer.echo()
            return
        shown: dict[tuple[int, int], Generation[Any]] = {}
        count = failed = 0
        fields = ("prompt", MESSAGES, *CONSTRAINTS, *OPTIONS_OF_LINES, *CARRIED)
        with ResultLines(resume, fields, "finish_reason", n or 1) as results:
            left = results.left(lines)
            for number, sample, one in _results(loaded, lines, left, output, n, options):
                count += 1
                if isinstance(one, Generation):
                    shown[number, sample] = one
                else:
                    failed += 1
                if as_lines:
                    results.write(lines[number], _as_json(one, logprobs))
        if html is not None:
            View(loaded, [shown[place] for place in sorted(shown)]).save(html)
            typer.echo(f"written: {html}", err=True)
            for one in () if as_lines else shown.values():
                typer.echo(one.text)
        if failed:
            some_failed(f'{failed} of {count} results are errors: see "error" in their lines')


def _results(
    model: ModelBase, lines: list[dict[str, Any]], left: list[int], output: Any, n: int | None, options: Options
) -> Iterator[tuple[int, int, Generation[Any] | Exception]]:
    """Run the requests of the lines whose indices are in `left`. Yields each result when it is complete.

    Yields:
        The index of the line, the number of the sample, and its result or error.
    """
    requests = [(number, _request(lines[number])) for number in left]
    for number, one in requests:
        if isinstance(one, Exception):
            for sample in range(n or 1):
                yield number, sample, one
    good = [(number, one) for number, one in requests if isinstance(one, GenerationRequest)]
    if not good:
        return
    job = Job(model, [one for _, one in good], output, n, options)
    job.positions = numbers = [number for number, _ in good]
    for number, sample, found in finished(job):
        yield numbers[number], sample, found


def _request(line: dict[str, Any]) -> GenerationRequest | Exception:
    """Return the request of a line of the file, or the error of the line.

    A line has "prompt" or "messages", and optionally a constraint and options.
    """
    own: Any = {name: line[name] for name in OPTIONS_OF_LINES if name in line}
    try:
        constraint = constraint_of_line(line)
        return (
            GenerationRequest(prompt_of(line), **own)
            if constraint is None
            else GenerationRequest(prompt_of(line), constraint, **own)
        )
    except (GuidewayError, ValueError, TypeError) as error:
        return error


def _as_json(one: Generation[Any] | Exception, logprobs: int | None) -> dict[str, Any]:
    if isinstance(one, Exception):
        return {"error": described(one)}
    made = {
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
