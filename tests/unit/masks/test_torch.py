"""Masks on torch logits: the kernel, torch operations and Triton agree; buffers are reused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from guideway import masks

pytestmark = pytest.mark.engine("torch")


def cases() -> list[tuple[np.ndarray, masks.Row, list[bool]]]:
    chance = np.random.default_rng(0)
    found = []
    for rows, width, words in ((1, 40, 2), (3, 9000, 281), (4, 4096, 128), (2, 5000, 120)):
        logits = chance.normal(size=(rows, width)).astype(np.float32)
        bits = chance.integers(0, 2**32, (rows, words), dtype=np.uint64).astype(np.uint32)
        bits[:, ::3], bits[:, 1::5] = 0, 0xFFFFFFFF
        bits[-1] = 0
        bits[-1, 1] = 1 << 7
        logits[-1, 39] = -np.inf  # the last row has no allowed token
        found.append((logits, bits, [index % 3 != 1 for index in range(rows)]))
    return found


def expected(logits: np.ndarray, bits: masks.Row, held: list[bool]) -> tuple[np.ndarray, list[int]]:
    made, nothing = logits.copy(), []
    for index, is_held in enumerate(held):
        if is_held:
            made[index][~masks.unpack(bits[index], logits.shape[1])] = -np.inf
            if np.isneginf(made[index]).all():
                nothing.append(index)
    return made, nothing


@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_every_way_gives_the_same(case: int, kind: str) -> None:
    import torch

    from guideway.masks.torch import TorchMasks

    logits, bits, held = cases()[case]
    wanted, nothing = expected(logits, bits, held)
    given = torch.tensor(logits).to(getattr(torch, kind))
    wanted_tensor = torch.tensor(wanted).to(getattr(torch, kind))
    made, empty = TorchMasks()(given, bits, held)
    assert torch.equal(made, wanted_tensor)
    assert empty == nothing
    assert torch.equal(given, torch.tensor(logits).to(given.dtype))  # as it was
    if kind == "float32":
        made, empty = TorchMasks(in_place=True)(given, bits, held)
        assert made is given
        assert torch.equal(given, wanted_tensor)
        assert empty == nothing


def test_buffers_are_reused_only_without_references() -> None:
    import torch

    from guideway.masks.torch import TorchMasks

    apply, row = TorchMasks(), masks.new_rows(2, 64)
    row[:] = 1
    logits = torch.ones(2, 64)
    kept = [apply(logits * n, row, [True, True])[0] for n in range(1, 6)]
    assert [float(one[0, 0]) for one in kept] == [1, 2, 3, 4, 5]
    view = kept[4][1:, :1]
    del kept
    places = set()
    for n in range(6, 30):
        made, _ = apply(logits * n, row, [True, True])
        places.add(made.data_ptr())
        assert float(made[0, 0]) == n
        assert float(view) == 5  # a view of a tensor keeps it alive
    assert len(places) <= 2


TRITON = """
import numpy as np, torch
from tests.unit.masks.test_torch import cases, expected
from guideway.masks.triton import masked
for kind in (torch.float32, torch.float16):
    for logits, bits, held in cases():
        wanted, nothing = expected(logits, bits, held)
        given = torch.tensor(logits).to(kind)
        free = torch.tensor([not one for one in held])
        for one in (given, torch.cat([given, given], 1)[:, : given.shape[1]]):
            made, flags = masked(one, torch.from_numpy(bits.view(np.int32)), free)
            assert torch.equal(made, torch.tensor(wanted).to(kind))
            assert flags.nonzero().flatten().tolist() == nothing
print("as expected")
"""


@pytest.mark.engine("triton")
def test_the_kernel_of_triton_in_its_interpreter() -> None:
    """Runs on a CPU in a separate process, because Triton reads TRITON_INTERPRET during its import."""
    import os

    found = subprocess.run(
        [sys.executable, "-c", TRITON],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.stdout == "as expected\n", found.stderr


@pytest.mark.engine("triton")
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_the_kernel_of_triton_compiles_for_a_gpu() -> None:
    """Triton's compiler refuses code that its interpreter runs. It needs no GPU."""
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from guideway.masks.triton import BLOCK, _mask

    for kind in ("fp32", "fp16", "bf16"):
        pointers = {"logits": f"*{kind}", "made": f"*{kind}", "words": "*i32", "free": "*i32", "alive": "*i32"}
        numbers = dict.fromkeys(("width", "word_count", "logits_stride"), "i32")
        source = ASTSource(_mask, {**pointers, **numbers, "BLOCK": "constexpr"}, constexprs={"BLOCK": BLOCK})
        made = compiled(source, target=GPUTarget("cuda", 90, 32))
        assert ".target sm_90" in made.asm["ptx"]
