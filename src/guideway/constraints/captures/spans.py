"""The result: which texts were captured, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Capture", "Captures"]


@dataclass(frozen=True, slots=True)
class Capture:
    """A piece of a text: from where to where it stands, in characters, and the name that it was captured by."""

    name: str
    start: int
    end: int
    whole: str = field(repr=False)
    """The text that it is a piece of."""

    @property
    def text(self) -> str:
        """The piece itself."""
        return self.whole[self.start : self.end]

    @property
    def byte_span(self) -> tuple[int, int]:
        """From where to where it stands in the UTF-8 of the text."""
        before = len(self.whole[: self.start].encode())
        return before, before + len(self.text.encode())


class Captures(Mapping[str, str]):
    """What was captured, by name: a name's text is what it took last, as a group of a pattern keeps it.

    `spans`: everything that was captured, in the order in which it begins, what stands in another one behind it.
    A name that took no part is missing. `text`: that which was read.
    """

    def __init__(self, text: str, spans: Iterable[Capture]) -> None:
        self.text = text
        self.spans = tuple(spans)
        self._by_name: dict[str, list[Capture]] = {}
        for one in self.spans:
            self._by_name.setdefault(one.name, []).append(one)

    def all(self, name: str) -> tuple[Capture, ...]:
        """All that the name took; none: an empty tuple."""
        return tuple(self._by_name.get(name, ()))

    def last(self, name: str) -> Capture:
        """What the name took last: its text is `captures[name]`. `KeyError` for a name that took no part."""
        if name not in self._by_name:
            known = ", ".join(map(repr, list(self._by_name)[:20])) or "none"
            raise KeyError(f"nothing was captured as {name!r}; what was has these names: {known}")
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
