"""Vocabularies and tokenizers: the bytes of each token id, and conversion between text and token ids.

vocabulary.py      `Vocabulary`
tokenizer.py       `Tokenizer`, and the list of adapters
kept.py            a cache of tokenizers by the object or file from which they were read
report.py          what a vocabulary contains
special_tokens.py  guesses BOS, EOS and padding tokens from their names
chat_template.py   chat templates
template_sandbox.py  the Jinja environment of chat templates, with limits of work and memory
streaming.py       incremental UTF-8 decoding
files.py           adapter: paths
unwrap.py          adapter: objects that hold a tokenizer
huggingface.py     adapter: tokenizers
transformers.py    adapter: transformers
sentencepiece.py   adapter: sentencepiece
tiktoken.py        adapter: tiktoken
mistral.py         adapter: mistral-common
gguf.py            adapter: GGUF files
longest_match.py   adapter: lists of token bytes, without a tokenizer library
"""

from __future__ import annotations

from guideway.tokenizers.streaming import TextStream
from guideway.tokenizers.tokenizer import Tokenizer, TokenizerBackend
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["TextStream", "Tokenizer", "TokenizerBackend", "Vocabulary"]
