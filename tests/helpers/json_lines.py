"""JSON Lines, as the command line writes them."""

from __future__ import annotations

import json
from typing import Any


def lines_of(out: str) -> list[dict[str, Any]]:
    """Return the objects of a text in JSON Lines."""
    return [json.loads(line) for line in out.splitlines()]
