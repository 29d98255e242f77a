"""Models of `ToyEngine` over a vocabulary."""

from __future__ import annotations

from typing import Any

from guideway.generation import Model
from guideway.testing import ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary


def toy_model(vocabulary: Vocabulary, seed: int, engine: type[ToyEngine] = ToyEngine, **options: Any) -> Model:
    """A model with random logits that depend on the text and the seed; `options` are those of the engine."""
    return Model(engine(len(vocabulary), seed=seed, **options), Tokenizer.of(vocabulary))
