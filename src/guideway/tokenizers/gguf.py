"""Tokenizers in the header of GGUF files, as llama.cpp reads them.

The token bytes are exact for three values of `tokenizer.ggml.model`: "llama" (sentencepiece BPE with bytes as
`<0x0A>`), "t5" (sentencepiece unigram) and "gpt2" (byte-level BPE). `encode` splits text as llama.cpp does. It raises
`UnsupportedTokenizerError` for a "gpt2" file whose pre-tokenizer (`tokenizer.ggml.pre`) is not in `_PATTERNS`, and for
a "t5" file with a normalizer or without an unknown token. The token bytes are exact for these files, too.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from guideway.arguments import short_repr
from guideway.errors import InvalidFileError, InvalidTokenError, UnsupportedTokenizerError
from guideway.tokenizers.huggingface import MAX_TOKENS, byte_level, template_of, templates_of
from guideway.tokenizers.special_tokens import by_custom
from guideway.tokenizers.tokenizer import SpecialTokens, package_errors, split_at
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["Gguf", "of_path", "read_header"]

MAGIC = b"GGUF"
_MAX_PIECE = 1_000  # maximum length of a token made by merges, in characters: every split of it is tried
_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)  # token types of llama.cpp
_NAMED = "tokenizer.chat_template."  # beginning of the keys of named chat templates
_SPACE = "▁"
_NO_TEXT = "\U0010ffff" * 8

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_WORDS = rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{{0}}|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{{0}}"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

# The pre-tokenizers by name: regular expressions. The first one splits the text, each further one the parts that the
# previous one made. Matches and the texts between them are parts.
_PATTERNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "mpt", "olmo", "jais"), (_GPT2,)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "dbrx", "smaug-bpe"), (_LLAMA3,)),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), (_LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"),)),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell"), (r"\p{N}", _GPT2)),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2.removesuffix(r"|\s+"), r"\p{N}+", "[0-9][0-9][0-9]"),
    "tekken": (_WORDS.replace("{0}", "") + r"|\p{N}" + _REST,),
    **dict.fromkeys(("gpt-4o", "llama4"), (_WORDS.replace("{0}", _ENDINGS) + r"|\p{N}{1,3}" + _REST,)),
}
# The pre-tokenizers with which a part that is a token is encoded as this token, without merges.
_WHOLE_FIRST = ("llama-bpe", "llama3", "llama-v3", "tekken", "gpt-4o", "llama4")


@dataclass(frozen=True)
class Gguf:
    """A backend for the tokenizer of a GGUF file. It contains all data, so the file is not needed any more."""

    model: str
    tokens: tuple[bytes, ...]
    kinds: bytes
    scores: tuple[float, ...]
    merges: tuple[str, ...]
    pre: str
    space_prefix: bool
    normalizes: bool
    add_bos: bool
    specials: SpecialTokens

    @property
    def drops_leading_space(self) -> bool:
        return self.model != "gpt2" and self.space_prefix

    def encode(self, text: str, *, special: bool) -> list[int]:
        if self.model != "gpt2":  # a space prefix is added only to the whole text, not to each part
            text = (_SPACE if self.space_prefix and text else "") + text.replace(" ", _SPACE)
        ids: list[int] = []
        for number, part in enumerate(split_at(text, self._user_ids)):
            ids += [self._user_ids[part]] if number % 2 else self._ids(part)
        bos = self.specials.bos_id
        return [bos, *ids] if special and self.add_bos and bos is not None else ids

    def _ids(self, text: str) -> list[int]:
        with package_errors(InvalidTokenError, "the text cannot be encoded"):
            found = self._encoder.encode(text, add_special_tokens=False)
        ids: list[int] = list(found.ids)
        if self.model == "t5" and self._byte_ids:
            pairs = zip(ids, found.offsets, strict=True)
            unknown = self.kinds.index(_UNKNOWN)
            ids = [one for i, (a, b) in pairs for one in (self._of_bytes(text[a:b], i) if i == unknown else [i])]
        told = text if self.model == "gpt2" else text.replace(_SPACE, " ")
        if all(self.kinds[i] in (_NORMAL, _BYTE) for i in ids) and b"".join(map(self._bytes, ids)) != told.encode():
            raise InvalidTokenError(f"the vocabulary of this GGUF file has no tokens for {told[:60]!r}")
        return ids

    def _of_bytes(self, text: str, unknown: int) -> list[int]:
        """Return the byte tokens of a text; `unknown` alone if the vocabulary does not have all of them."""
        data = text.encode()
        return [self._byte_ids[byte] for byte in data] if self._byte_ids.keys() >= set(data) else [unknown]

    def spelled(self, token_id: int) -> str:
        return self.tokens[token_id].decode("utf-8", "replace")

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary:
        special = [i for i, kind in enumerate(self.kinds) if kind in (_CONTROL, _UNKNOWN)]
        silent = {*special, *eos_ids}
        table = [self.tokens[i] if i in silent else self._bytes(i) for i in range(len(self.tokens))]
        return Vocabulary(table, eos_ids, special)

    def _bytes(self, token_id: int) -> bytes:
        kind, spelling = self.kinds[token_id], self.tokens[token_id]
        if kind == _UNUSED:
            return b""
        if kind == _USER:
            return spelling
        if kind == _BYTE:
            return bytes([int(spelling[3:5], 16)])
        if self.model == "gpt2":
            return byte_level(spelling.decode("utf-8", "replace"))
        return spelling.replace(_SPACE.encode(), b" ")

    @cached_property
    def _user_ids(self) -> dict[str, int]:
        """The ids of user-defined tokens by their text. `encode` first divides the input at these texts.

        In tokenizers other than GPT-2, a space in the text is written as U+2581, as in the input.
        """
        found = {self.spelled(i): i for i, kind in enumerate(self.kinds) if kind == _USER}
        return found if self.model == "gpt2" else {name.replace(" ", _SPACE): i for name, i in found.items()}

    @cached_property
    def _byte_ids(self) -> dict[int, int]:
        return {self._bytes(i)[0]: i for i, kind in enumerate(self.kinds) if kind == _BYTE}

    @cached_property
    def _encoder(self) -> Any:
        """An equivalent tokenizer of the package `tokenizers`.

        Raises:
            UnsupportedTokenizerError: The pre-tokenizer or the normalizer is not supported.
            InvalidFileError: The tokens and merges do not match.
        """
        with package_errors(InvalidFileError, "the tokens and merges of the GGUF tokenizer are inconsistent"):
            return self._made()

    def _made(self) -> Any:
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers

        names = [token.decode("utf-8", "replace") for token in self.tokens]
        ids = {name: i for i, name in reversed(list(enumerate(names)))}  # the lowest id of equal names
        if self.model == "gpt2":
            if self.pre not in _PATTERNS:
                raise UnsupportedTokenizerError(
                    f"unknown GGUF pre-tokenizer {short_repr(self.pre)}, so text cannot be encoded; known: {', '.join(_PATTERNS)}"
                )
            pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in self.merges)]
            made = Tokenizer(models.BPE(ids, pairs, ignore_merges=self.pre in _WHOLE_FIRST))
            splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in _PATTERNS[self.pre]]
            byte_wise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            made.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_wise])
        elif self.model == "llama":
            unknown = next((names[i] for i, kind in enumerate(self.kinds) if kind == _UNKNOWN), None)
            pairs = _merges_by_score(names, self.scores, self.kinds, ids)
            made = Tokenizer(models.BPE(ids, pairs, unk_token=unknown, byte_fallback=True, fuse_unk=True))
        elif self.normalizes or _UNKNOWN not in self.kinds:
            raise UnsupportedTokenizerError(
                "the normalizer of this GGUF tokenizer (t5) is not supported, so text cannot be encoded;"
                " its vocabulary can be used"
            )
        else:  # byte tokens must not match text; `_ids` uses them for unknown text
            hidden = [_NO_TEXT + name if kind == _BYTE else name for name, kind in zip(names, self.kinds, strict=True)]
            made = Tokenizer(models.Unigram(list(zip(hidden, self.scores, strict=True)), self.kinds.index(_UNKNOWN)))
        return made

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _merges_by_score(
    names: Sequence[str], scores: Sequence[float], kinds: bytes, ids: dict[str, int]
) -> list[tuple[str, str]]:
    """Return the merges that are equivalent to a sentencepiece BPE model with scores.

    They are all pairs of tokens whose concatenation is a token of type `_NORMAL` with at most `_MAX_PIECE` characters,
    by descending score of that token.
    """
    found = []
    for token_id, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind != _NORMAL or ids[name] != token_id or len(name) > _MAX_PIECE:
            continue
        cuts = [(name[:at], name[at:]) for at in range(1, len(name))]
        known = [(ids[left], ids[right], left, right) for left, right in cuts if left in ids and right in ids]
        found += [(-scores[token_id], a, b, left, right) for a, b, left, right in sorted(known)]
    return [(left, right) for _, _, _, left, right in sorted(found, key=lambda one: one[0])]


def of_path(path: Path) -> Gguf:
    """Return the backend of a GGUF file.

    Raises:
        InvalidFileError: The file is not a complete GGUF file, or its tokens are not valid.
        UnsupportedTokenizerError: The kind of tokenizer is not supported.
    """
    header = read_header(path)

    def field(name: str, default: Any = None) -> Any:
        return header.get(f"tokenizer.ggml.{name}", default)

    def items(name: str, kinds: tuple[type, ...]) -> list[Any]:
        found = field(name)
        if found is not None and not (isinstance(found, list) and {type(one) for one in found} <= set(kinds)):
            raise InvalidFileError(f"{path}: tokenizer.ggml.{name} must be an array of {kinds[0].__name__}")
        return found or []

    model, pre = field("model"), field("pre", "default")
    if model not in ("llama", "gpt2", "t5") or not isinstance(pre, str):
        raise UnsupportedTokenizerError(
            f"{path}: the GGUF tokenizer model {short_repr(model)} is not supported; supported models: llama, gpt2, t5"
        )
    tokens = items("tokens", (bytes,))
    kinds = items("token_type", (int,)) or [_NORMAL] * len(tokens)
    scores = tuple(items("scores", (float, int))) or (0.0,) * len(tokens)
    if not len(tokens) == len(kinds) == len(scores):
        raise InvalidFileError(
            f"{path}: tokens, types and scores must have equal lengths,"
            f" got {len(tokens)}, {len(kinds)} and {len(scores)}"
        )
    for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
        if not _is_sound(token, kind, model):
            raise InvalidFileError(f"{path}: token {number} of type {kind} has the invalid text {token[:40]!r}")
    named = {
        token.decode("utf-8", "replace"): i
        for i, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (_CONTROL, _USER)
    }
    custom = by_custom(named)
    ends = [*(field(f"{name}_token_id") for name in ("eos", "eot", "eom")), *custom.eos_ids]
    specials = SpecialTokens(
        bos_id=_id(field("bos_token_id"), tokens),
        eos_ids=tuple(sorted({i for i in ends if _id(i, tokens) is not None})),
        pad_id=_id(field("padding_token_id"), tokens),
        chat_template=template_of(header.get("tokenizer.chat_template")),
        named_templates=templates_of(
            {name.removeprefix(_NAMED): text for name, text in header.items() if name.startswith(_NAMED)}
        ),
    )
    return Gguf(
        model=model,
        tokens=tuple(tokens),
        kinds=bytes(kinds),
        scores=scores,
        merges=tuple(merge.decode("utf-8", "replace") for merge in items("merges", (bytes,))),
        pre=pre,
        space_prefix=bool(field("add_space_prefix", model == "llama")),
        normalizes=bool(field("precompiled_charsmap") or field("remove_extra_whitespaces", False)),
        add_bos=bool(field("add_bos_token", model == "llama" or pre in ("llama-bpe", "llama3", "llama-v3"))),
        specials=specials,
    )


_BYTE_NAME = re.compile(rb"<0x[0-9A-Fa-f]{2}>")


def _is_sound(token: bytes, kind: int, model: str) -> bool:
    """Return whether a token type is known and allows these bytes. `model`: as `Gguf.model`."""
    if not _NORMAL <= kind <= _BYTE:
        return kind == 0  # type 0 (undefined) is accepted with any bytes; `_bytes` decodes it like a normal token
    if kind == _BYTE:
        return _BYTE_NAME.fullmatch(token) is not None
    if kind != _NORMAL or model != "gpt2":
        return True
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _id(value: object, tokens: Sequence[bytes]) -> int | None:
    return value if type(value) is int and 0 <= value < len(tokens) else None


# -- the header -------------------------------------------------------------------------------------------------------

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_FIELDS = 1 << 16


def read_header(path: Path) -> dict[str, Any]:
    """Return the fields of a GGUF header: strings as str, strings in arrays as bytes. Raises `InvalidFileError`."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _HeaderReader(data).header()
    except (OSError, ValueError, struct.error, IndexError) as error:
        raise InvalidFileError(f"{path} is not a complete GGUF file: {error}") from error


class _HeaderReader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, 0

    def header(self) -> dict[str, Any]:
        if self._take(4) != MAGIC:
            raise ValueError("it does not begin with 'GGUF'")
        version = self._scalar("I")
        if version not in (2, 3):
            raise ValueError(f"version {version} is not supported; supported versions: 2, 3")
        _, count = self._scalar("Q"), self._scalar("Q")
        if count > _MAX_FIELDS:
            raise ValueError(f"it has {count} fields; at most {_MAX_FIELDS} are supported")
        found = {}
        for _ in range(count):
            name = self._string().decode("utf-8", "replace")
            found[name] = self._value(self._scalar("I"), name)
        return found

    def _value(self, kind: int, name: str) -> Any:
        if kind == _STRING:
            return self._string().decode("utf-8", "replace")
        if kind != _ARRAY:
            return self._scalar(_SCALARS.get(kind, ""))
        inner, count = self._scalar("I"), self._scalar("Q")
        if count > MAX_TOKENS * 4:
            raise ValueError(f"{name} has {count} items; at most {MAX_TOKENS * 4} are supported")
        if inner == _STRING:
            return [self._string() for _ in range(count)]
        if inner not in _SCALARS:
            raise ValueError(f"{name} has items of the unknown type {inner}")
        form = f"<{count}{_SCALARS[inner]}"
        return list(struct.unpack(form, self._take(struct.calcsize(form))))

    def _string(self) -> bytes:
        return self._take(self._scalar("Q"))

    def _scalar(self, form: str) -> Any:
        if not form:
            raise ValueError("a field has an unknown type")
        return struct.unpack("<" + form, self._take(struct.calcsize("<" + form)))[0]

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise ValueError("unexpected end of file")
        self._at += count
        return self._data[self._at - count : self._at]
