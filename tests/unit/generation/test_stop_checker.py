"""Stop strings, forbidden strings and limits: what ends a text, and what a stream withholds."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

import guideway as gw
from guideway.generation import Generation, Model, complete
from guideway.generation.stop_checker import Watch
from guideway.testing import ConstantModel
from guideway.tokenizers import TextStream, Vocabulary
from tests.helpers.toy_models import toy_model

BYTES = [
    b"",
    *(bytes([n]) for n in b'abcdefgh .,{}":0123'),
    b"ab",
    b"cab",
    b"bc",
    b"\xe2",
    b"\x82",
    b"\xac",
    b"\xc3\xa9",
]
VOCABULARY = Vocabulary(BYTES, eos_ids=[0], special_ids=[0])
HOT: dict[str, Any] = {"sampler": gw.Sampler(temperature=2.0, logit_bias={0: -math.inf}), "max_tokens": 40}
"""Options with which no text ends before 40 tokens."""


@pytest.fixture(scope="module", params=[True, False], ids=["supports_rollback", "recurrent"])
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(VOCABULARY, 5, supports_rollback=request.param)


def details(model: Model, output: Any = None, **options: Any) -> Generation[Any]:
    return complete(model, "ab", output, **options)


def test_a_stop_string_ends_the_text_in_front_of_it(model: Model) -> None:
    met = 0
    for seed in range(30):
        whole = details(model, seed=seed, **HOT).text
        found = details(model, seed=seed, stop=["cab", "ba", "é."], **HOT)
        starts = [at for stop in ("cab", "ba", "é.") if (at := whole.find(stop)) >= 0]
        if not starts:
            assert (found.text, found.finish_reason, found.stopped_by) == (whole, "length", None)
            continue
        met += 1
        # Of two that overlap, the one that was whole first counts.
        assert (found.finish_reason, found.stopped_by) == ("stop", whole[len(found.text) :][: len(found.stopped_by)])
        assert found.text == whole[: len(found.text)]
        assert len(found.text) in (min(starts), min(starts) + 1, min(starts) + 2)
    assert met > 10


def test_stop_ids_and_functions(model: Model) -> None:
    comma = BYTES.index(b",")
    found = details(model, stop_token_ids=[comma], **HOT)
    assert found.finish_reason == "stop"
    assert found.tokens.index(comma) == len(found.tokens) - 1
    asked: list[str] = []

    def enough(text: str) -> bool:
        asked.append(text)
        return len(text) >= 7

    found = details(model, stopping_criteria=enough, **HOT)
    assert found.finish_reason == "stop"
    assert 7 <= len(found.text) <= 10
    assert asked[-1] == found.text


@pytest.mark.parametrize("banned", [["a"], ["ab", "c"], ["cab", "d", "€"], ["bcab", "a.", ". "]])
def test_the_text_never_contains_a_banned_string(model: Model, banned: list[str]) -> None:
    for seed in range(8):
        found = details(model, seed=seed, bad_words=banned, logprobs=1 if seed % 2 else None, **HOT)
        assert not any(one in found.text for one in banned)
        assert len(found.tokens) == 40
        stream = TextStream()
        assert stream.push(model.vocabulary.bytes_of(found.tokens)) == found.text
        assert stream.pending == found.incomplete_bytes
        assert len(found.steps) in (0, 40)
        assert [step.token_id for step in found.steps] in ([], list(found.tokens))


def test_bans_hold_under_a_constraint_and_within_its_budget(model: Model) -> None:
    source = gw.Regex(r"\{(a|cab|bc|d){3,9}\}")
    for seed in range(10):
        for budget in (6, 9, 14):
            found = details(model, source, seed=seed, bad_words=["aa", "cabd"], temperature=2.0, max_tokens=budget)
            assert re.fullmatch(source.pattern, found.value)
            assert "aa" not in found.text
            assert "cabd" not in found.text
            assert len(found.tokens) <= budget
    assert details(model, gw.Choice(["abc", "bcd"]), bad_words="ab").value == "bcd"
    # The rollback includes forced text, up to the choice before it.
    assert details(model, gw.Regex("a(b{9}|d{9})"), bad_words="bbbbbbbbb").value == "a" + "d" * 9
    with pytest.raises(gw.errors.UnsatisfiableError, match="banned string"):
        details(model, gw.Regex("ab|aba"), bad_words="ab")
    with pytest.raises((gw.errors.UnsatisfiableError, gw.errors.LimitExceededError), match=r"banned string|bad_words"):
        details(model, gw.Regex("(ab|cd){8}ef"), bad_words="ef")


def test_errors_say_whether_text_was_streamed(model: Model) -> None:
    wanted = r"^no text fits within max_tokens=8 without a banned string of \('b',\)$"
    with pytest.raises(gw.errors.UnsatisfiableError, match=wanted):
        gw.generate(model, "a", gw.Choice(["abc", "b"]), bad_words="b", max_tokens=8)
    with pytest.raises(gw.errors.UnsatisfiableError, match=wanted):
        list(gw.stream(model, "a", gw.Choice(["ba", "bc"]), bad_words="b", max_tokens=8))
    with pytest.raises(gw.errors.UnsatisfiableError, match=r"^no text fits without a banned string of \('b',\)$"):
        gw.generate(model, "a", gw.Regex("[b]+"), bad_words="b", allow_truncation=True)
    pieces = list[str]()
    wanted = r"^no continuation of the streamed text fits within max_tokens=9 without a banned string of \('bc',\)$"
    with pytest.raises(gw.errors.UnsatisfiableError, match=wanted):
        pieces.extend(gw.stream(model, "a", gw.Regex("(a|d){3}bc"), bad_words="bc", max_tokens=9))
    # `extend` keeps the pieces that were yielded before the error.
    assert "".join(pieces)


def test_forbidden_strings_keep_relative_probabilities() -> None:
    """On a model with constant logits, rolled-back samples do not change the proportions of the remaining tokens."""
    vocabulary = Vocabulary([b"", b"a", b"b", b"c", b"d"], eos_ids=[0], special_ids=[0])
    model = ConstantModel(vocabulary, [-30.0, 2.0, 0.0, 0.7, 0.0])
    text = gw.generate(model, "a", bad_words="a", temperature=1.0, max_tokens=3000)
    shares = [text.count(char) / len(text) for char in "bcd"]
    assert shares == pytest.approx([0.248, 0.503, 0.248], abs=0.03)


@pytest.mark.parametrize(
    "options", [{"stop": ["cab", "ba"]}, {"bad_words": ["ab", "bc", "€"]}, {"stop": "h.", "bad_words": "cd"}]
)
def test_a_stream_shows_only_what_is_certain(model: Model, options: dict[str, Any]) -> None:
    for seed in range(12):
        text = details(model, seed=seed, **options, **HOT).text
        pieces = list(gw.stream(model, "ab", seed=seed, **options, **HOT))
        assert "".join(pieces) == text
        shown = ""
        for piece in pieces:
            shown += piece
            assert text.startswith(shown)
            assert not any(
                stop in shown for stop in (*options.get("stop", ()), *options.get("bad_words", ())) if len(stop) > 1
            )


@given(
    st.lists(st.sampled_from(range(1, len(BYTES))), max_size=30),
    st.lists(st.text("abc€ ", min_size=1, max_size=4), max_size=3),
)
def test_incremental_stop_search_equals_full_search(ids: list[int], stops: list[str]) -> None:
    watch, shown = Watch(VOCABULARY, [one.encode() for one in stops]), ""
    for token_id in ids:
        watch.push(token_id)
        shown += watch.show(finished=watch.cut is not None)
        if watch.cut is not None:
            break
    data = VOCABULARY.bytes_of(ids)
    ends = [data.find(one.encode()) + len(one.encode()) for one in stops if one.encode() in data]
    if not ends:
        assert watch.cut is None
        assert watch.data == data
    else:
        assert watch.cut is not None
        assert data[: watch.cut + len((watch.stopped_by or "").encode())].endswith((watch.stopped_by or "").encode())
        assert not any(one.encode() in watch.data for one in stops)
        assert shown == TextStream().push(watch.data)


def test_min_tokens(model: Model) -> None:
    likely = ConstantModel(VOCABULARY, [9.0, *[0.0] * (len(BYTES) - 1)])
    assert len(complete(likely, "a", temperature=1.0).tokens) < 5
    found = complete(likely, "a", min_tokens=12, temperature=1.0, seed=2)
    assert len(found.tokens) >= 13
    assert 0 not in found.tokens[:12]
    # A constraint that cannot be extended ends the text.
    assert details(model, gw.Regex("a{1,4}"), min_tokens=20, max_tokens=30).value == "aaaa"
    assert len(details(model, gw.Regex("a*"), min_tokens=20, max_tokens=30).text) >= 20


@pytest.mark.parametrize("least", [0, 5, 17, 40])
@pytest.mark.parametrize("more", [{}, {"logprobs": 1}, {"bad_words": ["€€"]}], ids=str)
def test_stop_options_and_min_tokens(model: Model, least: int, more: dict[str, Any]) -> None:
    """As in vLLM: a stop string does not end the text before `min_tokens`; ids of `stop_token_ids` are not drawn."""
    comma, met = BYTES.index(b","), 0
    asked: list[str] = []

    def never(text: str) -> bool:
        asked.append(text)
        return False

    for seed in range(6):
        whole = details(model, seed=seed, **more, **HOT)
        data, end = VOCABULARY.bytes_of(whole.tokens), len(VOCABULARY.bytes_of(whole.tokens[:least]))
        found = details(model, seed=seed, stop="b", min_tokens=least, **more, **HOT)
        at = data.find(b"b", end)
        assert found.finish_reason == ("length" if at < 0 else "stop")
        assert found.text == TextStream().push(data if at < 0 else data[:at])
        met += at >= 0
        asked.clear()
        details(model, seed=seed, stopping_criteria=never, min_tokens=least, **more, **HOT)
        assert len(asked) == max(39 - least, 0)  # it is not called after the last token
        ended = details(model, seed=seed, stop_token_ids=[comma], min_tokens=least, **more, **HOT)
        assert comma not in (*ended.tokens[:least], *ended.tokens[:-1])
    assert bool(met) == (least < 40)


def test_min_tokens_in_streams_strides_and_speculation() -> None:
    tiny = gw.load("tiny")
    options: Any = {"stop": ["=", "e"], "min_tokens": 9, "max_tokens": 30, "seed": 3, "temperature": 1.0}
    plain = complete(tiny, "a b a b a", **options)
    assert plain.finish_reason == "stop"
    assert len(plain.tokens) > 9
    assert complete(tiny, "a b a b a", prompt_lookup_num_tokens=4, **options).tokens == plain.tokens
    stream = gw.stream(tiny, "a b a b a", **options)
    assert "".join(stream) == stream.results.text == plain.text


def test_a_constraint_may_end_the_text_before_min_tokens(model: Model) -> None:
    for seed in range(4):
        short = details(model, gw.Choice(["abc"]), min_tokens=9, seed=seed)
        assert (short.value, short.finish_reason, short.truncation) == ("abc", "stop", None)
        assert len(short.tokens) < 9


def test_without_closing_a_text_may_be_cut(model: Model) -> None:
    schema = gw.JsonSchema(
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 30, "maxLength": 40}}, "required": ["a"]}
    )
    with pytest.raises(gw.errors.BudgetTooSmallError):
        details(model, schema, max_tokens=10)
    found = details(model, schema, max_tokens=10, allow_truncation=True)
    assert (found.value, found.finish_reason, len(found.tokens)) == (None, "length", 10)
    whole = details(model, schema, max_tokens=400, allow_truncation=True)
    assert (json.loads(whole.text), whole.finish_reason) == (whole.value, "stop")
    assert len(whole.value["a"]) >= 30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stop": "a", "output": gw.Regex("a")}, "stop and a constraint exclude each other"),
        ({"stopping_criteria": len, "output": gw.Regex("a")}, "stopping_criteria and a constraint"),
        ({"stop": ""}, "stop must be a string or strings"),
        ({"bad_words": [""]}, "bad_words must be a string or strings"),
        ({"min_tokens": 9, "max_tokens": 4}, "min_tokens must be 0 to max_tokens"),
        ({"allow_truncation": True}, "allow_truncation=True"),
        ({"logprobs": -1}, "logprobs"),
        ({"batch_size": 0}, "batch_size"),
        ({"sampler": gw.Sampler(), "temperature": 0.0}, "sampler= and temperature= exclude each other"),
    ],
)
def test_contradictory_stop_options_are_refused_by_name(model: Model, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        details(model, **options)


@pytest.mark.parametrize("option", ["stop", "bad_words"])
@pytest.mark.parametrize("value", [5, ["a", 5], [b"a"], None, {"a": 1}])
def test_stop_and_bad_words_that_are_no_strings_are_type_errors(model: Model, option: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{option} must be a string or strings"):
        details(model, **{option: value})


def test_a_request_refuses_unknown_options_and_options_of_the_call() -> None:
    with pytest.raises(TypeError, match="unknown options: heat"):
        gw.GenerationRequest("a", heat=3)  # type: ignore[call-arg]  # the mistake under test
    with pytest.raises(ValueError, match="progress is an option of the whole call"):
        gw.GenerationRequest("a", progress=True)


def test_a_character_that_the_limit_cuts_is_not_shown() -> None:
    """Streams and results end before an incomplete character, whose bytes are available."""
    vocabulary = Vocabulary([b"x", b"\xe2\x82", b""], eos_ids=[2], special_ids=[2])
    model = ConstantModel(vocabulary, [0.0, 5.0, -9.0])
    stream = model.stream("x", max_tokens=1)
    assert "".join(stream) == ""
    assert stream.results.text == ""
    assert stream.results.incomplete_bytes == b"\xe2\x82"
    broken = complete(model, "x", max_tokens=2)  # the first bytes are invalid, not incomplete
    assert (broken.text, broken.incomplete_bytes) == ("\ufffd", b"\xe2\x82")
