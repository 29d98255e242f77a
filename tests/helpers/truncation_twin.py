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

__all__ = ["BEYOND", "disagreement", "extractions"]


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
        prompt = extraction(model, rng.choice(TEXTS), source)
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
