"""`Tokenizer`: one face for the tokenizers of every library.

`Tokenizer.of(anything)` asks each adapter in `_adapters()` in turn; an adapter is a function that makes a
`TokenizerBackend` of what it knows and answers None to the rest. To support another library, add its file and its
function there.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from guideway.errors import GuidewayError, InvalidTokenError, MissingDependencyError, UnsupportedTokenizerError
from guideway.tokenizers.chat_template import render_template
from guideway.tokenizers.streaming import TextStream
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = ["Batch", "SpecialTokens", "Tokenizer", "TokenizerBackend", "find_backend", "library", "split_at"]

_KNOWN = (
    "tokenizers.Tokenizer; fast and slow tokenizers of transformers; sentencepiece.SentencePieceProcessor;"
    " tiktoken.Encoding; tokenizers of mistral-common; llama_cpp.Llama; tokenizers of mlx_lm, vLLM and ExLlamaV2/V3;"
    " a path to a tokenizer.json, a tekken.json, a sentencepiece model or a GGUF file, or a folder with one; a list"
    " with the bytes of each id; guideway.Vocabulary and guideway.Tokenizer"
)


_EXTRAS = {"sentencepiece": "sentencepiece", "tiktoken": "tiktoken", "mistral-common": "mistral", "jinja2": "chat"}
"""The pip extra that installs a library, by the library's name."""


@dataclass(frozen=True)
class SpecialTokens:
    """The ids with a role, and the chat template: what stands around a tokenizer instead of in it."""

    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    pad_id: int | None = None
    chat_template: str | None = None


class Batch(NamedTuple):
    """Several texts as ids, int64 [rows, width]; the mask is 1 where a token stands and 0 where the row was filled."""

    ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]


class TokenizerBackend(Protocol):
    """What an adapter gives: must be picklable, immutable, and comparable by content."""

    @property
    def specials(self) -> SpecialTokens: ...

    @property
    def drops_leading_space(self) -> bool:
        """Whether a text's first space is the tokenizer's own (sentencepiece's dummy prefix), and not the text's."""
        ...

    def encode(self, text: str, *, special: bool) -> list[int]: ...

    def spelled(self, token_id: int) -> str:
        """The token as the tokenizer spells it, for templates: `</s>`."""
        ...

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary: ...


class Tokenizer:
    """Text to token ids and back, and the `Vocabulary` of exact bytes behind it. Immutable; pickles by content."""

    __slots__ = ("_backend", "_specials", "vocabulary")

    vocabulary: Vocabulary
    _backend: TokenizerBackend
    _specials: SpecialTokens

    def __init__(self, backend: TokenizerBackend, *, eos_ids: Iterable[int] | None = None) -> None:
        found = backend.specials
        if eos_ids is not None:
            found = replace(found, eos_ids=tuple(sorted(set(eos_ids))))
        object.__setattr__(self, "_backend", backend)
        object.__setattr__(self, "_specials", found)
        object.__setattr__(self, "vocabulary", backend.vocabulary(found.eos_ids))

    @classmethod
    def of(cls, source: object, *, eos_ids: Iterable[int] | None = None) -> Tokenizer:
        """The tokenizer of anything that is known; what was given is copied, never changed.

        `eos_ids`: which ids end a text, where the source does not say or says it wrong.
        Raises `UnsupportedTokenizerError` for what no adapter knows, or for a kind of tokenizer whose bytes are not exact.
        """
        if isinstance(source, Tokenizer):
            return source if eos_ids is None else cls(source._backend, eos_ids=eos_ids)
        kind = type(source)
        try:
            backend = find_backend(source)
            if backend is not None:
                return cls(backend, eos_ids=eos_ids)
        except GuidewayError:
            raise
        except Exception as error:  # the object is a stranger's: what it raises when it is looked at is its own
            raise UnsupportedTokenizerError(
                f"no tokenizer can be read from {kind.__module__}.{kind.__qualname__}: {error}"
            ) from error
        raise UnsupportedTokenizerError(
            f"no tokenizer in an object of {kind.__module__}.{kind.__qualname__}; known are: {_KNOWN}"
        )

    @property
    def bos_id(self) -> int | None:
        return self._specials.bos_id

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self._specials.eos_ids

    @property
    def pad_id(self) -> int | None:
        """The id that fills short rows; the first EOS where the tokenizer names none."""
        if self._specials.pad_id is None and self._specials.eos_ids:
            return self._specials.eos_ids[0]
        return self._specials.pad_id

    @property
    def chat_template(self) -> str | None:
        """The template that messages are written by, as it came with the tokenizer."""
        return self._specials.chat_template

    @property
    def has_chat_template(self) -> bool:
        return self._specials.chat_template is not None

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """The ids of a text. `special`: with the tokens that the tokenizer itself puts around a text (BOS)."""
        if not isinstance(text, str):
            raise TypeError(f"encode takes a str, got {type(text).__name__}")
        try:
            text.encode("utf-8")  # not every backend says it when it cannot: a lone surrogate
            return self._backend.encode(text, special=special)
        except UnicodeEncodeError as error:
            raise InvalidTokenError(f"the text cannot be encoded: {error.reason} at character {error.start}") from None

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        special: bool = False,
        side: Literal["left", "right"] = "left",
        pad_id: int | None = None,
    ) -> Batch:
        """The ids of several texts as one array, short rows filled on one side with `pad_id` (else `self.pad_id`).

        Raises `UnsupportedTokenizerError` where rows must be filled and nothing says with what, `InvalidTokenError` for an id that the
        vocabulary does not have.
        """
        if side not in ("left", "right"):
            raise ValueError(f"side is 'left' or 'right', not {side!r}")
        if isinstance(texts, str):
            raise TypeError("encode_batch takes several texts; encode takes one")
        rows = [self.encode(text, special=special) for text in texts]
        width = max(map(len, rows), default=0)
        fill = self.pad_id if pad_id is None else self.vocabulary.checked([pad_id])[0]
        if fill is None and any(len(row) < width for row in rows):
            raise UnsupportedTokenizerError("this tokenizer has no padding token and no EOS to pad with; give pad_id")
        ids = np.full((len(rows), width), 0 if fill is None else fill, dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for number, row in enumerate(rows):
            place = slice(width - len(row), None) if side == "left" else slice(len(row))
            ids[number, place] = row
            mask[number, place] = 1
        return Batch(ids, mask)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids; EOS and specials have none, and bytes that are no UTF-8 become U+FFFD."""
        stream = TextStream()
        return stream.push(self._text_bytes(ids)) + stream.finish()

    def decode_complete(self, ids: Iterable[int]) -> str:
        """As `decode`, but an incomplete character at the end is left out instead of shown as U+FFFD."""
        return TextStream().push(self._text_bytes(ids))

    def render_chat(self, messages: Sequence[Mapping[str, object]]) -> str:
        """The prompt of a conversation by the model's own chat template; encode it without `special`.

        `messages`: `{"role": ..., "content": ...}` each. Raises `ChatTemplateError` if there is no template
        or it rejects the messages, `MissingDependencyError` without jinja2.
        """
        bos = "" if self.bos_id is None else self._backend.spelled(self.bos_id)
        eos = self._backend.spelled(self.eos_ids[0]) if self.eos_ids else ""
        return render_template(self._specials.chat_template, messages, bos_token=bos, eos_token=eos)

    def _text_bytes(self, ids: Iterable[int]) -> bytes:
        data = self.vocabulary.bytes_of(ids)
        return data[1:] if self._backend.drops_leading_space and data.startswith(b" ") else data

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return (
            self._specials == other._specials
            and self.vocabulary == other.vocabulary
            and self._backend == other._backend
        )

    def __hash__(self) -> int:
        return hash((self.vocabulary, self._specials))

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocabulary!r}, bos_id={self.bos_id}, pad_id={self.pad_id})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Tokenizer is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tokenizer is immutable: {name} cannot be deleted")

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[object, ...]]:
        return _rebuild, (self._backend, self._specials.eos_ids)


def _rebuild(backend: TokenizerBackend, eos_ids: tuple[int, ...]) -> Tokenizer:
    return Tokenizer(backend, eos_ids=eos_ids)


def find_backend(source: object) -> TokenizerBackend | None:
    """What the first adapter that knows this makes of it; None where none does."""
    for adapter in _adapters():
        backend = adapter(source)
        if backend is not None:
            return backend
    return None


def split_at(text: str, tokens: Iterable[str]) -> list[str]:
    """The text between these tokens, and they themselves: the parts with odd numbers are tokens, longest first."""
    longest_first = sorted((token for token in tokens if token), key=len, reverse=True)
    return re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text) if longest_first else [text]


def library(name: str, what: str) -> Any:
    """A library of tokenizers. Raises `MissingDependencyError` that names the extra if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        extra = _EXTRAS.get(package)
        command = f"pip install {package}" if extra is None else f"pip install 'guideway[{extra}]'"
        raise MissingDependencyError(f"{what} needs the library {package}: {command} ({error})") from None


def _adapters() -> Iterator[Callable[[object], TokenizerBackend | None]]:
    # Holders first: several of them pass every attribute on to what they hold, and would look like that.
    for name in (
        "longest_match",
        "unwrap",
        "files",
        "huggingface",
        "sentencepiece",
        "tiktoken",
        "mistral",
        "transformers",
    ):
        yield importlib.import_module(f"guideway.tokenizers.{name}").backend_of
