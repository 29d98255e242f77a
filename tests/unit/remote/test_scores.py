"""Log-probabilities of options."""

from __future__ import annotations

import math
from typing import Any

import pytest

import guideway as gw
from guideway.errors import (
    InvalidTextError,
    OverloadedError,
    RemoteError,
    UnsupportedError,
)
from guideway.remote import Usage
from guideway.remote.first_tokens import most_probable
from guideway.testing import Answer, ProviderRequest
from tests.helpers.remote_clients import Event, model_of, served


@pytest.mark.parametrize("asynchronous", [False, True])
def test_scores_of_first_tokens(asynchronous: bool) -> None:
    top = [("yes", -0.25), ("no", -1.75), ("maybe", -4.0)]
    with served(Answer("yes", top_logprobs=top, input_tokens=9, output_tokens=1)) as provider:
        model = model_of("chat", provider.url, asynchronous=asynchronous)
        no, yes = gw.score(model, "Is it?", ["no", "yes"])
        assert (no.option, no.logprob, yes.logprob) == ("no", -1.75, -0.25)
        assert yes.probability == pytest.approx(math.exp(-0.25) / (math.exp(-0.25) + math.exp(-1.75)))
        assert provider.requests[0].body["top_logprobs"] == 20
        assert provider.requests[0].body.get("stream") is not True
        assert (model.usage.requests, model.usage.input, model.usage.output) == (1, 9, 1)
        with pytest.raises(UnsupportedError, match="'perhaps' is not one of the 3"):
            gw.score(model, "Is it?", ["yes", "perhaps"])
        assert len(gw.score(model, ["Is it?", "And now?"], ["yes", "no"])) == 2
        provider.script = Answer("yes")
        with pytest.raises(UnsupportedError, match="gave no log-probabilities"):
            gw.score(model, "Is it?", ["yes", "no"])
        provider.script = Answer("yes", top_logprobs=[("yes", 3.0), ("no", -1.0)])
        with pytest.raises(RemoteError, match="as a log-probability"):
            gw.score(model, "Is it?", ["yes", "no"])
        provider.script = Answer(status=529)
        with pytest.raises(OverloadedError):
            gw.score(model, "Is it?", ["yes", "no"])


def test_scores_of_whole_options() -> None:
    def script(request: ProviderRequest) -> Answer:
        tokens = {"certainly": [("certain", -1.0), ("ly", -0.5)], "no": [("no", -2.0)], "é": [("\ufffd", -1.0)]}
        assert request.body["continue_final_message"] is True
        prompt = [("<s>", 0.0), ("user", -3.0), ("\n", -0.1)]
        return Answer("x", prompt_logprobs=[*prompt, *tokens[request.prefill()]], input_tokens=5, output_tokens=1)

    with served(script) as provider:
        model = model_of("chat", provider.url, dialect="vllm")
        certainly, no = gw.score(model, "Is it?", ["certainly", "no"])
        assert (certainly.logprob, no.logprob) == (-1.5, -2.0)
        assert certainly.probability + no.probability == pytest.approx(1)
        assert model.usage.requests == 2
        with pytest.raises(UnsupportedError, match="first token begins before"):
            gw.score(model, "Is it?", ["é", "no"])


@pytest.mark.parametrize(
    ("tokens", "options", "expected"),
    [
        ([("yes", -0.25), ("no", -1.75)], ["no", "yes"], "yes"),
        ([("ye", -0.1), ("no", -2.0)], ["no", "yes"], None),  # "yes" may be more probable than "no"
        ([("ye", -3.0), ("no", -2.0)], ["no", "yes"], "no"),
        ([("no", -2.0), ("x", -1.0)], ["no", "perhaps"], None),  # "perhaps" may be as probable as "no"
        ([("no", -1.0), ("x", -2.0)], ["no", "perhaps"], "no"),
        ([("yes", -1.0), ("x", -2.0)], ["yes", "yesterday"], None),
        ([("x", -1.0)], ["no", "yes"], None),
        ([], ["no", "yes"], None),
        ([("yes", float("nan")), ("no", True), ("no", None), ("yes", "1"), ("yes", 5.0)], ["no", "yes"], None),
    ],
)
def test_the_most_probable_option(tokens: list[tuple[str, Any]], options: list[str], expected: str | None) -> None:
    assert most_probable(tokens, options) == expected


def test_a_choice_by_first_tokens() -> None:
    given = gw.remote.capabilities("unknown").override(routes=("scored_choice", "prompt"))
    options = gw.Choice(["no", "yes"])
    clear = Answer("Well", finish="length", top_logprobs=[("Well", -0.1), ("yes", -3.0), ("no", -4.0)])
    unclear = Answer("Well", finish="length", top_logprobs=[("Well", -0.1)])
    with served(clear) as provider:
        model = model_of("chat", provider.url, dialect=given)
        assert gw.plan(model, options).guarantee == "checked"
        result = model.complete("Is it?", options, temperature=0.5)
        assert (result.value, result.finish_reason, result.usage.requests) == ("yes", "stop", 1)
        body = provider.requests[0].body
        assert (body["max_tokens"], body["temperature"], body["logprobs"], body["top_logprobs"]) == (1, 1.0, True, 20)
        assert list(model.stream("Is it?", options)) == ["yes"]
        assert gw.plan(model, gw.Choice([str(number) for number in range(21)])).route == "prompt"
        assert gw.plan(model, Event).route == "prompt"
        provider.script = [unclear, Answer("no")]
        result = model.complete("Is it?", options)
        assert (result.value, [one.kind for one in result.attempts]) == ("no", ["first", "other route"])
        provider.script = [unclear]
        provider._left = None
        with pytest.raises(InvalidTextError) as found:
            model_of("chat", provider.url, dialect=given, attempts=1).complete("Is it?", options)
        assert found.value.usage == Usage(7, 0, 1, 0, 1)
        provider.script = Answer("no")  # an endpoint that ignores `logprobs`
        assert model.generate("Is it?", options) == "no"
