"""Samples of random tests: `make test` runs a part of the cases, `make test-slow` runs all."""

from __future__ import annotations

from typing import Any

import pytest


def counts(sample: int, full: int) -> pytest.MarkDecorator:
    """Calls the test with `count=sample` in `make test` and with `count=full` in `make test-slow`."""
    return pytest.mark.parametrize("count", [sample, pytest.param(full, marks=pytest.mark.slow)])


def seeds(sample: int, full: int) -> list[Any]:
    """Returns the seeds below `full`; those from `sample` on are marked slow."""
    return [*range(sample), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(sample, full))]
