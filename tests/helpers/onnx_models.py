"""Small language models as hand-written ONNX graphs with random weights."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass
class Shape:
    """What to write. `positions`, `attention_mask`, `branch`: whether the graph has these optional inputs."""

    vocab: int = 50
    hidden: int = 16
    layers: int = 2
    heads: int = 2
    context: int = 64
    positions: bool = True
    attention_mask: bool = True
    branch: bool = False
    half_cache: bool = False
    rename: dict[str, str] = field(default_factory=dict)
    leave_out: tuple[str, ...] = ()

    @property
    def head(self) -> int:
        return self.hidden // self.heads


class _Graph:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(7)
        self.names = 0

    def op(self, kind: str, *inputs: str, output: str = "", **attributes: object) -> str:
        self.names += 1
        output = output or f"{kind}_{self.names}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def constant(self, value: object, kind: type = np.int64) -> str:
        self.names += 1
        self.weights.append(numpy_helper.from_array(np.array(value, dtype=kind), f"constant_{self.names}"))
        return f"constant_{self.names}"

    def weight(self, *size: int) -> str:
        return self.constant(self.random.normal(0, size[0] ** -0.5, size), np.float32)

    def cast(self, name: str, kind: int, output: str = "") -> str:
        return self.op("Cast", name, to=kind, output=output)

    def split_heads(self, name: str) -> str:
        return self.op(
            "Transpose", self.op("Reshape", name, self.constant([0, 0, self.shape.heads, -1])), perm=[0, 2, 1, 3]
        )

    def layer(self, index: int, x: str, mask: str) -> str:
        shape, cache = self.shape, {}
        kind = TensorProto.FLOAT16 if shape.half_cache else TensorProto.FLOAT
        for part in ("key", "value"):
            new = self.cast(self.split_heads(self.op("MatMul", x, self.weight(shape.hidden, shape.hidden))), kind)
            name = f"present.{index}.{part}"
            self.op("Concat", f"past_key_values.{index}.{part}", new, output=name, axis=2)
            cache[part] = self.cast(name, TensorProto.FLOAT)
        query = self.split_heads(self.op("MatMul", x, self.weight(shape.hidden, shape.hidden)))
        scores = self.op("MatMul", query, self.op("Transpose", cache["key"], perm=[0, 1, 3, 2]))
        probabilities = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", probabilities, cache["value"]), perm=[0, 2, 1, 3])
        flat = self.op("Reshape", mixed, self.constant([0, 0, shape.hidden]))
        return self.op("Add", x, self.op("MatMul", flat, self.weight(shape.hidden, shape.hidden)))

    def positions(self) -> str:
        """The position of every new token: the input, or counted from the cache's length."""
        if self.shape.positions:
            return "position_ids"
        past = self.op("Gather", self.op("Shape", "past_key_values.0.key"), self.constant(2))
        new = self.op("Gather", self.op("Shape", "input_ids"), self.constant(1))
        span = self.op("Range", past, self.op("Add", past, new), self.constant(1))
        return self.op("Unsqueeze", span, self.constant([0]))

    def build(self) -> onnx.ModelProto:
        shape = self.shape
        embedding = self.weight(shape.vocab, shape.hidden)
        positions = self.positions()
        x = self.op("Gather", embedding, "input_ids")
        x = self.op("Add", x, self.op("Gather", self.weight(shape.context, shape.hidden), positions))
        past = self.op("Gather", self.op("Shape", "past_key_values.0.key"), self.constant(2))
        new = self.op("Gather", self.op("Shape", "input_ids"), self.constant(1))
        keys = self.op("Range", self.constant(0), self.op("Add", past, new), self.constant(1))
        visible = self.op("LessOrEqual", keys, self.op("Unsqueeze", positions, self.constant([2])))
        if shape.attention_mask:
            there = self.op("Unsqueeze", self.cast("attention_mask", TensorProto.BOOL), self.constant([1]))
            visible = self.op("And", visible, there)
        far = self.op("Where", visible, self.constant(0, np.float32), self.constant(-1e9, np.float32))
        mask = self.op("Unsqueeze", far, self.constant([1]))
        for index in range(shape.layers):
            x = self.layer(index, x, mask)
        self.op("MatMul", x, self.op("Transpose", embedding, perm=[1, 0]), output="logits")
        return helper.make_model(
            helper.make_graph(self.nodes, "model", self.inputs(), self.outputs(), self.weights),
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=9,
        )

    def cache(self, prefix: str, length: str) -> list[onnx.ValueInfoProto]:
        kind = TensorProto.FLOAT16 if self.shape.half_cache else TensorProto.FLOAT
        size = ["batch", self.shape.heads, length, self.shape.head]
        return [
            helper.make_tensor_value_info(f"{prefix}.{index}.{part}", kind, size)
            for index in range(self.shape.layers)
            for part in ("key", "value")
        ]

    def inputs(self) -> list[onnx.ValueInfoProto]:
        made = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "new"])]
        if self.shape.attention_mask:
            made.append(helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "all"]))
        if self.shape.positions:
            made.append(helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["batch", "new"]))
        if self.shape.branch:
            made.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
        return made + self.cache("past_key_values", "past")

    def outputs(self) -> list[onnx.ValueInfoProto]:
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "new", self.shape.vocab])
        kept = [logits, *self.cache("present", "all")]
        return [value for value in kept if value.name not in self.shape.leave_out]


def write(folder: Path, shape: Shape, *, external: bool = False, **config: object) -> Path:
    """Write model.onnx and config.json into the folder."""
    model = _Graph(shape).build()
    for old, new in shape.rename.items():
        for node in model.graph.node:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]
        for value in [*model.graph.input, *model.graph.output]:
            value.name = new if value.name == old else value.name
    folder.mkdir(parents=True, exist_ok=True)
    data = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 1024} if external else {}
    onnx.save_model(model, str(folder / "model.onnx"), **data)
    settings = {"max_position_embeddings": shape.context, "eos_token_id": 0, "vocab_size": shape.vocab, **config}
    (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    return folder
