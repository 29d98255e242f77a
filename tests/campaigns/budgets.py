"""`make budgets`: generation from random schemas over all keywords, with minimal and larger budgets.

    python -m tests.campaigns.budgets [--count 2000] [--seed 0]

`--count` is the number of satisfiable and supported schemas; other schemas are counted by reason. Every output must be
complete, parse, be valid by the `jsonschema` package, and use no more tokens than its budget. Its `finish_reason` and
`truncation` must agree with a second run without a budget that uses the same random numbers (runs that exceed a limit of
the parser are counted). A budget one token below the minimum must be refused before the model runs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import numpy as np
from rich.progress import Progress

import guideway as gw
from guideway.generation import Model, complete
from guideway.testing import ConstantModel, ToyEngine
from guideway.tokenizers import Tokenizer
from tests.helpers.truncation_twin import BEYOND, disagreement
from tests.property.judge import Judge
from tests.property.keywords import Drawer

from .walks import TOKENS, VOCABULARY, Tally, compiled


def models() -> list[Model]:
    """Returns a model with constant logits, and one whose logits depend on the text."""
    uneven = np.random.default_rng(1).normal(0, 2, len(TOKENS))
    return [ConstantModel(VOCABULARY, uneven), Model(ToyEngine(len(TOKENS), seed=3), Tokenizer.of(VOCABULARY))]


def check(given: list[Model], seed: int, tally: Tally) -> None:
    """One schema under a handful of budgets."""
    rng = random.Random(seed)
    schema = Drawer(rng).document()
    tally.counts["schemas"] += 1
    profile = "generation" if rng.random() < 0.6 else "exact"
    automaton = compiled(schema, profile, tally)
    if automaton is None:
        return
    tally.counts["generated"] += 1
    source, judge = gw.JsonSchema(schema, profile=profile, unknown_keywords="ignore"), Judge(schema)  # type: ignore[arg-type]  # one of two
    least, model = automaton.matcher().min_tokens_to_complete(), given[seed % len(given)]
    if least > 1:
        try:
            gw.generate(model, "x", source, max_tokens=least - 1)
            tally.fault("fewer tokens than the fewest were enough", schema, seed)
        except gw.errors.BudgetTooSmallError:
            tally.counts["refused budgets"] += 1
    for budget in (least, least + 1, least + rng.randrange(2, 6), 2 * least + 8, least + 60):
        options = {"max_tokens": budget, "temperature": rng.choice((0.0, 1.0, 2.5)), "seed": seed}
        try:
            found = complete(model, "x", source, **options)  # type: ignore[call-overload]  # as a dict
        except gw.GuidewayError as error:
            tally.fault(f"{type(error).__name__} within {budget}: {error}", schema, seed)
            continue
        tally.counts["outputs"] += 1
        tally.counts["at the fewest"] += len(found.tokens) == budget == least
        is_cut = found.truncation is not None and found.truncation.kind == "cut"
        if is_cut or len(found.tokens) > budget:
            tally.fault(f"{found.finish_reason} after {len(found.tokens)} of {budget}", schema, seed, found.text)
        try:
            free = complete(model, "x", source, **{**options, "max_tokens": budget + BEYOND, "allow_truncation": True})  # type: ignore[call-overload]  # as a dict
        except gw.errors.LimitExceededError:  # its text is longer, and can have too many readings
            tally.counts["no second run"] += 1
        else:
            if problem := disagreement(found, free, model, tally.counts):
                tally.fault(f"truncation within {budget}: {problem}", schema, seed, found.text)
        try:
            if not judge(found.text):
                tally.fault(f"invalid within {budget}", schema, seed, found.text)
        except ArithmeticError:
            tally.counts["not judged"] += 1
        except ValueError as error:
            tally.fault(f"no JSON within {budget}: {error}", schema, seed, found.text)


def main() -> int:
    """1 where an output is cut, invalid, or over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given, tally, start = parser.parse_args(), Tally(), time.perf_counter()
    both = models()
    with Progress() as bar:
        task, seed = bar.add_task("schemas", total=given.count), given.seed
        while tally.counts["generated"] < given.count:
            check(both, seed, tally)
            seed += 1
            bar.update(task, completed=tally.counts["generated"])
    print(dict(tally.counts), f"{time.perf_counter() - start:.0f} s")
    for fault in tally.faults[:20]:
        print(fault)
    return 1 if tally.faults or not tally.counts["outputs"] else 0


if __name__ == "__main__":
    sys.exit(main())
