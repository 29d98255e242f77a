"""Compares answers with and without verbatim strings: which wrong fields become right, and whether a string is invented."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

import guideway as gw  # noqa: E402  # after the path is set
from guideway.generation import GenerationRequest, complete, extraction  # noqa: E402
from tiny_data.samples import Sample  # noqa: E402
from tiny_score import leaves, plain  # noqa: E402

NOT_FREE = ("const", "enum", "format", "pattern")


def closed(schema: dict[str, object]) -> dict[str, object]:
    """Every property required and no other allowed, as a typed record has it."""
    made = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        made["properties"] = {name: closed(field) for name, field in properties.items()}
        made |= {"required": list(properties), "additionalProperties": False}
    if isinstance(items := schema.get("items"), dict):
        made["items"] = closed(items)
    if isinstance(branches := schema.get("anyOf"), list):
        made["anyOf"] = [closed(branch) for branch in branches]
    return made


def free_strings(schema: object, value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """The strings of a record that have no enum, format or pattern, with their places: those that are verbatim."""
    if not isinstance(schema, dict):
        return
    for branch in schema.get("anyOf", [schema]):
        if isinstance(value, str) and branch.get("type") == "string" and not any(word in branch for word in NOT_FREE):
            yield path, value
        elif isinstance(value, dict):
            for name, field in branch.get("properties", {}).items():
                yield from free_strings(field, value.get(name), f"{path}/{name}")
        elif isinstance(value, list):
            for item in value:
                yield from free_strings(branch.get("items"), item, path)


def requests(
    model: gw.Model, samples: list[Sample], verbatim: bool, num_beams: int | None = None
) -> list[GenerationRequest]:
    return [
        extraction(
            model,
            one.text,
            gw.JsonSchema(closed(one.schema), formats="annotate"),
            verbatim=verbatim,
            max_tokens=300,
            verbatim_num_beams=num_beams,
        )
        for one in samples
    ]


def compare(samples: list[Sample], show: int = 0, num_beams: int | None = None) -> dict[str, int]:
    """Counts of fields and strings. Both runs are greedy, with the same prompts and schemas.

    ``num_beams``: ``verbatim_num_beams`` of the second run.
    """
    model = gw.load("tiny")
    before = complete(model, requests(model, samples, False), return_exceptions=True)
    after = complete(model, requests(model, samples, True, num_beams), return_exceptions=True)
    counts: Counter[str] = Counter()
    for sample, old, new in zip(samples, before, after, strict=True):
        counts["failed"] += isinstance(old, Exception) + isinstance(new, Exception)
        old_record, new_record = (None if isinstance(one, Exception) else one.value for one in (old, new))
        written = [value for _, value in free_strings(sample.schema, new_record)]
        counts["verbatim_strings"] += len(written)
        counts["not_in_text"] += sum(value not in sample.text for value in written)
        free = dict(free_strings(sample.schema, old_record))
        had, has = leaves(old_record), leaves(new_record)
        for path, value in leaves(sample.record).items():
            was_right, is_right = (path in one and plain(one[path]) == plain(value) for one in (had, has))
            counts["fields"] += 1
            counts["right_before"] += was_right
            counts["right_after"] += is_right
            counts["broken"] += was_right and not is_right
            if was_right or path not in free or isinstance(had[path], list) or free[path] in sample.text:
                continue
            counts["absent"] += 1
            counts["repaired"] += is_right
            if not is_right and show > 0:
                show -= 1
                print(
                    f"  {sample.text!r} {path}\n    wanted {value!r}, before {had[path]!r}, verbatim {has.get(path)!r}"
                )
    return dict(counts)
