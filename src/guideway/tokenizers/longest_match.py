"""A tokenizer for a list of token bytes: greedy longest match. For tests and models without weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from guideway.errors import InvalidTokenError
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["LongestMatch", "backend_of", "watch"]


@dataclass(frozen=True)
class LongestMatch:
    """Greedy longest match over the token bytes. Of several ids with equal bytes, the lowest is used."""

    table: Vocabulary

    @property
    def specials(self) -> SpecialTokens:
        return SpecialTokens(eos_ids=self.table.eos_ids)

    @property
    def drops_leading_space(self) -> bool:
        return False

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        unusable = self.table.unusable()
        return {t: i for i, t in reversed(list(enumerate(self.table.token_bytes))) if i not in unusable}

    @cached_property
    def _longest(self) -> dict[bytes, int]:
        """For each pair of bytes with which tokens begin, the length of the longest such token.

        A token of one byte is itself a key, with the length 1.
        """
        found: dict[bytes, int] = {}
        for token in self._ids:
            found[token[:2]] = max(found.get(token[:2], 0), len(token))
        return found

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Encode a text; `special` has no effect. Raises `InvalidTokenError` if no token matches at a position."""
        data, at, result = text.encode("utf-8"), 0, []
        longest = self._longest
        while at < len(data):
            for end in range(min(len(data), at + longest.get(data[at : at + 2], 1)), at, -1):
                if (token_id := self._ids.get(data[at:end])) is not None:
                    break
            else:
                raise InvalidTokenError(
                    f"no token of the vocabulary matches at byte {at} ({data[at : at + 1]!r}) of the text"
                )
            result.append(token_id)
            at = end
        return result

    def spelled(self, token_id: int) -> str:
        return self.table.token_bytes[token_id].decode("utf-8", "replace")

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        if tuple(eos_ids) == self.table.eos_ids:
            return self.table
        return Vocabulary(self.table.token_bytes, eos_ids, self.table.special_ids)

    def __getstate__(self) -> dict[str, object]:
        return {"table": self.table}


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of a `Vocabulary` or of a list with the bytes of each id; None for other objects."""
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], bytes):
        source = Vocabulary(source)
    return LongestMatch(source) if isinstance(source, Vocabulary) else None


def watch(source: object) -> None:
    """Return None, so that these objects are not cached: reading a list of bytes is faster than comparing it."""
