"""Settings of all tests. A test marked `engine("transformers")` is skipped if that library is not installed."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Examples have no deadline, because a busy machine is not a defect. Every run uses the same examples, so that a failure
# is caused by a change; GUIDEWAY_EXPLORE=1 draws new ones.
settings.register_profile("guideway", deadline=None, derandomize="GUIDEWAY_EXPLORE" not in os.environ)
settings.load_profile("guideway")

# Tests do not use the user's cache. Child processes inherit this setting.
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
