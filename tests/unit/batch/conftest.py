"""A model and files of requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import guideway as gw

Write = Callable[[str, list[Any]], Path]


@pytest.fixture(scope="session")
def tiny() -> Iterator[gw.Model]:
    with gw.load("tiny") as model:
        yield model


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Returns a function that writes lines to a file: objects as JSON, and bytes as they are."""

    def made(name: str, lines: list[Any]) -> Path:
        path = tmp_path / name
        path.write_bytes(
            b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines)
        )
        return path

    return made
