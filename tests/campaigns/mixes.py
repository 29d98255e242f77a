"""Random mixes of requests: every result equals the result of the same request run alone.

    python -m tests.campaigns.mixes [--count 2000] [--seed 0] [--model tiny]

`--model` is a name for `guideway.load`. A mix has 2 to 12 requests with different prompts, constraints, samplers, stop
strings, banned strings and limits, at a random batch size. Some use speculative decoding. Texts may differ only where
logits that differ by less than the tolerance of the engine give both tokens; such results are counted as near-ties.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import Any

import numpy as np

import guideway as gw
from guideway.engines.base import batch_tolerance
from guideway.generation import Model, complete
from guideway.sampling import Sampler, draw_with_gap

TOLERANCE = 1e-3
"""The difference of logits of equal rows in different batches is below this number."""

_WORDS = ["Ada", "Lovelace", "mathematician", "from", "London", "met", "the", "crab", "and", "36", "été", "naïve"]
_OUTPUTS: list[object] = [
    None,
    None,
    gw.Choice(["yes", "no", "perhaps"]),
    gw.Regex(r"[a-z]{3,12}( [a-z]{2,8}){0,3}"),
    int,
    gw.JsonSchema(
        {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 12}, "known": {"enum": ["yes", "no", None]}},
            "required": ["name", "known"],
            "additionalProperties": False,
        }
    ),
]


def request(rng: random.Random) -> tuple[str, object, dict[str, Any]]:
    """Return a prompt, an output and options."""
    prompt = " ".join(rng.choices(_WORDS, k=rng.choice([1, 2, 5, 12, 40, 90])))
    output = rng.choice(_OUTPUTS)
    options: dict[str, Any] = {"max_tokens": rng.choice([24, 30, 40]), "seed": rng.randrange(1000)}
    if rng.random() < 0.5:
        options["sampler"] = rng.choice(
            [Sampler(1.0), Sampler(0.7, top_k=20), Sampler(1.2, top_p=0.8), Sampler(1.0, repetition_penalty=1.2)]
        )
    if rng.random() < 0.3:  # rows are rewound for banned strings
        options["bad_words"] = rng.sample(["e", "the", "an", "in", "o"], 2)
    if output is None and rng.random() < 0.4:
        options["stop"] = rng.sample([".", "a", "the ", "\n"], 2)
    if rng.random() < 0.2:
        options["logprobs"] = 2
    if output is None and rng.random() < 0.3:
        options["min_tokens"] = 5
    if rng.random() < 0.3:  # the single run has no drafts
        options["prompt_lookup_num_tokens"] = 6
    return prompt, output, options


def _outcome(found: Any) -> tuple[object, ...]:
    if isinstance(found, Exception):
        return type(found).__name__, str(found).partition(": ")[2]  # without the number of the prompt
    return found.tokens, found.text, found.finish_reason


def _is_near_tie(model: Model, prompt: str, output: object, options: dict[str, Any], single: Any, mixed: Any) -> bool:
    """Return whether a change of the logits by less than the tolerance explains the first different token.

    Greedy: the logits of the two tokens are nearly equal. Sampled: the random number is close to the edge of a drawn token,
    or nearly equal logits give the other token with the same random number. (If both tokens have tiny probabilities, random
    changes of the logits do not find both.)
    """
    if isinstance(single, Exception) or isinstance(mixed, Exception):
        return False
    pairs = zip(single.tokens, mixed.tokens, strict=False)
    at = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        return False
    session = model.session(seed=options["seed"], sampler=options.get("sampler"))
    session.feed(prompt)
    session.constrain(output)
    session.feed(list(single.tokens[:at]))
    logits, both = session.logits(), {single.tokens[at], mixed.tokens[at]}
    if "sampler" not in options:
        one, other = (float(logits[token_id]) for token_id in both)
        return abs(one - other) < TOLERANCE
    session.only_legal(None if output is None else options["max_tokens"] - at)
    noise = np.random.default_rng(at)
    drawn = set[int]()
    for attempt in range(4 if "bad_words" in options else 1):  # a row that was rewound draws with another number
        place = session.seed, session.row, len(session)
        found = draw_with_gap(session.sampler, logits, session.mask, session.tokens, place, attempt)
        if found is not None and found[0] in both and found[1] < (batch_tolerance(model.engine) or TOLERANCE):
            return True
        for _ in range(400):  # the gap does not consider the edges of top_k and top_p
            near = logits + noise.uniform(-TOLERANCE / 2, TOLERANCE / 2, logits.size).astype(np.float32)
            drawn.add(session.draw_masked(near, attempt))
    return both <= drawn


def check_mix(model: Model, seed: int) -> tuple[int, int]:
    """Run one mix. Returns the numbers of results and of near-ties. Raises `AssertionError` for a difference."""
    rng = random.Random(seed)
    given = [request(rng) for _ in range(rng.randint(2, 12))]
    requests = [gw.GenerationRequest(prompt, output, **options) for prompt, output, options in given]
    model.prefixes.clear()
    mixed = complete(model, requests, batch_size=rng.choice([2, 3, 5, 16]), return_exceptions=True)
    ties = 0
    for (prompt, output, options), together in zip(given, mixed, strict=True):
        model.prefixes.clear()
        plain = {**options, "prompt_lookup_num_tokens": 0}
        (alone,) = complete(model, [gw.GenerationRequest(prompt, output, **plain)], return_exceptions=True)
        if _outcome(alone) != _outcome(together):
            assert _is_near_tie(model, prompt, output, options, alone, together), (
                f"seed {seed}: {prompt!r}, {output!r}, {options}: {_outcome(alone)} alone, {_outcome(together)} in a mix"
            )
            ties += 1
        elif not isinstance(alone, Exception) and options.get("logprobs"):
            ours = [step.logprob for step in together.steps]
            np.testing.assert_allclose(ours, [step.logprob for step in alone.steps], atol=TOLERANCE)
    return len(given), ties


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="tiny")
    given = parser.parse_args()
    results = ties = 0
    with gw.load(given.model) as model:
        for seed in range(given.seed, given.seed + given.count):
            some, near = check_mix(model, seed)
            results, ties = results + some, ties + near
            if (seed + 1) % 100 == 0:
                print(
                    f"{seed + 1 - given.seed} mixes, {results} results, {ties} near-ties", file=sys.stderr, flush=True
                )
        counts = model.engine.counts if hasattr(model.engine, "counts") else None
    print(f"{given.count} mixes, {results} results equal to single runs, {ties} near-ties")
    if counts is not None:
        print(f"rows per call of the model: {counts.filled:.0%} of the active rows, {counts.calls} calls")


if __name__ == "__main__":
    main()
