"""`make samples`: texts at temperature 2, validated by the `jsonschema` package; none may be invalid or truncated.

    python -m tests.campaigns.samples [--count 10000] [--only tree,person]

Twenty schemas, two models (the bundled one, and one with constant logits), and four budgets each: the minimum, a few
tokens more, twice as many, and plenty.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import jsonschema
import numpy as np
from rich.console import Console
from rich.table import Table

import guideway as gw
from guideway.generation import complete
from guideway.testing import ConstantModel
from tests.property.gallery import GALLERY

PROMPT = "Ada Lovelace, 36, mathematician, lives in 12 Park Lane, London; met Grace Hopper on 9 December 1906."
PLENTY = 160


@dataclass
class Outcome:
    """What came of one schema with one model."""

    schema: str
    model: str
    texts: int = 0
    tokens: int = 0
    forced: int = 0
    seconds: float = 0.0
    invalid: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)


def models(tiny: gw.Model | None = None) -> list[gw.Model]:
    """The bundled model, and one without weights over its vocabulary: uneven, but the same after every text."""
    tiny = tiny or gw.load("tiny")
    logits = np.random.default_rng(1).normal(0, 2, len(tiny.vocabulary))
    return [tiny, ConstantModel(tiny.tokenizer, logits)]


def budgets(model: gw.Model, source: gw.JsonSchema) -> list[int]:
    """The smallest that there is, and larger ones."""
    least = gw.compile(source, model.vocabulary).matcher().min_tokens_to_complete()
    return [least, least + 3, 2 * least + 8, max(PLENTY, least)]


def fault(schema: object, text: str) -> str | None:
    """Why a text is invalid, by the `jsonschema` package."""
    checker = jsonschema.FormatChecker(["date"])
    try:
        made = json.loads(text)
    except ValueError as error:
        return str(error)
    error = next(jsonschema.Draft202012Validator(schema, format_checker=checker).iter_errors(made), None)
    return None if error is None else error.message


def drawn(model: gw.Model, name: str, count: int, seed: int) -> Outcome:
    """`count` texts of a schema, spread over the budgets."""
    outcome = Outcome(name, model.name)
    source = gw.JsonSchema(GALLERY[name])
    for turn, budget in enumerate(budgets(model, source)):
        samples = count // 4 + (turn < count % 4)
        if not samples:
            continue
        start = time.perf_counter()
        made = complete(model, PROMPT, source, n=samples, temperature=2.0, max_tokens=budget, seed=seed + turn)
        outcome.seconds += time.perf_counter() - start
        for one in made:
            outcome.texts += 1
            outcome.tokens += len(one.tokens)
            outcome.forced += one.forced
            problem = fault(GALLERY[name], one.text)
            if problem is not None:
                outcome.invalid.append(f"{budget} tokens: {one.text}: {problem}")
            if (one.truncation is not None and one.truncation.kind == "cut") or len(one.tokens) > budget:
                outcome.cut.append(f"{budget} tokens: {one.text}: {one.finish_reason}")
    return outcome


def run(given: list[gw.Model], count: int, names: list[str], seed: int = 0) -> Iterator[Outcome]:
    """All schemas with all models, `count` texts in all."""
    pairs = [(model, name) for model in given for name in names]
    for n, (model, name) in enumerate(pairs):
        yield drawn(model, name, count // len(pairs) + (n < count % len(pairs)), seed + 10 * n)


def table(outcomes: list[Outcome]) -> Table:
    """What came of it, a row per schema and model."""
    made = Table(title="Texts at temperature 2, judged by jsonschema")
    for head in ("schema", "model", "texts", "invalid", "cut", "tokens", "forced", "tokens/s"):
        made.add_column(head, justify="left" if head in ("schema", "model") else "right")
    for o in outcomes:
        rate = f"{o.tokens / o.seconds:,.0f}" if o.seconds else ""
        cells = (o.texts, len(o.invalid), len(o.cut), o.tokens, o.forced)
        made.add_row(o.schema, o.model, *map(str, cells), rate)
    return made


def main() -> int:
    """1 where a text is invalid or cut."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(GALLERY))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start, console, outcomes = time.perf_counter(), Console(), []
    for outcome in run(models(), given.count, given.only.split(","), given.seed):
        outcomes.append(outcome)
        for line in outcome.invalid[:3] + outcome.cut[:3]:
            console.print(f"{outcome.schema} ({outcome.model}): {line}", style="red", markup=False)
    console.print(table(outcomes))
    texts, bad = sum(o.texts for o in outcomes), sum(len(o.invalid) + len(o.cut) for o in outcomes)
    console.print(f"{texts} texts, {bad} invalid or cut, {time.perf_counter() - start:.0f} s")
    return 1 if bad or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
