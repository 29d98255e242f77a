"""Repr, equality and hash of nested constraints, without recursion.

They are computed from `_content`, which returns nested tuples of constraints and plain values, and from `_shown`, which
returns texts and constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Structured", "content_hash", "same", "shown"]

MAX_SHOWN = 20_000
"""Maximum number of characters of a repr."""


class Structured(ABC):
    """The base of `Constraint`: repr, equality and hash by content."""

    @abstractmethod
    def _content(self) -> object:
        """Return a hashable value from which equality and hash are computed.

        Constraints of one class are equal if their contents and what `_equal_unhashed` compares are equal.
        """

    def _equal_unhashed(self, other: Any) -> bool:
        """Return whether the values that `_content` omits, because they cannot be hashed, equal those of `other`.

        `other` is a constraint of the same class.
        """
        return True

    def _shown(self) -> tuple[object, ...]:
        """Return what the repr consists of: texts, and nested constraints.

        Classes that define `__repr__` do not need it.
        """
        return (type(self).__name__,)

    def __repr__(self) -> str:
        return shown(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structured) and same(self, other)

    def __hash__(self) -> int:
        return content_hash(self)


def shown(source: Structured) -> str:
    """Return the repr of a constraint, truncated to `MAX_SHOWN` characters."""
    plain = type(source).__repr__
    made: list[str] = []
    todo: list[object] = list(reversed(source._shown()))
    length = 0
    while todo:
        one = todo.pop()
        if isinstance(one, Structured) and type(one).__repr__ is plain:
            todo += reversed(one._shown())
            continue
        text = one if isinstance(one, str) else repr(one)
        length += len(text)
        made.append(text)
        if length > MAX_SHOWN:
            return "".join(made)[:MAX_SHOWN] + "…"
    return "".join(made)


def same(one: Structured, other: Structured) -> bool:
    """Return whether two constraints are of one class and equal, and so are the constraints inside them."""
    todo: list[tuple[Any, Any]] = [(one, other)]
    known: set[tuple[int, int]] = set()
    while todo:
        left, right = todo.pop()
        if left is right:
            continue
        if isinstance(left, Structured) and isinstance(right, Structured):
            if type(left) is not type(right) or not left._equal_unhashed(right):
                return False
            if (id(left), id(right)) not in known:
                known.add((id(left), id(right)))
                todo.append((left._content(), right._content()))
        elif isinstance(left, tuple) and isinstance(right, tuple):
            if len(left) != len(right):
                return False
            todo += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


def content_hash(source: Structured) -> int:
    """Return a hash that is equal for constraints of one class with equal content."""
    done: dict[int, int] = {}
    contents: dict[int, Any] = {}
    todo = [source]
    while todo:
        one = todo[-1]
        if id(one) not in contents:
            contents[id(one)] = one._content()
        waiting = [inner for inner in _inside(contents[id(one)]) if id(inner) not in done]
        if waiting:
            todo += waiting
            continue
        todo.pop()
        done[id(one)] = hash((type(one), _hashed(contents[id(one)], done)))
    return done[id(source)]


def _inside(content: Any) -> list[Structured]:
    """Return the constraints in a result of `_content`. It recurses only into nested tuples, which have few levels."""
    if isinstance(content, tuple):
        return [inner for part in content for inner in _inside(part)]
    return [content] if isinstance(content, Structured) else []


def _hashed(content: Any, done: dict[int, int]) -> int:
    if isinstance(content, tuple):
        return hash(tuple(_hashed(part, done) for part in content))
    return done[id(content)] if isinstance(content, Structured) else hash(content)
