"""Tokenizers of the package `tokenizers`: `tokenizers.Tokenizer`, fast tokenizers of transformers, tokenizer.json.

The bytes of a token are computed from the decoder of the tokenizer. `decode([id])` is not sufficient, because it joins,
strips and replaces text. Two families are exact: byte-level BPE, where each character represents a byte, and
sentencepiece-like decoders, where a mark represents a space and `<0x0A>` a byte. Other decoders are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from guideway.errors import InvalidFileError, UnsupportedTokenizerError
from guideway.jsontext.tokens import is_deeper
from guideway.tokenizers.special_tokens import by_custom, ids_of, named_in
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["MAX_TOKENS", "HuggingFace", "backend_of", "byte_level", "of_file", "read_json", "read_text", "template_of"]

_MAX_JSON_BYTES = 256 << 20
"""Maximum size of a JSON file, in bytes. Real files have at most 40 MB."""

_MAX_DEPTH = 100
"""Maximum nesting depth of a JSON file. Its parsers are recursive; real files have at most 15 levels."""

MAX_TOKENS = 4 << 20
"""Maximum number of tokens. Real vocabularies have at most 300,000."""

MAX_TOKEN_BYTES = 60_000
"""Maximum length of a token, in bytes; a limit of the kernel. Decoder rules can produce tokens of any length."""

_MAX_BYTES = 256 << 20
"""Maximum total length of all tokens, in bytes. Real vocabularies have a few MB."""

Step = Callable[[str], "str | bytes"]


@dataclass(frozen=True)
class HuggingFace:
    """A backend that uses the package `tokenizers`. `serialized` is the content of a tokenizer.json."""

    serialized: str
    specials: SpecialTokens

    @cached_property
    def _tokenizer(self) -> Any:
        import tokenizers

        return tokenizers.Tokenizer.from_str(self.serialized)

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.serialized)
        return document

    @property
    def drops_leading_space(self) -> bool:
        return any(
            (part["type"] == "Strip" and part.get("start") == 1 and part.get("content") == " ")
            or (part["type"] == "Metaspace" and part.get("prepend_scheme", "always") != "never")
            for part in _parts(self._document.get("decoder"))
        )

    def encode(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        if special and ids and ids[-1] in self.specials.eos_ids and len(ids) > 1:
            ids.pop()  # a prompt is continued, so it must not end with the EOS that the tokenizer appends
        return ids

    def spelled(self, token_id: int) -> str:
        text: str | None = self._tokenizer.id_to_token(token_id)
        return text or ""

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        added = {int(token["id"]): token for token in self._document.get("added_tokens") or []}
        special = {token_id for token_id, token in added.items() if token["special"]} | self._unknown_ids()
        model_vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        spelling = {**{i: t["content"] for i, t in added.items()}, **{i: t for t, i in model_vocabulary.items()}}
        to_bytes = _bytes_by_decoder(self._document)
        table = [b""] * (max(spelling, default=-1) + 1)
        silent = special.union(eos_ids)
        in_model, total = set(model_vocabulary.values()), 0
        for token_id, text in spelling.items():
            # An added token that the model does not have is matched verbatim in the text.
            in_text = token_id in in_model and token_id not in silent
            table[token_id] = to_bytes(text) if in_text else text.encode("utf-8")
            total += len(table[token_id])
            if total > _MAX_BYTES:
                raise InvalidFileError(f"the tokens have more than {_MAX_BYTES >> 20} MiB of bytes in total")
        return Vocabulary(table, eos_ids, special)

    def _unknown_ids(self) -> set[int]:
        """Return the ids for text that the tokenizer cannot represent."""
        model = self._document["model"]
        if isinstance(model.get("unk_id"), int):
            return {model["unk_id"]}
        unknown = model.get("unk_token")
        found = self._tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None
        return set() if found is None else {found}

    def __getstate__(self) -> dict[str, object]:
        return {"serialized": self.serialized, "specials": self.specials}


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of a `tokenizers.Tokenizer` or a fast tokenizer of transformers, or None."""
    if _is_fast_tokenizer(inner := getattr(source, "backend_tokenizer", None)):
        attributes: Any = source
        eos = attributes.eos_token_id
        specials = SpecialTokens(
            attributes.bos_token_id, () if eos is None else ids_of(eos), attributes.pad_token_id,
            template_of(getattr(attributes, "chat_template", None)), named_in(getattr(attributes, "special_tokens_map", {})),
        )  # fmt: skip
        return HuggingFace(_private_copy(inner), specials)
    if _is_fast_tokenizer(source):
        serialized = _private_copy(source)
        return HuggingFace(serialized, _by_custom(serialized))
    return None


def _is_fast_tokenizer(source: object) -> bool:
    kind = type(source)
    return any(base.__module__.split(".")[0] == "tokenizers" and base.__name__ == "Tokenizer" for base in kind.__mro__)


def _private_copy(source: Any) -> str:
    """Serialize a copy without truncation and padding."""
    import tokenizers

    copy = tokenizers.Tokenizer.from_str(source.to_str())
    copy.no_truncation()
    copy.no_padding()
    serialized: str = copy.to_str()
    return serialized


def of_file(file: Path) -> HuggingFace:
    """Return the backend of a tokenizer.json. The other files in its folder give the special tokens.

    Raises:
        InvalidFileError: The file cannot be read.
    """
    import tokenizers

    text = read_json(file)
    try:
        # An added token can hide a token of the model with the same text, so both tables are checked.
        largest = max([*_id_by_name(text).values(), *_model_ids(text).values(), 0])
        if largest >= MAX_TOKENS:  # the package allocates an entry for every lower id
            raise InvalidFileError(f"{file} has the token id {largest}; ids must be below {MAX_TOKENS}")
        serialized = _private_copy(tokenizers.Tokenizer.from_str(text))
    except InvalidFileError:
        raise
    except Exception as error:  # the package raises plain Exception
        raise InvalidFileError(f"{file} is not a tokenizer: {error}") from error
    return HuggingFace(serialized, _beside(file.parent, serialized))


def _beside(folder: Path, serialized: str) -> SpecialTokens:
    """Return the special tokens that the other files give; if they give none, guess from names."""
    config = {**_read_object(folder / "special_tokens_map.json"), **_read_object(folder / "tokenizer_config.json")}
    model = {**_read_object(folder / "config.json"), **_read_object(folder / "generation_config.json")}
    custom, named = _by_custom(serialized), _id_by_name(serialized)
    there = set(named.values())

    def role(name: str) -> int | None:
        value = config.get(f"{name}_token")
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str) and text in named:
            return named[text]
        return next((i for i in ids_of(model.get(f"{name}_token_id")) if i in there), None)

    eos = {i for i in ids_of(model.get("eos_token_id")) if i in there}
    if (one := role("eos")) is not None:
        eos.add(one)
    bos, pad = role("bos"), role("pad")
    file = folder / "chat_template.jinja"
    template = read_text(file) if file.is_file() else template_of(config.get("chat_template"))
    return SpecialTokens(
        bos_id=custom.bos_id if bos is None and not config else bos,
        eos_ids=tuple(sorted(eos)) or custom.eos_ids,
        pad_id=custom.pad_id if pad is None else pad,
        chat_template=template,
        named=named_in(config),
    )


def _by_custom(serialized: str) -> SpecialTokens:
    return by_custom(_id_by_name(serialized, special_only=True))


def _id_by_name(serialized: str, *, special_only: bool = False) -> dict[str, int]:
    added = json.loads(serialized).get("added_tokens") or []
    result = {} if special_only else _model_ids(serialized)
    result.update({token["content"]: token["id"] for token in added if token["special"] or not special_only})
    return result


def _model_ids(serialized: str) -> dict[str, int]:
    found = json.loads(serialized)["model"].get("vocab")
    if isinstance(found, list):
        return {piece[0]: index for index, piece in enumerate(found)}
    return dict(found) if isinstance(found, dict) else {}


def template_of(value: object) -> str | None:
    """Return the chat template of a configuration value: a str, or the one named "default" of several."""
    if isinstance(value, list):  # several templates with names
        value = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, Mapping)}
    if isinstance(value, Mapping):
        value = value.get("default")
    return value if isinstance(value, str) else None


def read_text(file: Path) -> str:
    """Return the text of a file. Raises `InvalidFileError` if it cannot be read or is larger than 256 MiB."""
    try:
        if file.stat().st_size > _MAX_JSON_BYTES:
            raise InvalidFileError(f"{file} has more than {_MAX_JSON_BYTES:,} bytes")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFileError(f"cannot read {file}: {error}") from error


def read_json(file: Path) -> str:
    """Return the text of a JSON file. Raises `InvalidFileError` as `read_text`, and if it is nested too deeply."""
    text = read_text(file)
    if is_deeper(text, _MAX_DEPTH):
        raise InvalidFileError(f"{file} is nested deeper than {_MAX_DEPTH} levels")
    return text


def _read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file does not exist."""
    if not file.is_file():
        return {}
    try:
        document = json.loads(read_json(file))
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{file} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidFileError(f"{file} must contain a JSON object, got {type(document).__name__}")
    return document


# -- from the text of a token to its bytes ----------------------------------------------------------------------------


def _bytes_by_decoder(document: Mapping[str, Any]) -> Callable[[str], bytes]:
    """Return a function from the text of a token to its bytes. Raises `UnsupportedTokenizerError` if the decoder is not exact."""
    parts = _parts(document.get("decoder"))
    if not parts:
        raise UnsupportedTokenizerError(
            f"a {document['model'].get('type')} tokenizer without a decoder does not define the bytes of its tokens;"
            " supported are byte-level BPE (decoder ByteLevel) and sentencepiece-like decoders (Metaspace, or Replace,"
            " ByteFallback, Fuse and Strip)"
        )
    if any(part["type"] == "ByteLevel" for part in parts):
        return byte_level
    steps: list[Step] = []
    fused = False
    for part in parts:
        if part["type"] == "Fuse":
            fused = True
        elif part["type"] == "Strip" and fused and part.get("start", 0) <= 1 and part.get("stop", 0) == 0:
            pass  # affects only the first space of a text: see drops_leading_space
        else:
            steps.append(_step(part))

    def to_bytes(token: str) -> bytes:
        text: str | bytes = token
        for step in steps:
            text = step(text) if isinstance(text, str) else text
        return text if isinstance(text, bytes) else text.encode("utf-8")

    return to_bytes


def _parts(decoder: Any) -> list[dict[str, Any]]:
    """Return the decoders of nested sequences, flattened, in order."""
    flat, pending = [], [decoder] if decoder else []
    while pending:
        part = pending.pop()
        if part["type"] == "Sequence":
            pending.extend(reversed(part["decoders"]))
        else:
            flat.append(part)
    return flat


def _step(part: Mapping[str, Any]) -> Step:
    if part["type"] == "Replace" and isinstance(part["pattern"], Mapping) and "String" in part["pattern"]:
        return partial(_replaced, part["pattern"]["String"], part["content"])
    if part["type"] == "Metaspace":
        return lambda token: token.replace(part.get("replacement", "▁"), " ")
    if part["type"] == "ByteFallback":
        return _byte_fallback
    raise UnsupportedTokenizerError(
        f"the decoder {part['type']} is not supported, because token bytes would not be exact; supported are ByteLevel,"
        " Metaspace, and Replace (of a string), ByteFallback, Fuse and Strip (after Fuse)"
    )


def _replaced(old: str, new: str, token: str) -> str:
    count = token.count(old)
    if count and len(token) + count * (len(new) - len(old)) > MAX_TOKEN_BYTES:
        raise InvalidFileError(f"the decoder makes more than {MAX_TOKEN_BYTES:,} bytes of the token {token[:40]!r}")
    return token.replace(old, new)


def _byte_fallback(token: str) -> str | bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            return token
    return token


def _alphabet() -> dict[str, int]:
    """Return GPT-2's byte alphabet: printable bytes map to themselves, other bytes to U+0100 and following."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    return {**{chr(b): b for b in printable}, **{chr(0x100 + n): b for n, b in enumerate(rest)}}


_BYTE_OF = _alphabet()


def byte_level(token: str) -> bytes:
    """Return the bytes of a byte-level token."""
    try:
        return bytes([_BYTE_OF[character] for character in token])
    except KeyError:  # like the package: a token outside the alphabet is plain text
        return token.encode("utf-8")
