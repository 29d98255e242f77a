"""Writes ``model.onnx`` next to ``model.safetensors``: the graph of a llama, which refers to the existing weights.

Usage: python tools/export_tiny_onnx.py MODEL_DIR

The weights are ONNX external data that refer to the safetensors file by offset and length. They are half precision
there, and a session casts them to float once (onnxruntime folds the casts and transposes of constants).  Inputs and
outputs have the names of exports on the Hub: input_ids, attention_mask, position_ids, past_key_values.N.key/value;
logits, present.N.key/value.  attention_mask supports any padding, and a past may have length 0.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
WEIGHTS = "model.safetensors"
MASKED = -1e9  # finite: a row of padding sees only masked keys, and must not become NaN


class Graph:
    """Nodes and constants of one graph, in order; ``op`` adds a node and gives the name of its output."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        with (folder / WEIGHTS).open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            self.index = json.loads(file.read(size))
        self.data_start = 8 + size
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.count = 0

    def op(self, kind: str, *inputs: str, outputs: int = 1, name: str | None = None, **attributes: object) -> str:
        return self.ops(kind, *inputs, outputs=[name or self.fresh(kind)], **attributes)[0]

    def ops(self, kind: str, *inputs: str, outputs: Sequence[str], **attributes: object) -> list[str]:
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), name=self.fresh("n"), **attributes))
        return list(outputs)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind.lower()}_{self.count}"

    def constant(self, value: object, dtype: type = np.int64) -> str:
        name = self.fresh("c")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def weight(self, *names: str) -> str:
        """The named tensors, which must lie one after the other in the file, as one float tensor."""
        places = [self.index[name] for name in names]
        for left, right in pairwise(places):
            if left["data_offsets"][1] != right["data_offsets"][0] or left["shape"][1:] != right["shape"][1:]:
                raise ValueError(f"{names} do not lie one after the other in {WEIGHTS}")
        begin, end = places[0]["data_offsets"][0], places[-1]["data_offsets"][1]
        shape = [sum(place["shape"][0] for place in places), *places[0]["shape"][1:]]
        tensor = TensorProto(name=f"{'+'.join(names)}", data_type=TensorProto.FLOAT16, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        facts = {"location": WEIGHTS, "offset": str(self.data_start + begin), "length": str(end - begin)}
        for key, value in facts.items():
            tensor.external_data.add(key=key, value=value)
        self.constants.append(tensor)
        return self.op("Cast", tensor.name, to=TensorProto.FLOAT)

    def linear(self, x: str, weight: str) -> str:
        return self.op("MatMul", x, self.op("Transpose", weight, perm=[1, 0]))

    def norm(self, x: str, name: str) -> str:
        """RMSNorm in the pattern that onnxruntime fuses into one kernel."""
        square = self.op("Pow", x, self.constant(2.0, np.float32))
        mean = self.op("ReduceMean", square, axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(self.config["rms_norm_eps"], np.float32)))
        return self.op("Mul", self.op("Div", x, root), self.weight(name))


def positions(graph: Graph) -> tuple[str, str]:
    """Cosines, and sines with the sign of the half rotation, as [batch, 1, seq, head_dim]."""
    half = graph.config["head_dim"] // 2
    rates = graph.config["rope_theta"] ** (-np.arange(half, dtype=np.float32) / half)
    place = graph.op("Unsqueeze", graph.op("Cast", "position_ids", to=TensorProto.FLOAT), graph.constant([1, 3]))
    angles = graph.op("Mul", place, graph.constant(rates, np.float32))
    cos, sin = graph.op("Cos", angles), graph.op("Sin", angles)
    return (
        graph.op("Concat", cos, cos, axis=-1),
        graph.op("Concat", graph.op("Neg", sin), sin, axis=-1),
    )


def mask(graph: Graph) -> str:
    """Returns the bias of the scores, [batch, 1, seq, past + seq]: 0 for visible keys, else a large negative number."""
    zero, one = graph.constant(0), graph.constant(1)
    total = graph.op("Gather", graph.op("Shape", "attention_mask"), one)
    length = graph.op("Gather", graph.op("Shape", "input_ids"), one)
    keys = graph.op("Range", zero, total, one)
    queries = graph.op("Unsqueeze", graph.op("Range", graph.op("Sub", total, length), total, one), graph.constant([1]))
    causal = graph.op("LessOrEqual", keys, queries)
    real = graph.op("Unsqueeze", graph.op("Cast", "attention_mask", to=TensorProto.BOOL), graph.constant([1, 2]))
    seen = graph.op("And", causal, real)
    return graph.op("Where", seen, graph.constant(0, np.float32), graph.constant(MASKED, np.float32))


def attention(graph: Graph, x: str, layer: int, turn: tuple[str, str], bias: str) -> str:
    heads, size = graph.config["num_attention_heads"], graph.config["head_dim"]
    prefix = f"model.layers.{layer}.self_attn."
    qkv = graph.linear(x, graph.weight(*(f"{prefix}{part}_proj.weight" for part in "qkv")))
    qkv = graph.op("Reshape", qkv, graph.constant([0, 0, 3 * heads, size]))
    qkv = graph.op("Transpose", qkv, perm=[0, 2, 1, 3])
    sizes = graph.constant([2 * heads, heads])
    both, value = graph.ops("Split", qkv, sizes, outputs=[graph.fresh("qk"), graph.fresh("v")], axis=1)
    halves = graph.ops("Split", both, outputs=[graph.fresh("h"), graph.fresh("h")], axis=3)
    turned = graph.op("Mul", graph.op("Concat", halves[1], halves[0], axis=3), turn[1])
    both = graph.op("Add", graph.op("Mul", both, turn[0]), turned)
    query, key = graph.ops("Split", both, outputs=[graph.fresh("q"), graph.fresh("k")], axis=1)
    past = f"past_key_values.{layer}."
    key = graph.op("Concat", past + "key", key, axis=2, name=f"present.{layer}.key")
    value = graph.op("Concat", past + "value", value, axis=2, name=f"present.{layer}.value")
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.op("Mul", scores, graph.constant(size**-0.5, np.float32))
    weights = graph.op("Softmax", graph.op("Add", scores, bias), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", weights, value), perm=[0, 2, 1, 3])
    mixed = graph.op("Reshape", mixed, graph.constant([0, 0, heads * size]))
    return graph.linear(mixed, graph.weight(prefix + "o_proj.weight"))


def mlp(graph: Graph, x: str, layer: int) -> str:
    prefix = f"model.layers.{layer}.mlp."
    both = graph.linear(x, graph.weight(prefix + "gate_proj.weight", prefix + "up_proj.weight"))
    gate, up = graph.ops("Split", both, outputs=[graph.fresh("gate"), graph.fresh("up")], axis=-1)
    active = graph.op("Mul", gate, graph.op("Sigmoid", gate))
    return graph.linear(graph.op("Mul", active, up), graph.weight(prefix + "down_proj.weight"))


def build(folder: Path) -> onnx.ModelProto:
    graph = Graph(folder)
    embedding = graph.weight("model.embed_tokens.weight")
    x = graph.op("Gather", embedding, "input_ids")
    turn, bias = positions(graph), mask(graph)
    layers = graph.config["num_hidden_layers"]
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        x = graph.op("Add", x, attention(graph, graph.norm(x, prefix + "input_layernorm.weight"), layer, turn, bias))
        x = graph.op("Add", x, mlp(graph, graph.norm(x, prefix + "post_attention_layernorm.weight"), layer))
    x = graph.norm(x, "model.norm.weight")
    graph.op("MatMul", x, graph.op("Transpose", embedding, perm=[1, 0]), name="logits")
    made = helper.make_graph(graph.nodes, "tiny", inputs(graph, layers), outputs(graph, layers), graph.constants)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8, producer_name="guideway")


def inputs(graph: Graph, layers: int) -> list[onnx.ValueInfoProto]:
    heads, size = graph.config["num_key_value_heads"], graph.config["head_dim"]
    whole, cache = TensorProto.INT64, ["batch", heads, "past", size]
    made = [
        helper.make_tensor_value_info("input_ids", whole, ["batch", "seq"]),
        helper.make_tensor_value_info("attention_mask", whole, ["batch", "total"]),
        helper.make_tensor_value_info("position_ids", whole, ["batch", "seq"]),
    ]
    for layer in range(layers):
        for part in ("key", "value"):
            made.append(helper.make_tensor_value_info(f"past_key_values.{layer}.{part}", TensorProto.FLOAT, cache))
    return made


def outputs(graph: Graph, layers: int) -> list[onnx.ValueInfoProto]:
    heads, size = graph.config["num_key_value_heads"], graph.config["head_dim"]
    shape = ["batch", "seq", graph.config["vocab_size"]]
    made = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)]
    for layer in range(layers):
        for part in ("key", "value"):
            cache = ["batch", heads, "total", size]
            made.append(helper.make_tensor_value_info(f"present.{layer}.{part}", TensorProto.FLOAT, cache))
    return made


def main() -> None:
    folder = Path(sys.argv[1])
    target = folder / "model.onnx"
    target.write_bytes(build(folder).SerializeToString())
    onnx.checker.check_model(str(target))
    print(f"{target.name}: {target.stat().st_size} bytes; the weights stay in {WEIGHTS}")


if __name__ == "__main__":
    main()
