"""A random llama with a large vocabulary, as a folder that ExLlama loads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import guideway as gw

TINY = Path(gw.__file__).parent / "tiny"


def random_llama(folder: Path, *, vocabulary: int = 131_072, width: int = 1024, layers: int = 8) -> Path:
    """Write config.json, model.safetensors (float16) and tokenizer.json; needs transformers.

    The tokenizer is that of the bundled model, with further tokens of random letters that no text is encoded to, but
    that a model can write.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=2816, num_hidden_layers=layers,
        num_attention_heads=width // 64, num_key_value_heads=max(1, width // 128), max_position_embeddings=8192,
        bos_token_id=0, eos_token_id=1, tie_word_embeddings=False, architectures=["LlamaForCausalLM"],
    )  # fmt: skip
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = LlamaForCausalLM(config).half()
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(_widened(vocabulary)), encoding="utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def _widened(vocabulary: int) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))
    table, chance = made["model"]["vocab"], random.Random(0)
    while len(table) < vocabulary:
        table.setdefault("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9))), len(table))
    return made
