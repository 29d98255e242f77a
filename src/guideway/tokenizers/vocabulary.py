"""`Vocabulary`: the bytes of every token id. Immutable, with a digest of the content that is equal on all platforms."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from guideway import _kernel, disk
from guideway.arguments import short_repr
from guideway.errors import InvalidTokenError, LimitExceededError
from guideway.tokenizers.report import VocabularyReport, report

if TYPE_CHECKING:
    from guideway._kernel import KernelVocabulary

__all__ = ["Vocabulary"]

_FORMAT = b"guideway vocabulary 3\n"  # the number changes with the encoding from which the fingerprint is computed
_KIND = f"vocabulary-4-{sys.byteorder}"  # kind of the cache file; the number changes with the format of the file
_STORE_TOKENS = 2_000  # a smaller vocabulary is not stored on disk: it is built as fast as it is read
_KERNELS_KEPT = 4  # maximum number of `KernelVocabulary` objects with limits other than the defaults
_KERNEL_LOCK = threading.Lock()  # ensures that concurrent first uses build one `KernelVocabulary`


class Vocabulary:
    """The bytes of every token id, and the ids that end a text or are special.

    Instances are immutable; assignment raises `AttributeError`. They are compared by content.

    Args:
        token_bytes: The bytes of each id; `b""` for ids without text. Several ids may have equal bytes.
        eos_ids: Ids that end a text.
        special_ids: Ids without text, such as BOS, padding and role markers. For EOS and special ids, `token_bytes` has
            their names (such as `<|im_end|>`), by which a grammar can refer to them. Without such a reference, they are
            never part of a text.

    Raises:
        TypeError: A token is not bytes.
        InvalidTokenError: An EOS or special id is not in the table.
    """

    __slots__ = (
        "_block",
        "_fingerprint",
        "_kernel",
        "_kernels",
        "_silent",
        "_size",
        "_tokens",
        "eos_ids",
        "special_ids",
    )

    eos_ids: tuple[int, ...]
    special_ids: tuple[int, ...]
    _block: bytes  # all token bytes in one block (layout: `flatten` in the kernel); compared, digested and pickled
    _size: int
    _tokens: tuple[bytes, ...] | None
    _silent: frozenset[int]
    _fingerprint: str | None
    _kernel: KernelVocabulary | None
    _kernels: dict[tuple[int, int], KernelVocabulary]

    def __init__(
        self, token_bytes: Sequence[bytes], eos_ids: Iterable[int] = (), special_ids: Iterable[int] = ()
    ) -> None:
        tokens = tuple(token_bytes)
        self._fill(_kernel.flatten(tokens), len(tokens), eos_ids, special_ids)
        object.__setattr__(self, "_tokens", tokens)

    def _fill(self, block: bytes, size: int, eos_ids: Iterable[int], special_ids: Iterable[int]) -> None:
        put = object.__setattr__
        put(self, "_block", block)
        put(self, "_size", size)
        put(self, "eos_ids", _id_set(eos_ids, size, "eos_ids"))
        put(self, "special_ids", _id_set(special_ids, size, "special_ids"))
        put(self, "_silent", frozenset(self.eos_ids).union(self.special_ids))
        put(self, "_tokens", None)
        put(self, "_fingerprint", None)
        put(self, "_kernel", None)
        put(self, "_kernels", {})

    @property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes of each id; for EOS and special ids, their names."""
        known = self._tokens
        if known is None:
            known = _kernel.unflatten(self._block)
            object.__setattr__(self, "_tokens", known)
        return known

    @property
    def fingerprint(self) -> str:
        """Digest of the content as 32 hexadecimal digits. It is equal in every process and on every platform."""
        known = self._fingerprint
        if known is None:
            digest = hashlib.sha256(_FORMAT)
            for ids in (self.eos_ids, self.special_ids):
                digest.update(np.array([len(ids), *ids], dtype="<u8").tobytes())
            digest.update(self._block)
            known = digest.hexdigest()[:32]
            object.__setattr__(self, "_fingerprint", known)
        return known

    @property
    def kernel(self) -> KernelVocabulary:
        """The vocabulary in the form in which the kernel compiles constraints for it.

        It is built, or read from the disk cache, at the first use; it is not pickled. `LimitExceededError` is raised if
        the vocabulary exceeds a limit of the kernel.
        """
        table = self._kernel
        if table is None:
            with _KERNEL_LOCK:
                table = self._kernel or self._read_or_make()
                object.__setattr__(self, "_kernel", table)
        return table

    def kernel_within(self, max_states: int, max_work: int) -> KernelVocabulary:
        """Return the same as `kernel`, with other limits for the automata that are compiled for it.

        The four results that were made last are cached.
        """
        known = self._kernels.get((max_states, max_work))
        if known is None:
            with _KERNEL_LOCK:
                known = self._read_or_make(max_states=max_states, max_work=max_work)
                while len(self._kernels) >= _KERNELS_KEPT:
                    del self._kernels[next(iter(self._kernels))]
                self._kernels[max_states, max_work] = known
        return known

    def _read_or_make(self, max_states: int = 4_000_000, max_work: int = 400_000_000) -> KernelVocabulary:
        files = disk.cache() if len(self) >= _STORE_TOKENS else None
        if files is not None and (found := files.get(_KIND, self.fingerprint)) is not None:
            try:
                return _kernel.KernelVocabulary.load(
                    *self._fields(), np.frombuffer(found, dtype=np.uint8), max_states=max_states, max_work=max_work
                )
            except ValueError:  # the file has other tokens or another format: build the table
                files.drop(_KIND, self.fingerprint)
        try:
            made = _kernel.KernelVocabulary.of_block(*self._fields(), max_states=max_states, max_work=max_work)
        except ValueError as error:
            raise LimitExceededError(f"the vocabulary exceeds a limit of the kernel: {error}") from None
        if files is not None:
            files.put(_KIND, self.fingerprint, made.save())
        return made

    def bytes_of(self, ids: Iterable[int], *, special: bool = False) -> bytes:
        """Return the concatenated bytes of ids.

        Args:
            ids: Token ids.
            special: Include the names of EOS and special ids, which otherwise have no bytes.

        Raises:
            InvalidTokenError: An id is not in the vocabulary.
        """
        return b"".join([self.piece(i, special=special) for i in self.checked(ids)])

    def piece(self, token_id: int, *, special: bool = False) -> bytes:
        """Return the bytes of one id.

        EOS and special ids have b"", or with `special` their names. The id is not checked.
        """
        return b"" if token_id in self._silent and not special else self.token_bytes[token_id]

    def pieces(self, ids: Sequence[int]) -> list[bytes]:
        """Return the bytes of each id; b"" for EOS and special ids.

        The ids are not checked: all must be in the vocabulary.
        """
        silent, known = self._silent, self.token_bytes
        return [b"" if token_id in silent else known[token_id] for token_id in ids]

    def checked(self, ids: Iterable[int]) -> list[int]:
        """Return the ids as ints. Raises `InvalidTokenError` if an id is not an integer or not in the vocabulary."""
        result = []
        for token_id in ids:
            try:
                plain = int(token_id.__index__())
            except AttributeError:
                raise InvalidTokenError(f"a token id must be an integer, got {short_repr(token_id)}") from None
            if not 0 <= plain < len(self):
                raise InvalidTokenError(
                    f"token id must be in 0..{len(self) - 1} (the vocabulary), got {short_repr(plain)}"
                )
            result.append(plain)
        return result

    @property
    def special_tokens(self) -> dict[str, int]:
        """The ids of special and EOS tokens by name. Ids with an empty name are left out."""
        named = ((self.token_bytes[i].decode("utf-8", "replace"), i) for i in (*self.special_ids, *self.eos_ids))
        return {name: i for name, i in named if name}

    def unusable(self) -> dict[int, str]:
        """Return the ids without text, each with the reason: "special" (also for EOS) or "empty"."""
        special = self._silent
        return {
            i: "special" if i in special else "empty" for i, t in enumerate(self.token_bytes) if not t or i in special
        }

    def report(self) -> VocabularyReport:
        """Return a report on usable and unusable ids. `print(vocabulary.report())` shows it."""
        return report(self)

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())  # bytes objects cache their hash

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, eos_ids={list(self.eos_ids)}, {len(self.special_ids)} special)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Vocabulary is immutable, cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Vocabulary is immutable, cannot delete {name}")

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[Callable[..., Vocabulary], tuple[object, ...]]:
        return _restored, (self._block, self.eos_ids, self.special_ids, _FORMAT, self.fingerprint)

    def _fields(self) -> tuple[bytes, tuple[int, ...], tuple[int, ...]]:
        return self._block, self.eos_ids, self.special_ids


def _restored(
    block: bytes, eos_ids: tuple[int, ...], special_ids: tuple[int, ...], version: bytes, fingerprint: str
) -> Vocabulary:
    """Restore a pickled vocabulary without computing tokens and digest again."""
    made = Vocabulary.__new__(Vocabulary)
    made._fill(block, int.from_bytes(block[:4], "little"), eos_ids, special_ids)
    if version == _FORMAT:
        object.__setattr__(made, "_fingerprint", fingerprint)
    return made


def _id_set(ids: Iterable[int], size: int, name: str) -> tuple[int, ...]:
    found = sorted({index(i) for i in ids})
    for token_id in found:
        if not 0 <= token_id < size:
            raise InvalidTokenError(f"{name} has the id {token_id}; ids must be in 0..{size - 1}")
    return tuple(found)
