"""A folder with a small random model and its tokenizer, in the layout of a Hub export."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from .onnx_models import Shape, write

CORPUS = [
    '{"name": "Ada", "age": 36, "city": null}',
    "Ada Lovelace, 36, mathematician from London",
    "the quick brown fox jumps over the lazy dog",
    '["one", "two"], {"done": true, "when": "2026-01-31"}',
]


def byte_level(vocab_size: int = 330) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(CORPUS * 4, trainer)
    return made


def write_model(folder: Path, *, context: int = 400, chat_template: str | None = None) -> Path:
    tokenizer = byte_level()
    write(folder, Shape(vocab=tokenizer.get_vocab_size() + 6, context=context))
    tokenizer.save(str(folder / "tokenizer.json"))
    if chat_template is not None:
        config = {"eos_token": "<|endoftext|>", "chat_template": chat_template}
        (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return folder
