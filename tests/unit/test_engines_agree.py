"""The same weights on every engine: the same greedy tokens under a constraint, logits within rounding, same records."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import guideway as gw
from guideway.cli.inputs import load_type
from guideway.sessions import Model
from guideway.testing import ARCHITECTURES, tiny_model

from ..helpers.engines import greedy
from ..helpers.exports import export_folder

pytestmark = pytest.mark.engine("torch", "transformers", "onnx")
TINY = Path(gw.__file__).parent / "tiny"
EXAMPLES = Path(__file__).parents[2] / "examples"


def installed(*libraries: str) -> bool:
    return all(importlib.util.find_spec(library) for library in libraries)


def models(folder: Path, architecture: str) -> dict[str, Model]:
    """The model of this folder on every engine that is installed and runs it."""
    import torch

    torch.set_num_threads(1)
    found = {"transformers": gw.load(f"hf:{folder}", dtype="float32")}
    if architecture != "mamba" and (folder / "model.onnx").is_file():
        found["onnx"] = gw.load(f"onnx:{folder}")
    if architecture != "gptj" and installed("llama_cpp", "gguf"):
        from ..helpers.gguf_models import write_gguf

        # GGUF has a list of rules by which text is cut, and none is that of `tiny`.
        file = write_gguf(folder, folder / "model.gguf")
        found["llama.cpp"] = gw.load(f"gguf:{file}", tokenizer=folder)
    if architecture not in ("mpt", "bloom") and installed("mlx", "mlx_lm"):
        found["mlx"] = gw.load(f"mlx:{folder}", dtype="float32")
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_tokens_and_logits(architecture: str, tmp_path: Path) -> None:
    # Seed 0 has a near-tie of GPT-NeoX at its 58th token, nearer than the half-precision GELU of llama.cpp is exact.
    folder = tiny_model(architecture, tmp_path / "model", seed=3)
    if architecture != "mamba":
        export_folder(folder)
    results = {name: greedy(model) for name, model in models(folder, architecture).items()}
    tokens, logits = results["transformers"]
    assert len(tokens) > 10
    for name, (found, there) in results.items():
        assert found == tokens, name
        # llama.cpp looks GELU up in a table of half precision; what has none agrees as closely as the others.
        loose = name == "llama.cpp" and architecture not in ("llama", "qwen2", "mamba")
        assert np.abs(there - logits).max() < (0.05 if loose else 1e-3), name


def test_tiny_gives_the_same_records_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(TINY, folder)
    types = load_type(f"{EXAMPLES / 'records.py'}:RECORDS")
    cases = [json.loads(line) for line in (EXAMPLES / "sentences.jsonl").read_text("utf-8").splitlines()]
    found = {
        name: [gw.extract(model, case["text"], types[case["kind"]]) for case in cases]
        for name, model in models(folder, "llama").items()
    }
    for name, records in found.items():
        assert records == found["onnx"], name
