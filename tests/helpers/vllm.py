"""vLLM for tests, on a CPU or a CUDA device: environment, server in separate processes, and a model that reasons."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guideway.testing import tiny_model

__all__ = ["ENVIRONMENT", "THINK", "THOUGHT", "has_device", "load_llm", "serve", "thinking_model"]

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
THINK, THOUGHT = 318, 319
"""Ids of `<think>` and `</think>` in the vocabulary of `thinking_model`."""

_SLOW_START = 240.0
_DEVICE_MEMORY = {"gpu_memory_utilization": 0.05, "kv_cache_memory_bytes": 1 << 30}
"""Options for a CUDA device. An engine takes little of its memory, so that several tests can run at once."""


def has_device() -> bool:
    """Return whether vLLM runs on a CUDA device here."""
    import torch

    return bool(torch.cuda.is_available())


def thinking_model(folder: Path) -> Path:
    """A tiny model whose last two tokens are markers of reasoning, as DeepSeek's parser looks for them."""
    tiny_model("llama", folder, seed=3)
    file = folder / "tokenizer.json"
    read = json.loads(file.read_text("utf-8"))
    for token, number in (("</think>", THOUGHT), ("<think>", THINK)):
        merged = "".join(read["model"]["merges"].pop())  # the last one learnt has the last id
        assert read["model"]["vocab"].pop(merged) == number
        read["model"]["vocab"][token] = number
        marks = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        read["added_tokens"].append({"id": number, "content": token, "special": False, **marks})
    file.write_text(json.dumps(read), "utf-8")
    return folder


def load_llm(folder: Path, **options: Any) -> Any:
    """Return vLLM's engine in this process, with Guideway's backend, for the model in a folder.

    By default it runs without CUDA graphs, in float32.
    """
    os.environ.update(ENVIRONMENT)
    from vllm import LLM  # it finds Guideway by entry points

    usual = {"structured_outputs_config": {"backend": "guideway"}, "max_model_len": 512}
    usual |= {"enforce_eager": True, "dtype": "float32"}
    if has_device():
        usual |= _DEVICE_MEMORY
    return LLM(str(folder), **{**usual, **options})


@contextmanager
def serve(folder: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[str]:
    """vLLM's HTTP server with our backend, on the model in the folder, named `tiny`; gives the address of its API."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # `vllm serve` asks for the version of a package named vllm, which the build for CPUs is not.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--max-model-len", "512"]
    command += ["--dtype", "float32", "--served-model-name", "tiny"]
    command += ["--structured-outputs-config.backend", "guideway", *options]
    if has_device():
        command += [f"--{name.replace('_', '-')}={value}" for name, value in _DEVICE_MEMORY.items()]
    log = folder / "log.txt"
    held = {**os.environ, **ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "NO_PROXY": "127.0.0.1"}
    held |= environment or {}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=held) as process:
        try:
            _wait(process, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + _SLOW_START
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"vLLM's server did not come up:\n{log.read_text(errors='replace')[-4000:]}")
