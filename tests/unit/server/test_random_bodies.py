"""Random bodies: an answer, or an error of the client that names the field. Never an error of the server."""

import random

import httpx
import pytest

from tests.helpers.random_bodies import NEEDED, fault_of, random_body
from tests.helpers.serving import LiveServer


@pytest.mark.parametrize("url", NEEDED)
def test_random_bodies(server: LiveServer, url: str) -> None:
    draw = random.Random(url)
    answered = 0
    with httpx.Client(timeout=60) as client:
        for _ in range(50):
            body = random_body(draw, url)
            found = client.post(server.url + url, json=body)
            answered += found.status_code == 200
            fault = fault_of(found.status_code, None if found.status_code == 200 else found.json())
            assert fault is None, (fault, body, found.text)
    assert answered > 5
