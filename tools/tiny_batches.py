"""Training batches of ``tiny``: shards drawn on demand from a seed, cut into batches of like length."""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

from guideway.generation.prompts import extraction_prompt  # noqa: E402  # after the path is set
from tiny_data.samples import make  # noqa: E402  # after the path is set

BOS, EOS, PAD = 0, 1, 2
LONGEST = 400
PROMPT_SHARE, PROMPT_WEIGHT = 0.1, 0.2  # few prompt positions, at a small weight: text modelling is not the task
LOOSE_SHARE = 0.12  # samples whose answer is written in shorter tokens than usual here and there

Batch = tuple[torch.Tensor, torch.Tensor]  # ids [rows, length], loss weight of the token *at* each position


def loosen(rng: random.Random, tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Write some punctuation tokens as two.

    A constraint may force text whose tokens end elsewhere than ours (``": `` then ``"``); the model should not mind.
    """
    out = []
    for token in ids:
        text = tokenizer.decode([token])
        if len(text) > 1 and not text.isalnum() and text.isascii() and rng.random() < 0.3:
            cut = rng.randint(1, len(text) - 1)
            for part in (text[:cut], text[cut:]):
                out += tokenizer.encode(part, add_special_tokens=False).ids
        else:
            out.append(token)
    return out


def shard(tokenizer: Tokenizer, seed: str, count: int) -> list[tuple[list[int], int]]:
    """``count`` samples as (token ids, length of the prompt in tokens)."""
    rng = random.Random(seed)
    samples = [make(rng, "train") for _ in range(count)]
    prompts = tokenizer.encode_batch_fast([extraction_prompt(s.text, s.schema) for s in samples])
    answers = tokenizer.encode_batch_fast([s.answer for s in samples], add_special_tokens=False)
    rows = []
    for prompt, answer in zip(prompts, answers, strict=True):
        tail = loosen(rng, tokenizer, answer.ids) if rng.random() < LOOSE_SHARE else answer.ids
        if len(prompt.ids) + len(tail) < LONGEST:
            rows.append(([*prompt.ids, *tail, EOS], len(prompt.ids)))
    return rows


def batches(rows: list[tuple[list[int], int]], seed: str, tokens: int) -> Iterator[Batch]:
    """Batches of about ``tokens`` tokens, rows of like length together, in random order."""
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i][0]), i))
    groups, start = [], 0
    while start < len(order):
        # the batch's width is that of its last row, so find the count that fits by its first row and check
        count = max(1, tokens // len(rows[order[start]][0]))
        group = order[start : start + count]
        groups.append(group)
        start += len(group)
    for index in rng.permutation(len(groups)):
        group = [rows[i] for i in groups[index]]
        width = max(len(ids) for ids, _ in group)
        ids = np.full((len(group), width), PAD, dtype=np.int64)
        weight = np.zeros((len(group), width), dtype=np.float32)
        for row, (tokens_of_row, prompt) in enumerate(group):
            ids[row, : len(tokens_of_row)] = tokens_of_row
            weight[row, prompt : len(tokens_of_row)] = 1.0
            weight[row, 1:prompt] = PROMPT_WEIGHT * (rng.random(prompt - 1) < PROMPT_SHARE)
        yield torch.from_numpy(ids), torch.from_numpy(weight)
