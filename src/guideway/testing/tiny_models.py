"""Writes small random models of several architectures for tests, as folders like those of the Hugging Face Hub.

    folder = tiny_model("gpt2", path, seed=3)      # config.json, model.safetensors, tokenizer.json

Nothing is downloaded, and only numpy and tokenizers are needed. The tensors have the names that transformers uses. The
scales of the weights ensure that every token affects the logits, and that the largest logit differs clearly from the
others. Engines round differently, so greedy texts could not be compared if two logits were almost equal.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.arguments import short_repr
from guideway.errors import ModelNotFoundError

__all__ = ["ARCHITECTURES", "tiny_model"]

BOS, EOS, VOCAB, WIDTH, INNER, LAYERS, HEADS, HEAD = 0, 1, 320, 64, 128, 2, 2, 32
_SPECIALS = {"vocab_size": VOCAB, "bos_token_id": BOS, "eos_token_id": EOS, "torch_dtype": "float32"}
_CORPUS = [
    "the crab and the crabs, scrabble",
    "def main(argument): return 1",
    '{"name": "Ada", "age": 36}',
    "été, naïve",
    "once there was another story, and nobody told it twice",
]

Shapes = dict[str, tuple[int, ...]]


def _norm(name: str, *, bias: bool = True) -> Shapes:
    return {f"{name}.weight": (WIDTH,), **({f"{name}.bias": (WIDTH,)} if bias else {})}


def _linear(name: str, outputs: int, inputs: int, *, bias: bool = True, turned: bool = False) -> Shapes:
    """Return the shapes of a linear layer. `turned`: whether the weight is [inputs, outputs], as in GPT-2."""
    shape = (inputs, outputs) if turned else (outputs, inputs)
    return {f"{name}.weight": shape, **({f"{name}.bias": (outputs,)} if bias else {})}


def _llama(*, bias: bool) -> tuple[Shapes, Shapes]:
    kv = HEAD  # two query heads share one head of keys and values
    layer = {
        **_linear("self_attn.q_proj", WIDTH, WIDTH, bias=bias),
        **_linear("self_attn.k_proj", kv, WIDTH, bias=bias),
        **_linear("self_attn.v_proj", kv, WIDTH, bias=bias),
        **_linear("self_attn.o_proj", WIDTH, WIDTH, bias=False),
        **_linear("mlp.gate_proj", INNER, WIDTH, bias=False),
        **_linear("mlp.up_proj", INNER, WIDTH, bias=False),
        **_linear("mlp.down_proj", WIDTH, INNER, bias=False),
        **_norm("input_layernorm", bias=False),
        **_norm("post_attention_layernorm", bias=False),
    }
    return {"model.embed_tokens.weight": (VOCAB, WIDTH), **_norm("model.norm", bias=False)}, layer


def _gpt2(context: int) -> tuple[Shapes, Shapes]:
    layer = {
        **_norm("ln_1"),
        **_linear("attn.c_attn", 3 * WIDTH, WIDTH, turned=True),
        **_linear("attn.c_proj", WIDTH, WIDTH, turned=True),
        **_norm("ln_2"),
        **_linear("mlp.c_fc", 4 * WIDTH, WIDTH, turned=True),
        **_linear("mlp.c_proj", WIDTH, 4 * WIDTH, turned=True),
    }
    outside = {"wte.weight": (VOCAB, WIDTH), "wpe.weight": (context, WIDTH)}
    return {**outside, **_norm("ln_f")}, layer


def _gpt_neox() -> tuple[Shapes, Shapes]:
    layer = {
        **_norm("input_layernorm"),
        **_norm("post_attention_layernorm"),
        **_linear("attention.query_key_value", 3 * WIDTH, WIDTH),
        **_linear("attention.dense", WIDTH, WIDTH),
        **_linear("mlp.dense_h_to_4h", 4 * WIDTH, WIDTH),
        **_linear("mlp.dense_4h_to_h", WIDTH, 4 * WIDTH),
    }
    outside = {"gpt_neox.embed_in.weight": (VOCAB, WIDTH), "embed_out.weight": (VOCAB, WIDTH)}
    return {**outside, **_norm("gpt_neox.final_layer_norm")}, layer


def _gptj() -> tuple[Shapes, Shapes]:
    parts = ("q_proj", "k_proj", "v_proj", "out_proj")
    layer = _norm("ln_1")
    for part in parts:
        layer.update(_linear(f"attn.{part}", WIDTH, WIDTH, bias=False))
    layer.update({**_linear("mlp.fc_in", 4 * WIDTH, WIDTH), **_linear("mlp.fc_out", WIDTH, 4 * WIDTH)})
    outside = {"transformer.wte.weight": (VOCAB, WIDTH), **_linear("lm_head", VOCAB, WIDTH)}
    return {**outside, **_norm("transformer.ln_f")}, layer


def _mpt() -> tuple[Shapes, Shapes]:
    layer = {
        **_norm("norm_1", bias=False),
        **_linear("attn.Wqkv", 3 * WIDTH, WIDTH, bias=False),
        **_linear("attn.out_proj", WIDTH, WIDTH, bias=False),
        **_norm("norm_2", bias=False),
        **_linear("ffn.up_proj", 4 * WIDTH, WIDTH, bias=False),
        **_linear("ffn.down_proj", WIDTH, 4 * WIDTH, bias=False),
    }
    return {"transformer.wte.weight": (VOCAB, WIDTH), **_norm("transformer.norm_f", bias=False)}, layer


def _bloom() -> tuple[Shapes, Shapes]:
    layer = {
        **_norm("input_layernorm"),
        **_linear("self_attention.query_key_value", 3 * WIDTH, WIDTH),
        **_linear("self_attention.dense", WIDTH, WIDTH),
        **_norm("post_attention_layernorm"),
        **_linear("mlp.dense_h_to_4h", 4 * WIDTH, WIDTH),
        **_linear("mlp.dense_4h_to_h", WIDTH, 4 * WIDTH),
    }
    name = "transformer.word_embeddings"
    return {f"{name}.weight": (VOCAB, WIDTH), **_norm(f"{name}_layernorm"), **_norm("transformer.ln_f")}, layer


def _mamba() -> tuple[Shapes, Shapes]:
    inner, state, rank = 2 * WIDTH, 8, 4
    layer = {
        **_norm("norm", bias=False),
        "mixer.A_log": (inner, state),
        "mixer.D": (inner,),
        "mixer.conv1d.weight": (inner, 1, 4),
        "mixer.conv1d.bias": (inner,),
        **_linear("mixer.in_proj", 2 * inner, WIDTH, bias=False),
        **_linear("mixer.x_proj", rank + 2 * state, inner, bias=False),
        **_linear("mixer.dt_proj", inner, rank),
        **_linear("mixer.out_proj", WIDTH, inner, bias=False),
    }
    return {"backbone.embeddings.weight": (VOCAB, WIDTH), **_norm("backbone.norm_f", bias=False)}, layer


def _made(architecture: str, context: int) -> tuple[dict[str, Any], str, Shapes, Shapes]:
    """Return the architecture's members of config.json, the prefix of layer names, and the shapes of tensors by name.

    The first shapes are those outside of layers, the second those of one layer, with names relative to the layer. The
    caller adds the members of config.json that all architectures share.
    """
    config: dict[str, Any]
    wide = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    wide |= {"intermediate_size": INNER, "max_position_embeddings": context}
    small = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": context}
    tied, untied = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
    if architecture == "llama":
        config = {**wide, **tied, "num_key_value_heads": 1, "head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e4}
        return {**config, "architectures": ["LlamaForCausalLM"]}, "model.layers", *_llama(bias=False)
    if architecture == "qwen2":
        config = {**wide, **tied, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "rope_theta": 1e4}
        return {**config, "architectures": ["Qwen2ForCausalLM"]}, "model.layers", *_llama(bias=True)
    if architecture == "gpt2":
        config = {**small, **tied, "n_ctx": context, "layer_norm_epsilon": 1e-5}
        return {**config, "architectures": ["GPT2LMHeadModel"]}, "h", *_gpt2(context)
    if architecture == "gpt_neox":
        config = {**wide, **untied, "rotary_pct": 0.25, "layer_norm_eps": 1e-5, "use_parallel_residual": True}
        config |= {"rotary_emb_base": 10000, "intermediate_size": 4 * WIDTH, "hidden_act": "gelu_new"}
        return {**config, "architectures": ["GPTNeoXForCausalLM"]}, "gpt_neox.layers", *_gpt_neox()
    if architecture == "gptj":
        config = {**small, **untied, "rotary_dim": 16, "layer_norm_epsilon": 1e-5}
        return {**config, "architectures": ["GPTJForCausalLM"]}, "transformer.h", *_gptj()
    if architecture == "mpt":
        config = {"d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "max_seq_len": context, "expansion_ratio": 4}
        config |= {**tied, "no_bias": True, "attn_config": {"alibi": True, "alibi_bias_max": 8}}
        return {**config, "architectures": ["MptForCausalLM"]}, "transformer.blocks", *_mpt()
    if architecture == "bloom":
        config = {"hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "seq_length": context, **tied}
        return {**config, "architectures": ["BloomForCausalLM"]}, "transformer.h", *_bloom()
    config = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "state_size": 8, "conv_kernel": 4, "expand": 2, **tied}
    config |= {"intermediate_size": 2 * WIDTH, "time_step_rank": 4, "max_position_embeddings": context}
    config |= {"use_bias": False, "use_conv_bias": True}
    return {**config, "architectures": ["MambaForCausalLM"]}, "backbone.layers", *_mamba()


ARCHITECTURES = ("llama", "qwen2", "gpt2", "gpt_neox", "gptj", "mpt", "bloom", "mamba")


def tiny_model(architecture: str, folder: Path, *, seed: int = 0, context: int = 4096) -> Path:
    """Write a model of random weights and its tokenizer (with BOS) to a folder.

    Args:
        architecture: One of `ARCHITECTURES`.
        folder: The folder.
        seed: The seed. The same seed gives the same bytes.
        context: The maximum number of tokens of the model.

    Returns:
        The folder.

    Raises:
        ModelNotFoundError: The name is not in `ARCHITECTURES`.
    """
    if architecture not in ARCHITECTURES:
        raise ModelNotFoundError(
            f"no tiny model of the architecture {short_repr(architecture)}; known are {', '.join(ARCHITECTURES)}"
        )
    config, layers, outside, layer = _made(architecture, context)
    shapes = {**outside, **{f"{layers}.{i}.{name}": shape for i in range(LAYERS) for name, shape in layer.items()}}
    random = np.random.default_rng([seed, ARCHITECTURES.index(architecture)])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": architecture, **_SPECIALS, **config}), "utf-8")
    _write_tensors(folder / "model.safetensors", {name: _drawn(random, name, shapes[name]) for name in sorted(shapes)})
    _write_tokenizer(folder)
    return folder


def _drawn(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return random weights. Their scale depends on the name and shape of the tensor."""
    noise = random.standard_normal(shape)
    if name.endswith("A_log"):
        made = np.log(np.arange(1, shape[1] + 1)) + 0.1 * noise
    elif name.endswith((".bias", "dt_proj.weight")):
        made = 0.1 * noise
    elif len(shape) == 1:
        made = 1 + 0.1 * noise
    elif shape[0] == VOCAB or "wpe" in name:
        made = 0.5 * noise
    else:
        made = 0.2 * noise
    return made.astype(np.float32)


def _write_tensors(file: Path, tensors: dict[str, NDArray[np.float32]]) -> None:
    """Write a safetensors file: the size of the JSON header, the header with names and offsets, and the tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor.tobytes() for tensor in tensors.values()))


def _write_tokenizer(folder: Path) -> None:
    """Write a byte-level BPE tokenizer that puts BOS before a text."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(list(_fillers()), trainer)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", BOS)]
    )
    made.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def _fillers() -> Iterator[str]:
    """Yield the texts from which merges are learned. Their different frequencies prevent equal counts of merges."""
    for index, text in enumerate(_CORPUS):
        yield from [text] * (index + 2)
