"""Remote models against `guideway serve` with a local model: every form of a constraint is understood and enforced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import httpx
import openai
import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.remote import capabilities, remote
from guideway.remote.probing import _GENERAL, Probe, probe
from tests.helpers.serving import live_server, served_tiny


class Seat(BaseModel):
    row: int
    free: bool


def test_every_form_of_a_constraint() -> None:
    number = gw.Regex("[0-9]{3}")
    tags = gw.Tags([gw.Tag("<n>", number, "</n>")], separator=",", least=1, most=1)
    brackets = gw.Lark('start: "(" start ")" | "x"')
    with live_server({"tiny": served_tiny()}) as live:
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="-", max_retries=0)
        own = remote(client, "tiny", dialect="guideway")
        for output in (Seat, number, tags, brackets, gw.Choice(["yes", "no"])):
            assert gw.plan(own, output).guarantee == "exact"
            assert own.complete("A seat.", output, max_tokens=60).attempts[0].problem == ""
        for dialect, route, output in (
            ("vllm", "vllm_structural_tag", tags),
            ("sglang", "sglang_structural_tag", tags),
            ("vllm", "vllm_grammar", brackets),
            ("llama-server", "llama_grammar", Seat),
            ("sglang", "sglang_regex", number),
        ):
            given = capabilities(dialect).override(routes=(route,))
            result = remote(client, "tiny", dialect=given).complete("A seat.", output, max_tokens=60)
            assert result.plan is not None
            assert (result.plan.route, len(result.attempts)) == (route, 1)
        found = probe(own)
        assert found.enforced("wire")
        assert found.enforced("json_schema")
        client.close()


def test_wrong_documents_are_refused() -> None:
    with live_server({"tiny": served_tiny()}) as live:
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="-", max_retries=0)
        with pytest.raises(openai.BadRequestError, match="wire document"):
            client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "x"}], extra_body={"constraint": {"guideway": 9}}
            )
        client.close()


# The server is the same for both dialects, so `make test` measures one of them.
@pytest.mark.parametrize("dialect", ["guideway", pytest.param("vllm", marks=pytest.mark.slow)])
def test_probe_of_the_command_line(dialect: str) -> None:
    """Every route of `guideway serve` is enforced, measured from another process."""
    serve = [sys.executable, "-m", "guideway", "serve", "--model", "tiny", "--port", "0", "--quiet"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            url = json.loads(server.stderr.readline())["url"]
            wait_until_ready(url)
            measure = ["probe", "--model", "openai:tiny", "--base-url", f"{url}/v1", "--dialect", dialect, "--json"]
            environment = {**os.environ, "OPENAI_API_KEY": "-"}
            result = subprocess.run(
                [sys.executable, "-m", "guideway", *measure],
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
        finally:
            server.terminate()
            server.stderr.read()
    assert result.returncode == 0, result.stderr
    found = Probe.from_json(json.loads(result.stdout))
    routes = {one.route for one in found.verdicts}
    assert routes >= {"json_schema", *_GENERAL}
    assert len(routes) == len(_GENERAL) + 2
    assert {route for route in routes if not found.enforced(route)} == set()
    assert {one.verdict for one in found.verdicts} <= {"enforced", "unclear"}


def wait_until_ready(url: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < until
        time.sleep(0.05)
