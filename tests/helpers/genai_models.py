"""ONNX exports with the configuration of onnxruntime-genai."""

from __future__ import annotations

import json
import shutil
from pathlib import Path


def genai_folder(folder: Path, made: Path) -> Path:
    """A copy of a folder with model.onnx in the Hub's naming and config.json, and a genai_config.json."""
    shutil.copytree(folder, made)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
    decoder = {
        "session_options": {"intra_op_num_threads": 1},
        "filename": "model.onnx",
        "head_size": config.get("head_dim", config["hidden_size"] // heads),
        "hidden_size": config["hidden_size"],
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": config.get("num_key_value_heads", heads),
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "position_ids": "position_ids",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    model = {
        "type": config["model_type"],
        "context_length": config["max_position_embeddings"],
        "vocab_size": config["vocab_size"],
        "bos_token_id": config["bos_token_id"],
        "eos_token_id": config["eos_token_id"],
        "pad_token_id": config.get("pad_token_id", config["eos_token_id"]),
        "decoder": decoder,
    }
    search = {"do_sample": False, "max_length": config["max_position_embeddings"], "past_present_share_buffer": False}
    (made / "genai_config.json").write_text(json.dumps({"model": model, "search": search}), "utf-8")
    return made
