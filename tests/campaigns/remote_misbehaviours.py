"""Scripted misbehaviours: every call of the official SDKs ends in a valid value or one of our errors, with the right usage.

python -m tests.campaigns.remote_misbehaviours --count 10000
python -m tests.campaigns.remote_misbehaviours --formatter 500
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
from google import genai
from mistralai.client import Mistral

import guideway as gw
from guideway.errors import GuidewayError
from guideway.remote import RemoteModel, Usage, remote
from guideway.testing import Answer, Provider


@dataclass
class Event:
    """The type of the values."""

    title: str
    seats: int
    tags: list[str]
    note: str | None = None


TEXT = '{"title": "Talk é😀", "seats": 3, "tags": ["a", "b"], "note": null}'


def models(url: str, **options: Any) -> list[RemoteModel]:
    """Return a model for each SDK."""
    key = "sk-0123456789abcdef"
    chat = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    return [
        remote(chat, "m", dialect="openai", **options),
        remote(chat, "m", dialect="unknown", **options),
        remote(chat, "m", dialect="vllm", **options),
        remote(chat, "m", dialect="openai", api="responses", **options),
        remote(anthropic.Anthropic(base_url=url, api_key=key, max_retries=0), "m", dialect="anthropic", **options),
        remote(genai.Client(api_key=key, http_options={"base_url": url}), "m", dialect="google", **options),
        remote(Mistral(api_key=key, server_url=url), "m", dialect="mistral", **options),
    ]


def misbehaviour(draw: random.Random) -> Answer:
    """Return a random answer."""
    text = TEXT
    kind = draw.randrange(12)
    if kind == 0:
        return Answer(status=draw.choice([400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 529]))
    if kind == 1:
        return Answer(finish="refusal", text=draw.choice(["", "I cannot do that."]))
    if kind == 2:
        text = f"Sure!\n```json\n{text}\n```\nAnything else?"
    elif kind == 3:
        text = text[: draw.randrange(len(text))]
    elif kind == 4:
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice('{}[]",:x0 \n\\é') + text[at + draw.randrange(2) :]
    elif kind == 5:
        text = text.replace("3", draw.choice(['"3"', "3.5", "null", "many", "1e400", "-"]))
    elif kind == 6:
        text = draw.choice(["", " ", "null", "[]", "{}", '{"a": 1}', "hello", "[" * 1000, '{"title":' * 50])
    answer = Answer(text, chunk=draw.choice([1, 3, 8, 100]), split_bytes=draw.choice([0, 0, 1, 7]))
    if kind == 7:
        answer = replace(answer, drop_after=draw.randrange(4))
    if kind == 8:
        answer = replace(answer, finish=draw.choice(["", "length"]), text=text[: draw.randrange(len(text))])
    if kind == 9:
        answer = replace(answer, reasoning="Let me think: {")
    if kind == 10:
        answer = replace(answer, usage="never")
    return replace(answer, output_tokens=draw.randrange(1, 50), input_tokens=draw.randrange(1, 50))


def campaign(count: int, seed: int) -> int:
    """Run misbehaviours. Returns the number of failures."""
    draw, found, failures = random.Random(seed), Counter[str](), 0
    with Provider() as provider:
        given = models(provider.url)
        for number in range(count):
            model = given[number % len(given)]
            script = [misbehaviour(draw) for _ in range(2)]
            if number % 1000 == 999:
                print(f"{number + 1} calls", file=sys.stderr, flush=True)
            provider.script = list(script)
            provider._left = None
            before = len(provider.requests)
            usage: Usage | None = None
            try:
                result = model.complete("an event", Event)
                usage = result.usage
                valid = isinstance(result.value, Event)
                failures += not valid
                found["valid"] += valid
                kinds = {one.kind for one in result.attempts}
                found["repaired"] += bool(result.repairs)
                found.update(kinds - {"first"})
            except GuidewayError as problem:
                found[type(problem).__name__] += 1
                usage = getattr(problem, "usage", None)
            except Exception as problem:
                failures += 1
                print(f"FAILED {model!r} {script}: {type(problem).__name__}: {problem}")
                continue
            asked = len(provider.requests) - before
            if usage is None:
                continue
            reported = [provider.reported.get(before + at, (0, 0)) for at in range(asked)]
            expected = (asked, sum(one for one, _ in reported), sum(one for _, one in reported))
            if usage.requests != asked or (
                not usage.aborted and not _partial(script[:asked]) and (usage.input, usage.output) != expected[1:]
            ):
                failures += 1
                print(f"WRONG USAGE {model!r} {script[:asked]}: {usage}, the server says {expected}")
    print(f"{count} calls: {dict(found)}; {failures} failures")
    return failures


def _partial(answers: list[Answer]) -> bool:
    """Return whether an answer was cut before the endpoint reported its tokens."""
    return any(answer.drop_after is not None or not answer.finish or answer.usage == "never" for answer in answers)


def with_formatter(count: int, seed: int) -> int:
    """Providers that ignore the constraint, and a local model that writes the drafts again."""
    draw, failures = random.Random(seed), 0
    started = time.process_time()
    with Provider() as provider:
        given = models(provider.url, formatter=gw.load("tiny"), attempts=1)
        for number in range(count):
            text = draw.choice(
                ["The talk has three seats.", '{"title": 3}', "", "null", '{"title": "Talk", "seats": "x']
            )
            provider.script = Answer(text)
            value = given[number % len(given)].generate("an event", Event, max_tokens=120)
            failures += not isinstance(value, Event)
    print(
        f"{count} providers that ignore the constraint: {failures} without a valid value, {time.process_time() - started:.0f} s"
    )
    return failures


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--formatter", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.formatter:
        return bool(with_formatter(given.formatter, given.seed))
    return bool(campaign(given.count, given.seed))


if __name__ == "__main__":
    sys.exit(main())
