"""Remote models against `guideway serve` with a local model: every form of a constraint is understood and enforced."""

from __future__ import annotations

import openai
import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.remote import capabilities, remote
from guideway.remote.probing import probe
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
