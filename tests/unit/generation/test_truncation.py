"""`finish_reason`, `truncation` and `on_truncation`: what a token budget changed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, create_model

import guideway as gw
from guideway.cli.app import main
from guideway.generation import (
    Generation,
    PartialValue,
    Truncation,
    acomplete,
    astream_values,
    complete,
    stream_extract,
)
from guideway.jsontext.pointer import pointer_at
from guideway.sessions import Divergence
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary

from ...helpers.truncation_twin import disagreement, extractions, with_bans

NAMES = gw.JsonSchema(
    {
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}}},
        "required": ["names"],
    }
)


@pytest.fixture(scope="module")
def tiny() -> gw.Model:
    return gw.load("tiny")


def chooser(*tokens: bytes) -> gw.Model:
    """A model that prefers earlier tokens, with EOS last."""
    return ConstantModel(Vocabulary([*tokens, b""], eos_ids=[len(tokens)]), [float(-n) for n in range(len(tokens) + 1)])


def agree(model: gw.Model, count: int) -> None:
    tally, faults, seed = Counter[str](), [], 0
    while tally["same"] + tally["completed early"] < count:
        for found, free in zip(*extractions(model, seed), strict=True):
            if problem := disagreement(found, free, model, tally):
                faults.append((seed, problem))
        seed += 1
    assert not faults, faults[:5]
    assert min(tally["same"], tally["completed early"]) > count / 4
    assert tally["with a place below the root"] > count / 20


def test_truncation_agrees_with_a_run_without_a_budget(tiny: gw.Model) -> None:
    agree(tiny, 30)


@pytest.mark.slow
def test_truncation_of_500_extractions_agrees_with_a_run_without_a_budget(tiny: gw.Model) -> None:
    agree(tiny, 500)


def agree_with_bans(model: gw.Model, count: int) -> None:
    """Compare texts with banned strings with runs without a budget, and `on_truncation="raise"` with both."""
    tally, faults, seed = Counter[str](), [], 0
    while sum(tally.values()) < count:
        if problem := with_bans(model, seed, tally):
            faults.append((seed, problem))
        seed += 1
    assert not faults, faults[:5]
    assert min(tally["same"], tally["completed early"]) > count / 5


def test_truncation_with_banned_strings_agrees_with_a_run_without_a_budget(tiny: gw.Model) -> None:
    agree_with_bans(tiny, 12)


@pytest.mark.slow
def test_truncation_of_600_texts_with_banned_strings(tiny: gw.Model) -> None:
    agree_with_bans(tiny, 600)


def test_the_truncation_is_not_that_of_a_removed_token(tiny: gw.Model) -> None:
    """The budget also excludes a token that the run without a budget rolls back."""
    form, options = gw.Regex("[a-z ]{2,60}"), {"bad_words": ["e", " the"], "seed": 55833}
    found = complete(tiny, "Names: ", form, max_tokens=8, **options)  # type: ignore[call-overload]  # as a dict
    free = complete(tiny, "Names: ", form, max_tokens=28, allow_truncation=True, **options)  # type: ignore[call-overload]  # as a dict
    assert found.tokens[:6] == free.tokens[:6]
    assert found.truncation == ("completed_early", "max_tokens", 6, free.tokens[6], None, 7)


def test_extract_with_a_small_budget_reports_the_place(tiny: gw.Model) -> None:
    found = complete(tiny, "Names: ", NAMES, max_tokens=8, temperature=1.0, seed=3)
    assert found.finish_reason == "length"
    assert found.value == json.loads(found.text)
    assert found.truncation is not None
    assert found.truncation.kind == "completed_early"
    assert found.truncation.place is not None
    assert found.truncation.place.startswith("/names")
    whole = complete(tiny, "Names: ", NAMES, max_tokens=500, temperature=1.0, seed=3, allow_truncation=True)
    assert whole.tokens[: found.truncation.token_index] == found.tokens[: found.truncation.token_index]
    assert whole.tokens[found.truncation.token_index] == found.truncation.token_id


def test_a_forced_text_that_needs_other_tokens_within_the_budget() -> None:
    """Without the budget, the forced text is spelled with its longest first tokens."""
    model = chooser(b"x", b"ab", b"c", b"d", b"a", b"bcd")
    for options in ({}, {"temperature": 1.0}):
        free = complete(model, "x", gw.Regex("xabcd"), max_tokens=9, **options)  # type: ignore[call-overload]  # as a dict
        assert (free.tokens, free.truncation) == ((0, 1, 2, 3, 6), None)
        tight = complete(model, "x", gw.Regex("xabcd"), max_tokens=4, **options)  # type: ignore[call-overload]  # as a dict
        assert tight.tokens == (0, 4, 5, 6)
        assert tight.truncation == ("completed_early", "max_tokens", 1, 1, None, 1)
        assert tight.value == "xabcd"


def test_the_only_token_that_fits_the_budget_is_compared() -> None:
    model = chooser(b"a", b"b", b"c")
    found = complete(model, "a", gw.Regex("[ab]{2,5}c"), max_tokens=5)
    assert (found.text, found.truncation) == ("aaac", ("completed_early", "max_tokens", 3, 0, None, 3))
    equal = complete(chooser(b"c", b"a", b"b"), "a", gw.Regex("[ab]{2,5}c"), max_tokens=4)
    assert (equal.text, equal.finish_reason, equal.truncation) == ("aac", "stop", None)


def test_the_budget_is_compared_only_until_the_first_difference() -> None:
    """Tokens that only the budget forces need no pass of the model after the first one."""
    model = chooser(b"a", b"b", b"c")
    found = complete(model, "a", gw.Regex("a{2,9}bc|a{2,9}ccc"), max_tokens=6)
    assert found.truncation is not None
    assert found.truncation.token_index == 3
    assert found.text == "aaabc"
    assert found.forced == 4  # the first two tokens, and the last two


def test_minimal_number_of_tokens_and_budget() -> None:
    model = ConstantModel(Vocabulary([b"a", b""], eos_ids=[1]), [0.0, 1.0])  # prefers the end
    free = complete(model, "a", gw.Regex("a*"), min_tokens=3, max_tokens=9)
    assert (free.text, free.finish_reason) == ("aaa", "stop")
    tight = complete(model, "a", gw.Regex("a*"), min_tokens=3, max_tokens=3)
    assert (tight.text, tight.truncation) == ("aa", ("completed_early", "max_tokens", 2, 0, None, 2))


def test_a_banned_string_within_a_budget() -> None:
    model = chooser(b"a", b"b", b"c")
    free = complete(model, "a", gw.Regex("[ab]{1,6}c"), bad_words="aa", max_tokens=50)
    assert (free.finish_reason, free.truncation) == ("stop", None)
    tight = complete(model, "a", gw.Regex("[ab]{1,6}c"), bad_words="aa", max_tokens=5)
    assert (tight.text, tight.truncation) == ("bbac", ("completed_early", "max_tokens", 2, 1, None, 2))


def test_free_text_is_cut() -> None:
    found = complete(chooser(b"a", b"b"), "a", max_tokens=3)
    assert (found.finish_reason, found.truncation) == ("length", ("cut", "max_tokens", 3, None, None, 3))


def test_a_cut_json_text_has_a_place() -> None:
    model = ConstantModel(gw.load("tiny").vocabulary)
    found = complete(model, "a", NAMES, max_tokens=12, temperature=1.0, seed=1, allow_truncation=True)
    assert found.truncation is not None
    assert (found.truncation.kind, found.value, found.finish_reason) == ("cut", None, "length")
    assert found.truncation.place == pointer_at(found.text)


def test_streams_and_async_report_the_same(tiny: gw.Model) -> None:
    options: dict[str, Any] = {"max_tokens": 9, "temperature": 1.0, "seed": 5}
    one: Generation[Any] = complete(tiny, "Names: ", NAMES, **options)
    stream = gw.stream(tiny, "Names: ", NAMES, **options)
    assert "".join(stream) == one.text
    assert stream.results.truncation == one.truncation is not None
    assert asyncio.run(acomplete(tiny, "Names: ", NAMES, **options)).truncation == one.truncation
    values = gw.stream_values(tiny, "Names: ", NAMES, **options)
    assert list(values)[-1].value == one.value
    assert values.results.truncation == one.truncation


@pytest.mark.parametrize("output", [list[str], NAMES])
def test_streams_of_values_of_texts_that_are_cut(tiny: gw.Model, output: Any) -> None:
    options: dict[str, Any] = {"max_tokens": 3, "temperature": 1.0, "seed": 5}
    for stream in (
        gw.stream_values(tiny, "Names: ", output, **options, allow_truncation=True),
        stream_extract(tiny, "Names: ", output, **options, allow_truncation=True),
    ):
        last = list(stream)[-1]
        assert (last.value, stream.results.truncation.kind) == (None, "cut")

    async def values(**given: Any) -> list[PartialValue[Any]]:
        return [value async for value in astream_values(tiny, "Names: ", output, **given)]

    assert asyncio.run(values(**options, allow_truncation=True))[-1].value is None
    halted: dict[str, Any] = {**options, "max_tokens": 9, "on_truncation": "raise", "return_exceptions": True}
    with pytest.raises(gw.errors.TruncatedError):
        list(gw.stream_values(tiny, "Names: ", output, **halted))
    with pytest.raises(gw.errors.TruncatedError):
        asyncio.run(values(**halted))


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_a_stream_of_values_that_a_validator_rejects(tiny: gw.Model, error: type[Exception]) -> None:
    def reject(value: str) -> str:
        raise error("no name is good")

    record = create_model("Rejected", name=(Annotated[str, AfterValidator(reject)], ...), age=(int, ...))
    seen: list[object] = []
    with pytest.raises(gw.errors.InvalidTextError, match="no name is good"):
        seen.extend(gw.stream_values(tiny, "Names: ", record))
    with pytest.raises(gw.errors.InvalidTextError, match="no name is good"):
        list(gw.stream_values(tiny, "Names: ", record, return_exceptions=True))


def test_a_number_that_is_cut_is_not_a_partial_value() -> None:
    model = ConstantModel(
        Vocabulary([*(b"%d" % n for n in range(10)), b""], eos_ids=[10]), [9.0 - n for n in range(11)]
    )
    options: dict[str, Any] = {"max_tokens": 3, "sampler": gw.Sampler(temperature=1.0), "allow_truncation": True}
    stream = gw.stream_values(model, "1", gw.JsonSchema({"type": "integer", "minimum": 10**6}), **options)
    assert list(stream)[-1].data is None


def test_a_stream_that_raises_shows_no_text_after_the_truncation(tiny: gw.Model) -> None:
    """With banned strings, the truncation is known only after more tokens."""
    form, options = gw.Regex("[a-z ]{2,60}"), {"bad_words": ["e", " the"], "seed": 55833, "max_tokens": 8}
    shown: list[str] = []
    stream = gw.stream(tiny, "Names: ", form, **options, on_truncation="raise")  # type: ignore[call-overload]  # as a dict
    with pytest.raises(gw.errors.TruncatedError) as found:
        shown.extend(stream)
    assert "".join(shown) == found.value.generation.text == "dor   s"


def test_a_resumed_text_is_not_refused_for_an_earlier_truncation() -> None:
    model = chooser(b"a", b"b", b"c")
    found = complete(model, "a", gw.Regex("[ab]{2,9}c[ab]{2,9}c"), max_tokens=9)
    assert found.truncation is not None
    state = replace(found.state, tokens=found.state.tokens[: found.truncation.token_index + 1])
    again = gw.resume(model, state, max_tokens=30, on_truncation="raise")
    assert (again.text.count("c"), again.truncation) == (2, found.truncation)
    with pytest.raises(
        gw.errors.TruncatedError, match=r"max_tokens=5 \(after \d tokens of the state\) shortens"
    ) as error:
        gw.resume(model, state, max_tokens=5, on_truncation="raise")
    later = error.value.generation.truncation
    assert later is not None
    assert later.token_index > found.truncation.token_index
    halted = error.value.generation.state
    assert halted.divergence == state.divergence is not None
    assert gw.resume(model, halted, max_tokens=30).truncation == found.truncation


def test_on_truncation_raise(tiny: gw.Model) -> None:
    options: dict[str, Any] = {"max_tokens": 9, "temperature": 1.0, "seed": 5, "on_truncation": "raise"}
    one = complete(tiny, "Names: ", NAMES, **{**options, "on_truncation": "return"})
    assert one.truncation is not None
    with pytest.raises(gw.errors.TruncatedError, match="max_tokens=9 shortens the text after") as found:
        gw.generate(tiny, "Names: ", NAMES, **options)
    partial = found.value.generation
    assert partial.tokens == one.tokens[: one.truncation.token_index]
    assert (partial.truncation, partial.value, partial.finish_reason) == (one.truncation, None, "length")
    resumed = gw.resume(tiny, partial.state, max_tokens=400, temperature=1.0)
    free = complete(tiny, "Names: ", NAMES, max_tokens=400, temperature=1.0, seed=5)
    assert resumed.tokens[: len(partial.tokens) + 1] == free.tokens[: len(partial.tokens) + 1]
    with pytest.raises(gw.errors.TruncatedError):
        list(gw.stream(tiny, "Names: ", NAMES, **options))
    with pytest.raises(gw.errors.TruncatedError):
        asyncio.run(acomplete(tiny, "Names: ", NAMES, **options))
    kept = gw.generate(tiny, ["Names: ", "Names: "], NAMES, **options, return_exceptions=True)
    assert all(isinstance(error, gw.errors.TruncatedError) for error in kept)
    with pytest.raises(gw.errors.TruncatedError, match="cuts the text after 3 tokens"):
        gw.generate(tiny, "Names: ", max_tokens=3, on_truncation="raise")
    assert gw.generate(tiny, "The year ", gw.Regex("(19|20)[0-9]{2}"), on_truncation="raise", max_tokens=9)
    with pytest.raises(ValueError, match='on_truncation must be "return" or "raise"'):
        gw.generate(tiny, "x", on_truncation="ignore")  # type: ignore[call-overload]  # refused


def test_a_resumed_state_keeps_what_the_budget_changed() -> None:
    model = chooser(b"a", b"b", b"c")
    found = complete(model, "a", gw.Regex("[ab]{2,5}c"), max_tokens=5)
    again = gw.resume(model, found.state, max_tokens=9)
    assert (again.text, again.truncation) == (found.text, found.truncation)
    edited = found.state.edited(model, "aa")
    assert gw.resume(model, edited, max_tokens=9).truncation is None


def test_session_divergence(tmp_path: Path) -> None:
    model, form = chooser(b"a", b"b", b"c"), gw.Regex("[ab]{2,5}c")
    session = model.session()
    session.feed("b")
    session.constrain(form)
    assert session.divergence is None
    session.complete(max_tokens=5)
    assert session.text == "baaac"
    assert session.divergence == Divergence(4, 0)
    assert session.fork().divergence == Divergence(4, 0)
    session.save(tmp_path / "session")
    assert model.load_session(tmp_path / "session", constraint=form).divergence == Divergence(4, 0)
    session.rewind(1)
    assert session.divergence == Divergence(4, 0)
    session.rewind(1)
    assert session.divergence is None
    assert session.infer() == 0


def test_the_context_is_named() -> None:
    model = ConstantModel(Vocabulary([b"a", b"b", b""], eos_ids=[2]), [1.0, 0.0, -1.0], context_size=6)
    found = complete(model, "a", gw.Regex("a+b"))
    assert found.text == "aaab"
    assert found.truncation == ("completed_early", "context", 3, 0, None, 3)


def test_the_command_line_reports_the_truncation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.json").write_text(json.dumps({"type": "array", "items": {"type": "string"}, "minItems": 1}))
    with pytest.raises(SystemExit) as exit_:
        main(["generate", "Names: ", "--schema", str(tmp_path / "schema.json"), "--max-tokens", "6", "--json"])
    assert exit_.value.code in (0, None)
    line = json.loads(capsys.readouterr().out)
    assert line["finish_reason"] == "length"
    assert line["truncation"].keys() == set(Truncation._fields)


@pytest.mark.parametrize(
    ("text", "following", "place"),
    [
        ("", None, ""),
        ('{"a', None, ""),
        ('{"a"', None, ""),
        ('{"a": ', None, "/a"),
        ('{"a": "x', None, "/a"),
        ('{"a": "x\\"', None, "/a"),
        ('{"a": "x\\\\"', None, ""),
        ('{"a": "x", "b', None, ""),
        ('{"a/~": [', None, "/a~1~0"),
        ('{"a": ["x"', None, "/a"),
        ('{"a": ["x",', None, "/a/1"),
        ('{"a": ["x", {"b": tru', None, "/a/1/b"),
        ('{"a": ["x", {"b": true', None, "/a/1"),
        ('{"a": 12', None, "/a"),
        ('{"a": 12', "3", "/a"),
        ('{"a": 12', ",", ""),
        ('{"a": -', ",", "/a"),
        ("[[1, 2], [3", ", 4", "/1"),
        ("[[1, 2]]", None, ""),
        ("12", None, ""),
        ('"a', None, ""),
    ],
)
def test_the_pointer_of_a_position_in_a_text(text: str, following: str | None, place: str) -> None:
    assert pointer_at(text, following) == place
