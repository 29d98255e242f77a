"""Tests that need an optional engine are marked `engine("transformers")`, and skipped where it is not installed."""

import importlib.util

import pytest
from hypothesis import settings

# A busy machine is not a defect: examples have no deadline, only suites do.
settings.register_profile("guideway", deadline=None)
settings.load_profile("guideway")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in item.iter_markers("engine"):
            for library in marker.args:
                if importlib.util.find_spec(library) is None:
                    item.add_marker(pytest.mark.skip(reason=f"needs {library}: make test-engines installs it"))
