"""Settings of all tests. A test marked `engine("transformers")` is skipped if that library is not installed."""

import functools
import gc
import importlib.util
import os
import shutil
import ssl
import tempfile
import threading
from collections.abc import Generator, Iterator

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


@pytest.fixture(scope="session", autouse=True)
def _one_tls_context() -> Iterator[None]:
    """Reads the certificates of the system once per process. Each HTTP client would read them again, in 14 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> Iterator[None]:
    """Excludes the objects that remain after a module from garbage collections.

    They are most of the objects of a process that has run hundreds of modules, and a test that calls `gc.collect` several
    times would take seconds.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Excludes modules and test items from garbage collections, which would visit half a million objects each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


# The target that installs a library, for those that `make test-engines` does not install.
TARGETS = {"vllm": "test-vllm", "openai": "test-vllm"}
TARGETS["selenium"] = TARGETS["axe_playwright_python"] = "test-browser"
TARGETS |= dict.fromkeys(("pydantic_ai", "instructor", "langchain_openai"), "test-clients")
TARGETS |= dict.fromkeys(("exllamav2", "exllamav3"), "test-gpu WHEELS=...")
TARGETS |= dict.fromkeys(("ray", "dask", "distributed", "daft", "pyspark", "pandas", "pyarrow"), "test-cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in item.iter_markers("engine"):
            for library in marker.args:
                if importlib.util.find_spec(library) is None:
                    target = TARGETS.get(library, "test-engines")
                    item.add_marker(pytest.mark.skip(reason=f"needs {library}: make {target} installs it"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stack-kb", type=int, default=0, help="run each test function in a thread with a stack of this many KB"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs the test in a thread with a small stack, as on musl and in some servers, where `--stack-kb` is given."""
    kilobytes: int = pyfuncitem.config.getoption("--stack-kb")
    if not kilobytes:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    raised: list[BaseException] = []

    def run() -> None:
        try:
            pyfuncitem.obj(**arguments)
        except BaseException as error:
            raised.append(error)

    before = threading.stack_size(kilobytes << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    if raised:
        raise raised[0]
    return True
