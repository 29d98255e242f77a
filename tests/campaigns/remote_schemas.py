"""Schemas sent to providers: no valid instance is lost, no invalid one is accepted, and nothing unsupported is sent.

    python -m tests.campaigns.remote_schemas --seed 7 --count 300
    python -m tests.campaigns.remote_schemas --seed 7 --count 300 --part 1/3

For schemas of maskbench-dev and for each dialect, every valid instance is encoded, must be an instance of what is sent, and
must decode to itself. Every invalid instance must be refused after decoding. A schema that is refused by `JsonSchema` is not
counted. A schema takes at most `MAX_SECONDS` of CPU time for a dialect; one that takes longer is named and counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from benchmarks.harness.data import cases

from guideway.constraints import JsonSchema
from guideway.errors import ConstraintError, InvalidTextError, LimitExceededError
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.jsontext.encoder import identity, write_json
from guideway.remote.capabilities import Capabilities, capabilities
from guideway.remote.lowering import lower
from guideway.remote.planning import make_plan

DIALECTS = ("openai", "anthropic", "google", "mistral", "groq", "vllm", "llama-server", "ollama")
MAX_SECONDS = 20
"""Maximum CPU time of one schema and one dialect."""

MAX_NARROWED = 0.05
"""Maximum share of schemas without recursion whose export excludes some valid values."""

_STRUCTURE = {"type", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf", "enum"}
_STRUCTURE |= {"$ref", "$defs", "description"}


class TooSlowError(Exception):
    """A schema exceeded `MAX_SECONDS`."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise `TooSlowError` after a CPU time."""

    def stop(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def unsupported(sent: Any, given: Capabilities) -> str | None:
    """Return a keyword of what is sent that the provider does not support."""
    subset = given.subset
    todo = [sent]
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            continue
        for name, value in one.items():
            if name not in _STRUCTURE | subset.keywords or (name == "prefixItems" and not subset.tuples):
                return name
            if name == "format" and value not in subset.formats:
                return f"format {value}"
            if name == "$ref" and not subset.references:
                return "$ref"
        if one.get("type") == "object" and subset.closed and one.get("additionalProperties") is not False:
            return "an open object"
        if one.get("type") == "object" and subset.all_required and set(one["properties"]) != set(one["required"]):
            return "an optional property"
        todo += [*one.get("properties", {}).values(), *one.get("anyOf", ()), *one.get("$defs", {}).values()]
        todo += [one.get("items"), one.get("additionalProperties"), *one.get("prefixItems", ())]
    if subset.root_object and (sent.get("type") != "object" or "anyOf" in sent):
        return "the root"
    return None


def check(document: Any, instances: list[tuple[Any, bool]], given: Capabilities, found: Counter[str]) -> None:
    """Check one schema for one dialect."""
    constraint = JsonSchema(document, unknown_keywords="ignore")
    try:
        lowered = lower(constraint._document, given.subset)
    except LimitExceededError:
        found["too large"] += 1
        return
    found["schemas"] += 1
    if (name := unsupported(lowered.schema, given)) is not None:
        raise AssertionError(f"{given.name}: {name} was sent for {json.dumps(document)[:300]}")
    subsets = [note for note in lowered.notes if note.holder == "provider_subset"]
    narrowed = bool(subsets)
    if not all(note.detail for note in subsets):
        raise AssertionError(f"{given.name}: a value that cannot come is not named: {subsets}")
    found["narrowed"] += narrowed
    found["narrowed without recursion"] += narrowed and "$ref" not in json.dumps(document)
    found["plain"] += lowered.codec.plain
    sent = exact_of(write_json(lowered.schema))
    own = [(json.loads(text), True) for text in constraint.examples(3, seed=len(instances))]
    for value, _ in [*instances, *own]:
        try:
            constraint.parse(write_json(value))
            valid = True
        except InvalidTextError:
            valid = False
        if valid and not fits_generation(constraint, value):
            found["outside the profile"] += 1
            continue
        try:
            encoded = lowered.codec.encode(value)
            text = write_json(encoded)
            sent.parse(text)
            back = lowered.codec.decode(encoded)
        except LimitExceededError:
            found["not judged"] += 1
            continue
        except InvalidTextError as problem:
            if valid and not narrowed:
                raise AssertionError(
                    f"{given.name} lost {write_json(value)[:200]} of {json.dumps(document)[:600]}: {problem}"
                ) from problem
            found["invalid"] += not valid
            continue
        if valid:
            found["valid"] += 1
            if identity(back) != identity(value):
                raise AssertionError(f"{given.name}: {value!r} came back as {back!r} of {json.dumps(document)[:600]}")
            continue
        found["invalid"] += 1
        if identity(back) != identity(value):
            continue  # an encoded form of another value: null for an absent property
        try:
            constraint.parse(write_json(back))
        except InvalidTextError:
            continue
        raise AssertionError(f"{given.name} accepted {write_json(value)[:300]} of {json.dumps(document)[:300]}")


@lru_cache(maxsize=8)
def exact_of(schema: str) -> JsonSchema:
    """Return the schema that is sent, in any spelling. Many dialects get the same."""
    return JsonSchema(schema, profile="exact", unknown_keywords="ignore")


def fits_generation(constraint: JsonSchema, value: Any) -> bool:
    """Return whether the profile "generation" allows a value: objects with `properties` have no other keys."""
    automaton = closed_of(constraint)
    return accepts(automaton, write_json(value))


@lru_cache(maxsize=2)
def closed_of(constraint: JsonSchema) -> Any:
    """Return the automaton of the profile "generation" in any spelling."""
    closed = JsonSchema(
        constraint._document,
        key_order="any",
        whitespace="any",
        escapes="any",
        numbers="any",
        dialect=constraint._dialect and constraint._dialect.name,
    )
    return byte_automaton(closed.grammar())


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--part", default="1/1", help="Check one of several parts of the schemas, such as 2/3.")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    chosen = cases()
    random.Random(given.seed).shuffle(chosen)
    chosen, count = chosen[part - 1 :: parts], given.count // parts
    totals: dict[str, Counter[str]] = {name: Counter() for name in DIALECTS}
    plans: list[float] = []
    slowest: list[tuple[float, str]] = []
    recursive = done = failures = 0
    for case in chosen:
        if done == count:
            break
        try:
            constraint = JsonSchema(case.schema, unknown_keywords="ignore")
            constraint.examples(1)
        except ConstraintError:
            continue
        done += 1
        if done % 20 == 0:
            gc.collect()  # automata in cycles of recursive schemas
            print(f"{done} schemas", file=sys.stderr, flush=True)
        recursive += "$ref" in json.dumps(case.schema)
        started_all = time.thread_time()
        for name in DIALECTS:
            try:
                with bounded(MAX_SECONDS):
                    check(case.schema, list(case.instances), capabilities(name), totals[name])
            except TooSlowError:
                totals[name]["too slow"] += 1
                print(f"TOO SLOW {case.name}: {name}", flush=True)
            except (AssertionError, ConstraintError) as problem:
                failures += 1
                print(f"FAILED {case.name}: {type(problem).__name__}: {problem}", flush=True)
                if not given.keep_going:
                    return 1
            started = time.thread_time()
            try:
                make_plan(capabilities(name), constraint, require="any")
            except ConstraintError:
                continue
            plans.append(time.thread_time() - started)  # a timer makes the clock of the process coarse
        slowest.append((time.thread_time() - started_all, case.name))
    for name, counts in totals.items():
        print(f"{name:14} {dict(counts)}")
    plans.sort()
    middle, late = plans[len(plans) // 2] * 1e3, plans[len(plans) * 99 // 100] * 1e3
    print(f"{done} schemas, {recursive} with references; plan: median {middle:.2f} ms, p99 {late:.1f} ms of CPU time")
    print("slowest: " + ", ".join(f"{name} {seconds:.1f} s" for seconds, name in sorted(slowest, reverse=True)[:5]))
    narrowed = max(counts["narrowed without recursion"] for counts in totals.values())
    too_slow = sum(counts["too slow"] for counts in totals.values())
    print(f"{failures} failures, {too_slow} too slow, at most {narrowed} narrowed")
    return bool(failures or too_slow or narrowed > MAX_NARROWED * (done - recursive) or middle > 5)


if __name__ == "__main__":
    sys.exit(main())
