"""Extractions with a budget, compared with a second run without it that uses the same random numbers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import guideway as gw
from guideway.generation import Generation, GenerationRequest, Truncation, acomplete, complete, extraction
from guideway.sampling import Mirostat, Sampler

__all__ = ["BEYOND", "disagreement", "extractions", "with_bans"]


@dataclasses.dataclass
class Talk:
    """A record with strings in a list."""

    title: str
    speakers: list[str]
    minutes: int


@dataclasses.dataclass
class Order:
    """A record with nested records."""

    items: list[dict[str, int]]
    paid: bool
    state: Literal["new", "sent", "returned"]


OUTPUTS: tuple[Any, ...] = (
    Talk,
    Order,
    list[Talk],
    dict[str, list[int]],
    gw.JsonSchema({"type": "object", "properties": {"a/b": {"type": "array", "items": {"type": "string"}}}}),
    gw.JsonSchema({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True}),
)
TEXTS = (
    "Nina Hartmann and Paul Okafor speak for 45 minutes about glaciers.",
    "Order 17: two lamps at 30 each, one table at 120. Paid on Monday, sent on Tuesday.",
    "The museum opened in 1987.",
)
SAMPLERS = (
    Sampler(),
    Sampler(temperature=1.0),
    Sampler(temperature=1.6, top_p=0.95),
    Sampler(temperature=0.9, min_p=0.02, repetition_penalty=1.1),
    Sampler(temperature=1.0, mirostat=Mirostat(target=4.0)),
)
BEYOND = 80
"""The additional tokens of the second run. It then takes long forced texts as a run without any limit does."""


def extractions(model: gw.Model, seed: int) -> tuple[list[Generation[Any]], list[Generation[Any]]]:
    """Run one to four extractions with random budgets in a random way; return them and their second runs."""
    rng = random.Random(seed)
    requests, free = [], []
    for _ in range(rng.choice((1, 1, 2, 4))):
        output = rng.choice(OUTPUTS)
        source = gw.constraints.of(output)
        least = gw.compile(source, model.vocabulary).matcher().min_tokens_to_complete()
        options: dict[str, Any] = {"sampler": rng.choice(SAMPLERS), "seed": rng.randrange(1000)}
        if rng.random() < 0.2:
            options["logprobs"] = 0
        if rng.random() < 0.2:
            options["min_tokens"] = rng.randrange(least)
        budget = least + rng.choice((0, 1, 2, rng.randrange(8), rng.randrange(60)))
        prompt = extraction(model, rng.choice(TEXTS), source).prompt
        requests.append(GenerationRequest(prompt, source, max_tokens=budget, **options))
        options["max_tokens"] = budget + BEYOND
        free.append(GenerationRequest(prompt, source, allow_truncation=True, **options))
    way = rng.choice(("complete", "stream", "async", "one by one"))
    found: list[Generation[Any]]
    if way == "stream":
        stream = gw.stream(model, requests)
        for _ in stream:
            pass
        found = stream.results
    elif way == "async":
        found = asyncio.run(acomplete(model, requests))
    elif way == "one by one":
        found = [complete(model, [one])[0] for one in requests]
    else:
        found = complete(model, requests)
    return found, complete(model, free)


def disagreement(found: Generation[Any], free: Generation[Any], model: gw.Model, tally: Counter[str]) -> str | None:
    """Return what is wrong with the `finish_reason` or the `truncation` of a generation; None: nothing."""
    index = next((i for i, pair in enumerate(zip(found.tokens, free.tokens, strict=False)) if len(set(pair)) > 1), None)
    if index is None:
        tally["same"] += 1
        if found.tokens != free.tokens or (found.finish_reason, found.truncation) != ("stop", None):
            return f"{found.finish_reason} {found.truncation} for the text of the run without a budget"
        return None
    tally["completed early"] += 1
    has_value = found.value is not None or json.loads(found.text) is None
    if found.finish_reason != "length" or not isinstance(found.truncation, Truncation) or not has_value:
        return f"{found.finish_reason} {found.truncation}, and token {index} is another"
    before = model.vocabulary.bytes_of(found.tokens[:index]).decode("utf-8", "ignore")
    wanted = ("completed_early", "max_tokens", index, free.tokens[index], len(before))
    kind, by, at, token_id, place, characters = found.truncation
    if (kind, by, at, token_id, characters) != wanted:
        return f"{found.truncation} is not {wanted}"
    assert place is not None
    tally["with a place below the root"] += bool(place)
    return None if _resolves(found.text, place) else f"no value at {place!r} of {found.text}"


BANS = ("e", " the", "a", " ", "in", "s", '", "', "0", "on", "1")
FORMS: tuple[Any, ...] = (
    gw.Regex("[a-z ]{2,60}"),
    gw.Regex("([a-z]{1,8} )*[a-z]{1,8}[.!]"),
    gw.JsonSchema({"type": "array", "items": {"type": "string"}}),
    gw.JsonSchema({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}),
    gw.JsonSchema({"type": "array", "items": {"enum": ["one", "two", "three", "four"]}, "uniqueItems": True}),
)


def with_bans(model: gw.Model, seed: int, tally: Counter[str]) -> str | None:
    """Compare a text with banned strings with the run without a budget, and with `on_truncation="raise"`."""
    rng = random.Random(seed)
    form = rng.choice(FORMS)
    options: dict[str, Any] = {
        "sampler": rng.choice(SAMPLERS),
        "seed": rng.randrange(100_000),
        "bad_words": rng.sample(BANS, rng.randrange(1, 4)),
        "logprobs": rng.choice((None, None, None, 1)),
    }
    budget = gw.compile(form, model.vocabulary).matcher().min_tokens_to_complete() + rng.randrange(1, 14)
    prompt = rng.choice(("Names: ", "The museum ", "x"))
    try:
        found = complete(model, prompt, form, max_tokens=budget, **options)
        free = complete(model, prompt, form, max_tokens=budget + BEYOND, allow_truncation=True, **options)
    except (gw.errors.UnsatisfiableError, gw.errors.LimitExceededError):
        return None
    count = len(found.tokens)
    if found.tokens == free.tokens[:count]:
        tally["same"] += 1
        wanted = None
    else:
        tally["completed early"] += 1
        index = next(i for i, pair in enumerate(zip(found.tokens, free.tokens, strict=False)) if len(set(pair)) > 1)
        wanted = (index, free.tokens[index])
    got = None if found.truncation is None else (found.truncation.token_index, found.truncation.token_id)
    if got != wanted or found.finish_reason != ("stop" if wanted is None else "length"):
        return f"{found.finish_reason} {found.truncation}, wanted {wanted}"
    try:
        strict = complete(model, prompt, form, max_tokens=budget, on_truncation="raise", **options)
    except gw.errors.TruncatedError as error:
        partial = error.generation
        if wanted is None or (partial.truncation, partial.tokens) != (found.truncation, found.tokens[: wanted[0]]):
            return f"raised {error} with {partial.tokens}, wanted {wanted}"
    else:
        if wanted is not None or strict.tokens != found.tokens or len(strict.steps) != len(found.steps):
            return f"not raised, wanted {wanted}"
    return None


def _resolves(text: str, place: str) -> bool:
    """Return whether the pointer names a value of the text."""
    here: object = json.loads(text)
    names: Sequence[str] = [name.replace("~1", "/").replace("~0", "~") for name in place.split("/")[1:]]
    for name in names:
        if isinstance(here, list) and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        elif isinstance(here, dict) and name in here:
            here = here[name]
        else:
            return False
    return True
