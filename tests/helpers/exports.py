"""Models of transformers as ONNX graphs, by torch's tracing exporter."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any


def export(model: Any, folder: Path) -> None:
    """Write the model with its cache as inputs and outputs, and its config.json."""
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
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
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
            Traced().eval(),  # or the exporter leaves the whole model training, with dropout, as the wrapper was
            example,
            str(folder / "model.onnx"),
            input_names=["input_ids", "attention_mask", "position_ids", *pasts],
            output_names=["logits", *presents],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    config.save_pretrained(folder)


def export_folder(folder: Path) -> Path:
    """Add model.onnx to a folder that transformers can load."""
    import torch
    from transformers import AutoModelForCausalLM

    config = (folder / "config.json").read_bytes()
    export(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager"), folder)
    (folder / "config.json").write_bytes(config)
    return folder
