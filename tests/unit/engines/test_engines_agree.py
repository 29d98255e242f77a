"""The same weights on every engine give the same tokens, and the same logits within rounding."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import guideway as gw
from guideway.cli.inputs import load_type
from guideway.generation import Model, complete
from guideway.testing import ARCHITECTURES, tiny_model
from tests.helpers.engines import greedy
from tests.helpers.exports import export_folder
from tests.helpers.loops import installed

pytestmark = pytest.mark.engine("torch", "transformers", "onnx")
TINY = Path(gw.__file__).parent / "tiny"
EXAMPLES = Path(__file__).parents[3] / "examples"


def models(folder: Path, architecture: str) -> dict[str, Model]:
    """The model of this folder on every engine that is installed and runs it."""
    import torch

    torch.set_num_threads(1)
    found = {"transformers": gw.load(f"hf:{folder}", dtype="float32")}
    if architecture != "mamba" and (folder / "model.onnx").is_file():
        found["onnx"] = gw.load(f"onnx:{folder}")
    if architecture != "gptj" and installed("llama_cpp", "gguf"):
        from tests.helpers.gguf_models import write_gguf

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


SAMPLERS = {
    "plain": gw.Sampler(1.0),
    "cut": gw.Sampler(0.8, top_k=40, top_p=0.95, min_p=0.02),
    "typical": gw.Sampler(0.9, typical_p=0.8, repetition_penalty=1.2),
    "by feedback": gw.Sampler(1.0, mirostat=gw.sampling.Mirostat()),
    "against repetition": gw.Sampler(1.0, dry=gw.sampling.Dry(), xtc_probability=0.5),
}


def test_the_same_seed_gives_the_same_sampled_tokens_everywhere(tmp_path: Path) -> None:
    """Draws are keyed by seed, row and place; what the engines' sums differ by (1e-5) moves no draw of these."""
    folder = tmp_path / "tiny"
    shutil.copytree(TINY, folder)
    sources = [None, gw.Regex(r'\{"name": "[A-Za-z ]{3,20}", "year": [12]\d{3}\}')]
    found = {
        name: [
            [one.tokens for one in complete(model, "Ada Lovelace met", source, **options)]
            for sampler in SAMPLERS.values()
            for source in sources
            for options in [{"sampler": sampler, "n": 2, "seed": 11, "max_tokens": 30}]
        ]
        for name, model in models(folder, "llama").items()
    }
    assert {"transformers", "onnx"} <= found.keys()
    assert len({tokens for group in found["onnx"] for tokens in group}) > len(SAMPLERS) * 2
    for name, groups in found.items():
        assert groups == found["onnx"], name


def test_tiny_gives_the_same_records_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(TINY, folder)
    types = load_type(f"{EXAMPLES / 'records.py'}:RECORDS")
    cases = [json.loads(line) for line in (EXAMPLES / "sentences.jsonl").read_text("utf-8").splitlines()]
    for verbatim in (False, True):
        found = {
            name: [gw.extract(model, case["text"], types[case["kind"]], verbatim=verbatim) for case in cases]
            for name, model in models(folder, "llama").items()
        }
        for name, records in found.items():
            assert records == found["onnx"], name
