"""Turns a checkpoint of tools/train_tiny.py into the model folder that the package ships.

Usage: python tools/save_tiny.py WORK_DIR MODEL_DIR

Writes model.safetensors (float16), config.json, generation_config.json, the tokenizer and model.onnx.  The tensors are
laid out so that q, k, v and gate, up follow each other: the ONNX graph reads them as one matrix each.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from pathlib import Path

import torch

from export_tiny_onnx import build
from tiny_model import Config

HEADER_ALIGNMENT = 64


def ordered(names: list[str]) -> list[str]:
    """Names in the order of the file: by layer, and within it by the order of use."""
    parts = ["embed_tokens", "input_layernorm", "q_proj", "k_proj", "v_proj", "o_proj"]
    parts += ["post_attention_layernorm", "gate_proj", "up_proj", "down_proj"]

    def rank(name: str) -> tuple[int, int]:
        layer = int(name.split(".")[2]) if ".layers." in name else (-1 if "embed" in name else 10**6)
        return layer, next((i for i, part in enumerate(parts) if f".{part}." in name), len(parts))

    return sorted(names, key=rank)


def save_safetensors(path: Path, weights: dict[str, torch.Tensor]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    blobs, offset = [], 0
    for name in ordered(list(weights)):
        array = weights[name].detach().to(torch.float16).contiguous().numpy()
        blob = array.tobytes()
        header[name] = {"dtype": "F16", "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % HEADER_ALIGNMENT)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main() -> None:
    work, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    saved = torch.load(work / "checkpoint.pt", weights_only=True)
    save_safetensors(folder / "model.safetensors", saved["model"])
    config = Config(vocab_size=saved["model"]["model.embed_tokens.weight"].shape[0]).to_transformers()
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "do_sample": False, "max_new_tokens": 256}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(work / name, folder / name)
    (folder / "model.onnx").write_bytes(build(folder).SerializeToString())
    sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir()) if file.is_file()}
    print(f"step {saved['position'][0]}: {sizes}, {sum(sizes.values()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
