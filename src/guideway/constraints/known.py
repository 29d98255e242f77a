"""A cache of constraints: constructing a constraint again does not lower it again while it is cached.

The new object gets the `__dict__` of the cached one. This is possible because constraints are immutable. `shared` wraps
the constructors of the constraints of this library. The key of a constructor call has the class and the arguments:
plain data by content, classes and nested constraints by address. If an argument contains a class, the key also has the
day, because the texts of types such as Pydantic's `FutureDate` depend on the date.

`DeferredLowering` constraints are lowered at the end of the constructor, so that the constructor raises the errors. If
the disk cache has the program of an equal constraint, the constraint is valid, and is lowered only when its grammar is
needed.
"""

from __future__ import annotations

import copyreg
import hashlib
import io
import marshal
import operator
import pickle
import re
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import reduce, wraps
from time import thread_time, time
from typing import TYPE_CHECKING, Any, cast

from guideway import caching, disk
from guideway._kernel import nests_deeper
from guideway.constraints import programs
from guideway.constraints.structural import Structured
from guideway.grammar.nodes import Grammar
from guideway.jsontext.copying import MAX_C_DEPTH

if TYPE_CHECKING:
    from guideway.constraints.base import Constraint

__all__ = ["DeferredLowering", "check_lowering", "content_key", "day", "in_library", "shared", "states"]

MAX_BYTES = 32 << 20
"""The maximum size in bytes of all cached `__dict__` objects, as `_weight` estimates it."""

_NODE_BYTES = 1000  # the estimated size of a grammar node with its expressions
_MAX_VALUES = 1_000_000
_MAX_CHARACTERS = 64 << 20

State = dict[str, Any]


class States:
    """The cache of the `__dict__` objects of constraints, by constructor call.

    The least recently used entries are dropped first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()
        caching.register("guideway.constraints.known.states", self.clear, self.info)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._held: OrderedDict[bytes, tuple[State, int, list[object]]] = OrderedDict()
            self._used = self._hits = self._misses = 0

    def info(self) -> caching.CacheInfo:
        """Return the numbers of entries, hits and misses, and an upper limit of the number of entries."""
        with self._lock:
            return caching.CacheInfo(len(self._held), MAX_BYTES // _NODE_BYTES, self._hits, self._misses)

    def get(self, key: bytes) -> State | None:
        with self._lock:
            found = self._held.get(key)
            if found is None:
                self._misses += 1
                return None
            self._hits += 1
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: bytes, state: State, held: list[object]) -> None:
        """Cache the `__dict__` of a constraint, unless there is one for the key or it is too large.

        `held` has the objects that the key identifies by their addresses. They are stored, so that no other object can
        get these addresses.
        """
        weight = _weight(state)
        with self._lock:
            if key in self._held or weight > MAX_BYTES:
                return
            self._held[key] = state, weight, held
            self._used += weight
            while self._used > MAX_BYTES:
                self._used -= self._held.popitem(last=False)[1][1]


def _weight(state: State) -> int:
    grammar = state.get("_grammar")
    nodes = len(grammar.nodes) if isinstance(grammar, Grammar) else 0
    return _NODE_BYTES * (1 + nodes) + 4 * int(state.get("_size", 0))


states = States()


def in_library(kind: type) -> bool:
    """Return whether this library defines a class."""
    return kind.__module__.startswith("guideway.")


def shared(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap a constructor: a new object uses the `__dict__` that `states` has for its arguments, and `init` is not run.

    If there is none, `init` is run, and the `__dict__` of the object is cached. Only `init` is run if the arguments
    have no key (see `_key`), for classes of other libraries, and if caches are disabled (`disk.is_enabled`).
    """

    @wraps(init)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        kind = type(self)
        # `__dict__` is not empty if the constructor of a subclass calls this one
        if self.__dict__ or not disk.is_enabled() or not in_library(kind):
            init(self, *args, **kwargs)
            return
        named = kind._named_arguments(args, kwargs)
        found = _key(kind, *named)
        if found is None:
            init(self, *args, **kwargs)
            return
        key, held = found
        if (state := states.get(key)) is not None:
            self.__dict__ = state
            return
        self._size = len(key) + sum(one.get("_size", 0) for one in held if type(one) is dict)
        # If the key identifies no object by its address, it is equal in every process.
        self._stable = _stable_key(kind, *named) if held else hashlib.blake2b(key, digest_size=16).digest()
        init(self, *args, **kwargs)
        states.put(key, self.__dict__, held)

    return construct


_MODULES = frozenset({"typing", "types", "re"})


def _is_written(kind: type) -> bool:
    """Return whether objects of a class are written by content: it is of `_MODULES` or of `guideway.constraints`."""
    name = kind.__module__
    return name in _MODULES or name.startswith("guideway.constraints.")


MAX_REDUCED = 16
"""The maximum number of objects in a key that are written because of `_is_written`, such as parametrized types.

They may be nested, and the pickler is recursive.
"""

MAX_KEY_BYTES = 8 << 20
"""The maximum size of a key."""


class _Bounded(io.BytesIO):
    """A buffer that raises `OverflowError` if more than `MAX_KEY_BYTES` are written."""

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        if self.tell() > MAX_KEY_BYTES:
            raise OverflowError
        return written


class _Arguments(pickle.Pickler):
    """Writes the arguments of a constructor call.

    Plain data is written by content. A constraint is written as the address of its `__dict__`, which equal constraints
    share. A class is written as its address and that of its Pydantic schema. Other objects are written by content if
    `_is_written` allows their class: parametrized types, patterns, and objects of `guideway.constraints`. At most
    `MAX_REDUCED` of them are allowed. Raises `TypeError` for all other values.

    A value that occurs several times is written each time. `held` keeps alive what is written by address: constraints
    with their `__dict__`, and classes with their Pydantic schemas. `has_class`: whether a class was written.
    """

    def __init__(self, file: _Bounded) -> None:
        super().__init__(file, 5)
        self.fast = True
        self.held: list[object] = []
        self.has_class = False
        self._seen: set[int] = set()
        self._reduced = 0

    def reducer_override(self, value: Any) -> Any:
        if id(value) in _FUNCTIONS:
            return NotImplemented
        seen = id(value) in self._seen
        if isinstance(value, Structured):
            self._hold(seen, value, value.__dict__)
            return _reference, (id(value.__dict__),)
        if isinstance(value, type):
            self.has_class = True
            marker = getattr(value, "__pydantic_core_schema__", None)  # another object after Pydantic rebuilds a model
            self._hold(seen, value, (marker,))
            return _reference, (id(value), id(marker))
        if type(value) is not types.FunctionType and _is_written(type(value)):
            self._seen.add(id(value))
            self._reduced += not seen
            if self._reduced > MAX_REDUCED:
                raise TypeError(f"more than {MAX_REDUCED} parametrized types")
            return NotImplemented
        raise TypeError(f"{type(value).__name__} is not plain data")

    def _hold(self, seen: bool, value: object, *others: object) -> None:
        """Keep a value and the other objects whose addresses identify it alive, unless it was seen before."""
        if not seen:
            self._seen.add(id(value))
            self.held += (value, *others)


def _reference(*_: int) -> None:
    """Represents an object in a key by the given addresses. Plain data cannot contain this function."""


# `_FUNCTIONS`: the addresses of the functions that pickles contain: `_reference`, `getitem` (for `Optional[int]`),
# `reduce` and `or_` (for `int | None`), and `_COMPILE` (for patterns).
# Addresses are compared, because `==` may run code of users.
_COMPILE = copyreg.dispatch_table[re.Pattern](re.compile(""))[0]
_FUNCTIONS = frozenset(map(id, (_reference, operator.getitem, operator.or_, reduce, _COMPILE)))


def _key(kind: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[bytes, list[object]] | None:
    """Return the key of a constructor call, and the objects that it identifies by their addresses.

    None: `_Arguments` refuses an argument, or the arguments are too large or nested too deep.
    """
    given = (kind.__module__, kind.__qualname__, args, sorted(kwargs.items()))
    if any(nests_deeper(one, MAX_C_DEPTH) for one in (*args, *kwargs.values()) if type(one) in (dict, list, tuple)):
        return None
    written = _Bounded()
    pickler = _Arguments(written)
    try:
        pickler.dump(given)
    except Exception:  # the constructor reports what is wrong
        return None
    key = written.getvalue()
    return key + b"%d" % day() if pickler.has_class else key, pickler.held


def day() -> int:
    """Return the number of days since 1970 in UTC. Types whose texts depend on the date are lowered again each day."""
    return int(time() // 86_400)


def _stable_key(kind: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes | None:
    """Return a digest of a constructor call that is equal in every process; None: an argument has no such digest."""
    try:
        given = [_plain(one) for one in args], sorted((name, _plain(one)) for name, one in kwargs.items())
    except TypeError:
        return None
    return content_key((kind.__module__, kind.__qualname__, *given))


_PLAIN = (str, int, float, bool, type(None))


def _plain(value: Any) -> tuple[str, Any]:
    """Return an argument as plain data, a constraint as its digest. Raises `TypeError` for other values."""
    if isinstance(value, Structured):
        if (key := value.__dict__.get("_stable")) is None:
            raise TypeError("a constraint without a stable key")
        return "constraint", key
    if type(value) in _PLAIN:
        return "plain", value
    if type(value) is dict:
        if any(isinstance(one, Structured) for one in value.values()):
            return "parts", [(name, _plain(one)) for name, one in value.items()]
        return "plain", value
    if type(value) in (list, tuple):
        return "list", [_plain(one) for one in value]
    if in_library(type(value)):
        if hasattr(value, "_content"):
            return type(value).__name__, [_plain(one) for one in value._content()]
        if is_dataclass(value):
            return type(value).__name__, [_plain(getattr(value, field.name)) for field in fields(value)]
    raise TypeError(f"{type(value).__name__} is not plain data")


def content_key(content: object) -> bytes | None:
    """Return a digest of plain data. It is equal in every process, and for equal content only.

    None for values that are not plain data, are nested too deep, or are too large if shared parts are counted
    repeatedly.
    """
    if nests_deeper(content, MAX_C_DEPTH) or not _is_small(content):
        return None
    try:
        data = marshal.dumps(cast(Any, content), 2)  # version 2 does not encode sharing
    except ValueError:
        return None
    return hashlib.blake2b(data, digest_size=16).digest()


def _is_small(content: object) -> bool:
    """Return whether a value is small, where shared parts are counted repeatedly. A cyclic value is not small."""
    todo: list[object] = [content]
    values = characters = 0
    while todo:
        one = todo.pop()
        if type(one) is str:
            characters += len(one)
        elif type(one) is dict:
            values += len(one) + 1
            characters += sum([len(key) for key in one if type(key) is str])
            todo += one.values()
        elif type(one) is list or type(one) is tuple:
            values += len(one) + 1
            todo += one
        if values > _MAX_VALUES or characters > _MAX_CHARACTERS:
            return False
    return True


class DeferredLowering:
    """The base class of constraints whose lowering can take long.

    Attributes:
        _stored: The program of an equal constraint, which the constructor loaded from the disk; None: it loaded none,
            or this object is a changed copy.
        _seconds: The processor time of the lowering, with that of the constraints inside it; 0: it was not measured.
        _size: The size of the key of the constructor call and of those of the constraints inside, in bytes.
        _stable: A digest of the constructor call that is equal in every process: the key on the disk. None or missing:
            the program is not stored under such a key.
    """

    if TYPE_CHECKING:
        _size: int
        _stable: bytes | None

        def grammar(self) -> Grammar: ...

    _stored: bytes | None = None
    _seconds = 0.0
    _ahead = 0
    """The value of `Grammar.ahead`."""

    def _prepare(self, *parts: Constraint[Any]) -> None:
        """Load the program from the disk, or lower the constraint if none is found. The constructor calls this last.

        The disk is not searched for a constraint that is small (`programs.LOOK_BYTES`) or has no `_stable`.

        Args:
            parts: The constraints inside it. Their times of lowering count as its own.
        """
        key = self.__dict__.get("_stable")
        if key is None:  # the program will not be stored, so no time is measured
            self.grammar()
            return
        if (program := programs.load(key, self._size)) is not None:
            self._stored = program
            return
        start = thread_time()
        self.grammar()
        self._seconds = thread_time() - start + sum(part.__dict__.get("_seconds", 0.0) for part in parts)


def check_lowering(constraint: Constraint[Any]) -> None:
    """Raise the errors of lowering a constraint.

    A constraint whose program is from the disk has none, and is not lowered.
    """
    part = constraint._lowered_part()
    if not isinstance(part, DeferredLowering) or part._stored is None:
        constraint.grammar()
