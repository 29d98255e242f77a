"""Tokenizers of the Hub: `tokenizers.Tokenizer`, the fast tokenizers of transformers, and files tokenizer.json.

The bytes of a token come from what its decoder would do to it alone (`decode([id])` would not do: it joins, strips
and replaces). Two families are exact: byte-level BPE, where each character stands for a byte, and sentencepiece-like
decoders, where a mark stands for a space and `<0x0A>` for a byte. Anything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from guideway.errors import InvalidFileError, UnsupportedTokenizerError
from guideway.tokenizers.special_tokens import by_custom, ids_of
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["MAX_TOKENS", "HuggingFace", "backend_of", "byte_level", "of_file", "read_text", "template_of"]

_MAX_JSON_BYTES = 256 << 20
"""The largest file that is read as JSON; real ones have at most 40 MB."""

MAX_TOKENS = 4 << 20
"""The largest vocabulary that is read; real ones have at most 300 thousand tokens."""

MAX_TOKEN_BYTES = 60_000
"""What the kernel takes; real tokens have at most some hundred. A few rules of a decoder can ask for any number."""

_MAX_BYTES = 256 << 20
"""Of all tokens together; real vocabularies have at most some MB."""

Step = Callable[[str], "str | bytes"]


@dataclass(frozen=True)
class HuggingFace:
    """A backend over the library `tokenizers`; `serialized` is its tokenizer.json, written by the library itself."""

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
            ids.pop()  # a prompt is to be continued: an EOS that the tokenizer puts behind it would end it
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
            # A token added to the side of the model is matched in the text as it is spelled.
            in_text = token_id in in_model and token_id not in silent
            table[token_id] = to_bytes(text) if in_text else text.encode("utf-8")
            total += len(table[token_id])
            if total > _MAX_BYTES:
                raise InvalidFileError(f"the tokens up to {token_id} have more than {_MAX_BYTES >> 20} MiB of bytes")
        return Vocabulary(table, eos_ids, special)

    def _unknown_ids(self) -> set[int]:
        """Ids that stand for text the tokenizer could not spell."""
        model = self._document["model"]
        if isinstance(model.get("unk_id"), int):
            return {model["unk_id"]}
        unknown = model.get("unk_token")
        found = self._tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None
        return set() if found is None else {found}

    def __getstate__(self) -> dict[str, object]:
        return {"serialized": self.serialized, "specials": self.specials}


def backend_of(source: object) -> TokenizerBackend | None:
    """The backend of a `tokenizers.Tokenizer` or of a fast tokenizer of transformers; None for anything else."""
    if _is_fast_tokenizer(inner := getattr(source, "backend_tokenizer", None)):
        attributes: Any = source
        eos = attributes.eos_token_id
        specials = SpecialTokens(
            attributes.bos_token_id, () if eos is None else ids_of(eos), attributes.pad_token_id,
            template_of(getattr(attributes, "chat_template", None)),
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
    """Serialize, through a copy without the truncation and padding that its owner may have switched on."""
    import tokenizers

    copy = tokenizers.Tokenizer.from_str(source.to_str())
    copy.no_truncation()
    copy.no_padding()
    serialized: str = copy.to_str()
    return serialized


def of_file(file: Path) -> HuggingFace:
    """The backend of a tokenizer.json, with the roles that the files beside it give.

    Raises `InvalidFileError` for a file that cannot be read.
    """
    import tokenizers

    text = read_text(file)
    try:
        # twice, since an added token may hide one of the model's by its name
        largest = max([*_id_by_name(text).values(), *_model_ids(text).values(), 0])
        if largest >= MAX_TOKENS:  # the library writes an entry for every id below it, used or not
            raise InvalidFileError(f"{file} has the token id {largest}; at most {MAX_TOKENS} tokens are supported")
        serialized = _private_copy(tokenizers.Tokenizer.from_str(text))
    except InvalidFileError:
        raise
    except Exception as error:  # the library raises bare Exception on a malformed file
        raise InvalidFileError(f"{file} is not a tokenizer: {error}") from error
    return HuggingFace(serialized, _beside(file.parent, serialized))


def _beside(folder: Path, serialized: str) -> SpecialTokens:
    """The roles as the files beside tokenizer.json give them; by custom where none does."""
    config = {**_read_json(folder / "special_tokens_map.json"), **_read_json(folder / "tokenizer_config.json")}
    model = {**_read_json(folder / "config.json"), **_read_json(folder / "generation_config.json")}
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
    if isinstance(value, list):  # several, by name
        value = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, Mapping)}
    if isinstance(value, Mapping):
        value = value.get("default")
    return value if isinstance(value, str) else None


def read_text(file: Path) -> str:
    try:
        if file.stat().st_size > _MAX_JSON_BYTES:
            raise InvalidFileError(f"{file} has more than {_MAX_JSON_BYTES} bytes")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFileError(f"cannot read {file}: {error}") from error


def _read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is no such file."""
    if not file.is_file():
        return {}
    try:
        document = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{file} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidFileError(f"{file} must hold a JSON object")
    return document


# -- from the spelling of one token to its bytes ----------------------------------------------------------------------


def _bytes_by_decoder(document: Mapping[str, Any]) -> Callable[[str], bytes]:
    """What the decoder makes of one token. Raises `UnsupportedTokenizerError` for decoders whose bytes are not exact."""
    parts = _parts(document.get("decoder"))
    if not parts:
        raise UnsupportedTokenizerError(
            f"a {document['model'].get('type')} tokenizer without a decoder does not say which bytes its tokens stand"
            " for; known are byte-level BPE (decoder ByteLevel) and sentencepiece-like ones (Metaspace, or Replace,"
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
            pass  # the text's first space only: see drops_leading_space
        else:
            steps.append(_step(part))

    def to_bytes(token: str) -> bytes:
        text: str | bytes = token
        for step in steps:
            text = step(text) if isinstance(text, str) else text
        return text if isinstance(text, bytes) else text.encode("utf-8")

    return to_bytes


def _parts(decoder: Any) -> list[dict[str, Any]]:
    """The decoders of a sequence, in order; sequences inside sequences are opened."""
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
        f"the exact bytes of tokens under the decoder {part['type']} are not known; known are ByteLevel, Metaspace,"
        " and Replace (of a string), ByteFallback, Fuse and Strip (after Fuse)"
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
    """GPT-2's alphabet: printable bytes stand for themselves, the rest for the characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    return {**{chr(b): b for b in printable}, **{chr(0x100 + n): b for n, b in enumerate(rest)}}


_BYTE_OF = _alphabet()


def byte_level(token: str) -> bytes:
    try:
        return bytes([_BYTE_OF[character] for character in token])
    except KeyError:  # the library, too, takes a token outside the alphabet as it is spelled
        return token.encode("utf-8")
