"""Files of the bundled model: they are consistent, the tokenizer is lossless, the graph is deterministic."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

import guideway

FOLDER = Path(guideway.__file__).parent / "tiny"
FILES = ["model.safetensors", "model.onnx", "config.json", "generation_config.json", "tokenizer.json"]
pytestmark = pytest.mark.skipif(not (FOLDER / "model.safetensors").exists(), reason="the weights are not in this tree")


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return dict(json.loads((FOLDER / "config.json").read_text()))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def session() -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), providers=["CPUExecutionProvider"])


def header() -> tuple[int, dict[str, Any]]:
    with (FOLDER / "model.safetensors").open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return 8 + size, json.loads(file.read(size))


def test_every_file_is_there_and_small() -> None:
    sizes = {name: (FOLDER / name).stat().st_size for name in FILES}
    assert sizes["model.safetensors"] <= 8_000_000
    assert sizes["model.onnx"] <= 200_000
    assert sum(file.stat().st_size for file in FOLDER.iterdir() if file.is_file()) <= 12_000_000


def test_the_weights_fill_their_file() -> None:
    start, index = header()
    places = sorted(entry["data_offsets"] for name, entry in index.items() if name != "__metadata__")
    assert places[0][0] == 0
    assert all(left[1] == right[0] for left, right in pairwise(places))
    assert start + places[-1][1] == (FOLDER / "model.safetensors").stat().st_size


def test_the_graph_reads_its_weights_out_of_the_safetensors_file() -> None:
    onnx = pytest.importorskip("onnx")
    start, index = header()
    begins = {start + entry["data_offsets"][0] for name, entry in index.items() if name != "__metadata__"}
    end = (FOLDER / "model.safetensors").stat().st_size
    graph = onnx.load(str(FOLDER / "model.onnx"), load_external_data=False).graph
    external = [tensor for tensor in graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    assert external
    for tensor in external:
        facts = {entry.key: entry.value for entry in tensor.external_data}
        assert facts["location"] == "model.safetensors"
        assert int(facts["offset"]) in begins
        assert int(facts["length"]) == 2 * int(np.prod(tensor.dims))
        assert int(facts["offset"]) + int(facts["length"]) <= end


@pytest.mark.parametrize(
    "text",
    [
        "Ada Lovelace, 36, mathematician from London",
        "naïve Ōsaka 東京 🙂\n\t\x00\x7f",
        '{"a": [1, 2.5e-3, null]}',
        "  two  spaces  ",
    ],
)
def test_the_tokenizer_loses_nothing(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == text


def test_the_tokenizer_has_every_byte_and_the_special_tokens(tokenizer: Tokenizer, config: dict[str, Any]) -> None:
    assert tokenizer.get_vocab_size() == config["vocab_size"]
    assert [tokenizer.token_to_id(name) for name in ("<bos>", "<eos>", "<pad>")] == [0, 1, 2]
    assert tokenizer.encode("x").ids[0] == config["bos_token_id"]
    single = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    assert sum(len(token) == 1 for token in single) == 256


def test_digits_and_words_are_separate_tokens(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("in 2024 Ada", add_special_tokens=False).tokens
    assert [token for token in tokens if any(c.isdigit() for c in token)] == list("2024")
    assert not any(token.startswith("Ġ") and len(token) > 1 and token[1:].isalnum() for token in tokens)


def feeds(config: dict[str, Any], ids: list[list[int]], mask: list[list[int]], past: list[Any] | None = None) -> Any:
    """Inputs of one call; `mask` covers the past too."""
    seen, count = np.array(mask, np.int64), len(ids[0])
    places = np.clip(seen.cumsum(1) - 1, 0, None)[:, -count:]
    made: dict[str, Any] = {"input_ids": np.array(ids, np.int64), "attention_mask": seen, "position_ids": places}
    for layer in range(config["num_hidden_layers"]):
        for part in range(2):
            empty = np.zeros((len(ids), config["num_key_value_heads"], 0, config["head_dim"]), np.float32)
            name = f"past_key_values.{layer}.{('key', 'value')[part]}"
            made[name] = empty if past is None else past[2 * layer + part]
    return made


def test_a_cache_and_left_padding_change_nothing(session: Any, config: dict[str, Any], tokenizer: Tokenizer) -> None:
    long = tokenizer.encode("Text: Ada Lovelace, 36\nShape: {}").ids
    short = tokenizer.encode("Text: Bo").ids
    gap = len(long) - len(short)
    alone = [session.run(None, feeds(config, [ids], [[1] * len(ids)]))[0][0] for ids in (long, short)]
    rows, mask = [long, [2] * gap + short], [[1] * len(long), [0] * gap + [1] * len(short)]
    both = session.run(None, feeds(config, rows, mask))[0]
    np.testing.assert_allclose(both[0], alone[0], atol=1e-3)
    np.testing.assert_allclose(both[1, gap:], alone[1], atol=1e-3)
    head = [row[:-1] for row in rows], [row[:-1] for row in mask]
    past = session.run(None, feeds(config, *head))[1:]
    last = session.run(None, feeds(config, [row[-1:] for row in rows], mask, past))[0]
    np.testing.assert_allclose(last[:, -1], both[:, -1], atol=1e-3)


@pytest.mark.engine("transformers")
def test_transformers_reads_the_same_model(session: Any, config: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(FOLDER))
    model = transformers.AutoModelForCausalLM.from_pretrained(str(FOLDER), dtype=torch.float32).eval()
    ids = tokenizer("Text: Ada Lovelace, 36, mathematician from London\nShape: ")["input_ids"]
    assert ids[0] == config["bos_token_id"]
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits.numpy()
    found = session.run(None, feeds(config, [ids], [[1] * len(ids)]))[0]
    np.testing.assert_allclose(found, expected, atol=1e-3)
