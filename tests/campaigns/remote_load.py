"""Concurrent streams on the loopback interface: all end correctly, with little CPU time compared with the SDK's.

    python -m tests.campaigns.remote_load --streams 1000

The server runs in another process. The SDK alone reads the same streams for comparison. Cancelling must close the connection
within 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import openai

import guideway as gw
from guideway.remote import remote
from guideway.testing import Answer, Provider, ProviderRequest

ITEMS = [{"name": f"item {number}", "count": number, "tags": ["a", "b"]} for number in range(30)]
TEXT = str(ITEMS).replace("'", '"')
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name", "count", "tags"],
        "additionalProperties": False,
    },
}


def script(request: ProviderRequest) -> Answer:
    """Stall, if the prompt asks for it."""
    if "stall" in str(request.body):
        return Answer(TEXT, chunk=16, stall_after=5)
    return Answer(TEXT, chunk=16, pause=0.005)


def serve(pipe: Connection) -> None:
    """Run the server until the pipe says so; answer with the times at which streams were closed."""
    with Provider(script) as provider:
        pipe.send(provider.url)
        while pipe.recv() == "aborted":
            pipe.send(list(provider.aborted))


async def read_alone(client: Any, count: int) -> float:
    """Read streams with the SDK alone. Returns the process time."""

    async def one() -> str:
        messages = [{"role": "user", "content": "x"}]
        stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
        text = ""
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                text += chunk.choices[0].delta.content
        return text

    started = time.process_time()
    found = await asyncio.gather(*(one() for _ in range(count)))
    if set(found) != {TEXT}:
        raise AssertionError("a stream of the SDK was not complete")
    return time.process_time() - started


async def read_checked(client: Any, count: int) -> float:
    """Read the same streams as a checked value. Returns the process time."""
    model = remote(client, "m", dialect="vllm")
    constraint = gw.JsonSchema(SCHEMA)
    model.plan(constraint)
    started = time.process_time()
    found = await model.agenerate(["x"] * count, constraint, batch_size=count)
    if any(value != ITEMS for value in found):
        raise AssertionError("a value is not right")
    return time.process_time() - started


async def cancel(client: Any, pipe: Connection, count: int) -> list[float]:
    """Cancel streams. Returns the seconds until the server saw the end of the connection."""
    model, times = remote(client, "m", dialect="unknown"), []
    for number in range(count):
        task = asyncio.ensure_future(gw.agenerate(model, "stall", gw.JsonSchema(SCHEMA)))
        await asyncio.sleep(0.15)
        started = time.monotonic()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.1)
        pipe.send("aborted")
        seen = pipe.recv()
        if len(seen) != number + 1:
            raise AssertionError(f"the server saw {len(seen)} closed streams, not {number + 1}")
        times.append(seen[-1] - started)
    return times


async def measure(url: str, pipe: Connection, count: int) -> int:
    """Run all measurements."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0, timeout=120) as client:
        await read_checked(client, 2)  # compiles, and opens the first connections
        alone = min([await read_alone(client, count) for _ in range(2)])
        checked = min([await read_checked(client, count) for _ in range(2)])
        times = await cancel(client, pipe, 10)
    own = checked - alone
    print(f"{count} concurrent streams of {len(TEXT)} characters, all correct")
    print(f"process time: SDK alone {alone:.2f} s, with checks {checked:.2f} s: ours {own:.2f} s")
    print(
        f"cancelling closed the connection after {statistics.median(times) * 1e3:.1f} ms (largest {max(times) * 1e3:.1f} ms)"
    )
    return bool(own >= alone or max(times) > 0.05)


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    server = context.Process(target=serve, args=(other,), daemon=True)
    server.start()
    try:
        return asyncio.run(measure(pipe.recv(), pipe, given.streams))
    finally:
        pipe.send("end")
        server.join(10)


if __name__ == "__main__":
    sys.exit(main())
