"""`make walks`: random schemas over all keywords; masks allow exactly the valid instances.

    python -m tests.campaigns.walks [--count 1000000] [--seed 0]

For each schema, some random walks along legal tokens give complete texts, which the `jsonschema` package validates.
Some valid and invalid values in any spelling are checked with the matcher, whose verdict must agree. No walk may reach
a dead end.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import guideway as gw
from tests.property.judge import Judge
from tests.property.keywords import Drawer, mutated, values
from tests.property.spellings import respelled

PIECES = (
    *('{"', '":', '": ', ', "', '","', "}", "},", "]", "],", "[", '[{"', '"a"', '"b":', '""', "{}", "[]", '":{', '":['),
    *(
        "true",
        "false",
        "null",
        "10",
        "00",
        ".5",
        ".0",
        "e1",
        "1E",
        "-1",
        "\\u00",
        "\\n",
        "ab",
        "aa",
        "xx",
        "é",
        "日",
        "  ",
    ),
)
LIKELY = sorted({*b'{}[]":,0123456789.-abcx \\eu'})
EOS = 256
TOKENS = [*(bytes([n]) for n in range(256)), b"", *(piece.encode() for piece in PIECES)]
VOCABULARY = gw.Vocabulary(TOKENS, eos_ids=[EOS])
GOOD = np.zeros(len(TOKENS), bool)
GOOD[[*LIKELY, EOS, *range(EOS + 1, len(TOKENS))]] = True


@dataclass
class Tally:
    """What was tried, and what did not agree."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, Any]] = field(default_factory=list)

    def fault(self, what: str, schema: Any, seed: int, text: str = "") -> None:
        """Note a disagreement, the first of each kind for a schema."""
        if not any(one["seed"] == seed and one["what"][:20] == what[:20] for one in self.faults):
            self.faults.append({"what": what, "seed": seed, "schema": schema, "text": text})


def walked(matcher: Any, rng: random.Random, steps: int) -> str:
    """Writes random legal tokens, and completes the text after `steps`. Raises `LookupError` if none is legal."""
    row, text = np.zeros(matcher.words, np.uint32), b""
    for step in range(10_000):
        if step < steps:
            matcher.fill_mask(row)
        elif not matcher.fill_mask_within(row, matcher.min_tokens_to_complete() + rng.randrange(3)):
            raise LookupError(f"no way within the budget after {text!r}")
        legal = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(TOKENS)].astype(bool)
        if not legal.any():
            raise LookupError(f"stuck after {text!r}")
        some = np.flatnonzero(legal & GOOD if (legal & GOOD).any() and rng.random() < 0.97 else legal)
        token = int(some[rng.randrange(len(some))])
        matcher.advance(token)
        if token == EOS:
            return text.decode()
        text += TOKENS[token]
    raise LookupError(f"no end after {text[:200]!r}")


def accepts(automaton: gw.Automaton, text: str) -> bool:
    """Whether a text is accepted byte by byte and is complete."""
    ids = [*text.encode(), EOS]
    return bool(automaton.matcher().validate(ids) == len(ids))


def compiled(schema: Any, profile: str, tally: Tally) -> gw.Automaton | None:
    """The automaton; None where the schema is refused, which is counted."""
    try:
        return gw.compile(gw.JsonSchema(schema, profile=profile, unknown_keywords="ignore"), VOCABULARY, cache=False)  # type: ignore[arg-type]  # str
    except gw.errors.ConstraintError as error:
        tally.counts[type(error).__name__] += 1
        if isinstance(error, gw.errors.InvalidConstraintError):  # the schemas drawn are good ones
            raise
        return None


def check(seed: int, tally: Tally, walks: int = 4, instances: int = 8) -> None:
    """One schema."""
    rng = random.Random(seed)
    schema = Drawer(rng).document()
    tally.counts["schemas"] += 1
    profile = "generation" if rng.random() < 0.2 else "exact"
    automaton = compiled(schema, profile, tally)
    judge = Judge(schema)
    pool = values(rng, schema, instances)
    if automaton is None:
        return
    for _ in range(walks):
        try:
            text = walked(automaton.matcher(), rng, rng.choice((3, 12, 40)))
            good = judge(text)
        except LookupError as error:
            tally.fault(f"{profile}: {error}", schema, seed)
            continue
        except (ArithmeticError, RecursionError):  # beyond what the judge can read
            tally.counts["unjudged"] += 1
            continue
        tally.counts["walks"] += 1
        if not good:
            tally.fault(f"{profile}: allowed, but invalid", schema, seed, text)
        pool.append(mutated(rng, json.loads(text)))
        pool.append(json.loads(text))
    if profile != "exact":
        return
    for value in pool:
        try:
            text = respelled(rng, value)
            good = judge(text)
        except (ArithmeticError, RecursionError, ValueError):
            tally.counts["unjudged"] += 1
            continue
        tally.counts["valid" if good else "invalid"] += 1
        if accepts(automaton, text) != good:
            tally.fault("valid, but refused" if good else "taken, but invalid", schema, seed, text)


def reduced(fault: dict[str, Any]) -> dict[str, Any]:
    """The same disagreement with as little of the schema as will do."""
    text = fault["text"]

    def still(schema: Any) -> bool:
        try:
            automaton = compiled(schema, "exact", Tally())
            return automaton is not None and accepts(automaton, text) != Judge(schema)(text)
        except Exception:  # a schema without one of its definitions, for example
            return False

    if not text or not still(fault["schema"]):
        return fault
    schema, smaller = fault["schema"], True
    while smaller:
        smaller = False
        for candidate in _without(schema):
            if still(candidate):
                schema, smaller = candidate, True
                break
    return {**fault, "schema": schema}


def _without(part: Any) -> list[Any]:
    """The schema with a part left out, each in turn; larger parts first."""
    found: list[Any] = []
    if isinstance(part, dict):
        found += [{k: v for k, v in part.items() if k != key} for key in part if key != "$schema"]
        found += [{**part, key: small} for key, value in part.items() for small in _without(value)]
    elif isinstance(part, list):
        found += [part[:n] + part[n + 1 :] for n in range(len(part)) if len(part) > 1]
        found += [[*part[:n], small, *part[n + 1 :]] for n, value in enumerate(part) for small in _without(value)]
    return found


def run(seeds: range, tally: Tally) -> None:
    """A schema for each seed."""
    for seed in seeds:
        try:
            check(seed, tally)
        except gw.errors.LimitExceededError:  # in the middle of a text: a refusal, though a late one
            tally.counts["LimitExceededError in a walk"] += 1
        except Exception as error:  # anything that is no verdict is a fault of ours, with its seed
            tally.fault(f"{type(error).__name__}: {error}", None, seed)


def main() -> int:
    """1 where anything disagreed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="so many walks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=20, help="stop after so many disagreements")
    given = parser.parse_args()
    tally, start, said = Tally(), time.perf_counter(), 0
    while tally.counts["walks"] < given.count and len(tally.faults) < given.faults:
        first = given.seed + tally.counts["schemas"]
        run(range(first, first + 1000), tally)
        for fault in tally.faults[said:]:
            print(json.dumps(reduced(fault), ensure_ascii=False))
        said = len(tally.faults)
        seeds = f"seeds {given.seed} to {given.seed + tally.counts['schemas'] - 1}"
        print(f"{seeds}: {dict(tally.counts)}, {said} faults, {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
