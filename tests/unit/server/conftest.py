"""One server for the tests of this folder."""

from collections.abc import Iterator

import openai
import pytest

from guideway.generation import Model
from tests.helpers.serving import LiveServer, live_server, served_tiny


@pytest.fixture(scope="session")
def tiny() -> Iterator[Model]:
    with served_tiny() as model:
        yield model


@pytest.fixture(scope="session")
def server(tiny: Model) -> Iterator[LiveServer]:
    with live_server({"tiny": tiny}) as live:
        yield live


@pytest.fixture(scope="session")
def client(server: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made
