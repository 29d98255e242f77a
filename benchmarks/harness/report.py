"""What a benchmark prints and records: lines, tables, bars met or missed, and the machine."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import guideway as gw

RECORD = Path(__file__).parents[1] / "record"


def machine() -> str:
    """Processor, cores and how busy it was."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores{load}"


class Report:
    """Collects what is printed; `ratios` by name, for the bars."""

    def __init__(self, name: str, about: Sequence[str] = ()) -> None:
        self.name, self.ratios = name, dict[str, float]()
        today = datetime.date.today().isoformat()
        self.lines = [f"{today}, guideway {gw.__version__}, Python {platform.python_version()}, {machine()}", *about]

    def line(self, text: str = "") -> None:
        """One more line."""
        self.lines.append(text)

    def table(self, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Formats columns as wide as necessary; the first two are aligned to the left."""
        widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]

        def laid(cells: Sequence[str]) -> str:
            pairs = enumerate(zip(cells, widths, strict=True))
            return "  ".join(cell.ljust(w) if n < 2 else cell.rjust(w) for n, (cell, w) in pairs).rstrip()

        self.lines += ["", title, "  " + laid(heads), *("  " + laid(row) for row in rows)]

    def judge(self, bars: Sequence[tuple[str, Mapping[str, float]]]) -> None:
        """Each bar: how much lower than each peer we had to be, how much lower we are."""
        rows = []
        for what, wanted in bars:
            for peer, bar in wanted.items():
                ratio = self.ratios.get(f"{what} vs {peer}")
                if ratio is not None:
                    rows.append([what, peer, f"{bar:g}x", f"{ratio:.1f}x", "met" if ratio >= bar else "MISSED"])
        if rows:
            self.table("bars", ["", "lower than", "wanted", "is", ""], rows)

    def limit(self, what: str, value: float, most: float, unit: str) -> None:
        """A bar that is a limit."""
        self.line(f"bar: {what}: {value:,.2f} {unit}, at most {most:g}: {'met' if value <= most else 'MISSED'}")

    @property
    def path(self) -> Path:
        """Returns the path of the record."""
        return RECORD / f"{self.lines[0][:10]}-{self.name}.txt"

    def done(self, record: bool) -> None:
        """Prints the report, and writes it to benchmarks/record/ if `record` is true."""
        text = "\n".join(self.lines).strip()
        print(text)
        if record:
            RECORD.mkdir(exist_ok=True)
            self.path.write_text(text + "\n", encoding="utf-8")
