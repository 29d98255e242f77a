"""The command line.

app.py      the `typer` application
options.py  options that several commands share
inputs.py   reads texts, requests, types and schemas from arguments and files
lines.py    writes results as JSON lines, and continues a file of results
records.py  extracts records, and prints tables and summaries
demo.py     `guideway demo`
extract.py  `guideway extract`
generate.py `guideway generate`
score.py    `guideway score`
batch.py    `guideway batch`
chat.py     `guideway chat`
check.py    `guideway check`
probe.py    `guideway probe`
serve.py    `guideway serve`
explain.py  `guideway explain`
cache.py    `guideway cache`
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit. An interrupt (Ctrl+C) during the imports, which take a second, prints no traceback."""
    try:
        from guideway.cli.app import main as run

        run(arguments)
    except KeyboardInterrupt:
        print("guideway: interrupted", file=sys.stderr)
        sys.exit(130)
