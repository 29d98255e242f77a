"""Constrain each row of transformers' `generate` differently: python examples/09_transformers_batch.py [FOLDER]."""

import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

import guideway as gw
from guideway.integrations.transformers import logits_processor

ROWS = [
    ("Founded in ", gw.Regex("(19|20)[0-9][0-9]")),
    ("I feel ", gw.Choice(["fine", "tired"])),
    ("Once upon a time ", None),  # this row is free
]


def main(folder: str = str(Path(gw.__file__).parent / "tiny")) -> list[str]:
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token

    prompts = [prompt for prompt, _ in ROWS]
    batch = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
    processor = logits_processor([constraint for _, constraint in ROWS], tokenizer, max_tokens=16)
    rows = model.generate(**batch, max_new_tokens=16, do_sample=False, logits_processor=[processor])

    start = batch["input_ids"].shape[1]
    texts = [tokenizer.decode(row[start:], skip_special_tokens=True) for row in rows]
    for (prompt, _), text in zip(ROWS, texts, strict=True):
        print(f"{prompt!r}: {text!r}")
    return texts


if __name__ == "__main__":
    main(*sys.argv[1:])
