"""vLLM in this process: the backend, the logits processor, and both in one batch."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import guideway as gw
from guideway.testing import tiny_model
from tests.helpers.vllm import has_device, load_llm

# vLLM and its imports emit many warnings that guideway does not cause.
pytestmark = [pytest.mark.engine("vllm"), pytest.mark.filterwarnings("default")]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<n>", "content": {"type": "regex", "pattern": "[1-9]{2}"}, "end": "</n>"},
}
VERBATIM = gw.JsonSchema({"type": "string", "format": "verbatim"}).quoting("Ada Byron")
CASES: list[tuple[str, object, str]] = [
    ("regex", "[a-c]{3,5}", "[a-c]{3,5}"),
    ("choice", ["red", "green"], "red|green"),
    ("grammar", 'root ::= "a" root | "b"', "a*b"),
    ("grammar", 'start: "a"~2..4 "b"', "a{2,4}b"),
    ("structural_tag", json.dumps(TAG), "<n>[1-9]{2}</n>"),
    ("grammar", json.dumps(gw.to_wire(VERBATIM)), '"(Ada|Byron|Ada Byron)"'),
]


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_llm(tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3), max_num_seqs=8)


def structured(seed: int = 0, max_tokens: int = 300, **asked: Any) -> Any:
    """The parameters of a request to the backend."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    options = StructuredOutputsParams(**asked)
    return SamplingParams(max_tokens=max_tokens, temperature=1.0, seed=seed, structured_outputs=options)


def processed(seed: int = 0, max_tokens: int = 300, **asked: Any) -> Any:
    """The same for the logits processor."""
    from vllm import SamplingParams

    extra = {f"guideway_{kind}": spec for kind, spec in asked.items()}
    return SamplingParams(max_tokens=max_tokens, temperature=1.0, seed=seed, extra_args=extra)


def free(seed: int = 0, **options: Any) -> Any:
    from vllm import SamplingParams

    return SamplingParams(max_tokens=12, temperature=1.0, seed=seed, **options)


def run(llm: Any, params: list[Any]) -> list[Any]:
    prompts = [f"the crab {index}" for index in range(len(params))]
    return [one.outputs[0] for one in llm.generate(prompts, params, use_tqdm=False)]


@pytest.mark.parametrize("route", [structured, processed])
def test_schemas_hold(llm: Any, route: Any) -> None:
    for found in run(llm, [route(seed, json=SCHEMA) for seed in range(12)]):
        assert found.finish_reason == "stop"
        value = gw.JsonSchema(SCHEMA).parse(found.text)
        assert set(value) == {"name", "age"}


@pytest.mark.parametrize("route", [structured, processed])
def test_every_kind_holds(llm: Any, route: Any) -> None:
    for (kind, _, pattern), found in zip(
        CASES, run(llm, [route(**{kind: spec}) for kind, spec, _ in CASES]), strict=True
    ):
        assert re.fullmatch(pattern, found.text), (kind, found.text)
        assert found.finish_reason == "stop"
    found = run(llm, [route(json_object=True, max_tokens=20)])[0]
    assert found.text.startswith("{")


def test_both_routes_draw_the_same_tokens(llm: Any) -> None:
    for seed in range(4):
        ours, other = run(llm, [structured(seed, json=SCHEMA)]), run(llm, [processed(seed, json=SCHEMA)])
        assert ours[0].token_ids == other[0].token_ids


def test_a_mixed_batch_leaves_free_rows_alone(llm: Any) -> None:
    """More requests than fit in one batch, so that rows join, leave and move; each result equals a single run's."""
    params = []
    for seed in range(6):
        params += [
            free(seed),
            structured(seed, json=SCHEMA),
            processed(seed, regex="[a-c]{3,5}"),
            processed(seed, json=SCHEMA),
        ]
    together = run(llm, params)
    prompts = [f"the crab {index}" for index in range(len(params))]
    for index in range(8):
        alone = llm.generate(prompts[index], params[index], use_tqdm=False)[0].outputs[0]
        assert alone.token_ids == together[index].token_ids
    assert all(found.finish_reason == "length" for found in together[::4])
    for found in (*together[1::4], *together[3::4]):
        gw.JsonSchema(SCHEMA).parse(found.text)


@pytest.mark.parametrize("route", [structured, processed])
@pytest.mark.parametrize(
    ("kind", "spec", "what"),
    [
        ("json", {"type": "integer", "minimum": 5, "maximum": 3}, "/minimum"),
        ("json", {"type": "nonsense"}, "/type"),
        ("json", "{", "JSON"),
        ("json", {"$ref": "http://example.com/else"}, r"\$ref"),
        ("regex", "a(", "position 1"),
        ("regex", "(?=a)b", "no text"),
        ("grammar", "root ::= nothing", "nothing"),
        ("structural_tag", '{"format": {"type": "token", "token": 5}}', "token 5"),
    ],
)
def test_a_bad_constraint_is_its_own_requests_error(llm: Any, route: Any, kind: str, spec: Any, what: str) -> None:
    from vllm.exceptions import VLLMValidationError

    with pytest.raises(VLLMValidationError, match=what):
        llm.generate("x", route(**{kind: spec}), use_tqdm=False)
    assert run(llm, [route(regex="[a-c]{3}")])[0].finish_reason == "stop"


def test_arguments_without_effect_are_refused(llm: Any) -> None:
    from vllm import SamplingParams
    from vllm.exceptions import VLLMValidationError

    for extra, what in (
        ({"guideway_yaml": "a"}, "unknown argument guideway_yaml"),
        ({"guideway_json": "{}", "guideway_regex": "a"}, "may have one constraint"),
        ({"guideway_json_object": False}, "json_object"),
    ):
        with pytest.raises(VLLMValidationError, match=what):
            llm.generate("x", SamplingParams(extra_args=extra), use_tqdm=False)
    assert run(llm, [SamplingParams(max_tokens=3, extra_args={"another": 1})])[0].finish_reason == "length"


def test_an_error_in_the_middle_ends_that_request_alone(llm: Any, caplog: pytest.LogCaptureFixture) -> None:
    """No legal token can be sampled, because other options of the request forbid all."""
    wrong = [structured(regex="a+b"), processed(regex="a+b")]
    for one in wrong:
        one.allowed_token_ids = [100]
    found = run(llm, [*wrong, structured(1, json=SCHEMA), processed(1, json=SCHEMA), free()])
    assert [one.finish_reason for one in found] == ["error", "stop", "stop", "stop", "length"]
    assert "ends early: RejectedTokenError" in caplog.text
    if not has_device():  # a device finds the error at the next token, as a token that is not allowed
        assert "ends early: NoAllowedTokenError: no token is left" in caplog.text
    gw.JsonSchema(SCHEMA).parse(found[2].text)
    gw.JsonSchema(SCHEMA).parse(found[3].text)


def test_compiling_happens_off_the_scheduler(llm: Any) -> None:
    """A slow compilation does not delay other requests: the free request, submitted last, ends first."""
    import threading

    from guideway.integrations.vllm import backend

    engine, gate, order = llm.llm_engine, threading.Event(), []
    original = backend.automaton_of

    def slow(*given: Any) -> Any:
        gate.wait(20)
        return original(*given)

    backend.automaton_of = slow
    try:
        engine.add_request("slow", "x", structured(regex="[a-c]{3}"))
        engine.add_request("quick", "x", free())
        while engine.has_unfinished_requests():
            order += [one.request_id for one in engine.step() if one.finished]
            if "quick" in order:
                gate.set()
    finally:
        gate.set()
        backend.automaton_of = original
    assert order == ["quick", "slow"]


def test_requests_may_be_cancelled(llm: Any) -> None:
    engine = llm.llm_engine
    for index in range(4):
        engine.add_request(f"cancelled-{index}", "x", structured(index, json={"type": "array", "minItems": 90}))
        engine.add_request(f"kept-{index}", "x", [structured, processed][index % 2](index, json=SCHEMA))
    engine.step()
    engine.step()
    engine.abort_request([f"cancelled-{index}" for index in range(4)])
    found: dict[str, Any] = {}
    while engine.has_unfinished_requests():
        found |= {one.request_id: one.outputs[0] for one in engine.step() if one.finished}
    kept = {name: one for name, one in found.items() if name.startswith("kept")}
    assert len(kept) == 4
    for one in kept.values():
        gw.JsonSchema(SCHEMA).parse(one.text)


def test_stop_tokens_of_a_request_are_legal_where_the_text_may_end(llm: Any) -> None:
    star = llm.get_tokenizer().convert_tokens_to_ids("!")
    params = structured(regex="[a-c]{2}")
    params.stop_token_ids, params.logit_bias = [star], {star: 100.0}
    found = run(llm, [params])[0]
    assert re.fullmatch("[a-c]{2}!?", found.text)
    assert found.stop_reason == star
