"""vLLM on a CUDA device with its default settings: half precision, CUDA graphs and asynchronous scheduling.

The tests in `tests/unit/integrations/vllm` also run on a device: `make test-gpu-vllm`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from tests.helpers.vllm import load_llm
from tests.unit.integrations.vllm.test_backend import CASES, SCHEMA, free, processed, structured

pytestmark = [pytest.mark.engine("vllm"), pytest.mark.filterwarnings("default")]
TINY = Path(gw.__file__).parent / "tiny"


def test_default_settings() -> None:
    """Rows of both routes and free rows, more than fit in a batch."""
    llm = load_llm(TINY, enforce_eager=False, dtype="auto", max_num_seqs=24)
    assert llm.llm_engine.vllm_config.scheduler_config.async_scheduling
    params: list[Any] = []
    for seed in range(8):
        params += [structured(seed, json=SCHEMA), processed(seed, json=SCHEMA), free(seed)]
        params += [route(seed, **{kind: spec}) for route in (structured, processed) for kind, spec, _ in CASES]
    found = [one.outputs[0] for one in llm.generate(["Ada"] * len(params), params, use_tqdm=False)]
    size = 3 + 2 * len(CASES)
    for at in range(0, len(found), size):
        for one in found[at : at + 2]:
            assert one.finish_reason == "stop"
            assert set(gw.JsonSchema(SCHEMA).parse(one.text)) == {"name", "age"}
        assert found[at + 2].finish_reason == "length"
        for (kind, _, pattern), one in zip([*CASES, *CASES], found[at + 3 : at + size], strict=True):
            assert re.fullmatch(pattern, one.text), (kind, one.text)
