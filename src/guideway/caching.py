"""Caches of function results with a limited size, and the registry that clears and reports all caches.

The decorator `@cached(entries)` is for functions whose results depend only on their arguments. Each cache has a maximum
number of entries. A cache whose arguments can be long texts can also have a maximum number of characters.
`guideway.cache.clear()` empties all registered caches, `guideway.cache.info()` reports them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast

__all__ = ["CacheInfo", "Cached", "cached", "cached_property", "clear_all", "info", "local_cache", "register"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` as it is from Python 3.12 on: without a lock.

        Until Python 3.11, all objects of a class share one lock: while one computes the property, the others wait.
        """

        def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            made = instance.__dict__[self.attrname] = self.func(instance)
            return made


class CacheInfo(NamedTuple):
    """The state of one cache.

    Attributes:
        entries: Number of entries.
        max_entries: Maximum number of entries.
        hits: Number of lookups that found an entry; 0 if it is not counted.
        misses: Number of lookups that found none; 0 if it is not counted.
    """

    entries: int
    max_entries: int
    hits: int = 0
    misses: int = 0


class Cached(Protocol[P, R_co]):
    """A cached function. `__wrapped__`: the same function without the cache."""

    @property
    def __wrapped__(self) -> Callable[P, R_co]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


_caches: dict[str, tuple[Callable[[], object], Callable[[], CacheInfo]]] = {}


def register(name: str, clear: Callable[[], object], state: Callable[[], CacheInfo]) -> None:
    """Add a cache to the registry.

    Args:
        name: A unique name: module and function.
        clear: Removes all entries.
        state: Returns the state of the cache.
    """
    _caches[name] = clear, state


class _Decorator(Protocol):
    def __call__(self, function: Callable[P, R], /) -> Cached[P, R]: ...


def cached(entries: int, *, characters: int | None = None, size: Callable[..., int] | None = None) -> _Decorator:
    """Return a decorator that caches the results of a function. The least recently used entries are evicted first.

    The arguments of the function must be hashable. Exceptions are not cached.

    Args:
        entries: Maximum number of entries.
        characters: Maximum total size of the arguments for which results were computed since the cache was last empty;
            None: no maximum. The whole cache is emptied when this would be exceeded, so that a lookup takes no more
            time than without a maximum.
        size: A function of the same arguments that returns their size, needed for `characters`. It is called only if
            the function is called.
    """

    def decorate(function: Callable[P, R]) -> Cached[P, R]:
        used = 0

        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            nonlocal used
            added = 0 if size is None else size(*args, **kwargs)
            if characters is not None and used + added > characters:
                clear()
            used += added
            return function(*args, **kwargs)

        def clear() -> None:
            nonlocal used
            used = 0
            found.cache_clear()

        def state() -> CacheInfo:
            now = found.cache_info()
            return CacheInfo(now.currsize, entries, now.hits, now.misses)

        found = functools.lru_cache(maxsize=entries)(function if size is None else measured)
        found.__wrapped__ = function
        register(f"{function.__module__}.{function.__qualname__}", clear, state)
        return cast(Cached[P, R], found)

    return decorate


def local_cache(entries: int, function: Callable[P, R]) -> Callable[P, R]:
    """Return a function with a cache of at most `entries` results that is not in the registry.

    Use it for an object that is itself in a registered cache, so that clearing this cache frees both.
    """
    return cast(Any, functools.lru_cache(maxsize=entries)(function))  # type: ignore[no-any-return]  # as declared


def clear_all() -> None:
    """Empty all registered caches."""
    for clear, _ in list(_caches.values()):
        clear()


def info() -> dict[str, CacheInfo]:
    """Return the state of each registered cache, by name."""
    return {name: state() for name, (_, state) in sorted(_caches.items())}
