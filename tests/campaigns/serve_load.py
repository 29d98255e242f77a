"""Load on `guideway serve` with the bundled model: CPU per token, time to first token, constrained and free text.

The server runs in another process, on loopback. Each measurement sends a fixed number of requests. Run it with
`make serve-load`; `--clients`, `--requests` and `--max-tokens` change the amount.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "format": "email", "maxLength": 30},
        "role": {"enum": ["engineer", "designer", "manager"]},
    },
    "required": ["name", "age", "email", "role"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
MOST_SECONDS = 120.0
"""The maximum time of one measurement."""


@dataclass
class Measured:
    """What one measurement found. Times are in seconds."""

    tokens: int = 0
    requests: int = 0
    errors: int = 0
    seconds: float = 0.0
    server_cpu: float = 0.0
    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    def p99(self) -> float:
        return sorted(self.first)[int(0.99 * (len(self.first) - 1))] if self.first else 0.0

    def __str__(self) -> str:
        each = 1e6 * self.server_cpu / max(self.tokens, 1)
        return (
            f"{self.requests} requests, {self.errors} errors, {self.tokens} tokens, {self.tokens / self.seconds:,.0f}"
            f" tokens/s, server CPU {each:.0f} us per token, first token p99 {1e3 * self.p99():.1f} ms"
        )


@contextmanager
def running_server(*arguments: str) -> Iterator[tuple[int, int]]:
    """Run `guideway serve` on a free port, with an empty disk cache. Gives the port and the process id."""
    command = [sys.executable, "-m", "guideway", "serve", "--model", "tiny", "--port", "0", *arguments]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "GUIDEWAY_CACHE_DIR": cache}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert process.stderr is not None
        try:
            line = json.loads(process.stderr.readline())
            port = int(line["url"].rpartition(":")[2])
            yield port, process.pid
        finally:
            process.terminate()
            process.communicate(timeout=60)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def post(port: int, path: str, body: Any, measured: Measured, begun: float) -> bytes:
    """Send a request on a new connection. Returns the body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    try:
        status = int((await reader.readline()).split()[1])
        while (await reader.readline()).strip():
            pass
        text, last = b"", begun
        while chunk := await reader.read(1 << 16):
            now = time.perf_counter()
            if body.get("stream") and b'"content":"' in chunk:
                if last == begun:
                    measured.first.append(now - begun)
                else:
                    measured.gaps.append(now - last)
                last = now
            text += chunk
    finally:
        writer.close()
    if status != 200:
        measured.errors += 1
        return text
    measured.requests += 1
    at = text.rfind(b'"completion_tokens":')
    measured.tokens += int(text[at + 20 :].split(b",")[0])
    return text


async def load(port: int, pid: int, clients: int, requests: int, **fields: Any) -> Measured:
    """Let clients send requests, each the next one after its last answer."""
    measured, left, words = Measured(), iter(range(requests)), random.Random(7)
    prompts = [
        " ".join(words.choice(["Ada", "Bob", "lives", "works", "in", "Rome", "Paris"]) for _ in range(12))
        for _ in range(64)
    ]
    stream = {"stream": True, "stream_options": {"include_usage": True}} if fields.get("stream") else {}
    begun, cpu = time.perf_counter(), cpu_of(pid)

    async def client() -> None:
        for number in left:
            if time.perf_counter() - begun > MOST_SECONDS:
                return
            body = {"model": "tiny", "messages": [{"role": "user", "content": prompts[number % 64]}], "seed": number}
            await post(port, "/v1/chat/completions", {**body, **fields, **stream}, measured, time.perf_counter())

    await asyncio.gather(*(client() for _ in range(clients)))
    measured.seconds, measured.server_cpu = time.perf_counter() - begun, cpu_of(pid) - cpu
    return measured


async def poisson(port: int, pid: int, rate: float, requests: int, **fields: Any) -> Measured:
    """Send requests at random times with a mean rate per second."""
    measured, draw = Measured(), random.Random(3)
    begun, cpu = time.perf_counter(), cpu_of(pid)
    waiting = []
    for number in range(requests):
        body = {"model": "tiny", "messages": [{"role": "user", "content": f"Ada {number}"}], "seed": number, **fields}
        waiting.append(asyncio.ensure_future(post(port, "/v1/chat/completions", body, measured, time.perf_counter())))
        await asyncio.sleep(draw.expovariate(rate))
    await asyncio.gather(*waiting)
    measured.seconds, measured.server_cpu = time.perf_counter() - begun, cpu_of(pid) - cpu
    return measured


_IN_PROCESS = """
import random, sys, time
from guideway.server import load_served
import guideway as gw
clients, requests, most = map(int, sys.argv[1:4])
words = random.Random(7)
texts = [" ".join(words.choice(["Ada", "Bob", "lives", "works", "in", "Rome", "Paris"]) for _ in range(12)) for _ in range(64)]
model = load_served("tiny")
prompts = [gw.GenerationRequest([{"role": "user", "content": texts[n % 64]}], None, seed=n) for n in range(requests)]
model.generate("a", max_tokens=4)
begun = time.process_time()
found = model.complete(prompts, max_tokens=most, temperature=1.0, batch_size=clients)
print((time.process_time() - begun) / sum(len(one.tokens) for one in found))
"""


def in_process(clients: int, requests: int, most: int) -> float:
    """Return the CPU seconds per token of `generate` in a separate process."""
    command = [sys.executable, "-c", _IN_PROCESS, str(clients), str(requests), str(most)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def gauge(port: int, name: str) -> float:
    """Return a metric of the server."""
    import urllib.request

    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    return float(next(line.split()[-1] for line in text.splitlines() if line.startswith(f"guideway:{name} ")))


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def speed(runs: list[Measured]) -> float:
    """Return the tokens per second of several runs."""
    return sum(one.tokens for one in runs) / sum(one.seconds for one in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=512)
    parser.add_argument("--max-tokens", type=int, default=64)
    given = parser.parse_args()
    failed = []

    def bar(name: str, value: float, most: float) -> None:
        print(f"{'passed' if value <= most else 'FAILED'}  {name}: {value:.3f}, at most {most:.3f}")
        if value > most:
            failed.append(name)

    with running_server("--quiet", "--max-num-seqs", str(given.clients)) as (port, pid):

        def run(**fields: Any) -> Measured:
            found = asyncio.run(load(port, pid, given.clients, given.requests, max_tokens=given.max_tokens, **fields))
            print(f"        {sorted(fields)}: {found}")
            return found

        while not ready(port):
            time.sleep(0.1)
        run()  # warms up
        size = given.clients, given.requests, given.max_tokens
        alone, plain, again = in_process(*size), run(), in_process(*size)
        base = min(alone, again)
        print(f"        in process: {1e6 * alone:.0f} and {1e6 * again:.0f} us of CPU per token")
        streamed = run(stream=True)
        bar("CPU per token without streaming, against generate", plain.server_cpu / plain.tokens / base, 1.25)
        bar("CPU per token with streaming, against generate", streamed.server_cpu / streamed.tokens / base, 1.6)
        run(response_format=FORM)  # warms up, as the first run does for free text
        free, held = [run()], [run(response_format=FORM), run(response_format=FORM)]
        free.append(run())
        bar(
            "tokens per second of free text, against JSON of a schema",
            speed(free) / speed(held),
            1.0,
        )
        rate = 0.5 * streamed.requests / streamed.seconds
        fields = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": given.max_tokens}
        quiet = asyncio.run(poisson(port, pid, rate, given.requests // 2, **fields))
        step = sorted(quiet.gaps)[len(quiet.gaps) // 2]
        print(f"        at {rate:.1f} requests/s: {quiet}; median step {1e3 * step:.1f} ms")
        bar("first token p99 at half of saturation, in seconds", quiet.p99(), 3 * step + 0.010)
        bar("errors", plain.errors + streamed.errors + quiet.errors, 0)
    sys.exit(bool(failed))


def ready(port: int) -> bool:
    """Return whether the models are loaded."""
    import urllib.request

    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/ready").status == 200
    except OSError:
        return False


if __name__ == "__main__":
    main()
