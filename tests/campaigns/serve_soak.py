"""Many requests on `guideway serve` with the bundled model: clients that leave, random bodies, hostile schemas.

A last part serves two models under a memory budget that holds one of them, so requests make the server switch.

The server runs in another process, on loopback. Run it with `make serve-load`; `--help` lists the numbers of requests.
"""

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jsonschema

import guideway as gw
from guideway.pool.sizes import estimated_bytes
from tests.campaigns.serve_load import FORM, PERSON, Measured, gauge, memory_of, post, ready, running_server
from tests.helpers.random_bodies import NEEDED, fault_of, random_body

CHAT = "/v1/chat/completions"
WAITS = (0.0005, 0.003, 0.01, 0.03, 0.1, 60)
"""The times after which a client leaves, in seconds."""


def text_of(body: dict[str, Any], data: bytes) -> str:
    """Return the text of a whole answer."""
    if not body.get("stream"):
        return str(json.loads(data)["choices"][0]["message"]["content"])
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])


async def disconnects(port: int, numbers: range, invalid: list[str]) -> Measured:
    """Send requests, of which most are left at a random time. Adds invalid texts to `invalid`."""
    measured, draw = Measured(), random.Random(numbers.start)
    gate = asyncio.Semaphore(64)

    async def one(number: int) -> None:
        body: dict[str, Any] = {
            "model": "tiny",
            "messages": [{"role": "user", "content": f"Ada {number}"}],
            "max_tokens": 80,
            "seed": number,
        }
        body |= {"response_format": FORM} if number % 2 else {}
        body |= {"stream": True, "stream_options": {"include_usage": True}} if number % 3 else {}
        async with gate:
            task = asyncio.ensure_future(post(port, CHAT, body, measured, time.perf_counter()))
            await asyncio.wait({task}, timeout=draw.choice(WAITS))
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            elif number % 2:
                text = text_of(body, task.result())
                try:
                    jsonschema.validate(json.loads(text), PERSON)
                except (ValueError, jsonschema.ValidationError):
                    invalid.append(text)

    begun = time.perf_counter()
    await asyncio.gather(*map(one, numbers))
    measured.seconds = time.perf_counter() - begun
    return measured


def wait_until_idle(port: int) -> tuple[float, float]:
    """Return the numbers of requests and sequences that are left after at most 30 seconds."""
    until = time.monotonic() + 30
    while True:
        found = gauge(port, "num_requests_running"), gauge(port, "num_sequences")
        if found == (0, 0) or time.monotonic() > until:
            return found
        time.sleep(0.1)


def random_bodies(port: int, count: int) -> tuple[Counter[int], list[Any]]:
    """Send random bodies. Returns the number of each status, and the faults."""
    draw, statuses, faults = random.Random(11), Counter[int](), list[Any]()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for number in range(count):
            url = list(NEEDED)[number % len(NEEDED)]
            body = random_body(draw, url)
            data = json.dumps(body).encode("ascii")  # httpx cannot encode the lone surrogates in some bodies
            found = client.post(url, content=data, headers={"Content-Type": "application/json"})
            statuses[found.status_code] += 1
            fault = fault_of(found.status_code, None if found.status_code == 200 else found.json())
            if fault is not None:
                faults.append((fault, url, body, found.text))
    return statuses, faults


def hostile_schema(number: int) -> dict[str, Any]:
    """Return a schema whose first compile takes more than a second. `number`: each one differs."""
    options = [
        {
            "type": "object",
            "properties": {
                f"k{number}_{at}": {"const": at},
                "x": {"type": "string", "pattern": f"^a{number}_{at}[0-9]{{2,{at % 9 + 3}}}b$"},
            },
            "required": [f"k{number}_{at}"],
            "additionalProperties": False,
        }
        for at in range(500)
    ]
    return {"anyOf": options}


async def with_hostile(port: int, count: int) -> tuple[Measured, Measured, Measured, list[float]]:
    """Measures the gaps between the tokens of four streams: first alone, then concurrently with hostile schemas.

    Returns:
        The streams alone, the streams with hostile schemas, the hostile requests, and the seconds that each of these took.
    """
    alone, beside, requests = Measured(), Measured(), Measured()
    going = alone
    taken: list[float] = []
    done = asyncio.Event()

    async def streams(number: int) -> None:
        while not done.is_set():
            body = {
                "model": "tiny",
                "messages": [{"role": "user", "content": f"Ada {number}"}],
                "max_tokens": 400,
                "min_tokens": 390,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
            await post(port, CHAT, body, going, time.perf_counter())

    async def hostile() -> None:
        nonlocal going
        await asyncio.sleep(6)
        going = beside
        await asyncio.sleep(2)  # the streams of before end
        for number in range(count):
            body = {
                "model": "tiny",
                "messages": [{"role": "user", "content": "a"}],
                "max_tokens": 200,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": hostile_schema(number)},
                },
            }
            begun = time.perf_counter()
            await post(port, CHAT, body, requests, begun)
            taken.append(time.perf_counter() - begun)
        done.set()

    await asyncio.gather(hostile(), *map(streams, range(4)))
    return alone, beside, requests, taken


async def with_two_models(port: int, count: int, clients: int = 16) -> tuple[Measured, list[str], list[str]]:
    """Send constrained requests to two models in random order.

    Returns the measurement, the invalid texts, and the names of the models that were ready, one for each switch.
    """
    measured, invalid, switches = Measured(), list[str](), list[str]()
    draw, left = random.Random(17), iter(range(count))

    async def watch() -> None:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            while True:
                models = (await client.get("/guideway/models")).json()["data"]
                names = "+".join(one["name"] for one in models if one["state"] == "ready")
                if names and names != (switches or [""])[-1]:
                    switches.append(names)
                await asyncio.sleep(0.02)

    async def client() -> None:
        for number in left:
            body = {
                "model": draw.choice(("tiny", "other")),
                "messages": [{"role": "user", "content": f"Ada {number}"}],
                "max_tokens": 80,
                "seed": number,
                "response_format": FORM,
            }
            text = text_of(body, await post(port, CHAT, body, measured, time.perf_counter()))
            try:
                jsonschema.validate(json.loads(text), PERSON)
            except (ValueError, jsonschema.ValidationError):
                invalid.append(text)

    watching = asyncio.ensure_future(watch())
    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    measured.seconds = time.perf_counter() - begun
    watching.cancel()
    (ended,) = await asyncio.gather(watching, return_exceptions=True)
    if not isinstance(ended, asyncio.CancelledError):
        raise ended
    return measured, invalid, switches


def two_models(count: int, bar: Callable[[str, float, float], None]) -> None:
    """Serve two models under a memory budget that holds one of them, and report errors, invalid texts and switches."""
    with tempfile.TemporaryDirectory() as folder:
        other = shutil.copytree(Path(gw.__file__).parent / "tiny", Path(folder) / "other")
        budget = str((estimated_bytes("tiny") or 0) * 3 // 2)
        with running_server("--quiet", "--model", f"other=onnx:{other}", "--memory", budget) as (port, _):
            measured, invalid, switches = asyncio.run(with_two_models(port, count))
    print(f"        two models: {measured.requests} requests in {measured.seconds:.0f} s, {len(switches)} switches")
    bar("errors of requests to two models", measured.errors, 0)
    bar("times at which both models were ready", sum("+" in one for one in switches), 0)
    bar("requests per switch", measured.requests / max(len(switches), 1), 50)
    bar("invalid texts of two models", len(invalid), 0)


def share(values: list[float], part: float) -> float:
    """Return a quantile."""
    return sorted(values)[int(part * (len(values) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disconnects", type=int, default=10_000)
    parser.add_argument("--bodies", type=int, default=1_000)
    parser.add_argument("--hostile", type=int, default=5)
    parser.add_argument("--two-models", type=int, default=500, metavar="REQUESTS")
    given = parser.parse_args()
    failed = []

    def bar(name: str, value: float, most: float) -> None:
        print(f"{'passed' if value <= most else 'FAILED'}  {name}: {value:.3f}, at most {most:.3f}", flush=True)
        if value > most:
            failed.append(name)

    with running_server("--quiet", "--max-num-seqs", "64") as (port, pid):
        while not ready(port):
            time.sleep(0.1)
        if given.hostile:
            *streams, requests, taken = asyncio.run(with_hostile(port, given.hostile))
            alone, beside = (one.gaps for one in streams)
            for name, gaps in (("alone", alone), ("with hostile schemas", beside)):
                figures = ", ".join(f"{label} {1e3 * share(gaps, part):.1f}" for label, part in QUANTILES)
                print(f"        {len(gaps)} gaps between tokens {name}, in ms: {figures}")
            print(f"        seconds of hostile requests: {', '.join(f'{one:.1f}' for one in taken)}")
            bar("errors of hostile requests and of streams", sum(one.errors for one in (*streams, requests)), 0)
            bar("hostile requests of less than 0.5 s", sum(one < 0.5 for one in taken), 0)
            bar("delay of other streams at p99, in ms", 1e3 * (share(beside, 0.99) - share(alone, 0.99)), 20)
            bar("longest delay of other streams, in ms", 1e3 * (max(beside) - share(alone, 0.5)), 20)
        if given.bodies:
            statuses, faults = random_bodies(port, given.bodies)
            print(f"        {given.bodies} random bodies, by status: {dict(sorted(statuses.items()))}")
            for fault in faults[:10]:
                print(f"        {fault}")
            bar("random bodies with another answer than 200 or 400 with a field", len(faults), 0)
        if given.disconnects:
            invalid: list[str] = []
            errors, first = 0, 0.0
            part = max(given.disconnects // 10, 1)
            for start in range(0, given.disconnects, part):
                left = asyncio.run(disconnects(port, range(start, start + part), invalid))
                errors += left.errors
                requests, sequences = wait_until_idle(port)
                cached, memory = gauge(port, "prefix_cache_bytes") / 2**20, memory_of(pid)
                first = first or memory - cached
                print(
                    f"        {start + part} requests: {left.requests} complete in the last {part}, {requests:.0f} requests"
                    f" and {sequences:.0f} sequences left, {memory:.0f} MiB, of which prefix cache {cached:.0f}",
                    flush=True,
                )
                if requests or sequences:
                    failed.append("a row was leaked")
            bar(
                "growth of the memory without the prefix cache since the first tenth, in MiB",
                memory - cached - first,
                32,
            )
            bar("invalid texts", len(invalid), 0)
            bar("errors", errors, 0)
    if given.two_models:
        two_models(given.two_models, bar)
    sys.exit(bool(failed))


QUANTILES = (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0))


if __name__ == "__main__":
    main()
