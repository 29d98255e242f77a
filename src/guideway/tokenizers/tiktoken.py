"""Byte-level BPE of tiktoken: `tiktoken.Encoding`. `mistral.py` uses it for Tekken.

A rank table maps token bytes to ranks, so the bytes are exact. A file that has only ranks (`tokenizer.model` of
Llama 3) is refused, because it has neither the split pattern nor the special tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from guideway.errors import InvalidTokenError, UnsupportedTokenizerError
from guideway.tokenizers.kept import Same, Watch
from guideway.tokenizers.special_tokens import by_custom
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend, library, package_errors
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["Ranks", "backend_of", "of_ranks", "watch"]


@dataclass(frozen=True)
class Ranks:
    """A backend that uses the package `tiktoken`.

    `tokens[r]` has the id `r + offset`; `b""` is a rank without a token.
    """

    pattern: str
    tokens: tuple[bytes, ...]
    named: tuple[tuple[str, int], ...]  # special tokens: name, id
    offset: int
    specials: SpecialTokens

    drops_leading_space = False

    @cached_property
    def _encoding(self) -> Any:
        tiktoken = library("tiktoken", "a tokenizer of ranks")
        ranks = {token: rank for rank, token in enumerate(self.tokens) if token}
        return tiktoken.Encoding("guideway", pat_str=self.pattern, mergeable_ranks=ranks, special_tokens={})

    def encode(self, text: str, *, special: bool) -> list[int]:
        with package_errors(InvalidTokenError, "the text cannot be encoded"):
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
    """Return the backend of a `tiktoken.Encoding`; None for other objects.

    Raises:
        UnsupportedTokenizerError: The encoding lacks an attribute, because the version of tiktoken is not supported.
    """
    if not _is_encoding(source):
        return None
    encoding: Any = source
    try:
        pattern, ranks, named = encoding._pat_str, encoding._mergeable_ranks, encoding._special_tokens
    except AttributeError as error:
        raise UnsupportedTokenizerError(
            f"this version of tiktoken is not supported: Encoding lacks an expected attribute ({error})"
        ) from None
    return of_ranks(pattern, ranks, named, by_custom(named))


def _is_encoding(source: object) -> bool:
    return any(b.__name__ == "Encoding" and b.__module__.split(".")[0] == "tiktoken" for b in type(source).__mro__)


def watch(source: object) -> Watch | None:
    """Return a function that computes the state (see `kept.py`) of a `tiktoken.Encoding`; None for other objects."""
    return _state if _is_encoding(source) else None


def _state(encoding: Any) -> object:
    ranks = encoding._mergeable_ranks
    return encoding._pat_str, Same(ranks), len(ranks), dict(encoding._special_tokens)


def of_ranks(
    pattern: str, ranks: Mapping[bytes, int], named: Mapping[str, int], specials: SpecialTokens, offset: int = 0
) -> Ranks:
    """Return the backend of a table of ranks.

    Args:
        pattern: The regular expression that splits the text.
        ranks: The rank of each token. The id of a token is its rank plus `offset`.
        named: The ids of special tokens by name.
        specials: The special ids and the chat template.
        offset: The number of ids before those of ranks.
    """
    tokens = [b""] * (max(ranks.values(), default=-1) + 1)
    for token, rank in ranks.items():
        tokens[rank] = token
    return Ranks(pattern, tuple(tokens), tuple(sorted(named.items(), key=lambda item: item[1])), offset, specials)
