"""Keys are shown nowhere, no request goes to another host, and each event loop has its connections."""

from __future__ import annotations

import asyncio
import copy
import functools
import os
import pickle
import traceback
from typing import Any

import pytest

import guideway as gw
from guideway.errors import (
    GuidewayError,
    RemoteError,
    UnsupportedError,
)
from guideway.remote import remote
from guideway.remote.adapters.http import RedirectError, keep_on_host
from guideway.testing import Answer, ProviderRequest
from tests.helpers.remote_clients import HEADER, SECRET, TEXT, Event, model_of, served, sse


def everything_shown(thing: Any) -> str:
    """Return what logs, messages, traces and pickles show of an object."""
    shown = [repr(thing), str(thing), repr(vars(thing)) if hasattr(thing, "__dict__") else ""]
    if isinstance(thing, BaseException):
        shown.append("".join(traceback.format_exception(thing)))
    try:
        shown.append(pickle.dumps(thing).decode("latin-1"))
    except (TypeError, AttributeError, pickle.PicklingError):
        shown.append("not pickled")
    return "\n".join(shown)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_keys_are_shown_nowhere(kind: str, asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")  # the SDKs and their HTTP libraries, too
    echo = f"the key {SECRET} and {HEADER}"
    answers = [
        Answer(),
        Answer(status=401, message=echo),
        Answer(status=400, message=f"Bearer {SECRET}"),
        Answer(status=429, message=echo, headers={"x-request-id": f"request {SECRET}", "request-id": HEADER}),
        Answer(raw=sse({"id": SECRET, "choices": [{"delta": {"content": "no JSON"}, "finish_reason": "stop"}]})),
        Answer(status=500, raw=echo.encode()),
        Answer(echo),
        Answer(f'{{"title": "{SECRET}", "seats": "{HEADER}"'),
        Answer(echo, finish="refusal"),
        Answer(status=307, headers={"location": f"http://{SECRET}.example.com/{SECRET}"}),
        Answer(raw=f"data: {{{echo}\n\n".encode()),
        Answer(TEXT, drop_after=0),
    ]
    with served() as provider:
        model = model_of(kind, provider.url, asynchronous=asynchronous)
        headers = getattr(model._adapter.client, "_custom_headers", None)
        if headers is not None:
            model._adapter.client._custom_headers = {**headers, "X-Auth-Token": HEADER}
        shown = [everything_shown(one) for one in (model, model._adapter, model.plan(Event), model.usage)]
        for answer in answers:
            provider.script = answer
            try:
                if answer == answers[0]:
                    shown.append(everything_shown(model.complete("an event", Event)))
                    assert SECRET not in caplog.text  # the HTTP library logs what the endpoint sends, but not this
                elif asynchronous:
                    shown.append(everything_shown(asyncio.run(gw.acomplete(model, "an event", Event))))
                else:
                    shown.append(everything_shown(model.complete("an event", Event)))
            except GuidewayError as problem:
                texts = [getattr(one, "text", None) for one in getattr(problem, "attempts", ())]
                shown += [f"{one.problem} {one.request_id}" for one in getattr(problem, "attempts", ())]
                problem.__dict__.pop("attempts", None)  # the texts of the model are data
                problem.__dict__.pop("text", None)
                assert texts or answer.status != 200
                shown.append(everything_shown(problem))
        assert len(shown) > 4 + len(answers)
        for one in shown:
            assert SECRET not in one, one[max(one.index(SECRET) - 200, 0) : one.index(SECRET) + 60]
            if headers is not None:
                assert HEADER not in one
        logged = "".join(repr(vars(record)) for record in caplog.records if "guideway" in record.name)
        assert SECRET not in logged
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(model)
        with pytest.raises(TypeError, match="pickled"):
            copy.deepcopy(model._adapter)
        received = {value for request in provider.requests for value in request.headers.values()}
        assert any(SECRET in value for value in received)  # the endpoint does get it


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_request_goes_to_another_host(kind: str, asynchronous: bool, status: int) -> None:
    with served() as other:

        def script(request: ProviderRequest) -> Answer:
            return Answer(status=status, headers={"location": other.url + request.path})

        with served(script) as provider:
            model = model_of(kind, provider.url, asynchronous=asynchronous)
            with pytest.raises(RemoteError, match=r"redirects the request to another host, 127\.0\.0\.1:") as found:
                asyncio.run(gw.agenerate(model, "an event", Event)) if asynchronous else model.generate("x", Event)
            assert provider.requests
            assert other.requests == []
            assert not found.value.retryable
            assert found.value.usage.requests == 1


def test_a_redirect_of_the_same_host_is_followed() -> None:
    def script(request: ProviderRequest) -> Answer:
        if request.path.startswith("/v2"):
            return Answer(TEXT)
        return Answer(status=307, headers={"location": request.path.replace("/v1", "/v2")})

    with served(script) as provider:
        assert model_of("chat", provider.url).generate("an event", Event).seats == 3


def test_one_asynchronous_client_in_several_event_loops(kind: str) -> None:
    with served([Answer(status=400), Answer(TEXT), Answer(status=400)] * 3 + [Answer(TEXT)]) as provider:
        model = model_of(kind, provider.url, asynchronous=True)

        async def calls() -> list[object]:
            found: list[object] = await gw.agenerate(
                model, ["a", "b", "c"], Event, batch_size=1, return_exceptions=True
            )
            return [type(one) for one in found]

        for _ in range(3):
            assert asyncio.run(calls()) == [RemoteError, Event, RemoteError]
        assert isinstance(model.generate("an event", Event), Event)
        assert isinstance(asyncio.run(gw.agenerate(model, "an event", Event)), Event)


def test_a_client_with_a_custom_http_client_serves_one_event_loop() -> None:
    openai = pytest.importorskip("openai", reason="the official SDK is tested")
    with served(Answer(TEXT)) as provider:
        client = openai.AsyncOpenAI(
            base_url=f"{provider.url}/v1", api_key=SECRET, max_retries=0, http_client=openai.DefaultAsyncHttpxClient()
        )
        model = remote(client, "m", dialect="openai")
        assert isinstance(asyncio.run(gw.agenerate(model, "an event", Event)), Event)
        with pytest.raises(UnsupportedError, match="event loop"):
            asyncio.run(gw.agenerate(model, "an event", Event))


def test_redirects_are_read_as_the_client_reads_them() -> None:
    """The hook refuses every redirect after which the client would send a request to another host, port or scheme."""
    for name in ("httpx", "httpx2"):
        http = pytest.importorskip(name, reason="the HTTP library of the SDKs is tested")
        sent: list[Any] = []
        target = [""]

        def answer(request: Any, http: Any = http, sent: list[Any] = sent, target: list[str] = target) -> Any:
            sent.append(request.url)
            return http.Response(307, headers={"location": target[0]}) if len(sent) == 1 else http.Response(200)

        for start, where, follows in (
            ("https://a.test:8443/v1", "http://a.test:8443/v1", False),
            ("https://a.test/v1", "http://a.test/v1", False),
            ("http://a.test/v1", "https://a.test/v1", True),
            ("https://a.test/v1", "https://a.test:443/v2", True),
            ("https://a.test/v1", "//b.test/v1", False),
            ("https://a.test/v1", "https://a.test@b.test/", False),
            ("https://a.test/v1", "https://b.test\\@a.test/", None),
            ("https://a.test/v1", "https://a.test.b.test/", False),
            ("https://a.test/v1", "https://A.TEST/v2", True),
            ("https://a.test/v1", "/\\b.test/", None),
            ("https://a.test/v1", "https:b.test", None),
            ("https://a.test/v1", "https:///b.test", None),
            ("https://a.test/v1", "https://a.test:99999999/", False),
            ("https://a.test/v1", "https://[::1/", False),
            ("https://a.test/v1", "?x=1", True),
        ):
            sent.clear()
            target[0] = where
            with http.Client(transport=http.MockTransport(answer), follow_redirects=True) as client:
                assert keep_on_host(client)
                try:
                    client.get(start)
                except (RedirectError, http.InvalidURL, http.RemoteProtocolError):
                    assert follows is not True, where
                else:
                    assert follows is not False, where
            hosts = {(url.scheme, url.host) for url in sent}
            assert hosts <= {("https", "a.test"), ("http", "a.test")}, (where, sent)
            if start.startswith("https"):
                assert hosts == {("https", "a.test")}, (where, sent)


def test_every_kind_of_key_is_removed_from_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    openai = pytest.importorskip("openai", reason="the official SDK is tested")
    keys = [
        "plain-key-0123",
        "plain-key-0123-and-more",
        "s3cr3t-password",
        "query%2Fkey+0123",
        "bearer-of-http",
        "cookie=1",
    ]
    decoded = ["query/key+0123", "query/key 0123"]
    with served() as provider:
        url = provider.url.replace("http://", f"http://user:{keys[2]}@")
        http = openai.DefaultHttpxClient(headers={"Authorization": f"Bearer {keys[4]}", "Cookie": keys[5]})
        client = openai.OpenAI(
            base_url=f"{url}/v1?api-key={keys[3]}",
            api_key=keys[0],
            max_retries=0,
            http_client=http,
            default_headers={"X-Second-Token": keys[1]},
        )
        model = remote(client, "m", dialect="openai")
        provider.script = Answer(status=400, message=" ".join([*keys, *decoded]))
        with pytest.raises(RemoteError) as found:
            model.generate("an event", Event)
        shown = everything_shown(found.value)
        for key in [*keys, *decoded, "and-more"]:
            assert key not in shown

    monkeypatch.setenv("SOME_API_KEY", "key-from-the-environment")

    def completion(*, api_key: str, **given: Any) -> Any:
        raise RuntimeError(f"bad keys {api_key} {os.environ['SOME_API_KEY']}")

    function = remote(functools.partial(completion, api_key="key-of-a-partial"), "m")
    with pytest.raises(RemoteError) as found:
        function.generate("an event", Event)
    shown = everything_shown(found.value)
    assert "key-of-a-partial" not in shown
    assert "key-from-the-environment" not in shown


def test_clients_of_derived_classes_are_recognised() -> None:
    openai = pytest.importorskip("openai", reason="the official SDK is tested")

    class Instrumented(openai.AsyncOpenAI):  # type: ignore[misc, name-defined]  # the SDK is imported in the test
        pass

    with served(Answer(TEXT)) as provider:
        client = Instrumented(base_url=f"{provider.url}/v1", api_key=SECRET, max_retries=0)
        assert isinstance(remote(client, "m", dialect="openai").generate("an event", Event), Event)
