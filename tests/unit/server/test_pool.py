"""A server whose models share one memory budget."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from guideway.pool import ModelSpec, Pool
from guideway.server import PooledModels, load_served
from tests.helpers.serving import LiveServer, live_server
from tests.helpers.small_model import write_model


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    other = write_model(tmp_path_factory.mktemp("other"))
    specs = {
        "first": ModelSpec("tiny", load=load_served, bytes=600),
        "second": ModelSpec(f"onnx:{other}", load=load_served, bytes=600),
        "broken": ModelSpec(f"onnx:{other}/missing", load=load_served, bytes=600),
    }
    pool = Pool(1000, specs, turn_requests=4, turn_seconds=2)
    with live_server(PooledModels(pool, preload=["first"], lease_seconds=60)) as live:
        yield live


def client_of(live: LiveServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0)


def ask(client: openai.OpenAI, model: str) -> str:
    found = client.completions.create(
        model=model, prompt="x", max_tokens=20, extra_body={"structured_outputs": {"regex": "[a-f]{3}"}}
    )
    return found.choices[0].text


def states(live: LiveServer) -> dict[str, str]:
    return {one["name"]: one["state"] for one in httpx.get(f"{live.url}/guideway/models").json()["data"]}


def test_a_request_loads_its_model(pooled: LiveServer) -> None:
    with client_of(pooled) as client:
        assert ask(client, "first")
        assert states(pooled) == {"first": "ready", "second": "cold", "broken": "cold"}
        assert ask(client, "second")
        assert states(pooled) == {"first": "cold", "second": "ready", "broken": "cold"}
        cards = {one.id: one.model_dump() for one in client.models.list()}
        assert cards["second"]["state"] == "ready"
        assert cards["second"]["max_model_len"] == 400
        assert cards["first"]["max_model_len"] is None


def test_models_switch_under_load(pooled: LiveServer) -> None:
    texts: list[str] = []

    def work(number: int) -> None:
        with client_of(pooled) as client:
            for turn in range(5):
                texts.append(ask(client, ("first", "second")[(number + turn) % 2]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 30
    assert all(len(text) == 3 and set(text) <= set("abcdef") for text in texts)


def test_unload(pooled: LiveServer) -> None:
    with client_of(pooled) as client:
        ask(client, "first")
    found = httpx.post(f"{pooled.url}/guideway/models/first/unload")
    assert found.status_code == 200
    assert found.json()["state"] in ("draining", "cold")
    until = time.monotonic() + 20
    while states(pooled)["first"] != "cold":
        assert time.monotonic() < until
        time.sleep(0.01)
    unknown = httpx.post(f"{pooled.url}/guideway/models/nothing/unload")
    assert unknown.status_code == 404
    assert "this server has first, second, broken" in unknown.json()["error"]["message"]


def test_sessions_of_an_unloaded_model_are_closed(pooled: LiveServer) -> None:
    url = f"{pooled.url}/guideway/sessions"
    opened = [httpx.post(url, json={"model": "first", "prompt": "a"}, timeout=60).json()["id"] for _ in range(2)]
    httpx.post(f"{pooled.url}/guideway/models/first/unload")
    until = time.monotonic() + 20
    while states(pooled)["first"] != "cold":
        assert time.monotonic() < until
        time.sleep(0.01)
    found = httpx.post(f"{url}/{opened[0]}/infer", json={})
    assert found.status_code == 404
    assert "its model was unloaded" in found.json()["error"]["message"]
    assert states(pooled)["first"] == "cold", "the model was not loaded for a session that cannot continue"
    assert httpx.get(f"{url}/{opened[1]}").status_code == 200
    other = httpx.post(url, json={"model": "second", "prompt": "a"}, timeout=60).json()["id"]  # closes idle sessions
    assert httpx.get(f"{url}/{opened[1]}").status_code == 404
    assert httpx.delete(f"{url}/{other}").status_code == 200


def test_an_unknown_and_a_broken_model_are_reported(pooled: LiveServer) -> None:
    with client_of(pooled) as client:
        with pytest.raises(openai.NotFoundError, match="'third' does not exist"):
            ask(client, "third")
        with pytest.raises(openai.InternalServerError, match="no ONNX model"):
            ask(client, "broken")
        assert ask(client, "second"), "the server continues"


def test_a_client_that_leaves_does_not_wait_for_its_model(pooled: LiveServer) -> None:
    pool = pooled.state.models.pool  # type: ignore[attr-defined]  # these are PooledModels
    with pool.lease("first"):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{pooled.url}/v1/completions", json={"model": "second", "prompt": "x"}, timeout=0.3)
        until = time.monotonic() + 20
        while any(one.waiting for one in pool.status()):
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_lease_of_another_model_that_never_ends_is_reported(tmp_path: Path) -> None:
    specs = {name: ModelSpec("tiny", load=load_served, bytes=600) for name in ("first", "second")}
    pool = Pool(1000, specs)
    with (
        live_server(PooledModels(pool, lease_seconds=0.2)) as live,
        client_of(live) as client,
        pool.lease("first"),
        pytest.raises(openai.InternalServerError, match=r"did not become free within 0\.2 seconds") as caught,
    ):
        ask(client, "second")
    assert caught.value.status_code == 503
    assert caught.value.response.headers["retry-after"] == "5"
