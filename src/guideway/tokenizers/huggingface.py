"""Tokenizers of the package `tokenizers`: `tokenizers.Tokenizer`, fast tokenizers of transformers, tokenizer.json.

The bytes of a token are computed by the rules of the tokenizer's decoder. `decode([id])` is not sufficient, because it
joins, strips and replaces text. For two kinds of decoders the bytes are exact: byte-level BPE, where each character
represents a byte, and sentencepiece-like decoders, where U+2581 represents a space and `<0x0A>` a byte. Others are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from guideway.errors import InvalidFileError, InvalidTokenError, UnsupportedTokenizerError
from guideway.jsontext.tokens import is_deeper
from guideway.tokenizers.kept import Same, Watch
from guideway.tokenizers.special_tokens import by_custom, ids_of, named_in
from guideway.tokenizers.tokenizer import SpecialTokens, TokenizerBackend, package_errors
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = [
    "MAX_TOKENS",
    "HuggingFace",
    "backend_of",
    "byte_level",
    "of_file",
    "read_json",
    "read_text",
    "template_of",
    "templates_of",
    "watch",
    "wrapper_state",
]

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

Step = tuple[str, str] | None
"""One step of a decoder: a text to replace and its replacement; None: byte fallback (`<0x0A>` becomes a byte)."""


class Private:
    """A copy of a `tokenizers.Tokenizer` without truncation and padding. Copies are compared and pickled by content.

    The copy shares the model object of the original, because copying 131,072 tokens takes a second. It does not change
    if the model, the other components or the added tokens of the original are replaced; it changes if the original is
    trained.
    """

    def __init__(self, rust: Any, serialized: str | None = None) -> None:
        self.rust = rust
        if serialized is not None:
            self.__dict__["serialized"] = serialized

    @classmethod
    def of_text(cls, serialized: str) -> Private:
        """Return the tokenizer that the text of a tokenizer.json describes."""
        import tokenizers

        made = tokenizers.Tokenizer.from_str(serialized)
        made.no_truncation()
        made.no_padding()
        return cls(made)

    @classmethod
    def copy_of(cls, source: Any) -> Private:
        """Return a copy of a `tokenizers.Tokenizer`."""
        import tokenizers

        document: dict[str, Any] = {"added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}
        for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            part = getattr(source, name)
            document[name] = None if part is None else json.loads(part.__getstate__())
        made = tokenizers.Tokenizer.from_str(json.dumps(document))
        made.model = source.model
        added = source.get_added_tokens_decoder()
        made.add_tokens([added[token_id] for token_id in sorted(added)])
        if made.get_added_tokens_decoder() == added:
            return cls(made)
        return cls.of_text(source.to_str())  # the ids of added tokens are not consecutive

    @cached_property
    def serialized(self) -> str:
        """The tokenizer as the text of a tokenizer.json."""
        text: str = self.rust.to_str()
        return text

    @cached_property
    def decoder(self) -> list[dict[str, Any]]:
        """The decoders in the notation of tokenizer.json, in order. Sequences are replaced by their members."""
        part = self.rust.decoder
        return _parts(None if part is None else json.loads(part.__getstate__()))

    @cached_property
    def added(self) -> dict[int, tuple[str, bool]]:
        """For the id of each added token: its text, and whether it is special."""
        found = self.rust.get_added_tokens_decoder()
        return {token_id: (token.content, token.special) for token_id, token in found.items()}

    def texts(self) -> dict[int, str]:
        """Return the text of each id of the model, without the added tokens."""
        size = self.rust.get_vocab_size(with_added_tokens=False)
        found = dict(enumerate(map(self.rust.model.id_to_token, range(size))))
        if None in found.values():  # the ids are not consecutive
            return {token_id: text for text, token_id in self.rust.get_vocab(with_added_tokens=False).items()}
        return found

    @cached_property
    def table(self) -> tuple[dict[int, str], dict[int, bytes]]:
        """The text of each id of the model, and the bytes of each id. Added tokens are not included."""
        texts = self.texts()
        return texts, dict(zip(texts, _bytes_by_decoder(self)(list(texts.values())), strict=True))

    @cached_property
    def unknown_ids(self) -> frozenset[int]:
        """The id of the unknown token (for text that the tokenizer cannot represent); empty if there is none."""
        model = self.rust.model
        if type(model).__name__ == "Unigram":  # its class has no attribute for the unknown token
            unknown_id = json.loads(self.serialized)["model"].get("unk_id")
            return frozenset([unknown_id] if isinstance(unknown_id, int) else ())
        unknown = getattr(model, "unk_token", None)
        found = self.rust.token_to_id(unknown) if isinstance(unknown, str) else None
        return frozenset([] if found is None else [found])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Private) and (self is other or self.serialized == other.serialized)

    def __hash__(self) -> int:
        return hash(self.serialized)

    def __reduce__(self) -> tuple[Callable[[str], Private], tuple[str]]:
        return Private.of_text, (self.serialized,)


@dataclass(frozen=True)
class HuggingFace:
    """A backend that uses the package `tokenizers`."""

    tokenizer: Private
    specials: SpecialTokens

    @property
    def drops_leading_space(self) -> bool:
        return any(
            (part["type"] == "Strip" and part.get("start") == 1 and part.get("content") == " ")
            or (part["type"] == "Metaspace" and part.get("prepend_scheme", "always") != "never")
            for part in self.tokenizer.decoder
        )

    def encode(self, text: str, *, special: bool) -> list[int]:
        with package_errors(InvalidTokenError, "the text cannot be encoded"):
            ids: list[int] = self.tokenizer.rust.encode(text, add_special_tokens=special).ids
        if special and ids and ids[-1] in self.specials.eos_ids and len(ids) > 1:
            ids.pop()  # a prompt is continued, so it must not end with the EOS that the tokenizer appends
        return ids

    def spelled(self, token_id: int) -> str:
        text: str | None = self.tokenizer.rust.id_to_token(token_id)
        return text or ""

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        added = self.tokenizer.added
        special = {token_id for token_id, (_, is_special) in added.items() if is_special} | self.tokenizer.unknown_ids
        texts, known = self.tokenizer.table
        table = [b""] * (max([*added, *texts], default=-1) + 1)
        for token_id, data in known.items():
            table[token_id] = data
        for token_id, (text, _) in added.items():
            if token_id not in texts:  # added tokens are matched literally in the text
                table[token_id] = text.encode("utf-8")
        for token_id in special.union(eos_ids):
            if token_id in texts:
                table[token_id] = texts[token_id].encode("utf-8")
        if sum(map(len, table)) > _MAX_BYTES:
            raise InvalidFileError(f"the tokens have more than {_MAX_BYTES >> 20} MiB of bytes in total")
        return Vocabulary(table, eos_ids, special)


def backend_of(source: object) -> TokenizerBackend | None:
    """Return the backend of a `tokenizers.Tokenizer` or of a fast tokenizer of transformers; None for other objects."""
    if _is_fast_tokenizer(inner := getattr(source, "backend_tokenizer", None)):
        attributes: Any = source
        eos = attributes.eos_token_id
        specials = SpecialTokens(
            attributes.bos_token_id, () if eos is None else ids_of(eos), attributes.pad_token_id,
            template_of(getattr(attributes, "chat_template", None)), named_in(getattr(attributes, "special_tokens_map", {})),
            templates_of(getattr(attributes, "chat_template", None)),
        )  # fmt: skip
        return HuggingFace(Private.copy_of(inner), specials)
    if _is_fast_tokenizer(source):
        private = Private.copy_of(source)
        return HuggingFace(private, _by_custom(private))
    return None


def _is_fast_tokenizer(source: object) -> bool:
    kind = type(source)
    return any(base.__module__.split(".")[0] == "tokenizers" and base.__name__ == "Tokenizer" for base in kind.__mro__)


# -- changes ----------------------------------------------------------------------------------------------------------

_SAMPLED = 16
"""Number of tokens of the model whose texts are compared to detect that the model was replaced."""

_LISTED = 16
"""Up to this number of added tokens, each call of `_Checks` compares all of them. Reading one takes about 0.3 us."""

_PERIOD = 64
"""If there are more than `_LISTED` added tokens, only every `_PERIOD`-th call of `_Checks` compares all of them.

The other calls compare how many there are and, with a byte-level decoder, which of them are special.
"""

_MAX_STATE = 4096
"""Maximum size, in bytes, of a normalizer whose content is compared. Some normalizers have a table of 300 kB."""


def watch(source: object) -> Watch | None:
    """Return a function that computes the state of a tokenizer (see `kept.Watch`); None for other objects.

    The state contains the numbers of tokens, the added tokens, the decoder and the other components, the texts of some
    tokens, and the special tokens of a tokenizer of transformers. It does not contain truncation and padding, because
    transformers changes them in each call.
    """
    inner: Any = getattr(source, "backend_tokenizer", None)
    rust: Any = inner if (is_wrapped := _is_fast_tokenizer(inner)) else source
    return _Checks(rust, is_wrapped) if _is_fast_tokenizer(rust) else None


class _Checks:
    """A function that computes the state of a tokenizer. It holds no reference to the tokenizer.

    Args:
        rust: The `tokenizers.Tokenizer`.
        is_wrapped: Whether the function is called with a fast tokenizer of transformers that contains it.
    """

    def __init__(self, rust: Any, is_wrapped: bool) -> None:
        size = rust.get_vocab_size(with_added_tokens=False)
        self._sampled = [size * number // _SAMPLED for number in range(_SAMPLED)] if size else []
        self._is_wrapped = is_wrapped
        self._added = rust.get_added_tokens_decoder()
        self._added_ids = list(self._added)
        self._normalizer = rust.normalizer is None or len(rust.normalizer.__getstate__()) <= _MAX_STATE
        self._checks = self._changes = 0

    def __call__(self, source: Any) -> object:
        rust = source.backend_tokenizer if self._is_wrapped else source
        outer = (Same(rust), wrapper_state(source)) if self._is_wrapped else None
        self._checks += 1
        is_short = len(self._added) <= _LISTED
        if is_short or self._checks % _PERIOD == 0:
            added = rust.get_added_tokens_decoder()
            self._changes += added != self._added
            self._added = added
        decoder, normalizer = rust.decoder, rust.normalizer
        # Other decoders are not run here: their replacements can produce texts of any length.
        is_byte_level = type(decoder).__name__ == "ByteLevel"
        in_text = rust.decode(self._added_ids, skip_special_tokens=True) if is_byte_level and not is_short else ""
        sizes = rust.get_vocab_size(with_added_tokens=True), rust.get_vocab_size(with_added_tokens=False)
        parts = [decoder, rust.pre_tokenizer, rust.post_processor, normalizer if self._normalizer else None]
        states = [None if part is None else part.__getstate__() for part in parts]
        model = rust.model
        texts = list(map(model.id_to_token, self._sampled)), getattr(model, "unk_token", None)
        return outer, sizes, self._changes, in_text, texts, states, type(normalizer)


def wrapper_state(wrapper: Any) -> object:
    """Return the special tokens and the chat template of a tokenizer of transformers, as a value to compare."""
    own = wrapper.__dict__
    if "_special_tokens_map" not in own:
        names = ("special_tokens_map", "chat_template", "bos_token_id", "eos_token_id", "pad_token_id")
        return [repr(getattr(wrapper, name, None)) for name in names]
    template = own.get("chat_template")
    shown = dict(template) if isinstance(template, Mapping) else template
    return dict(own["_special_tokens_map"]), list(own.get("_extra_special_tokens") or ()), shown


# -- files ------------------------------------------------------------------------------------------------------------


def of_file(file: Path) -> HuggingFace:
    """Return the backend of a tokenizer.json. The special tokens are read from other files in its folder.

    Raises:
        InvalidFileError: One of the files cannot be read, or the file is not a tokenizer.
    """
    text = read_json(file)
    with package_errors(InvalidFileError, f"{file} is not a tokenizer"):
        largest = _largest_id(json.loads(text))
        if largest >= MAX_TOKENS:  # the package allocates memory for every lower id
            raise InvalidFileError(f"{file} has the token id {largest}; ids must be below {MAX_TOKENS}")
        private = Private.of_text(text)
    return HuggingFace(private, _beside(file.parent, private))


def _beside(folder: Path, private: Private) -> SpecialTokens:
    """Return the special tokens that the other files in the folder define.

    If they define no EOS or padding token, it is guessed from the names of tokens. BOS is guessed only if there are no
    files with the configuration of the tokenizer.
    """
    config = {**_read_object(folder / "special_tokens_map.json"), **_read_object(folder / "tokenizer_config.json")}
    model = {**_read_object(folder / "config.json"), **_read_object(folder / "generation_config.json")}
    custom = _by_custom(private)
    named = {text: token_id for token_id, text in private.texts().items()}
    named.update((text, token_id) for token_id, (text, _) in private.added.items())
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
    more = {one.stem: read_text(one) for one in sorted((folder / "additional_chat_templates").glob("*.jinja"))}
    return SpecialTokens(
        bos_id=custom.bos_id if bos is None and not config else bos,
        eos_ids=tuple(sorted(eos)) or custom.eos_ids,
        pad_id=custom.pad_id if pad is None else pad,
        chat_template=template,
        named=named_in(config),
        named_templates=tuple({**dict(templates_of(config.get("chat_template"))), **more}.items()),
    )


def _by_custom(private: Private) -> SpecialTokens:
    return by_custom({text: token_id for token_id, (text, is_special) in private.added.items() if is_special})


def _largest_id(document: Mapping[str, Any]) -> int:
    """Return the largest id in a tokenizer.json.

    Added tokens and the tokens of the model are read, because an added token can have the text of a token of the model.
    """
    added = [token["id"] for token in document.get("added_tokens") or []]
    found = document["model"].get("vocab")
    in_model = [len(found) - 1] if isinstance(found, list) else found.values() if isinstance(found, dict) else []
    largest: int = max([*added, *in_model, 0])
    return largest


def template_of(value: object) -> str | None:
    """Return the chat template in a `chat_template` value of a configuration.

    It is the value itself if it is a str, else the template named "default"; None if there is none.
    """
    return value if isinstance(value, str) else dict(templates_of(value)).get("default")


def templates_of(value: object) -> tuple[tuple[str, str], ...]:
    """Return (name, template) pairs, sorted by name, from a `chat_template` value of a configuration.

    The value is a mapping, or a list of objects with "name" and "template". Other values give an empty tuple.
    """
    if isinstance(value, list):
        value = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, Mapping)}
    if not isinstance(value, Mapping):
        return ()
    return tuple(sorted((k, v) for k, v in value.items() if isinstance(k, str) and isinstance(v, str)))


def read_text(file: Path) -> str:
    """Return the text of a file. Raises `InvalidFileError` if it cannot be read or is larger than 256 MiB."""
    try:
        text = None if file.stat().st_size > _MAX_JSON_BYTES else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read", file, error) from error
    if text is None:
        raise InvalidFileError(f"{file} has more than {_MAX_JSON_BYTES:,} bytes")
    return text


def read_json(file: Path) -> str:
    """Return the text of a JSON file, which is not parsed.

    Raises `InvalidFileError` also if it is nested too deeply.
    """
    text = read_text(file)
    if is_deeper(text, _MAX_DEPTH):
        raise InvalidFileError(f"{file} is nested deeper than {_MAX_DEPTH} levels")
    return text


def _read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; {} if the file does not exist. Raises `InvalidFileError`."""
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


def _bytes_by_decoder(private: Private) -> Callable[[list[str]], list[bytes]]:
    """Return a function that computes the bytes of tokens from their texts.

    Raises:
        UnsupportedTokenizerError: The decoder does not define exact bytes.
    """
    parts = private.decoder
    if not parts:
        raise UnsupportedTokenizerError(
            f"a {type(private.rust.model).__name__} tokenizer without a decoder does not define the bytes of its tokens;"
            " supported are byte-level BPE (decoder ByteLevel) and sentencepiece-like decoders (Metaspace, or Replace,"
            " ByteFallback, Fuse and Strip)"
        )
    if any(part["type"] == "ByteLevel" for part in parts):
        return _all_byte_level
    steps: list[Step] = []
    fused = False
    for part in parts:
        if part["type"] == "Fuse":
            fused = True
        elif part["type"] == "Strip" and fused and part.get("start", 0) <= 1 and part.get("stop", 0) == 0:
            pass  # it removes only the first space of a text, which `drops_leading_space` reports
        else:
            steps.append(_step(part))
    return partial(_by_steps, steps)


def _by_steps(steps: Sequence[Step], texts: list[str]) -> list[bytes]:
    found: list[bytes | None] = [None] * len(texts)
    for step in steps:
        if step is not None:
            texts = _replaced(*step, texts)
            continue
        for at, text in enumerate(texts):  # byte fallback; later steps do not change these bytes
            if text.startswith("<0x") and found[at] is None and (byte := _byte_of(text)) is not None:
                found[at] = byte
    return [text.encode("utf-8") if data is None else data for text, data in zip(texts, found, strict=True)]


def _parts(decoder: Any) -> list[dict[str, Any]]:
    """Return the decoders in a decoder, in order. Nested sequences are replaced by their members; None: []."""
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
        return part["pattern"]["String"], part["content"]
    if part["type"] == "Metaspace":
        return part.get("replacement", "▁"), " "
    if part["type"] == "ByteFallback":
        return None
    raise UnsupportedTokenizerError(
        f"the decoder {part['type']} is not supported, because token bytes would not be exact; supported are ByteLevel,"
        " Metaspace, and Replace (of a string), ByteFallback, Fuse and Strip (after Fuse)"
    )


def _replaced(old: str, new: str, texts: list[str]) -> list[str]:
    """Return the texts with `old` replaced by `new`. All texts are joined and replaced in one call where possible."""
    if len(new) > len(old):
        for text in texts:
            count = text.count(old)
            if count and len(text) + count * (len(new) - len(old)) > MAX_TOKEN_BYTES:
                raise InvalidFileError(
                    f"the decoder makes more than {MAX_TOKEN_BYTES:,} bytes of the token {text[:40]!r}"
                )
    joined = _SEPARATOR.join(texts)
    if not old or joined.count(_SEPARATOR) != len(texts) - 1 or _SEPARATOR in old or _SEPARATOR in new:
        return [text.replace(old, new) for text in texts]
    return joined.replace(old, new).split(_SEPARATOR)


def _byte_of(text: str) -> bytes | None:
    if len(text) == 6 and text.endswith(">"):
        try:
            return bytes([int(text[3:5], 16)])
        except ValueError:
            return None
    return None


def _alphabet() -> dict[str, int]:
    """Return the byte for each character of GPT-2's byte alphabet.

    The character of a printable byte has the same code; the characters of other bytes are U+0100 and following.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    return {**{chr(b): b for b in printable}, **{chr(0x100 + n): b for n, b in enumerate(rest)}}


_BYTE_OF = _alphabet()
_OUTSIDE = 0x100
_BYTE_TABLE = np.array([_BYTE_OF.get(chr(code), _OUTSIDE) for code in range(max(map(ord, _BYTE_OF)) + 2)], np.uint16)
_SEPARATOR = "\n"  # not in the alphabet


def byte_level(token: str) -> bytes:
    """Return the bytes of a byte-level token. A token with a character outside the alphabet is UTF-8 text."""
    try:
        return bytes([_BYTE_OF[character] for character in token])
    except KeyError:  # the package takes such a token as text, too
        return token.encode("utf-8")


def _all_byte_level(texts: list[str]) -> list[bytes]:
    """Return the bytes of byte-level tokens: `byte_level` for many tokens at once."""
    codes = np.frombuffer(_SEPARATOR.join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
    ends = np.flatnonzero(codes == ord(_SEPARATOR))
    if len(ends) != len(texts) - 1:
        return [byte_level(text) for text in texts]
    found = _BYTE_TABLE[np.minimum(codes, len(_BYTE_TABLE) - 1)]
    data, borders = found.astype(np.uint8).tobytes(), [-1, *ends.tolist(), len(codes)]
    made = [data[before + 1 : end] for before, end in pairwise(borders)]
    found[ends] = 0
    for token in np.unique(np.searchsorted(ends, np.flatnonzero(found == _OUTSIDE))).tolist():
        made[token] = byte_level(texts[token])
    return made
