"""How many fields and records of an answer are right, and the unconstrained measurement of a torch model."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer

from tiny_model import Tiny, greedy

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

from guideway.generation.prompts import extraction_prompt  # noqa: E402  # after the path is set
from tiny_data.samples import Sample, make  # noqa: E402  # after the path is set

EVAL_SEED = "evaluation"


def evaluation_set(count: int, words: str = "eval", forms: str = "eval", seed: str = EVAL_SEED) -> list[Sample]:
    """Samples of words and templates that are not in the training data; "train" for samples that may be in it."""
    rng = random.Random(seed)
    return [make(rng, words, forms) for _ in range(count)]


def leaves(value: object, path: str = "") -> dict[str, object]:
    """The fields of a record: objects are opened, a list is one field."""
    if isinstance(value, dict) and value:
        return {k: v for key, inner in value.items() for k, v in leaves(inner, f"{path}/{key}").items()}
    return {path: value}


def plain(value: object) -> str:
    """JSON text to compare by: 40 and 40.0 are one number, 1 and true are not one value."""
    whole = json.loads(
        json.dumps(value), parse_float=lambda text: int(float(text)) if float(text).is_integer() else float(text)
    )
    return json.dumps(whole, sort_keys=True)


def fields_right(expected: dict[str, object], answer: object) -> tuple[int, int]:
    """Returns the numbers of correct fields and of all fields; booleans and numbers are different."""
    want = leaves(expected)
    got = leaves(answer)
    right = sum(1 for path, value in want.items() if path in got and plain(got[path]) == plain(value))
    return right, len(want)


def parsed(answer: str) -> object:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def score(samples: list[Sample], answers: list[str]) -> dict[str, float]:
    right = total = whole = parses = 0
    for sample, answer in zip(samples, answers, strict=True):
        value = parsed(answer)
        hits, fields = fields_right(sample.record, value)
        right, total = right + hits, total + fields
        whole += hits == fields
        parses += value is not None
    count = len(samples)
    return {
        "fields_right": round(right / total, 4),
        "records_right": round(whole / count, 4),
        "parses": round(parses / count, 4),
    }


def answers_of(model: Tiny, tokenizer: Tokenizer, samples: list[Sample], batch: int = 64) -> list[str]:
    """Greedy answers without any constraint, rows of like length together."""
    prompts = [tokenizer.encode(extraction_prompt(s.text, s.schema)).ids for s in samples]
    order = sorted(range(len(samples)), key=lambda i: len(prompts[i]))
    answers = [""] * len(samples)
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        for row, ids in zip(rows, greedy(model, [prompts[i] for i in rows], limit=250), strict=True):
            answers[row] = tokenizer.decode(ids)
    return answers


def measure(model: Tiny, tokenizer: Tokenizer, count: int) -> dict[str, float]:
    model.eval()
    with torch.no_grad():
        samples = evaluation_set(count)
        figures = score(samples, answers_of(model, tokenizer, samples))
    model.train()
    return figures
