"""Tests that need an optional engine are marked `engine("transformers")`, and skipped where it is not installed."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A busy machine is not a defect: examples have no deadline, only suites do. The same examples in every run, so that a
# red run is the change's doing; GUIDEWAY_EXPLORE=1 draws new ones.
settings.register_profile("guideway", deadline=None, derandomize="GUIDEWAY_EXPLORE" not in os.environ)
settings.load_profile("guideway")

# No test reads or fills the cache of whoever runs it; what tests start inherits this.
os.environ["GUIDEWAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="guideway-tests-")


@pytest.fixture(scope="session", autouse=True)
def _own_cache() -> Iterator[None]:
    yield
    shutil.rmtree(os.environ["GUIDEWAY_CACHE_DIR"], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in item.iter_markers("engine"):
            for library in marker.args:
                if importlib.util.find_spec(library) is None:
                    target = "test-vllm" if library in ("vllm", "openai") else "test-engines"
                    item.add_marker(pytest.mark.skip(reason=f"needs {library}: make {target} installs it"))
