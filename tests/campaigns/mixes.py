"""Random mixes of requests: every result equals the result of the same request run alone.

    python -m tests.campaigns.mixes [--count 2000] [--seed 0] [--seconds S] [--model tiny]

`--model` is "hf", "mlx" or "gguf" (a small random llama), or a name for `guideway.load`. A mix has 2 to 12 requests with
different prompts, constraints, samplers, stop strings, banned strings and limits, at a random batch size. Some use
speculative decoding. Texts may differ only where logits that differ by less than the tolerance of the engine give both
tokens; such results are counted as near-ties.

`_BLOCK` mixes with successive seeds draw their requests from `_POOL` requests, each of which runs alone once. So 2,000
mixes use 1,280 different requests.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import guideway as gw
from guideway.engines.base import batch_tolerance
from guideway.errors import UnsatisfiableError
from guideway.generation import Model, complete
from guideway.sampling import Sampler, draw_with_gap
from guideway.testing import tiny_model

_BLOCK, _POOL = 100, 64
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


def request(rng: random.Random, beginnings: list[list[str]]) -> tuple[str, object, dict[str, Any]]:
    """Return a prompt, an output and options. Some prompts begin with one of `beginnings`."""
    words = rng.choices(_WORDS, k=rng.choice([1, 2, 5, 12, 40, 90]))
    prompt = " ".join([*rng.choice(beginnings), *words] if rng.random() < 0.2 else words)
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
    changes of the logits do not find both.) With banned strings, this may be the draw of a token that was excluded.
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
    budget = None if output is None else options["max_tokens"] - at
    avoid = frozenset(model.tokenizer.eos_ids) if at < options.get("min_tokens", 0) else frozenset[int]()
    noise, excluded, is_banning = np.random.default_rng(at), set[int](), "bad_words" in options
    while True:  # a token that completes a banned string is excluded, and the row draws again
        try:
            session.only_legal(budget, without=excluded, avoid=avoid)
        except UnsatisfiableError:  # all legal tokens are excluded
            return False
        place, attempt = (session.seed, session.row, len(session)), len(excluded)
        found = draw_with_gap(session.sampler, logits, session.mask, session.tokens, place, attempt)
        is_close = found is not None and found[1] < (batch_tolerance(model.engine) or TOLERANCE)
        if is_close and (is_banning or found[0] in both):
            return True
        drawn = set[int]()
        for _ in range(400):  # the gap does not consider the edges of top_k and top_p
            near = logits + noise.uniform(-TOLERANCE / 2, TOLERANCE / 2, logits.size).astype(np.float32)
            drawn.add(session.draw_masked(near, attempt))
        if both <= drawn or (is_banning and len(drawn) > 1 and drawn & both):
            return True
        if not is_banning or drawn & both:
            return False
        excluded |= drawn


class Mixes:
    """Compares mixes with the results of single requests.

    Args:
        model: The model. Its cache of prefixes is cleared before each run.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._block = -1
        self._requests: list[tuple[str, object, dict[str, Any]]] = []
        self._alone: dict[int, Any] = {}  # the results of single runs, by the index of the request

    def check(self, seed: int) -> tuple[int, int]:
        """Run one mix. Returns the numbers of results and of near-ties. Raises `AssertionError` for a difference."""
        self._begin(seed // _BLOCK)
        rng = random.Random(seed)
        chosen = rng.sample(range(_POOL), rng.randint(2, 12))
        given = [self._requests[number] for number in chosen]
        requests = [gw.GenerationRequest(prompt, output, **options) for prompt, output, options in given]
        self._model.prefixes.clear()
        mixed = complete(self._model, requests, batch_size=rng.choice([2, 3, 5, 16]), return_exceptions=True)
        ties = 0
        for number, together in zip(chosen, mixed, strict=True):
            prompt, output, options = self._requests[number]
            alone = self._single(number)
            if _outcome(alone) != _outcome(together):
                assert _is_near_tie(self._model, prompt, output, options, alone, together), (
                    f"seed {seed}: {prompt!r}, {output!r}, {options}: {_outcome(alone)} alone, "
                    f"{_outcome(together)} in a mix"
                )
                ties += 1
            elif not isinstance(alone, Exception) and options.get("logprobs"):
                ours = [step.logprob for step in together.steps]
                np.testing.assert_allclose(ours, [step.logprob for step in alone.steps], atol=TOLERANCE)
        return len(given), ties

    def _begin(self, block: int) -> None:
        """Make the requests of a block of mixes."""
        if block == self._block:
            return
        rng = random.Random(f"block {block}")
        beginnings = [rng.choices(_WORDS, k=rng.choice([20, 60])) for _ in range(3)]
        self._requests = [request(rng, beginnings) for _ in range(_POOL)]
        self._alone, self._block = {}, block

    def _single(self, number: int) -> Any:
        """Return the result of a request that runs alone, without drafts."""
        if number not in self._alone:
            prompt, output, options = self._requests[number]
            self._model.prefixes.clear()
            plain = gw.GenerationRequest(prompt, output, **{**options, "prompt_lookup_num_tokens": 0})
            (self._alone[number],) = complete(self._model, [plain], return_exceptions=True)
        return self._alone[number]


def loaded(name: str, folder: Path) -> Model:
    """Load a model by the argument `--model`. `folder`: for the files of a small model."""
    if name not in ("hf", "mlx", "gguf"):
        return gw.load(name)
    tiny_model("llama", folder)
    if name != "gguf":
        return gw.load(f"{name}:{folder}")
    from tests.helpers.gguf_models import write_gguf

    return gw.load(f"gguf:{write_gguf(folder, folder / 'model.gguf')}", kv_cache_tokens=1 << 14)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no mix after this time")
    parser.add_argument("--model", default="tiny")
    given = parser.parse_args()
    done = results = ties = 0
    begun = monotonic()
    with tempfile.TemporaryDirectory() as folder, loaded(given.model, Path(folder)) as model:
        mixes = Mixes(model)
        while done < given.count and monotonic() - begun < given.seconds:
            some, near = mixes.check(given.seed + done)
            done, results, ties = done + 1, results + some, ties + near
            if done % 100 == 0:
                print(f"{done} mixes, {results} results, {ties} near-ties", file=sys.stderr, flush=True)
        counts = model.engine.counts
    print(f"{done} mixes from seed {given.seed}, {results} results equal to single runs, {ties} near-ties")
    print(f"rows per call of the model: {counts.filled:.0%} of the active rows, {counts.calls} calls")


if __name__ == "__main__":
    main()
