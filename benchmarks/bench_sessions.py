"""Going back and forking: a session of 500 to 4,000 tokens, on every engine that is installed.

    python benchmarks/bench_sessions.py [--rounds 50] [--record]

Random models (two layers, width 64) with a context of 4,200 tokens; under a constraint, so that the matcher moves too.
"rewind": remove ten tokens and read the logits there, CPU time of the calling thread; "fork": create an independent
session at the same position. "step": one more token, wall time; "after": the first step after a rewind, with a
different token. "shared": whether a fork shares the memory of the keys and values of its origin.
"alone": rewinds in forks, in sequence, without a step of the model between them. The difference from "rewind" is the
cost of the data that a step evicts from the processor's caches.
Bar: the slowest rewind at 2,000 in under 1 ms; "alone", 4,000 tokens at most twice what 500 take.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter_ns, thread_time_ns

import guideway as gw
from guideway.sessions import Session
from guideway.testing import tiny_model
from harness.report import Report

sys.path[:0] = [str(Path(__file__).parents[1])]  # the models of the tests
CONTEXT = 4200
LENGTHS = (500, 1000, 2000, 4000)
BACK = 10
TEXT = "the crab and the scrabble of crabs. "


def onnx(folder: Path) -> gw.Model:
    from tests.helpers.small_model import write_model

    return gw.load(f"onnx:{write_model(folder / 'onnx', context=CONTEXT)}")


def transformers(folder: Path) -> gw.Model:
    import torch

    torch.set_num_threads(1)
    return gw.load(f"hf:{tiny_model('llama', folder / 'hf', context=CONTEXT)}")


def llama_cpp(folder: Path) -> gw.Model:
    from tests.helpers.gguf_models import write_gguf

    made = tiny_model("llama", folder / "gguf", context=CONTEXT)
    return gw.load(f"gguf:{write_gguf(made, folder / 'model.gguf')}", tokenizer=made)


def mlx(folder: Path) -> gw.Model:
    return gw.load(f"mlx:{tiny_model('llama', folder / 'mlx', context=CONTEXT)}")


ENGINES: dict[str, tuple[Callable[[Path], gw.Model], tuple[str, ...]]] = {
    "onnxruntime": (onnx, ("onnx",)),
    "transformers": (transformers, ("torch", "transformers")),
    "llama_cpp": (llama_cpp, ("llama_cpp", "gguf")),
    "mlx": (mlx, ("mlx_lm",)),
}


def started(model: gw.Model, length: int) -> Session:
    """Returns a session of `length` tokens under a constraint."""
    session = model.session()
    session.constrain(gw.compile(gw.Regex(r"[a-z. ]*"), model.vocabulary).matcher())
    ids = model.tokenizer.encode(TEXT * (length // 4))
    ids = ids[: length - len(session)]
    session.feed(ids[:-BACK])
    for token_id in ids[-BACK:]:
        session.logits()
        session.feed([token_id])
    session.logits()
    return session


def measure(model: gw.Model, length: int, rounds: int) -> dict[str, float]:
    """Medians and maxima of one session, microseconds; `shared` as 1 or 0."""
    session = started(model, length)
    times: dict[str, list[float]] = {"rewind": [], "fork": [], "step": [], "after": []}
    ways = [model.tokenizer.encode(text)[0] for text in ("a", "b")]
    for number in range(rounds):
        for _ in range(BACK):
            wall = perf_counter_ns()
            session.feed([ways[number % 2]])
            session.logits()
            times["step"].append((perf_counter_ns() - wall) / 1000)
        cpu = thread_time_ns()
        session.rewind(BACK)
        session.logits()
        times["rewind"].append((thread_time_ns() - cpu) / 1000)
        cpu = thread_time_ns()
        fork = session.fork()
        times["fork"].append((thread_time_ns() - cpu) / 1000)
        wall = perf_counter_ns()
        fork.feed([ways[1]])
        fork.logits()
        times["after"].append((perf_counter_ns() - wall) / 1000)
    found = {name: median(values) for name, values in times.items()}
    found["worst"] = max(times["rewind"])
    found["alone"] = median(alone(session) for _ in range(rounds))
    found["shared"] = float(session.fork().kv_cache().cache is session.kv_cache().cache)
    return found


def alone(session: Session) -> float:
    """A rewind of a fork, with nothing in front of it that would sweep caches; microseconds."""
    fork = session.fork()
    cpu = thread_time_ns()
    fork.rewind(BACK)
    fork.logits()
    return (thread_time_ns() - cpu) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    report = Report("sessions", [line for line in __doc__.splitlines()[4:] if line])
    rows, bars = [], []
    for name, (load, needs) in ENGINES.items():
        if missing := [library for library in needs if importlib.util.find_spec(library) is None]:
            report.line(f"{name}: {', '.join(missing)} is not installed, so not run")
            continue
        with tempfile.TemporaryDirectory() as folder, load(Path(folder)) as model:
            found = {length: measure(model, length, given.rounds) for length in LENGTHS}
        for length, one in found.items():
            cells = [f"{one[part]:,.1f}" for part in ("rewind", "worst", "alone", "fork", "step", "after")]
            rows.append([name, str(length), *cells, "yes" if one["shared"] else "no"])
        bars.append((f"{name}: ten tokens at 2,000, the slowest", found[2000]["worst"] / 1000, 1.0, "ms"))
        bars.append(
            (f"{name}: ten tokens, 4,000 against 500", found[4000]["alone"] / found[500]["alone"], 2.0, "times")
        )
    heads = ["engine", "tokens", "rewind", "slowest", "alone", "fork", "step", "after", "shared"]
    report.table("microseconds, medians", heads, rows)
    for bar in bars:
        report.limit(*bar)
    report.done(given.record)


if __name__ == "__main__":
    main()
