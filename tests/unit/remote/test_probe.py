"""The probe, against each mode of `Provider`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.errors import (
    AuthenticationError,
    InvalidFileError,
    RefusalError,
)
from guideway.remote import probe
from guideway.testing import Answer, ProviderRequest
from tests.helpers.remote_clients import CLIENTS, HEADER, SECRET, Event, model_of, served


def test_a_probe_shows_no_password_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as provider:
        url = provider.url.replace("http://", f"http://user:{HEADER}@")
        found = probe(model_of("chat", url, dialect="openai"))
        assert found.base_url == f"{provider.url}/v1/"
        assert HEADER not in str(found) + json.dumps(found.to_json()) + repr(found)


@pytest.mark.parametrize("finish", ["stop", "refusal", "length"])
def test_a_probe_shows_no_key_that_an_endpoint_repeats(finish: Any) -> None:
    with served(Answer(f"the key is {SECRET}", finish=finish)) as provider:
        model = model_of("chat", provider.url, dialect="unknown")
        if finish == "refusal":
            with pytest.raises(RefusalError) as problem:
                probe(model)
            assert SECRET not in str(problem.value)
        else:
            found = probe(model)
            assert SECRET not in str(found) + json.dumps(found.to_json()) + repr(found)


def test_a_probe_is_stored(tmp_path: Path) -> None:
    with served() as provider:
        found = probe(model_of("chat", provider.url, dialect="vllm"))
        found.save(tmp_path / "probe.json")
        assert gw.remote.Probe.load(tmp_path / "probe.json") == found
        given = found.capabilities(gw.remote.capabilities("vllm"))
        plan = gw.plan(model_of("chat", provider.url, dialect=given), Event)
        assert plan.evidence[-1].kind == "probe"
    for text in ("", "[]", "{}", "{" * 10_000, '{"base_url": 1}', json.dumps({**found.to_json(), "verdicts": [[1]]})):
        (tmp_path / "probe.json").write_text(text, "utf-8")
        with pytest.raises(InvalidFileError):
            gw.remote.Probe.load(tmp_path / "probe.json")
    for path in (tmp_path, tmp_path / "missing" / "probe.json"):
        with pytest.raises(InvalidFileError):
            found.save(path)
        with pytest.raises(InvalidFileError):
            gw.remote.Probe.load(path)


def test_a_probe_sends_the_extra_members_of_requests_with_a_schema() -> None:
    with served() as provider:
        probe(model_of("chat", provider.url, dialect="openrouter"))
        sent = [one.body["provider"] for one in provider.requests if "response_format" in one.body]
        assert sent
        assert all(one == {"require_parameters": True} for one in sent)
        assert "provider" not in provider.requests[0].body  # the request without a schema


def test_the_probe_tells_what_the_endpoint_does() -> None:
    with served() as provider:
        found = probe(model_of("chat", provider.url, dialect="vllm"))
        assert found.enforced("json_schema")
        assert found.enforced("vllm_grammar")
        assert found.usage.requests == len(provider.requests)
        provider.script = Answer("Paris is the capital of France.")
        ignored = probe(model_of("chat", provider.url, dialect="vllm"))
        assert {one.verdict for one in ignored.verdicts} == {"ignored"}
        assert not ignored.enforced("json_schema")
        assert "prompt" in ignored.capabilities(model_of("chat", provider.url, dialect="vllm").capabilities).routes

        def refusing(request: ProviderRequest) -> Answer:
            return Answer("Paris.") if request.constraint() is None else Answer(status=400, message="unknown member")

        provider.script = refusing
        assert probe(model_of("chat", provider.url)).verdicts[0].verdict == "refused"

        def loosened(request: ProviderRequest) -> Answer:
            words = request.messages()[-1][1]
            if "this JSON: " in words and any(name in words for name in ("code", '"l"', '"n"', '"s"')):
                return Answer(words.partition("this JSON: ")[2])
            return Answer() if request.constraint() is not None else Answer("Paris.")

        provider.script = loosened
        verdicts = {one.case: one.verdict for one in probe(model_of("chat", provider.url, dialect="openai")).verdicts}
        assert verdicts["structure"] == "enforced"
        assert verdicts["pattern"] == verdicts["minItems"] == verdicts["maximum"] == "loosened"
        provider.script = Answer(status=401)
        with pytest.raises(AuthenticationError):
            probe(model_of("chat", provider.url))


MODES: list[tuple[str, Any, str]] = [
    ("honest", {}, "enforced"),
    ("reasons", {"reasoning": "A city."}, "enforced"),
    ("divides characters", {"split_bytes": 1}, "enforced"),
    ("reports no tokens", {"usage": "never"}, "enforced"),
    ("ignores", {"text": "Paris is the capital."}, "ignored"),
    ("prose around JSON", {"text": 'Sure: {"city": "Paris"}'}, "ignored"),
    ("code fence", {"text": '```json\n{"city": "Paris"}\n```'}, "ignored"),
    ("another type", {"text": '{"city": 1}'}, "ignored"),
    ("cut", {"text": '{"city": "Par', "finish": "length"}, "unclear"),
    ("cut prose", {"text": "Paris is", "finish": "length"}, "ignored"),
    ("refuses to answer", {"text": "I cannot.", "finish": "refusal"}, "error"),
    ("ends without a finish reason", {"text": '{"city": "Par', "finish": ""}, "error"),
    ("drops the connection", {"text": '{"city": "Paris"}', "chunk": 4, "drop_after": 2}, "error"),
    ("unknown member", {"status": 400}, "refused"),
    ("invalid schema", {"status": 422}, "refused"),
    ("crashes", {"status": 500}, "error"),
    ("overloaded", {"status": 529}, "error"),
    ("no JSON", {"raw": b"data: {\n\n"}, "error"),
]


@pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["a third", "all"])
def test_the_probe_is_right_about_each_mode(kind: str, part: int) -> None:
    given: dict[str, Any] = {}

    def script(request: ProviderRequest) -> Answer:
        return Answer("The capital is Paris.") if request.constraint() is None else Answer(**given)

    with served(script) as provider:
        model = model_of(kind, provider.url)
        for name, options, expected in MODES[CLIENTS.index(kind) % part :: part]:  # three kinds together run all modes
            given = options
            found = probe(model)
            assert found.verdicts[0].case == "structure"
            assert found.verdicts[0].verdict == expected, (name, found)
            assert found.enforced("json_schema") == (expected == "enforced"), (name, found)


def test_the_probe_judges_the_whole_answer() -> None:
    """A message is cut after 2,000 characters. An answer is not, before it is judged."""
    answer = Answer('{"city": "Paris"' + " " * 3_000 + "}")
    with served(lambda request: Answer("Paris.") if request.constraint() is None else answer) as provider:
        found = probe(model_of("chat", provider.url)).verdicts[0]
        assert (found.case, found.verdict) == ("structure", "enforced"), found
        assert len(found.detail) < 250


def test_the_probe_takes_no_luck_for_enforcement() -> None:
    def script(request: ProviderRequest) -> Answer:
        """Enforces types only. The model writes small numbers for any prompt."""
        return Answer('{"n": 3}') if '"n"' in request.messages()[-1][1] else Answer()

    with served(script) as provider:
        verdicts = {one.case: one.verdict for one in probe(model_of("chat", provider.url)).verdicts}
        assert verdicts["maximum"] == "unclear"
        assert verdicts["enum"] == "enforced"


def test_the_probe_judges_each_route() -> None:
    def script(request: ProviderRequest) -> Answer:
        is_regex = "regex" in request.body.get("structured_outputs", {})
        return Answer() if is_regex else Answer("Paris.")

    with served(script) as provider:
        found = probe(model_of("chat", provider.url, dialect="vllm"))
        assert {one.route for one in found.verdicts if one.verdict == "enforced"} == {"vllm_regex"}
        assert found.capabilities(gw.remote.capabilities("vllm")).routes == ("vllm_regex", "prompt")


@pytest.mark.parametrize(
    "dialect", ["vllm", "sglang", "llama-server", "tgi", "fireworks", "deepseek", "openai", "azure", "guideway", "xai"]
)
def test_the_probe_measures_every_route(dialect: str) -> None:
    given = gw.remote.capabilities(dialect)
    unmeasured = {"prompt", "json_object"}
    with served() as provider:
        found = probe(model_of("chat", provider.url, dialect=given))
        assert {one.route for one in found.verdicts} >= set(given.routes) - unmeasured
        assert {one.verdict for one in found.verdicts if one.case == "text"} == {"enforced"}
        assert found.capabilities(given).routes == given.routes
        provider.script = Answer("Paris is the capital of France.")
        assert set(probe(model_of("chat", provider.url, dialect=given)).capabilities(given).routes) <= unmeasured


def test_the_command_probe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from guideway.cli import main

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with served() as provider:
        arguments = ["probe", "--model", "m", "--base-url", f"{provider.url}/v1", "--dialect", "openai"]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        shown = capsys.readouterr().out
        assert ended.value.code == 0, shown
        assert "json_schema" in shown
        assert SECRET not in shown
        provider.script = Answer("Paris.")
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--json"])
        assert ended.value.code == 1
        assert '"ignored"' in capsys.readouterr().out
