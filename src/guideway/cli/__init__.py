"""The command line.

app.py      the `typer` application
options.py  options that several commands share
inputs.py   reading texts, requests, types and schemas
lines.py    results as JSON lines, and their continuation
records.py  tables and summaries
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
    """Run one command and exit. The imports, which take a second, can be interrupted without a traceback."""
    try:
        from guideway.cli.app import main as run

        run(arguments)
    except KeyboardInterrupt:
        print("guideway: interrupted", file=sys.stderr)
        sys.exit(130)
