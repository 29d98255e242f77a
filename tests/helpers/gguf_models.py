"""Writes a model folder as a GGUF file, for `tiny` and the architectures of `tiny_model` that llama.cpp supports."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "gpt2": gguf.MODEL_ARCH.GPT2,
    "gpt_neox": gguf.MODEL_ARCH.GPTNEOX,
    "mpt": gguf.MODEL_ARCH.MPT,
    "bloom": gguf.MODEL_ARCH.BLOOM,
    "mamba": gguf.MODEL_ARCH.MAMBA,
}


def tensors_of(file: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, as float32."""
    data = file.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    kinds = {"F32": np.float32, "F16": np.float16}
    found = {}
    for name, place in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = place["data_offsets"]
            flat = np.frombuffer(data[8 + size + begin : 8 + size + end], kinds[place["dtype"]])
            found[name] = flat.reshape(place["shape"]).astype(np.float32)
    return found


def write_gguf(folder: Path, file: Path) -> Path:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    kind = config["model_type"]
    arch = ARCHITECTURES[kind]
    writer = gguf.GGUFWriter(file, gguf.MODEL_ARCH_NAMES[arch])
    layers = _facts(writer, config, kind)
    _tokenizer(writer, folder, config)
    names = gguf.get_tensor_name_map(arch, layers)
    for name, tensor in tensors_of(folder / "model.safetensors").items():
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if kind == "bloom":  # the package's table has the names of an older Bloom
            new = names.get_name(name.removeprefix("transformer."), try_suffixes=(".weight", ".bias"))
        if name.endswith(("A_log", ".D")):
            new = f"blk.{name.split('.')[2]}.ssm_{'a' if name.endswith('A_log') else 'd'}"
        assert new is not None, name
        writer.add_tensor(new, np.ascontiguousarray(_turned(kind, name, tensor, config)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _turned(kind: str, name: str, tensor: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """As llama.cpp lays it out."""
    if kind == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
        heads = tensor.shape[0] // config["head_dim"]
        return tensor.reshape(heads, 2, -1, tensor.shape[1]).swapaxes(1, 2).reshape(tensor.shape)
    if kind == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return tensor.T
    if kind in ("gpt_neox", "bloom") and "query_key_value" in name:
        heads = config.get("num_attention_heads", config.get("n_head"))
        apart = tensor.reshape(heads, 3, -1, *tensor.shape[1:])  # the three parts of each head are adjacent
        return apart.swapaxes(0, 1).reshape(tensor.shape)
    if name.endswith("A_log"):
        return -np.exp(tensor)
    return tensor.squeeze(1) if name.endswith("conv1d.weight") else tensor


def _facts(writer: gguf.GGUFWriter, config: dict[str, Any], kind: str) -> int:
    def get(*names: str) -> Any:
        return next(config[name] for name in names if name in config)

    width, layers = get("hidden_size", "n_embd", "d_model"), get("num_hidden_layers", "n_layer", "n_layers")
    writer.add_context_length(get("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"))
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    if kind == "mamba":
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(config["conv_kernel"])
        writer.add_ssm_inner_size(config["intermediate_size"])
        writer.add_ssm_state_size(config["state_size"])
        writer.add_ssm_time_step_rank(config["time_step_rank"])
        writer.add_layer_norm_rms_eps(1e-5)
        return int(layers)
    heads = get("num_attention_heads", "n_head", "n_heads")
    writer.add_feed_forward_length(config.get("intermediate_size", 4 * width))
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads", heads))
    if kind in ("llama", "qwen2"):
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_rope_dimension_count(width // heads)
    else:
        writer.add_layer_norm_eps(config.get("layer_norm_epsilon", config.get("layer_norm_eps", 1e-5)))
    if kind == "gpt_neox":
        writer.add_rope_dimension_count(int(config["rotary_pct"] * width // heads))
        writer.add_parallel_residual(config["use_parallel_residual"])
    if kind == "mpt":
        writer.add_max_alibi_bias(config["attn_config"]["alibi_bias_max"])
    return int(layers)


def _tokenizer(writer: gguf.GGUFWriter, folder: Path, config: dict[str, Any]) -> None:
    read = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = {**read["model"]["vocab"], **{token["content"]: token["id"] for token in read["added_tokens"]}}
    special = {token["id"] for token in read["added_tokens"] if token["special"]}
    tokens = sorted(vocabulary, key=lambda token: vocabulary[token])
    assert [vocabulary[token] for token in tokens] == list(range(config["vocab_size"]))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in read["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [int(gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL) for i in range(len(tokens))]
    )
    writer.add_token_merges(merges)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(True)
