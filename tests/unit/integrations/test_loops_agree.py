"""The same weights and constraint give the same greedy text in every library's loop and in Guideway's."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

import guideway as gw
from guideway.generation import Model
from guideway.testing import tiny_model
from guideway.tokenizers import Tokenizer
from tests.helpers.exports import export_folder
from tests.helpers.loops import Run, installed, loops

pytestmark = pytest.mark.engine("torch", "transformers", "onnx")
SOURCES = {
    "pattern": gw.Regex(r'\{"name": "[a-z]{3,9}", "age": [1-9][0-9]?, "tags": \["[a-z]+"(, "[a-z]+"){0,3}\]\}'),
    "schema": gw.JsonSchema(
        {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "maximum": 99}},
            "required": ["name", "age"],
        }
    ),
    "choice": gw.Choice(["crab", "crabs and scrabble", "a story"]),
    "grammar": gw.Lark('start: "[" item ("," item)* "]"\nitem: /[a-z]{1,6}/ | start'),
}
SOURCES["verbatim"] = gw.JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "format": "verbatim"},
            "places": {"type": "array", "items": {"type": "string", "format": "verbatim"}, "maxItems": 2},
        },
        "required": ["name", "places"],
    }
).quoting('Zoë "Zo" Byron\nof Ockham Park')
LENGTH = 45


def test_the_same_text_in_every_loop(tmp_path: Path) -> None:
    folder = export_folder(tiny_model("llama", tmp_path / "model", seed=3))
    table = Tokenizer.of(folder)
    prefixes = ["onnx", "hf", *(["mlx"] if installed("mlx", "mlx_lm") else [])]
    ours = {prefix: gw.load(f"{prefix}:{folder}", dtype="float32" if prefix != "onnx" else None) for prefix in prefixes}
    with ExitStack() as stack:
        theirs = loops(folder, tmp_path, stack)
        assert len(theirs) >= 4
        compare(table, ours, theirs)


def compare(table: Tokenizer, ours: dict[str, Model], theirs: dict[str, Run]) -> None:
    for prompt in ("the crab and", "def main("):
        ids = table.encode(prompt, special=True)
        for name, source in SOURCES.items():
            # With probabilities, guideway's loop lets the model write forced text, as engines do. Only guideway's loop
            # searches for verbatim strings as a whole, so the search is switched off.
            written = {
                prefix: gw.generation.complete(
                    model, prompt, source, max_tokens=LENGTH, logprobs=0, verbatim_num_beams=1
                ).text
                for prefix, model in ours.items()
            }
            forced = {
                prefix: gw.generation.complete(model, prompt, source, max_tokens=LENGTH, verbatim_num_beams=1).text
                for prefix, model in ours.items()
            }
            for loop, run in theirs.items():
                text = table.vocabulary.bytes_of(run(ids, source, LENGTH)).decode()
                (forced if loop.endswith("forced") else written)[loop] = text
            assert len(set(written.values())) == 1, (name, written)
            assert len(set(forced.values())) == 1, (name, forced)
