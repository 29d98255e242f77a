"""Schemas sent to providers: no valid instance is lost, no invalid one is accepted, and nothing unsupported is sent.

    python -m tests.campaigns.remote_schemas --seed 7 --count 300

For schemas of maskbench-dev and for each dialect, every valid instance is encoded, must be an instance of what is sent, and
must decode to itself. Every invalid instance must be refused after decoding. A schema that is refused by `JsonSchema` is not
counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections import Counter
from functools import lru_cache
from typing import Any

from benchmarks.harness.data import cases

from guideway.constraints import JsonSchema
from guideway.errors import ConstraintError, InvalidTextError, LimitExceededError
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.jsontext.encoder import identity, write_json
from guideway.remote.capabilities import Capabilities, capabilities
from guideway.remote.lowering import lower
from guideway.remote.plan import make_plan

DIALECTS = ("openai", "anthropic", "google", "mistral", "groq", "vllm", "llama-server", "ollama")
_STRUCTURE = {
    *(
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "anyOf",
        "enum",
        "$ref",
        "$defs",
    ),
    "description",
}


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
    narrowed = any(note.holder == "provider_subset" for note in lowered.notes)
    found["narrowed"] += narrowed
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
    given = parser.parse_args()
    chosen = cases()
    random.Random(given.seed).shuffle(chosen)
    totals: dict[str, Counter[str]] = {name: Counter() for name in DIALECTS}
    plans: list[float] = []
    recursive = done = failures = 0
    for case in chosen:
        if done == given.count:
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
        for name in DIALECTS:
            try:
                check(case.schema, list(case.instances), capabilities(name), totals[name])
            except (AssertionError, ConstraintError) as problem:
                failures += 1
                print(f"FAILED {case.name}: {type(problem).__name__}: {problem}", flush=True)
                if not given.keep_going:
                    return 1
            started = time.process_time()
            try:
                make_plan(capabilities(name), constraint, require="any")
            except ConstraintError:
                continue
            plans.append(time.process_time() - started)
    for name, counts in totals.items():
        print(f"{name:14} {dict(counts)}")
    plans.sort()
    print(
        f"{done} schemas; plan: median {plans[len(plans) // 2] * 1e3:.2f} ms, p99 {plans[len(plans) * 99 // 100] * 1e3:.1f} ms"
    )
    print(f"{failures} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
