"""Tokens per second of `guideway serve` and of `python -m llama_cpp.server` over the same GGUF weights, on loopback.

    python benchmarks/bench_server.py [--tokens 64] [--requests 24] [--rounds 3] [--peer-python PYTHON] [--record]

Weights: the bundled `tiny` as a GGUF file, float32, two threads. This process generates the load: each client requests
completions of different prompts at temperature 1, one after the other. All servers run at the same time, but only one
gets requests. Each round measures every server with 1 client and with 16 clients; the order of the servers is reversed
from round to round. A ratio is the median of the ratios of the rounds. CPU time per token is that of the server process.
llama_cpp.server answers one request after the other. It needs llama-cpp-python[server] in the environment of
`--peer-python`, by default this Python; without it, nothing is measured. `--llama-server FILE` also measures the server
of llama.cpp itself. Bars: at least 1.0x with one client, 3x with 16.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import guideway as gw
from harness.report import Report

sys.path[:0] = [str(Path(__file__).parents[1])]  # the writer of GGUF files and the client, of the tests
TINY = Path(gw.__file__).parent / "tiny"
PEER = "llama_cpp.server"
BARS = {1: 1.0, 16: 3.0}


class Given(argparse.Namespace):
    tokens: int
    requests: int
    rounds: int
    peer_python: str
    llama_server: str | None
    record: bool


class Server(NamedTuple):
    """A server that runs: its name, port and process id."""

    name: str
    port: int
    pid: int


class Speed(NamedTuple):
    """Tokens per second, CPU microseconds of the server per token, and failed requests."""

    tokens: float
    cpu: float
    errors: int


@contextmanager
def running(name: str, command: Sequence[str], port: int, path: str) -> Iterator[Server]:
    """Run a server until the context ends. It is ready when it answers `path`."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until = time.monotonic() + 60
            while not _answers(f"http://127.0.0.1:{port}{path}"):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    raise SystemExit(f"{name} does not start: {log.read()[-2000:].decode('utf-8', 'replace')}")
                time.sleep(0.1)
            yield Server(name, port, process.pid)
        finally:
            process.terminate()
            process.wait(60)


def free_port() -> int:
    """Return a port of loopback that no program uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def has_peer(python: str) -> bool:
    """Return whether a Python can run `python -m llama_cpp.server`. llama-cpp-python alone lacks its dependencies."""
    return subprocess.run([python, "-c", f"import {PEER}.app"], capture_output=True).returncode == 0


def measure(server: Server, clients: int, requests: int, tokens: int) -> Speed:
    """Let clients send requests, each the next one after its last answer."""
    from tests.campaigns.serve_load import Measured, cpu_of, post

    measured, left = Measured(), iter(range(requests))

    async def client() -> None:
        for number in left:
            prompt = f"Ada {number} lives in Rome and works as an engineer"
            body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "seed": number, "temperature": 1.0}
            await post(server.port, "/v1/completions", body, measured, time.perf_counter())

    async def all_clients() -> None:
        await asyncio.gather(*(client() for _ in range(clients)))

    begun, cpu = time.perf_counter(), cpu_of(server.pid)
    asyncio.run(all_clients())
    seconds, made = time.perf_counter() - begun, max(measured.tokens, 1)
    return Speed(measured.tokens / seconds, 1e6 * (cpu_of(server.pid) - cpu) / made, measured.errors)


def commands(given: Given, file: Path) -> list[tuple[str, list[str], int, str]]:
    """Return name, command, port and path of each server."""
    own, peer = free_port(), free_port()
    options = {"--model": str(file), "--model_alias": "tiny", "--n_ctx": "1024", "--n_threads": "2"}
    options |= {"--n_threads_batch": "2", "--port": str(peer), "--verbose": "false", "--interrupt_requests": "false"}
    serve = [sys.executable, "-m", "guideway", "serve", "--model", f"tiny=gguf:{file}", "--port", str(own), "--quiet"]
    peer_command = [given.peer_python, "-m", PEER, *(part for option in options.items() for part in option)]
    found = [("guideway serve", serve, own, "/ready"), (PEER, peer_command, peer, "/v1/models")]
    if given.llama_server is not None:
        port = free_port()
        command = [given.llama_server, "-m", str(file), "-a", "tiny", "-c", str(16 * 1024), "-np", "16", "-t", "2"]
        found.append(("llama-server", [*command, "--port", str(port)], port, "/health"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument(
        "--requests", type=int, default=24, help="requests of one client; 16 clients send five times as many in total"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--llama-server", default=None)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(namespace=Given())
    if importlib.util.find_spec("llama_cpp") is None:
        print("not measured: llama-cpp-python, which runs the model of guideway serve, is not installed")
        return
    if not has_peer(given.peer_python):
        print(f"not measured: llama-cpp-python[server] is not installed in the environment of {given.peer_python}")
        return
    from tests.helpers.gguf_models import write_gguf

    report = Report("server", [f"{given.tokens} tokens per text, {given.rounds} rounds, load generator in a process"])
    speeds: dict[tuple[str, int], list[Speed]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started = commands(given, write_gguf(TINY, folder / "tiny.gguf"))
        servers = [stack.enter_context(running(*one)) for one in started]
        for server in servers:
            measure(server, 1, 2, given.tokens)  # warms up
        for turn in range(given.rounds):
            for clients in BARS:
                for server in servers[:: -1 if turn % 2 else 1]:
                    requests = given.requests * (1 if clients == 1 else 5)
                    found = measure(server, clients, requests, given.tokens)
                    speeds.setdefault((server.name, clients), []).append(found)
    tabulate(report, speeds)
    report.done(given.record)


def tabulate(report: Report, speeds: dict[tuple[str, int], list[Speed]]) -> None:
    """Add the table of all measurements and the bars to the report."""
    rows = []
    for (name, clients), found in sorted(speeds.items(), key=lambda one: one[0][1]):
        own = speeds["guideway serve", clients]
        ratios = [ours.tokens / theirs.tokens for ours, theirs in zip(own, found, strict=True)]
        shown = "" if name == "guideway serve" else f"{median(ratios):.2f}x"
        cells = [f"{median(one.tokens for one in found):,.0f}", f"{median(one.cpu for one in found):,.0f}"]
        rows.append([name, str(clients), *cells, str(sum(one.errors for one in found)), shown])
        if name == PEER:
            verdict = "met" if median(ratios) >= BARS[clients] else "MISSED"
            report.ratios[f"{clients} clients vs {name}"] = median(ratios)
            report.line(
                f"bar: {clients} client{'s' if clients > 1 else ''}: {median(ratios):.2f}x of {name},"
                f" at least {BARS[clients]:g}x: {verdict}"
            )
    heads = ["server", "clients", "tokens/s", "CPU us/token", "errors", "guideway is"]
    report.table("completions", heads, rows)


if __name__ == "__main__":
    main()
