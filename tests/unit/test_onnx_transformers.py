"""Exports by another exporter, with `position_ids` and `attention_mask`: logits equal those of transformers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guideway.engines.onnx import OnnxEngine
from guideway.testing import step_engine_contract

pytestmark = pytest.mark.engine("torch", "transformers", "onnx")

IDS = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46]
SMALL = {"vocab_size": 97, "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {
    **SMALL,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {**LLAMA, "num_key_value_heads": 2},
    "qwen2": {**LLAMA, "num_key_value_heads": 2},
    "gpt_neox": LLAMA,
}


def export(model: Any, folder: Path) -> None:
    """Write the model with its cache as inputs and outputs, by torch's exporter that works by tracing."""
    import torch
    from transformers import DynamicCache

    class Traced(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, *past: Any) -> tuple[Any, ...]:
            cache = DynamicCache(config=model.config)
            for layer in range(len(past) // 2):
                cache.update(past[2 * layer], past[2 * layer + 1], layer)
            found = self.model(
                input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache
            )
            return found.logits, *(part for layer in cache.layers for part in (layer.keys, layer.values))

    config = model.config
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    pasts = [f"past_key_values.{i}.{part}" for i in range(config.num_hidden_layers) for part in ("key", "value")]
    presents = [name.replace("past_key_values", "present") for name in pasts]
    past = [torch.zeros(1, heads, 3, config.hidden_size // config.num_attention_heads) for _ in pasts]
    axes = {name: {0: "row", 1: "new"} for name in ("input_ids", "position_ids")}
    axes |= {"attention_mask": {0: "row", 1: "all"}, "logits": {0: "row", 1: "new"}}
    axes |= {name: {0: "row", 2: "past"} for name in pasts} | {name: {0: "row", 2: "all"} for name in presents}
    example = (torch.tensor([[1, 2]]), torch.ones(1, 5, dtype=torch.long), torch.tensor([[3, 4]]), *past)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of being the old one, and of every constant it traces
        torch.onnx.export(
            Traced(),
            example,
            str(folder / "model.onnx"),
            input_names=["input_ids", "attention_mask", "position_ids", *pasts],
            output_names=["logits", *presents],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    config.save_pretrained(folder)


@pytest.mark.parametrize("kind", MODELS)
def test_logits_equal_those_of_transformers(kind: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(1)
    config = AutoConfig.for_model(kind, **MODELS[kind], attn_implementation="eager")
    model = AutoModelForCausalLM.from_config(config).eval()
    export(model, tmp_path)
    engine = OnnxEngine(tmp_path)
    assert (engine.vocab_size, engine.context_size) == (97, 128)
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([IDS])).logits[0].numpy()
    assert np.abs(expected[3] - expected[4]).max() > 1e-3  # the output depends on the input
    at_once, _ = engine.forward([IDS], [None])
    assert np.abs(at_once[0] - expected[-1]).max() < 1e-4
    cache = None
    for place, token_id in enumerate(IDS):
        logits, (cache,) = engine.forward([[token_id]], [cache])
        assert np.abs(logits[0] - expected[place]).max() < 1e-4
    step_engine_contract(engine, IDS, tolerance=1e-4)
