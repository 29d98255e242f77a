"""Arguments of `generate` and related functions: wrong types, errors of single rows, options without effect."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, ContextOverflowError, InvalidTokenError
from guideway.generation import Generation, complete
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary

VOCABULARY = Vocabulary([b"a", b"b", b"c", b""], eos_ids=[3], special_ids=[3])
MODEL = ConstantModel(VOCABULARY, [0.0, 0.3, 0.2, 0.1], context_size=40)
AB = gw.Regex("[ab]{3}")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gw.load(Path("tiny")), "name must be a str"),  # type: ignore[arg-type]  # all on purpose
        (lambda: gw.load(None), "name must be a str"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.generate("tiny", "a"), r"must be a guideway\.Model \(from guideway\.load\), got str"),  # type: ignore[call-overload]  # what is tested
        (
            lambda: gw.extract("tiny", "a", dict[str, int]),
            r"must be a guideway\.Model \(from guideway\.load\), got str",
        ),  # type: ignore[call-overload]  # what is tested
        (lambda: gw.score("tiny", "a", ["b"]), r"must be a guideway\.Model \(from guideway\.load\), got str"),  # type: ignore[call-overload]  # what is tested
        (lambda: gw.score(MODEL, "a", 5), "a list of strings"),  # type: ignore[call-overload]  # what is tested
        (lambda: gw.compile(AB, "tiny"), "vocabulary must be a Vocabulary"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.compile(AB, None), "vocabulary must be a Vocabulary"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.generate(MODEL, "a", max_tokens="five"), "max_tokens must be an integer, got 'five'"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.generate(MODEL, "a", n=1.5), "n must be an integer"),  # type: ignore[call-overload]  # what is tested
        (lambda: gw.generate(MODEL, "a", batch_size="8"), "batch_size must be an integer"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.generate(MODEL, "a", stopping_criteria="b"), "stopping_criteria must be a function"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.generate(MODEL, [True]), "prompt must be"),
        (lambda: gw.generate(MODEL, ["a"], sampler="calm"), r"must be a guideway\.Sampler"),  # type: ignore[arg-type]  # what is tested
        (lambda: gw.generate(MODEL, "a", stop_token_ids=["b"]), "stop_token_ids must be token ids"),  # type: ignore[list-item]  # what is tested
        (lambda: gw.extract(MODEL, 5, gw.JsonSchema({"type": "object"})), "a str or a list of str"),  # type: ignore[call-overload]  # what is tested
    ],
)
def test_wrong_argument_types(call: Callable[[], object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"stop_token_ids": [4]},
            InvalidTokenError,
            "stop_token_ids has the token id 4, and the vocabulary has 4 tokens",
        ),
        ({"sampler": gw.Sampler(logit_bias={9: 1.0})}, InvalidTokenError, "logit_bias has the token id 9"),
        ({"top_p": 0.9}, ValueError, "top_p has no effect at temperature 0"),
        ({"temperature": 0.0, "top_k": 3}, ValueError, "top_k has no effect at temperature 0"),
        (
            {"min_tokens": 50, "max_tokens": 60},
            ContextOverflowError,
            "min_tokens is 50, and the context has room for 39",
        ),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        gw.generate(MODEL, "a", **options)


def test_a_larger_context_than_the_models_is_refused() -> None:
    assert gw.load("tiny", context_size=100).context_size == 100
    with pytest.raises(ValueError, match="context_size must be at most"):
        gw.load("tiny", context_size=100_000)


def test_a_session_takes_any_constraint() -> None:
    automaton = gw.compile(AB, MODEL)
    for constraint in (AB, automaton, automaton.matcher(), gw.Choice(["aba", "bab"]), gw.JsonSchema({"const": 1})):
        session = MODEL.session()
        session.feed("a")
        session.constrain(constraint)
        assert session.matcher is not None
        session.constrain(None)
        assert session.matcher is None
    with pytest.raises(gw.errors.InvalidConstraintError, match="is not a constraint"):
        MODEL.session().constrain("[ab]{3}")
    with pytest.raises(gw.errors.InvalidConstraintError, match="pass the constraint that it was compiled from"):
        gw.generate(MODEL, "a", automaton)


@pytest.mark.parametrize("outputs", [[AB, AB], [{"type": "integer"}, AB], (int, str), [AB, None]])
def test_a_list_of_constraints_is_refused_with_a_hint(outputs: object) -> None:
    for call in (gw.generate, gw.stream, gw.extract):
        with pytest.raises(
            gw.errors.InvalidConstraintError, match=r"pass guideway\.GenerationRequest\(prompt, constraint\)"
        ):
            call(MODEL, ["a", "b"], outputs)  # type: ignore[operator]  # of a tuple
    requests = [gw.GenerationRequest("a", AB), gw.GenerationRequest("b", gw.Choice(["b"]))]
    assert gw.generate(MODEL, requests)[1] == "b"


def test_return_exceptions_keeps_the_position() -> None:
    long = gw.GenerationRequest("a", gw.Regex("a{30}"), max_tokens=5)
    with pytest.raises(BudgetTooSmallError, match=r"^prompt 2 of 3: the shortest output needs 31 tokens"):
        gw.generate(MODEL, ["a", long, "b"], AB)
    found = gw.generate(MODEL, ["a", long, "b", gw.GenerationRequest("b", "no source")], AB, return_exceptions=True)
    assert [re.fullmatch("[ab]{3}", one) is not None for one in (found[0], found[2])] == [True, True]
    assert isinstance(found[1], BudgetTooSmallError)
    assert isinstance(found[3], gw.errors.InvalidConstraintError)
    assert str(found[3]).startswith("prompt 4 of 4: ")


def test_arguments_of_wrong_types_are_reported() -> None:
    with pytest.raises(TypeError, match="state must be a GenerationState"):
        gw.resume(MODEL, None)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="prompt must be a str"):
        gw.GenerationRequest(5, int)  # type: ignore[arg-type]  # what is tested
    for search in (gw.search.beam_search, gw.search.smc):
        with pytest.raises(TypeError, match="unknown options: beams"):
            search(MODEL, "a", AB, beams=4)  # type: ignore[operator]  # what is tested
    with pytest.raises(TypeError, match="temperature must be a number, got '1'"):
        gw.generate(MODEL, "a", AB, temperature="1")  # type: ignore[arg-type]  # what is tested


def test_failure_during_generation_ends_one_row() -> None:
    def failing(text: str) -> bool:
        if len(text) > 2:
            raise KeyError("mine")
        return False

    requests = ["a", gw.GenerationRequest("a", None, stopping_criteria=failing, min_tokens=2), "b"]
    stream = gw.stream(MODEL, requests, max_tokens=6, return_exceptions=True)
    texts = {0: "", 2: ""}
    for piece in stream:
        if piece.prompt in texts:
            texts[piece.prompt] += piece.text
    first, second, third = stream.results
    assert isinstance(second, KeyError)
    assert (texts[0], texts[2]) == (first.text, third.text)
    sampled = complete(MODEL, requests, n=2, max_tokens=6, return_exceptions=True)
    assert [[isinstance(one, Generation) for one in group] for group in sampled] == [
        [True] * 2,
        [False] * 2,
        [True] * 2,
    ]
    with pytest.raises(KeyError, match="mine"):
        gw.generate(MODEL, requests, max_tokens=6)


def test_a_prompt_of_a_wrong_kind_is_named() -> None:
    with pytest.raises(TypeError, match=r"^prompt 2 of 3: prompt must be a str.*; got NoneType$"):
        gw.generate(gw.load("tiny"), ["a", None, "b"], gw.Regex("a"))  # type: ignore[list-item]  # what is tested


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_new_tokens", "did you mean max_tokens?"),
        ("temprature", "did you mean temperature?"),
        ("Seed", "did you mean seed?"),
        ("samples", "use n= of generate, complete and stream"),
        ("repetition_penalty", r"repetition_penalty is given by sampler=Sampler\(repetition_penalty=...\)"),
        ("xyzzy", "unknown options: xyzzy; known are .*max_tokens"),
    ],
)
def test_misspelled_option_has_a_suggestion(name: str, meant: str) -> None:
    record = gw.JsonSchema({"type": "object", "properties": {}})
    calls: list[Callable[..., object]] = [
        lambda **options: gw.generate(MODEL, "a", **options),
        lambda **options: gw.stream(MODEL, "a", **options),
        lambda **options: gw.extract(MODEL, "a", record, **options),
        lambda **options: gw.GenerationRequest("a", **options),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=meant):
            call(**{name: 1})
    with pytest.raises(TypeError, match="use n= of generate, complete and stream"):
        gw.extract(MODEL, "a", record, n=2)  # type: ignore[call-overload]  # the mistake under test


def test_rows_draw_as_they_say() -> None:
    """A request with its sampling options ignores all sampling options of the call."""
    wild, calm = gw.Sampler(3.0), gw.Sampler(0.4, top_k=2)
    call: dict[str, Any] = {"max_tokens": 12, "sampler": calm}
    rows = [
        (gw.GenerationRequest("a", seed=1), calm),
        (gw.GenerationRequest("a", seed=2, temperature=3.0), gw.Sampler(3.0)),
        (gw.GenerationRequest("a", seed=3, temperature=0.4, top_p=0.5), gw.Sampler(0.4, top_p=0.5)),
        (gw.GenerationRequest("a", seed=4, sampler=wild), wild),
        (gw.GenerationRequest("a", seed=5, sampler=gw.Sampler()), gw.Sampler()),
    ]
    together = complete(MODEL, [request for request, _ in rows], **call)
    for (request, sampler), one in zip(rows, together, strict=True):
        alone = complete(MODEL, "a", max_tokens=12, sampler=sampler, seed=request.options["seed"])
        assert one.tokens == alone.tokens
    named = gw.generate(
        MODEL, [gw.GenerationRequest("a", seed=4, sampler=wild)], max_tokens=12, temperature=0.5, top_k=2
    )
    assert named == [together[3].text]
    with pytest.raises(ValueError, match="sampler= and top_k= exclude each other"):
        gw.generate(MODEL, [gw.GenerationRequest("a", sampler=wild, top_k=2)])
    with pytest.raises(ValueError, match="prompt 1 of 1: top_k has no effect at temperature 0"):
        gw.generate(MODEL, [gw.GenerationRequest("a", top_k=2)], temperature=0.7)
    with pytest.raises(ValueError, match="prompt 1 of 1: temperature must be 0"):
        gw.generate(MODEL, [gw.GenerationRequest("a", temperature=-1.0)], sampler=calm)


def test_a_text_that_was_cut_says_where() -> None:
    endless = ConstantModel(Vocabulary([b"a", b"\xc3", b""], eos_ids=[2]), [0.5, 1.0, -9.0], context_size=40)
    cut = complete(endless, "a", max_tokens=3)
    assert (cut.finish_reason, cut.text, cut.truncation) == (
        "length",
        "\ufffd\ufffd",
        ("cut", "max_tokens", 3, None, None, 2),
    )
    full = complete(endless, "a")
    assert full.truncation == ("cut", "context", 39, None, None, 38)
    whole = complete(MODEL, "a", AB)
    assert (whole.finish_reason, whole.truncation) == ("stop", None)
    part = complete(MODEL, "a", AB, max_tokens=2, allow_truncation=True)
    assert (part.value, part.truncation) == (None, ("cut", "max_tokens", 2, None, None, 2))
    assert gw.resume(MODEL, part.state, max_tokens=9).truncation is None
    stream = gw.stream(MODEL, "a", max_tokens=4)
    assert "".join(stream) == stream.results.text
    assert stream.results.truncation == ("cut", "max_tokens", 4, None, None, 4)
