"""KV caches as immutable values, shared by the engines.

`RowCache` is the first `length` tokens of one row of a batch. The keys and values of tokens in a batch never change;
new tokens are appended. So a `RowCache` stays valid when its batch grows, and forks and rewinds copy nothing.
`StateCache` is the complete cache of a model that does not support rollback: a recurrent state, or a sliding window. It
is copied before it is modified.

Each class of engines defines its operations on arrays in one `ArrayOps` object. A cache refers to this object, so an
engine recognises a cache of another class of engines.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache, check_truncation
from guideway.errors import EngineError

__all__ = [
    "ArrayBatch",
    "ArrayOps",
    "Claim",
    "RowBatch",
    "RowCache",
    "StateCache",
    "alone",
    "check_arrays",
    "closed_model",
    "export_cache",
    "foreign_cache",
    "join_rows",
    "layer_names",
    "own_cache",
    "own_rows",
    "own_state",
    "padded_batch",
    "restore_rows",
    "restore_state",
    "row_caches",
    "state_not_truncated",
    "whole_batch",
]


def _single_array(whole: Any) -> Iterable[tuple[str, Any]]:
    return (("state", whole),)


def _no_store(*_: Any) -> Any:
    raise TypeError("this engine has no stores of rows")


def _no_parts(whole: Any, arrays: Mapping[str, Any]) -> None:
    raise TypeError("this engine does not restore states from named arrays")


@dataclass(frozen=True, eq=False)
class ArrayOps:
    """Operations of one array library. Each class of engines has one instance.

    Attributes:
        concat: Joins arrays along the first axis. A single array may be returned without copying.
        to_numpy: Converts an array to a contiguous NumPy array.
        from_numpy: Converts a NumPy array to an array with the type and device of the second argument.
        zeros: Returns an array of zeros with a shape, and the type and device of another array. Needed by `row_store`.
        copy: Returns a copy of an array, in memory that no other array uses. Needed by `row_store` and `alone`.
        copy_row: Returns copies of the arrays of one row, for `alone`. They may be kept for a long time, so they are
            not in memory that the engine uses for its runs. None: `copy` is called for each array.
        state_arrays: The arrays of a `StateCache.whole`, with names; by default `whole` is one array.
        replace_state: Replaces arrays of a copied `StateCache.whole`, by name. Needed by `restore_state` only.
    """

    concat: Callable[[Sequence[Any]], Any]
    to_numpy: Callable[[Any], NDArray[Any]]
    from_numpy: Callable[[NDArray[Any], Any], Any]
    zeros: Callable[[tuple[int, ...], Any], Any] = _no_store
    copy: Callable[[Any], Any] = _no_store
    copy_row: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    state_arrays: Callable[[Any], Iterable[tuple[str, Any]]] = _single_array
    replace_state: Callable[[Any, Mapping[str, Any]], None] = _no_parts


class RowBatch(Protocol):
    """The keys and values of rows that ran together.

    Tokens may be appended to a batch. The keys and values of the tokens that it has must not change.
    """

    @property
    def ops(self) -> ArrayOps:
        """The operations on its arrays."""
        ...

    @property
    def tip(self) -> int:
        """The index after the last token on the token axis. Tokens of a failed run do not count."""
        ...

    @property
    def arrays(self) -> Sequence[Any]:
        """Keys and values of all layers in turn, each [row, head, token, channel], with at least `tip` tokens."""
        ...

    @property
    def row_bytes(self) -> int:
        """Allocated memory per row, in bytes."""
        ...


B = TypeVar("B", bound=RowBatch)


@dataclass(eq=False)
class ArrayBatch:
    """A batch in which the keys and values of no token are modified.

    Each run makes new arrays, except for a `GrowingBatch` of ONNX Runtime.

    Attributes:
        ops: As in `RowBatch`.
        arrays: As in `RowBatch`. All rows end at the last token of the arrays.
        starts: The index of the first token of each row on the token axis; None: 0 for all rows.
        is_copy: Whether `alone` copied the arrays to memory that no other batch uses.
    """

    ops: ArrayOps
    arrays: tuple[Any, ...]
    starts: tuple[int, ...] | None = None
    is_copy: bool = False

    @property
    def tip(self) -> int:
        return int(self.arrays[0].shape[2])

    @property
    def rows(self) -> int:
        return int(self.arrays[0].shape[0])

    @property
    def row_bytes(self) -> int:
        return sum(array.nbytes // array.shape[0] for array in self.arrays)


class Claim:
    """The place of a row in a batch. The place is in use while a cache refers to this object.

    All caches of the row share this object. So a batch can move the row, and then changes only this object, to which it
    has a weak reference.

    Attributes:
        row: The index of the row.
        start: The index of its first token on the token axis.
    """

    __slots__ = ("__weakref__", "row", "start")

    def __init__(self, row: int, start: int) -> None:
        self.row, self.start = row, start


class RowCache(Generic[B]):
    """The first `length` tokens of one row of a batch.

    Args:
        batch: The batch.
        row: The index of the row.
        length: The number of tokens.
        start: The index of the first token on the token axis.
        claim: The claim of other caches of this row, with the same `row` and `start`; None: there are no others, or the
            batch never moves rows.
    """

    __slots__ = ("batch", "claim", "length")

    def __init__(self, batch: B, row: int, length: int, start: int = 0, claim: Claim | None = None) -> None:
        self.batch, self.length = batch, length
        self.claim = Claim(row, start) if claim is None else claim

    @property
    def row(self) -> int:
        """The index of the row."""
        return self.claim.row

    @property
    def start(self) -> int:
        """The index of the first token on the token axis."""
        return self.claim.start

    @property
    def ops(self) -> ArrayOps:
        return self.batch.ops

    @property
    def nbytes(self) -> int:
        return self.batch.row_bytes

    def truncated(self, length: int) -> RowCache[B]:
        check_truncation(self, length)
        return RowCache(self.batch, self.row, length, self.start, self.claim)

    def used(self) -> list[Any]:
        """Return the keys and values of these tokens: views of shape [1, head, token, channel]."""
        row, start = self.claim.row, self.claim.start
        end = start + self.length
        return [array[row : row + 1, :, start:end] for array in self.batch.arrays]


def alone(cache: Cache) -> Cache:
    """Return an equal cache. For a row of an `ArrayBatch`, the result does not keep the other rows in memory.

    If the engine has `ArrayOps.copy_row`, a batch of one row is copied, too. Other caches, and copies that this
    function made, are returned unchanged.
    """
    if not isinstance(cache, RowCache) or not isinstance(cache.batch, ArrayBatch) or cache.batch.is_copy:
        return cache
    ops, parts = cache.ops, cache.used()
    if ops.copy_row is not None:
        copies = ops.copy_row(parts)
    elif cache.batch.rows > 1:
        copies = [ops.copy(part) for part in parts]
    else:
        return cache
    return RowCache(ArrayBatch(ops, tuple(copies), is_copy=True), 0, cache.length)


class StateCache:
    """A cache that cannot be truncated: the complete state of one row.

    `whole`: the object of the library, which is never modified.
    """

    __slots__ = ("length", "ops", "whole")

    def __init__(self, ops: ArrayOps, whole: Any, length: int) -> None:
        self.ops, self.whole, self.length = ops, whole, length

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for _, array in self.ops.state_arrays(self.whole))

    def truncated(self, length: int) -> StateCache:
        raise state_not_truncated()

    def copy_whole(self) -> Any:
        """Return a copy of the library's cache, which may be modified."""
        return copy.deepcopy(self.whole)


def row_caches(batch: B, length: int) -> list[Cache]:
    """Return a cache for each row of a batch. All rows have `length` tokens."""
    return [RowCache(batch, row, length) for row in range(batch.arrays[0].shape[0])]


def whole_batch(rows: Sequence[RowCache[B]], length: int) -> B | None:
    """Return the batch if the caches are exactly its rows, in order, with all its `length` tokens; else None."""
    first = rows[0].batch
    if first.tip != length or first.arrays[0].shape[0] != len(rows):
        return None
    return first if all(one.batch is first and one.row == index for index, one in enumerate(rows)) else None


def padded_batch(rows: Sequence[RowCache[ArrayBatch]]) -> ArrayBatch | None:
    """Return the batch if the caches are exactly its rows, in order, with all their tokens; else None.

    The rows may begin at different indexes.
    """
    first = rows[0].batch
    if first.arrays[0].shape[0] != len(rows):
        return None
    whole = all(
        one.batch is first and one.row == index and one.start + one.length == first.tip
        for index, one in enumerate(rows)
    )
    return first if whole else None


def join_rows(rows: Sequence[RowCache[B]]) -> tuple[Any, ...]:
    """Join the arrays of rows with equal lengths along the row axis."""
    concat = rows[0].ops.concat
    return tuple(concat(parts) for parts in zip(*(one.used() for one in rows), strict=True))


def own_cache(cache: Cache, ops: ArrayOps) -> RowCache[Any] | StateCache:
    """Return the argument if it is a cache of an engine with these operations.

    Raises `EngineError` for other caches.
    """
    if not isinstance(cache, (RowCache, StateCache)) or cache.ops is not ops:
        raise foreign_cache(cache)
    return cache


def own_rows(cache: Cache, ops: ArrayOps) -> RowCache[Any]:
    """Return the argument if it is a `RowCache` of an engine with these operations.

    Raises `EngineError` for other caches.
    """
    if not isinstance(cache, RowCache) or cache.ops is not ops:
        raise foreign_cache(cache)
    return cache


def own_state(cache: Cache, ops: ArrayOps) -> StateCache:
    """Return the argument if it is a `StateCache` of an engine with these operations.

    Raises `EngineError` for other caches.
    """
    if not isinstance(cache, StateCache) or cache.ops is not ops:
        raise foreign_cache(cache)
    return cache


def foreign_cache(cache: Cache) -> EngineError:
    """Return (not raise) the error for a cache of another engine."""
    return EngineError(f"the cache belongs to another engine or model: {type(cache).__name__}")


def state_not_truncated() -> ValueError:
    """Return (not raise) the error for the truncation of a `StateCache`."""
    return ValueError("the state of a recurrent model cannot be truncated; feed the tokens again")


def closed_model() -> EngineError:
    """Return (not raise) the error for a call of a closed engine."""
    return EngineError("the model is closed; load it again")


def layer_names(count: int) -> list[str]:
    """Return the names of `count` exported arrays: "0.key", "0.value", "1.key", …."""
    return [f"{index // 2}.{'value' if index % 2 else 'key'}" for index in range(count)]


def export_cache(cache: Cache, ops: ArrayOps, names: Sequence[str] | None = None) -> Arrays:
    """Return the arrays of a cache by name, as NumPy arrays.

    `names`: the names of the keys and values of a `RowCache`; None: `layer_names`.
    """
    own = own_cache(cache, ops)
    if isinstance(own, StateCache):
        found = {name: ops.to_numpy(array) for name, array in ops.state_arrays(own.whole)}
        return {**found, "length": np.array([own.length])}
    parts = own.used()
    return {name: ops.to_numpy(part) for name, part in zip(names or layer_names(len(parts)), parts, strict=True)}


def restore_rows(
    arrays: Arrays, like: RowCache[Any], names: Sequence[str] | None = None
) -> tuple[tuple[Any, ...], int]:
    """Convert an exported row to arrays of the library. Returns the arrays and the number of tokens.

    `like`: a cache of the same model. `names`: as in `export_cache`.

    Raises:
        EngineError: The names, shapes or types differ.
    """
    ops, parts = like.ops, like.used()
    names = names or layer_names(len(parts))
    first = arrays.get(names[0])
    length = int(first.shape[2]) if first is not None and first.ndim == 4 else 0
    shapes = [(1, part.shape[1], length, part.shape[3]) for part in parts]
    dtypes = [ops.to_numpy(part).dtype for part in parts]
    check_arrays(arrays, {n: (s, d) for n, s, d in zip(names, shapes, dtypes, strict=True)})
    return tuple(ops.from_numpy(arrays[name], part) for name, part in zip(names, parts, strict=True)), length


def restore_state(arrays: Arrays, like: StateCache) -> StateCache:
    """Return the cache of an exported state. `like`: a cache of the same model.

    Raises:
        EngineError: The names, shapes or types differ.
    """
    ops, whole = like.ops, like.copy_whole()
    found = dict(ops.state_arrays(whole))
    expected = {name: (tuple(array.shape), ops.to_numpy(array).dtype) for name, array in found.items()}
    check_arrays(arrays, {**expected, "length": ((1,), None)})
    ops.replace_state(whole, {name: ops.from_numpy(arrays[name], array) for name, array in found.items()})
    return StateCache(ops, whole, int(np.asarray(arrays["length"], dtype=np.int64)[0]))


def check_arrays(arrays: Arrays, expected: Mapping[str, tuple[tuple[int, ...], np.dtype[Any] | None]]) -> None:
    """Check names, shapes and types of exported arrays. `expected`: shape and type by name; type None: any type.

    Raises:
        EngineError: They differ.
    """
    if set(arrays) != set(expected):
        raise EngineError(
            f"expected {len(expected)} arrays ({_names(expected)}) of this model, got {len(arrays)} ({_names(arrays)})"
        )
    for name, (shape, dtype) in expected.items():
        array = arrays[name]
        if array.shape != shape or (dtype is not None and array.dtype != dtype):
            kind = "an array" if dtype is None else str(dtype)
            raise EngineError(f"{name} must be {kind} {shape}, got {array.dtype} {array.shape}")


def _names(arrays: Mapping[str, Any]) -> str:
    names = list(arrays)
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "") or "none"
