"""The result of `Constraint.captures`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from guideway.arguments import short_list, short_repr

__all__ = ["Capture", "Captures"]


@dataclass(frozen=True, slots=True)
class Capture:
    """A captured part of a text.

    Attributes:
        name: The name of the capture.
        start: The index of its first character in `whole`.
        end: The index after its last character in `whole`.
        whole: The complete text.
    """

    name: str
    start: int
    end: int
    whole: str = field(repr=False)
    """The complete text."""

    @property
    def text(self) -> str:
        """The captured text."""
        return self.whole[self.start : self.end]

    @property
    def byte_span(self) -> tuple[int, int]:
        """Start and end (exclusive) in the UTF-8 encoding of the complete text, in bytes."""
        before = len(self.whole[: self.start].encode())
        return before, before + len(self.text.encode())


class Captures(Mapping[str, str]):
    """Captured texts by name. A name with several captures maps to the text of the last, as a group of a pattern does.

    A name without a capture is not a key.

    Attributes:
        text: The complete text.
        spans: All captures, in the order in which they begin. A capture precedes those inside it. There are two
            exceptions: captures in a lookbehind come where it is tested, and of `a & b`, those of `a` come first.
    """

    def __init__(self, text: str, spans: Iterable[Capture]) -> None:
        self.text = text
        self.spans = tuple(spans)
        self._by_name: dict[str, list[Capture]] = {}
        for one in self.spans:
            self._by_name.setdefault(one.name, []).append(one)

    def all(self, name: str) -> tuple[Capture, ...]:
        """Return all captures of a name; empty if there are none."""
        return tuple(self._by_name.get(name, ()))

    def last(self, name: str) -> Capture:
        """Return the last capture of a name. Raises `KeyError` if the name captured nothing."""
        if name not in self._by_name:
            known = short_list(map(repr, self._by_name)) or "none"
            raise KeyError(f"nothing was captured as {short_repr(name)}; captured names: {known}")
        return self._by_name[name][-1]

    def __getitem__(self, name: str) -> str:
        return self.last(name).text

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r}: {self[name]!r}" for name in list(self)[:20])
        return f"Captures({{{shown}{', …' if len(self) > 20 else ''}}})"
