"""What a vocabulary holds: the ids that cannot be used and why, those with equal bytes, and what no token can begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["VocabularyReport", "report"]


@dataclass(frozen=True)
class VocabularyReport:
    """The findings; `str()` writes them as a few lines.

    `special` holds the ids that end a text or never appear in one, `empty` those without bytes; neither is ever in the
    middle of a text. `duplicates` holds groups of usable ids with equal bytes (all are legal where one is).
    `incomplete` are ids whose bytes are no whole characters, `long` those of more than 32 bytes. `missing_bytes` are
    the bytes that no token is: texts with them can be out of reach.
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
    """Look at every token once."""
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
