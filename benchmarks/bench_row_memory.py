"""Memory of rows of different lengths: 16 prompts of 10 to 400 tokens, then 100 tokens each.

    python benchmarks/bench_row_memory.py [--engines onnx,hf,mlx,gguf] [--record]

The bundled `tiny`, float32: a token has 6 layers x 192 x 2 x 4 bytes of keys and values. Each engine runs in a separate
process, without sessions, after a run of the same shape with one row. "held": resident memory with the caches after
the last step. "peak": the largest resident memory. Both are MB more than before the rows. "keys and values": the size
of the tokens alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

TINY = Path(__file__).parents[1] / "src" / "guideway" / "tiny"
LENGTHS = np.linspace(10, 400, 16).astype(int).tolist()
STEPS = 100
TOKEN_BYTES = 6 * 192 * 2 * 4
LIBRARIES = {"onnx": "onnxruntime", "hf": "transformers", "mlx": "mlx_lm", "gguf": "llama_cpp"}


def engine_of(kind: str, folder: Path) -> Any:
    if kind == "onnx":
        from guideway.engines.onnx import OnnxEngine

        return OnnxEngine(TINY)
    if kind == "hf":
        import torch

        from guideway.engines.transformers import TransformersEngine

        torch.set_num_threads(1)
        return TransformersEngine(TINY, dtype="float32")
    if kind == "mlx":
        from guideway.engines.mlx import MlxEngine

        return MlxEngine(TINY, dtype="float32")
    sys.path[:0] = [str(Path(__file__).parents[1])]
    from guideway.engines.llama_cpp import LlamaCppEngine
    from tests.helpers.gguf_models import write_gguf

    return LlamaCppEngine(write_gguf(TINY, folder / "tiny.gguf"))


def run(engine: Any, lengths: list[int]) -> Any:
    rng = np.random.default_rng(0)
    _, caches = engine.forward([rng.integers(300, 4000, n).tolist() for n in lengths], [None] * len(lengths))
    for step in range(STEPS):
        _, caches = engine.forward([[300 + step]] * len(lengths), caches)
    return caches


def measured(kind: str) -> None:
    """Print the two sizes in MB, as JSON."""
    from harness.resident import resident

    with tempfile.TemporaryDirectory() as folder:
        engine = engine_of(kind, Path(folder))
        run(engine, [50])
        before = resident()
        caches = run(engine, LENGTHS)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        held = resident()
    print(json.dumps([held - before, peak - before]))
    del caches  # they exist until the memory is measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="onnx,hf,mlx,gguf")
    parser.add_argument("--one", help="measure this engine in this process")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if given.one:
        measured(given.one)
        return
    from harness.report import Report

    report, rows = Report("row-memory", [line for line in __doc__.splitlines()[4:] if line]), []
    least = sum(n + STEPS for n in LENGTHS) * TOKEN_BYTES / 1e6
    for kind in given.engines.split(","):
        if importlib.util.find_spec(LIBRARIES[kind]) is None:
            report.line(f"{kind}: not run, {LIBRARIES[kind]} is not installed")
            continue
        command = [sys.executable, __file__, "--one", kind]
        made = subprocess.run(command, capture_output=True, text=True, check=True)
        held, peak = json.loads(made.stdout.splitlines()[-1])
        rows.append(
            [kind, f"{least:.1f}", f"{held:.1f}", f"{held / least:.2f}x", f"{peak:.1f}", f"{peak / least:.2f}x"]
        )
    report.table("16 rows, MB", ["engine", "keys and values", "held", "", "peak", ""], rows)
    report.done(given.record)


if __name__ == "__main__":
    main()
