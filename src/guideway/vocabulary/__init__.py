"""Vocabularies and tokenizers: which bytes each token id stands for, and text to ids and back."""

from __future__ import annotations

from guideway.vocabulary.streaming import TextStream
from guideway.vocabulary.table import Vocabulary
from guideway.vocabulary.tokenizer import Tokenizer, TokenizerBackend

__all__ = ["TextStream", "Tokenizer", "TokenizerBackend", "Vocabulary"]
