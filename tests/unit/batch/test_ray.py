"""`guideway.batch.ray`: the functions before and after vLLM, versions, and the processor of `ray.data.llm`."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.batch import ray as batch_ray
from guideway.batch.ray import RowRequests, compare, versions, with_backend
from guideway.constraints import of
from guideway.errors import EngineError, GuidewayError, InvalidTextError
from guideway.integrations._common import requested

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def rows(output: object = None, **given: Any) -> RowRequests:
    document = None if output is None else gw.to_wire(output)
    settings: dict[str, Any] = {
        "prompt": "{text}",
        "system_prompt": None,
        "column": "out",
        "on_error": "column",
        "constraint_column": None,
        "id_column": None,
        "sampling": {"max_tokens": 20},
        "expected": versions(),
        **given,
    }
    made: RowRequests = pickle.loads(pickle.dumps(RowRequests(document, **settings)))
    return made


def test_a_row_before_the_engine() -> None:
    made = rows(gw.JsonSchema(SCHEMA), system_prompt="Be short.").before({"text": "a", "n": 1})
    assert made["n"] == 1
    assert [one["role"] for one in made["messages"]] == ["system", "user"]
    params = made["sampling_params"]
    assert params["max_tokens"] == 20
    assert isinstance(params["seed"], int)
    assert requested("grammar", params["structured_outputs"]["grammar"]) == gw.JsonSchema(SCHEMA)


@pytest.mark.parametrize(
    "output", [gw.Regex("a+"), gw.Choice(["a", "b"]) + "!", ~gw.Regex("a"), int, gw.Lark('start: "a"')], ids=repr
)
def test_every_constraint_travels(output: Any) -> None:
    params = rows(output).before({"text": "a"})["sampling_params"]
    back: Any = requested("grammar", params["structured_outputs"]["grammar"])
    assert back.grammar().nodes == of(output).grammar().nodes


def test_a_constraint_per_row() -> None:
    work = rows(gw.Regex("a"), constraint_column="rule")
    for given, expected in [
        (json.dumps(gw.to_wire(gw.Regex("b"))), gw.Regex("b")),
        (gw.to_wire(gw.Regex("b")), gw.Regex("b")),
        (json.dumps(SCHEMA), gw.JsonSchema(SCHEMA)),
        (None, gw.Regex("a")),
    ]:
        made = work.before({"text": "a", "rule": given})
        assert requested("grammar", made["sampling_params"]["structured_outputs"]["grammar"]) == expected
    assert "structured_outputs" not in rows().before({"text": "a"})["sampling_params"]


def test_a_row_after_the_engine() -> None:
    work = rows(gw.JsonSchema(SCHEMA))
    row = {
        **work.before({"text": "a", "n": 1}),
        "generated_text": '{"ok": true}',
        "generated_tokens": [1],
        "batch_uuid": "x",
    }
    assert work.after(row) == {"text": "a", "n": 1, "out": {"ok": True}, "out_error": None}
    cut = work.after({**row, "generated_text": '{"ok": tr'})
    assert cut["out"] is None
    assert cut["out_error"].startswith("InvalidTextError")
    failed = work.after({**row, "__inference_error__": "no memory"})
    assert (failed["out"], failed["out_error"]) == (None, "no memory")
    strict = rows(gw.JsonSchema(SCHEMA), on_error="raise")
    assert strict.after(row) == {"text": "a", "n": 1, "out": {"ok": True}}
    with pytest.raises(InvalidTextError):
        strict.after({**row, "generated_text": "{"})


def test_columns_whose_names_the_engine_uses_are_kept() -> None:
    work = rows(gw.JsonSchema(SCHEMA), prompt="{prompt}")
    given = {"prompt": "a", "metrics": 3, "guideway_input_n": 1, "guideway_input_prompt": "b"}
    of_engine = {"prompt": "<user>a", "metrics": {"time": 0.1}, "generated_text": '{"ok": true}'}
    made = work.after({**work.before(given), **of_engine})
    assert made == {**given, "out": {"ok": True}, "out_error": None}


def test_a_row_without_a_valid_request() -> None:
    work = rows(gw.Regex("a"), constraint_column="rule")
    made = work.before({"text": None, "rule": None})
    assert made["sampling_params"]["max_tokens"] == 1
    done = work.after({**made, "generated_text": "anything"})
    assert done["out"] is None
    assert done["out_error"].startswith("InvalidRequestError")
    assert work.after({**work.before({"text": "a", "rule": "{"}), "generated_text": ""})["out_error"]
    with pytest.raises(GuidewayError):
        rows(on_error="raise").before({"text": None})


def test_versions_are_compared() -> None:
    compare(versions(), versions(), "here")
    with pytest.raises(EngineError, match=r"node 3 has other versions than the driver: guideway 0\.0\.1, expected"):
        compare({**versions(), "guideway": "0.0.1"}, versions(), "node 3")
    with pytest.raises(EngineError, match="this process"):
        rows(expected={**versions(), "vllm": "9"}).before({"text": "a"})


def test_the_backend_of_a_config() -> None:
    class Config(SimpleNamespace):
        def model_copy(self, *, update: dict[str, Any], deep: bool) -> Config:
            return Config(**{**vars(self), **update})

    given = Config(engine_kwargs={"max_model_len": 512}, model_source="m")
    made = with_backend(given, "column")
    assert made.engine_kwargs == {"max_model_len": 512, "structured_outputs_config": {"backend": "guideway"}}
    assert made.should_continue_on_error is True
    assert given.engine_kwargs == {"max_model_len": 512}
    with pytest.raises(ValueError, match="xgrammar"):
        with_backend(Config(engine_kwargs={"structured_outputs_config": {"backend": "xgrammar"}}), "raise")


@pytest.mark.engine("ray", "aiohttp", "transformers")
@pytest.mark.filterwarnings("ignore")
def test_the_processor_of_ray() -> None:
    """Builds the processor of `ray.data.llm` with its own classes. Its stages do not run: they need vLLM."""
    import ray
    from ray.data.llm import vLLMEngineProcessorConfig

    from tests.packaging.repository import PACKAGE

    config = vLLMEngineProcessorConfig(
        model_source=str(PACKAGE / "tiny"), engine_kwargs={"max_model_len": 512}, batch_size=8, concurrency=1
    )
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        made = batch_ray.processor(config, gw.JsonSchema(SCHEMA), column="out", max_tokens=30)
        stage = made.get_stage_by_name("vLLMEngineStage")
        arguments = stage.fn_constructor_kwargs
        assert arguments["engine_kwargs"]["structured_outputs_config"] == {"backend": "guideway"}
        assert arguments["should_continue_on_error"] is True
        assert "structured_outputs_config" not in config.engine_kwargs
        work = rows(gw.JsonSchema(SCHEMA), constraint_column="rule")
        given = [
            {"text": "a", "rule": None},
            {"text": None, "rule": None},
            {"text": "b", "rule": json.dumps(gw.to_wire(gw.Regex("x")))},
        ]
        before = ray.data.from_items(given).map(work.before).take_all()  # one Arrow type for all rows
        grammars = [(one["sampling_params"].get("structured_outputs") or {}).get("grammar") for one in before]
        assert [one is None for one in grammars] == [False, True, False]
        assert before[1]["sampling_params"].get("structured_outputs") is None  # vLLM refuses an empty one
        assert requested("grammar", grammars[2]) == gw.Regex("x")
    finally:
        ray.shutdown()
