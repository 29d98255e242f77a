"""`guideway extract`: extracts typed records from texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from guideway.cli.inputs import CARRIED, check_page, load_output, read_examples, read_resources, read_texts
from guideway.cli.lines import ResultLines, described
from guideway.cli.options import (
    BatchOption,
    ContextOption,
    DeviceOption,
    DtypeOption,
    FrequencyOption,
    MinPOption,
    ModelOption,
    PresenceOption,
    RepetitionOption,
    ResourceOption,
    ResumeOption,
    SeedOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    load_model,
)
from guideway.cli.records import Extracted, extract_all, make_console, show_summary, show_table, some_failed
from guideway.generation import MAX_TOKENS, View
from guideway.generation.options import BATCH
from guideway.sampling import Sampler

__all__ = ["extract"]


def extract(
    text: Annotated[
        str,
        typer.Argument(
            help='The text; or a file with one text a line (.jsonl: under "text", with "id" and "meta" copied to the'
            " result); or - for stdin, with lines of either kind."
        ),
    ],
    type_name: Annotated[
        str | None, typer.Option("--type", help="The record's type: FILE.py:NAME or MODULE:NAME.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="The record's JSON Schema, instead of a type.")] = None,
    resource: ResourceOption = None,
    instructions: Annotated[
        str | None, typer.Option(help="What to extract and how, beyond the schema; a part of the prompt.")
    ] = None,
    examples: Annotated[
        Path | None, typer.Option(help='Examples for the prompt: a file of JSON lines with "text" and "record".')
    ] = None,
    verbatim: Annotated[bool, typer.Option("--verbatim", help="Every free string occurs in the text.")] = False,
    model: ModelOption = "tiny",
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    context_size: ContextOption = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="The maximum number of tokens of a record.")] = MAX_TOKENS,
    temperature: TemperatureOption = None,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    repetition_penalty: RepetitionOption = 1.0,
    presence_penalty: PresenceOption = 0.0,
    frequency_penalty: FrequencyOption = 0.0,
    seed: SeedOption = 0,
    batch_size: BatchOption = BATCH,
    compare: Annotated[bool, typer.Option(help="Also show the output without the constraint.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of a table.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with the texts, the spans of their values, and all probabilities."),
    ] = None,
    resume: ResumeOption = None,
) -> None:
    """Extract typed records from texts. Each record is guaranteed to fit its type."""
    output = load_output(type_name, schema, **({"resources": read_resources(resource)} if resource else {}))
    check_page(html)
    given = read_texts(text)
    as_json = as_json or resume is not None
    options: dict[str, Any] = {
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
        "seed": seed,
        "batch_size": batch_size,
        "progress": not given.single,
        "instructions": instructions,
        "verbatim": verbatim,
        **({"distributions": True, "logprobs": 3} if html is not None else {}),
        "examples": [] if examples is None else read_examples(examples),
    }
    rows: dict[int, Extracted] = {}
    failed = 0
    with (
        load_model(model, device, dtype, context_size) as loaded,
        ResultLines(resume, ("text", *CARRIED), "record") as results,
    ):
        left = results.left(given.lines)
        texts = [given.lines[number]["text"] for number in left]
        for number, found in extract_all(loaded, texts, output, options, compare=compare, positions=left):
            line: dict[str, Any] = given.lines[left[number]]
            if isinstance(found, Extracted):
                rows[left[number]] = found
                if as_json:
                    results.write(line, found.as_data())
            elif given.single and not as_json:
                raise found
            else:  # only this text has an error; other texts may have a record
                failed += 1
                if as_json:
                    results.write(line, {"error": described(found)})
                else:
                    typer.echo(json.dumps({**line, "error": described(found)}, ensure_ascii=False), err=True)
    if html is not None:
        View(loaded, [rows[number].found for number in sorted(rows)]).save(html)
    if not as_json:
        console = make_console()
        made = [rows[number] for number in sorted(rows)]
        show_table(console, f"{type_name or schema} by {model}", made)
        show_summary(console, made)
    if failed:
        where = "" if resume is None else f" of {resume}"
        some_failed(f'{failed} of {len(left)} texts have no record: see "error" in their lines{where}')
