"""`guideway.batch`: results do not depend on the other requests, and errors stay with their request."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.batch import BatchRequest, BatchResult
from guideway.batch.ids import IdSet, seed_of
from guideway.batch.ordering import BatchItem, grouped
from guideway.errors import InvalidRequestError, UnsatisfiableError

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def lines(count: int) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number in range(count):
        own: dict[str, Any] = {"custom_id": f"id-{number}", "prompt": f"Text {number}: ", "temperature": 1.0}
        own |= [{"regex": "[ab]{6}"}, {"schema": SCHEMA}, {"max_tokens": 5}, {"choice": ["x", "y"], "n": 2}][number % 4]
        made.append(own)
    return made


def texts(found: Iterator[BatchResult]) -> dict[str | None, Any]:
    return {one.custom_id: [g.text for group in one.generations for g in group] for one in found}


def test_texts_do_not_depend_on_the_other_requests(tiny: gw.Model) -> None:
    given = lines(24)
    whole = texts(gw.batch(tiny, given))
    assert len(whole) == 24
    mixed = random.Random(1).sample(given, 24)
    assert texts(gw.batch(tiny, mixed, window=3, batch_size=2)) == whole
    for one in given[:4]:
        assert texts(gw.batch(tiny, [one])) == {one["custom_id"]: whole[one["custom_id"]]}
    assert len({tuple(one) for one in whole.values()}) > 12
    assert len(whole["id-3"]) == 2


def test_rounding_of_batches_does_not_change_texts(tiny: gw.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call with several rows or with a cache gets other noise, as padding and chunks cause it, but more of it."""
    noise = np.random.default_rng(0)
    forward, size = tiny.engine.forward, 1e-3

    def noisy(rows: Any, caches: Any) -> Any:
        logits, made = forward(rows, caches)
        if len(rows) > 1 or caches[0] is not None:
            logits = logits + noise.uniform(-size, size, logits.shape).astype(np.float32)
        return logits, made

    given = [one | {"prompt": f"Note {number}: the weather is"} for number, one in enumerate(lines(48))]
    given += [
        {"custom_id": f"free-{number}", "prompt": "The", "temperature": 0.8, "max_tokens": 12} for number in range(8)
    ]
    alone = {key: value for one in given for key, value in texts(gw.batch(tiny, [one])).items()}
    monkeypatch.setattr(tiny.engine, "forward", noisy)
    monkeypatch.setattr(tiny.engine, "batch_tolerance", 0.0)
    without = texts(gw.batch(tiny, given))
    monkeypatch.setattr(tiny.engine, "batch_tolerance", 4 * size)
    tiny.prefixes.clear()
    assert texts(gw.batch(tiny, given)) == alone
    assert without != alone, "the noise is too small to test anything"


def test_requests_are_read_as_results_are_taken(tiny: gw.Model) -> None:
    taken = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield {"custom_id": str(taken), "prompt": "a", "regex": "[ab]"}

    found = gw.batch(tiny, endless(), window=8, batch_size=2)
    assert [next(found).generation.text in "ab" for _ in range(20)] == [True] * 20
    assert taken <= 40


def test_errors_do_not_collect(tiny: gw.Model) -> None:
    taken = 0

    def endless() -> Iterator[Any]:
        nonlocal taken
        while True:
            taken += 1
            yield {"custom_id": str(taken)}

    found = gw.batch(tiny, endless(), window=8)
    assert all(isinstance(next(found).error, InvalidRequestError) for _ in range(1000))
    assert taken < 5000


def test_requests_in_python(tiny: gw.Model) -> None:
    given = [
        BatchRequest("a", "Founded in ", gw.Regex("(19|20)[0-9]{2}")),
        BatchRequest("b", "Yes? ", bool, {"seed": 4}),
        BatchRequest("c", "Mood: "),
    ]
    found = {one.custom_id: one for one in gw.batch(tiny, given, gw.Choice(["fine"]))}
    assert found["a"].value[:2] in ("19", "20")
    assert isinstance(found["b"].value, bool)
    assert found["c"].value == "fine"
    assert found["a"].line().keys() == {"custom_id", "text", "value", "prompt_tokens", "tokens", "finish_reason"}


def test_the_error_of_a_request_is_its_result(tiny: gw.Model) -> None:
    given = [
        {"custom_id": "a", "prompt": "x", "regex": "a&&b("},
        {"custom_id": "b", "prompt": "x", "regex": "[ab]{900}", "max_tokens": 5},
        {"custom_id": "c", "prompt": "x" * 9000},
        {"custom_id": "d", "prompt": "x", "regex": "[ab]"},
        {"custom_id": "d", "prompt": "y", "regex": "[ab]"},
        {"custom_id": "e", "prompt": "x", "choice": ["a"], "stop": "b"},
        {"prompt": "x"},
        "no object",
    ]
    found = list(gw.batch(tiny, given))  # type: ignore[arg-type]  # the last one is hostile
    codes = {one.position: one.line().get("error", {}).get("code") for one in found}
    assert codes == {
        0: "invalid_constraint",
        1: "budget_too_small",
        2: "context_length_exceeded",
        3: None,
        4: "duplicate_custom_id",
        5: "invalid_value",
        6: "missing_custom_id",
        7: "invalid_line",
    }
    assert [one.custom_id for one in sorted(found, key=lambda one: one.position)] == [
        "a",
        "b",
        "c",
        "d",
        None,
        "e",
        None,
        None,
    ]
    with pytest.raises(UnsatisfiableError):
        _ = next(gw.batch(tiny, [BatchRequest("a", "b", gw.Regex("a") & gw.Regex("b"))])).value


def test_wrong_arguments(tiny: gw.Model) -> None:
    with pytest.raises(TypeError, match=r"guideway\.Model"):
        gw.batch("tiny", [])  # type: ignore[arg-type]  # the slip is the test
    with pytest.raises(ValueError, match="batch_size"):
        gw.batch(tiny, [], batch_size=0)
    with pytest.raises(ValueError, match="window"):
        gw.batch(tiny, [], window=0)
    (found,) = gw.batch(tiny, [BatchRequest("a", "b")], tempersture=3)
    assert isinstance(found.error, TypeError)


def test_options_of_the_call_are_defaults(tiny: gw.Model) -> None:
    given = [{"custom_id": "a", "prompt": "x", "max_tokens": 3}, {"custom_id": "b", "prompt": "x"}]
    found = {one.custom_id: one.generation for one in gw.batch(tiny, given, max_tokens=6)}
    assert len(found["a"].tokens) == 3
    assert len(found["b"].tokens) == 6


def test_groups() -> None:
    outputs = [gw.Regex("a"), gw.Regex("b")]
    requests = [BatchRequest(str(n), "p" * (200 if n % 4 > 1 else 1) + str(9 - n), outputs[n % 2]) for n in range(10)]
    items = [BatchItem(n, "", 1, None, one) for n, one in enumerate(requests)]
    order = list(grouped(iter(items), 8))
    assert [one.position for one in order] == [4, 0, 6, 2, 5, 1, 7, 3, 8, 9]
    assert [one.position for one in order if one.leads] == [6, 7]


def test_prompts_with_a_common_beginning_run_it_once(tiny: gw.Model) -> None:
    start = "A long description of the task that all requests of this group have in common, word for word. " * 3
    given = [
        {"custom_id": f"{group}{n}", "prompt": f"{group} {start}{n}", "max_tokens": 1}
        for group in "AB"
        for n in range(8)
    ]
    before = tiny.prefixes.statistics
    assert len(list(gw.batch(tiny, given))) == 16
    after = tiny.prefixes.statistics
    assert after.hits - before.hits >= 14


def test_seeds() -> None:
    assert seed_of("a") != seed_of("b")
    assert 0 <= seed_of("\ud800") < 2**31
    assert seed_of("a") == 0x654BC089  # the seed of an identifier must never change: SHA-256 begins with ca978112
    assert seed_of("a", 1) != seed_of("a")


def test_sets_of_identifiers() -> None:
    found = IdSet()
    names = [f"request-{number}" for number in range(200_000)]
    assert all(found.add(name) for name in names)
    assert not any(found.add(name) for name in names[::97])
    assert len(found) == len(names)
    assert "request-199999" in found
    assert "request-200000" not in found
