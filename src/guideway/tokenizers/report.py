"""A report on the content of a vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["VocabularyReport", "report"]


@dataclass(frozen=True)
class VocabularyReport:
    """A report on the ids of a vocabulary. `str()` returns a readable summary.

    Usable ids are those that can be part of a text: they have bytes and are neither EOS nor special ids.

    Attributes:
        size: Number of ids.
        eos: Ids that end a text.
        special: Special ids that are not in `eos`.
        empty: Ids without bytes that are neither in `eos` nor in `special`.
        duplicates: Groups of usable ids with equal bytes. A constraint on the text allows all ids of a group or none.
        incomplete: Usable ids whose bytes are not complete UTF-8 characters.
        long: Usable ids of more than 32 bytes.
        missing_bytes: Bytes for which there is no token of one byte. Texts with these bytes may be impossible to write.
    """

    size: int
    eos: tuple[int, ...]
    special: tuple[int, ...]
    empty: tuple[int, ...]
    duplicates: tuple[tuple[int, ...], ...]
    incomplete: tuple[int, ...]
    long: tuple[int, ...]
    missing_bytes: bytes

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        unusable = len(set(self.special) | set(self.eos) | set(self.empty))
        yield f"{self.size} ids, {self.size - unusable} of them usable inside a text"
        for name, ids in (("end of text", self.eos), ("special", self.special), ("without bytes", self.empty)):
            yield f"{name}: {_some(ids)}"
        yield f"with the bytes of another id: {_some([ids[1] for ids in self.duplicates])}"
        yield f"incomplete characters: {_some(self.incomplete)}"
        yield f"over 32 bytes: {_some(self.long)}"
        yield f"bytes that no token is: {self.missing_bytes.hex(' ') or 'none'}"


def report(vocabulary: Vocabulary) -> VocabularyReport:
    """Return the report of a vocabulary."""
    unusable = vocabulary.unusable()
    by_bytes: dict[bytes, list[int]] = {}
    incomplete, long = [], []
    for token_id, token in enumerate(vocabulary.token_bytes):
        if token_id in unusable:
            continue
        by_bytes.setdefault(token, []).append(token_id)
        if len(token) > 32:
            long.append(token_id)
        if not _is_text(token):
            incomplete.append(token_id)
    return VocabularyReport(
        size=len(vocabulary),
        eos=vocabulary.eos_ids,
        special=tuple(i for i, why in unusable.items() if why == "special" and i not in vocabulary.eos_ids),
        empty=tuple(i for i, why in unusable.items() if why == "empty"),
        duplicates=tuple(tuple(ids) for ids in by_bytes.values() if len(ids) > 1),
        incomplete=tuple(incomplete),
        long=tuple(long),
        missing_bytes=bytes(byte for byte in range(256) if bytes([byte]) not in by_bytes),
    )


def _is_text(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _some(ids: tuple[int, ...] | list[int]) -> str:
    if not ids:
        return "none"
    shown = ", ".join(map(str, ids[:8]))
    return f"{len(ids)} ({shown}{', …' if len(ids) > 8 else ''})"
