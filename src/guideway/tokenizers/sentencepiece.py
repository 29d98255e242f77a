"""Sentencepiece models: `SentencePieceProcessor` and `*.model` files.

The package reports the type of each id (control, unknown, unused, byte, or a piece with U+2581 for a space), so the
bytes of all tokens are exact. `encode` normalizes the text first, so `decode(encode(text))` is the normalized text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from guideway.errors import InvalidFileError, UnsupportedTokenizerError
from guideway.tokenizers.kept import Watch
from guideway.tokenizers.special_tokens import by_custom
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend, library, split_at
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["Added", "SentencePiece", "backend_of", "of_model", "of_path", "watch"]

_SPACE = "▁"

_SAMPLED = 8
"""Number of pieces that are compared to detect that a processor has loaded another model."""


@dataclass(frozen=True)
class Added:
    """A token that a tokenizer of transformers adds to the model.

    Its text is matched literally unless the token is special.
    """

    id: int
    text: str
    special: bool


@dataclass(frozen=True)
class SentencePiece:
    """A backend that uses the package `sentencepiece`. `model` is the serialized model."""

    model: bytes
    specials: SpecialTokens
    added: tuple[Added, ...] = ()

    @cached_property
    def _processor(self) -> Any:
        return _load(self.model)

    @cached_property
    def drops_leading_space(self) -> bool:
        return _leading(self._processor)

    def encode(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = []
        for number, part in enumerate(split_at(text, self._added_ids)):
            ids += [self._added_ids[part]] if number % 2 else self._pieces(part, first=number == 0)
        return [self.specials.bos_id, *ids] if special and self.specials.bos_id is not None else ids

    def _pieces(self, text: str, *, first: bool) -> list[int]:
        """Return the ids of a part of a text between added tokens.

        Only the first part of a text (`first`) gets the space prefix of the model.
        """
        ids: list[int] = self._processor.encode(text)
        if first or not text:
            return ids
        guard = self._processor.encode("\0")  # "\0" gets the space prefix, and is never merged with later text
        guarded: list[int] = self._processor.encode("\0" + text)
        return guarded[len(guard) :] if guarded[: len(guard)] == guard else ids

    @cached_property
    def _added_ids(self) -> dict[str, int]:
        return {token.text: token.id for token in self.added if not token.special and token.text}

    def spelled(self, token_id: int) -> str:
        for token in self.added:
            if token.id == token_id:
                return token.text
        piece: str = self._processor.id_to_piece(token_id)
        return piece

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        model = self._processor
        ids = list(range(model.get_piece_size()))
        table: list[bytes] = []
        special: set[int] = set()
        kinds = (model.is_control(ids), model.is_unknown(ids), model.is_unused(ids), model.is_byte(ids))
        for token_id, (piece, control, unknown, unused, byte) in enumerate(
            zip(model.id_to_piece(ids), *kinds, strict=True)
        ):
            if control or unknown:
                special.add(token_id)
            if control or unknown:
                data = piece.encode("utf-8")
            else:
                data = bytes([int(piece[3:5], 16)]) if byte else piece.replace(_SPACE, " ").encode("utf-8")
            table.append(b"" if unused else data)
        for token in self.added:
            table.extend([b""] * (token.id + 1 - len(table)))
            if token.special:
                special.add(token.id)
            table[token.id] = token.text.encode("utf-8")
        return Vocabulary(table, eos_ids, special)

    def __getstate__(self) -> dict[str, object]:
        return {"model": self.model, "specials": self.specials, "added": self.added}


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of a `SentencePieceProcessor`; None for other objects."""
    if not _is_processor(source):
        return None
    processor: Any = source
    return of_model(bytes(processor.serialized_model_proto()))


def _is_processor(source: object) -> bool:
    return any(
        base.__name__ == "SentencePieceProcessor" and base.__module__.split(".")[0] == "sentencepiece"
        for base in type(source).__mro__
    )


def watch(source: object) -> Watch | None:
    """Return a function that computes the state (see `kept.py`) of a `SentencePieceProcessor`; None for other objects.

    The state contains the size, the special ids and `_SAMPLED` pieces. Loading another model changes most of them.
    """
    if not _is_processor(source):
        return None
    processor: Any = source
    size = processor.get_piece_size()
    return partial(_state, [size * number // _SAMPLED for number in range(_SAMPLED)] if size else [])


def _state(sampled: list[int], processor: Any) -> object:
    size = processor.get_piece_size()
    if sampled and sampled[-1] >= size:
        return size
    ends = processor.bos_id(), processor.eos_id(), processor.pad_id(), processor.unk_id()
    return size, ends, processor.id_to_piece(sampled), processor.is_unused(sampled)


def of_path(path: Path) -> TokenizerBackend:
    """Return the backend of a model file.

    Raises the errors of `of_model`, and `InvalidFileError` for a file that cannot be read.
    """
    try:
        model = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read", path, error) from error
    try:
        return of_model(model)
    except InvalidFileError as error:
        raise InvalidFileError(f"{path}: {error}") from error


def of_model(model: bytes, added: Sequence[Added] = ()) -> SentencePiece:
    """Return the backend of a serialized model and of tokens that are added to it.

    Raises:
        InvalidFileError: The data is not a sentencepiece model.
        UnsupportedTokenizerError: The model writes a space at the end of a piece instead of its beginning.
    """
    processor = _load(model)
    if processor.encode("a", out_type=str)[-1].endswith(_SPACE):
        raise UnsupportedTokenizerError(
            "sentencepiece models with space suffixes (treat_whitespace_as_suffix) are not supported"
        )
    ids = list(range(processor.get_piece_size()))
    named = {processor.id_to_piece(i): i for i, control in zip(ids, processor.is_control(ids), strict=True) if control}
    custom = by_custom({**named, **{token.text: token.id for token in added if token.special}})

    def role(found: int, other: int | None) -> int | None:
        return found if found >= 0 else other

    eos = processor.eos_id()
    specials = SpecialTokens(
        bos_id=role(processor.bos_id(), custom.bos_id),
        eos_ids=tuple(sorted({eos, *custom.eos_ids})) if eos >= 0 else custom.eos_ids,
        pad_id=role(processor.pad_id(), custom.pad_id),
    )
    return SentencePiece(model, specials, tuple(sorted(added, key=lambda token: token.id)))


def _load(model: bytes) -> Any:
    sentencepiece = library("sentencepiece", "a sentencepiece model")
    processor = sentencepiece.SentencePieceProcessor()
    try:
        whole = bool(model) and processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise InvalidFileError(f"the data is not a sentencepiece model: {error}") from error
    if not whole:
        raise InvalidFileError("the data is not a sentencepiece model")
    return processor


def _leading(processor: Any) -> bool:
    """Return whether `decode` must remove the first space of a text.

    It must if the model adds a space before a text, or does not keep two spaces at its start.
    """
    return "".join(processor.encode("a", out_type=str)).startswith(_SPACE) or not "".join(
        processor.encode("  a", out_type=str)
    ).startswith(_SPACE * 2)
