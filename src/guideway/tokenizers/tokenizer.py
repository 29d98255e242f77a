"""`Tokenizer`: one interface for the tokenizers of all libraries.

`Tokenizer.of` calls the adapters of `_adapters()` in order. An adapter is a module with two functions. `backend_of`
returns a `TokenizerBackend` for an object that it supports, else None. `watch` returns a function by which changes
of such an object are detected (see `kept.py`), else None. To support another library, add an adapter and list it in
`_adapters`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from guideway.arguments import short_repr
from guideway.errors import GuidewayError, InvalidTokenError, MissingDependencyError, UnsupportedTokenizerError
from guideway.tokenizers import kept
from guideway.tokenizers.chat_template import render_template
from guideway.tokenizers.streaming import TextStream
from guideway.tokenizers.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "SpecialTokens",
    "Tokenizer",
    "TokenizerBackend",
    "find_backend",
    "library",
    "package_errors",
    "split_at",
    "watch_of",
]

UNTRAINED = "{#- not trained on this template -#}"
"""A comment in the chat template of a base model. It means that the model was not trained on the template."""

_OTHERS = 4
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
    """The special ids of a tokenizer, and its chat template.

    Attributes:
        bos_id: The id of the beginning-of-text token; None: there is none.
        eos_ids: Ids that end a text.
        pad_id: The id of the padding token; None: there is none.
        chat_template: A Jinja template for messages; None: there is none.
        named: Pairs of a name that chat templates use, such as "unk_token", and the text of the special token. For a
            name such as "additional_special_tokens", there is a tuple of texts.
        named_templates: Pairs of a name, such as "tool_use", and another Jinja template.
    """

    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    pad_id: int | None = None
    chat_template: str | None = None
    named: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
    named_templates: tuple[tuple[str, str], ...] = ()


class Batch(NamedTuple):
    """Several texts as token ids, padded to equal length.

    Attributes:
        ids: int64, shape [rows, width].
        attention_mask: int64, shape [rows, width]; 1 for tokens, 0 for padding.
    """

    ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]


class TokenizerBackend(Protocol):
    """A tokenizer of another library, as an adapter returns it.

    Implementations are immutable, picklable and comparable.
    """

    @property
    def specials(self) -> SpecialTokens: ...

    @property
    def drops_leading_space(self) -> bool:
        """Whether the first space of a decoded text is a prefix that the tokenizer adds, so it must be removed."""
        ...

    def encode(self, text: str, *, special: bool) -> list[int]: ...

    def spelled(self, token_id: int) -> str:
        """Return the text of a token as the tokenizer writes it, for chat templates; for example `</s>`."""
        ...

    def vocabulary(self, eos_ids: Sequence[int]) -> Vocabulary: ...


class Tokenizer:
    """Converts between text and token ids. `vocabulary` has the exact bytes of each token. Immutable and picklable."""

    __slots__ = ("_adds_space", "_backend", "_others", "_specials", "vocabulary")

    vocabulary: Vocabulary
    _backend: TokenizerBackend
    _specials: SpecialTokens
    _adds_space: bool | None  # None: `adds_space` was not requested yet
    _others: dict[tuple[int, ...], Tokenizer]  # a cache of at most `_OTHERS` copies, by `eos_ids`

    def __init__(self, backend: TokenizerBackend, *, eos_ids: Iterable[int] | None = None) -> None:
        found = backend.specials
        if eos_ids is not None:
            found = replace(found, eos_ids=tuple(sorted(set(eos_ids))))
        object.__setattr__(self, "_backend", backend)
        object.__setattr__(self, "_specials", found)
        object.__setattr__(self, "vocabulary", backend.vocabulary(found.eos_ids))
        object.__setattr__(self, "_others", {})
        object.__setattr__(self, "_adds_space", None)

    @classmethod
    def of(cls, source: object, *, eos_ids: Iterable[int] | None = None) -> Tokenizer:
        """Return the tokenizer of an object. Its data are copied; the object is not modified.

        The result is cached while the object exists, for the 64 objects and 4 paths that were read last: a second call
        takes microseconds and returns the same `Tokenizer`. If a change of the object is detected, such as added tokens
        or a replaced component, it is read again. The results for lists of bytes, and for objects whose changes cannot
        be detected, are not cached.

        Args:
            source: A tokenizer of a supported library, a model object that has one, a path, or a list of token bytes.
            eos_ids: Ids that end a text, if the source does not define them or defines them wrongly. None: those of the
                source.

        Raises:
            UnsupportedTokenizerError: No adapter supports the object, or its token bytes are not exact.
            InvalidTokenError: An id of `eos_ids` is outside the vocabulary.
            ModelNotFoundError: The path has no tokenizer.
            InvalidFileError: A file cannot be read or is malformed.
            MissingDependencyError: The library that reads this kind of tokenizer is not installed.
        """
        if isinstance(source, Tokenizer):
            return source if eos_ids is None else source._with_ends(eos_ids)
        if (known := kept.find(source)) is not None:
            return known if eos_ids is None else known._with_ends(eos_ids)
        kind = type(source)
        try:
            watch = watch_of(source)
            state = None if watch is None else watch(source)  # before reading, so a change during it is detected
            if (backend := find_backend(source)) is not None:
                made = cls(backend)
                if watch is not None:
                    kept.keep(source, watch, state, made)
                return made if eos_ids is None else made._with_ends(eos_ids)
        except GuidewayError:
            raise
        except Exception as error:  # objects of other libraries can raise anything when they are inspected
            raise UnsupportedTokenizerError(
                f"cannot read a tokenizer from {kind.__module__}.{kind.__qualname__}: {error}"
            ) from error
        raise UnsupportedTokenizerError(
            f"an object of {kind.__module__}.{kind.__qualname__} has no known tokenizer; supported: {_KNOWN}"
        )

    def _with_ends(self, eos_ids: Iterable[int]) -> Tokenizer:
        ends = tuple(sorted(set(eos_ids)))
        if ends == self.eos_ids:
            return self
        found = self._others.get(ends)
        if found is None:
            found = Tokenizer(self._backend, eos_ids=ends)
            if self.chat_template != found.chat_template and self.chat_template is not None:
                found = found.with_chat_template(self.chat_template)
            while len(self._others) >= _OTHERS:
                self._others.pop(next(iter(self._others)), None)
            self._others[ends] = found
        return found

    def with_chat_template(self, template: str) -> Tokenizer:
        """Return the same tokenizer with another chat template.

        Args:
            template: A Jinja template for messages.

        Returns:
            The tokenizer. Its vocabulary is the same object.
        """
        made = object.__new__(Tokenizer)
        object.__setattr__(made, "_backend", self._backend)
        object.__setattr__(made, "_specials", replace(self._specials, chat_template=template))
        object.__setattr__(made, "vocabulary", self.vocabulary)
        object.__setattr__(made, "_others", {})
        object.__setattr__(made, "_adds_space", self._adds_space)
        return made

    @property
    def bos_id(self) -> int | None:
        """The id of the beginning-of-text token, or None."""
        return self._specials.bos_id

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end a text."""
        return self._specials.eos_ids

    @property
    def pad_id(self) -> int | None:
        """The padding id; the first EOS id if the tokenizer defines none; None if it has no EOS id either."""
        if self._specials.pad_id is None and self._specials.eos_ids:
            return self._specials.eos_ids[0]
        return self._specials.pad_id

    @property
    def adds_space(self) -> bool:
        """Whether `encode` adds a space before a text (a dummy prefix, as in sentencepiece)."""
        if self._adds_space is None:
            pieces = self.vocabulary.pieces(self.encode("a"))
            object.__setattr__(self, "_adds_space", b"".join(pieces) == b" a")
        return bool(self._adds_space)

    @property
    def chat_template(self) -> str | None:
        """The Jinja template for messages, or None."""
        return self._specials.chat_template

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return self._specials.chat_template is not None

    @property
    def is_instruct(self) -> bool:
        """Whether the model was trained on its chat template: there is one, and it does not contain `UNTRAINED`."""
        template = self._specials.chat_template
        return template is not None and UNTRAINED not in template

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the token ids of a text.

        Args:
            text: The text.
            special: Add the tokens that the tokenizer adds to a text (BOS). If the text already begins with the name of
                BOS, no second BOS is added.

        Raises:
            InvalidTokenError: The text cannot be encoded, for example because of a lone surrogate.
            TypeError: `text` is not a str.
        """
        if not isinstance(text, str):
            raise TypeError(f"encode needs a str, got {type(text).__name__}")
        try:
            text.encode("utf-8")  # some backends accept lone surrogates silently
            ids = self._backend.encode(text, special=special)
        except UnicodeEncodeError as error:
            raise InvalidTokenError(f"the text cannot be encoded: {error.reason} at character {error.start}") from None
        bos = self.bos_id
        return ids[1:] if special and bos is not None and ids[:2] == [bos, bos] else ids

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        special: bool = False,
        side: Literal["left", "right"] = "left",
        pad_id: int | None = None,
    ) -> Batch:
        """Return the token ids of several texts as a padded array.

        Args:
            texts: The texts.
            special: As for `encode`.
            side: Where padding is added, "left" or "right".
            pad_id: The padding id; by default `self.pad_id`.

        Returns:
            Ids and attention mask, int64, shape [rows, width].

        Raises:
            UnsupportedTokenizerError: Padding is needed and there is no padding id.
            InvalidTokenError: `pad_id` is not in the vocabulary, or a text cannot be encoded.
            TypeError: `texts` is a str.
            ValueError: `side` has another value.
        """
        if side not in ("left", "right"):
            raise ValueError(f"side must be 'left' or 'right', got {short_repr(side)}")
        if isinstance(texts, str):
            raise TypeError("encode_batch needs a list of texts, got a str; use encode for one text")
        rows = [self.encode(text, special=special) for text in texts]
        width = max(map(len, rows), default=0)
        fill = self.pad_id if pad_id is None else self.vocabulary.checked([pad_id])[0]
        if fill is None and any(len(row) < width for row in rows):
            raise UnsupportedTokenizerError(
                "the texts need padding, and the tokenizer has no padding or EOS token; pass pad_id"
            )
        ids = np.full((len(rows), width), 0 if fill is None else fill, dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for number, row in enumerate(rows):
            place = slice(width - len(row), None) if side == "left" else slice(len(row))
            ids[number, place] = row
            mask[number, place] = 1
        return Batch(ids, mask)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids. EOS and special ids have no text; invalid UTF-8 becomes U+FFFD.

        A space at the start that the tokenizer adds to each text is removed. Raises `InvalidTokenError` for an id that
        is not in the vocabulary.
        """
        stream = TextStream()
        return stream.push(self._text_bytes(ids)) + stream.finish()

    def decode_complete(self, ids: Iterable[int]) -> str:
        """Return the text of ids as `decode` does, without an incomplete character at the end."""
        return TextStream().push(self._text_bytes(ids))

    def render_chat(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[object] | None = None,
        documents: Sequence[object] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool | str = False,
        **template_options: object,
    ) -> str:
        """Return the text of a conversation, by the chat template. Encode it without `special`: templates write BOS.

        This corresponds to `apply_chat_template(…, tokenize=False)` of transformers.

        Args:
            messages: Messages with the keys "role" and "content".
            tools: Tools for the template: dicts as the OpenAI API writes them, `Tool` objects, or Python functions.
            documents: Documents for the template, as JSON values.
            chat_template: A Jinja template, or the name of one of several templates of the tokenizer. None: with tools
                the one named "tool_use" if it exists, else the default template.
            add_generation_prompt: Add the text with which a reply of the model begins. None: True, unless
                `continue_final_message` is given.
            continue_final_message: End with the text of the last message, so that the model continues it. A str is the
                key of this text in the message; True: "content".
            **template_options: Other variables of the template, such as `enable_thinking` or `tool_choice`.

        Raises:
            ChatTemplateError: There is no template, it raised an error, or it exceeds a limit of work or memory. With
                `continue_final_message`: the last message has no such text, or the template does not write it.
            MissingDependencyError: jinja2 is not installed.
            TypeError: A message or a tool has a wrong type.
            ValueError: `add_generation_prompt` and `continue_final_message` are both true.
        """
        if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
            raise TypeError(f"messages must be a list of dicts, got {type(messages).__name__}")
        if add_generation_prompt is None:
            add_generation_prompt = not continue_final_message
        return render_template(
            self.template_for(tools, chat_template),
            messages,
            special_tokens=self._template_tokens(),
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            **template_options,
        )

    def template_for(self, tools: Sequence[object] | None = None, chat_template: str | None = None) -> str | None:
        """Return the template that `render_chat` uses for these arguments; None if the tokenizer has none."""
        named = dict(self._specials.named_templates)
        if chat_template is not None:
            return named.get(chat_template, chat_template)
        if tools is not None and "tool_use" in named:
            return named["tool_use"]
        return self._specials.chat_template

    def _template_tokens(self) -> dict[str, object]:
        bos = "" if self.bos_id is None else self._backend.spelled(self.bos_id)
        eos = self._backend.spelled(self.eos_ids[0]) if self.eos_ids else ""
        named = {name: list(text) if isinstance(text, tuple) else text for name, text in self._specials.named}
        return {"bos_token": bos, "eos_token": eos, **named}

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
        raise AttributeError(f"a Tokenizer is immutable, cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Tokenizer is immutable, cannot delete {name}")

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[object, ...]]:
        replaced = None if self.chat_template == self._backend.specials.chat_template else self.chat_template
        return _rebuild, (self._backend, self._specials.eos_ids, replaced)


def _rebuild(backend: TokenizerBackend, eos_ids: tuple[int, ...], template: str | None = None) -> Tokenizer:
    made = Tokenizer(backend, eos_ids=eos_ids)
    return made if template is None else made.with_chat_template(template)


def find_backend(source: object) -> TokenizerBackend | None:
    """Return the backend from the first adapter that supports the object; None if no adapter does."""
    for adapter in _adapters():
        backend: TokenizerBackend | None = adapter.backend_of(source)
        if backend is not None:
            return backend
    return None


def watch_of(source: object) -> kept.Watch | None:
    """Return the function that computes the state of an object (see `kept.py`); None if no adapter has one for it."""
    for adapter in _adapters():
        watch: kept.Watch | None = adapter.watch(source)
        if watch is not None:
            return watch
    return None


def split_at(text: str, tokens: Iterable[str]) -> list[str]:
    """Split a text at tokens; at each position the longest token matches.

    In the result, items with odd indices are tokens; the others are the texts between them, which may be empty.
    """
    longest_first = sorted((token for token in tokens if token), key=len, reverse=True)
    return re.split("(" + "|".join(map(re.escape, longest_first)) + ")", text) if longest_first else [text]


@contextmanager
def package_errors(kind: type[GuidewayError], message: str) -> Iterator[None]:
    """Raise errors of a package in the block as errors of the class `kind`, with `message` before their text.

    The packages `tokenizers` and `tiktoken` raise plain `Exception`, or a `PanicException`, which is not an `Exception`.
    """
    try:
        yield
    except GuidewayError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise kind(f"{message}: {error}") from error


def library(name: str, what: str) -> Any:
    """Import and return a module of a tokenizer package. Raises `MissingDependencyError` if it is not installed.

    `what` is the thing that needs the package, for the message.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        extra = _EXTRAS.get(package)
        command = f"pip install {package}" if extra is None else f"pip install 'guideway[{extra}]'"
        raise MissingDependencyError(f"{what} needs the package {package}: {command} ({error})") from None


def _adapters() -> Iterator[Any]:
    # `unwrap` is called before the libraries, because some wrappers forward all attributes of the tokenizer inside
    # them.
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
        yield importlib.import_module(f"guideway.tokenizers.{name}")
