"""The playground's page, and the endpoints that it uses. `tests/browser` runs it in a browser."""

import base64
import hashlib
import json
import re
from typing import Any

import httpx
import pytest

import guideway as gw
from guideway.generation import Model
from tests.helpers.serving import LiveServer, live_server

CHAT: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20}


def post(server: LiveServer, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{server.url}/guideway/{path}", json=body, timeout=60)


def tokens(server: LiveServer, **fields: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The tokens of a text, and the last event."""
    found = post(server, "tokens", {**CHAT, **fields})
    assert found.status_code == 200, found.text
    lines = [line.removeprefix("data: ") for line in found.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    return [token for event in events[:-1] for token in event["tokens"]], events[-1]


def test_the_page_has_no_external_resources_and_a_strict_policy(server: LiveServer) -> None:
    found = httpx.get(f"{server.url}/")
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().partition(" ")[::2] for part in found.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in found.headers["content-security-policy"]
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", found.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not re.findall(r"https?://|\bsrc=|@import|url\(", found.text)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\son\w+=", found.text)
    assert found.headers["x-content-type-options"] == "nosniff"


def test_tokens_have_probabilities_and_alternatives(server: LiveServer) -> None:
    found, end = tokens(server, structured_outputs={"regex": "[a-c]{6}"}, top_logprobs=3, seed=1, temperature=1)
    assert "".join(one["text"] for one in found).removesuffix("⟨end⟩") == end["text"]
    assert end["finish_reason"] == "stop"
    assert re.fullmatch("[a-c]{6}", end["text"])
    for one in found:
        assert 0 <= one["probability"] <= one["mask_probability"] <= 1.000001
        assert len(one["alternatives"]) == 3
    assert found[-1]["forced"]


def test_a_text_continues_after_given_tokens(server: LiveServer, tiny: Model) -> None:
    fields = {"structured_outputs": {"regex": "[a-c]{6}"}, "seed": 1, "temperature": 1}
    found, end = tokens(server, **fields)
    ids = [one["id"] for one in found]
    again, same = tokens(server, **fields, tokens=ids[:2])
    assert [one["id"] for one in again] == ids[2:]
    assert same == end
    (other,) = tiny.tokenizer.encode("c")
    changed, text = tokens(server, **fields, tokens=[other])
    assert text["text"].startswith("c")
    assert re.fullmatch("[a-c]{6}", text["text"])
    assert "c" + "".join(one["text"] for one in changed).removesuffix("⟨end⟩") == text["text"]


def test_fields_of_a_record_have_tokens_and_places_in_the_input(server: LiveServer) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"const": "Zoë"}, "ages": {"type": "array", "items": {"const": 36}, "minItems": 2}},
        "required": ["name", "ages"],
        "additionalProperties": False,
    }
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    messages.append({"role": "user", "content": "é Zoë is 36. 36!"})
    fields = {**schema_body(schema), "messages": messages, "max_tokens": 60, "seed": 1, "temperature": 1}
    found, end = tokens(server, **fields)
    assert end["source"] == "messages[2].content"
    shown = {one["place"]: one for one in end["fields"]}
    assert [shown["/name"]["value"], shown["/ages/0"]["value"], shown["/ages/1"]["value"]] == ["Zoë", 36, 36]
    assert shown["/name"]["spans"] == [[2, 5]]
    assert shown["/ages/1"]["spans"] == [[9, 11], [13, 15]]
    for place, value in (("/name", "Zo"), ("/ages/1", "36")):
        first, last = shown[place]["tokens"]
        assert value in "".join(one["text"] for one in found[first:last])
    _, again = tokens(server, **fields, tokens=[one["id"] for one in found[:3]])
    assert again["fields"] == end["fields"]
    assert tokens(server, structured_outputs={"regex": "[a-c]{6}"})[1]["fields"] == []


def test_a_prompt_and_free_text(server: LiveServer) -> None:
    body = {"model": "tiny", "prompt": "Ada", "max_tokens": 5, "temperature": 0}
    found = post(server, "tokens", body)
    assert found.status_code == 200
    assert found.text.count('"tokens"') == 5


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tokens": "x"}, "tokens"),
        ({"tokens": [-1]}, "tokens"),
        ({"tokens": [1 << 40]}, "tokens"),
        ({"top_logprobs": 99}, "top_logprobs"),
        ({"n": 2}, "n"),
        ({"stream": False}, "stream"),
        ({"temprature": 1}, "temprature"),
    ],
)
@pytest.mark.parametrize("path", ["tokens", "alternatives"])
def test_wrong_fields_are_named(server: LiveServer, path: str, fields: dict[str, Any], param: str) -> None:
    found = post(server, path, {**CHAT, **fields})
    assert found.status_code == 400
    assert found.json()["error"]["param"] == param


@pytest.mark.parametrize("path", ["tokens", "alternatives"])
def test_tokens_that_do_not_fit_are_refused(server: LiveServer, tiny: Model, path: str) -> None:
    fields = {**CHAT, "structured_outputs": {"regex": "[a-c]{6}"}}
    found = post(server, path, {**fields, "tokens": tiny.tokenizer.encode("x")})
    assert found.status_code == 400
    assert "legal tokens" in found.json()["error"]["message"]
    assert post(server, path, {**fields, "tokens": [100_000]}).status_code == 400


def test_alternatives_are_those_of_the_mask(server: LiveServer, tiny: Model) -> None:
    found = post(server, "alternatives", {**CHAT, "structured_outputs": {"regex": "[a-c]"}}).json()
    allowed = [one for one in found["alternatives"] if one["allowed"]]
    assert sorted(one["text"] for one in allowed) == ["a", "b", "c"]
    assert found["allowed"] == 3
    assert found["removed"] + sum(one["probability"] for one in allowed) == pytest.approx(1, abs=1e-4)
    removed = [one for one in found["alternatives"] if not one["allowed"]]
    assert len(removed) == 20
    ids = [one["id"] for one in allowed]
    end = post(server, "alternatives", {**CHAT, "structured_outputs": {"regex": "[a-c]"}, "tokens": ids[:1]}).json()
    assert [one["text"] for one in end["alternatives"] if one["allowed"]] == ["⟨end⟩"]


def schema_body(schema: object) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


def test_explain_lists_keywords_and_texts(server: LiveServer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "title": "A"}}, "required": ["a"]}
    found = post(server, "explain", schema_body(schema)).json()
    assert {"place": "/properties/a", "keyword": "title", "status": "annotation"} in found["keywords"]
    assert found["examples"]
    for text in found["examples"]:
        gw.JsonSchema(schema, profile="exact").parse(text)
    assert (
        post(server, "explain", {"structured_outputs": {"regex": "a+"}}).json()["summary"]
        == "valid: a regular language"
    )
    assert post(server, "explain", {}).json()["summary"] == "valid: any text"


def refused_late(name: str) -> dict[str, Any]:
    """A schema that is refused only when it is compiled."""
    items = {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"$ref": f"#/$defs/{name}"}}
    return {"$defs": {name: items}, "properties": {"x": {"$ref": f"#/$defs/{name}"}}}


LONG = "a" * 2_000  # the message has only the beginning of a JSON Pointer with this key


@pytest.mark.parametrize(
    ("body", "place", "offset"),
    [
        (schema_body({"properties": {"a": {"type": "strin"}}}), "/properties/a/type", None),
        (schema_body({"properties": {LONG: {"type": "strin"}}}), f"/properties/{LONG}/type", None),
        (schema_body({"type": "string", "pattern": "(a)\\1"}), "/pattern", None),
        (schema_body({"type": "integer", "minimum": 5, "maximum": 3}), "/type", None),
        (schema_body({"$ref": f"#/$defs/{LONG}", "$defs": {LONG: {"enum": []}}}), f"/$defs/{LONG}", None),
        (schema_body(refused_late(LONG)), f"/$defs/{LONG}", None),
        (schema_body(refused_late("a")), "/$defs/a", None),
        ({"structured_outputs": {"regex": "😀(b"}}, None, 2),
        ({"structured_outputs": {"grammar": 'start: "a" b\nb: foo'}}, None, 16),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": 1}}}}]},
            "/0/function/parameters/properties",
            None,
        ),
    ],
)
def test_explain_has_the_place_of_an_error(
    server: LiveServer, body: dict[str, Any], place: str | None, offset: int | None
) -> None:
    found = post(server, "explain", body)
    assert found.status_code == 400, found.text
    error = found.json()["error"]
    assert (error["place"], error["offset"]) == (place, offset), error
    assert len(error["message"]) < 1_000


def test_explain_shows_the_other_keywords_of_a_refused_schema(server: LiveServer) -> None:
    found = post(server, "explain", schema_body({"type": "string", "pattern": "(a)\\1"})).json()["error"]
    rows = found["explanation"]["keywords"]
    assert [one["status"] for one in rows] == ["enforced", "refused"]
    assert "reason" not in rows[0]
    assert rows[1]["reason"].startswith("a back-reference is not supported")


def test_endpoints_need_the_key(tiny: Model) -> None:
    with live_server({"tiny": tiny}, api_keys=("secret",)) as live:
        assert httpx.get(f"{live.url}/").status_code == 200
        for path in ("tokens", "alternatives", "explain"):
            assert post(live, path, CHAT).status_code == 401
