"""Texts of the kind that `make samples` generates by the thousand."""

from __future__ import annotations

import numpy as np
import pytest

import guideway as gw
from guideway.testing import ConstantModel
from tests.campaigns.samples import fault, models, run
from tests.helpers.counts import counts

from .gallery import GALLERY


@counts(300, 500)
def test_texts_at_temperature_2(count: int) -> None:
    try:
        given = models()
    except gw.errors.ModelNotFoundError:
        tokens = [bytes([n]) for n in range(256)] + [b"</s>", b'": ', b'", "', b"null", b"], [", b"20", b"aaa", b"}, {"]
        vocabulary = gw.Vocabulary(tokens, eos_ids=[256])
        given = [ConstantModel(vocabulary, np.random.default_rng(seed).normal(0, 2, len(tokens))) for seed in (1, 2)]
    outcomes = list(run(given, count, list(GALLERY)))
    assert [line for outcome in outcomes for line in outcome.invalid + outcome.cut] == []
    assert sum(outcome.texts for outcome in outcomes) == count


@pytest.mark.parametrize("text", ['{"name": "x"}', "{", '{"name": "x", "age": 131, "job": null}'])
def test_validator_finds_faults(text: str) -> None:
    assert fault(GALLERY["person"], text) is not None
    assert fault(GALLERY["person"], '{"name": "x", "age": 13, "job": null}') is None
