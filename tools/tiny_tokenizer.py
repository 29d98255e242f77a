"""Trains the tokenizer of ``tiny``: byte-level BPE on the generated data.

Usage: python tools/tiny_tokenizer.py OUT_DIR

A word is never merged with the space before it: `` Ada`` in the text and ``"Ada"`` in the record are then the same
tokens, so a model can copy them. Each digit is a token. Punctuation and spaces merge freely (``": "`` is one token).
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

from guideway.generation.prompts import extraction_prompt  # noqa: E402  # after the path is set
from tiny_data.samples import make  # noqa: E402  # after the path is set

VOCABULARY_SIZE = 4096
SPECIALS = ["<bos>", "<eos>", "<pad>"]
SAMPLES = 60_000


def texts(count: int, seed: str) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        sample = make(rng, "train")
        yield extraction_prompt(sample.text, sample.schema) + sample.answer


def train() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=16,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(SAMPLES, "tokenizer"), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", tokenizer.token_to_id("<bos>"))]
    )
    return tokenizer


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "padding_side": "left",
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    lengths = [len(tokenizer.encode(text).ids) for text in texts(2000, "lengths")]
    mean = sum(lengths) / len(lengths)
    print(f"{tokenizer.get_vocab_size()} tokens; a sample has {mean:.0f} on average, {max(lengths)} at most")


if __name__ == "__main__":
    main()
