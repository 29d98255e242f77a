"""Fixtures of the tests of remote models."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.remote_clients import CLIENTS

# Asynchronous clients of the SDKs cannot be closed once their event loop has ended; Python reports their sockets when it
# collects them, which may be in a later test of this folder. Where aiohttp is installed (Ray and Dask need it),
# google-genai uses it, and inherits from a class of it that warns.
WARNINGS = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for mark in WARNINGS:
                item.add_marker(mark)


@pytest.fixture(autouse=True, scope="package")
def _all_collected() -> Iterator[None]:
    """Collect what the tests of this folder left and froze: in a test of another folder, the warnings are errors."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect the clients of a test before the next test.

    The remaining objects, most of them of the SDKs, are excluded from later collections, which would visit 300,000 objects.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(params=CLIENTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
