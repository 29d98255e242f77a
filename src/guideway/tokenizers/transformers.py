"""Slow tokenizers of transformers: those based on sentencepiece, those of byte-level BPE, and ByT5.

Fast tokenizers are in `huggingface.py`. The backend is a copy, so later changes of the object do not change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from guideway.errors import UnsupportedTokenizerError
from guideway.tokenizers import huggingface, sentencepiece
from guideway.tokenizers.kept import Same, Watch
from guideway.tokenizers.special_tokens import ids_of, named_in
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend, library
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["Bytes", "backend_of", "watch"]


@dataclass(frozen=True)
class Bytes:
    """A tokenizer of single bytes (ByT5). The byte b has the id `first + b`. `named` has the special tokens and ids."""

    first: int
    named: tuple[tuple[str, int], ...]
    specials: SpecialTokens

    drops_leading_space = False

    def encode(self, text: str, *, special: bool) -> list[int]:
        return [byte + self.first for byte in text.encode("utf-8")]

    def spelled(self, token_id: int) -> str:
        return {number: name for name, number in self.named}.get(token_id, "")

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        special = [token_id for _, token_id in self.named]
        table = [b""] * max(self.first + 256, max(special, default=-1) + 1)
        table[self.first : self.first + 256] = [bytes([byte]) for byte in range(256)]
        for name, token_id in self.named:
            table[token_id] = name.encode("utf-8")
        return Vocabulary(table, eos_ids, special)


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of a slow tokenizer of transformers; None for other objects.

    Raises:
        UnsupportedTokenizerError: The exact bytes of its tokens are not known.
    """
    classes = _classes(source)
    if "PreTrainedTokenizerBase" not in classes:
        return None
    slow: Any = source
    added = tuple(
        sentencepiece.Added(int(i), str(token.content), bool(token.special))
        for i, token in slow.added_tokens_decoder.items()
    )
    specials = SpecialTokens(
        slow.bos_token_id,
        ids_of(slow.eos_token_id),
        slow.pad_token_id,
        huggingface.template_of(slow.chat_template),
        named_in(slow.special_tokens_map),
        huggingface.templates_of(slow.chat_template),
    )
    if "ByT5Tokenizer" in classes:
        named = tuple((token.text, token.id) for token in sorted(added, key=lambda token: token.id))
        return Bytes(slow.convert_tokens_to_ids("\x00"), named, specials)
    if hasattr(slow, "sp_model"):
        return replace(_over_sentencepiece(slow, added), specials=specials)
    if hasattr(slow, "byte_decoder"):
        convert = library("transformers.convert_slow_tokenizer", "a slow tokenizer of transformers")
        backend = huggingface.backend_of(convert.convert_slow_tokenizer(slow))
        if isinstance(backend, huggingface.HuggingFace):
            return replace(backend, specials=specials)
    raise UnsupportedTokenizerError(
        f"the slow tokenizer {type(source).__qualname__} is not supported, because token bytes would not be exact;"
        " supported are slow tokenizers over sentencepiece, byte-level BPE and ByT5, and all fast tokenizers with a"
        " known decoder"
    )


def _classes(source: object) -> set[str]:
    return {base.__name__ for base in type(source).__mro__ if base.__module__.split(".")[0] == "transformers"}


def watch(source: object) -> Watch | None:
    """Return a function that computes the state (see `kept.py`) of a slow tokenizer; None for other objects."""
    if "PreTrainedTokenizerBase" not in _classes(source):
        return None
    return partial(_state, sentencepiece.watch(getattr(source, "sp_model", None)))


def _state(inner: Watch | None, slow: Any) -> object:
    tables = [table for name in ("encoder", "byte_decoder", "bpe_ranks") if (table := getattr(slow, name, None))]
    model = None if inner is None else (Same(slow.sp_model), inner(slow.sp_model))
    sizes = [(Same(table), len(table)) for table in tables]
    return huggingface.wrapper_state(slow), dict(slow._added_tokens_decoder), sizes, model


def _over_sentencepiece(slow: Any, added: Sequence[sentencepiece.Added]) -> sentencepiece.SentencePiece:
    """Return the backend of a slow tokenizer that contains a sentencepiece model (`sp_model`).

    Of its added tokens, those that are special or whose ids are outside the model are added to the model.

    Raises:
        UnsupportedTokenizerError: An id that is no added token has another text in the model, or the model writes a
            space at the end of a piece.
    """
    size = slow.sp_model.get_piece_size()
    replaced = {token.id for token in added}
    for token_id, piece in enumerate(slow.convert_ids_to_tokens(list(range(size)))):
        if token_id not in replaced and piece != slow.sp_model.id_to_piece(token_id):
            raise UnsupportedTokenizerError(
                f"{type(slow).__qualname__} and its sentencepiece model have different ids"
                f" (id {token_id} is {piece!r}); load the fast version of the tokenizer"
            )
    model = bytes(slow.sp_model.serialized_model_proto())
    beside = [token for token in added if token.id >= size or token.special]
    return sentencepiece.of_model(model, beside)
