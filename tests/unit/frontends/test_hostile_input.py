"""Hostile input: every case is refused with a typed error or handled, within bounded work."""

from __future__ import annotations

import json
import re
import struct
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers

import guideway as gw
from guideway import _kernel
from guideway.cli.inputs import UsageError, read_lines, read_texts
from guideway.compiler import CompileLimits
from guideway.testing import ConstantModel
from guideway.tokenizers import Tokenizer
from tests.helpers.byte_tokens import BYTES, legal, parses
from tests.helpers.work import lines

A, B = ord("a"), ord("b")


def matcher_of(constraint: Any) -> gw.Matcher:
    return gw.compile(constraint, BYTES, cache=False).matcher()


def legal_within(matcher: gw.Matcher, tokens_left: int) -> list[int]:
    row = np.zeros(9, np.uint32)
    matcher.fill_mask_within(row, tokens_left)
    return legal(row)


@pytest.mark.parametrize(
    "row", [np.zeros(9, np.int64), np.zeros(9, np.int32), np.zeros(9, np.float32), np.zeros(18, np.uint32)[::2]]
)
def test_a_row_that_cannot_be_filled_in_place_is_refused(row: Any) -> None:
    matcher = matcher_of(gw.Regex("a"))
    with pytest.raises(TypeError):
        matcher.fill_mask(row)
    with pytest.raises(TypeError):
        matcher.fill_mask_within(row, 9)
    with pytest.raises(TypeError):
        gw.matcher.fill_masks([matcher], row[None])
    with pytest.raises(TypeError):
        _kernel.mask_logits(
            np.zeros((1, 257), np.float64), np.zeros((1, 257), np.float64), np.zeros((1, 9), np.uint32), [True]
        )


def test_fill_masks_accepts_generated_matchers() -> None:
    matcher = matcher_of(gw.Regex("a"))

    class Forks(list[gw.Matcher]):
        def __iter__(self) -> Any:
            return (matcher.fork() for _ in range(50))

    rows = np.zeros((50, 9), np.uint32)
    gw.matcher.fill_masks(Forks(), rows)
    assert np.unpackbits(rows.view(np.uint8)).sum() == 50


def test_empty_parts_do_not_use_the_stack() -> None:
    count = 300_000
    words = [0x31505747, 5, 1, count + 1, count, 2, 0, *[0, 0] * count, 1, count, *range(count)]
    program = struct.pack(f"<{len(words)}I", *words)
    assert _kernel.Automaton.compile(BYTES.kernel, program).matcher().is_accepting


def test_ambiguous_paths_are_followed_once() -> None:
    part = gw.Regex("a*") | gw.JsonSchema({"type": "array"}) | gw.Regex("[a]*")
    whole = part
    for _ in range(20):
        whole = whole + part
    matcher = matcher_of(whole)
    row = np.zeros(9, np.uint32)
    matcher.fill_mask(row)
    matcher.advance(A)
    assert matcher.is_accepting
    assert legal_within(matcher, 500) == [ord("["), A, 256]


# Each byte opens one more way to count the rest; a completion follows the shortest alone (all of them: a minute).
@pytest.mark.parametrize("pattern", ["[ab]+[bc]{20000,}", "([ab]{1,100000}[bc]{20000,}d){1,2}"])
def test_a_completion_follows_one_of_many_counts(pattern: str) -> None:
    limits = CompileLimits(max_work=50_000_000)  # 6 and 18 million are needed
    matcher = gw.compile(gw.Regex(pattern), BYTES, cache=False, limits=limits).matcher()
    text = matcher.completion()
    assert re.fullmatch(pattern.encode(), text)
    assert matcher.min_tokens_to_complete() == len(text) + 1


_LONG = {"type": "string", "minLength": 2**31 - 1}


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (gw.Regex("b|(a{70000}){70000}"), [B]),
        (gw.JsonSchema({"anyOf": [{"type": "null"}, _LONG]}), [ord("n")]),
        (gw.JsonSchema({"anyOf": [{"type": "null"}, {"type": "array", "minItems": 10**9}]}), [ord("n")]),
    ],
)
def test_oversized_texts_are_refused_early(constraint: Any, expected: list[int]) -> None:
    assert legal_within(matcher_of(constraint), 500) == expected


@pytest.mark.parametrize("constraint", [gw.Regex("(a{70000}){70000}"), gw.Regex("a{4294967294}"), gw.JsonSchema(_LONG)])
def test_long_texts_exceed_every_budget(constraint: Any) -> None:
    matcher = matcher_of(constraint)
    assert matcher.min_tokens_to_complete() > 10**9
    with pytest.raises(gw.errors.LimitExceededError):
        matcher.completion()
    with pytest.raises(gw.errors.BudgetTooSmallError):
        gw.generate(ConstantModel(BYTES), "x", constraint)


@pytest.mark.parametrize("number", ["1e99999999999999999999", "1e999999999", "1e-999999", "0.5e5000"])
def test_numbers_without_end(number: str) -> None:
    with pytest.raises(gw.errors.LimitExceededError):
        gw.JsonSchema(f'{{"type": "number", "minimum": {number}}}')


@pytest.mark.parametrize("number", ["-0.0", "-0", "0e-999999999", "0e-99999999999999", "0e99999999"])
def test_all_spellings_of_zero(number: str) -> None:
    for kind in ("number", "integer"):
        matcher = matcher_of(gw.JsonSchema(f'{{"type": "{kind}", "minimum": {number}, "maximum": {number}}}'))
        assert matcher.completion() == b"0"


def test_bounds_of_forty_digits() -> None:
    low, high = "0.1234567890123456789012345678901234567890", "0.12345678901234567890123456789012345678901"
    matcher = matcher_of(gw.JsonSchema(f'{{"type": "number", "minimum": {low}, "maximum": {high}}}'))
    assert matcher.validate([*low.encode(), 256]) == len(low) + 1
    assert matcher.validate([*high.encode(), 256]) == len(high) + 1
    assert matcher.validate([*b"0.12345678901234567890123456789012345678902", 256]) < 43


def chain_of_references(count: int) -> dict[str, Any]:
    chain: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(count)}
    return {
        "$defs": {**chain, f"d{count}": {"type": "null"}},
        "type": "object",
        "properties": {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(count)},
        "required": [f"p{count - 1}"],
    }


def test_long_chains_of_references_are_followed_once() -> None:
    source = gw.JsonSchema(chain_of_references(3000))
    assert source.parse('{"p2999": null}') == {"p2999": None}
    assert not parses(source, '{"p2999": 1}')
    assert not parses(source, '{"p0": 1, "p2999": null}')
    short, long = (lines(partial(gw.JsonSchema, chain_of_references(count))) for count in (500, 1000))
    assert long < 2.2 * short


def test_a_pointer_with_thousands_of_digits() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="leads nowhere"):
        gw.JsonSchema({"prefixItems": [True], "items": {"$ref": "#/prefixItems/" + "0" * 5000}})


def tagged(count: int) -> list[dict[str, Any]]:
    return [{"type": "object", "properties": {"t": {"const": f"a{i}"}}, "required": ["t"]} for i in range(count)]


def constants(count: int) -> list[dict[str, Any]]:
    return [{"const": i} for i in range(count)]


def test_one_of_with_many_branches() -> None:
    source = gw.JsonSchema({"oneOf": tagged(500)})
    assert source.parse('{"t": "a499"}') == {"t": "a499"}
    assert not parses(source, '{"t": "a500"}')
    source = gw.JsonSchema({"oneOf": constants(5000)})
    assert source.parse("4999") == 4999
    assert not parses(source, "5000")
    for branches in (tagged, constants):  # an equal schema compiles once, so these sizes are new
        short, long = (lines(partial(gw.JsonSchema, {"oneOf": branches(count)})) for count in (450, 900))
        assert long < 2.2 * short
    with pytest.raises(gw.errors.LimitExceededError, match="/oneOf"):
        gw.JsonSchema({"oneOf": [*tagged(5000), tagged(8)[7]]})


def test_choices_that_double_end() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        inner = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
        schema = {"oneOf": [schema, inner]}
    with pytest.raises(gw.errors.LimitExceededError):
        gw.JsonSchema(schema, profile="exact")


def test_deep_text_that_is_not_json() -> None:
    with pytest.raises(gw.errors.InvalidTextError):
        gw.JsonSchema(True).parse("[" * 30_000)
    deep = gw.JsonSchema(True).parse("[" * 30_000 + "1.5" + "]" * 30_000)
    while isinstance(deep, list):
        (deep,) = deep
    assert type(deep) is float


@pytest.mark.parametrize("texts", [5, None, [[]], [1], [], "abc", ["\ud800"]])
def test_choices_that_are_none(texts: Any) -> None:
    with pytest.raises(gw.errors.InvalidConstraintError):
        gw.Choice(texts)


def test_a_type_nested_too_deeply() -> None:
    nested: Any = int
    for _ in range(1500):
        nested = list[nested]
    with pytest.raises(gw.errors.LimitExceededError):
        gw.compile(nested, BYTES)


def test_ids_are_integers() -> None:
    with pytest.raises(TypeError):
        gw.Vocabulary([b"a", b"b"], eos_ids=[0.7])  # type: ignore[list-item]  # a wrong type is what is tested


def test_options_are_not_dropped() -> None:
    model = ConstantModel(BYTES)
    options: Any = {"max_token": 1}
    with pytest.raises(TypeError, match="max_token"):
        gw.stream(model, "x", gw.Regex("a"), **options)
    for options in ({"max_tokens": 5.5}, {"max_tokens": "5"}, {"seed": [1]}, {"seed": None}):
        with pytest.raises(TypeError):
            gw.generate(model, "x", gw.Regex("a"), **options)


def test_huge_id_of_an_added_token_is_refused(tmp_path: Path) -> None:
    added = [{"id": 0, "content": "a", "special": True, "single_word": False, "lstrip": False, "rstrip": False}]
    document = {"model": {"type": "BPE", "vocab": {"a": 4_000_000_000}, "merges": []}, "added_tokens": added}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(gw.errors.InvalidFileError, match="4000000000"):
        Tokenizer.of(tmp_path)


def test_a_text_with_a_lone_surrogate() -> None:
    bare = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    bare.decoder = tokenizers.decoders.ByteLevel()
    for source in (bare, BYTES):
        with pytest.raises(gw.errors.InvalidTokenError, match="character 1"):
            Tokenizer.of(source).encode("a\ud800")


def test_lines_of_json(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps({"text": "one\u2028two\x85three"}, ensure_ascii=False) + "\n", "utf-8")
    assert read_texts(str(file)).lines == [{"text": "one\u2028two\x85three"}]
    file.write_text("[" * 100_000, "utf-8")
    with pytest.raises(gw.errors.InvalidFileError, match="line 1"):
        read_lines(file)
    with pytest.raises(UsageError, match="does not exist"):
        read_texts(str(tmp_path / "missing.jsonl").replace(" ", ""))


def nested(keyword: str, depth: int) -> Any:
    made: Any = {"type": "string"}
    for _ in range(depth):
        made = {keyword: [made, {"type": "object", "properties": {"a": made}, "required": ["a"]}]}
    return made


def deep(depth: int) -> Any:
    made: Any = {"type": "string"}
    for _ in range(depth):
        made = {"type": "object", "properties": {"a": made}}
    return made


COSTLY: dict[str, tuple[Any, bool]] = {  # and whether it is served
    "oneOf in oneOf": (nested("oneOf", 12), False),
    "anyOf in anyOf": (nested("anyOf", 12), True),
    "patterns that meet": ({"patternProperties": {f"a.{{{n}}}x": {"minimum": n} for n in range(3, 23)}}, False),
    "patterns of many states": (
        {"patternProperties": {f"^(a|b)*a(a|b){{12}}{n}": {"type": "string"} for n in range(12)}},
        True,
    ),
    "names and patterns": (
        {
            "properties": {f"p{n}": {"type": "integer"} for n in range(3000)},
            "patternProperties": {f"{n}.*{n}": {"minLength": n} for n in range(8)},
        },
        False,
    ),
    "given objects": ({"enum": [{"a": n, "b": [n]} for n in range(50_000)]}, False),
    "given strings": ({"enum": [f"value {n}" for n in range(10_000)]}, True),
    "required names": ({"type": "object", "required": [f"n{n}" for n in range(20_000)]}, True),
    "different items": ({"uniqueItems": True, "items": {"enum": list(range(1000))}, "minItems": 900}, False),
    "a large divisor": ({"type": "number", "multipleOf": 1_000_003}, False),
    "a divisor of many digits": ({"type": "number", "multipleOf": 0.1234567891234567, "minimum": 0.5}, False),
    "look-aheads": ({"type": "string", "pattern": "^(?=.*a.{8}b)(?=.*b.{9}c)(?=.*c.{10}d).*$"}, False),
    "patterns at once": ({"allOf": [{"type": "string", "pattern": f"a.{{{n}}}b"} for n in range(5, 13)]}, True),
    "a pattern and a length": ({"type": "string", "minLength": 1_000_000, "pattern": "^(a|b)+$"}, True),
    "two counts and a length": ({"type": "string", "minLength": 1_000_000, "pattern": "^(a|b)+c+$"}, False),
    "depth": (deep(1000), True),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_costly_schema_is_served_or_refused_in_bounded_time(name: str) -> None:
    schema, served = COSTLY[name]
    start = time.thread_time()  # the frontend counts alternatives, states and classes, each for itself, and no total
    if served:
        source = gw.JsonSchema(schema, profile="exact")
        gw.compile(
            source, BYTES, cache=False, limits=CompileLimits(max_work=10_000_000)
        )  # at most 3.5 million are needed
    else:
        with pytest.raises(gw.errors.LimitExceededError) as caught:
            matcher_of(gw.JsonSchema(schema, profile="exact"))
        assert caught.value.place is not None
    assert time.thread_time() - start < 4  # some cases take a second on an idle machine


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_shared_parts_count_at_each_of_their_places(kind: type) -> None:
    schema: Any = {"type": "null"}
    for _ in range(24):
        schema = {"anyOf": kind([schema, schema])} if kind is not dict else {"properties": {"a": schema, "b": schema}}
    start = time.thread_time()
    for make in (gw.JsonSchema, gw.constraints.of):
        with pytest.raises(gw.errors.LimitExceededError, match="more than 2,000,000 values"):
            make(schema)
    assert time.thread_time() - start < 1  # the values are counted before they are copied


ENDLESS: dict[str, tuple[Any, str | None]] = {  # each would take minutes without a limit on counted work; its place
    "counts under complements": (~((~gw.Regex("[bc]{0,75}").repeat(2, 5)).repeat(0, 35)), None),
    "counts and a letter": (~((~gw.Regex("[bc]{0,75}a").repeat(2, 5)).repeat(0, 35)), None),
    "one of many counts": (
        gw.JsonSchema(
            {"properties": {"a": {"oneOf": [{"pattern": f"^((a|b){{0,{n}}}a(a|b)?){{2,5}}c"} for n in (41, 43, 45)]}}},
            profile="exact",
        ),
        "/properties/a",
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_unbounded_work_is_limited(name: str) -> None:
    constraint, place = ENDLESS[name]
    with pytest.raises(gw.errors.LimitExceededError, match=r"max_work = |more than \d+ states in the search") as caught:
        matcher_of(constraint)
    assert caught.value.place == place


@pytest.mark.parametrize("rows", [[(None, 0, 0, -1)], [(None, 0, 0, 2**40)], [(1, 0, 0, 0)], [None], [(None, 0)]])
def test_rows_of_a_loop_that_are_none_are_a_type_error(rows: Any) -> None:
    with pytest.raises(TypeError, match="a row is a matcher"):
        _kernel.LoopRows(rows)


@pytest.mark.parametrize(
    ("ids", "logits"),
    [
        (np.zeros((2, 3), np.int32), np.zeros((2, 8), np.float32)),
        (np.zeros((2, 3), np.int64), np.zeros((2, 8), np.float16)),
        (np.zeros((2, 3), ">i8"), np.zeros((2, 8), np.float32)),
        (np.zeros((2, 3), np.int64), np.zeros((2, 16), np.float32)[:, ::2]),
        (np.zeros((3, 2), np.int64).T, np.zeros((2, 8), np.float32)),
        (np.zeros(3, np.int64), np.zeros((2, 8), np.float32)),
        (np.zeros((1, 3), np.int64), np.zeros((2, 8), np.float32)),
        (np.zeros((2, 4), np.int64), np.zeros((2, 8), np.float32)),
        (np.ones((2, 3), np.int64), np.zeros((2, 8), np.float32)),
        (np.zeros((2, 3), np.int64), np.frombuffer(bytes(64), np.float32).reshape(2, 8)),
        (np.zeros((2, 3), np.int64), np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (2, 8), (0, 4))),
        ([[0, 0, 0], [0, 0, 0]], np.zeros((2, 8), np.float32)),
    ],
)
def test_other_rows_and_other_logits_are_not_taken(ids: Any, logits: Any) -> None:
    clock, rows = _kernel.LoopClock(), _kernel.LoopRows([(None, 0, 0, 0)] * 2)
    good = np.zeros((2, 3), np.int64), np.zeros((2, 8), np.float32)
    assert rows.run_on(*good, good[1], clock) is None  # before `know`
    rows.know(np.zeros((2, 2), np.int64))
    assert rows.run_on(*good, None, clock) is None
    assert rows.run_on(ids, logits, logits, clock) is None
    assert (rows.width, rows.lengths, clock.take()[0]) == (2, [(0, 0)] * 2, 0)
    assert rows.run_on(*good, good[1], clock) == []


def test_one_call_in_the_kernel_for_a_step() -> None:
    clock, rows = _kernel.LoopClock(), _kernel.LoopRows([(None, 0, 0, 0)] * 2)
    rows.know(np.zeros((2, 2), np.int64))
    ids, logits = np.zeros((2, 400), np.int64), np.ones((2, 8), np.float32)
    with pytest.raises(ValueError, match="different sizes"):
        rows.run_on(ids[:, :3], logits, np.ones((2, 9), np.float32), clock)
    assert clock.enter() is not None
    assert rows.run_on(ids[:, :4], logits, logits, clock) is None  # another call is in
    clock.leave()
    rows.know(np.zeros((2, 3), np.longlong))  # on some machines another type of the same numbers
    for width in range(4, 400):
        assert rows.run_on(ids[:, :width], logits, logits, clock) == []
    assert rows.known.shape == (2, 399)
    calls, *_ = clock.take()
    assert (calls, clock.take()[0]) == (396, 0)
    with pytest.raises(TypeError):
        rows.run_on(ids, logits, logits, None)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="int64"):
        rows.know(np.zeros((2, 2), np.int32))  # type: ignore[arg-type]  # what is tested
