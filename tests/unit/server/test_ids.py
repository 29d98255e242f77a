"""Identifiers are not repeated, also not in a forked process."""

import os

import pytest

from guideway.server.ids import new_id


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_identifiers_are_different_in_a_forked_process() -> None:
    first = new_id()
    assert len(first) == 32
    assert len({new_id() for _ in range(1000)} | {first}) == 1001
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, new_id().encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 64).decode() not in {new_id() for _ in range(300)}
    os.close(reader)
    os.close(writer)
