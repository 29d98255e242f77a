"""Byte-level BPE by ranks: `tiktoken.Encoding`, and whatever holds one (Tekken: `mistral.py`).

A rank is the bytes themselves, so nothing has to be guessed. A bare file of ranks (Llama 3's `tokenizer.model`) says
neither how text is split nor which tokens are special; it is refused with that explanation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from guideway.errors import UnsupportedTokenizerError
from guideway.tokenizers.special_tokens import by_custom
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend, library
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["Ranks", "backend_of", "of_ranks"]


@dataclass(frozen=True)
class Ranks:
    """A backend over the library `tiktoken`. `tokens[r]` has rank r (`b""`: there is none) and the id r + offset."""

    pattern: str
    tokens: tuple[bytes, ...]
    named: tuple[tuple[str, int], ...]  # the special tokens by name, with their ids
    offset: int
    specials: SpecialTokens

    drops_leading_space = False

    @cached_property
    def _encoding(self) -> Any:
        tiktoken = library("tiktoken", "a tokenizer of ranks")
        ranks = {token: rank for rank, token in enumerate(self.tokens) if token}
        return tiktoken.Encoding("guideway", pat_str=self.pattern, mergeable_ranks=ranks, special_tokens={})

    def encode(self, text: str, *, special: bool) -> list[int]:
        ids = [rank + self.offset for rank in self._encoding.encode_ordinary(text)]
        return [self.specials.bos_id, *ids] if special and self.specials.bos_id is not None else ids

    def spelled(self, token_id: int) -> str:
        for name, found in self.named:
            if found == token_id:
                return name
        return self.vocabulary(()).bytes_of([token_id]).decode("utf-8", "replace")

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        table = [b""] * self.offset + list(self.tokens)
        special = [token_id for _, token_id in self.named]
        table.extend([b""] * (max(special, default=-1) + 1 - len(table)))
        for name, token_id in self.named:
            table[token_id] = name.encode("utf-8")
        return Vocabulary(table, eos_ids, special)

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("pattern", "tokens", "named", "offset", "specials")}


def backend_of(source: object) -> TokenizerBackend | None:
    """The backend of a `tiktoken.Encoding`; None for anything else."""
    if not any(b.__name__ == "Encoding" and b.__module__.split(".")[0] == "tiktoken" for b in type(source).__mro__):
        return None
    encoding: Any = source
    try:
        pattern, ranks, named = encoding._pat_str, encoding._mergeable_ranks, encoding._special_tokens
    except AttributeError as error:
        raise UnsupportedTokenizerError(
            f"this version of tiktoken does not show what an Encoding holds: {error}"
        ) from None
    return of_ranks(pattern, ranks, named, by_custom(named))


def of_ranks(
    pattern: str, ranks: Mapping[bytes, int], named: Mapping[str, int], specials: SpecialTokens, offset: int = 0
) -> Ranks:
    """The backend of these ranks; ids are ranks plus `offset`."""
    tokens = [b""] * (max(ranks.values(), default=-1) + 1)
    for token, rank in ranks.items():
        tokens[rank] = token
    return Ranks(pattern, tuple(tokens), tuple(sorted(named.items(), key=lambda item: item[1])), offset, specials)
