"""`remote_contract` passes for the official SDKs and for a function, and finds what is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from guideway.remote import RemoteModel, remote
from guideway.testing import remote_contract
from tests.helpers.remote_clients import SECRET, model_of


def test_the_official_sdks_pass(kind: str) -> None:
    remote_contract(lambda url: model_of(kind, url), key=SECRET)


Wrapped = Callable[[Any, dict[str, Any]], Any]


def function_of(wrapped: Wrapped) -> Callable[[str], RemoteModel]:
    """Return a maker of models whose client is a function with the signature of `litellm.completion`."""
    openai = pytest.importorskip("openai", reason="the official SDK is tested")

    def make(url: str) -> RemoteModel:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key=SECRET, max_retries=0)

        def completion(**given: Any) -> Any:
            options = {"include_usage": True}
            return wrapped(client, {**given, "stream_options": options})

        return remote(completion, "m", dialect="unknown", ask_again=False, repair=False)

    return make


def honest(client: Any, given: dict[str, Any]) -> Any:
    return client.chat.completions.create(**given)


def without_usage(client: Any, given: dict[str, Any]) -> Iterator[Any]:
    for chunk in honest(client, given):
        if chunk.usage is None:
            yield chunk


def with_another_error(client: Any, given: dict[str, Any]) -> Any:
    try:
        return honest(client, given)
    except Exception as problem:
        raise RuntimeError(str(problem)) from None


def without_the_end(client: Any, given: dict[str, Any]) -> Iterator[Any]:
    for chunk in honest(client, given):
        if not chunk.choices or chunk.choices[0].finish_reason is None:
            yield chunk


def left_open(client: Any, given: dict[str, Any]) -> Any:
    return iter(list(honest(client, given)))


def test_a_function_passes() -> None:
    remote_contract(function_of(honest), key=SECRET)


@pytest.mark.parametrize(
    ("wrapped", "message"),
    [
        (without_usage, "a correct answer: Usage"),
        (with_another_error, "a wrong key: raised ConnectionLostError, expected AuthenticationError"),
        (without_the_end, "a correct answer: raised ConnectionLostError"),
        (left_open, "a stream that is closed early leaves its connection open"),
    ],
)
def test_the_contract_finds_what_is_broken(wrapped: Wrapped, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        remote_contract(function_of(wrapped), key=SECRET)
