"""`Vocabulary`: the bytes of every token id. Immutable, comparable, and with a digest that every process agrees on."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from guideway import disk
from guideway.errors import InvalidToken, LimitExceeded

if TYPE_CHECKING:
    from guideway._kernel import Vocabulary as KernelVocabulary
    from guideway.vocabulary.report import VocabularyReport

__all__ = ["Vocabulary"]

_FORMAT = b"guideway vocabulary 2\n"  # changes when the encoding under the fingerprint changes
_KIND = f"vocabulary-1-{sys.byteorder}"  # of the kernel's file: the number changes with anything that is in it
_STORE_TOKENS = 2_000  # below, the kernel is as quick as a look at the disk
_KERNEL_LOCK = threading.Lock()  # two threads that ask first at the same time get one table


class Vocabulary:
    """The bytes of every token id, and which ids end a text or are no text at all.

    `token_bytes[i]` are the bytes of id i; `b""` for specials and for ids without text. Several ids may have the same
    bytes. `eos_ids` end a text; `special_ids` (BOS, padding, roles) never appear inside one. Both are kept sorted and
    without repetition. Assignment raises `AttributeError`.

    Raises `TypeError` where a token is not bytes, `InvalidToken` where an EOS or special id is outside the table.
    """

    __slots__ = ("_fingerprint", "_hash", "_kernel", "eos_ids", "special_ids", "token_bytes")

    token_bytes: tuple[bytes, ...]
    eos_ids: tuple[int, ...]
    special_ids: tuple[int, ...]
    _fingerprint: str | None
    _hash: int | None
    _kernel: KernelVocabulary | None

    def __init__(
        self, token_bytes: Sequence[bytes], eos_ids: Iterable[int] = (), special_ids: Iterable[int] = ()
    ) -> None:
        tokens = tuple(token_bytes)
        if not set(map(type, tokens)) <= {bytes}:
            at, wrong = next((i, t) for i, t in enumerate(tokens) if type(t) is not bytes)
            raise TypeError(f"token_bytes[{at}] is {type(wrong).__name__}; every token must be bytes")
        put = object.__setattr__
        put(self, "token_bytes", tokens)
        put(self, "eos_ids", _id_set(eos_ids, len(tokens), "eos_ids"))
        put(self, "special_ids", _id_set(special_ids, len(tokens), "special_ids"))
        put(self, "_fingerprint", None)
        put(self, "_hash", None)
        put(self, "_kernel", None)

    @property
    def fingerprint(self) -> str:
        """Hex digest (32 digits) of the content: the same in every process and on every platform. Computed once."""
        known = self._fingerprint
        if known is None:
            from guideway._kernel import flatten

            digest = hashlib.sha256(_FORMAT)
            for ids in (self.eos_ids, self.special_ids):
                digest.update(np.array([len(ids), *ids], dtype="<u8").tobytes())
            digest.update(np.array([len(self.token_bytes)], dtype="<u8").tobytes())
            digest.update(flatten(self.token_bytes))
            known = digest.hexdigest()[:32]
            object.__setattr__(self, "_fingerprint", known)
        return known

    @property
    def kernel(self) -> KernelVocabulary:
        """The kernel's table of this vocabulary: made at first use, or read from the cache on disk; shared after, and
        never pickled.
        """
        table = self._kernel
        if table is None:
            with _KERNEL_LOCK:
                table = self._kernel or self._read_or_make()
                object.__setattr__(self, "_kernel", table)
        return table

    def _read_or_make(self) -> KernelVocabulary:
        from guideway import _kernel

        files = disk.cache() if len(self) >= _STORE_TOKENS else None
        if files is not None and (found := files.get(_KIND, self.fingerprint)) is not None:
            try:
                table = _kernel.Vocabulary.load(np.frombuffer(found, dtype=np.uint8))
                if table.size == len(self):
                    return table
            except ValueError:  # of another format after all
                pass
            files.drop(_KIND, self.fingerprint)
        try:
            made = _kernel.Vocabulary(self.token_bytes, self.eos_ids, self.special_ids)
        except ValueError as error:
            raise LimitExceeded(f"the kernel does not take this vocabulary: {error}") from None
        if files is not None:
            files.put(_KIND, self.fingerprint, made.save())
        return made

    def bytes_of(self, ids: Iterable[int]) -> bytes:
        """The bytes of these ids, joined. EOS and special ids have none. Raises `InvalidToken`."""
        silent = {*self.eos_ids, *self.special_ids}
        return b"".join(b"" if i in silent else self.token_bytes[i] for i in self.checked(ids))

    def checked(self, ids: Iterable[int]) -> list[int]:
        """The ids as plain ints. Raises `InvalidToken` naming the first that this vocabulary does not have."""
        result = []
        for token_id in ids:
            try:
                plain = int(token_id.__index__())
            except AttributeError:
                raise InvalidToken(f"a token id must be an integer, got {token_id!r}") from None
            if not 0 <= plain < len(self.token_bytes):
                raise InvalidToken(f"token id {plain} is outside the vocabulary (0 to {len(self.token_bytes) - 1})")
            result.append(plain)
        return result

    def unusable(self) -> dict[int, str]:
        """The ids that can never appear inside a text, and why ("special" or "empty")."""
        special = {*self.special_ids, *self.eos_ids}
        return {
            i: "special" if i in special else "empty" for i, t in enumerate(self.token_bytes) if not t or i in special
        }

    def report(self) -> VocabularyReport:
        """What can be used and what cannot, and why; `print(vocabulary.report())` shows it."""
        from guideway.vocabulary.report import report

        return report(self)

    def __len__(self) -> int:
        return len(self.token_bytes)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        known = self._hash
        if known is None:
            known = hash(self._fields())
            object.__setattr__(self, "_hash", known)
        return known

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, eos_ids={list(self.eos_ids)}, {len(self.special_ids)} special)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Vocabulary is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Vocabulary is immutable: {name} cannot be deleted")

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[object, ...]]:
        return Vocabulary, self._fields()

    def _fields(self) -> tuple[tuple[bytes, ...], tuple[int, ...], tuple[int, ...]]:
        return self.token_bytes, self.eos_ids, self.special_ids


def _id_set(ids: Iterable[int], size: int, name: str) -> tuple[int, ...]:
    found = sorted({index(i) for i in ids})
    for token_id in found:
        if not 0 <= token_id < size:
            raise InvalidToken(f"{name} holds {token_id}, and the vocabulary has {size} tokens")
    return tuple(found)
