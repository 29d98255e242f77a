"""Fixtures of the tests of remote models."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.helpers.remote_clients import CLIENTS


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> Iterator[None]:
    """Exclude the objects of other modules from the collections below, which would take half a second each."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _collected(_frozen: None) -> Iterator[None]:
    """Collect the clients of a test before the next test, in which the warnings are errors."""
    yield
    gc.collect()


@pytest.fixture(params=CLIENTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
