"""vLLM: guideway's structured-output backend compared with its xgrammar and guidance backends, in one run.

    .venv-vllm/bin/python benchmarks/bench_vllm.py [--schemas 10] [--seeds 4] [--rounds 3] [--record]

The bundled `tiny`, float32, on a CPU with the V1 runner, or on a CUDA device with the runner that vLLM selects. Each
backend runs in a separate process; the backends take turns in each round, with the same schemas, seeds and temperature.
"first": from the submission of a single request to its first token, with a schema that is new to the engine (compilation
is included); medians over schemas. "each": seconds per token of a batch of all schemas and seeds, compiled before;
medians over rounds. `jsonschema` validates every whole output.
Bars: all outputs valid; "each" not above the better peer's; "first" below it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]  # the environment is that of the tests

BACKENDS = ("guideway", "xgrammar", "guidance")
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 24}, "age": {"type": "integer", "maximum": 150}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"enum": ["red", "green", "blue", "none of these"]}, "minItems": 2, "maxItems": 5},
    {
        "type": "object",
        "properties": {
            "event": {"type": "string", "maxLength": 30},
            "date": {"type": "string", "pattern": "^20[0-9]{2}-[01][0-9]-[0-3][0-9]$"},
            "people": {"type": "array", "items": {"type": "string", "maxLength": 16}, "maxItems": 3},
        },
        "required": ["event", "date", "people"],
        "additionalProperties": False,
    },
    {
        "$defs": {
            "point": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x", "y"],
                "additionalProperties": False,
            }
        },
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"$ref": "#/$defs/point"}},
        "required": ["from", "to"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "kind": {"enum": ["buy", "sell"]},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "note": {"type": "string", "maxLength": 40},
            "open": {"type": "boolean"},
        },
        "required": ["kind", "price", "open"],
        "additionalProperties": False,
    },
]


def schemas(count: int, salt: str = "") -> list[dict[str, Any]]:
    """Returns `count` different schemas. Names differ between salts, so that no compiled schema is used twice."""
    made = []
    for number in range(count):
        text = json.dumps(SCHEMAS[number % len(SCHEMAS)])
        for name in ("name", "event", "kind", "from", "red"):
            text = text.replace(f'"{name}"', f'"{name}{number}{salt}"')
        made.append(json.loads(text))
    return made


def worker(backend: str, count: int, seeds: int) -> None:
    """Runs one backend. For each input line, it writes a line of JSON with times and texts."""
    from tests.helpers.vllm import load_llm

    os.environ["OMP_NUM_THREADS"] = "1"
    out, sys.stdout = sys.stdout, sys.stderr
    import guideway as gw

    llm = load_llm(Path(gw.__file__).parent / "tiny", structured_outputs_config={"backend": backend}, seed=0)
    asked = schemas(count)
    for round_number, _ in enumerate(sys.stdin):
        unseen = schemas(count, f"_{round_number}")
        firsts = [_first(llm, schema, index) for index, schema in enumerate(unseen)]
        each, texts = _batch(llm, asked, seeds)
        print(json.dumps({"firsts": firsts, "each": each, "texts": texts}), file=out, flush=True)


def _params(schema: dict[str, Any], seed: int) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    options = StructuredOutputsParams(json=schema)
    return SamplingParams(max_tokens=200, temperature=1.0, seed=seed, structured_outputs=options)


def _first(llm: Any, schema: dict[str, Any], index: int) -> float:
    engine, params = llm.llm_engine, _params(schema, index)
    params.max_tokens = 2
    start = time.perf_counter()
    engine.add_request(f"first-{time.monotonic_ns()}", "Ada Lovelace, 36, met", params)
    found = 0.0
    while engine.has_unfinished_requests():
        if engine.step() and not found:
            found = time.perf_counter() - start
    return found


def _batch(llm: Any, asked: list[dict[str, Any]], seeds: int) -> tuple[float, list[str]]:
    params = [_params(schema, seed) for schema in asked for seed in range(seeds)]
    llm.generate(["Ada"] * len(params), params, use_tqdm=False)  # what is compiled once is compiled now
    start = time.perf_counter()
    found = [one.outputs[0] for one in llm.generate(["Ada"] * len(params), params, use_tqdm=False)]
    tokens = sum(len(one.token_ids) for one in found)
    return (time.perf_counter() - start) / tokens, [one.text if one.finish_reason == "stop" else "" for one in found]


def main() -> None:
    """Runs all backends in turn, and prints their times, or writes them with --record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--schemas", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--worker", default="")
    options = parser.parse_args()
    if importlib.util.find_spec("vllm") is None:
        print("bench_vllm: not run; it needs vLLM: make test-vllm installs it into .venv-vllm")
        return
    if options.worker:
        worker(options.worker, options.schemas, options.seeds)
        return
    _report(options)


def _report(options: Any) -> None:
    import jsonschema

    from harness.report import Report

    sized = ["--schemas", str(options.schemas), "--seeds", str(options.seeds)]
    runs = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--worker", name, *sized],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in BACKENDS
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in BACKENDS}
    for _ in range(options.rounds + 1):  # the first to warm up
        for name, process in runs.items():
            assert process.stdin is not None  # noqa: S101  # requested above
            assert process.stdout is not None  # noqa: S101  # requested above
            process.stdin.write("\n")
            process.stdin.flush()
            found[name].append(json.loads(process.stdout.readline()))
    for process in runs.values():
        process.communicate()
    report = Report("vllm", [f"vLLM {_place()}, tiny; {options.schemas} schemas, {options.seeds} seeds"])
    asked = [schema for schema in schemas(options.schemas) for _ in range(options.seeds)]
    rows, figures = [], {}
    for name, rounds in found.items():
        texts = [text for one in rounds for text in one["texts"]]
        whole = [(schema, text) for schema, text in zip(asked * len(rounds), texts, strict=True) if text]
        wrong = sum(not _valid(jsonschema, schema, text) for schema, text in whole)
        firsts = [value for one in rounds[1:] for value in one["firsts"]]
        figures[name] = (median(firsts), median(one["each"] for one in rounds[1:]))
        cells = [f"{1e3 * figures[name][0]:.2f} ms", f"{1e3 * max(firsts):.2f} ms", f"{1e6 * figures[name][1]:.0f} us"]
        rows.append([name, *cells, f"{len(whole)} of {len(texts)}", str(wrong)])
    report.table("backends", ["", "first, p50", "first, max", "each", "whole", "invalid"], rows)
    peers = [figures[name] for name in BACKENDS[1:]]
    report.limit("first, of the better peer's", figures["guideway"][0] / min(one[0] for one in peers), 1.0, "x")
    report.limit("each, of the better peer's", figures["guideway"][1] / min(one[1] for one in peers), 1.0, "x")
    report.done(options.record)


def _place() -> str:
    """Return the version of vLLM, the device, and the runner if the environment selects one."""
    import torch
    import vllm

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "a CPU"
    runner = os.environ.get("VLLM_USE_V2_MODEL_RUNNER")
    return f"{vllm.__version__} on {device}, " + (
        "the usual runner" if runner is None else f"V{1 + int(runner)} runner"
    )


def _valid(jsonschema: Any, schema: dict[str, Any], text: str) -> bool:
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


if __name__ == "__main__":
    main()
